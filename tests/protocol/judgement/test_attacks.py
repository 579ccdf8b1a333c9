"""Attacks by those who hold a key of the trace: each is found by code and place.

The ledger and a bundle of it fail at that place, and an import refuses the bundle for it.

An attack seals one event past the session and its guards. It returns that event and the code that must be found there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Ledger, clock
from aver.capsule.blobs import Blob
from aver.errors import IntegrityError
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.import_ import import_bundle
from aver.protocol.events import OPERATOR, Event
from aver.protocol.statements import SeenHead, digest_json, sign_contribution
from support.stored_traces import StoredTrace
from support.tamper import first_bad

CHAIN = "protocol.t1"
CLAIM = {"text": "it is so", "confidence": 1.0, "about": "success"}
REVIEW = {"verdict": "approved", "rationale": "mine", "risk": None, "conditions": []}

Attack = Callable[[StoredTrace], tuple[Event, str]]


def propose_for(trace: StoredTrace, *tools: str) -> str:
    """An approved proposal that names its tools."""
    trace.begin()
    payload = {"objective": "run", "assumptions": [], "required_tools": list(tools), "expected_evidence": []}
    proposal = trace.say("agent:planner", "proposal_created", payload).id
    trace.review(proposal)
    return proposal


def force_intent(trace: StoredTrace, proposal: str, tool: str) -> Event:
    call: dict[str, Any] = {"tool": tool, "arguments": {}}
    payload = {
        **call,
        "input_sha256": digest_json(call),
        "risk": {"declared": None, "derived": "low"},
        "justification": "to count",
        "repeatable": False,
    }
    return trace.force("agent:executor", "tool_intent_signed", payload, proposal=proposal)


def intend_another_tool(trace: StoredTrace) -> tuple[Event, str]:
    return force_intent(trace, propose_for(trace, "pytest"), "rm"), "ROLE_POLICY_VIOLATION"


def hide_a_character_in_the_tool(trace: StoredTrace) -> tuple[Event, str]:
    """A zero width space: on a screen, the tool looks like the one that the critic has approved."""
    return force_intent(trace, propose_for(trace, "pytest"), "py\u200btest"), "ROLE_POLICY_VIOLATION"


def turn_the_tools_letters_round(trace: StoredTrace) -> tuple[Event, str]:
    """A mark that lets the rest of a line run from right to left."""
    return force_intent(trace, propose_for(trace, "pytest"), "\u202etsetyp"), "ROLE_POLICY_VIOLATION"


def review_ones_own_intent(trace: StoredTrace) -> tuple[Event, str]:
    intent = trace.intend(trace.reach_executing(), risk="high").id
    payload = {"verdict": "approved", "rationale": "mine"}
    forged = trace.force("agent:executor", "intent_reviewed", payload, role="critic", intent=intent)
    return forged, "ROLE_POLICY_VIOLATION"


def review_in_the_critics_name(trace: StoredTrace) -> tuple[Event, str]:
    """The executor's key seals an event that says it is the critic's."""
    intent = trace.intend(trace.reach_executing(), risk="high").id
    signer, payload = trace.signers["agent:executor"], {"verdict": "approved", "rationale": "mine"}
    forged = trace.force("agent:critic", "intent_reviewed", payload, by=signer, intent=intent)
    return forged, "ROLE_POLICY_VIOLATION"


def start_without_the_review(trace: StoredTrace) -> tuple[Event, str]:
    intent = trace.intend(trace.reach_executing(), risk="high").id
    given = trace.find_input(intent)
    trace.keep(given.data, given.media)
    payload = {
        "input": given.reference,
        "workspace": {"revision": None, "change": None},
        "until": clock.now(),
    }
    decision = trace.decide(intent)
    forged = trace.force("agent:executor", "tool_execution_started", payload, intent=intent, decision=decision)
    return forged, "ROLE_POLICY_VIOLATION"


def claim_on_a_later_execution(trace: StoredTrace) -> tuple[Event, str]:
    """The call whose output the claim names runs only after the claim."""
    proposal = trace.reach_claiming()
    claimed = {**CLAIM, "evidence": [{"artifact": Blob(b"9 passed").digest}]}
    return trace.force("agent:executor", "claim_issued", claimed, proposal=proposal), "CLAIM_UNPROVEN"


def claim_on_a_running_execution(trace: StoredTrace) -> tuple[Event, str]:
    proposal = trace.reach_claiming()
    start = trace.start(trace.intend(proposal, arguments={"n": 2}).id)
    trace.keep(b"3 passed", "text/plain")
    claimed = {**CLAIM, "evidence": [{"artifact": Blob(b"3 passed").digest, "execution": start.id}]}
    # While a call runs, the trace executes: what is claimed then comes in no state that admits it.
    return trace.force("agent:executor", "claim_issued", claimed, proposal=proposal), "STATE_VIOLATION"


def swap_the_execution_of_an_artifact(trace: StoredTrace) -> tuple[Event, str]:
    """The artifact is of one call, and the claim says that it is of another."""
    proposal = trace.reach_claiming()
    start = trace.start(trace.intend(proposal, arguments={"n": 2}).id)
    trace.keep(b"2 failed", "text/plain")
    trace.complete(start, b"2 failed")
    claimed = {**CLAIM, "evidence": [{"artifact": Blob(b"3 passed").digest, "execution": start.id}]}
    return trace.force("agent:executor", "claim_issued", claimed, proposal=proposal), "CLAIM_UNPROVEN"


def call_a_disputed_claim_settled(trace: StoredTrace) -> tuple[Event, str]:
    """The final statement says nothing of the open challenge."""
    claim = trace.claim(trace.reach_claiming())
    trace.challenge(claim.id)
    payload = {"text": "done", "claims": [{"id": claim.id, "standing": "settled"}], "unmet": []}
    return trace.force("agent:executor", "final_statement_signed", payload, after="auditing"), "STATE_VIOLATION"


def replay_a_contribution(trace: StoredTrace) -> tuple[Event, str]:
    """The operator seals a critic's approval of one proposal around another proposal."""
    trace.begin()
    first, second = trace.propose("one"), trace.propose("two")
    head = trace.fold.head
    assert head is not None
    payload = {"v": 1, **REVIEW}
    said = trace.draft("agent:critic", "proposal_reviewed", payload, {"proposal": first.id})
    signed = sign_contribution(trace.signers["agent:critic"], trace.place, said, SeenHead(head.count, head.hash))
    forged = trace.force(
        "agent:critic",
        "proposal_reviewed",
        REVIEW,
        by=trace.signers[OPERATOR],
        statements=(signed,),
        after="executing",
        proposal=second.id,
    )
    return forged, "EVIDENCE_INVALID"


ATTACKS: tuple[Attack, ...] = (
    intend_another_tool,
    hide_a_character_in_the_tool,
    turn_the_tools_letters_round,
    review_ones_own_intent,
    review_in_the_critics_name,
    start_without_the_review,
    claim_on_a_later_execution,
    claim_on_a_running_execution,
    swap_the_execution_of_an_artifact,
    call_a_disputed_claim_settled,
    replay_a_contribution,
)


@pytest.mark.sample(8)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_is_found_in_ledger_bundle_and_import(attack: Attack, ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "tests.txt").write_text("x")
    trace = StoredTrace(ledger, tmp_path)
    forged, code = attack(trace)
    assert first_bad(trace.verify()) == (code, CHAIN, forged.sequence)
    chains = [name for name in ledger.chains() if name not in ("meta", "keys")]
    export_bundle(ledger, tmp_path / "bundle", chains=chains)
    bundle = aver.verify(tmp_path / "bundle", keys=list(ledger.keys.ring().entries))
    assert first_bad(bundle) == (code, CHAIN, forged.sequence)
    with aver.open_ledger(tmp_path / "other.db", home=tmp_path / "other") as other:
        for entry in ledger.keys.ring().entries:
            other.keys.trust(entry.key)
        with pytest.raises(IntegrityError) as caught:
            import_bundle(other, tmp_path / "bundle")
        assert list(other.chains()) == []
    evidence: Any = caught.value.evidence
    assert first_bad(evidence) == (code, CHAIN, forged.sequence)


def test_hidden_characters_reach_no_screen(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "tests.txt").write_text("x")
    trace = StoredTrace(ledger, tmp_path)
    hide_a_character_in_the_tool(trace)
    found = trace.verify().first_bad
    assert found is not None
    assert "py\\u200btest" in found.words
    assert "\u200b" not in found.words
