"""Changing bytes at random: as JSON or lines of JSON where they are that, else as bytes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fuzz.json_edits import apply_change, draw_change, dump

SNIPPETS = (
    *(b"", b"\x00", b"\n", b"\r\n", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\xff", b"\xed\xa0\x80"),
    *(b"null", b"true", b"NaN", b"1e999", b"-0", b"9" * 400, b"[" * 300, b'{"a":' * 300, b'"\\ud800"', b"\xef\xbb\xbf"),
    *(b"\x1b[2J", b"$(", b"`", b"${x", b"<<E\n", b"; ", b" && ", b"| ", b"> ", b"../", b"--", b"= ", b'"""', b"@@ -1 "),
    *(b"\x7f", b"\xc2\x80", b"\xe2\x80\xae", b"\xf0\x9f\x92\xa9", b"capsule://", b"%00", b"#", b"//", b"/*", b"when {"),
)
"""Pieces that mean something to one of the parsers."""

INPUT_MAX = 256 * 1024
"""Bytes of an input. More finds nothing new and costs time; the bounds of large inputs have tests of their own."""


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """Some bytes replaced, removed, repeated or put in."""
    for _ in range(random.choice((1, 1, 2, 4))):
        start = random.randrange(len(data) + 1)
        length = random.choice((0, 0, 1, 1, 2, 7, 64, 300))
        kind = random.randrange(5)
        if kind == 0 and data:
            flipped = bytes([data[start % len(data)] ^ 1 << random.randrange(8)])
            data = data[: start % len(data)] + flipped + data[start % len(data) + 1 :]
        elif kind == 1:
            data = data[:start] + data[start : start + length] * 2 + data[start + length :]
        elif kind == 2:
            data = data[:start] + random.randbytes(random.randrange(5)) + data[start + length :]
        elif kind == 3 and len(data) > 1:
            other = random.randrange(len(data))
            data = data[:start] + data[other : other + 50] + data[start + length :]
        else:
            data = data[:start] + random.choice(SNIPPETS) + data[start + length :]
    return data[:INPUT_MAX]


def mutate_text(data: bytes, random: Random) -> bytes:
    """A change of the JSON that the bytes are; of bytes, where they are none, and now and then anyway."""
    if random.random() < 0.3:
        return mutate_bytes(data, random)
    documents = parse_documents(data)
    if documents is None:
        return mutate_bytes(data, random)
    for _ in range(random.choice((1, 1, 2, 3))):
        documents = apply_change(documents, draw_change(documents, random))
        if not isinstance(documents, list):
            return dump(documents)[:INPUT_MAX]
    return b"\n".join(map(dump, documents))[:INPUT_MAX]


def parse_documents(data: bytes) -> list[Any] | None:
    """The JSON documents in a text, one or one on each line; None where there is anything else."""
    try:
        return [json.loads(data)]
    except (ValueError, RecursionError):
        pass
    try:
        lines = [line for line in data.split(b"\n") if line.strip()]
        return [json.loads(line) for line in lines] or None
    except (ValueError, RecursionError):
        return None
