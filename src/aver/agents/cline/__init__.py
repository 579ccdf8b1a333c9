"""Cline: its tasks and sessions, its hooks and its settings."""

from __future__ import annotations

from aver.agents.agent import agent_in_folder

AGENT = agent_in_folder(__name__, name="cline", title="Cline", transcripts_module="tasks")
