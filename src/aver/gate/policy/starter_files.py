"""Copies the starter set to a directory of the user, to be edited."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from aver.errors import BadInput, Unavailable
from aver.files.atomic import make_directory, sync_directory, temporary_prefix
from aver.gate.policy.bundle import STARTER_DIRECTORY

__all__ = ["install_starter"]


def install_starter(target: Path) -> None:
    """Copy the starter set, its optional rules and its cases to a new directory, atomically.

    Raises BadInput if the directory exists: it may hold the user's own rules.
    """
    if os.path.lexists(target):
        raise BadInput(f"{target} is there already and is not overwritten", advice="give another directory")
    try:
        make_directory(target.parent)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=temporary_prefix(target.name)))
        try:
            for source in sorted(STARTER_DIRECTORY.rglob("*")):
                if source.is_file() and source.suffix in (".cedar", ".toml"):
                    _write_file(temporary / source.relative_to(STARTER_DIRECTORY), source.read_bytes())
            os.rename(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_directory(target.parent)
    except OSError as error:
        raise Unavailable(f"cannot make {target}: {error.strerror}") from error


def _write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
