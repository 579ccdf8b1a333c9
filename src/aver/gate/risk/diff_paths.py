"""The names of files in a diff, as git and `diff` write them.

A name with odd characters is quoted like a C string with octal escapes for bytes; `/dev/null` is no file; git puts
`a/` and `b/` before names, other letters or nothing if told so; plain `diff` puts a date behind a tab.
"""

from __future__ import annotations

import re

__all__ = ["PATH_MAX", "header_paths", "named_path", "without_prefixes"]

PATH_MAX = 4096
"""Longest path that a system takes. What is longer names no file."""

_PREFIXES = frozenset(
    {("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/"), ("o/", "i/")}
)
_PREFIXED = tuple(sorted({prefix for pair in _PREFIXES for prefix in pair}))
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def named_path(text: str) -> str | None:
    """The path that stands in a header; None for `/dev/null`, empty for what cannot be a path."""
    text = text.removesuffix("\r")
    plain, _, _ = text.partition("\t")
    quoted = _QUOTED.fullmatch(plain)
    if quoted is None and plain.startswith('"'):
        return ""
    path = _unquoted(quoted[1]) if quoted else plain
    if path == "/dev/null":
        return None
    return path if len(path) <= PATH_MAX else ""


def without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Both names of a file without the letters that git puts before them."""
    if old is None or new is None:
        only = old if new is None else new
        bare = only[2:] if only is not None and only.startswith(_PREFIXED) else only
        return (bare, None) if new is None else (None, bare)
    if (old[:2], new[:2]) in _PREFIXES or (new[:2], old[:2]) in _PREFIXES:
        return old[2:], new[2:]
    return old, new


def header_paths(line: str) -> tuple[str | None, str | None]:
    """The two names in a `diff --git` line, or the one in `diff --cc`; empty where they cannot be told apart.

    They count only where no other header names the file: then both are the same but for their prefixes.
    """
    for word in ("diff --cc ", "diff --combined "):
        if line.startswith(word):
            path = named_path(line.removeprefix(word))
            return path, path
    names = line.removeprefix("diff --git ")
    quoted = _QUOTED.match(names)
    if quoted or names.endswith('"'):
        first, second = _split_quoted(names, quoted)
        return without_prefixes(named_path(first), named_path(second))
    half = len(names) // 2
    old, new = without_prefixes(names[:half], names[half + 1 :])
    if names[half : half + 1] == " " and old == new and len(names) <= 2 * PATH_MAX:
        return old, new
    return "", ""


def _split_quoted(names: str, first: re.Match[str] | None) -> tuple[str, str]:
    if first:
        return first[0], names[first.end() :].lstrip(" ")
    plain, _, _ = names.partition(' "')
    return plain, names[len(plain) + 1 :]


def _unquoted(text: str) -> str:
    def byte(escape: re.Match[bytes]) -> bytes:
        value = escape[1]
        if len(value) == 3:
            return bytes([int(value, 8) & 0xFF])
        return _LETTERS.get(value, value)

    # Bytes that are no UTF-8 stay what they are, so that two names never become one.
    return _ESCAPE.sub(byte, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
