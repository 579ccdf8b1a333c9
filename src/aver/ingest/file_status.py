"""Find out from a file's status, without reading it, whether it has changed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["FileStatus", "is_settled", "read_file_status"]

SETTLED_NS = 2_000_000_000
"""Age of a file's time from which an unchanged time means an unchanged file: clocks of file systems are coarse, and two
writes can have one time."""


class FileStatus(NamedTuple):
    """Values that change when a file is written or replaced."""

    inode: int
    size: int
    time_ns: int


def read_file_status(path: Path) -> FileStatus | None:
    """The status of a file; None where there is none, or it is something else."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return FileStatus(status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def is_settled(statuses: Iterable[FileStatus | None]) -> bool:
    """Return whether a further change of any of the files would change its status."""
    newest = max((status.time_ns for status in statuses if status is not None), default=0)
    return time.time_ns() - newest > SETTLED_NS
