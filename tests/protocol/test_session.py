"""A session: saying, racing, resuming, joining, accepting."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.protocol_sessions import claim_count, open_session, reach_claiming

pytestmark = pytest.mark.both_stores


def test_a_session_goes_from_the_task_to_the_audit(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        reach_claiming(session)
        claim = claim_count(session)
        challenge = session.critic.challenge(claim.id, "I count two")
        session.critic.withdraw(challenge.id, "I was wrong")
        session.executor.conclude("done")
        outcome = session.auditor.audit()
        assert outcome.status == "pass"
        assert session.state == "completed"
        names = [event.name for event in session.events]
        trace = session.trace
    with open_session(tmp_path, trace=trace) as again:
        assert [event.name for event in again.events] == names
        assert again.state == "completed"
        assert again.fold.claims[claim.id].standing == "settled"
        verdict = again.verify()
        assert verdict.status != "failed", verdict.findings
