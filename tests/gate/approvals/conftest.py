"""A ledger in which one person may approve, and a request that waits for her."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aver import Ledger
from aver.gate.approvals import ApprovalRequest, Person
from support.approvals import enrolled, opened, somebody


@pytest.fixture
def ada(ledger: Ledger) -> Person:
    """The first approver of the ledger."""
    person = somebody("ada")
    enrolled(ledger, person)
    return person


@pytest.fixture
def request_(ledger: Ledger, ada: Person) -> ApprovalRequest:
    return opened(ledger)


class Clock:
    """The machine's clock, which somebody sets."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def forward(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)

    def now(self) -> str:
        return (datetime.now(UTC) + self.ahead).isoformat()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replaces the time for whoever asks for it, the sealing ledger too."""
    set_by_us = Clock()
    for place in ("aver.clock.now", "aver.ledger.append.now"):
        monkeypatch.setattr(place, set_by_us.now)
    return set_by_us
