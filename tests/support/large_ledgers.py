"""Ledgers with many records, made quickly, and a count of the work that SQLite does to read them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import aver.ledger.stores.sqlite.connections as connections
from aver import Capsule, Ledger
from aver.capsule.model import Context, Outcome, Trigger

TOOL = "claude-code"
BATCH = 1000
STEP = 10
"""Instructions of SQLite's machine between two calls of the counter."""


def fill_sessions(ledger: Ledger, numbers: range, records: int) -> list[str]:
    """Seal sessions of a coding agent, each with this many records. Returns their chains, oldest first."""
    chains = []
    for number in numbers:
        session = f"s{number:05d}"
        chain = f"{TOOL}.{session}"
        for start in range(0, records, BATCH):
            steps = range(start, min(start + BATCH, records))
            ledger.append_many(
                chain,
                [_make_call(session, step) for step in steps],
                keys=[f"{TOOL}:{session}:{step}" for step in steps],
            )
        chains.append(chain)
    return chains


def _make_call(session: str, step: int) -> Capsule:
    return Capsule(
        type="tool",
        domain=TOOL,
        trigger=Trigger(type="agent", source=TOOL, request=f"step {step}", timestamp="2026-05-31T09:00:00+00:00"),
        context=Context(agent_id=TOOL, session_id=session),
        outcome=Outcome(status="success", summary=f"did {step}"),
    )


class StepCounter:
    """How many instructions SQLite's machine has carried out, in tens: a measure of work that is the same each time."""

    def __init__(self) -> None:
        self.steps = 0

    def add(self) -> int:
        self.steps += 1
        return 0


@contextmanager
def count_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[StepCounter]:
    """Count the work of all connections to ledgers that are opened in the context."""
    counter, connect = StepCounter(), sqlite3.connect

    def open_counted(*given: object, **named: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)  # type: ignore[call-overload]
        connection.set_progress_handler(counter.add, STEP)
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(connections.sqlite3, "connect", open_counted)
        yield counter
