"""Facts, risk state and fixes as JSON: nothing is lost, and another process decides the same."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.agents.registry import provide_known_agents
from aver.capsule.canonical import canonical_bytes
from aver.errors import AverError, BadInput, NotCanonical, Refused
from aver.gate.action import Action, Facts
from aver.gate.ask import ask
from aver.gate.decide import Gate, decide
from aver.gate.facts.decision_inputs import (
    DecisionInputs,
    facts_from_dict,
    facts_to_dict,
    read_recorded_inputs,
)
from aver.gate.policy.bundle import STARTER_DIRECTORY, build_policy_bundle, load_policy_bundle, read_starter_files
from aver.gate.policy.cases import read_cases
from aver.gate.risk.model import PRIORS, RiskLevel, RiskState
from aver.gate.risk.state import TIME_MAX
from aver.ledger import Ledger
from support import shell_corpus
from support.strategies import json_objects

provide_known_agents()

HERE = Gate(bundle=load_policy_bundle())
ELSEWHERE = Gate(bundle=build_policy_bundle(read_starter_files()))
"""The gate of another process: the same rules, read from their texts."""

CASES = [(case.action, case.facts) for case in read_cases(STARTER_DIRECTORY / "cases.toml")]
COMMANDS = [case.command for case in shell_corpus.cases()]
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,1 +1,3 @@\n-x = 1\n+if x:\n+    x = 2\n+import os\n"

paths = st.sampled_from(["/work/shop/src/a.py", "/work/shop/.env", "/work/shop/tests/test_a.py", "/etc/passwd", "*"])
counts = st.integers(0, 500)
asked_calls = st.fixed_dictionaries(
    {"gate_id": st.just("g1"), "call_id": st.just("c1"), "labels": st.just(["secret"]), "unseen": st.lists(paths)}
)
facts_values = st.builds(
    Facts,
    now=st.datetimes().map(lambda moment: f"{moment.isoformat()}+00:00"),
    changed=st.dictionaries(st.sampled_from(["added", "removed", "files", "branches", "unclear"]), counts),
    changed_files=st.lists(paths, max_size=3).map(tuple),
    labels=st.frozensets(st.sampled_from(["secret", "other"])),
    denials=st.integers(0, 5),
    recent=st.dictionaries(st.sampled_from(["read", "network"]), counts),
    failures=counts,
    uses=counts,
    approved=st.booleans(),
    approved_by=st.sampled_from(["", "person:ada", "person:ada, person:bob"]),
    annotations=json_objects | st.fixed_dictionaries({"readOnlyHint": st.booleans()}),
    declared=st.sampled_from([{}, {"effects": ["read"], "by": "settings"}]),
    environment=st.dictionaries(st.sampled_from(["HOME", "AVER_HOME", "AVER_TREE"]), paths),
    links=st.dictionaries(paths, paths),
    absent=st.lists(paths, max_size=3).map(tuple),
    written=st.none() | st.just(DIFF) | st.text(max_size=20).filter(str.isprintable),
    unseen=st.lists(paths, max_size=3).map(tuple),
    asked=st.lists(asked_calls, max_size=2).map(tuple),
    git=st.sampled_from([{}, {"fetched": True}, {"stored": {"/work/shop/src/a.py": ""}, "fetched": False}]),
    code=st.dictionaries(paths, st.fixed_dictionaries({"sha256": st.none() | st.just("0" * 64), "found": st.just([])})),
)
levels = st.builds(RiskLevel, st.floats(-10, 4), st.floats(1e-6, 4), st.integers(1, 10**9))
states = st.builds(
    RiskState,
    st.dictionaries(st.sampled_from(sorted(PRIORS)), levels),
    st.integers(0, TIME_MAX),
    st.sampled_from(["", "what was learned here is not used: it is damaged"]),
)
corpus_actions = st.sampled_from([action for action, _ in CASES]) | st.sampled_from(COMMANDS).map(
    lambda command: Action(type="shell_exec", tool="Bash", arguments={"command": command}, workspace="/work/shop")
)
edits = st.just(Action(type="code_edit", tool="Edit", files=("src/a.py",), diff=DIFF, workspace="/work/shop"))


class CountedFixes:
    """A history that answers by the names that it is asked for."""

    def fixes_before(self, paths: Collection[str], now: str) -> int:
        return len(paths) * 3 + len(now) % 2


def send(inputs: DecisionInputs) -> DecisionInputs:
    """What another process gets."""
    return DecisionInputs.from_dict(json.loads(json.dumps(inputs.to_dict())))


@settings(max_examples=60, deadline=None)
@given(facts_values, states, st.lists(counts, max_size=2).map(tuple))
def test_nothing_is_lost(facts: Facts, state: RiskState, fixes: tuple[int, ...]) -> None:
    inputs = DecisionInputs(facts, state, fixes)
    again = send(inputs)
    assert again == inputs
    assert again.digest == inputs.digest
    assert facts_from_dict(facts_to_dict(facts)) == facts


@pytest.mark.more
@settings(max_examples=150, deadline=None)
@given(corpus_actions | edits, facts_values, states, st.sampled_from(["s1", ""]))
def test_another_process_decides_the_same(action: Action, facts: Facts, state: RiskState, session: str) -> None:
    action = replace(action, session=session)
    own = replace(HERE, state=state, history=CountedFixes())
    inputs = DecisionInputs.gather(action, facts, own)
    first = decide(action, facts, own, gate_id="one")
    assert decide(action, facts, inputs.apply_to(HERE), gate_id="one") == first
    sent = send(inputs)
    assert decide(action, sent.facts, sent.apply_to(ELSEWHERE), gate_id="one") == first


@pytest.mark.more
@pytest.mark.parametrize(("action", "facts"), CASES)
def test_another_process_decides_every_starter_case_the_same(action: Action, facts: Facts) -> None:
    sent = send(DecisionInputs.gather(action, facts, HERE))
    again = decide(action, sent.facts, sent.apply_to(ELSEWHERE), gate_id="one")
    assert again == decide(action, facts, HERE, gate_id="one")


def test_the_answers_of_the_history_are_those_that_the_estimate_asks_for() -> None:
    facts = Facts(now="2026-01-05T09:00:00+00:00", changed={"added": 3}, changed_files=("src/b.py",))
    action = Action(type="code_edit", tool="Edit", diff=DIFF, workspace="/work/shop")
    gate = replace(HERE, history=CountedFixes())
    decision = decide(action, facts, gate)
    assert decision.estimate is not None
    assert len(decision.estimate.fixes) == 2
    assert DecisionInputs.gather(action, facts, gate).fixes == decision.estimate.fixes
    assert DecisionInputs.gather(action, facts, HERE).fixes == (0, 0)


def test_answers_can_be_applied_again_for_each_decision() -> None:
    inputs = DecisionInputs(Facts(now="2026-01-05T09:00:00+00:00"), RiskState(), (7,))
    for _ in range(2):
        history = inputs.apply_to(HERE).history
        assert history is not None
        assert history.fixes_before((), "") == 7


def test_every_fact_is_part_of_the_json_and_of_the_digest() -> None:
    empty = Facts(now="2026-01-05T09:00:00+00:00")
    changed: dict[str, Any] = {
        "now": "2026-01-05T09:00:01+00:00",
        "changed": {"added": 1},
        "changed_files": ("a",),
        "labels": {"secret"},
        "denials": 1,
        "recent": {"read": 1},
        "failures": 1,
        "uses": 1,
        "approved": True,
        "approved_by": "person:a",
        "annotations": {"x": 1},
        "declared": {"effects": []},
        "environment": {"HOME": "/"},
        "links": {"a": "b"},
        "absent": ("a",),
        "written": "",
        "unseen": ("a",),
        "asked": ({"gate_id": "g", "call_id": "c", "labels": [], "unseen": ["a"]},),
        "git": {"fetched": True},
        "code": {"a": {}},
        "meaning": {"class": "read"},
    }
    assert set(changed) == {field.name for field in fields(Facts)}
    digests = {DecisionInputs(empty, RiskState()).digest}
    for name, value in changed.items():
        facts = replace(empty, **{name: frozenset(value) if name == "labels" else value})
        assert name in facts_to_dict(facts)
        digests.add(DecisionInputs(facts, RiskState()).digest)
    digests.add(DecisionInputs(empty, RiskState(learned_until=1)).digest)
    digests.add(DecisionInputs(empty, RiskState(note="x")).digest)
    digests.add(DecisionInputs(empty, RiskState(), (0,)).digest)
    assert len(digests) == len(changed) + 4


GOOD = DecisionInputs(Facts(now="2026-01-05T09:00:00+00:00"), RiskState()).to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"facts": {"now": "yesterday"}},
        {"facts": {"more": 1}},
        {"facts": {"labels": "secret"}},
        {"facts": {"labels": [1]}},
        {"facts": {"denials": True}},
        {"facts": {"denials": 1.0}},
        {"facts": {"changed": {"added": "1"}}},
        {"facts": {"recent": {"read": True}}},
        {"facts": {"approved": 1}},
        {"facts": {"approved_by": None}},
        {"facts": {"annotations": []}},
        {"facts": {"declared": None}},
        {"facts": {"environment": {"HOME": 1}}},
        {"facts": {"links": ["a"]}},
        {"facts": {"code": {"a": []}}},
        {"facts": {"written": None}},
        {"facts": {"unseen": "*"}},
        {"facts": {"asked": ["g1"]}},
        {"facts": {"asked": [{"gate_id": "g1", "call_id": "c1", "labels": []}]}},
        {"facts": {"asked": [{"gate_id": 1, "call_id": "c1", "labels": [], "unseen": []}]}},
        {"facts": {"asked": [{"gate_id": "g1", "call_id": "c1", "labels": [], "unseen": [1]}]}},
        {"facts": {"git": []}},
        {"facts": {"git": {"more": 1}}},
        {"facts": {"git": {"fetched": 1}}},
        {"facts": {"git": {"stored": {"a": None}}}},
        {"fixes": [True]},
        {"fixes": [-1]},
        {"fixes": [0] * 17},
        {"fixes": None},
        {"state": {"note": 1}},
        {"state": {"levels": None}},
        {"state": {"levels": {"change": {"b": 0.0, "v": 99.0, "observations": 1}}}},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_none_of_these_is_refused(change: dict[str, Any]) -> None:
    document = {
        **GOOD,
        **{name: {**GOOD[name], **value} if isinstance(value, dict) else value for name, value in change.items()},
    }
    with pytest.raises((BadInput, Refused)):
        DecisionInputs.from_dict(document)


@pytest.mark.parametrize("value", [None, [], {}, 3, {"facts": {}, "state": {}, "fixes": []}])
def test_what_is_no_object_of_inputs_is_refused(value: Any) -> None:
    with pytest.raises(AverError):
        DecisionInputs.from_dict(value)


def test_facts_without_canonical_form_have_no_digest() -> None:
    facts = Facts(now="2026-01-05T09:00:00+00:00", written="\ud800")
    with pytest.raises(NotCanonical):
        _ = DecisionInputs(facts, RiskState()).digest


def test_a_verifier_computes_the_digest_from_the_record(ledger: Ledger, tmp_path: Path) -> None:
    """The attestation of a policy server names this digest."""
    (tmp_path / "notes.md").write_text("a\n")
    sent: list[str] = []

    def ask_others(action: Action, facts: Facts, gate: Gate, **more: Any) -> Any:
        inputs = DecisionInputs.gather(action, facts, replace(gate, state=replace(gate.state, note="not used")))
        sent.append(inputs.digest)
        return decide(action, facts, gate, **more)

    gate = Gate(bundle=load_policy_bundle(), state=RiskState(note="not used"))
    for command in ("ls", "echo b >> notes.md", "cat .env"):
        arguments = {"command": command}
        action = Action(type="shell_exec", tool="Bash", arguments=arguments, session="s1", workspace=str(tmp_path))
        record = ask(ledger, action, gate=gate, decide=ask_others).record
        result = record.to_dict()["outcome"]["result"]
        basis = {
            name: None if reference is None else ledger.blob(reference["blob"]["digest"])
            for name, reference in result["basis"].items()
        }
        assert read_recorded_inputs(result, basis).digest == sent[-1]
    assert ledger.verify().status == "verified"


def test_a_record_without_a_note_has_the_bytes_that_it_had(ledger: Ledger, tmp_path: Path) -> None:
    action = Action(type="shell_exec", tool="Bash", arguments={"command": "ls"}, workspace=str(tmp_path))
    result = ask(ledger, action).record.to_dict()["outcome"]["result"]
    assert not {"state_note", "written", "declared"} & {*result, *result["facts"]}
    assert b"note" not in canonical_bytes(result["facts"])
