"""A participant whose key is in another home, on the same store: by its own key, or by contributions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import aver
from aver import clock
from aver.errors import AverError, IntegrityError, NotFound
from aver.ledger import Ledger, open_ledger
from aver.protocol.events import trace_chain
from aver.protocol.rules.step import EventRefused
from aver.protocol.session import ProtocolSession
from aver.protocol.statements import Join, TracePlace, digest_json, sign_join
from support.protocol_sessions import TASK, claim_count, open_session, reach_executing

pytestmark = pytest.mark.both_stores


@pytest.fixture
def other_home(ledger: Ledger, tmp_path: Path) -> Iterator[Ledger]:
    """The same ledger, opened from a home with other keys."""
    with open_ledger(ledger.config.ledger, home=tmp_path / "carols") as opened:
        opened.keys.signer("agent:carol").public  # noqa: B018 - makes the key
        yield opened


def open_shared(ledger: Ledger, other: Ledger, workspace: Path) -> ProtocolSession:
    """A trace of this home in which the critic of the other home takes part."""
    session = open_session(workspace, ledger=ledger, task=TASK)
    carol = other.keys.signer("agent:carol", create=False)
    fold = session.fold
    join = Join(session.place, fold.task_sha256, fold.profile, "critic", "agent:carol", carol.public, clock.now())
    session.accept(sign_join(carol, join))
    return session


def test_a_home_that_does_not_know_the_operators_key_does_not_take_part(
    ledger: Ledger, other_home: Ledger, tmp_path: Path
) -> None:
    with open_shared(ledger, other_home, tmp_path) as session, pytest.raises(IntegrityError) as caught:
        open_session(tmp_path, ledger=other_home, trace=session.trace)
    assert caught.value.code == "UNKNOWN_SIGNER"
    assert ledger.head(session.chain).count == 2  # Nothing was sealed: this home is not the operator.


def test_a_participant_elsewhere_appends_by_its_own_key(ledger: Ledger, other_home: Ledger, tmp_path: Path) -> None:
    with open_shared(ledger, other_home, tmp_path) as session:
        other_home.keys.trust(session.fold.participants["operator"].key)
        proposal = session.planner.propose("one")
        session.critic.review(proposal.id, "approved", rationale="fine")
        assert session.state == "reviewing"  # Carol has not approved.
        with open_session(tmp_path, ledger=other_home, trace=session.trace) as carols:
            assert carols.critic.agent == "agent:carol"
            carols.critic.review(proposal.id, "approved", rationale="fine, too")
            with pytest.raises(NotFound):
                _ = carols.planner
            with pytest.raises(AverError):
                carols.say("agent:planner", "proposal_created", {"objective": "x"})
            with pytest.raises(EventRefused) as caught:
                carols.abort("I may not")
            assert caught.value.code == "ROLE_POLICY_VIOLATION"
        session.catch_up()
        assert session.state == "executing"
        assert session.events[-1].signer == session.fold.participants["agent:carol"].key.fingerprint
        # Her records are of the gate's session, and sealed by a key that is not of this home: the gate must go on.
        intent = session.executor.intend(proposal.id, "count", {}, justification="to count")
        assert intent.payload["risk"]["derived"] == "low"
        assert session.executor.run(intent.id).name == "tool_execution_completed"


def test_a_participant_elsewhere_sends_contributions(ledger: Ledger, other_home: Ledger, tmp_path: Path) -> None:
    with open_shared(ledger, other_home, tmp_path) as session:
        other_home.keys.trust(session.fold.participants["operator"].key)
        proposal = session.planner.propose("one")
        payload = {"verdict": "rejected", "rationale": "no", "risk": "high", "conditions": []}
        with open_session(tmp_path, ledger=other_home, trace=session.trace) as carols:
            refs = {"proposal": proposal.id}
            sent = carols.contribute("agent:carol", "proposal_reviewed", payload, refs=refs).to_dict()
        event = session.accept(sent)
        assert (event.agent, event.after) == ("agent:carol", "planning")


def test_a_rotated_key_elsewhere_joins_anew_by_a_statement_and_the_operator(
    ledger: Ledger, other_home: Ledger, tmp_path: Path
) -> None:
    """The other home cannot seal its own join: it signs it, and the operator's home accepts it with the rotation."""
    with open_shared(ledger, other_home, tmp_path) as session:
        other_home.keys.trust(session.fold.participants["operator"].key)
        proposal = session.planner.propose("one")
        other_home.keys.rotate("agent:carol")
        with open_session(tmp_path, ledger=other_home, trace=session.trace) as carols:
            with pytest.raises(AverError):
                carols.critic.review(proposal.id, "approved", rationale="fine")
            join = carols.sign_join("agent:carol", "critic")
        session.accept(join)
        with open_session(tmp_path, ledger=other_home, trace=session.trace) as carols:
            assert carols.critic.review(proposal.id, "approved", rationale="fine").agent == "agent:carol"


def test_an_executor_elsewhere_has_a_gate_of_its_own(ledger: Ledger, other_home: Ledger, tmp_path: Path) -> None:
    """Its decisions are sealed by the key that has joined. By any other key, an honest trace would fail its audit."""
    carol = other_home.keys.signer("agent:carol", create=False)
    place = TracePlace(ledger.id, ledger.tenant, trace_chain("t1"))
    join = Join(place, digest_json(TASK), "default", "executor", "agent:carol", carol.public, clock.now())
    given = {"agent:planner": "planner", "agent:critic": "critic", "agent:auditor": "auditor"}
    ledger.keys.trust(carol.public)
    parts = {**given, "agent:carol": sign_join(carol, join)}
    with open_session(tmp_path, ledger=ledger, task=TASK, trace="t1", participants=parts) as session:
        other_home.keys.trust(session.fold.participants["operator"].key)
        proposal = reach_executing(session)
        with open_session(tmp_path, ledger=other_home, trace="t1") as carols:
            intent = carols.executor.intend(proposal.id, "count", {}, justification="to count")
            assert carols.executor.run(intent.id).name == "tool_execution_completed"
            claim_count(carols)
            carols.executor.conclude("done")
        session.audit_engine = None
        session.catch_up()
        assert session.auditor.audit().status == "pass"
        verdict = aver.verify(session.chain, ledger=ledger)
        assert not [found for found in verdict.findings if found.status == "failed"], verdict.findings
