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

from aver.capsule.reading import ELEMENT_MAX, Unreadable, read_texts
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.keys import Ring
from aver.ledger.keychain import retirements
from aver.ledger.outside import chunks_of, code_of, open_file, with_plausible_seal
from aver.verdict import ChainJudge, Judge, Retirement, Subject, Terms, Verdict, conclude

__all__ = ["JUDGES", "judge_values", "retired_by_time"]

LINE_MAX = ELEMENT_MAX
"""Longest line of a file with one capsule a line."""

Item = tuple[str, Sealed | BadInput]
"""Where a record stands, and the record or why it cannot be read."""


def _judge_text(subject: Subject, terms: Terms) -> Verdict:
    with _opened(subject) as file:
        return _verdict(subject.name, terms, _items_in(file, subject.json_opening))


def judge_values(subject: Subject, terms: Terms) -> Verdict:
    """The verdict on a `Sealed`, a sealed dict, or a list of those."""
    return _verdict(subject.name, terms, _items_of(subject.value))


def _verdict(name: str, terms: Terms, items: Iterator[Item]) -> Verdict:
    judge = ChainJudge(terms.rules(retired_by_time(terms.ring)), start=None, source=name)
    refers_to_blobs = False
    first: int | None = None
    for where, item in items:
        if isinstance(item, BadInput):
            judge.unreadable(f"{where}{item.message}", code=code_of(item))
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


def retired_by_time(ring: Ring) -> dict[str, Retirement]:
    """Where no ledger says until which record a retired key was good, the time of its retirement does."""
    return retirements(ring, ())


def _items_of(value: Any) -> Iterator[Item]:
    values = value if isinstance(value, list | tuple) else [value]
    for index, one in enumerate(values):
        where = f"item {index}: " if values is value else ""
        try:
            if isinstance(one, Mapping):
                one = _sealed(Sealed.from_sealed_dict(one))
            if not isinstance(one, Sealed):
                raise Unreadable(f"{type(one).__name__} is not a sealed capsule")
            yield where, with_plausible_seal(one)
        except BadInput as error:
            yield where, error


def _items_in(file: BinaryIO, opening: str) -> Iterator[Item]:
    """Every record of a text, streamed. What cannot be read stands in its place as the reason."""
    texts = _elements(file) if opening == "[" else _documents(file)
    for where, text in texts:
        if isinstance(text, BadInput):
            yield where, text
            continue
        try:
            yield where, _sealed(Sealed.from_sealed_json(text))
        except BadInput as error:
            yield where, error


def _sealed(sealed: Sealed) -> Sealed:
    if not sealed.hash:
        raise Unreadable("it is not sealed: it has no hash")
    return with_plausible_seal(sealed)


def _elements(file: BinaryIO) -> Iterator[tuple[str, str | BadInput]]:
    number = 0
    try:
        for number, text in enumerate(read_texts(chunks_of(file)), 1):
            yield f"element {number}: ", text
    except BadInput as error:
        yield f"element {number + 1}, and the rest unread: ", error


def _documents(file: BinaryIO) -> Iterator[tuple[str, bytes | BadInput]]:
    """One document over several lines, or one a line."""
    first, second = _line(file), _line(file)
    number = 1
    while first is not None and not first.strip():
        first, second = second, _line(file)
        number += 1
    if first is None:
        return
    if second is None:
        yield "", _within_limit(first)
    elif first.rstrip().endswith(b"}") or second.lstrip(b" \t").startswith(b"{"):
        yield from _lines(number, first, second, file)
    else:
        whole = first + second
        yield "", _within_limit(whole + file.read(max(ELEMENT_MAX + 1 - len(whole), 0)))


def _lines(number: int, first: bytes, second: bytes, file: BinaryIO) -> Iterator[tuple[str, bytes | BadInput]]:
    line: bytes | None = first
    pending = [second]
    while line is not None:
        if line.strip():
            yield f"line {number}: ", _within_limit(line)
        line = pending.pop() if pending else _line(file)
        number += 1


def _line(file: BinaryIO) -> bytes | None:
    """The next line, of which no more than the limit and a little is kept; None at the end."""
    line = file.readline(LINE_MAX + 2)
    if not line:
        return None
    rest = line
    while len(rest) > LINE_MAX + 1 and not rest.endswith(b"\n"):
        rest = file.readline(LINE_MAX + 2)
    return line


def _within_limit(text: bytes) -> bytes | BadInput:
    return text if len(text) <= LINE_MAX + 1 else Unreadable(f"larger than {LINE_MAX} bytes")


@contextmanager
def _opened(subject: Subject) -> Iterator[BinaryIO]:
    if subject.path is None:
        yield BytesIO(subject.value)
        return
    with open_file(subject.path) as file:
        yield file


def _records_of_text(subject: Subject) -> Iterator[Sealed]:
    with _opened(subject) as file:
        yield from _readable(_items_in(file, subject.json_opening))


def _records_of_values(subject: Subject) -> Iterator[Sealed]:
    return _readable(_items_of(subject.value))


def _readable(items: Iterator[Item]) -> Iterator[Sealed]:
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
    Judge("capsules in memory", _is_value, judge_values, _records_of_values),
    Judge("capsules", _is_text, _judge_text, _records_of_text),
)
