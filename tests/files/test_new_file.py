"""Files that a person named: written whole, and never replaced by mistake."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from aver.errors import BadInput, NotFound, Unavailable
from aver.files.new_file import check_new_path, open_new_file, write_new_file


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    write_new_file(path, b"one")
    for attempt in (lambda: check_new_path(path), lambda: write_new_file(path, b"two")):
        with pytest.raises(BadInput, match="not overwritten"):
            attempt()
    assert path.read_bytes() == b"one"
    write_new_file(path, b"two", force=True)
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["proof.json"]


def test_a_link_counts_as_a_file_and_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "dangling"):
        with pytest.raises(BadInput):
            write_new_file(tmp_path / name, b"x")
        write_new_file(tmp_path / name, b"x", force=True)
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    with pytest.raises(BadInput, match="directory"):
        write_new_file(tmp_path / "bundle", b"x", force=True)
    with pytest.raises(NotFound, match="no directory"):
        write_new_file(tmp_path / "nowhere" / "x", b"x")


@pytest.mark.parametrize("force", [False, True])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "page.html"
    if force:
        path.write_text("old")
    before = os.listdir(tmp_path)
    with pytest.raises(TypeError), open_new_file(path, force=force) as file:
        file.writelines([b"half", 7])  # type: ignore[list-item]
    assert os.listdir(tmp_path) == before
    assert not force or path.read_text() == "old"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "proof.json"
    with pytest.raises(BadInput, match="not overwritten"), open_new_file(path):
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["proof.json"]
    # Also where there are no hard links.
    path.unlink()

    def link(*args: object, **options: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    write_new_file(path, b"ours")
    assert path.read_bytes() == b"ours"
    with pytest.raises(BadInput, match="not overwritten"), open_new_file(tmp_path / "other"):
        (tmp_path / "other").write_bytes(b"theirs")
    assert (tmp_path / "other").read_bytes() == b"theirs"


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Unavailable, match="No space left"):
        write_new_file(tmp_path / "x", b"data")
    assert os.listdir(tmp_path) == []
