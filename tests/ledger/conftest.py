"""What the tests of the ledger room share: a ledger with something in it, a bundle of it, and another ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aver import Ledger, open_ledger
from aver.ledger.bundle import export_bundle
from support.agent_capsules import AgentCapsules
from support.bundles import fill


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    fill(ledger)
    return ledger


@pytest.fixture
def bundle(filled: Ledger, tmp_path: Path) -> Path:
    return export_bundle(filled, tmp_path / "bundle").path


@pytest.fixture
def other(tmp_path: Path, new_ledger_url: Callable[[], str]) -> Iterator[Ledger]:
    """A ledger of someone else, with keys of its own."""
    home = tmp_path / "other-home"
    home.mkdir()
    with open_ledger(new_ledger_url(), home=home) as opened:
        yield opened


@pytest.fixture
def public_tool() -> AgentCapsules:
    tool = AgentCapsules()
    first = tool.session("claude-code", "5d2e", 4)
    tool.session("codex", "019d", 2)
    tool.grow(first, 2)
    tool.finish(first)
    tool.session("claude-code", "old", 3, spec_version=False)
    tool.rotate(b"r" * 32)
    tool.grow(first, 1)
    tool.session("cline", "1717000000000", 1, finish=False)
    return tool
