"""Codex: its rollout files, its hooks and its settings."""

from __future__ import annotations

from aver.agents.agent import agent_in_folder

AGENT = agent_in_folder(__name__, name="codex", title="Codex", transcripts_module="rollouts")
