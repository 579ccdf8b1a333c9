"""Files named on the command line. Reading has a size limit; writing never replaces a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aver.errors import BadInput, NotFound, Unavailable
from aver.files.atomic import sync_directory

DOCUMENT_MAX = 16 * 1024 * 1024
"""The largest document that is read, in bytes. Checkpoints and heads are far smaller."""


def read_json_file(path: Path) -> Any:
    """Read the JSON document in a regular file. Raises `BadInput` if it is too large or not strict JSON."""
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
    """Raise the error that `write_new_file` would raise, before any other work is done."""
    if os.path.lexists(path):
        raise _path_exists_error(path)
    if not path.parent.is_dir():
        raise _no_directory_error(path)


def write_new_file(path: Path, data: bytes) -> None:
    """Write a new file, durably. An existing file may be the only copy of something and is not replaced."""
    try:
        with path.open("xb") as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                sync_directory(path.parent)
            except OSError:
                path.unlink(missing_ok=True)  # A half-written file would block the next attempt.
                raise
    except FileExistsError:
        raise _path_exists_error(path) from None
    except FileNotFoundError:
        raise _no_directory_error(path) from None
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def _path_exists_error(path: Path) -> BadInput:
    return BadInput(f"{path} exists already and is not overwritten", advice="choose another name")


def _no_directory_error(path: Path) -> NotFound:
    return NotFound(f"there is no directory {path.parent}", advice="create it first")
