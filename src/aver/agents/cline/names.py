"""The names of Cline's tools, and of the files and variables that steer it: data for the gate."""

from __future__ import annotations

from aver.gate.effects.arguments import (
    BROWSES,
    EDITS,
    FETCHES,
    NO_EFFECTS,
    PATCHES,
    READS,
    READS_WORKSPACE,
    RUNS,
    RUNS_SEVERAL,
    STEERS_AGENT,
    WRITES,
)
from aver.gate.effects.known_agents import AgentNames

NAMES = AgentNames(
    tools={
        RUNS: "execute_command",
        RUNS_SEVERAL: "run_commands",
        READS: "read_file read_files",
        READS_WORKSPACE: "list_files search_files search_codebase list_code_definition_names",
        EDITS: "replace_in_file editor",
        WRITES: "write_to_file",
        PATCHES: "apply_patch",
        FETCHES: "fetch_web_content",
        BROWSES: "browser_action",
        NO_EFFECTS: """
            new_task attempt_completion ask_followup_question plan_mode_respond spawn_agent ask_question
            submit_and_exit
        """,
        STEERS_AGENT: "new_rule",
    },
    mcp_callers="use_mcp_tool access_mcp_resource",
    directories={"agent-config": ".cline .clinerules"},
    files={"agent-config": ".clinerules"},
    variables="CLINE",
    telling={"execute_command": "command", "write_to_file": "path content"},
    descriptive={"execute_command": "task_progress", "read_file": "task_progress", "write_to_file": "task_progress"},
)
