"""Explanations: what is said would have changed the answer does change it."""

from __future__ import annotations

from dataclasses import replace

from aver.gate.policy.bundle import load_policy_bundle
from aver.gate.policy.lint import Counterfactual, explain_answer
from aver.gate.policy.query import TARGETS_MAX, FlatArguments, PolicyQuestion, Target, ask_policy

INSIDE, OUTSIDE = Target("Path", "/work/a.py", "workspace"), Target("Path", "/etc/x", "outside")
READ = PolicyQuestion(agent="a", action="file_read", targets=(INSIDE,), effects=frozenset({"read"}))
STARTER = load_policy_bundle()


def turns(question: PolicyQuestion) -> set[tuple[str, ...]]:
    return {turn.changes for turn in explain_answer(STARTER, question).turns}


def test_what_passes_needs_no_change() -> None:
    why = explain_answer(STARTER, READ)
    assert (why.answer.outcome, why.answer.rules, why.turns) == ("allow", ("workspace-reads",), ())


def test_risk_labels_doubts_effects_and_targets_are_told() -> None:
    write = replace(READ, effects=frozenset({"write"}))
    assert ("its risk were low",) in turns(write)
    marked = replace(READ, effects=frozenset({"build"}), labels=frozenset({"secret"}))
    assert ("the session were not marked 'secret'",) in turns(marked)
    assert ("all of it were understood",) in turns(replace(READ, unclear=True))
    assert ("all of it were understood",) in turns(replace(READ, arguments=FlatArguments(complete=False)))
    assert ("it did not have the effect 'delete'",) in turns(replace(READ, effects=frozenset({"read", "delete"})))
    assert ("it left path /etc/x alone",) in turns(replace(READ, targets=(INSIDE, OUTSIDE)))


def test_a_human_turns_a_step_up_and_no_refusal() -> None:
    step_up = replace(READ, effects=frozenset({"network"}))
    assert Counterfactual(("a human approved it",), "allow") in explain_answer(STARTER, step_up).turns
    refusal = explain_answer(STARTER, replace(READ, effects=frozenset({"secret", "egress"})))
    assert refusal.answer.outcome == "deny"
    assert all("a human approved it" not in turn.changes for turn in refusal.turns)
    assert Counterfactual(("it did not have the effect 'secret'",), "step_up") in refusal.turns


def test_of_a_call_the_users_words_are_told_and_not_that_it_is_a_call() -> None:
    meaning = {"class": "send", "asked": False, "origins": ["nowhere"], "doubts": ["NOT_ASKED", "TARGET_UNKNOWN"]}
    call = PolicyQuestion(
        agent="a",
        action="tool_call",
        targets=(Target("Tool", "mcp__mail__send"),),
        effects=frozenset({"call"}),
        meaning=meaning,
    )
    found = turns(call)
    assert ("the user had asked for it and named all that it goes to",) in found
    assert not any("effect 'call'" in words for change in found for words in change)


def test_several_changes_are_told_together_and_none_too_many() -> None:
    question = replace(READ, effects=frozenset({"read", "network", "install"}), labels=frozenset({"other"}))
    found = {turn.changes for turn in explain_answer(STARTER, question).turns}
    assert ("it did not have the effect 'install'", "it did not have the effect 'network'") in found


def test_each_target_is_answered_by_itself() -> None:
    why = explain_answer(STARTER, replace(READ, targets=(INSIDE, OUTSIDE)))
    assert [(target.name, answer.outcome) for target, answer in why.by_target] == [
        ("/work/a.py", "allow"),
        ("/etc/x", "step_up"),
    ]


def test_very_many_targets_are_explained_in_bounds() -> None:
    many = tuple(Target("Path", f"/work/{number}", "workspace") for number in range(TARGETS_MAX * 3))
    why = explain_answer(STARTER, replace(READ, targets=many))
    assert why.answer == ask_policy(STARTER, replace(READ, targets=many))
    assert why.answer.outcome == "allow"
    assert len(why.by_target) == TARGETS_MAX
