"""The names of Claude Code's tools, and of the files and variables that steer it: data for the gate."""

from __future__ import annotations

from aver.gate.effects.arguments import (
    EDITS,
    FETCHES,
    GLOBS,
    NO_EFFECTS,
    READS,
    READS_WORKSPACE,
    RUNS,
    SEARCHES,
    SIGNALS,
    WRITES,
)
from aver.gate.effects.known_agents import AgentNames

NAMES = AgentNames(
    tools={
        RUNS: "Bash",
        READS: "Read NotebookRead",
        GLOBS: "Glob",
        READS_WORKSPACE: "LS Grep",
        EDITS: "Edit MultiEdit NotebookEdit",
        WRITES: "Write",
        FETCHES: "WebFetch",
        SEARCHES: "WebSearch",
        NO_EFFECTS: """
            Task Agent TodoWrite TodoRead EnterPlanMode ExitPlanMode AskUserQuestion BashOutput TaskOutput ToolSearch
            TaskCreate TaskList TaskGet TaskUpdate
        """,
        SIGNALS: "KillShell KillBash TaskStop",
    },
    directories={"agent-config": ".claude"},
    pairs={"secret": ".claude/.credentials.json", "agent-config": ".config/claude"},
    files={
        "secret": ".claude.json",
        "agent-config": ".claude.json claude.md claude.local.md .mcp.json managed-settings.json .claudeignore",
    },
    readable="""
        .claude/projects/*/*/tool-results/*.txt .claude/projects/*/*/tool-results/*.json
        .claude/projects/*/memory/*.md .claude/skills/**/*.md .claude/commands/**/*.md .claude/agents/**/*.md
        .claude/plugins/**/*.md .claude/claude.md
    """,
    variables="CLAUDE",
    descriptive={"Bash": "description", "Task": "description", "Agent": "description"},
)
