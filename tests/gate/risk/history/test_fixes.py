"""Recent fixes by file: what the gate asks, kept as long as HEAD stands still."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aver.gate.action import Action, Facts
from aver.gate.risk.estimate import estimate
from aver.gate.risk.history import git as git_module
from aver.gate.risk.history.fixes import load_recent_fixes
from aver.gate.risk.model import RiskState
from aver.gate.risk.state import state_path
from support.git_histories import DAY, Step, git, make_repository

NOW = int(time.time())


def told(days: float = 0) -> str:
    return (datetime.fromtimestamp(NOW, UTC) + timedelta(days=days)).isoformat()


def steps() -> list[Step]:
    return [
        Step(NOW - 400 * DAY, "Begin", {"sub/a.py": "1\n", "b.py": "1\n"}),
        Step(NOW - 300 * DAY, "Fix a long ago", {"sub/a.py": "2\n"}),
        Step(NOW - 100 * DAY, "Fix a", {"sub/a.py": "3\n"}),
        Step(NOW - 50 * DAY, "Fix both", {"sub/a.py": "4\n", "b.py": "2\n", "README.md": "x\n"}),
        Step(NOW - 40 * DAY, "Fix much", {"b.py": "".join(f"{n}\n" for n in range(99))}),
        Step(NOW - 30 * DAY, "Change b", {"b.py": "5\n"}),
    ]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path / "r", steps())
    return tmp_path / "r"


def test_by_file_and_time(repository: Path) -> None:
    found = load_recent_fixes(repository)
    assert found.note == ""
    assert found.fixes_before(["sub/a.py"], told()) == 2
    assert found.fixes_before(["sub/a.py", "b.py", "c.py", "README.md"], told()) == 3
    assert found.fixes_before(["sub/a.py"], told(-75)) == 1
    assert found.fixes_before(["sub/a.py"], told(100)) == 1
    assert found.fixes_before(["sub/a.py"], told(1000)) == 0


def test_from_inside_the_repository(repository: Path) -> None:
    (repository / "sub").mkdir()
    found = load_recent_fixes(repository / "sub")
    assert found.fixes_before(["a.py"], told()) == 2
    assert found.fixes_before(["sub/a.py"], told()) == 2


@pytest.mark.parametrize("now", ["", "yesterday", "9999-99-99", "0001-01-01T00:00:00+00:00"])
def test_a_time_that_is_none_hides_no_fix(now: str, repository: Path) -> None:
    assert load_recent_fixes(repository).fixes_before(["sub/a.py"], now) in (0, 2)
    if not now.startswith("0001"):
        assert load_recent_fixes(repository).fixes_before(["sub/a.py"], now) == 2


def test_git_is_asked_only_when_head_has_moved(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_recent_fixes(repository)
    asked: list[object] = []
    real = git_module.open_git

    def counted(repository: object) -> object:
        asked.append(repository)
        return real(repository)  # type: ignore[arg-type]

    monkeypatch.setattr(git_module, "open_git", counted)
    assert load_recent_fixes(repository) == first
    assert asked == []
    (repository / "b.py").write_text("9\n")
    git(repository, "read-tree", "HEAD")
    git(repository, "add", "b.py")
    git(repository, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "Fix b")
    assert load_recent_fixes(repository).fixes_before(["b.py"], told(1)) == 2
    assert len(asked) == 1


def test_a_head_that_is_gone_begins_anew(tmp_path: Path, repository: Path) -> None:
    load_recent_fixes(repository)
    other = [Step(NOW - 20 * DAY, "Fix c", {"c.py": "1\n"})]
    make_repository(tmp_path / "other", other)
    (repository / ".git").rename(tmp_path / "old")
    (tmp_path / "other" / ".git").rename(repository / ".git")
    found = load_recent_fixes(repository)
    assert found.fixes_before(["c.py"], told()) == 1
    assert found.fixes_before(["sub/a.py"], told()) == 0


@pytest.mark.parametrize("content", ["", "{}", "[]", "x" * 100])
def test_a_damaged_file_is_found_out_again(content: str, repository: Path) -> None:
    load_recent_fixes(repository)
    file = state_path(repository).with_suffix(".fixes.json")
    file.write_text(content)
    assert load_recent_fixes(repository).fixes_before(["sub/a.py"], told()) == 2


def test_what_cannot_be_read_is_said(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("nonsense")
    found = load_recent_fixes(repository)
    assert "not known" in found.note
    assert found.fixes_before(["sub/a.py"], told()) == 0


def test_a_home_that_cannot_be_written_is_no_obstacle(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert load_recent_fixes(repository, tmp_path / "file" / "home").fixes_before(["sub/a.py"], told()) == 2


def test_in_an_estimate(repository: Path) -> None:
    diff = "--- a/sub/a.py\n+++ b/sub/a.py\n@@ -1 +1 @@\n-4\n+5\n"
    action = Action(type="code_edit", diff=diff, workspace=str(repository))
    found = estimate(action, Facts(now=told()), RiskState(), load_recent_fixes(repository))
    assert found.features["fixes"] == 2


def test_fixes_named_in_a_body_count(repository: Path) -> None:
    before = load_recent_fixes(repository).fixes_before(["b.py"], told(1))
    (repository / "b.py").write_text("9\n")
    git(repository, "read-tree", "HEAD")
    git(repository, "add", "b.py")
    message = "Count b again\n\nFixes #7"
    git(repository, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", message)
    assert load_recent_fixes(repository).fixes_before(["b.py"], told(1)) == before + 1


def test_a_missing_content_hides_its_own_fix_only(repository: Path) -> None:
    """The commit `Fix much` brings a content that no other fix needs."""
    blob = git(repository, "rev-parse", "HEAD~1:b.py").strip()
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    found = load_recent_fixes(repository)
    assert found.note == ""
    assert found.fixes_before(["sub/a.py"], told()) == 2
    assert found.fixes_before(["b.py"], told()) == 1
