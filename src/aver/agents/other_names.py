"""Names of agents that have no folder here, and of tools that models are commonly given: data for the gate.

The agents are Gemini CLI, GitHub Copilot, Windsurf, Roo Code and others. Aver reads none of their transcripts, but the
gate may be asked about their tools by the runtime or over MCP, and any agent may write into their settings.
"""

from __future__ import annotations

from aver.gate.effects.arguments import (
    BROWSES,
    DELETES,
    EDITOR,
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

OTHER_NAMES = AgentNames(
    tools={
        RUNS: "run_command terminal run_in_terminal run_shell_command bash_tool execute_bash",
        READS: "view open_file cat read_many_files read_text_file get_file_contents",
        GLOBS: "find_files",
        READS_WORKSPACE: """
            list_directory search_file_content directory_tree get_errors list_code_usages view_file_outline
            get_diagnostics
        """,
        EDITS: "replace apply_diff insert_content replace_string_in_file insert_edit_into_file smart_edit",
        EDITOR: "str_replace_editor str_replace_based_edit_tool text_editor",
        WRITES: "write_file new_file create_directory save_file",
        DELETES: "remove_file",
        FETCHES: "fetch fetch_url read_url_content fetch_webpage open_url http_get",
        SEARCHES: "google_web_search search_web",
        BROWSES: "browser computer browser_navigate browser_click browser_type",
        NO_EFFECTS: "dispatch_agent think sequentialthinking get_terminal_output manage_todo_list",
        STEERS_AGENT: "save_memory memory write_rule update_rules",
    },
    directories={
        "agent-config": """
            .roo .windsurf .continue .gemini .aider .goose .capseal .amp .kiro .augment .junie .opencode .qwen .zed
            .trae
        """
    },
    pairs={
        "secret": ".gemini/oauth_creds.json",
        "agent-config": ".vscode/mcp.json .github/copilot-instructions.md .config/opencode .config/goose",
    },
    files={
        "agent-config": """
            agent.md gemini.md .windsurfrules .roorules .goosehints mcp.json .aider.conf.yml
            .aider.model.settings.yml .roomodes copilot-instructions.md claude_desktop_config.json .aiderignore
        """
    },
)
