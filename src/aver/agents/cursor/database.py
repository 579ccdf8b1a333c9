"""Cursor's SQLite databases. Aver reads them in place, while Cursor writes them.

    state.vscdb            conversations: table cursorDiskKV(key, value); it may have many gigabytes
    ai-code-tracking.db    the author of each line: tables ai_code_hashes and scored_commits

    composerData:<conversation>          {"composerId": "7b0e9c52-…", "status": "completed",
                                          "fullConversationHeadersOnly": [{"bubbleId": "b1", "type": 1}, …]}
    bubbleId:<conversation>:<bubble>     {"type": 1, "bubbleId": "b1", "text": "Make totals round half up", …}

- Aver opens them read-only, never copies them, and creates no file beside them.
- If Cursor has the database open, Aver reads it with its write-ahead log. Otherwise it reads the file alone, and drops
  the result if a program began to write in the meantime.
- Aver finds values by key, through the index. It does not read the rest of the file.
- A missing, locked or damaged file gives no records this time. It is no error.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson

from aver.files.regular import open_if_regular
from aver.ingest.contract import RECORD_MAX, RawRecord, record_from_bytes
from aver.ingest.foreign_json import first_text, parse_json
from aver.ingest.json_lines import FileStatus, read_file_status

T = TypeVar("T")
DatabaseStamp = tuple[FileStatus | None, ...]
"""The status of a database file and of its log. If it is unchanged, the database was not written."""

MAGIC = b"SQLite format 3\x00"
WAL_VERSION = b"\x02\x02"
"""Bytes 18 and 19 of a database whose journal is a write-ahead log."""

BUSY_WAIT = 2.0
"""Seconds to wait for Cursor's write lock. After that Aver reads the database at the next look."""

HASH_CHUNK_SIZE = 1024 * 1024
"""Bytes of a large value that are hashed at a time."""

COMPOSER_PREFIX, BUBBLE_PREFIX = "composerData:", "bubbleId:"

NAMES_MAX = 200
"""The most files, requests and commits that the authorship record lists. Its counts include all."""


def composer_key(conversation: str) -> str:
    return COMPOSER_PREFIX + conversation


def database_stamp(path: Path) -> DatabaseStamp:
    return tuple(read_file_status(Path(f"{path}{suffix}")) for suffix in ("", "-wal"))


def query_snapshot(path: Path, work: Callable[[sqlite3.Connection], T]) -> T | None:
    """Return the result of `work` on one consistent state of the database; None if it cannot be read now."""
    before = database_stamp(path)
    for uri in _read_only_uris(path):
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_WAIT, isolation_level=None)) as connection:
                # The file is another program's. Do not run functions from its schema, and detect damaged cells.
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA cell_size_check = ON")
                connection.text_factory = _decode_text
                connection.execute("BEGIN")
                found = work(connection)
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError):
            continue
        # `immutable=1` takes no locks. So the result counts only if no program wrote since `before`.
        if "immutable" in uri and (
            database_stamp(path) != before or read_file_status(Path(f"{path}-journal")) is not None
        ):
            return None
        return found
    return None


class ConversationRows(NamedTuple):
    """The row numbers of a conversation. Cursor changes a row by replacing it, which gives it a new number, unless it
    was the last row."""

    composer: int
    newest_bubble: int


class NewestBubbles(NamedTuple):
    """The newest bubble of each conversation, up to the row `last`. The next look reads only the rows after it.

    A database may have a hundred thousand bubbles, and Cursor writes it several times a second.
    """

    bubbles: Mapping[str, int]
    last: int
    key: Any


def list_conversations(
    connection: sqlite3.Connection, before: NewestBubbles | None = None
) -> tuple[dict[str, ConversationRows], NewestBubbles]:
    """Return all conversations by id, and the state for the next look. Reads keys only, no values."""
    if not {"key", "value"} <= _list_columns(connection, "cursorDiskKV"):
        return {}, NewestBubbles({}, 0, None)
    rows = connection.execute(
        "SELECT key, rowid FROM cursorDiskKV WHERE key > ? AND key < ?", (COMPOSER_PREFIX, "composerData;")
    )
    found = {key.removeprefix(COMPOSER_PREFIX): row for key, row in rows if isinstance(key, str)}
    end = connection.execute("SELECT rowid, key FROM cursorDiskKV ORDER BY rowid DESC LIMIT 1").fetchone()
    last, key = end or (0, None)
    if before is None or _key_at(connection, before.last) != before.key:
        # The first look, or Cursor deleted or renumbered rows, so that `before.last` is another row now. Read all.
        bubbles = connection.execute(
            "SELECT substr(key, 10, instr(substr(key, 10), ':') - 1) AS conversation, max(rowid)"
            " FROM cursorDiskKV WHERE key > ? AND key < 'bubbleId;' GROUP BY conversation",
            (BUBBLE_PREFIX,),
        )
        newest: NewestBubbles = NewestBubbles(dict(bubbles), last, key)
    else:
        since = connection.execute("SELECT key, rowid FROM cursorDiskKV WHERE rowid > ? ORDER BY rowid", (before.last,))
        named = (
            (name.removeprefix(BUBBLE_PREFIX).partition(":")[0], row)
            for name, row in since
            if isinstance(name, str) and name.startswith(BUBBLE_PREFIX)
        )
        newest = NewestBubbles({**before.bubbles, **dict(named)}, last, key)
    return {name: ConversationRows(found[name], newest.bubbles.get(name, 0)) for name in sorted(found)}, newest


def _key_at(connection: sqlite3.Connection, row: int) -> Any:
    found = connection.execute("SELECT key FROM cursorDiskKV WHERE rowid = ?", (row,)).fetchone()
    return None if found is None else found[0]


def find_parents(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Return for each subagent the conversation and the call that launched it. Only newer versions have this table."""
    if not {"composerId", "isSubagent", "value"} <= _list_columns(connection, "composerHeaders"):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for composer, value in connection.execute("SELECT composerId, value FROM composerHeaders WHERE isSubagent = 1"):
        head = parse_json(value) if isinstance(value, str | bytes) else None
        info = head.get("subagentInfo") if isinstance(head, dict) else None
        if not isinstance(info, dict) or not isinstance(composer, str):
            continue
        parent = first_text(info, "parentComposerId", "parentConversationId")
        if parent and parent != composer:
            found[composer] = (parent, first_text(info, "toolCallId", "parentToolCallId"))
    return found


def read_value(connection: sqlite3.Connection, key: str) -> RawRecord | None:
    """Return a value as a record; None if there is none. A value over `RECORD_MAX` is hashed but not kept."""
    row = connection.execute("SELECT rowid FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    try:
        blob = connection.blobopen("cursorDiskKV", "value", row[0], readonly=True)
    except sqlite3.Error:  # NULL, or a number.
        return None
    with blob:
        size = len(blob)
        if size <= RECORD_MAX:
            return record_from_bytes(key, blob.read())
        digest = hashlib.sha256()
        for piece in iter(lambda: blob.read(HASH_CHUNK_SIZE), b""):
            digest.update(piece)
        return RawRecord(key, b"", digest.hexdigest(), size)


def read_authorship(path: Path, conversation: str) -> bytes | None:
    """Return Cursor's count of a conversation's lines, as sorted JSON; None if it counts none.

    The result lists a commit only if the database links it to this conversation, to its requests or to its lines. It
    has no commit messages, because they name people.
    """
    rollup = query_snapshot(path, lambda connection: _read_rollup(connection, conversation))
    return None if not rollup else orjson.dumps(rollup, option=orjson.OPT_SORT_KEYS)


def _read_rollup(connection: sqlite3.Connection, conversation: str) -> dict[str, Any]:
    columns = _list_columns(connection, "ai_code_hashes")
    if "conversationId" not in columns:
        return {}
    wanted = ("source", "fileName", "requestId", "model", "commitHash")
    listed = ", ".join(name if name in columns else "NULL" for name in wanted)
    sources: dict[str, int] = {}
    files, requests, models, commits = set[str](), set[str](), set[str](), set[str]()
    for source, *names in connection.execute(
        f"SELECT {listed} FROM ai_code_hashes WHERE conversationId = ?",
        (conversation,),
    ):
        if isinstance(source, str):
            sources[source] = sources.get(source, 0) + 1
        for name, known in zip(names, (files, requests, models, commits), strict=True):
            if isinstance(name, str) and name:
                known.add(name)
    if not sources and not files:
        return {}
    return {
        "lines_tracked": sum(sources.values()),
        "lines_by_source": sources,
        "models": sorted(models),
        "files": sorted(files)[:NAMES_MAX],
        "file_count": len(files),
        "requests": sorted(requests)[:NAMES_MAX],
        "request_count": len(requests),
        **_read_commits(connection, conversation, requests, commits),
    }


_COMMIT_COUNT_COLUMNS = (
    "linesAdded",
    "linesDeleted",
    "tabLinesAdded",
    "composerLinesAdded",
    "humanLinesAdded",
    "v1AiPercentage",
)
_COMMIT_COLUMNS = ("commitHash", "branchName", "commitDate", *_COMMIT_COUNT_COLUMNS, "v2AiPercentage")


def _read_commits(
    connection: sqlite3.Connection, conversation: str, requests: set[str], hashes: set[str]
) -> dict[str, Any]:
    """Return the commits of this conversation. The table has the commits of the whole machine."""
    columns = _list_columns(connection, "scored_commits")
    links: Mapping[str, set[str]] = {"conversationId": {conversation}, "requestId": requests, "commitHash": hashes}
    if "commitHash" not in columns:
        return {}
    known = [name for name in _COMMIT_COLUMNS if name in columns]
    found: dict[str, dict[str, Any]] = {}
    for column, values in links.items():
        for value in sorted(values) if column in columns else ():
            rows = connection.execute(
                f"SELECT {', '.join(known)} FROM scored_commits WHERE {column} = ?",
                (value,),
            )
            for row in rows:
                commit = {
                    name: item
                    for name, item in zip(known, row, strict=True)
                    if isinstance(item, str | int | float) and item == item
                }
                found[str(commit.get("commitHash"))] = commit
    return {"commits": [found[name] for name in sorted(found)][:NAMES_MAX], "commit_count": len(found)}


def _read_only_uris(path: Path) -> list[str]:
    """Return the URIs to try, in order, that open a database without creating or writing a file."""
    file = open_if_regular(path)
    if file is None:
        return []
    try:
        with file:
            header = file.read(20)
    except OSError:
        return []
    if not header.startswith(MAGIC):
        return []
    base = path.resolve().as_uri()
    if header[18:20] != WAL_VERSION:
        return [f"{base}?mode=ro"]
    if read_file_status(Path(f"{path}-wal")) is None or read_file_status(Path(f"{path}-shm")) is None:
        # Without both files SQLite would create the log's index. `immutable=1` reads the database file alone.
        return [f"{base}?mode=ro&immutable=1"]
    return [f"{base}?mode=ro&readonly_shm=1", f"{base}?mode=ro"]


def _list_columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the stored columns of a plain table. `table_info` leaves out computed columns, which may be large."""
    # A view or a virtual table could run any query.
    row = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone()
    plain_table = row is not None and isinstance(row[0], str) and "virtual" not in row[0].lower()
    if not plain_table:
        return set()
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
