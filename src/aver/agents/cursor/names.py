"""The names of Cursor's tools, and of the files and variables that steer it: data for the gate."""

from __future__ import annotations

from aver.gate.effects.arguments import (
    DELETES,
    EDITS,
    FETCHES,
    GLOBS,
    NO_EFFECTS,
    READS,
    READS_WORKSPACE,
    RUNS,
    SEARCHES,
    STEERS_AGENT,
    WRITES,
)
from aver.gate.effects.known_agents import AgentNames

NAMES = AgentNames(
    tools={
        # The hooks have other names than the database: `hooks.py` gives the gate `Bash`, `delete_file` and so on.
        RUNS: "Bash shell run_terminal_cmd",
        READS: "Read read_file",
        GLOBS: "Glob file_search",
        READS_WORKSPACE: "LS list_dir Grep grep_search codebase_search semantic_search read_lints",
        EDITS: "Edit MultiEdit edit_file search_replace str_replace edit_notebook reapply",
        WRITES: "Write create_file",
        DELETES: "delete_file",
        FETCHES: "WebFetch",
        SEARCHES: "web_search",
        NO_EFFECTS: "Task TodoWrite",
        STEERS_AGENT: "update_memory create_rule",
    },
    directories={"agent-config": ".cursor"},
    files={"agent-config": ".cursorrules .cursorignore mcp.json"},
    variables="CURSOR",
    telling={"run_terminal_cmd": "command", "delete_file": "target_file"},
    descriptive={
        "run_terminal_cmd": "explanation",
        "read_file": "explanation",
        "list_dir": "explanation",
        "grep_search": "explanation",
        "codebase_search": "explanation",
        "file_search": "explanation",
        "delete_file": "explanation",
        "web_search": "explanation",
    },
)
