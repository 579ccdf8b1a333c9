"""Which commits failed: small histories whose answer is plain to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.gate.risk.features import Features
from aver.gate.risk.history.commits import Commit, MinedCommit, find_failures, parse_reverted_subject
from aver.gate.risk.history.fixes import FixTimes, is_fix_message
from aver.gate.risk.history.mined_commits import mine_history
from aver.gate.risk.history.repository import open_repository
from support.git_histories import BEGIN, DAY, Step, make_repository


def code(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


OLD = [f"old_{number}" for number in range(40)]


def failed(tmp_path: Path, steps: list[Step]) -> dict[int, int]:
    """The numbers of the steps that failed, and the days after which that was known."""
    ids = make_repository(tmp_path / "r", steps)
    known = find_failures(mine_history(open_repository(tmp_path / "r")).commits)
    return {ids.index(commit): (when - steps[ids.index(commit)].time) // DAY for commit, when in known.items()}


def story(*after: Step) -> list[Step]:
    """A beginning long ago, then a commit that brings four lines, and what follows."""
    return [
        Step(BEGIN, "Begin", {"a.py": code(*OLD)}),
        Step(BEGIN + 400 * DAY, "Bring four lines", {"a.py": code(*OLD, "n1", "n2", "n3", "n4")}),
        *after,
    ]


def at(days: int, message: str, files: dict[str, str | bytes | None]) -> Step:
    return Step(BEGIN + (400 + days) * DAY, message, files)


def test_a_fix_of_its_lines_fails_a_commit(tmp_path: Path) -> None:
    assert failed(tmp_path, story(at(30, "Fix n2", {"a.py": code(*OLD, "n1", "m2", "n3", "n4")}))) == {1: 30}


def test_what_is_no_fix_fails_nobody(tmp_path: Path) -> None:
    assert failed(tmp_path, story(at(30, "Improve n2", {"a.py": code(*OLD, "n1", "m2", "n3", "n4")}))) == {}


def test_a_fix_after_180_days_is_too_late(tmp_path: Path) -> None:
    assert failed(tmp_path, story(at(181, "Fix n2", {"a.py": code(*OLD, "n1", "m2", "n3", "n4")}))) == {}
    assert failed(tmp_path / "2", story(at(179, "Fix n2", {"a.py": code(*OLD, "n1", "m2", "n3", "n4")}))) == {1: 179}


def test_who_owns_less_than_a_quarter_is_not_blamed(tmp_path: Path) -> None:
    """Four old lines and one of the new commit are removed: a fifth."""
    assert failed(tmp_path, story(at(5, "Fix", {"a.py": code(*OLD[:-4], "n2", "n3", "n4")}))) == {}
    # Three and one: exactly a quarter.
    assert failed(tmp_path / "2", story(at(5, "Fix", {"a.py": code(*OLD[:-3], "n2", "n3", "n4")}))) == {1: 5}


def test_a_large_fix_is_none(tmp_path: Path) -> None:
    large = [f"extra_{number}" for number in range(58)]
    assert failed(tmp_path, story(at(5, "Fix", {"a.py": code(*OLD, "n1", "m2", "n3", "n4", *large)}))) == {1: 5}
    larger = [*large, "one too many"]
    assert failed(tmp_path / "2", story(at(5, "Fix", {"a.py": code(*OLD, "n1", "m2", "n3", "n4", *larger)}))) == {}


def test_tests_do_not_make_a_fix_large_and_are_none_alone(tmp_path: Path) -> None:
    tests = code(*[f"assert {number}" for number in range(200)])
    fixed = code(*OLD, "n1", "m2", "n3", "n4")
    assert failed(tmp_path, story(at(5, "Fix", {"a.py": fixed, "tests/test_a.py": tests}))) == {1: 5}
    steps = [
        Step(BEGIN, "Begin", {"tests/test_a.py": code("a", "b"), "README.md": "x\n"}),
        Step(BEGIN + DAY, "Fix test", {"tests/test_a.py": code("a", "c"), "README.md": "y\n"}),
    ]
    assert failed(tmp_path / "2", steps) == {}


def test_lines_that_say_nothing_blame_nobody(tmp_path: Path) -> None:
    steps = story(at(5, "Fix", {"a.py": code(*OLD, "n1", "n2", "n3", "n4", "n5")}))
    steps[1].files = {"a.py": code(*OLD, "# why", "", "n1", "n2", "n3", "n4")}
    assert failed(tmp_path, steps) == {}


def test_adding_lines_blames_nobody(tmp_path: Path) -> None:
    assert failed(tmp_path, story(at(5, "Fix", {"a.py": code(*OLD, "n1", "n2", "n3", "n4", "n5")}))) == {}


def test_a_first_commit_can_fail(tmp_path: Path) -> None:
    steps = [Step(BEGIN, "Begin", {"a.py": code("a", "b")}), Step(BEGIN + DAY, "Fix b", {"a.py": code("a", "c")})]
    assert failed(tmp_path, steps) == {0: 1}


def test_a_renamed_file_keeps_its_history(tmp_path: Path) -> None:
    body = [*OLD, "n1", "n2", "n3", "n4"]
    steps = story(
        at(3, "Move it", {"a.py": None, "b.py": code(*body)}),
        at(9, "Fix n2", {"b.py": code(*OLD, "n1", "m2", "n3", "n4")}),
    )
    assert failed(tmp_path, steps) == {1: 9}


def test_lines_from_a_merged_branch(tmp_path: Path) -> None:
    steps = [
        Step(BEGIN, "Begin", {"a.py": code(*OLD), "b.py": code("x")}),
        Step(BEGIN + DAY, "On a branch", {"a.py": code(*OLD, "n1")}),
        Step(BEGIN + 2 * DAY, "On main", {"b.py": code("x", "y")}, parents=[0]),
        Step(BEGIN + 3 * DAY, "Merge branch", {"a.py": code(*OLD, "n1")}, parents=[2, 1]),
        Step(BEGIN + 9 * DAY, "Fix n1", {"a.py": code(*OLD, "m1")}),
    ]
    assert failed(tmp_path, steps) == {1: 8}


def test_a_revert_by_id_and_by_subject(tmp_path: Path) -> None:
    steps = story()
    ids = make_repository(tmp_path / "0", steps)
    by_id = at(7, f"Back out\n\nThis reverts commit {ids[1]}.\n", {"a.py": code(*OLD)})
    assert failed(tmp_path / "1", story(by_id)) == {1: 7}
    short = at(7, f"Back out\n\nThis reverts commit {ids[1][:8]}, it was bad.\n", {"a.py": code(*OLD)})
    assert failed(tmp_path / "2", story(short)) == {1: 7}
    by_subject = at(7, 'Revert "Bring four lines" (#12)\n\nReverts x/y#11\n', {"a.py": code(*OLD)})
    assert failed(tmp_path / "3", story(by_subject)) == {1: 7}
    late = at(200, 'Revert "Bring four lines"', {"a.py": code(*OLD)})
    assert failed(tmp_path / "4", story(late)) == {}


def test_the_first_time_counts(tmp_path: Path) -> None:
    steps = story(
        at(10, "Fix n1", {"a.py": code(*OLD, "m1", "n2", "n3", "n4")}),
        at(20, "Fix n3", {"a.py": code(*OLD, "m1", "n2", "m3", "n4")}),
    )
    assert failed(tmp_path, steps) == {1: 10}


def test_odd_names_and_contents(tmp_path: Path) -> None:
    name = "dir 'q' -L1,2/é -- x.py"
    steps = [
        Step(BEGIN, "Begin", {"x.py": code("a")}),
        Step(BEGIN + DAY, "Write", {name: code("a", "b")}),
        Step(BEGIN + 2 * DAY, "Fix", {name: code("a", "c")}),
    ]
    assert failed(tmp_path, steps) == {1: 1}


# --- the words


@pytest.mark.parametrize(
    "subject",
    [
        *("Fix crash in parser", "fix: wrong sum", "fix(core): x (#12)", "Fixes #12", "Fixed a leak", "Bugfix for x"),
        *("bug-fix", "Hotfix", "Resolve regression in y", "Avoid deadlock", "Fix X and add tests", "[bug] y"),
    ],
)
def test_subjects_of_fixes(subject: str) -> None:
    assert is_fix_message(subject)


@pytest.mark.parametrize(
    "subject",
    [
        *("Add prefix", "Suffix handling", "Fixture for tests", "Debug output", "Fix typo", "fix lint", "Fix docs"),
        *("Fix failing tests", "Fix CI", "Fix flake8 warnings", "Fix formatting", "Add feature", "", "Affix"),
    ],
)
def test_subjects_of_other_commits(subject: str) -> None:
    assert not is_fix_message(subject)


@pytest.mark.parametrize(
    "line",
    [
        *("Fixes #12", "fixed #12", "  Fixes: #12", "- Fix #12", "Fixes shop/web#12", "Fixes GH-12", "fix issue #12"),
        *("Fixes: https://example.org/shop/issues/12", 'Fixes: 1a2b3c4d5e6f ("Add x")', "Fixes the bug #12"),
    ],
)
def test_a_line_of_the_body_names_what_is_fixed(line: str) -> None:
    assert is_fix_message("Count again", ["", "Some words.", line])
    assert not is_fix_message("Fix typo", ["", line])


@pytest.mark.parametrize(
    "line",
    [
        *("Closes #12", "See #12", "This fixes nothing", "Fixes", "It was fixed in #12", "Prefixes #12", "Refs #12"),
        *("* Fix typo", "Fix the tests", "Fixes a comment"),
    ],
)
def test_other_lines_of_the_body(line: str) -> None:
    assert not is_fix_message("Count again", ["", "Some words.", line])


def test_a_fix_that_its_body_names_fails_a_commit(tmp_path: Path) -> None:
    message = "Count n2 again\n\nIt was counted once only.\n\nFixes #7\n"
    assert failed(tmp_path, story(at(30, message, {"a.py": code(*OLD, "n1", "m2", "n3", "n4")}))) == {1: 30}


def test_reverted_subjects() -> None:
    assert parse_reverted_subject('Revert "Add x (#3)" (#4)') == "Add x (#3)"
    assert parse_reverted_subject('Revert "Revert "Add x""') == 'Revert "Add x"'
    assert parse_reverted_subject("Revert the tide") is None


# --- time


def mined(name: str, time: int, **what: object) -> MinedCommit:
    return MinedCommit(Commit(name * 40, time), Features(files=1), name, **what)  # type: ignore[arg-type]


def test_a_failure_is_never_known_before_there_was_anything_to_fail() -> None:
    """A clock that ran ahead: the commit claims to be younger than its fix."""
    history = [mined("a", 1000 * DAY), mined("b", 900 * DAY, blamed=("a" * 40,))]
    assert find_failures(history) == {"a" * 40: 1000 * DAY}


def test_a_beginning_that_fits_two_commits_names_neither() -> None:
    history = [
        MinedCommit(Commit("ab" + "0" * 38, 1), Features(), "x"),
        MinedCommit(Commit("ab" + "1" * 38, 2), Features(), "y"),
        MinedCommit(Commit("cd" * 20, 3), Features(), "z", reverts=("ab",)),
        MinedCommit(Commit("ef" * 20, 4), Features(), "w", reverts=("ab0",)),
    ]
    assert find_failures(history) == {"ab" + "0" * 38: 4}


def test_fixes_are_counted_in_their_window_and_before() -> None:
    times = FixTimes()
    for day in (10, 200, 20, 100, 190):
        times.add(["a", "b"] if day == 100 else ["a"], day * DAY)
    assert times.count(["a"], 200 * DAY) == 3
    assert times.count(["a"], 200 * DAY + 1) == 3
    assert times.count(["a", "b", "c"], 201 * DAY) == 4
    assert times.count(["a"], 10 * DAY) == 0
    assert times.count(["a"], 10 * DAY + 1) == 1
