"""Claude Code: its transcripts, its hooks and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aver.agents.agent import Agent

if TYPE_CHECKING:
    from aver.files.user_dirs import UserEnvironment
    from aver.gate.effects.known_agents import AgentNames
    from aver.hooks.contract import Hook
    from aver.ingest.contract import Adapter
    from aver.install.client import Client

__all__ = ["AGENT"]


def _load_adapter() -> Adapter:
    from aver.agents.claude_code.transcripts import ADAPTER

    return ADAPTER


def _load_hook() -> Hook:
    from aver.agents.claude_code.hooks import HOOK

    return HOOK


def _load_client() -> Client:
    from aver.agents.claude_code.install import CLIENT

    return CLIENT


def _load_names() -> AgentNames:
    from aver.agents.claude_code.names import NAMES

    return NAMES


def _write_demo(around: UserEnvironment) -> Path:
    from aver.agents.claude_code.demo import write_demo

    return write_demo(around)


AGENT = Agent(
    name="claude-code",
    title="Claude Code",
    load_adapter=_load_adapter,
    load_hook=_load_hook,
    load_client=_load_client,
    load_names=_load_names,
    write_demo=_write_demo,
)
