"""A range of commits: what it changes, its secrets, its tests. Nothing of the repository's settings counts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aver.errors import BadInput
from aver.protocol.roles.range_review import build_review_tool, review_commits

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def git(where: Path, *words: str) -> str:
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *settings, *words], cwd=where, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    git(root, "init", "-q")
    (root / "app.py").write_text("tea = 4\nmilk = 1\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "tag", "v1")
    git(root, "checkout", "-qb", "work")
    (root / "app.py").write_text(f'tea = 5\nmilk = 1\ntoken = "{SECRET}"\n')
    (root / "tests").mkdir()
    (root / "tests" / "test_über uns.py").write_text("--- a\n+++ b\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    return root


def test_a_range(repository: Path) -> None:
    found = review_commits(str(repository), "main..work")
    assert (found["from"], found["to"]) == (git(repository, "rev-parse", "main"), git(repository, "rev-parse", "work"))
    assert (found["files"], found["added"], found["removed"]) == (2, 4, 1)
    assert found["kinds"] == {"source": 1, "test": 1}
    assert found["paths"] == ["app.py", "tests/test_über uns.py"]
    assert found["tests_touched"] is True
    assert (found["secrets"], found["secret_places"]) == (1, [{"path": "app.py", "line": 3}])
    assert 0 <= found["risk"] <= 1000
    assert SECRET not in str(found)


@pytest.mark.parametrize("name", ["HEAD~1..HEAD", "v1..HEAD", "main", "main..", "HEAD^..work"])
def test_names_of_revisions(repository: Path, name: str) -> None:
    assert review_commits(str(repository), name)["files"] == 2


def test_packed_refs(repository: Path) -> None:
    git(repository, "pack-refs", "--all")
    assert review_commits(str(repository), "v1..work")["files"] == 2


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["", "nothing..HEAD", "--output=x..HEAD", "a..b..c", "HEAD~9..HEAD", "../../x", "a b"])
def test_what_is_no_range(repository: Path, name: str) -> None:
    with pytest.raises(BadInput):
        review_commits(str(repository), name)
    assert sorted(path.name for path in repository.iterdir()) == [".git", "app.py", "tests"]


def test_the_tool_reads_only(repository: Path) -> None:
    function = build_review_tool(str(repository))
    assert function()["files"] == 2
    assert function(range="v1..v1")["files"] == 0
