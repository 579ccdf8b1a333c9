"""Real coding agents, with models on loopback that do as they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clients.npm_clients import CLAUDE_CODE, CLINE, CODEX, CODEX_WITHOUT_HOOKS, installed


@pytest.fixture(scope="session")
def claude_code() -> Path:
    """The directory with Claude Code's command."""
    return installed(CLAUDE_CODE)


@pytest.fixture(scope="session")
def cline() -> Path:
    return installed(CLINE)


@pytest.fixture(scope="session")
def codex() -> Path:
    return installed(CODEX)


@pytest.fixture(scope="session")
def codex_without_hooks() -> Path:
    return installed(CODEX_WITHOUT_HOOKS)
