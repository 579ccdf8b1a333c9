"""Adversaries who hold one key, or the operator's alone: everything that they seal is found by code and place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Ledger, clock
from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import Blob
from aver.capsule.model import Authority, Capsule
from aver.capsule.sealed import content_hash, seal
from aver.errors import BadInput, IntegrityError
from aver.gate.approvals import approve, enrol_approver, recent_requests
from aver.keys import SeedSigner
from aver.keys.ring import sign_rotation
from aver.keys.statement import sign_statement
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.import_ import import_bundle
from aver.protocol.bounds import Bounds
from aver.protocol.events import OPERATOR, Event, build_event_draft, read_event
from aver.protocol.judgement.audit import report_trace
from aver.protocol.rules.claims import dispute_action
from aver.protocol.rules.step import EventRefused
from support.approvals import SHOWN, somebody
from support.protocol_sessions import claim_count, open_session, reach_claiming
from support.protocol_traces import AGENTS, TraceInMemory
from support.stored_traces import HomeSigner, StoredTrace
from support.tamper import changed, first_bad, unguarded

CHAIN = "protocol.t1"
ANN = somebody("ann")
REJECTION = {"v": 1, "verdict": "rejected", "rationale": "no", "risk": None, "conditions": []}
CLAIM = {"text": "it works", "confidence": 1, "about": "success"}


def start_payload(trace: StoredTrace, call: bytes = b'{"arguments":{},"tool":"pytest"}') -> dict[str, Any]:
    return {
        "input": trace.data[trace.keep(call, "application/json")].reference,
        "workspace": {"revision": None, "change": None},
        "until": "2026-01-05T09:10:00+00:00",
    }


# --- calls


def test_a_start_has_the_input_that_its_intent_announced(trace: StoredTrace) -> None:
    intent = trace.intend(trace.reach_executing())
    payload = start_payload(trace, b'{"arguments":{"path":"/"},"tool":"erase"}')
    refs = {"intent": intent.id, "decision": trace.decide(intent.id)}
    start = trace.force("agent:executor", "tool_execution_started", payload, **refs)
    assert first_bad(trace.verify()) == ("EVIDENCE_INVALID", CHAIN, start.sequence)


def test_the_executor_cannot_decide_for_the_gate(trace: StoredTrace) -> None:
    """It copies an honest decision about another call, and seals it anew by its own key for this one."""
    intent = trace.intend(trace.reach_executing())
    honest = trace.ledger.get(trace.decide("44444444-4444-4444-8444-444444444444"))
    assert honest is not None
    content = honest.to_dict()
    result = {**content["outcome"]["result"]}
    result["action"] = {**result["action"], "call_id": intent.id}
    result["gate_id"] = clock.new_id()
    copied = {**content, "id": clock.new_id(), "outcome": {**content["outcome"], "result": result}}
    copied["trigger"] = {**content["trigger"], "correlation_id": intent.id}
    draft = Capsule.from_dict(copied)
    environment = {k: v for k, v in content["context"]["environment"].items() if k != "aver"}
    draft = replace(draft, context=replace(draft.context, environment=environment))
    signer = trace.signers["agent:executor"].for_append
    forged = trace.ledger.append("gate.t1", of_kind(draft, "gate.decision"), signer=signer)
    start = trace.start(intent.id, decision=forged.id)
    verdict = trace.verify()
    assert first_bad(verdict) == ("ROLE_POLICY_VIOLATION", CHAIN, start.sequence), verdict.findings


def test_another_executor_gives_a_call_up_only_after_its_time(ledger: Ledger, workspace: Path) -> None:
    trace = StoredTrace(ledger, workspace, agents={**AGENTS, "agent:rival": "executor"})
    intent = trace.intend(trace.reach_executing())
    payload = {**start_payload(trace), "until": "2999-01-01T00:00:00+00:00"}
    start = trace.admit(
        trace.draft(
            "agent:executor",
            "tool_execution_started",
            {"v": 1, **payload},
            {"intent": intent.id, "decision": trace.decide(intent.id)},
        )
    )
    lost = {"code": "OUTCOME_UNKNOWN", "words": "gone", "output": {}}
    end = trace.force("agent:rival", "tool_execution_failed", lost, intent=intent.id, start=start.id)
    assert first_bad(trace.verify()) == ("STATE_VIOLATION", CHAIN, end.sequence)


def test_no_call_starts_after_the_time_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = TraceInMemory(bounds=Bounds(time_budget=10))
    intent = trace.intend(trace.reach_executing())
    later = clock.now().replace("20", "21", 1)  # A century on.
    monkeypatch.setattr(clock, "now", lambda: later)
    with pytest.raises(EventRefused) as caught:
        trace.start(intent.id)
    assert (caught.value.code, caught.value.place) == ("STATE_VIOLATION", "at")


# --- evidence


def claim_on(trace: StoredTrace, proposal: str, data: bytes) -> Event:
    evidence = [{"artifact": Blob(data).digest}]
    return trace.force("agent:executor", "claim_issued", {**CLAIM, "evidence": evidence}, proposal=proposal)


def record(trace: StoredTrace, data: bytes, **refs: str) -> Event:
    blob = trace.data[trace.keep(data)]
    return trace.say("agent:executor", "artifact_recorded", {"name": "copy", "blob": blob.reference}, **refs)


def test_recording_the_output_of_a_failed_call_does_not_make_it_evidence(trace: StoredTrace) -> None:
    proposal = trace.reach_claiming()
    trace.keep(b"all tests pass")
    intent = trace.intend(proposal, arguments={"again": True})
    trace.fail(intent.id, start=trace.start(intent.id).id, output=b"all tests pass")
    record(trace, b"all tests pass")
    claim = claim_on(trace, proposal, b"all tests pass")
    assert first_bad(trace.verify()) == ("CLAIM_UNPROVEN", CHAIN, claim.sequence)


def test_recording_the_input_of_a_call_does_not_make_it_evidence(trace: StoredTrace) -> None:
    proposal = trace.reach_claiming()
    given = next(iter(trace.fold.executions.values())).payload["input"]["blob"]["digest"]
    data = trace.data[given].data
    record(trace, data)
    claim = claim_on(trace, proposal, data)
    assert first_bad(trace.verify()) == ("CLAIM_UNPROVEN", CHAIN, claim.sequence)


def test_what_a_call_left_before_it_failed_is_no_evidence(trace: StoredTrace) -> None:
    proposal = trace.reach_claiming()
    intent = trace.intend(proposal, arguments={"again": True})
    start = trace.start(intent.id)
    record(trace, b"all tests pass", execution=start.id)
    trace.fail(intent.id, start=start.id)
    claim = claim_on(trace, proposal, b"all tests pass")
    assert first_bad(trace.verify()) == ("CLAIM_UNPROVEN", CHAIN, claim.sequence)


def test_what_a_running_call_has_left_is_no_evidence_yet(trace: StoredTrace) -> None:
    proposal = trace.reach_claiming()
    start = trace.start(trace.intend(proposal, arguments={"again": True}).id)
    record(trace, b"all tests pass", execution=start.id)
    claim = claim_on(trace, proposal, b"all tests pass")
    assert first_bad(trace.verify())[1:] == (CHAIN, claim.sequence)


def test_what_a_completed_call_has_left_is_evidence(trace: StoredTrace) -> None:
    proposal = trace.reach_claiming()
    start = trace.start(trace.intend(proposal, arguments={"again": True}).id)
    record(trace, b"all tests pass", execution=start.id)
    trace.complete(start)
    item = {"artifact": Blob(b"all tests pass").digest, "check": {"text": {"contains": "pass"}}}
    # It belongs to this call, whether the claim says so or not.
    evidence = [item, {**item, "execution": start.id}]
    trace.say("agent:executor", "claim_issued", {**CLAIM, "evidence": evidence}, proposal=proposal)
    trace.conclude()
    assert trace.audit().payload["status"] == "pass"
    assert trace.verify().status == "verified"


def test_a_revision_does_not_free_a_claim_from_the_conditions_of_the_old_proposal(trace: StoredTrace) -> None:
    """The evidence comes from calls of the old proposal, so its conditions are judged."""
    trace.begin()
    old = trace.propose()
    conditions = [{"check": {"exit_code": ["==", 0]}}]
    review = {"verdict": "conditional", "rationale": "if it ends well", "risk": None, "conditions": conditions}
    trace.say("agent:critic", "proposal_reviewed", review, proposal=old.id)
    trace.complete(trace.start(trace.intend(old.id).id), exit_code=1)
    new = trace.propose(revises=old.id)
    trace.review(new.id)
    trace.fail(trace.intend(new.id, arguments={"again": True}).id, "REFUSED")
    trace.claim(new.id)
    trace.conclude()
    assert trace.audit().payload["status"] == "pass-with-warnings"
    assert ("CLAIM_UNPROVEN", old.sequence) in {(f.code, f.place.sequence) for f in trace.verify().findings}


# --- rulings


def rule(trace: StoredTrace, challenge: Event, signer: SeedSigner, **more: Any) -> Event:
    """The operator seals a ruling with a vote that nobody was asked for."""
    digest = dispute_action(trace.fold, trace.fold.challenges[challenge.id]).digest
    content = {"digest": digest, "decision": "approve", "approver": "person:ann", "ledger": trace.ledger.id, **more}
    vote = sign_statement("approval", content, [signer])
    event = trace.draft(
        OPERATOR,
        "challenge_resolved",
        {"v": 1, "outcome": "dismissed", "rationale": "so be it"},
        {"challenge": challenge.id, "approval": clock.new_id()},
        statements=(vote,),
    )
    return seal_ruling(trace, event)


def seal_ruling(trace: StoredTrace, event: Event) -> Event:
    event = event._replace(before=trace.fold.state, after=trace.fold.state)
    people = ", ".join(str(each.content["approver"]) for each in event.statements)
    draft = build_event_draft(event, authority=Authority(type="human_approved", approver=people))
    found = trace.ledger.append(CHAIN, draft, signer=trace.signers[OPERATOR].for_append)
    return event._replace(sequence=found.sequence)


@pytest.mark.parametrize("is_enrolled", [False, True])
def test_the_operator_cannot_rule_for_a_person(trace: StoredTrace, is_enrolled: bool) -> None:
    if is_enrolled:
        enrol_approver(trace.ledger, ANN)
    challenge = trace.challenge(trace.claim(trace.reach_claiming()).id)
    ruling = rule(trace, challenge, SeedSigner(b"m" * 32))
    verdict = trace.verify()
    assert verdict.status == "failed", verdict.findings
    assert first_bad(verdict)[1:] == (CHAIN, ruling.sequence)
    assert trace.verify_ledger().status == "failed"


def test_a_persons_answer_to_something_else_is_no_ruling(tmp_path: Path, ledger: Ledger) -> None:
    """The vote is real, and about another dispute of the same trace."""
    enrol_approver(ledger, ANN)
    with open_session(tmp_path, ledger=ledger) as session:
        reach_claiming(session)
        first = session.critic.challenge(claim_count(session).id, "I count two")
        second = session.critic.challenge(claim_count(session).id, "I count none")
        session.resolve(first.id)
        approve(ledger, next(iter(recent_requests(ledger))), ANN, shown=SHOWN)
        ruling = session.resolve(first.id)
        assert ruling is not None
        event = ruling._replace(
            id=clock.new_id(),
            refs={"challenge": second.id, "approval": ruling.refs["approval"]},
            before="claiming",
            after="claiming",
        )
        draft = build_event_draft(event, authority=Authority(type="human_approved", approver="person:ann"))
        forged = ledger.append(session.chain, draft, signer=HomeSigner(ledger, OPERATOR).for_append)
        verdict = aver.verify(session.chain, ledger=ledger)
        assert first_bad(verdict)[1:] == (session.chain, forged.sequence)


def test_an_honest_ruling_is_verified_in_ledger_and_bundle(tmp_path: Path, ledger: Ledger) -> None:
    enrol_approver(ledger, ANN)
    ledger.keys.trust(ANN.public)
    with open_session(tmp_path, ledger=ledger) as session:
        session.audit_engine = None
        reach_claiming(session)
        first = session.critic.challenge(claim_count(session).id, "I count two")
        session.resolve(first.id)
        approve(ledger, next(iter(recent_requests(ledger))), ANN, shown=SHOWN)
        assert session.resolve(first.id) is not None
        session.executor.conclude("done")
        assert session.auditor.audit().status == "pass"
        verdict = aver.verify(session.chain, ledger=ledger)
        assert verdict.status == "verified", verdict.findings
        whole = aver.verify(ledger=ledger)
        assert not [f for f in whole.findings if f.status == "failed"], whole.findings
        keys = list(ledger.keys.ring().entries)
        export_bundle(ledger, tmp_path / "bundle", chains=[session.chain, f"gate.{session.trace}"])
        without = aver.verify(tmp_path / "bundle", keys=keys)
        assert without.status == "qualified"
        assert without.check("claims").status == "not_checked"
        chains = [session.chain, f"gate.{session.trace}", "approvals.default", "approvers.default"]
        export_bundle(ledger, tmp_path / "whole", chains=chains)
        proven = aver.verify(tmp_path / "whole", keys=[*keys, ANN.public])
        assert proven.check("claims").status == "passed", proven.findings
        assert not [f for f in proven.findings if f.status == "failed"], proven.findings


# --- who operates


@pytest.mark.parametrize("by", ["", "0", None])
def test_an_event_that_names_no_signer_is_nobodys(trace: StoredTrace, by: str | None) -> None:
    """Whoever can write to the store needs no key for such a record. No rule may take it for the agent's."""
    trace.reach_executing()
    event = trace.draft("agent:critic", "proposal_reviewed", REJECTION, {"proposal": clock.new_id()})
    content = build_event_draft(event._replace(before="executing", after="executing")).to_dict()
    content["context"]["environment"]["aver"] |= {"v": 1, "at": clock.now(), "by": by}
    sealed = seal({**content, "sequence": 3, "previous_hash": "0" * 64}, SeedSigner(b"m" * 32))
    with pytest.raises(BadInput, match="by"):
        read_event(sealed)


def test_an_agents_key_is_no_operator(ledger: Ledger, workspace: Path) -> None:
    """The holder of one agent's key opens a trace of its own, with keys that it has made for all roles."""
    ledger.keys.signer("agent:mallory").public  # noqa: B018 - makes the key, as an honest home would
    trace = StoredTrace(ledger, workspace)
    mallory = HomeSigner(ledger, "agent:mallory")
    trace.signers[OPERATOR] = mallory
    trace.seal(trace.initial, after="planning", by=mallory)
    verdict = trace.verify()
    assert first_bad(verdict) == ("ROLE_POLICY_VIOLATION", CHAIN, 0), (verdict.status, verdict.findings)


def test_a_stolen_operators_key_names_no_successor(trace: StoredTrace) -> None:
    """The operator has rotated its key. The thief of the old one signs a rotation to a key of its own."""
    trace.reach_executing()
    operator = trace.fold.participants[OPERATOR]
    evil = SeedSigner(b"e" * 32)
    join = trace.join(OPERATOR, OPERATOR, signer=evil)
    key = evil.public
    item = {"agent": OPERATOR, "role": OPERATOR, "public_key": key.ed25519, "public_key_pq": "", "held": "here"}
    old = trace.ledger.keys.ring().entry(operator.key.fingerprint)
    assert old is not None
    new = replace(old, epoch=old.epoch + 1, key=key, created_at=clock.now())
    stolen: Any = trace.ledger.signer()
    rotation = sign_rotation(old, new, stolen, evil)
    joined = trace.force(
        OPERATOR,
        "participant_joined",
        {"participant": item},
        by=evil,
        statements=(join, rotation),
        succeeds=operator.joined,
    )
    verdict = trace.verify()
    assert first_bad(verdict) == ("ROLE_POLICY_VIOLATION", CHAIN, joined.sequence)
    with pytest.raises(IntegrityError) as caught:
        open_session(trace.workspace, ledger=trace.ledger, trace="t1")
    assert caught.value.code == "ROLE_POLICY_VIOLATION"


# --- bundles


def test_a_bundle_without_the_gates_decisions_still_judges_claims(trace: StoredTrace, tmp_path: Path) -> None:
    """An auditor lies about a claim that does not hold, and the decisions are left out of the bundle."""
    proposal = trace.reach_claiming()
    evidence = [{"artifact": Blob(b"3 passed").digest, "check": {"text": {"contains": "9 passed"}}}]
    claim = trace.say("agent:executor", "claim_issued", {**CLAIM, "evidence": evidence}, proposal=proposal)
    trace.conclude()
    trace.audit("pass", lie=lambda content: content.update(status="pass", findings=[]))
    export_bundle(trace.ledger, tmp_path / "bundle", chains=[CHAIN])
    verdict = aver.verify(tmp_path / "bundle", keys=list(trace.ledger.keys.ring().entries))
    assert first_bad(verdict) == ("CLAIM_UNPROVEN", CHAIN, claim.sequence)
    assert verdict.check("executions").status == "not_checked"


def test_what_was_forged_is_found_in_an_import_too(trace: StoredTrace, tmp_path: Path) -> None:
    challenge = trace.challenge(trace.claim(trace.reach_claiming()).id)
    ruling = rule(trace, challenge, SeedSigner(b"m" * 32))
    enrol_approver(trace.ledger, ANN)
    chains = [name for name in trace.ledger.chains() if name not in ("meta", "keys")]
    export_bundle(trace.ledger, tmp_path / "bundle", chains=chains)
    with aver.open_ledger(tmp_path / "other.db", home=tmp_path / "other") as other:
        for entry in trace.ledger.keys.ring().entries:
            other.keys.trust(entry.key)
        import_bundle(other, tmp_path / "bundle")
        verdict = aver.verify(ledger=other)
        # Without a person's known key, nobody can tell here; the claim must not pass as settled.
        found = {(each.check, each.place.sequence) for each in verdict.findings if each.status == "failed"}
        assert ("claims", ruling.sequence) in found or verdict.check("claims").status == "not_checked"


# --- honest traces


def test_somebody_joins_while_the_audit_runs(tmp_path: Path, ledger: Ledger) -> None:
    from aver.protocol.judgement.audit import audit_trace
    from aver.protocol.runner import AuditOutcome
    from aver.protocol.session import ProtocolSession

    def join_meanwhile(session: ProtocolSession, *, rerun: bool) -> AuditOutcome:
        found = audit_trace(session, rerun=rerun)
        session.join("agent:late", "critic")
        return found

    with open_session(tmp_path, ledger=ledger) as session:
        session.audit_engine = join_meanwhile
        reach_claiming(session)
        claim_count(session)
        session.executor.conclude("done")
        session.auditor.audit()
        verdict = aver.verify(session.chain, ledger=ledger)
        assert verdict.status == "verified", verdict.findings


def test_the_auditors_key_is_rotated_while_it_audits(tmp_path: Path, ledger: Ledger) -> None:
    from aver.protocol.judgement.audit import audit_trace
    from aver.protocol.runner import AuditOutcome
    from aver.protocol.session import ProtocolSession

    def rotate_meanwhile(session: ProtocolSession, *, rerun: bool) -> AuditOutcome:
        found = audit_trace(session, rerun=rerun)
        ledger.keys.rotate("agent:auditor")
        return found

    with open_session(tmp_path, ledger=ledger) as session:
        session.audit_engine = rotate_meanwhile
        reach_claiming(session)
        claim_count(session)
        session.executor.conclude("done")
        session.auditor.audit()
        verdict = aver.verify(session.chain, ledger=ledger)
        assert verdict.status == "verified", verdict.findings


def test_a_trace_is_judged_alike_the_second_time(trace: StoredTrace) -> None:
    trace.finish()
    first, second = trace.verify(), trace.verify()
    assert (first.status, second.status) == ("verified", "verified")
    whole, again = trace.verify_ledger(), trace.verify_ledger()
    assert (whole.status, again.status) == ("verified", "verified")


# --- artifacts and keys beside the records


def test_the_media_type_in_a_store_is_no_evidence(trace: StoredTrace) -> None:
    """The signed reference tells the media type. Its copy beside the bytes decides nothing."""
    trace.finish()
    before, report = trace.verify(), report_trace(trace.ledger, "t1").report.data
    assert before.status == "verified"
    attacker = unguarded(trace.ledger)
    with changed(attacker, ("UPDATE blobs SET media = ?", ("text/html",))):
        after = trace.verify()
        assert (after.status, after.findings) == ("verified", before.findings)
        assert [check.status for check in after.checks] == [check.status for check in before.checks]
        assert report_trace(trace.ledger, "t1").report.data == report
    attacker.close()


def test_a_media_type_in_a_signed_reference_cannot_be_changed(trace: StoredTrace) -> None:
    trace.finish()
    place = "chain = (SELECT chain FROM chains WHERE name = 'protocol.t1') AND sequence = 4"
    attacker = unguarded(trace.ledger)
    (stored,) = attacker.execute(f"SELECT canonical FROM records WHERE {place}").fetchone()
    forged = bytes(stored).replace(b'"media":"application/json"', b'"media":"text/html"')
    assert forged != bytes(stored)
    digest = content_hash(forged)
    for hashed, code in (({}, "HASH_MISMATCH"), ({"hash": digest}, "SIG_INVALID")):
        change = ", ".join(f"{name} = ?" for name in ("canonical", *hashed))
        with changed(attacker, (f"UPDATE records SET {change} WHERE {place}", (forged, *hashed.values()))):
            assert first_bad(trace.verify()) == (code, CHAIN, 4)
    attacker.close()


def test_participants_that_the_operator_has_replaced_by_its_own_keys(ledger: Ledger, workspace: Path) -> None:
    """The operator writes a trace with keys that it made up for all roles. Everything in it is signed and fits."""
    trace = StoredTrace(ledger, workspace)
    honest = [signer.public for signer in trace.signers.values()]
    for agent in trace.agents:
        trace.signers[agent] = SeedSigner(f"made up for {agent}".encode().ljust(32, b".")[:32])
    payload = {**trace.initial.payload, "participants": [trace.participant(agent) for agent in trace.agents]}
    joins = tuple(trace.join(agent, role) for agent, role in trace.agents.items())
    trace.initial = trace.initial._replace(payload=payload, statements=joins)
    trace.finish()
    # Who has the participants' keys from elsewhere finds the first record that none of them signed.
    verdict = aver.verify(CHAIN, ledger=ledger, keys=honest)
    assert (verdict.status, verdict.integrity) == ("qualified", "unsigned")
    found = next(finding for finding in verdict.findings if finding.code == "UNKNOWN_SIGNER")
    assert (found.place.chain, found.place.sequence) == (CHAIN, 1)
    # Who knows the operator's key alone learns that the others are not known.
    verdict = trace.verify()
    assert verdict.status == "qualified"
    assert verdict.check("signature").status == "not_checked"
