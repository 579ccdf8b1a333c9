"""The directory of a run: `run.json` names the run, `actions.jsonl` has one action per line.

A directory holds one run. A new run in the place of a sealed one gets a directory beside, with the next number.

Aver seals an action in the ledger first and then writes its line. After a crash or a full disk, Aver repairs the file
from the ledger: it adds missing lines, and it cuts off and rewrites an incomplete last line. A complete line that
differs from the ledger is not the result of a crash. Aver reports it and leaves it in the file.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from aver.actions.encodings import ACTION_LINE_MAX, read_action_line
from aver.actions.run_files import ACTIONS_FILE, RUN_FILE
from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.files.atomic import sync_directory, temporary_prefix
from aver.files.locks import lock, open_lock_file, unlock
from aver.files.regular import open_inside, read_limited

RUN_FILE_MAX = 64 * 1024
"""The maximum size, in bytes, of `run.json`. It holds a few names."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The run that a directory holds, and the ledger, tenant and chain in which it is sealed."""

    run_id: str
    chain: str
    ledger: str
    tenant: str


def read_run_identity(directory: Path) -> RunIdentity | None:
    """Return the run that a directory holds; None if it has no `run.json`.

    Raise `BadInput` if the file is not valid.
    """
    try:
        with open_inside(directory, RUN_FILE) as file:
            raw = read_limited(file, RUN_FILE_MAX, directory / RUN_FILE)
    except NotFound:
        return None
    names = ("run_id", "chain", "ledger", "tenant")
    try:
        data = read_json(raw)
        if not isinstance(data, dict) or data.keys() != {"v", *names} or data["v"] != 1:
            raise BadInput(f"{RUN_FILE} does not say which run this is")
        if not all(isinstance(data[name], str) and 0 < len(data[name]) <= 256 for name in names):
            raise BadInput(f"{RUN_FILE} holds something else than names")
        return RunIdentity(*(data[name] for name in names))
    except BadInput as error:
        raise BadInput(f"{directory / RUN_FILE}: {error.message}", advice=error.advice) from error


def claim_directory(directory: Path, wanted: RunIdentity) -> RunIdentity:
    """Return the run that the directory holds; if it holds none, make it the directory of `wanted`.

    If several processes claim the directory at the same time, the first wins, and all get its run. Raises `BadInput` if
    the directory holds actions of another program, and `Unavailable` if `run.json` cannot be written.
    """
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
            # Unlike a rename, a link fails if the file exists. So only one process can create it, and it is complete.
            os.link(temporary, directory / RUN_FILE)
        finally:
            os.unlink(temporary)
        sync_directory(directory)
    except FileExistsError:
        pass  # Another process was first. Its file is read below.
    except OSError as error:
        raise Unavailable(f"cannot write {directory / RUN_FILE}: {error.strerror}") from error
    return read_run_identity(directory) or wanted


def find_newest_number(directory: Path) -> int:
    """Return the highest number of the runs beside: 3 if the newest after `today` is in `today-3`; 2 for none."""
    numbered = re.compile(re.escape(directory.name) + r"-([1-9][0-9]{0,8})").fullmatch
    found = [match for match in map(numbered, os.listdir(directory.parent)) if match is not None]
    return max((int(match[1]) for match in found if (directory.parent / match[0] / RUN_FILE).exists()), default=2)


LineSource = Callable[[int], Iterator[bytes]]
"""Returns the lines of the ledger from an index on, each with its line feed."""


class ActionsFile:
    """The file `actions.jsonl`. Several processes may write it at the same time; a file lock orders them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = self._size = 0
        """The number of lines and bytes of the file that are known to match the ledger."""
        try:
            self._handle = open_lock_file(path)
        except OSError as error:
            raise Unavailable(f"cannot open {path}: {error.strerror}") from error

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def bring_up(self, lines: LineSource, learn: Callable[[], None], *, durably: bool = False) -> None:
        """Make the file contain exactly the lines of the ledger.

        If the file has more lines than `lines` returns, another process has sealed more actions; then `learn` is
        called to read them. Raises `Unavailable` if the file cannot be written now, and `IntegrityError` if a
        complete line differs from the ledger.
        """
        if self._handle < 0:
            raise Unavailable(f"{self._path} is closed here", advice="open the run again")
        try:
            lock(self._handle)
            try:
                if os.fstat(self._handle).st_size != self._size:
                    self._repair(lines, learn)
                for line in lines(self._count):
                    written = 0  # `pwrite` may write only a part of the line.
                    while written < len(line):
                        written += os.pwrite(self._handle, line[written:], self._size + written)
                    self._size += len(line)
                    self._count += 1
                if durably:
                    os.fsync(self._handle)
            finally:
                unlock(self._handle)
        except OSError as error:
            raise Unavailable(f"cannot write {self._path}: {error.strerror}") from error

    def _repair(self, lines: LineSource, learn: Callable[[], None]) -> None:
        """Find out how many lines match the ledger, and cut off an incomplete line after them."""
        size = os.fstat(self._handle).st_size
        self._count_matching_lines(lines)
        if size > self._size and self._read_next_line() is not None:
            learn()  # A complete line follows: another process may have sealed it.
            self._count_matching_lines(lines)
        if size != self._size:  # Lines that matched earlier may have changed, so start again.
            self._count = self._size = 0
            self._count_matching_lines(lines)
        if size > self._size:
            line = self._read_next_line()
            if line is not None:
                raise self._mismatch_error(line)
            os.ftruncate(self._handle, self._size)

    def _count_matching_lines(self, lines: LineSource) -> None:
        """Advance over the lines that match the ledger."""
        for line in lines(self._count):
            if os.pread(self._handle, len(line), self._size) != line:
                return
            self._size += len(line)
            self._count += 1

    def _read_next_line(self) -> bytes | None:
        """Return the line after the matching ones; None if it is incomplete or not readable, as after a crash."""
        line, feed, _ = os.pread(self._handle, ACTION_LINE_MAX, self._size).partition(b"\n")
        try:
            read_action_line(line)
        except BadInput:
            return None
        return line if feed else None

    def _mismatch_error(self, line: bytes) -> IntegrityError:
        return IntegrityError(
            "RECEIPT_MISMATCH",
            f"line {self._count + 1} of {self._path} differs from the ledger",
            evidence=line,
            advice="run aver verify on its directory; move the file away, and Aver writes it again",
        )
