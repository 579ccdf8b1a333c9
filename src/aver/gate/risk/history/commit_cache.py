"""What was found out about each commit of a history, kept so that it need not be found out twice.

    risk/<name>.history.jsonl     <16 hex digits of SHA-256> <JSON>

One line per commit. What is on it follows from the commit's id, so a line never changes, and new ones are added at the
end. A line that does not have its checksum (a torn last one, say), or is not such a line at all, is passed over: its
commit is looked at again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import orjson

from aver.config import ensure_home
from aver.errors import AverError, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.risk.features import COUNT_MAX, Features
from aver.gate.risk.history.commits import COMMITS_MAX, Commit
from aver.gate.risk.state import TIME_MAX, decode_path, encode_path, state_path
from aver.keys.private_files import read_public_file

__all__ = ["CommitCache", "MinedCommit", "subject_digest"]

LINE_MAX = 256 * 1024
"""Bytes of a line. A fix has at most 60 changed lines, so few files."""

FILE_MAX = COMMITS_MAX * 4096
"""Bytes of the file that are read: commits take some 300 each."""


@dataclass(frozen=True, slots=True)
class MinedCommit:
    """A commit, its features as they were known then, and what it says about others."""

    commit: Commit
    features: Features
    subject: str
    """A digest: what a revert names a commit by, if not by its id."""
    fixed: tuple[str, ...] = ()
    """The source files it fixed; none if it is no bug fix."""
    blamed: tuple[str, ...] = ()
    """The commits whose lines it repaired."""
    reverts: tuple[str, ...] = ()
    reverted_subject: str = ""


def subject_digest(subject: str) -> str:
    return hashlib.sha256(subject.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class CommitCache:
    """A workspace's file of commits."""

    def __init__(self, workspace: str | Path, home: Path | None = None) -> None:
        self._path = state_path(workspace, home).with_suffix(".history.jsonl")
        self._home = home

    def read(self) -> dict[str, MinedCommit]:
        """What is known, by commit."""
        try:
            raw = read_public_file(self._path, limit=FILE_MAX) or b""
        except AverError:
            return {}  # It costs time to find it all out again, and nothing else.
        found = (_parse_line(line) for line in raw.split(b"\n") if 0 < len(line) <= LINE_MAX)
        return {item.commit.id: item for item in found if item is not None}

    def add(self, mined: Iterable[MinedCommit]) -> None:
        """Add commits, durably. Two processes may add the same ones: they say the same."""
        data = b"".join(_format_line(item) for item in mined)
        ensure_home(self._home)
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                # One write: lines of two processes do not mix. A torn line before ours must not swallow our first.
                written = os.write(handle, b"\n" + data)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise Unavailable(f"cannot write {self._path}: {error.strerror}") from error
        if written <= len(data):
            raise Unavailable(f"cannot write all of {self._path}", advice="see whether the disk is full")


def _format_line(item: MinedCommit) -> bytes:
    names = [encode_path(path) for path in item.fixed]
    body = orjson.dumps(
        [
            item.commit.id,
            item.commit.time,
            list(astuple(item.features)),
            item.subject,
            names,
            item.blamed,
            item.reverts,
            item.reverted_subject,
        ]
    )
    return b"%s %s\n" % (_checksum(body), body)


def _parse_line(line: bytes) -> MinedCommit | None:
    checksum, _, body = line.partition(b" ")
    if checksum != _checksum(body):
        return None
    try:
        commit, time, numbers, subject, names, blamed, reverts, reverted = orjson.loads(body)
        if not (_is_time(time) and _are_all_strings([commit, subject, reverted, *names, *blamed, *reverts])):
            return None
        return MinedCommit(
            Commit(commit, time),
            Features(*_parse_counts(numbers)),
            subject,
            tuple(decode_path(name) for name in names),
            tuple(blamed),
            tuple(reverts),
            reverted,
        )
    except (ValueError, TypeError):
        return None


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:16].encode("ascii")


def _is_time(value: Any) -> bool:
    return type(value) is int and 0 <= value <= TIME_MAX


def _are_all_strings(values: list[Any]) -> bool:
    return all(type(value) is str for value in values)


def _parse_counts(numbers: Any) -> Iterator[int]:
    if len(numbers) != len(fields(Features)):
        raise ValueError
    for number in numbers:
        if type(number) is not int or not 0 <= number <= COUNT_MAX:
            raise ValueError
        yield number
