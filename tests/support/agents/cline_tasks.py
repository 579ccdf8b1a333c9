"""Tasks of Cline, written as Cline writes them: native and XML tool calling, asked and not asked, as it goes along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aver.files.user_dirs import UserEnvironment, user_data_dir

TASK = "1717000000000"
MODEL = "claude-sonnet-4-5"


def surroundings(home: Path, platform: str = "linux") -> UserEnvironment:
    return UserEnvironment(home, {}, platform=platform)


def tasks_of(around: UserEnvironment, editor: str = "Code") -> Path:
    return user_data_dir(around, editor) / "globalStorage" / "saoudrizwan.claude-dev" / "tasks"


class Task:
    """A task that goes on: what a person sees, and what goes to the model, in the order in which Cline writes them."""

    def __init__(self, tasks: Path, identity: str = TASK, *, native: bool = True) -> None:
        self.directory = tasks / identity
        self.directory.mkdir(parents=True)
        self.native = native
        self.ui: list[dict[str, Any]] = []
        self.api: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.clock = 1717000000000
        self.calls = 0

    def show(self, kind: str, sort: str, text: Any = None, **more: Any) -> dict[str, Any]:
        """A message: `say` or `ask`."""
        self.clock += 1000
        message: dict[str, Any] = {"ts": self.clock, "type": kind, kind: sort}
        if text is not None:
            message["text"] = text if isinstance(text, str) else json.dumps(text)
        message |= {"conversationHistoryIndex": len(self.api) - 1, **more}
        self.ui.append(message)
        return message

    def begin(self, text: str = "Refactor the parser") -> None:
        self.show("say", "task", text)
        details = "<environment_details>\n# Current Working Directory (/w/shop) Files\nsrc/\n</environment_details>"
        self.results = [{"type": "text", "text": f"<task>\n{text}\n</task>"}, {"type": "text", "text": details}]

    def request(self, **usage: Any) -> None:
        """A request is made: what came of the calls before goes to the model."""
        told = {"tokensIn": 1200, "tokensOut": 340, "cacheWrites": 50, "cacheReads": 10, "cost": 0.0042}
        self.show("say", "api_req_started", {"request": "…", **told, **usage})
        self.api.append({"role": "user", "content": self.results})
        self.results = []

    def call(self, name: str, arguments: dict[str, Any], said: str = "", thinking: str = "", **more: Any) -> str:
        """The model's answer, with a call in it. Returns the call's id."""
        self.calls += 1
        identity = f"toolu_{self.calls}"
        content: list[dict[str, Any]] = []
        if thinking or more.get("signature"):
            content.append({"type": "thinking", "thinking": thinking, "signature": "Er4B", **more})
        if said:
            content.append({"type": "text", "text": said})
        if self.native:
            content.append({"type": "tool_use", "id": identity, "name": name, "input": arguments})
        else:
            inner = "\n".join(f"<{key}>{value}</{key}>" for key, value in arguments.items())
            content.append({"type": "text", "text": f"{said}\n\n<{name}>\n{inner}\n</{name}>"})
        self._pending = (identity, name, arguments)
        self.api.append({"role": "assistant", "content": content})
        return identity

    def result(self, text: Any, *, is_error: bool = False) -> None:
        """What came of the last call; the model gets it with the next request."""
        identity, name, arguments = self._pending
        if self.native:
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": identity, "content": text}
            self.results.append({**block, "is_error": True} if is_error else block)
        else:
            first = next(iter(arguments.values()), "")
            self.results.append({"type": "text", "text": f"[{name} for '{first}'] Result:"})
            self.results.append({"type": "text", "text": text})
            self.results.append(
                {"type": "text", "text": "<environment_details>\n# Current Time\n</environment_details>"}
            )

    def write(self) -> Path:
        """Write the files, as Cline does after every message."""
        (self.directory / "api_conversation_history.json").write_text(json.dumps(self.api, ensure_ascii=False))
        path = self.directory / "ui_messages.json"
        path.write_text(json.dumps(self.ui, ensure_ascii=False))
        return path

    def metadata(self, **more: Any) -> None:
        value = {
            "files_in_context": [{"path": "src/p.py", "record_state": "active", "record_source": "read_tool"}],
            "model_usage": [
                {"ts": 1717000000500, "model_id": MODEL, "model_provider_id": "anthropic", "mode": "act"},
            ],
            "environment_history": [
                {"ts": 1717000000500, "os_name": "linux", "host_name": "Visual Studio Code", "cline_version": "3.40.0"}
            ],
            **more,
        }
        (self.directory / "task_metadata.json").write_text(json.dumps(value))


def tool(name: str, path: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"tool": name, "path": path, "content": content, "operationIsLocatedInWorkspace": True, **more}


EDIT = "------- SEARCH\nold\n=======\nnew\nnewer\n+++++++ REPLACE"


def whole(task: Task) -> None:
    """A task in which calls that show differently stand between others: a join by counting would shift."""
    task.metadata()
    task.begin()
    task.request()
    task.show("say", "reasoning", "I should read it first.")
    task.show("say", "text", "Let me look.")
    task.show("say", "tool", tool("readFile", "src/p.py", "/w/shop/src/p.py"))
    task.call("read_file", {"path": "src/p.py"}, "Let me look.", "I should read it first.")
    task.result("1 | import os\n2 | old")
    task.show("say", "checkpoint_created", lastCheckpointHash="9c1b77aa", isCheckpointCheckedOut=False)

    task.request(cost=0.001)
    task.show("ask", "browser_action_launch", "http://localhost:3000")
    task.show("say", "browser_action_result", "")
    picture = "data:image/webp;base64," + "A" * 4000
    shot = {"screenshot": picture, "logs": "ready", "currentUrl": "http://localhost:3000/"}
    task.show("say", "browser_action_result", shot)
    task.call("browser_action", {"action": "launch", "url": "http://localhost:3000"})
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "A" * 4000}}
    task.result(
        [{"type": "text", "text": "The browser action has been executed."}, image] if task.native else "executed"
    )

    task.request()
    asked = {"serverName": "db", "type": "use_mcp_tool", "toolName": "query", "arguments": '{"sql": "select 1"}'}
    task.show("ask", "use_mcp_server", asked)
    task.show("say", "mcp_server_request_started")
    task.show("say", "mcp_server_response", "one row")
    task.call("use_mcp_tool", {"server_name": "db", "tool_name": "query", "arguments": '{"sql": "select 1"}'})
    task.result("one row")

    task.request()
    task.show("ask", "tool", tool("editedExistingFile", "src/p.py", EDIT, startLineNumbers=[12]), partial=False)
    task.call("replace_in_file", {"path": "src/p.py", "diff": EDIT})
    final = '<final_file_content path="src/p.py">\n' + "line\n" * 500 + "</final_file_content>"
    task.result(f"The content was successfully saved to src/p.py.\n\n{final}\n\nGo on.")

    task.request()
    task.show("ask", "command", "pytest -q")
    task.show("say", "command_output", "..F")
    task.show("say", "command_output", "1 failed")
    task.call("execute_command", {"command": "pytest -q", "requires_approval": "false"})
    task.result("Command executed.\nExit code: 1\nOutput:\n..F\n1 failed\nexit code 0")

    task.request()
    task.show("ask", "command", "rm -rf build")
    task.call("execute_command", {"command": "rm -rf build", "requires_approval": "true"})
    task.result("The user denied this operation.")
    task.show("say", "user_feedback", "Leave the build alone")

    task.request()
    task.show("say", "command", "pytest -q")
    task.show("say", "command_output", "3 passed")
    task.call("execute_command", {"command": "pytest -q", "requires_approval": "false"})
    task.result("Command executed.\nOutput:\n3 passed")

    task.request()
    task.show("say", "completion_result", "Done.HAS_CHANGES", lastCheckpointHash="77aa")
    task.show("ask", "completion_result", "")
    task.call("attempt_completion", {"result": "Done."})
