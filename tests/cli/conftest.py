"""The command in a home of its own, empty or with something sealed in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.aver_command import ONE_DRAFT, Aver


@pytest.fixture
def aver(tmp_path: Path, kind_of_store: str) -> Aver:
    command = Aver(tmp_path)
    if kind_of_store == "postgres":
        command.environment["AVER_LEDGER"] = os.environ["AVER_LEDGER"]
    return command


@pytest.fixture
def sealed(aver: Aver) -> Aver:
    """The same, with three records in the chain `notes.today`."""
    aver.seal(
        ONE_DRAFT,
        {"type": "chat", "outcome": {"status": "failure", "summary": "could not answer"}},
        {"type": "agent", "context": {"session_id": "s1"}, "outcome": {"status": "pending", "summary": "thinking"}},
    )
    return aver
