"""A run's directory: which run it is (`run.json`), and its actions one per line (`actions.jsonl`).

The lines are a projection of the ledger, which comes first. So whatever a crash, a full disk or another writer left
in the file, it is brought to what the ledger says: lines that are missing are added, a torn end is cut off and
written again. A whole line that says something else than the ledger is no accident: it is reported, and stays.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aver.actions.file_names import ACTIONS, RUN
from aver.actions.lines import LINE_MAX, read_line
from aver.capsule.reading import read_json
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.home import sync_directory, temporary_prefix
from aver.keys.document import write_document
from aver.ledger.outside import open_inside

__all__ = ["LineFile", "RunIdentity", "claimed", "identity_in"]

RUN_FILE_MAX = 64 * 1024
"""Bytes of `run.json`, which holds a few names."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Which run a directory holds, and where it is sealed."""

    run_id: str
    chain: str
    ledger: str
    tenant: str

    @classmethod
    def from_dict(cls, data: Any) -> RunIdentity:
        names = ("run_id", "chain", "ledger", "tenant")
        if not isinstance(data, dict) or data.keys() != {"v", *names} or data["v"] != 1:
            raise BadInput(f"{RUN} does not say which run this is")
        if not all(isinstance(data[name], str) and 0 < len(data[name]) <= 256 for name in names):
            raise BadInput(f"{RUN} holds something else than names")
        return cls(*(data[name] for name in names))


def identity_in(directory: Path) -> RunIdentity | None:
    """Which run a directory holds; None where it says nothing about that."""
    try:
        with open_inside(directory, RUN) as file:
            raw = file.read(RUN_FILE_MAX + 1)
    except NotFound:
        return None
    if len(raw) > RUN_FILE_MAX:
        raise BadInput(f"{directory / RUN} is larger than {RUN_FILE_MAX} bytes")
    try:
        return RunIdentity.from_dict(read_json(raw))
    except BadInput as error:
        raise BadInput(f"{directory / RUN}: {error.message}", advice=error.advice) from error


def claimed(directory: Path, wanted: RunIdentity) -> RunIdentity:
    """The run of a directory: the one it holds already, or else `wanted`. Of several who come at once, one decides."""
    found = identity_in(directory)
    if found is not None:
        return found
    if (directory / ACTIONS).exists() and (directory / ACTIONS).stat().st_size:
        raise BadInput(
            f"{directory} holds actions, but no {RUN}: it is not a run of Aver", advice="name a new or empty directory"
        )
    try:
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=temporary_prefix(RUN))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(write_document({"v": 1, **asdict(wanted)}))
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, directory / RUN)
        finally:
            os.unlink(temporary)
        sync_directory(directory)
    except FileExistsError:
        pass
    except OSError as error:
        raise Unavailable(f"cannot write {directory / RUN}: {error.strerror}") from error
    return identity_in(directory) or wanted


Lines = Callable[[int], Iterator[bytes]]
"""The lines that the ledger has, from a place on, each with its line feed."""


class LineFile:
    """`actions.jsonl`, written by any number of processes at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = self._size = 0
        """How many lines, and bytes, of the file are known to be the ledger's."""
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Unavailable(f"cannot open {path}: {error.strerror}") from error

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def bring_up(self, lines: Lines, learn: Callable[[], None], *, durably: bool = False) -> None:
        """Make the file hold exactly the ledger's lines. `Unavailable` if that cannot be done now: try again later.

        `learn` is called where the file has more than `lines` gives: then another writer has sealed more.
        """
        if self._handle < 0:
            raise Unavailable(f"{self._path} is closed here", advice="open the run again")
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            try:
                if os.fstat(self._handle).st_size != self._size:
                    self._examine(lines, learn)
                self._append(lines)
                if durably:
                    os.fsync(self._handle)
            finally:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        except OSError as error:
            raise Unavailable(f"cannot write {self._path}: {error.strerror}") from error

    def _append(self, lines: Lines) -> None:
        for line in lines(self._count):
            written = 0
            while written < len(line):
                written += os.pwrite(self._handle, line[written:], self._size + written)
            self._size += len(line)
            self._count += 1

    def _examine(self, lines: Lines, learn: Callable[[], None]) -> None:
        """See how far the file is the ledger's, and cut off what a crash left behind that."""
        size = os.fstat(self._handle).st_size
        self._pass_over(lines)
        if size > self._size and self._next_line() is not None:
            learn()
            self._pass_over(lines)
        if size != self._size:  # Not only more lines: what was known may have changed, too.
            self._count = self._size = 0
            self._pass_over(lines)
        if size > self._size:
            line = self._next_line()
            if line is not None:
                raise self._changed(line)
            os.ftruncate(self._handle, self._size)

    def _pass_over(self, lines: Lines) -> None:
        """Count the lines that are the ledger's."""
        for line in lines(self._count):
            if os.pread(self._handle, len(line), self._size) != line:
                return
            self._size += len(line)
            self._count += 1

    def _next_line(self) -> bytes | None:
        """The line behind those that were counted; None for the beginning of one, and for what is no line at all: that
        is what a crash leaves."""
        line, feed, _ = os.pread(self._handle, LINE_MAX, self._size).partition(b"\n")
        try:
            read_line(line)
        except BadInput:
            return None
        return line if feed else None

    def _changed(self, line: bytes) -> IntegrityError:
        return IntegrityError(
            "RECEIPT_MISMATCH",
            f"line {self._count + 1} of {self._path} is not what the ledger has sealed",
            evidence=line,
            advice="run: aver verify on its directory; move the file away to have it written anew",
        )
