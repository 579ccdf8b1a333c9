"""The demo's session as Cline would have written it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aver.agents.demo_session import NEW, OLD, PROMPT, TEST_OUTPUT, Json
from aver.files.user_dirs import UserEnvironment, user_data_dir

SESSION = "1780218000000"


def write_demo(around: UserEnvironment) -> Path:
    """Write the two files of the task, and return the one that the user sees."""
    storage = user_data_dir(around, "Code") / "globalStorage" / "saoudrizwan.claude-dev"
    directory = storage / "tasks" / SESSION
    start = int(SESSION)
    change = f"------- SEARCH\n{OLD}\n=======\n{NEW}\n+++++++ REPLACE"
    edit = {"tool": "editedExistingFile", "path": "totals.py", "content": change}
    request = {"request": "...", "tokensIn": 1200, "tokensOut": 340, "cacheReads": 10, "cost": 0.0042}
    shown: list[Json] = [
        {"type": "say", "say": "task", "text": PROMPT},
        {"type": "say", "say": "api_req_started", "text": json.dumps(request)},
        {"type": "say", "say": "tool", "text": json.dumps(edit), "conversationHistoryIndex": 0},
        {"type": "say", "say": "command", "text": "pytest -q", "conversationHistoryIndex": 2},
        {"type": "say", "say": "command_output", "text": TEST_OUTPUT},
        {"type": "say", "say": "completion_result", "text": "Totals round half up now."},
    ]

    def use(call: str, name: str, **given: Any) -> Json:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": name, "input": given}]}

    def result(call: str, text: str) -> Json:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}

    history: list[Json] = [
        {"role": "user", "content": [{"type": "text", "text": f"<task>\n{PROMPT}\n</task>"}]},
        use("toolu_c1", "replace_in_file", path="totals.py", diff=change),
        result("toolu_c1", "The content was successfully saved to totals.py."),
        use("toolu_c2", "execute_command", command="pytest -q", requires_approval=False),
        result("toolu_c2", f"Command executed.\nOutput:\n{TEST_OUTPUT}"),
    ]
    directory.mkdir(parents=True)
    timed = [{"ts": start + 1000 * second, **one} for second, one in enumerate(shown)]
    (directory / "ui_messages.json").write_text(json.dumps(timed), "utf-8")
    (directory / "api_conversation_history.json").write_text(json.dumps(history), "utf-8")
    return directory / "ui_messages.json"
