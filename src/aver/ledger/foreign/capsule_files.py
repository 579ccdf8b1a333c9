"""Capsules outside any ledger: one, an array, or one on each line, in a file or in memory.

Several records are judged as one chain, in their order. It may begin at any sequence number; the verdict on a chain
whose first records are missing is qualified. A single record has no neighbours to compare with. The records do not show
how long the chain once was, and no verdict here claims to know.

JSON that no other format recognises is judged here. So a damaged file of capsules fails, instead of being unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, BinaryIO

from aver.capsule.aver_block import read_block
from aver.capsule.json_reader import ELEMENT_MAX, Unreadable, read_element_texts
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.files.regular import open_file, read_chunks
from aver.keys import Ring
from aver.ledger.foreign.seal_checks import check_seal_fields, unreadable_code
from aver.ledger.keys_chain import retirements
from aver.verdict import ChainJudge, Retirement, Subject, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import skip_examiners

LINE_MAX = ELEMENT_MAX
"""Longest line of a file with one capsule on each line."""

Item = tuple[str, Sealed | BadInput]
"""The place of a record, for messages, and the record or the error."""


def judge_text(subject: Subject, options: VerifyOptions) -> Verdict:
    with _open_subject(subject) as file:
        return _judge_items(subject.name, options, _read_text(file, subject.json_opening))


def judge_values(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on a `Sealed`, a sealed dict, or a list of those."""
    return _judge_items(subject.name, options, _read_values(subject.value))


def _judge_items(name: str, options: VerifyOptions, items: Iterator[Item]) -> Verdict:
    judge = ChainJudge(options.rules(retirements_by_time(options.ring)), start=None, source=name)
    refers_to_blobs = False
    first: int | None = None
    domain = ""
    for where, item in items:
        if isinstance(item, BadInput):
            judge.unreadable(f"{where}{item.message}", code=unreadable_code(item))
            continue
        content = judge.judge(item)
        if content is not None:
            if first is None:
                first = content["sequence"]
                domain = content["domain"] if read_block(content) is not None else ""
            refers_to_blobs = refers_to_blobs or b'"blob":{' in item.canonical
    tally = judge.finish()
    if first and tally.records > 1:
        words = f"begins at sequence {first}: the records before it are not here"
        tally.skip("genesis", words, matters=True)
    if refers_to_blobs:
        tally.skip("blobs", "the large values that it refers to are not here", matters=False)
    tally.skip("meta", "nothing here shows how many records there once were", matters=False)
    skip_examiners(domain, "the ledger that these records are from is not here", tally)
    tally.chains = int(tally.records > 1)
    return conclude(name, tally, level=options.level)


def retirements_by_time(ring: Ring) -> dict[str, Retirement]:
    """The retired keys of a ring, each limited by the time of its retirement, because no ledger gives exact heads."""
    return retirements(ring, ())


def _read_values(value: Any) -> Iterator[Item]:
    values = value if isinstance(value, list | tuple) else [value]
    for index, item in enumerate(values):
        where = f"item {index}: " if values is value else ""
        try:
            if isinstance(item, Mapping):
                item = _require_seal(Sealed.from_sealed_dict(item))
            if not isinstance(item, Sealed):
                raise Unreadable(f"{type(item).__name__} is not a sealed capsule")
            yield where, check_seal_fields(item)
        except BadInput as error:
            yield where, error


def _read_text(file: BinaryIO, opening: str) -> Iterator[Item]:
    """Stream the records of a text. An unreadable record is yielded as an error in its place."""
    texts = _read_array(file) if opening == "[" else _read_documents(file)
    for where, text in texts:
        if isinstance(text, BadInput):
            yield where, text
            continue
        try:
            yield where, _require_seal(Sealed.from_sealed_json(text))
        except BadInput as error:
            yield where, error


def _require_seal(sealed: Sealed) -> Sealed:
    if not sealed.hash:
        raise Unreadable("it is not sealed: it has no hash")
    return check_seal_fields(sealed)


def _read_array(file: BinaryIO) -> Iterator[tuple[str, str | BadInput]]:
    number = 0
    try:
        for number, text in enumerate(read_element_texts(read_chunks(file)), 1):
            yield f"element {number}: ", text
    except BadInput as error:
        yield f"element {number + 1}, and the rest unread: ", error


def _read_documents(file: BinaryIO) -> Iterator[tuple[str, bytes | BadInput]]:
    """One document over several lines, or one document on each line; the first two lines show which."""
    first, second = _read_line(file), _read_line(file)
    number = 1
    while first is not None and not first.strip():
        first, second = second, _read_line(file)
        number += 1
    if first is None:
        return
    if second is None:
        yield "", _check_length(first)
    elif first.rstrip().endswith(b"}") or second.lstrip(b" \t").startswith(b"{"):
        yield from _read_lines(number, first, second, file)
    else:
        whole = first + second
        yield "", _check_length(whole + file.read(max(ELEMENT_MAX + 1 - len(whole), 0)))


def _read_lines(number: int, first: bytes, second: bytes, file: BinaryIO) -> Iterator[tuple[str, bytes | BadInput]]:
    """The lines of a file, of which the first two were already read."""
    line: bytes | None = first
    pending = [second]
    while line is not None:
        if line.strip():
            yield f"line {number}: ", _check_length(line)
        line = pending.pop() if pending else _read_line(file)
        number += 1


def _read_line(file: BinaryIO) -> bytes | None:
    """The next line, cut a little beyond the limit, so that it is recognised as too long; None at the end."""
    line = file.readline(LINE_MAX + 2)
    if not line:
        return None
    # Skip the rest of an overlong line piece by piece: it must not fill the memory.
    rest = line
    while len(rest) > LINE_MAX + 1 and not rest.endswith(b"\n"):
        rest = file.readline(LINE_MAX + 2)
    return line


def _check_length(text: bytes) -> bytes | BadInput:
    return text if len(text) <= LINE_MAX + 1 else Unreadable(f"larger than {LINE_MAX} bytes")


@contextmanager
def _open_subject(subject: Subject) -> Iterator[BinaryIO]:
    if subject.path is None:
        yield BytesIO(subject.value)
        return
    with open_file(subject.path) as file:
        yield file


def records_from_text(subject: Subject) -> Iterator[Sealed]:
    with _open_subject(subject) as file:
        yield from _require_readable(_read_text(file, subject.json_opening))


def records_from_values(subject: Subject) -> Iterator[Sealed]:
    return _require_readable(_read_values(subject.value))


def _require_readable(items: Iterator[Item]) -> Iterator[Sealed]:
    for where, item in items:
        if isinstance(item, BadInput):
            raise BadInput(f"{where}{item.message}", advice=item.advice)
        yield item


def is_value(subject: Subject) -> bool:
    return isinstance(subject.value, Sealed | Mapping | list | tuple)


def is_text(subject: Subject) -> bool:
    if subject.is_directory or (subject.path is None and not isinstance(subject.value, bytes)):
        return False
    return bool(subject.json_opening) or not subject.beginning.strip()
