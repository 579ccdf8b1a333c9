"""The SQLite files that this process has open, which it must not open in any other way.

SQLite locks a file for its process, and the system drops all these locks when the process closes any descriptor of the
file. Another process could then take this one for gone and remove the write-ahead log, and later commits would be lost.
So whoever reads such a file by itself asks `may_open_beside` first.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FilePlace = tuple[int, int]
"""Device and inode."""

_guard = threading.RLock()
_open: Counter[FilePlace] = Counter()


def note_opened(place: FilePlace) -> None:
    """Say that SQLite is about to open a file. Waits while another thread reads it by itself."""
    with _guard:
        _open[place] += 1


def note_closed(place: FilePlace) -> None:
    """Say that SQLite has closed a file that `note_opened` was called for."""
    with _guard:
        _open[place] -= 1


@contextmanager
def may_open_beside(path: Path) -> Iterator[bool]:
    """Yield whether the file may be opened and closed within the context: SQLite does not have it open here."""
    with _guard:
        try:
            found = os.stat(path)
        except OSError:
            yield True  # Opening it says what is wrong.
        else:
            yield _open[found.st_dev, found.st_ino] <= 0


def _reset_guard() -> None:
    global _guard
    _guard = threading.RLock()


os.register_at_fork(after_in_child=_reset_guard)
