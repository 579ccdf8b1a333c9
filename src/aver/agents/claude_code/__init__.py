"""Claude Code: its transcripts, its hooks and its settings."""

from __future__ import annotations

from aver.agents.agent import agent_in_folder

AGENT = agent_in_folder(__name__, name="claude-code", title="Claude Code", transcripts_module="transcripts")
