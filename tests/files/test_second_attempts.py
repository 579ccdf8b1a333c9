"""After a failure that was reported, the same call can be made again: no name that it gave stays in the way."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver.errors import Unavailable
from aver.files.atomic import replace_file, replacement_directory
from aver.files.new_file import write_new_file
from aver.gate.policy.bundle import install_starter

CALLS = ("open", "fsync", "link", "rename", "replace")
"""The calls by which files get their bytes and their names."""


def write_directory(path: Path) -> None:
    path.mkdir(exist_ok=True)
    with replacement_directory(path) as new:
        (new / "a").write_text("a")


def write_without_links(path: Path) -> None:
    """As on a file system that has no hard links."""

    def refuse(*given: Any, **more: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", refuse)
        write_new_file(path, b"data")


WRITERS: dict[str, Callable[[Path], None]] = {
    "new file": lambda path: write_new_file(path, b"data"),
    "new file without links": write_without_links,
    "new file by force": lambda path: write_new_file(path, b"data", force=True),
    "replaced file": lambda path: replace_file(path, b"data"),
    "replaced directory": write_directory,
    "starter rules": install_starter,
}


def fail_once(monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: int) -> list[int]:
    """Let one call of this process fail, and return a list that tells once it did."""
    real, numbers, failed = getattr(os, call), itertools.count(1), []

    def fail(*given: Any, **more: Any) -> Any:
        if next(numbers) == number:
            failed.append(number)
            raise OSError(code, os.strerror(code))
        return real(*given, **more)

    monkeypatch.setattr(os, call, fail)
    return failed


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_failed_can_be_done_again(tmp_path: Path, writer: str, call: str, code: int) -> None:
    for number in itertools.count(1):
        place = tmp_path / str(number)
        place.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            failed = fail_once(patch, call, number, code)
            try:
                WRITERS[writer](place / "thing")
                is_reported = False
            except Unavailable:
                is_reported = True
        if not failed:
            break  # There are no more such calls.
        if is_reported:
            WRITERS[writer](place / "thing")
            assert os.listdir(place) == ["thing"]
        assert (place / "thing").exists()


def test_a_file_of_another_is_not_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came to this name between the link and the failure."""
    path = tmp_path / "checkpoint.json"

    def fsync(handle: int) -> None:
        if path.exists():
            path.unlink()
            path.write_bytes(b"theirs")
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Unavailable, match="Input/output error"):
        write_new_file(path, b"ours")
    assert path.read_bytes() == b"theirs"
