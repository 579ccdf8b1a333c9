"""The names of Codex's tools, and of the files and variables that steer it: data for the gate."""

from __future__ import annotations

from aver.gate.effects.arguments import NO_EFFECTS, PATCHES, READS, RUNS, SEARCHES
from aver.gate.effects.known_agents import AgentNames

NAMES = AgentNames(
    tools={
        # The hooks report every command as `Bash`; transcripts have the tools' own names.
        RUNS: "Bash shell local_shell container.exec exec exec_command shell_command unified_exec",
        READS: "view_image",
        PATCHES: "apply_patch",
        SEARCHES: "web_search",
        NO_EFFECTS: "update_plan spawn_agent",
    },
    directories={"agent-config": ".codex"},
    pairs={"secret": ".codex/auth.json"},
    files={"agent-config": "agents.md"},
    variables="CODEX",
    descriptive={
        "shell": "justification",
        "shell_command": "justification",
        "exec_command": "justification",
        "local_shell": "justification",
    },
)
