"""A session of Claude Code that goes through the hooks, with a workspace whose files really change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.hook_calls import fire, said

SESSION = "0b7e2f3a-91a4-4c0e-8f57-6f0f5f7d2a11"


class AgentSession:
    """Makes calls one after the other. A call that is not held back is carried out, as far as it writes a file."""

    def __init__(self, workspace: Path, session: str = SESSION, mode: str = "default") -> None:
        self.workspace = workspace
        self.session = session
        self.mode = mode
        self.reason = ""
        """The reason of the last answer."""
        self._count = 0

    def payload(self, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "session_id": self.session,
            "cwd": str(self.workspace),
            "permission_mode": self.mode,
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": f"toolu_{self._count}",
            **more,
        }

    def ask(self, tool: str, **arguments: Any) -> str:
        """Return the hook's word about a call: `pass`, `ask` or `deny`."""
        self._count += 1
        answer = said(fire("claude-code", "PreToolUse", self.payload(tool, arguments)))
        output = answer.get("hookSpecificOutput", {})
        self.reason = str(output.get("permissionDecisionReason", ""))
        word = str(output.get("permissionDecision", "leave"))
        return "pass" if word in ("allow", "leave") else word

    def report(self, tool: str, event: str = "PostToolUse", **arguments: Any) -> None:
        """Report the last call as made."""
        response = {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}
        fire("claude-code", event, self.payload(tool, arguments, **response))

    def bash(self, command: str) -> str:
        return self.ask("Bash", command=command)

    def write(self, path: str, content: str) -> str:
        """Ask about writing a file, and write it where nobody holds that back."""
        word = self.ask("Write", file_path=str(self.workspace / path), content=content)
        if word == "pass":
            self.put(path, content)
        return word

    def edit(self, path: str, old: str, new: str, **more: Any) -> str:
        """Ask about replacing a text, and replace it where nobody holds that back."""
        file = self.workspace / path
        word = self.ask("Edit", file_path=str(file), old_string=old, new_string=new, **more)
        if word == "pass":
            file.write_text(file.read_text().replace(old, new, -1 if more.get("replace_all") else 1))
        return word

    def put(self, path: str, content: str) -> Path:
        """Put a file into the workspace without asking."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file
