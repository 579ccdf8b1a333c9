"""From an action to an estimate, and from an outcome to a state."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput
from aver.gate.action import ACTION_TYPES, Action, Facts
from aver.gate.decision import Thresholds
from aver.gate.risk.estimate import OUTCOMES, estimate, estimate_from_features, explain_estimate, learn_outcome
from aver.gate.risk.features import Features, MeasuredChange, measure_diff
from aver.gate.risk.model import CHANGE, PRIORS, RiskState

NOW = Facts(now="2025-06-01T00:00:00+00:00")
PASS = Thresholds().pass_below


def diff_of(lines: int, path: str = "src/a.py", start: int = 1) -> str:
    body = "".join(f"+value_{number} = {number}\n" for number in range(lines))
    return f"--- a/{path}\n+++ b/{path}\n@@ -{start - 1 if start == 1 else start},0 +{start},{lines} @@\n{body}"


def edit(diff: str | None) -> Action:
    return Action(type="code_edit", tool="Edit", diff=diff, workspace="/work")


def test_a_small_edit_is_surely_safe_and_a_large_one_is_not() -> None:
    assert estimate(edit(diff_of(1)), NOW, RiskState()).high <= PASS
    large = estimate(edit(diff_of(300)), NOW, RiskState())
    assert large.high > PASS
    assert large.score > 0.1
    assert large.observations == 0
    assert large.features["added"] == 300


def test_docs_and_tests_are_surely_safe() -> None:
    for path in ("README.md", "tests/test_a.py"):
        assert estimate(edit(diff_of(500, path)), NOW, RiskState()).high <= PASS


@pytest.mark.parametrize("path", ["package.json", ".github/workflows/a.yml", "vendor/a.go", "bin/tool", "../x.py"])
def test_what_was_never_measured_does_not_pass_alone_or_in_company(path: str) -> None:
    assert estimate(edit(diff_of(1, path)), NOW, RiskState()).high > PASS
    assert estimate(edit(diff_of(1, path) + diff_of(1)), NOW, RiskState()).high > PASS


@pytest.mark.parametrize("diff", [None, "", "\n \n", "nonsense", "+x\n", diff_of(1) + "+more\n"])
def test_a_change_that_does_not_show_itself_does_not_pass(diff: str | None) -> None:
    for kind in ("code_edit", "file_write", "code_gen"):
        found = estimate(replace(edit(diff), type=kind), NOW, RiskState(), effects={"write"})
        assert found.high > PASS
        assert found.high - found.low > 0.2


# --- splitting


@given(st.integers(1, 60), st.integers(1, 12))
def test_splitting_a_change_gains_nothing(lines: int, pieces: int) -> None:
    """The last piece of a change, with its session, is judged no milder than the whole at once."""
    whole = estimate(edit(diff_of(lines * pieces)), NOW, RiskState())
    facts, worst = NOW, 0.0
    for number in range(pieces):
        piece = diff_of(lines, start=1 + number * lines)
        found = estimate(edit(piece), facts, RiskState())
        assert found.change is not None
        before = MeasuredChange(Features.from_dict(facts.changed), facts.changed_files)
        so_far = found.change.plus(before)
        facts = replace(facts, changed=so_far.features.to_dict(), changed_files=so_far.sources)
        assert found.high >= worst
        worst = found.high
    assert worst >= whole.high


def test_a_session_does_not_make_reading_risky() -> None:
    before = measure_diff(diff_of(500))
    facts = replace(NOW, changed=before.features.to_dict(), changed_files=before.sources)
    assert estimate(Action(type="file_read"), facts, RiskState()).high <= PASS
    assert estimate(edit(diff_of(1)), facts, RiskState()).high > PASS


# --- other kinds


def test_reads_and_thoughts_are_surely_safe() -> None:
    for kind in ("file_read", "observation", "decision"):
        assert estimate(Action(type=kind), NOW, RiskState(), effects=frozenset()).high <= PASS
    assert estimate(Action(type="command"), NOW, RiskState(), effects={"read"}, places={"workspace"}).high <= PASS
    assert estimate(Action(type="tool_call"), NOW, RiskState(), effects={"read"}).high <= PASS


@pytest.mark.parametrize("kind", sorted(set(ACTION_TYPES) - {"file_read", "decision", "observation"}))
def test_no_data_never_passes_an_effect(kind: str) -> None:
    for effects in (None, {"write"}, {"execute"}, {"network"}, {"never-heard-of"}):
        assert estimate(Action(type=kind), NOW, RiskState(), effects=effects).high > PASS


@pytest.mark.parametrize("kind", ["code_edit", "file_write", "file_delete", "api_request", "web_request"])
def test_what_changes_things_by_its_type_is_not_believed_to_only_read(kind: str) -> None:
    for effects in (frozenset[str](), frozenset({"read"})):
        assert estimate(Action(type=kind), NOW, RiskState(), effects=effects).high > PASS


def test_a_read_that_does_more_is_not_scored_as_one() -> None:
    found = estimate(Action(type="file_read"), NOW, RiskState(), effects={"read", "egress"})
    assert "network" in found.features
    assert found.high > PASS


def test_a_diff_does_not_hide_what_else_a_tool_does() -> None:
    tool = Action(type="tool_call", diff=diff_of(1), workspace="/work")
    assert estimate(tool, NOW, RiskState(), effects={"write"}).high <= PASS
    assert estimate(tool, NOW, RiskState(), effects={"write", "egress"}).high > PASS
    assert estimate(tool, NOW, RiskState()).high > PASS


def test_effects_places_and_failures_make_it_riskier() -> None:
    command = Action(type="command")
    base = estimate(command, NOW, RiskState(), effects={"write"}).score
    assert estimate(command, NOW, RiskState(), effects={"write", "privilege"}).score > base
    assert estimate(command, NOW, RiskState(), effects={"write"}, places={"outside"}).score > base
    assert estimate(command, replace(NOW, failures=3, uses=3), RiskState(), effects={"write"}).score > base


def test_successes_of_a_tool_lower_nothing() -> None:
    command = Action(type="command")
    quiet = estimate(command, NOW, RiskState(), effects={"execute"})
    assert estimate(command, replace(NOW, failures=0, uses=1000), RiskState(), effects={"execute"}) == quiet


# --- again, and learning


@pytest.mark.parametrize("features", [{"added": 5, "files": 1}, {"command": 1.0, "effect.write": 1.0, "failures": 2.0}])
def test_an_estimate_can_be_computed_again_from_what_it_carries(features: dict[str, float]) -> None:
    state = learn_outcome(RiskState(), features, "failed")
    found = estimate_from_features(features, state)
    assert estimate_from_features(found.features, state) == found
    assert found.model.endswith(state.digest)
    assert found.observations == 1


def test_the_same_question_has_the_same_answer() -> None:
    action = edit(diff_of(40))
    assert estimate(action, NOW, RiskState()) == estimate(action, NOW, RiskState())


def test_what_was_scored_is_what_is_learned_from() -> None:
    found = estimate(edit(diff_of(40)), NOW, RiskState())
    after = learn_outcome(RiskState(), found.features, "survived")
    assert after.level(CHANGE).b < PRIORS[CHANGE].b
    assert after.level("command") == PRIORS["command"]
    for outcome in OUTCOMES:
        moved = learn_outcome(RiskState(), found.features, outcome).level(CHANGE).b  # type: ignore[arg-type]
        assert (moved > PRIORS[CHANGE].b) == (outcome != "survived")


def test_a_kind_narrows_with_its_own_outcomes_only() -> None:
    command = Action(type="command")
    state = RiskState()
    first = estimate(command, NOW, state, effects={"execute"})
    for _ in range(200):
        state = learn_outcome(state, first.features, "survived")
    later = estimate(command, NOW, state, effects={"execute"})
    assert later.high - later.low < first.high - first.low
    assert later.observations == 200
    assert estimate(edit(diff_of(1)), NOW, state).observations == 0


def test_success_told_by_an_agent_is_no_outcome() -> None:
    with pytest.raises(BadInput):
        learn_outcome(RiskState(), {"added": 1}, "success")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, "x", None, 1e308])
def test_features_from_outside_do_no_harm(value: object) -> None:
    for features in (
        {"added": value},
        {"command": 1.0, "failures": value},
        {f"effect.{n}": value for n in range(2000)},
    ):
        found = estimate_from_features(features, RiskState())  # type: ignore[arg-type]
        assert 0 <= found.low <= found.score <= found.high <= 1


def test_history_is_asked_about_the_source_files() -> None:
    class History:
        def fixes_before(self, paths: object, now: str) -> int:
            assert set(paths) == {"src/a.py"}  # type: ignore[call-overload]
            assert now == NOW.now
            return 9

    found = estimate(edit(diff_of(2) + diff_of(2, "README.md")), NOW, RiskState(), History())
    assert found.features["fixes"] == 9
    assert found.score > estimate(edit(diff_of(2)), NOW, RiskState()).score


def test_words() -> None:
    state = RiskState(note="what was learned here is not used: x; the shipped prior is")
    said = " · ".join(explain_estimate(estimate(edit(diff_of(1) + diff_of(2, "a.json")), NOW, state), state))
    assert "1 line of code added in 1 source file" in said
    assert "1 file of a kind that was never measured" in said
    assert "no outcomes of this workspace" in said
    assert "what was learned here is not used" in said
    assert "not shown" in explain_estimate(estimate(edit(None), NOW, RiskState()), RiskState())[0]
    failing = estimate(Action(type="command"), replace(NOW, failures=1), RiskState())
    assert "1 recent failure of the same tool" in explain_estimate(failing, RiskState())
    unclear = estimate(edit(diff_of(3) + "+more\n"), NOW, RiskState())
    assert any("could not be judged" in words for words in explain_estimate(unclear, RiskState()))


def test_measuring_is_that_of_features() -> None:
    diff = diff_of(7)
    assert estimate(edit(diff), NOW, RiskState()).features == measure_diff(diff).features.to_dict()


def test_an_empty_diff_of_an_agent_shows_nothing() -> None:
    """Only the gateway, which makes the diff itself, can say by an empty one that nothing changes."""
    action = edit("")
    told = estimate(action, NOW, RiskState())
    assert told.change is None
    assert estimate(replace(action, request_sha256="0" * 64), NOW, RiskState()).change is not None
