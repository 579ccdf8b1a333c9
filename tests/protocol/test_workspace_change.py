"""The commit and the uncommitted change of a workspace."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from aver.protocol.workspace import CHANGE_MAX, NO_REPOSITORY, read_workspace_state


def git(where: Path, *words: str) -> str:
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *settings, *words], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    git(root, "init", "-q")
    (root / "app.py").write_text("tea = 4\n")
    (root / ".gitignore").write_text("build/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_a_clean_workspace(repository: Path) -> None:
    state = read_workspace_state(str(repository))
    assert (state.revision, state.change, state.cut) == (git(repository, "rev-parse", "HEAD"), b"", False)
    assert state.is_clean


def test_touching_a_file_is_no_change(repository: Path) -> None:
    (repository / "app.py").touch()
    assert read_workspace_state(str(repository)).is_clean


def test_changed_staged_and_untracked_files_are_shown(repository: Path) -> None:
    (repository / "app.py").write_text("tea = 5\n")
    (repository / "new.py").write_text("milk = 1\n")
    git(repository, "add", "new.py")
    (repository / "notes of today.txt").write_text("hello\n")
    (repository / "build").mkdir()
    (repository / "build" / "out.txt").write_text("ignored\n")
    (repository / "sub").mkdir()
    state = read_workspace_state(str(repository / "sub"))
    assert not state.is_clean
    assert state.change is not None
    text = state.change.decode()
    assert "-tea = 4\n+tea = 5\n" in text
    assert "+milk = 1\n" in text
    assert f"? {hashlib.sha256(b'hello' + bytes([10])).hexdigest()} 'notes of today.txt'\n" in text
    assert "ignored" not in text
    assert "out.txt" not in text


def test_no_repository(tmp_path: Path) -> None:
    assert read_workspace_state(str(tmp_path)) == NO_REPOSITORY


def test_a_large_change_is_cut(repository: Path) -> None:
    (repository / "app.py").write_text("tea = 4\n" * 300_000)
    state = read_workspace_state(str(repository))
    assert state.cut
    assert state.change is not None
    assert len(state.change) == CHANGE_MAX


def test_nothing_that_the_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "filter.x.clean", "diff.x.textconv"):
        git(repository, "config", name, str(trap))
    (repository / ".gitattributes").write_text("*.py filter=x diff=x\n")
    (repository / "app.py").write_text("tea = 5\n")
    state = read_workspace_state(str(repository))
    assert state.change is not None
    assert b"+tea = 5" in state.change
    assert not (tmp_path / "sprung").exists()
