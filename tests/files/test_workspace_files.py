"""Files of a workspace: no link is followed, no other file is replaced, and no mode gives rights away."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from aver.errors import Refused
from aver.files import workspace_files
from aver.files.workspace_files import FileBase, WorkspaceFiles, digest_file


@pytest.fixture
def place(tmp_path: Path) -> Path:
    workspace = tmp_path / "work"
    workspace.mkdir()
    return workspace


def code_of(error: pytest.ExceptionInfo[Refused]) -> str:
    return error.value.code


def test_a_write_keeps_the_rights_of_a_file_and_none_that_would_run_it_as_the_executor(place: Path) -> None:
    file = place / "tool.sh"
    file.write_text("old")
    file.chmod(0o6754)
    WorkspaceFiles(str(place)).write("tool.sh", b"new", FileBase(digest_file(b"old")))
    assert file.read_text() == "new"
    assert oct(file.stat().st_mode & 0o7777) == oct(0o754)


def test_a_file_that_appears_at_the_last_moment_is_not_replaced(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def late(*words: object, **more: object) -> None:
        (place / "new.txt").write_text("of another program")
        link(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(workspace_files.os, "link", late)
    with pytest.raises(Refused) as refused:
        WorkspaceFiles(str(place)).write("new.txt", b"mine", FileBase(None))
    assert code_of(refused) == "WORKSPACE_CHANGED"
    assert (place / "new.txt").read_text() == "of another program"
    assert [path.name for path in place.iterdir()] == ["new.txt"]


def test_a_file_system_without_links_is_written_all_the_same(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object, **more: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(workspace_files.os, "link", refuse)
    WorkspaceFiles(str(place)).write("new.txt", b"mine", FileBase(None))
    assert [path.read_bytes() for path in place.iterdir()] == [b"mine"]


@pytest.mark.parametrize("relpath", ["in/a.txt", "in/deep/a.txt", "in"])
def test_a_link_on_the_way_is_refused_for_reading_writing_and_deleting(
    place: Path, tmp_path: Path, relpath: str
) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    for path in (outside / "a.txt", outside / "deep" / "a.txt"):
        path.write_text("secret")
    (place / "in").symlink_to(outside if relpath != "in" else outside / "a.txt")
    files = WorkspaceFiles(str(place))
    for attempt in (
        lambda: files.look(relpath),
        lambda: files.write(relpath, b"x", FileBase(None)),
        lambda: files.write(relpath, b"x", FileBase(digest_file(b"secret"))),
        lambda: files.delete(relpath, FileBase(digest_file(b"secret"))),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert code_of(refused) == "WORKSPACE_PATH_BLOCKED"
    assert (outside / "a.txt").read_text() == "secret"
    assert len(list(outside.iterdir())) == 2


def test_a_link_that_is_the_file_itself_is_called_one(place: Path) -> None:
    (place / "in").symlink_to("elsewhere")
    with pytest.raises(Refused, match=r"it is a link$"):
        WorkspaceFiles(str(place)).look("in")
    with pytest.raises(Refused, match=r"in the place of a directory$"):
        WorkspaceFiles(str(place)).look("in/a.txt")


def test_a_workspace_that_was_swapped_for_a_link_is_refused(place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place.rmdir()
    place.symlink_to(outside)
    with pytest.raises(Refused) as refused:
        WorkspaceFiles(str(place)).write("a.txt", b"x", FileBase(None))
    assert code_of(refused) == "WORKSPACE_PATH_BLOCKED"
    assert not list(outside.iterdir())


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_only_regular_files_are_used(place: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(place / "odd")
    else:
        (place / "odd").mkdir()
    files = WorkspaceFiles(str(place))
    for attempt in (lambda: files.look("odd"), lambda: files.write("odd", b"x", FileBase(None))):
        with pytest.raises(Refused):
            attempt()


@pytest.mark.parametrize(
    "relpath", ["", ".", "..", "a/../b", "/a", "a//b", "a/", "a\\b", "a\0b", "a\nb", "x" * 1025, "a/" * 64 + "b"]
)
def test_paths_that_are_none(place: Path, relpath: str) -> None:
    with pytest.raises(Refused) as refused:
        WorkspaceFiles(str(place)).look(relpath)
    assert code_of(refused) == "WORKSPACE_PATH_BLOCKED"


def test_a_directory_that_is_swapped_for_a_link_again_and_again_lets_nothing_out(place: Path, tmp_path: Path) -> None:
    """A program of the agent swaps `in` between a directory and a link, as fast as it can, while files are written."""
    outside, inside = tmp_path / "outside", place / "in"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            shutil.rmtree(inside, ignore_errors=True)
            with suppress(OSError):
                inside.symlink_to(outside)
            with suppress(OSError):
                inside.unlink()

    thread = threading.Thread(target=swap)
    thread.start()
    files, answers = WorkspaceFiles(str(place)), list[str]()
    try:
        for number in range(20_000):
            if number >= 500 and {"written", "WORKSPACE_PATH_BLOCKED"} <= set(answers):
                break
            try:
                files.write(f"in/{number}.txt", b"x", FileBase(None))
                answers.append("written")
                assert files.look("in/secret.txt").data == b""
            except Refused as refusal:
                answers.append(refusal.code)
    finally:
        done.set()
        thread.join()
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert {"written", "WORKSPACE_PATH_BLOCKED"} <= set(answers)


def test_new_directories_are_durable_as_the_file_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    fsync = os.fsync

    def watch(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watch)
    WorkspaceFiles(str(place)).write("a/b/c.txt", b"text", FileBase(None))
    assert {each.stat().st_ino for each in (place, place / "a", place / "a/b", place / "a/b/c.txt")} <= synced
