"""The demo's session as Cursor would have written it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from aver.agents.demo_session import FILE, NEW, OLD, PROMPT, TEST_OUTPUT, TIME_PREFIX, Json
from aver.files.user_dirs import UserEnvironment, user_data_dir

SESSION = "7b0e9c52-6c1e-4a57-8f0a-3f0a3d1c9e20"


def write_demo(around: UserEnvironment) -> Path:
    """Write the database with the conversation, and return its path."""
    path = user_data_dir(around, "Cursor") / "globalStorage" / "state.vscdb"

    def call(bubble: str, name: str, given: Json, result: Json) -> Json:
        told = {"toolCallId": f"toolu_{bubble}", "name": name, "status": "completed"}
        texts = {"rawArgs": json.dumps(given), "params": json.dumps(given), "result": json.dumps(result)}
        return {
            "type": 2,
            "bubbleId": bubble,
            "text": "",
            "createdAt": f"{TIME_PREFIX}2:01.000Z",
            "toolFormerData": told | texts,
        }

    edit = {"target_file": FILE, "old_string": OLD, "new_string": NEW}
    bubbles: list[Json] = [
        {"type": 1, "bubbleId": "b1", "text": PROMPT, "createdAt": f"{TIME_PREFIX}2:00.000Z"},
        call("b2", "search_replace", edit, {"success": True}),
        call("b3", "run_terminal_cmd", {"command": "pytest -q"}, {"output": TEST_OUTPUT, "exitCode": 0}),
        {"type": 2, "bubbleId": "b4", "text": "Totals round half up now.", "createdAt": f"{TIME_PREFIX}2:02.000Z"},
    ]
    headers = [{"bubbleId": one["bubbleId"], "type": one["type"]} for one in bubbles]
    composer = {
        "composerId": SESSION,
        "name": "Round half up",
        "status": "completed",
        "createdAt": 1780218120000,
        "modelConfig": {"modelName": "claude-4.5-opus"},
        "fullConversationHeadersOnly": headers,
    }
    values = {f"composerData:{SESSION}": composer}
    values |= {f"bubbleId:{SESSION}:{one['bubbleId']}": dict(one) for one in bubbles}
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        store.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        store.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)
    return path
