"""The event file of a workspace, `.capseal/events.jsonl`, and its projection from the ledger.

Any number of processes may write. A writer holds a lock on the directory and writes whole lines. It first cuts off a
last line that a crash or a full disk left incomplete. A file that would grow beyond `FILE_MAX` is renamed to
`events.1.jsonl` and replaces the older file of that name. So there are at most two files, and a reader that follows
them finds every line.

An `EventProjection` follows the chains of a run. `add_new_events` adds the events of the records that are new since
its last call, except those that the file already has. So a server that is killed between record and event leaves no
gap, and a second server writes no event twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aver.actions.run_capsules import run_chain
from aver.actions.run_directory import read_run_identity
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.events.event import LINE_MAX, LiveEvent, event_from_record, read_event
from aver.files.locks import lock_directory
from aver.files.regular import open_descriptor, open_regular
from aver.gate.decision_record import decision_chain
from aver.ledger import Ledger

EVENTS_FILE, OLDER_EVENTS_FILE = "events.jsonl", "events.1.jsonl"

FILE_MAX = 1024 * 1024
"""The largest file, in bytes: about ten thousand events."""


class EventLog:
    """The event file of one workspace. Its `.capseal` directory must exist."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._end: tuple[int, int] | None = None
        """The inode of the file that this object wrote last, and its size after that."""

    def add(self, events: Iterable[LiveEvent]) -> None:
        """Append the events that the file does not have yet. Raises `Unavailable` if it cannot; try again later.

        Several servers may follow one run and must write each event once. So this compares the events with the lines
        that other processes wrote since the last call. The first call compares with the whole file.
        """
        with self._lock_directory() as folder:
            # `events` may read the ledger. It is consumed under the lock: lines that others wrote before our last
            # line came from records that we had seen by then, so only later lines can repeat our events.
            lines = [event.to_line() for event in events]
            if not lines:
                return
            # The lines that other processes wrote since our last line; all lines if the file was replaced.
            end = _file_end(folder)
            known: set[bytes] = set()
            if self._end is None or end is None or self._end[0] != end[0] or self._end[1] > end[1]:
                known = {*_read_lines(folder, OLDER_EVENTS_FILE), *_read_lines(folder, EVENTS_FILE)}
            elif self._end != end:
                known = set(_read_lines(folder, EVENTS_FILE, self._end[1]))
            self._end = _append_lines(folder, [line for line in lines if line.rstrip(b"\n") not in known])

    def replace(self, events: Iterable[LiveEvent]) -> None:
        """Replace the file's content with the newest of these events that fit into one file."""
        kept: list[bytes] = []
        size = 0
        for line in reversed([event.to_line() for event in events]):
            if size + len(line) > FILE_MAX:
                break
            kept.append(line)
            size += len(line)
        with self._lock_directory() as folder:
            for name in (OLDER_EVENTS_FILE, EVENTS_FILE):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            self._end = _append_lines(folder, kept[::-1])

    def read(self) -> Iterator[LiveEvent]:
        """The events in the files, oldest first. Other lines are skipped."""
        with self._lock_directory() as folder:
            lines = [*_read_lines(folder, OLDER_EVENTS_FILE), *_read_lines(folder, EVENTS_FILE)]
        yield from _parse_events(lines)

    @contextmanager
    def _lock_directory(self) -> Iterator[int]:
        try:
            with lock_directory(self.directory) as folder:
                yield folder
        except OSError as error:
            raise Unavailable(f"cannot use {self.directory / EVENTS_FILE}: {error.strerror}") from error


class EventFollower:
    """Reads the events that are added to a log after this object was made."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / EVENTS_FILE
        self._handle = -1
        self._rest = b""
        if self._open():
            os.lseek(self._handle, 0, os.SEEK_END)

    def read_new(self) -> Iterator[LiveEvent]:
        """The events since the last call. If the file was rotated, reading goes on in the new file."""
        while True:
            if self._handle < 0 and not self._open():
                return
            yield from self._read_appended()
            try:
                now, ours = os.stat(self._path, follow_symlinks=False), os.fstat(self._handle)
            except FileNotFoundError:
                return
            if os.path.samestat(now, ours):
                return
            yield from self._read_appended()  # Lines written between our last read and the rotation.
            self.close()

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._rest = -1, b""

    def _open(self) -> bool:
        try:
            self._handle = open_descriptor(self._path, follow=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Unavailable(f"cannot read {self._path}: {error.strerror}") from error
        return True

    def _read_appended(self) -> Iterator[LiveEvent]:
        while chunk := os.read(self._handle, 64 * 1024):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._rest = self._rest[: LINE_MAX + 1]  # A line without an end must not fill the memory.
            yield from _parse_events(lines)


def _append_lines(folder: int, lines: list[bytes]) -> tuple[int, int]:
    """Append lines to the newest file. Returns its inode and its size."""
    handle = open_descriptor(EVENTS_FILE, os.O_RDWR | os.O_CREAT, follow=False, below=folder)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            # A crash or a full disk left the last line incomplete: cut it off, or the next line would join it.
            start = max(0, size - LINE_MAX)
            size = start + os.pread(handle, size - start, start).rfind(b"\n") + 1
            os.ftruncate(handle, size)
        for line in lines:
            if size and size + len(line) > FILE_MAX:
                os.rename(EVENTS_FILE, OLDER_EVENTS_FILE, src_dir_fd=folder, dst_dir_fd=folder)
                fresh = open_descriptor(EVENTS_FILE, os.O_RDWR | os.O_CREAT, follow=False, below=folder)
                os.close(handle)
                handle, size = fresh, 0
            _write_whole_line(handle, line, size)
            size += len(line)
        return os.fstat(handle).st_ino, size
    finally:
        os.close(handle)


def _file_end(folder: int) -> tuple[int, int] | None:
    try:
        status = os.stat(EVENTS_FILE, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size


def _write_whole_line(handle: int, line: bytes, at: int) -> None:
    """Write one line in one system call. If the disk is full, a partial line is removed again."""
    try:
        # One call, so that a follower never reads half a line, unless the disk is full.
        if os.pwrite(handle, line, at) == len(line):
            return
        os.ftruncate(handle, at)
    except OSError:
        os.ftruncate(handle, at)
        raise
    raise OSError(28, "No space left on device")


def _read_lines(folder: int, name: str, start: int = 0) -> list[bytes]:
    try:
        file = open_regular(name, follow=False, below=folder)
    except FileNotFoundError:
        return []
    with file:
        file.seek(start)
        *lines, _ = file.read(2 * FILE_MAX).split(b"\n")
    return lines


def _parse_events(lines: Iterable[bytes]) -> Iterator[LiveEvent]:
    for line in lines:
        try:
            yield read_event(line)
        except BadInput:
            continue


class EventProjection:
    """Adds the events of a workspace's runs to its log. Not thread-safe: the caller holds a lock."""

    def __init__(self, ledger: Ledger, directory: Path) -> None:
        self._ledger = ledger
        self._log = EventLog(directory)
        self._seen: dict[str, int] = {}
        """By chain, the number of records whose events are in the log."""

    def add_new_events(self, run_id: str) -> None:
        """Add the events of a run's new records. Raises `Unavailable` if it cannot; try again later."""
        counts: dict[str, int] = {}
        self._log.add(self._new_events(run_id, counts))
        self._seen |= counts  # Only now: if `add` fails, the next call tries the same records again.

    def _new_events(self, run_id: str, counts: dict[str, int]) -> Iterator[LiveEvent]:
        """The events of new records. Writes the lengths of the chains into `counts` when it starts."""
        chains = (decision_chain(run_id), run_chain(run_id))
        counts |= {chain: self._ledger.head(chain).count for chain in chains}
        starts = {chain: self._seen.get(chain, 0) for chain in chains}
        events = (
            event for chain in chains for event in _chain_events(self._ledger, chain, starts[chain], counts[chain])
        )
        yield from sorted(events, key=lambda event: event.timestamp)


def rebuild_log(ledger: Ledger, directory: Path) -> int:
    """Rebuild the log from the ledger, for all runs of the workspace. Returns the number of runs."""
    events: list[LiveEvent] = []
    runs = list(_find_runs(ledger, directory / "runs"))
    for run_id in runs:
        for chain in (decision_chain(run_id), run_chain(run_id)):
            events += _chain_events(ledger, chain, 0, ledger.head(chain).count)
    EventLog(directory).replace(sorted(events, key=lambda event: event.timestamp))
    return len(runs)


def _find_runs(ledger: Ledger, directory: Path) -> Iterable[str]:
    """The runs of a workspace that this ledger contains."""
    if not directory.is_dir():
        return
    for path in sorted(directory.iterdir()):
        if path.is_dir() and not path.is_symlink():
            try:
                identity = read_run_identity(path)
            except AverError:
                continue
            if identity is not None and (identity.ledger, identity.tenant) == (ledger.id, ledger.tenant):
                yield identity.run_id


def _chain_events(ledger: Ledger, chain: str, start: int, stop: int) -> Iterator[LiveEvent]:
    try:
        for record in ledger.read(chain, start, stop) if stop > start else ():
            event = event_from_record(record)
            if event is not None:
                yield event
    except NotFound:
        return
