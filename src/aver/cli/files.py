"""Files that a person names on the command line: read with a limit, written once and never over another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aver.errors import BadInput, NotFound, Unavailable
from aver.files.atomic import sync_directory

__all__ = ["check_new_path", "read_json_file", "write_new_file"]

DOCUMENT_MAX = 16 * 1024 * 1024
"""Bytes of a small document such as a checkpoint or a head; a larger file is not one."""


def read_json_file(path: Path) -> Any:
    """The JSON in a plain file, read strictly."""
    from aver.capsule.json_reader import read_json
    from aver.files.regular import open_file

    with open_file(path) as file:
        raw = file.read(DOCUMENT_MAX + 1)
    if len(raw) > DOCUMENT_MAX:
        raise BadInput(f"{path} is larger than {DOCUMENT_MAX} bytes")
    try:
        return read_json(raw)
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}", advice=error.advice) from error


def check_new_path(path: Path) -> None:
    """Refuse a path at which `write_new` would fail, before anything else is done."""
    if os.path.lexists(path):
        raise _path_exists_error(path)
    if not path.parent.is_dir():
        raise _no_directory_error(path)


def write_new_file(path: Path, data: bytes) -> None:
    """Write a file that was not there. One that was may be somebody's only copy, and stays."""
    try:
        with path.open("xb") as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                sync_directory(path.parent)
            except OSError:
                path.unlink(missing_ok=True)  # Half of it would be in the way of the next attempt.
                raise
    except FileExistsError:
        raise _path_exists_error(path) from None
    except FileNotFoundError:
        raise _no_directory_error(path) from None
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def _path_exists_error(path: Path) -> BadInput:
    return BadInput(f"{path} is there already and is not overwritten", advice="give another name")


def _no_directory_error(path: Path) -> NotFound:
    return NotFound(f"there is no directory {path.parent}", advice="make it first")
