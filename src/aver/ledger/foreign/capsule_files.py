"""Capsules outside any ledger: one, an array, or one a line, in a file or in memory.

Several records are one chain, in the order in which they stand. It may begin anywhere; a chain that does not begin
at its beginning is said to be a part, and its verdict is qualified. One record alone has no neighbours to be held to.
How long the chain once was cannot be told from its records, and no verdict here claims it.

JSON that no other room recognises is judged here, so a damaged file of capsules fails instead of being nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, BinaryIO

from aver.capsule.json_reader import ELEMENT_MAX, Unreadable, read_element_texts
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.files.regular import open_file, read_chunks
from aver.keys import Ring
from aver.ledger.foreign.seal_checks import check_seal_fields, unreadable_code
from aver.ledger.keys_chain import retirements
from aver.verdict import ChainJudge, Judge, Retirement, Subject, Verdict, VerifyOptions, conclude

__all__ = ["JUDGES", "judge_values", "retirements_by_time"]

LINE_MAX = ELEMENT_MAX
"""Longest line of a file with one capsule a line."""

Item = tuple[str, Sealed | BadInput]
"""Where a record stands, and the record or why it cannot be read."""


def _judge_text(subject: Subject, terms: VerifyOptions) -> Verdict:
    with _open_subject(subject) as file:
        return _judge_items(subject.name, terms, _read_text(file, subject.json_opening))


def judge_values(subject: Subject, terms: VerifyOptions) -> Verdict:
    """The verdict on a `Sealed`, a sealed dict, or a list of those."""
    return _judge_items(subject.name, terms, _read_values(subject.value))


def _judge_items(name: str, terms: VerifyOptions, items: Iterator[Item]) -> Verdict:
    judge = ChainJudge(terms.rules(retirements_by_time(terms.ring)), start=None, source=name)
    refers_to_blobs = False
    first: int | None = None
    for where, item in items:
        if isinstance(item, BadInput):
            judge.unreadable(f"{where}{item.message}", code=unreadable_code(item))
            continue
        content = judge.judge(item)
        if content is not None:
            first = content["sequence"] if first is None else first
            refers_to_blobs = refers_to_blobs or b'"blob":{' in item.canonical
    tally = judge.finish()
    if first and tally.records > 1:
        words = f"begins at sequence {first}: the records before it are not here"
        tally.skip("genesis", words, matters=True)
    if refers_to_blobs:
        tally.skip("blobs", "the large values that it refers to are not here", matters=False)
    tally.skip("meta", "nothing here tells how many records there once were", matters=False)
    tally.chains = int(tally.records > 1)
    return conclude(name, tally, level=terms.level)


def retirements_by_time(ring: Ring) -> dict[str, Retirement]:
    """Where no ledger says until which record a retired key was good, the time of its retirement does."""
    return retirements(ring, ())


def _read_values(value: Any) -> Iterator[Item]:
    values = value if isinstance(value, list | tuple) else [value]
    for index, one in enumerate(values):
        where = f"item {index}: " if values is value else ""
        try:
            if isinstance(one, Mapping):
                one = _require_seal(Sealed.from_sealed_dict(one))
            if not isinstance(one, Sealed):
                raise Unreadable(f"{type(one).__name__} is not a sealed capsule")
            yield where, check_seal_fields(one)
        except BadInput as error:
            yield where, error


def _read_text(file: BinaryIO, opening: str) -> Iterator[Item]:
    """Every record of a text, streamed. What cannot be read stands in its place as the reason."""
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
    """One document over several lines, or one a line."""
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
    line: bytes | None = first
    pending = [second]
    while line is not None:
        if line.strip():
            yield f"line {number}: ", _check_length(line)
        line = pending.pop() if pending else _read_line(file)
        number += 1


def _read_line(file: BinaryIO) -> bytes | None:
    """The next line, of which no more than the limit and a little is kept; None at the end."""
    line = file.readline(LINE_MAX + 2)
    if not line:
        return None
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


def _records_from_text(subject: Subject) -> Iterator[Sealed]:
    with _open_subject(subject) as file:
        yield from _require_readable(_read_text(file, subject.json_opening))


def _records_from_values(subject: Subject) -> Iterator[Sealed]:
    return _require_readable(_read_values(subject.value))


def _require_readable(items: Iterator[Item]) -> Iterator[Sealed]:
    for where, item in items:
        if isinstance(item, BadInput):
            raise BadInput(f"{where}{item.message}", advice=item.advice)
        yield item


def _is_value(subject: Subject) -> bool:
    return isinstance(subject.value, Sealed | Mapping | list | tuple)


def _is_text(subject: Subject) -> bool:
    if subject.is_directory or (subject.path is None and not isinstance(subject.value, bytes)):
        return False
    return bool(subject.json_opening) or not subject.beginning.strip()


JUDGES = (
    Judge("capsules in memory", _is_value, judge_values, _records_from_values),
    Judge("capsules", _is_text, _judge_text, _records_from_text),
)
