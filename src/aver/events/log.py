"""`.capseal/events.jsonl`: written by any number of processes, a whole line at a time, and never for ever.

Whoever writes holds a lock on the directory. What a crash or a full disk left of a last line is cut off first. A file
that would grow beyond `FILE_MAX` becomes `events.1.jsonl`, in place of the one before; so there are two at most, and
whoever follows finds every line in one of them.

From the ledger to the live events of a workspace.

A `Projection` follows chains: each time it is brought up, the records that came since give their events, and the log
takes those that it has not. So a server that was killed between the record and the line leaves no gap, and one that
starts again, or works beside another, doubles nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.actions.run_capsules import gate_chain, run_chain
from aver.actions.run_directory import read_run_identity
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.events.event import LINE_MAX, LiveEvent, event_from_record, read_event
from aver.files.locks import lock_directory
from aver.files.regular import open_descriptor, open_regular
from aver.ledger import Ledger

__all__ = ["EVENTS_FILE", "OLDER_EVENTS_FILE", "EventFollower", "EventLog", "EventProjection", "rebuild_log"]


EVENTS_FILE, OLDER_EVENTS_FILE = "events.jsonl", "events.1.jsonl"

FILE_MAX = 1024 * 1024
"""Bytes of one file: some ten thousand events, which a status bar reads at once."""


class EventLog:
    """The events of one workspace, in its `.capseal` directory, which must be there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._end: tuple[int, int] | None = None
        """Which file we wrote to last, and how far it went then."""

    def add(self, events: Iterable[LiveEvent]) -> None:
        """Append those of the events that are not there yet. `Unavailable` where that does not work: try again later.

        What others wrote since our last line is looked through, and before our first line all of it: so several
        servers that follow one run write each of its events once. The events are taken while nobody else writes: what
        others wrote before our last line, they had from records that we had seen by then.
        """
        with self._lock_directory() as folder:
            lines = [event.to_line() for event in events]
            if not lines:
                return
            there = self._read_foreign_lines(folder)
            self._end = _append_lines(folder, [line for line in lines if line.rstrip(b"\n") not in there])

    def _read_foreign_lines(self, folder: int) -> set[bytes]:
        end = _file_end(folder)
        if self._end is not None and end is not None and self._end[0] == end[0] and self._end[1] <= end[1]:
            return set(_read_lines(folder, EVENTS_FILE, self._end[1])) if self._end != end else set()
        return {*_read_lines(folder, OLDER_EVENTS_FILE), *_read_lines(folder, EVENTS_FILE)}

    def replace(self, events: Iterable[LiveEvent]) -> None:
        """Make the log anew: as many of these events, the newest, as one file holds."""
        kept: list[bytes] = []
        size = 0
        for line in reversed([event.to_line() for event in events]):
            if size + len(line) > FILE_MAX:
                break
            kept.append(line)
            size += len(line)
        with self._lock_directory() as folder:
            for name in (OLDER_EVENTS_FILE, EVENTS_FILE):
                if _exists(folder, name):
                    os.unlink(name, dir_fd=folder)
            self._end = _append_lines(folder, kept[::-1])

    def read(self) -> Iterator[LiveEvent]:
        """The events that are there, oldest first. Lines that are none are passed over."""
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
    """What comes to a log, from the moment on at which this was made."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / EVENTS_FILE
        self._handle = -1
        self._rest = b""
        if self._open():
            os.lseek(self._handle, 0, os.SEEK_END)

    def read_new(self) -> Iterator[LiveEvent]:
        """The events that came since. Goes on in the new file when the log was turned over."""
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
            yield from self._read_appended()  # What was written between our last look and the turning over.
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
            self._rest = self._rest[: LINE_MAX + 1]
            yield from _parse_events(lines)


def _append_lines(folder: int, lines: list[bytes]) -> tuple[int, int]:
    """Append lines to the newest file. Returns which that is, and where it ends."""
    handle = open_descriptor(EVENTS_FILE, os.O_RDWR | os.O_CREAT, follow=False, below=folder)
    try:
        size = _cut_torn_line(handle)
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
    """One line in one write; what a full disk left of it is taken back."""
    try:
        if os.pwrite(handle, line, at) == len(line):
            return
        os.ftruncate(handle, at)
    except OSError:
        os.ftruncate(handle, at)
        raise
    raise OSError(28, "No space left on device")


def _cut_torn_line(handle: int) -> int:
    """Cut off a last line that has no end. Returns the size of the rest."""
    size = os.fstat(handle).st_size
    if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
        return size
    start = max(0, size - LINE_MAX)
    whole = start + os.pread(handle, size - start, start).rfind(b"\n") + 1
    os.ftruncate(handle, whole)
    return whole


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


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


class EventProjection:
    """Brings a workspace's log up to the chains of its runs. Not safe for threads: the caller holds a lock."""

    def __init__(self, ledger: Ledger, directory: Path) -> None:
        self._ledger = ledger
        self._log = EventLog(directory)
        self._seen: dict[str, int] = {}
        """How many records of each chain have given their events."""

    def add_new_events(self, run_id: str) -> None:
        """Add the events of a run's newest records. `Unavailable` if that cannot be done now: try again later."""
        counts: dict[str, int] = {}
        self._log.add(self._new_events(run_id, counts))
        self._seen |= counts

    def _new_events(self, run_id: str, counts: dict[str, int]) -> Iterator[LiveEvent]:
        """The events of what is new, and in `counts` how far that goes: found out when the first is taken."""
        chains = (gate_chain(run_id), run_chain(run_id))
        counts |= {chain: self._ledger.head(chain).count for chain in chains}
        starts = {chain: self._seen.get(chain, 0) for chain in chains}
        events = (
            event for chain in chains for event in _chain_events(self._ledger, chain, starts[chain], counts[chain])
        )
        yield from sorted(events, key=lambda event: event.timestamp)


def rebuild_log(ledger: Ledger, directory: Path) -> int:
    """Make the log anew from the ledger: of all runs that the workspace has. Returns how many runs gave events."""
    events: list[LiveEvent] = []
    runs = list(_find_runs(ledger, directory / "runs"))
    for run_id in runs:
        for chain in (gate_chain(run_id), run_chain(run_id)):
            events += _chain_events(ledger, chain, 0, ledger.head(chain).count)
    EventLog(directory).replace(sorted(events, key=lambda event: event.timestamp))
    return len(runs)


def _find_runs(ledger: Ledger, directory: Path) -> Iterable[str]:
    """The runs of a workspace that are sealed in this ledger."""
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
