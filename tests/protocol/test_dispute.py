"""A person rules on a dispute, through the approvals of the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver import SeedSigner, clock
from aver.capsule.model import Authority
from aver.check import EXAMINERS
from aver.errors import Refused
from aver.gate.approvals import approve, deny, enrol_approver, recent_requests
from aver.keys import sign_statement
from aver.ledger import Ledger
from aver.protocol.events import Event
from aver.protocol.judgement.audit import report_trace
from aver.protocol.judgement.report_page import render_report_page
from aver.protocol.judgement.report_text import render_report_text
from aver.protocol.rules.claims import dispute_action
from aver.protocol.rules.step import EventRefused
from aver.protocol.session import ProtocolSession
from support.approvals import SHOWN, somebody
from support.protocol_sessions import claim_count, open_session, reach_claiming

ANN = somebody("ann")


def dispute(session: ProtocolSession) -> Event:
    reach_claiming(session)
    return session.critic.challenge(claim_count(session).id, "I count two")


@pytest.mark.both_stores
def test_a_person_dismisses_a_challenge(tmp_path: Path, ledger: Ledger) -> None:
    enrol_approver(ledger, ANN)
    with open_session(tmp_path, ledger=ledger, profile="strict") as session:
        challenge = dispute(session)
        with pytest.raises(EventRefused):
            session.executor.conclude("done")
        assert session.resolve(challenge.id) is None
        assert session.resolve(challenge.id) is None
        requests = list(recent_requests(ledger))
        assert len(requests) == 1
        assert requests[0].digest == dispute_action(session.fold, session.fold.challenges[challenge.id]).digest
        approve(ledger, requests[0], ANN, shown=SHOWN)
        ruling = session.resolve(challenge.id)
        assert ruling is not None
        assert (ruling.agent, ruling.payload["outcome"]) == ("operator", "dismissed")
        assert session.fold.challenges[challenge.id].standing == "dismissed"
        record = ledger.get(ruling.id)
        assert record is not None
        assert record.content["authority"]["approver"] == "person:ann"
        session.executor.conclude("done")
        trace = session.trace
    with open_session(tmp_path, ledger=ledger, trace=trace) as again:
        assert again.state == "auditing"
        assert again.verify().status != "failed"
    assert ledger.verify().status != "failed"


def test_the_words_of_a_planner_are_told_as_the_planners(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        challenge = dispute(session)
        claim = session.fold.claims[session.fold.challenges[challenge.id].claim]
        told = dispute_action(session.fold, session.fold.challenges[challenge.id]).description
        assert told.startswith(f"{claim.agent} claims it")
        session.planner.revise(claim.id, "some of it holds", confidence=0.5, evidence=claim.evidence)
        told = dispute_action(session.fold, session.fold.challenges[challenge.id]).description
        assert told.startswith("agent:planner claims it with confidence 0.5")
        made = report_trace(ledger, session.trace)
        words = f"{claim.agent}, worded anew by agent:planner"
        assert f"{claim.id} by {words}, disputed" in render_report_text(made.report.content, made.texts)
        assert words in render_report_page(made.report.content, made.texts)
        session.executor.revise(claim.id, "all of it holds", confidence=0.9, evidence=claim.evidence)
        made = report_trace(ledger, session.trace)
        assert "worded anew" not in render_report_text(made.report.content, made.texts)


def test_a_person_upholds_a_challenge_and_the_claim_is_refuted(tmp_path: Path, ledger: Ledger) -> None:
    enrol_approver(ledger, ANN)
    with open_session(tmp_path, ledger=ledger) as session:
        challenge = dispute(session)
        assert session.resolve(challenge.id) is None
        deny(ledger, next(iter(recent_requests(ledger))), ANN, shown=SHOWN, comment="two indeed")
        ruling = session.resolve(challenge.id)
        assert ruling is not None
        assert ruling.payload["outcome"] == "upheld"
        claim = session.fold.claims[challenge.refs["claim"]]
        assert claim.standing == "refuted"
        # Neither a revision nor a new claim brings back the words that were refuted.
        for say in (
            lambda: claim_count(session),
            lambda: session.executor.revise(claim.id, claim.text, confidence=0.1, evidence=claim.evidence),
        ):
            with pytest.raises(EventRefused, match="upheld"):
                say()
        session.executor.retract(claim.id, "so it is")
        assert claim.standing == "retracted"
        trace = session.trace
    with open_session(tmp_path, ledger=ledger, trace=trace) as again:
        assert again.fold.claims[claim.id].standing == "retracted"


def test_one_denial_outweighs_an_approval(tmp_path: Path, ledger: Ledger, aver_home: Path) -> None:
    bob = somebody("bob")
    enrol_approver(ledger, ANN)
    enrol_approver(ledger, bob, ANN)
    with open_session(tmp_path, ledger=ledger) as session:
        challenge = dispute(session)
        session.resolve(challenge.id)
        request = next(iter(recent_requests(ledger)))
        approve(ledger, request, ANN, shown=SHOWN)
        deny(ledger, request, bob, shown=SHOWN)
        ruling = session.resolve(challenge.id)
        assert ruling is not None
        assert (ruling.payload["outcome"], len(ruling.statements)) == ("upheld", 1)
        trace = session.trace
    with open_session(tmp_path, ledger=ledger, trace=trace) as again:
        assert again.fold.challenges[challenge.id].standing == "upheld"


def test_an_answer_is_about_the_claim_as_it_was_worded(tmp_path: Path, ledger: Ledger) -> None:
    enrol_approver(ledger, ANN)
    with open_session(tmp_path, ledger=ledger) as session:
        challenge = dispute(session)
        session.resolve(challenge.id)
        approve(ledger, next(iter(recent_requests(ledger))), ANN, shown=SHOWN)
        evidence = session.fold.claims[challenge.refs["claim"]].evidence
        session.executor.revise(challenge.refs["claim"], "four tests pass", confidence=0.1, evidence=evidence)
        assert session.resolve(challenge.id) is None
        assert len(list(recent_requests(ledger))) == 2


def test_a_ruling_survives_a_crash_between_the_answers_use_and_its_seal(tmp_path: Path, ledger: Ledger) -> None:
    from aver.gate.approvals import consume

    enrol_approver(ledger, ANN)
    with open_session(tmp_path, ledger=ledger) as session:
        challenge = dispute(session)
        session.resolve(challenge.id)
        request = next(iter(recent_requests(ledger)))
        approve(ledger, request, ANN, shown=SHOWN)
        consume(ledger, request, request.digest, by=challenge.id, session=session.trace)
        ruling = session.resolve(challenge.id)
        assert ruling is not None
        assert ruling.payload["outcome"] == "dismissed"


def test_nobody_rules_where_nobody_is_enrolled_or_the_dispute_is_over(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        challenge = dispute(session)
        with pytest.raises(Refused):
            session.resolve(challenge.id)
        session.critic.withdraw(challenge.id, "I was wrong")
        with pytest.raises(EventRefused):
            session.resolve(challenge.id)
        with pytest.raises(EventRefused):
            session.resolve(challenge.refs["claim"])


def test_a_vote_about_another_dispute_is_no_ruling(tmp_path: Path, ledger: Ledger) -> None:
    enrol_approver(ledger, ANN)
    with open_session(tmp_path, ledger=ledger) as session:
        first = dispute(session)
        second = session.critic.challenge(first.refs["claim"], "and they are slow")
        session.resolve(first.id)
        approve(ledger, next(iter(recent_requests(ledger))), ANN, shown=SHOWN)
        ruling = session.resolve(first.id)
        assert ruling is not None
        payload = {"outcome": "dismissed", "rationale": "so"}
        refs = {"challenge": second.id, "approval": ruling.refs["approval"]}
        with pytest.raises(EventRefused) as caught:
            session.seal_event("operator", "challenge_resolved", payload, refs=refs, statements=ruling.statements)
        assert caught.value.code == "EVIDENCE_INVALID"


def test_a_forged_ruling_is_found_by_whoever_verifies(tmp_path: Path, ledger: Ledger) -> None:
    """The operator holds the ledger's key, and can seal a vote that nobody has cast."""
    with open_session(tmp_path, ledger=ledger) as session:
        challenge = dispute(session)
        digest = dispute_action(session.fold, session.fold.challenges[challenge.id]).digest
        content = {"digest": digest, "decision": "approve", "ledger": ledger.id, "approver": "person:ann"}
        forged = sign_statement("approval", content, [SeedSigner.generate()])
        session.seal_event(
            "operator",
            "challenge_resolved",
            {"outcome": "dismissed", "rationale": "so I say"},
            refs={"challenge": challenge.id, "approval": clock.new_id()},
            statements=(forged,),
            authority=Authority(type="human_approved", approver="person:ann"),
        )
        assert ledger.verify(session.chain, examiners=EXAMINERS).status == "failed"  # There are no approvals at all.
        enrol_approver(ledger, ANN)
        other = session.critic.challenge(challenge.refs["claim"], "and they are slow")
        session.resolve(other.id)
        verdict = ledger.verify(session.chain, examiners=EXAMINERS)
        assert verdict.first_bad is not None
        assert (verdict.first_bad.code, verdict.first_bad.check) == ("EVIDENCE_INVALID", "claims")


def test_an_honest_ruling_passes_the_examiners(tmp_path: Path, ledger: Ledger) -> None:
    enrol_approver(ledger, ANN)
    with open_session(tmp_path, ledger=ledger) as session:
        first = dispute(session)
        second = session.critic.challenge(first.refs["claim"], "and they are slow")
        for challenge, answer in ((first, approve), (second, deny)):
            session.resolve(challenge.id)
            answer(ledger, list(recent_requests(ledger))[-1], ANN, shown=SHOWN)
            assert session.resolve(challenge.id) is not None
        assert ledger.verify(session.chain, examiners=EXAMINERS).status != "failed"
        assert ledger.verify(examiners=EXAMINERS).status != "failed"
