"""The starter set as a whole: nothing that an agent puts into a call makes the answer milder, and one rule permits."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.action import ACTION_TYPES, Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision import CAUTIONS, DECISIONS
from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.routine_commands import ROUTINE_EFFECTS
from aver.gate.policy.bundle import load_policy_bundle
from aver.gate.policy.query import PolicyQuestion, Target, ask_policy, flatten_arguments
from support import shell_corpus

NOW = Facts(now="2026-01-05T09:00:00+00:00")
BUNDLE = load_policy_bundle()
GATE = Gate(bundle=BUNDLE)
ORDER = ("allow", "step_up", "deny")
ALL_EFFECTS = sorted((*EFFECTS, *ROUTINE_EFFECTS))

TARGETS = (
    Target("Path", "/work/shop/a.py", "workspace"),
    Target("Path", "/tmp/a", "temporary"),
    Target("Path", "/etc/a", "outside", frozenset({"system"})),
    Target("Path", "/work/other/a", "outside", effects=frozenset({"read"})),
    Target("Path", "/home/me/.config/a", "private", effects=frozenset({"read"})),
    Target("Path", "/work/shop/.git/config", "workspace", frozenset({"git", "hooks"})),
    Target("Path", "/work/shop/.env", "workspace", frozenset({"secret"})),
    Target("Path", "/home/me/.aver/x", "outside", frozenset({"aver"})),
    Target("Path", "", "unknown"),
    Target("Host", "example.org"),
    Target("Recipient", "someone"),
    Target("Command", "ls", text="ls"),
    Target("Tool", "t", text="s"),
)

questions = st.builds(
    PolicyQuestion,
    agent=st.sampled_from(["", "agent"]),
    action=st.sampled_from(ACTION_TYPES),
    targets=st.lists(st.sampled_from(TARGETS), min_size=1, max_size=3, unique=True).map(tuple),
    effects=st.frozensets(st.sampled_from(ALL_EFFECTS), max_size=4),
    labels=st.frozensets(st.sampled_from(["secret", "other"])),
    unclear=st.booleans(),
    risk=st.sampled_from(["low", "unsure", "high"]),
    caution=st.sampled_from(CAUTIONS),
)


def outcome(question: PolicyQuestion) -> int:
    answer = ask_policy(BUNDLE, question)
    assert answer.errors == ()
    return ORDER.index(answer.outcome)


@given(questions)
def test_one_rule_permits_and_it_is_the_only_one_told(question: PolicyQuestion) -> None:
    answer = ask_policy(BUNDLE, question)
    assert answer.reasons
    if answer.outcome == "allow":
        # A path outside has a rule of its own, beside the one for all else that the action touches.
        assert len(set(answer.rules) - {"outside-reads"}) <= 1


@given(questions)
def test_strict_is_never_milder(question: PolicyQuestion) -> None:
    assert outcome(replace(question, caution="strict")) >= outcome(replace(question, caution="balanced"))


@given(questions)
def test_what_is_unclear_never_passes(question: PolicyQuestion) -> None:
    assert outcome(replace(question, unclear=True)) >= 1


@given(questions, st.sampled_from([effect for effect in ALL_EFFECTS if effect != "create"]))
def test_one_more_effect_never_makes_a_question_milder(question: PolicyQuestion, effect: str) -> None:
    """But for `create`, which says of the effect `write` that all files are new."""
    assert outcome(replace(question, effects=question.effects | {effect})) >= outcome(question)


@given(questions, st.sampled_from(TARGETS))
def test_one_more_target_never_makes_a_question_milder(question: PolicyQuestion, target: Target) -> None:
    assert outcome(replace(question, targets=(*question.targets, target))) >= outcome(question)


@given(questions, st.sampled_from(["secret", "other"]))
def test_one_more_label_never_makes_a_question_milder(question: PolicyQuestion, label: str) -> None:
    assert outcome(replace(question, labels=question.labels | {label})) >= outcome(question)


@given(questions)
def test_higher_risk_never_makes_a_question_milder(question: PolicyQuestion) -> None:
    found = [outcome(replace(question, risk=risk)) for risk in ("low", "unsure", "high")]  # type: ignore[arg-type]
    assert found == sorted(found)


ALWAYS_PASSING = ({"read", "write"}, {"read", "arrange", "build"}, {"read", "call-read"})
QUIET = {"read", "arrange", "git-state", "file-state", "scratch"}
NEW_CODE = {"write", "create", "seen", "build"}
RUNNING = {*QUIET, "build", "locked-install", "loopback", "service-read", "git-fetch"}


@pytest.mark.more
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_which_effects_pass_at_the_lowest_risk(size: int) -> None:
    for effects in itertools.combinations(ALL_EFFECTS, size):
        question = PolicyQuestion(
            agent="a", action="tool_call", targets=TARGETS[:1], effects=frozenset(effects), risk="low"
        )
        passing = (*ALWAYS_PASSING, {*QUIET, "write"}, RUNNING)
        expected = any(set(effects) <= allowed for allowed in passing)
        # `create` stands beside `write`, and `seen` beside both.
        expected |= "create" in effects and set(effects) <= {*QUIET, "write", "create", "seen"}
        assert (ask_policy(BUNDLE, question).outcome == "allow") == expected, effects
        if size < 3:
            answer = ask_policy(BUNDLE, replace(question, caution="strict"))
            expected = any(set(effects) <= allowed for allowed in ALWAYS_PASSING)
            assert (answer.outcome == "allow") == expected, effects


@pytest.mark.parametrize(
    ("effect", "rule"),
    [
        ("git-state", "git-state"),
        ("git-fetch", "git-fetch"),
        ("service-read", "service-reads"),
        ("loopback", "loopback"),
        ("locked-install", "locked-installs"),
        ("scratch", "scratch-files"),
        ("file-state", "file-state"),
    ],
)
def test_a_harmless_form_passes_by_a_rule_of_its_own(effect: str, rule: str) -> None:
    question = PolicyQuestion(agent="a", action="shell_exec", targets=TARGETS[:1], effects=frozenset({"read", effect}))
    assert ask_policy(BUNDLE, question).rules == (rule,)
    strict = ask_policy(BUNDLE, replace(question, caution="strict"))
    assert (strict.outcome, strict.rules) == ("step_up", ("strict-caution",))
    marked = ask_policy(BUNDLE, replace(question, labels=frozenset({"secret"})))
    assert (marked.outcome == "allow") == (effect in QUIET)


def test_new_files_run_only_if_they_were_looked_at() -> None:
    question = PolicyQuestion(agent="a", action="shell_exec", targets=TARGETS[:1], effects=frozenset(NEW_CODE))
    for more in ("read", "arrange", "file-state", "scratch"):
        answer = ask_policy(BUNDLE, replace(question, effects=frozenset({*NEW_CODE, more})))
        assert (answer.outcome, answer.rules) == ("allow", ("new-code",))
    for less in NEW_CODE - {"build"}:
        assert ask_policy(BUNDLE, replace(question, effects=frozenset(NEW_CODE - {less}))).outcome == "step_up", less
    for more in set(ALL_EFFECTS) - NEW_CODE - {"read", "arrange", "file-state", "scratch"}:
        assert ask_policy(BUNDLE, replace(question, effects=frozenset({*NEW_CODE, more}))).outcome != "allow", more
    assert ask_policy(BUNDLE, replace(question, caution="strict")).outcome == "step_up"
    assert ask_policy(BUNDLE, replace(question, labels=frozenset({"secret"}))).outcome == "step_up"
    for target in (TARGETS[2], *TARGETS[4:9]):
        assert ask_policy(BUNDLE, replace(question, targets=(target,))).outcome != "allow", target


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
known_names = ["approved", "context", "risk", "unclear", "effects", "labels", "__entity", "__extn", "content", "cwd"]
known_names += ["file_path", "path", "url", "command", "description", "timeout", "server_name", "readOnlyHint"]
arguments = st.dictionaries(st.sampled_from(known_names) | st.text(), values, max_size=5)


@given(questions, arguments)
def test_no_argument_changes_an_answer_but_by_what_it_touches(question: PolicyQuestion, given_: dict[str, Any]) -> None:
    """The starter rules look at no argument: only whether all could be read counts, and that makes it stricter."""
    found = flatten_arguments(given_)
    expected = outcome(replace(question, unclear=question.unclear or not found.complete))
    assert outcome(replace(question, arguments=found)) == expected


CALLS = [
    ("tool_call", "mcp__mail__send", {}),
    ("tool_call", "frobnicate", {}),
    ("unknown", "", {}),
    ("shell_exec", "Bash", {"command": "curl https://example.org"}),
    ("shell_exec", "Bash", {"command": "eval $X"}),
    ("file_delete", "delete_file", {"path": "a.py"}),
    ("file_read", "Read", {"file_path": "/work/shop/.env"}),
    ("web_request", "WebFetch", {"url": "https://example.org"}),
]


@given(st.sampled_from(CALLS), arguments)
def test_no_further_argument_lets_a_call_pass(call: tuple[str, str, dict[str, Any]], given_: dict[str, Any]) -> None:
    kind, tool, own = call
    action = Action(type=kind, tool=tool, arguments={**given_, **own}, workspace="/work/shop")
    decision = decide(action, NOW, GATE)
    assert decision.decision in ("human_review", "skip")
    assert decision.reasons


@given(st.sampled_from(ACTION_TYPES), st.text(max_size=20), arguments, st.lists(st.text(), max_size=3), st.text())
def test_any_action_is_decided(kind: str, tool: str, given_: dict[str, Any], files: list[str], workspace: str) -> None:
    action = Action(type=kind, tool=tool, arguments=given_, files=tuple(files), workspace=workspace)
    decision = decide(action, NOW, GATE)
    assert decision.decision in DECISIONS
    assert decision.reasons


@pytest.mark.more
def test_of_all_commands_of_the_corpus_the_right_ones_pass() -> None:
    facts = replace(NOW, environment={"HOME": shell_corpus.HOME})
    for case in shell_corpus.cases():
        action = Action(
            type="shell_exec", tool="Bash", arguments={"command": case.command}, workspace=shell_corpus.WORKSPACE
        )
        decision, strict = decide(action, facts, GATE), decide(action, facts, replace(GATE, caution="strict"))
        if case.section == shell_corpus.READS:
            assert (decision.decision, strict.decision) == ("pass", "pass"), case.command
        elif case.section == shell_corpus.MORE:
            assert strict.decision != "pass" or case.targets == {"read /tmp/x temporary"}, case.command
        for found, allowed in ((decision, RUNNING), (strict, {"read", "build", "arrange"})):
            if found.decision == "pass":
                assert found.effects is not None
                assert found.effects.classes <= allowed, case.command


NUMBERS = [2**63, -(2**63) - 1, 2**64, 10**400, 1.5, -0.0, 1e308]


@pytest.mark.parametrize("value", NUMBERS, ids=range(len(NUMBERS)))
def test_numbers_of_any_size_reach_the_rules(value: float) -> None:
    action = Action(type="file_read", tool="Read", arguments={"file_path": "a.py", "n": value}, workspace="/work/shop")
    assert decide(action, NOW, GATE).decision == "pass"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"\udfff": 1}, b"x", object()], ids=range(6))
def test_what_is_no_json_is_refused(value: Any) -> None:
    action = Action(type="file_read", tool="Read", arguments={"file_path": "a.py", "n": value}, workspace="/work/shop")
    decision = decide(action, NOW, GATE)
    assert (decision.decision, decision.digest) == ("skip", "")


def test_deep_and_huge_arguments_do_not_pass() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    for more in (deep, "x" * 2_000_000, list(range(5000))):
        action = Action(
            type="file_read", tool="Read", arguments={"file_path": "a.py", "n": more}, workspace="/work/shop"
        )
        assert decide(action, NOW, GATE).decision == "human_review"
