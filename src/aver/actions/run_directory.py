"""A run's directory: which run it is (`run.json`), and its actions one per line (`actions.jsonl`).

The lines are a projection of the ledger, which comes first. So whatever a crash, a full disk or another writer left
in the file, it is brought to what the ledger says: lines that are missing are added, a torn end is cut off and
written again. A whole line that says something else than the ledger is no accident: it is reported, and stays.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aver.actions.encodings import ACTION_LINE_MAX, read_action_line
from aver.actions.run_files import ACTIONS_FILE, RUN_FILE
from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.files.atomic import sync_directory, temporary_prefix
from aver.files.locks import lock, open_lock_file, unlock
from aver.files.regular import open_inside, read_limited

__all__ = ["ActionsFile", "RunIdentity", "claim_directory", "read_run_identity"]

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
            raise BadInput(f"{RUN_FILE} does not say which run this is")
        if not all(isinstance(data[name], str) and 0 < len(data[name]) <= 256 for name in names):
            raise BadInput(f"{RUN_FILE} holds something else than names")
        return cls(*(data[name] for name in names))


def read_run_identity(directory: Path) -> RunIdentity | None:
    """Which run a directory holds; None where it says nothing about that."""
    try:
        with open_inside(directory, RUN_FILE) as file:
            raw = read_limited(file, RUN_FILE_MAX, directory / RUN_FILE)
    except NotFound:
        return None
    try:
        return RunIdentity.from_dict(read_json(raw))
    except BadInput as error:
        raise BadInput(f"{directory / RUN_FILE}: {error.message}", advice=error.advice) from error


def claim_directory(directory: Path, wanted: RunIdentity) -> RunIdentity:
    """The run of a directory: the one it holds already, or else `wanted`. Of several who come at once, one decides."""
    found = read_run_identity(directory)
    if found is not None:
        return found
    if (directory / ACTIONS_FILE).exists() and (directory / ACTIONS_FILE).stat().st_size:
        raise BadInput(
            f"{directory} holds actions, but no {RUN_FILE}: it is not a run of Aver",
            advice="name a new or empty directory",
        )
    try:
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=temporary_prefix(RUN_FILE))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(dump_document({"v": 1, **asdict(wanted)}))
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, directory / RUN_FILE)
        finally:
            os.unlink(temporary)
        sync_directory(directory)
    except FileExistsError:
        pass
    except OSError as error:
        raise Unavailable(f"cannot write {directory / RUN_FILE}: {error.strerror}") from error
    return read_run_identity(directory) or wanted


LineSource = Callable[[int], Iterator[bytes]]
"""The lines that the ledger has, from a place on, each with its line feed."""


class ActionsFile:
    """`actions.jsonl`, written by any number of processes at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = self._size = 0
        """How many lines, and bytes, of the file are known to be the ledger's."""
        try:
            self._handle = open_lock_file(path)
        except OSError as error:
            raise Unavailable(f"cannot open {path}: {error.strerror}") from error

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def bring_up(self, lines: LineSource, learn: Callable[[], None], *, durably: bool = False) -> None:
        """Make the file hold exactly the ledger's lines. `Unavailable` if that cannot be done now: try again later.

        `learn` is called where the file has more than `lines` gives: then another writer has sealed more.
        """
        if self._handle < 0:
            raise Unavailable(f"{self._path} is closed here", advice="open the run again")
        try:
            lock(self._handle)
            try:
                if os.fstat(self._handle).st_size != self._size:
                    self._repair(lines, learn)
                self._append_missing(lines)
                if durably:
                    os.fsync(self._handle)
            finally:
                unlock(self._handle)
        except OSError as error:
            raise Unavailable(f"cannot write {self._path}: {error.strerror}") from error

    def _append_missing(self, lines: LineSource) -> None:
        for line in lines(self._count):
            written = 0
            while written < len(line):
                written += os.pwrite(self._handle, line[written:], self._size + written)
            self._size += len(line)
            self._count += 1

    def _repair(self, lines: LineSource, learn: Callable[[], None]) -> None:
        """See how far the file is the ledger's, and cut off what a crash left behind that."""
        size = os.fstat(self._handle).st_size
        self._count_matching_lines(lines)
        if size > self._size and self._read_next_line() is not None:
            learn()
            self._count_matching_lines(lines)
        if size != self._size:  # Not only more lines: what was known may have changed, too.
            self._count = self._size = 0
            self._count_matching_lines(lines)
        if size > self._size:
            line = self._read_next_line()
            if line is not None:
                raise self._mismatch_error(line)
            os.ftruncate(self._handle, self._size)

    def _count_matching_lines(self, lines: LineSource) -> None:
        """Count the lines that are the ledger's."""
        for line in lines(self._count):
            if os.pread(self._handle, len(line), self._size) != line:
                return
            self._size += len(line)
            self._count += 1

    def _read_next_line(self) -> bytes | None:
        """The line behind those that were counted; None for the beginning of one, and for what is no line at all: that
        is what a crash leaves."""
        line, feed, _ = os.pread(self._handle, ACTION_LINE_MAX, self._size).partition(b"\n")
        try:
            read_action_line(line)
        except BadInput:
            return None
        return line if feed else None

    def _mismatch_error(self, line: bytes) -> IntegrityError:
        return IntegrityError(
            "RECEIPT_MISMATCH",
            f"line {self._count + 1} of {self._path} is not what the ledger has sealed",
            evidence=line,
            advice="run: aver verify on its directory; move the file away to have it written anew",
        )
