"""Cursor's databases and transcripts, written as Cursor writes them, in several of its versions."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aver.files.user_dirs import UserEnvironment, user_data_dir

CONVERSATION = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
MODEL = "claude-4.5-opus-high-thinking"


def surroundings(home: Path, platform: str = "linux") -> UserEnvironment:
    return UserEnvironment(home, {}, platform=platform)


def database_of(around: UserEnvironment) -> Path:
    return user_data_dir(around, "Cursor") / "globalStorage" / "state.vscdb"


class Store:
    """A `state.vscdb` that is open for writing, as it is while Cursor runs."""

    def __init__(self, path: Path, *, journal: str = "wal", headers: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(f"PRAGMA journal_mode = {journal}")
        for table in ("ItemTable", "cursorDiskKV"):
            self.connection.execute(
                f"CREATE TABLE IF NOT EXISTS {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
            )
        if headers:
            self.connection.execute(
                "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, isSubagent INTEGER, value TEXT)"
            )

    def put(self, key: str, value: Any) -> None:
        text = value if isinstance(value, str | bytes) else json.dumps(value)
        self.connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, text))

    def bubbles(self, *bubbles: dict[str, Any], conversation: str = CONVERSATION) -> None:
        for one in bubbles:
            self.put(f"bubbleId:{conversation}:{one['bubbleId']}", one)

    def conversation(self, *bubbles: dict[str, Any], identity: str = CONVERSATION, **more: Any) -> None:
        """A conversation of current versions: headers in one value, each bubble in one of its own."""
        self.bubbles(*bubbles, conversation=identity)
        self.put(f"composerData:{identity}", composer(bubbles, identity=identity, **more))

    def close(self) -> None:
        self.connection.close()


def composer(bubbles: Iterable[dict[str, Any]], *, identity: str = CONVERSATION, **more: Any) -> dict[str, Any]:
    return {
        "_v": 10,
        "composerId": identity,
        "name": "Fix the parser",
        "createdAt": 1766691308486,
        "lastUpdatedAt": 1766692125731,
        "status": "completed",
        "unifiedMode": "agent",
        "isAgentic": True,
        "createdOnBranch": "main",
        "modelConfig": {"modelName": MODEL, "maxMode": True},
        "contextTokensUsed": 4096,
        "blobEncryptionKey": "c2VjcmV0",
        "fullConversationHeadersOnly": [{"bubbleId": one["bubbleId"], "type": one["type"]} for one in bubbles],
        **more,
    }


def legacy(*bubbles: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation of older versions: its bubbles stand in its own value."""
    value = composer((), **more)
    del value["fullConversationHeadersOnly"]
    return {**value, "_v": 3, "conversation": list(bubbles)}


_SKELETON: dict[str, Any] = {
    "_v": 3,
    "approximateLintErrors": [],
    "lints": [],
    "codebaseContextChunks": [],
    "commits": [],
    "attachedCodeChunks": [],
    "gitDiffs": [],
    "tokenCount": {"inputTokens": 0, "outputTokens": 0},
}


def asked(identity: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        **_SKELETON,
        "type": 1,
        "bubbleId": identity,
        "createdAt": "2026-05-30T10:00:00.000Z",
        "text": text,
        "modelInfo": {"modelName": MODEL},
        "workspaceUris": ["file:///w/shop"],
        **more,
    }


def said(identity: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {
        **_SKELETON,
        "type": 2,
        "bubbleId": identity,
        "createdAt": "2026-05-30T10:00:02.500Z",
        "text": text,
        "contextWindowStatusAtCreation": {"tokensUsed": 4096, "tokenLimit": 200000, "percentageRemaining": 97.9},
        **more,
    }


def called(
    identity: str,
    name: str,
    params: Any,
    result: Any = None,
    *,
    status: str = "completed",
    call: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    former = {
        "tool": 15,
        "name": name,
        "toolCallId": f"toolu_{identity}",
        "status": status,
        "rawArgs": "",
        "params": json.dumps(params),
        **({} if result is None else {"result": result if isinstance(result, str) else json.dumps(result)}),
        **(call or {}),
    }
    return said(identity, capabilityType=15, toolFormerData=former, **more)


def content(store: Store, text: str) -> str:
    """A file as newer versions keep it beside the bubbles: by its digest."""
    key = f"composer.content.{hashlib.sha256(text.encode()).hexdigest()}"
    store.put(key, text)
    return key


def blob(store: Store, text: str) -> str:
    key = f"agentKv:blob:{hashlib.sha256(text.encode()).hexdigest()}"
    store.put(key, text.encode())
    return key


def transcript(home: Path, lines: Iterable[Any], *, identity: str = CONVERSATION, agent: str = "") -> Path:
    """A transcript file of the command line."""
    directory = home / ".cursor" / "projects" / "w-shop" / "agent-transcripts" / identity
    path = directory / "subagents" / f"{agent}.jsonl" if agent else directory / f"{identity}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def line(role: str, *blocks: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"role": role, "message": {"content": content}}


def tracking(home: Path, rows: Iterable[tuple[str, str, str, str]], *, linked: bool = False) -> Path:
    """The database of whose lines were whose. Rows: conversation, source, file, request."""
    path = home / ".cursor" / "ai-tracking" / "ai-code-tracking.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS ai_code_hashes (hash TEXT PRIMARY KEY, source TEXT, fileExtension TEXT,"
            " fileName TEXT, requestId TEXT, conversationId TEXT, timestamp INTEGER, createdAt INTEGER, model TEXT)"
        )
        link = ", requestId TEXT" if linked else ""
        connection.execute(
            "CREATE TABLE IF NOT EXISTS scored_commits (commitHash TEXT, branchName TEXT, linesAdded INTEGER,"
            " tabLinesAdded INTEGER, composerLinesAdded INTEGER, humanLinesAdded INTEGER, commitMessage TEXT,"
            f" commitDate TEXT, v1AiPercentage TEXT, v2AiPercentage TEXT{link})"
        )
        for conversation, source, file, request in rows:
            count = connection.execute("SELECT count(*) FROM ai_code_hashes").fetchone()[0]
            connection.execute(
                "INSERT INTO ai_code_hashes VALUES (?, ?, 'py', ?, ?, ?, 0, 0, ?)",
                (f"h{count}", source, file, request, conversation, MODEL),
            )
    connection.close()
    return path


def commit(path: Path, digest: str, *, request: str | None = None) -> None:
    with sqlite3.connect(path) as connection:
        values = [
            digest,
            "main",
            40,
            0,
            30,
            10,
            "Fix it\n\nSigned-off-by: Dev <dev@example.org>",
            "2026-05-30",
            "75",
            "70",
        ]
        values += [] if request is None else [request]
        connection.execute(f"INSERT INTO scored_commits VALUES ({', '.join('?' * len(values))})", values)
    connection.close()
