"""Capsules outside any ledger: one, an array, or one on each line, in a file or in memory.

Several records are judged as one chain, in their order. It may begin at any sequence number; the verdict on a chain
whose first records are missing is qualified. A single record has no neighbours to compare with. The records do not show
how long the chain once was, and no verdict here claims to know.

JSON that no other format recognises is judged here. So a damaged file of capsules fails, instead of being unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from io import BytesIO
from typing import Any, BinaryIO

from aver.capsule.aver_block import read_block
from aver.capsule.json_reader import ELEMENT_MAX, Unreadable, read_element_texts
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.files.regular import open_file, read_chunks, skip_blanks
from aver.ledger.foreign.seal_checks import check_seal_fields, unreadable_code
from aver.ledger.key_history import retirements_by_time
from aver.verdict import ChainJudge, Subject, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import skip_examiners

LINE_MAX = ELEMENT_MAX
"""Longest line of a file with one capsule on each line."""


def is_value(subject: Subject) -> bool:
    """Whether it is a record in memory, or a list of records."""
    return isinstance(subject.value, Sealed | Mapping | list | tuple)


def is_text(subject: Subject) -> bool:
    """Whether it is a file or text that looks like JSON, or has nothing in its first bytes."""
    if subject.is_directory or (subject.path is None and not isinstance(subject.value, bytes)):
        return False
    return bool(subject.json_opening) or not subject.beginning.strip()


def judge_capsules(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on a text or file of capsules, a `Sealed`, a sealed dict, or a list of those."""
    judge = ChainJudge(options.rules(retirements_by_time(options.ring)), start=None, source=subject.name)
    refers_to_blobs = False
    first: int | None = None
    domain = ""  # Of the first record. It decides which examiners would have had to look at the records.
    for where, item in _read_items(subject):
        if judge.stops_reading():
            break
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
    # A single record may come from anywhere in its chain; several should begin where the chain does.
    if first and tally.records > 1:
        words = f"begins at sequence {first}: the records before it are not here"
        tally.skip("genesis", words, matters=True)
    if refers_to_blobs:
        tally.skip("blobs", "the large values that it refers to are not here", matters=False)
    tally.skip("meta", "nothing here shows how many records there once were", matters=False)
    skip_examiners(domain, "the ledger that these records are from is not here", tally)
    tally.chains = int(tally.records > 1)
    return conclude(subject.name, tally, level=options.level)


def read_capsules(subject: Subject) -> Iterator[Sealed]:
    """The records in the order of the text or list, for showing. Raises `BadInput` at one that cannot be read."""
    for where, item in _read_items(subject):
        if isinstance(item, BadInput):
            raise BadInput(f"{where}{item.message}", advice=item.advice)
        yield item


def _read_items(subject: Subject) -> Iterator[tuple[str, Sealed | BadInput]]:
    """Stream the records, each with its place for messages. An unreadable record is yielded as an error."""
    with ExitStack() as stack:
        parts: Iterable[tuple[str, Any]]
        if is_value(subject):
            is_list = isinstance(subject.value, list | tuple)
            values = subject.value if is_list else [subject.value]
            parts = ((f"item {index}: " if is_list else "", value) for index, value in enumerate(values))
        else:
            opened = BytesIO(subject.value) if subject.path is None else open_file(subject.path)
            file = stack.enter_context(opened)
            parts = _read_array(file) if subject.json_opening == "[" else _read_documents(file)
        for where, part in parts:
            item: Sealed | BadInput
            try:
                if isinstance(part, BadInput):
                    raise part
                if isinstance(part, Sealed):
                    item = part
                elif not is_value(subject):
                    item = Sealed.from_sealed_json(part)
                elif isinstance(part, Mapping):
                    item = Sealed.from_sealed_dict(part)
                else:
                    raise Unreadable(f"{type(part).__name__} is not a sealed capsule")
                if item is not part and not item.hash:
                    raise Unreadable("it is not sealed: it has no hash")
                check_seal_fields(item)
            except BadInput as error:
                item = error
            yield where, item


def _read_array(file: BinaryIO) -> Iterator[tuple[str, str | BadInput]]:
    """The elements of a JSON array as texts. After an unreadable one, the rest cannot be found."""
    number = 0
    try:
        for number, text in enumerate(read_element_texts(read_chunks(file)), 1):
            yield f"element {number}: ", text
    except BadInput as error:
        yield f"element {number + 1}, and the rest unread: ", error


def _read_documents(file: BinaryIO) -> Iterator[tuple[str, bytes | BadInput]]:
    """One document over several lines, or one document on each line; the first two lines show which."""
    number = 1 + skip_blanks(file)
    first = _read_line(file)
    if first is None:
        return
    second = _read_line(file)
    if second is None:
        yield "", _check_length(first)
    elif not first.rstrip().endswith(b"}") and not second.lstrip(b" \t").startswith(b"{"):
        # An object that is written over several lines: neither does the first line end it, nor the second begin one.
        whole = first + second
        yield "", _check_length(whole + file.read(max(ELEMENT_MAX + 1 - len(whole), 0)))
    else:
        line: bytes | None = first
        pending = [second]
        while line is not None:
            if line.strip():
                yield f"line {number}: ", _check_length(line)
            elif not pending:
                number += skip_blanks(file)
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
