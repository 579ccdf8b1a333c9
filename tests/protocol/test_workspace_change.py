"""The commit and the uncommitted change of a workspace, as a start seals them."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.errors import NotFound
from aver.gate.risk.history.git import uncommitted_change
from support.small_projects import git, make_project


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_project(tmp_path / "shop")


def test_a_clean_workspace(repository: Path) -> None:
    assert uncommitted_change(repository) == (git(repository, "rev-parse", "HEAD"), "")


def test_touching_a_file_is_no_change(repository: Path) -> None:
    (repository / "shop.py").touch()
    assert uncommitted_change(repository)[1] == ""


def test_changed_staged_and_untracked_files_are_shown(repository: Path) -> None:
    (repository / "shop.py").write_text("def total(prices):\n    return 5\n")
    (repository / "new.py").write_text("milk = 1\n")
    git(repository, "add", "new.py")
    (repository / "notes of today.txt").write_text("hello\n")
    (repository / "__pycache__").mkdir()
    (repository / "__pycache__" / "out.txt").write_text("ignored\n")
    (repository / "sub").mkdir()
    text = uncommitted_change(repository / "sub")[1]
    assert "-    return sum(prices)\n+    return 5\n" in text
    assert "+milk = 1\n" in text
    assert "notes of today.txt" in text
    assert "out.txt" not in text


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        uncommitted_change(tmp_path)


def test_nothing_that_the_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "filter.x.clean", "diff.x.textconv"):
        git(repository, "config", name, str(trap))
    (repository / ".gitattributes").write_text("*.py filter=x diff=x\n")
    (repository / "shop.py").write_text("def total(prices):\n    return 5\n")
    assert "+    return 5" in uncommitted_change(repository)[1]
    assert not (tmp_path / "sprung").exists()
