"""A disk that is soon full: a small file system in memory, where one may be mounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """Mount a file system of this size at a new directory; the test is skipped where that is not possible."""
    path.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") is not None
    if mounted:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
        mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("a small disk can only be mounted by root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def enlarge(path: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(path)], check=True)
