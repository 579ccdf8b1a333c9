"""`.capseal/events.jsonl`: written by any number of processes, a whole line at a time, and never for ever.

Whoever writes holds a lock on the directory. What a crash or a full disk left of a last line is cut off first. A file
that would grow beyond `FILE_MAX` becomes `events.1.jsonl`, in place of the one before; so there are two at most, and
whoever follows finds every line in one of them.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.errors import BadInput, Unavailable
from aver.events.event import LINE_MAX, Event, read_event

__all__ = ["EVENTS", "OLDER", "EventLog", "Follower"]

EVENTS, OLDER = "events.jsonl", "events.1.jsonl"

FILE_MAX = 1024 * 1024
"""Bytes of one file: some ten thousand events, which a status bar reads at once."""


class EventLog:
    """The events of one workspace, in its `.capseal` directory, which must be there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._end: tuple[int, int] | None = None
        """Which file we wrote to last, and how far it went then."""

    def add(self, events: Iterable[Event]) -> None:
        """Append those of the events that are not there yet. `Unavailable` where that does not work: try again later.

        What others wrote since our last line is looked through, and before our first line all of it: so several
        servers that follow one run write each of its events once. The events are taken while nobody else writes: what
        others wrote before our last line, they had from records that we had seen by then.
        """
        with self._locked() as folder:
            lines = [event.line() for event in events]
            if not lines:
                return
            there = self._written_by_others(folder)
            self._end = _append(folder, [line for line in lines if line.rstrip(b"\n") not in there])

    def _written_by_others(self, folder: int) -> set[bytes]:
        end = _end_of(folder)
        if self._end is not None and end is not None and self._end[0] == end[0] and self._end[1] <= end[1]:
            return set(_lines(folder, EVENTS, self._end[1])) if self._end != end else set()
        return {*_lines(folder, OLDER), *_lines(folder, EVENTS)}

    def replace(self, events: Iterable[Event]) -> None:
        """Make the log anew: as many of these events, the newest, as one file holds."""
        kept: list[bytes] = []
        size = 0
        for line in reversed([event.line() for event in events]):
            if size + len(line) > FILE_MAX:
                break
            kept.append(line)
            size += len(line)
        with self._locked() as folder:
            for name in (OLDER, EVENTS):
                if _exists(folder, name):
                    os.unlink(name, dir_fd=folder)
            self._end = _append(folder, kept[::-1])

    def read(self) -> Iterator[Event]:
        """The events that are there, oldest first. Lines that are none are passed over."""
        with self._locked() as folder:
            lines = [*_lines(folder, OLDER), *_lines(folder, EVENTS)]
        yield from _events(lines)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                yield folder
            finally:
                os.close(folder)  # That lets go of the lock, too.
        except OSError as error:
            raise Unavailable(f"cannot use {self.directory / EVENTS}: {error.strerror}") from error


class Follower:
    """What comes to a log, from the moment on at which this was made."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / EVENTS
        self._handle = -1
        self._rest = b""
        if self._open():
            os.lseek(self._handle, 0, os.SEEK_END)

    def new(self) -> Iterator[Event]:
        """The events that came since. Goes on in the new file when the log was turned over."""
        while True:
            if self._handle < 0 and not self._open():
                return
            yield from self._grown()
            try:
                now, ours = os.stat(self._path, follow_symlinks=False), os.fstat(self._handle)
            except FileNotFoundError:
                return
            if os.path.samestat(now, ours):
                return
            yield from self._grown()  # What was written between our last look and the turning over.
            self.close()

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._rest = -1, b""

    def _open(self) -> bool:
        try:
            self._handle = _opened(None, str(self._path), os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Unavailable(f"cannot read {self._path}: {error.strerror}") from error
        return True

    def _grown(self) -> Iterator[Event]:
        while chunk := os.read(self._handle, 64 * 1024):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._rest = self._rest[: LINE_MAX + 1]
            yield from _events(lines)


def _append(folder: int, lines: list[bytes]) -> tuple[int, int]:
    """Append lines to the newest file. Returns which that is, and where it ends."""
    handle = _opened(folder, EVENTS, os.O_RDWR | os.O_CREAT)
    try:
        size = _cut_torn_line(handle)
        for line in lines:
            if size and size + len(line) > FILE_MAX:
                os.rename(EVENTS, OLDER, src_dir_fd=folder, dst_dir_fd=folder)
                fresh = _opened(folder, EVENTS, os.O_RDWR | os.O_CREAT)
                os.close(handle)
                handle, size = fresh, 0
            _write_whole(handle, line, size)
            size += len(line)
        return os.fstat(handle).st_ino, size
    finally:
        os.close(handle)


def _end_of(folder: int) -> tuple[int, int] | None:
    try:
        status = os.stat(EVENTS, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size


def _write_whole(handle: int, line: bytes, at: int) -> None:
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


def _lines(folder: int, name: str, start: int = 0) -> list[bytes]:
    try:
        handle = _opened(folder, name, os.O_RDONLY)
    except FileNotFoundError:
        return []
    with os.fdopen(handle, "rb") as file:
        file.seek(start)
        *lines, _ = file.read(2 * FILE_MAX).split(b"\n")
    return lines


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
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


def _opened(folder: int | None, name: str, flags: int) -> int:
    """Open a plain file: not through a link that a repository brought, and not a pipe that would hold us up."""
    handle = os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(22, "it is not a plain file")
    return handle
