"""The names of Codex's tools, and of the files and variables that steer it: data for the gate."""

from __future__ import annotations

from aver.gate.effects.arguments import (
    ESCALATES,
    EXECUTES,
    NO_EFFECTS,
    PATCHES,
    READS,
    READS_SERVICE,
    RUNS,
    SEARCHES,
    SENDS,
)
from aver.gate.effects.known_agents import AgentNames

NAMES = AgentNames(
    tools={
        # The hooks report every command as `Bash`; transcripts have the tools' own names.
        RUNS: "Bash shell local_shell container.exec exec exec_command shell_command unified_exec",
        READS: "view_image",
        PATCHES: "apply_patch",
        SEARCHES: "web_search image_generation",
        # A running program reads what `write_stdin` gives it, and may be a shell.
        EXECUTES: "write_stdin js_repl js_repl_reset",
        READS_SERVICE: "list_mcp_resources list_mcp_resource_templates read_mcp_resource",
        ESCALATES: "request_permissions",
        SENDS: "send_message",
        # Not `wait`, `send_input` and `create_goal`: a program's own tools may have such names, and do more.
        NO_EFFECTS: """
            update_plan spawn_agent wait_agent close_agent resume_agent interrupt_agent list_agents followup_task
            request_user_input tool_search tool_suggest
        """,
    },
    directories={"agent-config": ".codex"},
    pairs={"secret": ".codex/auth.json"},
    files={"agent-config": "agents.md"},
    variables="CODEX",
    telling={"shell": "command", "shell_command": "command", "local_shell": "command", "exec_command": "cmd"},
    descriptive={
        "shell": "justification",
        "shell_command": "justification",
        "exec_command": "justification",
        "local_shell": "justification",
    },
)
