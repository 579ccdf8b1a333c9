"""Checkpoints in files: one or many, and a history of them that only grows, for a git repository.

A file of checkpoints is one statement as JSON, or one on each line. A repository keeps a history for each ledger and
tenant in

    checkpoints/<ledger>.<tenant>.jsonl

to which `append_checkpoint` adds lines and nothing else. Its first line lists every chain, each further one those that
changed since the line before it, whose time it names as `since`; so the file grows with what happens, and a line that
is taken out is missed. Files beside it whose names begin with the same ledger belong to the history too.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aver.capsule.json_reader import read_json
from aver.config import replace_file
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.keys import Statement
from aver.ledger.checkpoint import CHECK, Checkpoint, check_missing_links, check_signatures, make_checkpoint
from aver.ledger.foreign.seal_checks import open_file, open_inside
from aver.ledger.head import Head
from aver.ledger.seen_heads import HeadChecker
from aver.verdict import Finding, Judge, Place, Subject, Tally, Verdict, VerifyOptions, conclude

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = ["DIRECTORY", "JUDGES", "append_checkpoint", "history_path", "read_checkpoints", "to_checkpoint_line"]

DIRECTORY = "checkpoints"
SUFFIX = ".jsonl"

FILE_MAX = 64 * 1024 * 1024
"""Bytes of one file of checkpoints: years of a small ledger, and little enough to be read at once."""

FILES_MAX = 1000
"""Files of one ledger in a repository."""


def to_checkpoint_line(statement: Statement) -> bytes:
    """A checkpoint as one line of a file. Files of them may be joined as they are."""
    return json.dumps(statement.to_dict(), separators=(",", ":")).encode("ascii") + b"\n"


# --- reading


def read_checkpoints(path: Path, ledger: str) -> list[Checkpoint]:
    """All checkpoints in a file; or those of a ledger in a repository, or in its directory of checkpoints.

    Where a repository knows only other ledgers, theirs are given, so that being another can be told.
    """
    if not path.is_dir():
        return list(_read_file(path))
    inner = path / DIRECTORY
    directory = inner if inner.is_dir() and not inner.is_symlink() else path
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    except OSError as error:
        raise Unavailable(f"cannot list {directory}: {error.strerror}") from error
    own = [name for name in names if name.startswith(f"{ledger}.")] or names[:1]
    if len(own) > FILES_MAX:
        raise BadInput(f"{directory} has {len(own)} files of one ledger", advice="join some of them")
    found = [one for name in own for one in _read_file_inside(directory, name)]
    if not found:
        raise NotFound(f"there are no checkpoints in {directory}", advice="aver checkpoint --git DIR makes them")
    return found


def _read_file(path: Path) -> Iterator[Checkpoint]:
    with open_file(path) as file:
        raw = file.read(FILE_MAX + 1)
    yield from _parse_checkpoints(raw, str(path))


def _read_file_inside(directory: Path, name: str) -> Iterator[Checkpoint]:
    with open_inside(directory, name) as file:
        raw = file.read(FILE_MAX + 1)
    yield from _parse_checkpoints(raw, name)


def _parse_checkpoints(raw: bytes, where: str) -> Iterator[Checkpoint]:
    if len(raw) > FILE_MAX:
        raise BadInput(f"{where} is larger than {FILE_MAX} bytes")
    for place, text in _split_documents(raw, where):
        try:
            yield Checkpoint.from_statement(Statement.from_dict(read_json(text), place), place)
        except BadInput as error:
            message = error.message if error.message.startswith(place) else f"{place}: {error.message}"
            raise BadInput(message, advice=error.advice) from error


def _split_documents(raw: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    """The JSON documents of a file: one on each line, or the file as a whole where its first line is not one."""
    lines = [(number, line) for number, line in enumerate(raw.split(b"\n"), 1) if line.strip()]
    if len(lines) < 2 or not lines[0][1].rstrip().endswith(b"}"):
        yield where, raw
        return
    for number, line in lines:
        yield f"{where}, line {number}", line


# --- a history in a repository


def history_path(repository: Path, ledger: Ledger) -> Path:
    """Where a repository keeps the checkpoints of a ledger and tenant."""
    if not _LEDGER_ID(ledger.id):
        raise BadInput(f"the ledger's id {ascii(ledger.id)[:80]} is not one that Aver gives")
    return repository / DIRECTORY / f"{ledger.id}.{ledger.tenant}{SUFFIX}"


def append_checkpoint(repository: Path, ledger: Ledger) -> Checkpoint | None:
    """Add a checkpoint to the history of a ledger; None if nothing changed since the last one.

    The ledger is held to that history first: `IntegrityError` if it does not contain it any more, and nothing is
    written.
    """
    if not os.path.lexists(repository / ".git"):
        raise BadInput(f"{repository} is not a git repository", advice="git init it, or use --out FILE")
    path = history_path(repository, ledger)
    with _lock_directory(path.parent):
        try:
            with open_inside(path.parent, path.name) as file:
                raw = file.read(FILE_MAX + 1)
        except NotFound:
            raw = b""
        before = list(_parse_checkpoints(raw, path.name)) if raw else []
        latest = _check_history(ledger, before)
        changed = [head for head in ledger.heads() if head.count and latest.get(head.chain) != head]
        if not changed:
            return None
        statement = make_checkpoint(ledger, changed, since=before[-1].at if before else None)
        whole = raw + (b"\n" if raw and not raw.endswith(b"\n") else b"") + to_checkpoint_line(statement)
        if len(whole) > FILE_MAX:
            spare = f"{path.stem}.1{SUFFIX}"
            raise BadInput(f"{path} would be larger than {FILE_MAX} bytes", advice=f"git mv it to {spare}, beside it")
        replace_file(path, whole, mode=0o644)
    return Checkpoint.from_statement(statement)


def _check_history(ledger: Ledger, before: Sequence[Checkpoint]) -> dict[str, Head]:
    """The latest head of every chain in a history, which must be ours, and which the ledger must still contain."""
    tally = Tally()
    for one in before:
        if (one.ledger, one.tenant) != (ledger.id, ledger.tenant):
            raise BadInput(f"{one.where} is of another ledger or tenant", advice="move it elsewhere")
        check_signatures(one, ledger.keys.ring(), tally)
    latest = {head.chain: head for one in before for head in one.heads}
    HeadChecker.for_ledger(ledger, tally, check=CHECK).check(latest.values(), "the history of checkpoints")
    failed = [finding for finding in tally.findings if finding.status == "failed"]
    if failed:
        words = f"nothing was written: {failed[0]}"
        raise IntegrityError(failed[0].code, words, evidence=tuple(failed), advice="run: aver verify --checkpoint DIR")
    return latest


@contextmanager
def _lock_directory(directory: Path) -> Iterator[None]:
    """Keep others from adding to histories in this directory meanwhile: both would write what the other lacks."""
    try:
        directory.mkdir(exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise Unavailable(f"cannot use the directory {directory}: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


_LEDGER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


# --- judging checkpoints by themselves

_PURPOSE_FIELD = re.compile(rb'"purpose"\s*:\s*"checkpoint"')


def _is_checkpoint_file(subject: Subject) -> bool:
    named = subject.path is not None and {"v", "purpose"} <= set(subject.keys)
    return named and _PURPOSE_FIELD.search(subject.beginning) is not None


def _judge_checkpoints(subject: Subject, terms: VerifyOptions) -> Verdict:
    """The verdict on checkpoints without their ledger: are they signed, complete, and of one mind?"""
    tally = Tally()
    found: list[Checkpoint] = []
    try:
        with open_file(subject.path or Path()) as file:
            for one in _parse_checkpoints(file.read(FILE_MAX + 1), subject.name):
                tally.count_done("schema")
                found.append(one)
    except BadInput as error:
        tally.add(Finding("schema", "failed", "SCHEMA_INVALID", error.message, Place(source=subject.name)))
    tally.records = len(found)
    for one in found:
        tally.count_done(CHECK)
        check_signatures(one, terms.ring, tally)
    check_missing_links(found, tally)
    _check_consistency(found, tally)
    noun = "checkpoint" if len(found) == 1 else f"{len(found)} checkpoints"
    return conclude(f"{noun} in {subject.name}", tally, level=terms.level, expected=("schema", CHECK))


def _check_consistency(checkpoints: Sequence[Checkpoint], tally: Tally) -> None:
    """Checkpoints of one ledger must not contradict each other: no chain shrinks, none has two records at one place.

    Files may have been joined in any order, and clocks may go back: only what is later by both has shrunk.
    """
    longest: dict[tuple[str, str, str], tuple[Head, str]] = {}
    by_place: dict[tuple[str, str, str, int], Head] = {}
    for one in checkpoints:
        for head in one.heads:
            chain = (head.ledger, head.tenant, head.chain)
            before, at = longest.get(chain, (head, one.at))
            same_place = by_place.setdefault((*chain, head.count), head)
            if same_place != head:
                _add_contradiction(one, head, same_place, "ROLLBACK", tally)
            elif head.count < before.count and one.at > at:
                _add_contradiction(one, head, before, "TRUNCATED", tally)
            if head.count >= before.count:
                longest[chain] = head, one.at


def _add_contradiction(one: Checkpoint, head: Head, before: Head, code: str, tally: Tally) -> None:
    words = f"the checkpoint of {one.at} contradicts one before it"
    proof = {"remembered": before.to_dict(), "actual": head.to_dict()}
    tally.add(Finding(CHECK, "failed", code, words, Place(head.chain, max(head.count - 1, 0), one.where), proof))


JUDGES = (Judge("checkpoints", _is_checkpoint_file, _judge_checkpoints),)
