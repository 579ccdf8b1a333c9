"""Real coding agents, with models on loopback that do as they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clients.npm_clients import CLAUDE_CODE, CLINE, CODEX, CODEX_WITHOUT_HOOKS, installed
from support.older_sdk import install_older_sdk


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


@pytest.fixture(scope="session")
def older_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with SDK 1.x."""
    return install_older_sdk(tmp_path_factory.mktemp("sdk1") / "venv")
