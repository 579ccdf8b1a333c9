"""A session is found by its name, whatever else is kept of it."""

from __future__ import annotations

import pytest

from aver.errors import BadInput
from aver.ingest.contract import AgentEvent
from aver.ingest.seal import seal_event
from aver.ledger import Ledger
from aver.sessions.sessions import find_named_session
from support.agents import sample_session as sample


@pytest.mark.parametrize("name", [sample.SESSION, sample.SESSION[:8], f"claude-code.{sample.SESSION}", "claude"])
def test_what_the_gate_decided_is_no_session_of_its_own(ledger: Ledger, name: str) -> None:
    sample.asked_of_the_gate(ledger, "ls")
    seal_event(ledger, "claude-code", sample.SESSION, AgentEvent(what="note", key="n1", summary="there"))
    found = find_named_session(ledger, name)
    assert found is not None
    assert (found.tool, found.session) == ("claude-code", sample.SESSION)
    assert found.recorded == (f"claude-code.{sample.SESSION}",)
    assert len(found.names) == 2


def test_a_session_of_which_only_decisions_are_sealed_is_not_found(ledger: Ledger) -> None:
    sample.asked_of_the_gate(ledger, "ls")
    assert find_named_session(ledger, sample.SESSION) is None


def test_a_name_that_fits_several_sessions_is_refused(ledger: Ledger) -> None:
    for session in ("s1", "s2"):
        seal_event(ledger, "claude-code", session, AgentEvent(what="note", key="n1", summary="there"))
    with pytest.raises(BadInput, match="2 sessions"):
        find_named_session(ledger, "s")
