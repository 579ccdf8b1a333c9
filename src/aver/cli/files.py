"""Documents named on the command line, read with a size limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aver.errors import BadInput

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
