"""Learning a history: in order, once, and never from the future."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.risk.estimate import learn_outcome
from aver.gate.risk.features import Features
from aver.gate.risk.history.learn import (
    MATURITY,
    CommitSample,
    build_samples,
    learn_history,
    learn_samples,
    score_in_time_order,
)
from aver.gate.risk.history.mined_commits import CommitCache, mine_history
from aver.gate.risk.history.repository import open_repository
from aver.gate.risk.model import CHANGE, PRIORS, RiskState, change_offset, score_change, update_level
from aver.gate.risk.state import load_state, state_path, update_state
from support.bench_modules import risk_report
from support.git_histories import BEGIN, DAY, Step, git, make_repository, pretended_history

PRETENDED = pretended_history(150, seed=3, per_day=0.4)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    directory = tmp_path_factory.mktemp("project") / "r"
    return directory, make_repository(directory, PRETENDED.steps)


def sample(day: int, added: int = 5, failed_on: int | None = None) -> CommitSample:
    failed_at = None if failed_on is None else failed_on * DAY
    return CommitSample(f"{day}-{added}", day * DAY, Features(added=added, files=1), failed_at)


# --- the order of things


def test_by_hand() -> None:
    """The first outcome is known on day 90: it moves what is said on day 90, and nothing before."""
    samples = [sample(0, failed_on=40), sample(50), sample(89), sample(90), sample(200)]
    scored = list(score_in_time_order(samples))
    prior = PRIORS[CHANGE]
    first = update_level(prior, change_offset(samples[0].features), failed=True)
    assert [item.score for item in scored[:3]] == [score_change(samples[0].features, prior)] * 3
    assert scored[3].score == score_change(samples[0].features, first)
    later = first
    for item in samples[1:4]:
        later = update_level(later, change_offset(item.features), failed=False)
    assert scored[4].score == score_change(samples[0].features, later)
    assert {item.fixed for item in scored} == {scored[0].score.p}


def test_a_failure_after_ninety_days_is_learned_as_none() -> None:
    early, late = [sample(0, failed_on=90), sample(500)], [sample(0, failed_on=91), sample(500)]
    none = [sample(0), sample(500)]
    assert [item.score for item in score_in_time_order(late)] == [item.score for item in score_in_time_order(none)]
    assert [item.score for item in score_in_time_order(early)] != [item.score for item in score_in_time_order(none)]


Days = list[tuple[int, int, int | None]]


def in_order(days: Days) -> Days:
    return sorted(days, key=lambda item: item[:2])


DAYS = st.lists(st.tuples(st.integers(0, 700), st.integers(0, 300), st.none() | st.integers(0, 179)), max_size=25)


@given(DAYS, st.integers(0, 900), st.integers(0, 900))
def test_no_future_label_changes_a_past_score(days: Days, now: int, other: int) -> None:
    samples = [sample(day, added, None if after is None else day + after) for day, added, after in in_order(days)]
    past = [item for item in score_in_time_order(samples) if item.sample.time < now * DAY]
    # Everything that becomes known from now on becomes something else.
    changed = [
        replace(item, failed_at=(now + other) * DAY) if item.failed_at is None or item.failed_at >= now * DAY else item
        for item in samples
    ]
    again = [item for item in score_in_time_order(changed) if item.sample.time < now * DAY]
    assert [(item.fixed, item.score) for item in past] == [(item.fixed, item.score) for item in again]
    # And what comes after now need not have happened at all.
    cut = score_in_time_order([item for item in samples if item.time < now * DAY])
    assert [item.score for item in cut] == [item.score for item in past]


@given(DAYS, st.lists(st.integers(0, 1200), max_size=4))
def test_learning_in_any_number_of_goes_is_the_same(days: Days, stops: list[int]) -> None:
    samples = [sample(day, added, None if after is None else day + after) for day, added, after in in_order(days)]
    end = 1200 * DAY
    at_once = learn_samples(RiskState(), samples, end)
    state = RiskState()
    for stop in [*sorted(stops), 1200]:
        state = learn_samples(state, [item for item in samples if item.time <= stop * DAY], stop * DAY)
    assert state == at_once
    assert learn_samples(state, samples, end) == state
    assert state.level(CHANGE).observations == len(samples)


def test_learning_backwards_does_nothing() -> None:
    samples = [sample(0), sample(1)]
    state = learn_samples(RiskState(), samples, 500 * DAY)
    assert learn_samples(state, samples, 100 * DAY) == state


# --- a real repository


def test_a_history_is_learned_once(project: tuple[Path, list[str]]) -> None:
    directory, _ = project
    calls: list[tuple[int, int]] = []
    first = learn_history(directory, lambda done, total: calls.append((done, total)))
    assert first.commits == len(PRETENDED.steps)
    assert first.learned > 0
    assert calls == [(number + 1, 150) for number in range(150)]
    assert load_state(directory) == first.state
    again = learn_history(directory, lambda done, total: calls.append((done, total)))
    assert (again.learned, again.state) == (0, first.state)
    assert len(calls) == 150


def test_labels_are_those_that_were_made(project: tuple[Path, list[str]]) -> None:
    directory, ids = project
    samples = {item.id: item for item in build_samples(mine_history(open_repository(directory)).commits)}
    found = {number for number, commit in enumerate(ids) if samples[commit].failed_at is not None}
    assert found <= PRETENDED.failing
    assert len(found) >= 0.6 * len(PRETENDED.failing)


def test_outcomes_of_the_gate_itself_stay(project: tuple[Path, list[str]]) -> None:
    directory, _ = project
    learned = learn_history(directory).state
    update_state(directory, lambda state: learn_outcome(state, {"added": 500, "files": 1}, "failed"))
    mine = load_state(directory)
    assert mine.level(CHANGE).b > learned.level(CHANGE).b
    assert learn_history(directory).state == mine


def test_an_interrupted_run_goes_on_where_it_was(
    project: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from aver.gate.risk.history import mined_commits

    directory, _ = project
    monkeypatch.setattr(mined_commits, "BATCH_COMMITS", 10)

    def interrupt(done: int, total: int) -> None:
        if done == 57:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_history(directory, interrupt)
    assert len(CommitCache(directory).read()) == 50
    calls: list[int] = []
    interrupted = learn_history(directory, lambda done, _: calls.append(done))
    assert calls == list(range(51, 151))
    assert len(CommitCache(directory).read()) == 150
    state_path(directory).unlink()
    state_path(directory).with_suffix(".history.jsonl").unlink()
    assert learn_history(directory) == interrupted


def test_a_history_that_grows_is_learned_on(tmp_path: Path) -> None:
    whole = make_repository(tmp_path / "whole", PRETENDED.steps)
    make_repository(tmp_path / "grows", PRETENDED.steps[:100])
    first = learn_history(tmp_path / "grows")
    (tmp_path / "grows" / ".git").rename(tmp_path / "old")
    (tmp_path / "whole" / ".git").rename(tmp_path / "grows" / ".git")
    second = learn_history(tmp_path / "grows")
    assert second.learned > 0
    assert second.commits == len(whole)
    assert second.state.level(CHANGE).observations == first.learned + second.learned
    state_path(tmp_path / "grows").unlink()
    assert learn_history(tmp_path / "grows").state.level(CHANGE).observations == second.state.level(CHANGE).observations


def test_features_do_not_know_the_future_of_their_history(tmp_path: Path) -> None:
    """What is mined of a commit is the same whether or not anything came after it."""
    make_repository(tmp_path / "short", PRETENDED.steps[:80])
    ids = make_repository(tmp_path / "long", PRETENDED.steps)
    short = mine_history(open_repository(tmp_path / "short")).commits
    long = mine_history(open_repository(tmp_path / "long")).commits
    assert [item.features for item in short] == [item.features for item in long[:80]]
    assert [item.commit.id for item in long] == ids
    assert any(item.features.fixes for item in short)


def test_commits_that_touch_no_source_are_no_samples(tmp_path: Path) -> None:
    steps = [
        Step(BEGIN, "Docs", {"README.md": "x\n", "tests/test_a.py": "y\n", "a.json": "{}\n"}),
        Step(BEGIN + DAY, "Code", {"a.py": "x\n"}),
        Step(BEGIN + 2 * DAY, "Nothing", {}),
    ]
    ids = make_repository(tmp_path / "r", steps)
    assert [item.id for item in build_samples(mine_history(open_repository(tmp_path / "r")).commits)] == [ids[1]]


def test_clocks_that_lie(tmp_path: Path) -> None:
    """Times before 1970, far in the future and out of order: nothing is learned that is not known yet."""
    steps = [
        Step(BEGIN, "One", {"a.py": "1\n"}),
        Step(4_000_000_000, "From the future", {"a.py": "1\n2\n"}),
        Step(BEGIN + DAY, "Fix two", {"a.py": "1\n3\n"}),
        Step(0, "From 1970", {"a.py": "1\n3\n4\n"}),
    ]
    make_repository(tmp_path / "r", steps)
    summary = learn_history(tmp_path / "r")
    assert summary.commits == 4
    assert summary.learned == 3
    assert summary.state.learned_until < 4_000_000_000 + MATURITY


# --- what is kept of it


def test_damaged_lines_are_found_out_again(project: tuple[Path, list[str]]) -> None:
    directory, _ = project
    whole = learn_history(directory)
    file = state_path(directory).with_suffix(".history.jsonl")
    lines = file.read_bytes().split(b"\n")
    lines[5] = lines[5].replace(b"0", b"1")
    lines[9] = b"nonsense"
    file.write_bytes(b"\n".join(lines)[:-100])
    calls: list[int] = []
    state_path(directory).unlink()
    assert learn_history(directory, lambda done, _: calls.append(done)).state == whole.state
    assert len(calls) == 3


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\0" * 1000, b"x y\n" * 100, b"0123456789abcdef []\n"])
def test_a_hostile_file_of_commits_is_passed_over(content: bytes, project: tuple[Path, list[str]]) -> None:
    directory, _ = project
    file = state_path(directory).with_suffix(".history.jsonl")
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert CommitCache(directory).read() == {}
    assert learn_history(directory).commits == 150


def test_numbers_out_of_bounds_are_passed_over(tmp_path: Path, aver_home: Path) -> None:
    import hashlib

    import orjson

    from aver.gate.risk.history.mined_commits import RULES

    def line(*parts: object) -> bytes:
        body = orjson.dumps(parts)
        return hashlib.sha256(RULES + body).hexdigest()[:16].encode() + b" " + body + b"\n"

    good = ("a" * 40, 5, [1, 2, 3, 4, 5, 6, 7, 8], "s", [], [], [], "")
    bad = [
        *(("a" * 40, -1, *good[2:]), ("a" * 40, 1.5, *good[2:]), (7, *good[1:]), (*good[:2], [1], *good[3:])),
        *((*good[:2], [-1, 2, 3, 4, 5, 6, 7, 8], *good[3:]), (*good[:2], [1e9, 2, 3, 4, 5, 6, 7, 8], *good[3:])),
        *((*good[:4], [7], *good[5:]), good[:-1], (*good[:2], None, *good[3:])),
    ]
    file = state_path(tmp_path).with_suffix(".history.jsonl")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(line(*parts) for parts in bad))
    assert CommitCache(tmp_path).read() == {}
    file.write_bytes(line(*good))
    assert len(CommitCache(tmp_path).read()) == 1


# --- objects that a clone lacks


def remove_object(directory: Path, name: str) -> None:
    """Take one object out of the repository. Packs are unpacked first."""
    for pack in sorted((directory / ".git/objects/pack").glob("*.pack")):
        moved = directory / pack.name
        pack.rename(moved)
        pack.with_suffix(".idx").unlink()
        git(directory, "unpack-objects", "-q", given=moved.read_bytes())
        moved.unlink()
    place = directory / ".git/objects" / name[:2] / name[2:]
    place.chmod(0o600)
    place.unlink()


def steps_of_two_files(count: int) -> list[Step]:
    """Every commit changes `a.py`; every third one changes `b.py` as well."""
    steps = []
    for number in range(count):
        files: dict[str, str | bytes | None] = {"a.py": "".join(f"a_{number}_{line}\n" for line in range(number + 1))}
        if number % 3 == 0:
            files["b.py"] = f"b_{number}\n"
        steps.append(Step(BEGIN + number * 10 * DAY, f"Step {number}", files))
    return steps


@pytest.mark.parametrize("lost", [(0,), (7,), (29,), (3, 12, 21), tuple(range(30))])
def test_a_missing_content_costs_only_the_commits_that_need_it(tmp_path: Path, lost: tuple[int, ...]) -> None:
    directory = tmp_path / "r"
    ids = make_repository(directory, steps_of_two_files(30))
    whole = {item.commit.id: item for item in mine_history(open_repository(directory), home=tmp_path / "1").commits}
    contents = [git(directory, "rev-parse", f"{ids[number]}:a.py").strip() for number in lost]
    for content in contents:
        remove_object(directory, content)
    found = mine_history(open_repository(directory), home=tmp_path / "2")
    # A content is needed by the commit that brings it, and by the next one, which replaces it.
    broken = {ids[number] for at in lost for number in (at, at + 1) if number < len(ids)}
    assert {item.commit.id for item in found.commits} == set(ids) - broken
    assert found.unreadable == len(broken)
    assert [item for item in found.commits if item != whole[item.commit.id]] == []


def test_a_missing_directory_costs_only_the_commits_that_need_it(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    ids = make_repository(directory, steps_of_two_files(12))
    remove_object(directory, git(directory, "rev-parse", f"{ids[5]}^{{tree}}").strip())
    found = mine_history(open_repository(directory))
    assert {item.commit.id for item in found.commits} == set(ids) - {ids[5], ids[6]}
    assert found.unreadable == 2


def test_what_was_left_out_is_said_and_mined_when_it_is_there(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    ids = make_repository(directory, steps_of_two_files(12))
    content = git(directory, "rev-parse", f"{ids[4]}:a.py").strip()
    data = git(directory, "cat-file", "-p", content).encode()
    remove_object(directory, content)
    assert learn_history(directory).unreadable == 2
    assert "2 commits are left out" in risk_report.build_report(directory).to_text()
    assert git(directory, "hash-object", "-w", "--stdin", given=data).strip() == content
    assert learn_history(directory).unreadable == 0
    assert risk_report.build_report(directory).evaluation.commits == 12
