"""Opening regular files: no pipe, directory, device or unwanted link gets through, and none can hang Aver."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from aver.errors import BadInput, NotFound
from aver.files.regular import (
    NotRegularFile,
    is_file_name,
    open_descriptor,
    open_file,
    open_if_regular,
    open_inside,
    open_regular,
    open_without_blocking,
    read_if_regular,
    read_limited,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "inner").write_bytes(b"inner")
    (tmp_path / "directory link").symlink_to("directory")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("name", ["pipe", "directory", "/dev/zero"])
@pytest.mark.parametrize("follow", [True, False])
def test_only_regular_files_are_opened_and_no_descriptor_stays_open(place: Path, name: str, follow: bool) -> None:
    before = open_handles()
    with pytest.raises(NotRegularFile):
        open_regular(place / name, follow=follow)
    with pytest.raises(BadInput, match="not a regular file"):
        open_file(place / name)
    assert open_if_regular(place / name) is None
    assert open_handles() == before


def test_the_caller_says_whether_links_are_followed(place: Path) -> None:
    with open_regular(place / "link", follow=True) as file:
        assert file.read() == b"12345"
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(place / "link", follow=False)


def test_a_file_that_is_made_is_its_owners_alone(place: Path) -> None:
    os.close(open_descriptor(place / "new", os.O_RDWR | os.O_CREAT, follow=False))
    assert (place / "new").stat().st_mode & 0o777 == 0o600


def test_below_a_directory_of_others_no_link_is_followed_and_no_name_leads_out(place: Path) -> None:
    with open_inside(place, "directory", "inner") as file:
        assert file.read() == b"inner"
    for names in (("link",), ("pipe",), ("directory link", "inner"), ("..", "file"), ("directory/inner",), ("",)):
        with pytest.raises(BadInput):
            open_inside(place, *names)
    with pytest.raises(NotFound):
        open_inside(place, "missing")


def test_a_pipe_is_opened_only_where_that_is_asked_for(place: Path) -> None:
    opened = open_without_blocking(place / "pipe", follow=True)
    try:
        assert stat.S_ISFIFO(os.fstat(opened).st_mode)
    finally:
        os.close(opened)


def test_limits(place: Path) -> None:
    with open_file(place / "file") as file:
        assert read_limited(file, 5, "it") == b"12345"
    with open_file(place / "file") as file, pytest.raises(BadInput, match="it is larger than 4 bytes"):
        read_limited(file, 4, "it")
    assert read_if_regular(place / "file", 5) == b"12345"
    assert read_if_regular(place / "file", 4) is None
    assert read_if_regular(place / "missing", 4) is None
    assert read_if_regular(place / "file" / "below", 4) is None


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a\\b", "a\0b", "a\nb", "é" * 121, None, 3])
def test_names_that_are_more_than_a_name(name: object) -> None:
    assert not is_file_name(name)
    assert is_file_name("a b-é.json")
