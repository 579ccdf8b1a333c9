"""The names of Claude Code's tools, and of the files and variables that steer it: data for the gate."""

from __future__ import annotations

from aver.gate.effects.arguments import (
    BROWSES,
    DISCARDS,
    EDITS,
    EXECUTES,
    FETCHES,
    GLOBS,
    NO_EFFECTS,
    PUBLISHES,
    READS,
    READS_SERVICE,
    READS_WORKSPACE,
    RUNS,
    SCHEDULES,
    SEARCHES,
    SENDS,
    SETS_ASIDE,
    STARTS_SKILL,
    STEERS_AGENT,
    WRITES,
)
from aver.gate.effects.known_agents import AgentNames

NAMES = AgentNames(
    tools={
        # `Monitor` runs a command in the background, and reports its lines.
        RUNS: "Bash Monitor",
        # What these run is written in another language than the shell's.
        EXECUTES: "PowerShell Workflow REPL",
        READS: "Read NotebookRead",
        GLOBS: "Glob",
        READS_WORKSPACE: "LS Grep LSP",
        READS_SERVICE: "ListMcpResourcesTool ReadMcpResourceTool ReadMcpResourceDirTool ReadNotifications",
        EDITS: "Edit MultiEdit NotebookEdit",
        WRITES: "Write",
        FETCHES: "WebFetch",
        SEARCHES: "WebSearch",
        BROWSES: "WebBrowser",
        # Messages also go to sessions elsewhere.
        SENDS: "SendMessage SendFeedback PushNotification RemoteTrigger ClaudeDesign",
        PUBLISHES: "Artifact Projects",
        STARTS_SKILL: "Skill SlashCommand",
        # The last ones end what the agent itself has started in the background, and nothing else.
        NO_EFFECTS: """
            Task Agent TodoWrite TodoRead EnterPlanMode ExitPlanMode AskUserQuestion BashOutput TaskOutput AgentOutput
            ToolSearch TaskCreate TaskList TaskGet TaskUpdate ListAgents ReportFindings ScheduleWakeup CronList
            StructuredOutput SendUserMessage ProposeGoal KillShell KillBash TaskStop
        """,
        SCHEDULES: "CronCreate CronDelete",
        SETS_ASIDE: "EnterWorktree",
        DISCARDS: "ExitWorktree",
        STEERS_AGENT: "Config ProposeSkills",
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
    telling={"Bash": "command", "Monitor": "command", "Write": "file_path content"},
    descriptive={"Bash": "description", "Task": "description", "Agent": "description"},
)
