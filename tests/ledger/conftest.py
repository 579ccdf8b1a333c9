"""Fixtures of the ledger's tests."""

from __future__ import annotations

import pytest

from support.agent_capsules import AgentCapsules


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
