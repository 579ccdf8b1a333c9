"""A session is found by its name, whatever else is kept of it."""

from __future__ import annotations

import pytest

from aver.errors import NotFound
from aver.ingest.contract import AgentEvent
from aver.ingest.seal import seal_event
from aver.ledger import Ledger
from aver.sessions.sessions import find_session
from support.agents import sample_session as sample


@pytest.mark.parametrize("name", [sample.SESSION, sample.SESSION[:8], f"claude-code.{sample.SESSION}", "claude"])
def test_what_the_gate_decided_is_no_session_of_its_own(ledger: Ledger, name: str) -> None:
    sample.asked_of_the_gate(ledger, "ls")
    seal_event(ledger, "claude-code", sample.SESSION, AgentEvent(what="note", key="n1", summary="there"))
    assert find_session(ledger, name) == ("claude-code", sample.SESSION)


def test_a_session_of_which_only_decisions_are_sealed_is_not_found(ledger: Ledger) -> None:
    sample.asked_of_the_gate(ledger, "ls")
    with pytest.raises(NotFound, match="no session"):
        find_session(ledger, sample.SESSION)
