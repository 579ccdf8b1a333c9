"""Cline's tasks and sessions: where they are, and how Aver reads the files of a task.

    <tasks>/<task>/ui_messages.json               the messages that the user saw: a list, rewritten at every message
    <tasks>/<task>/api_conversation_history.json  the messages to and from the model
    <tasks>/<task>/task_metadata.json             models, versions, files

`<tasks>` is `User/globalStorage/saoudrizwan.claude-dev/tasks` in an editor's data directory, on this machine or on a
remote host, and `~/.cline/data/tasks` for JetBrains and the command line. Newer versions write sessions instead (see
`session_parser`), and leave older tasks in place. The beginning of `ui_messages.json`:

    [{"ts": 1780218000000, "type": "say", "say": "task", "text": "Make totals round half up"},
     {"ts": 1780218001000, "type": "say", "say": "api_req_started", "text": "{\\"tokensIn\\": 1200, …}"}, …]

A record is one element of a list, as its bytes are: `ui:<index>`, `api:<index>`; `metadata` is a record too. The reader
gives each record in order, when it cannot change any more. While Cline rewrites a file, there are no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.agents.cline.results import task_info
from aver.agents.cline.session_parser import (
    MANIFEST,
    MESSAGES_SUFFIX,
    SessionParser,
    SessionReader,
    locate_sessions,
    sessions_dir,
)
from aver.agents.cline.task_parser import TaskParser
from aver.files.regular import read_if_regular
from aver.files.user_dirs import UserEnvironment, user_data_dir
from aver.ingest.contract import Adapter, RawRecord, RecordReader, TranscriptParser, TranscriptSource, record_from_bytes
from aver.ingest.foreign_json import parse_embedded_json, parse_json, split_array
from aver.ingest.json_lines import FileStatus, is_settled, read_file_status

TOOL = "cline"
EXTENSION = "saoudrizwan.claude-dev"
EDITORS = ("Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf")
SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server", ".vscodium-server")

UI_FILE, API_FILE, METADATA_FILE = "ui_messages.json", "api_conversation_history.json", "task_metadata.json"
METADATA_PLACE = "metadata"

FILE_MAX = 512 * 1024 * 1024
"""The largest file that Aver reads, in bytes. It must fit into memory, because it is one JSON value."""


def watched_dirs(around: UserEnvironment) -> Iterable[Path]:
    """Yield the directories of tasks and sessions, for every editor that Cline runs in."""
    below = Path("globalStorage") / EXTENSION / "tasks"
    yield from (user_data_dir(around, editor) / below for editor in EDITORS)
    yield from (around.home / server / "data" / "User" / below for server in SERVERS)
    own = around.environment.get("CLINE_DIR")
    yield (Path(own) if own else around.home / ".cline") / "data" / "tasks"
    yield sessions_dir(around)


def locate(around: UserEnvironment) -> Iterator[TranscriptSource]:
    found: dict[str, TranscriptSource] = {}
    for directory in watched_dirs(around):
        for path in sorted(directory.glob(f"*/{UI_FILE}")):
            task = path.parent
            stamp = ";".join(str(read_file_status(task / name)) for name in (UI_FILE, API_FILE, METADATA_FILE))
            source = TranscriptSource(tool=TOOL, session=task.name, path=path, appends=False, stamp=stamp)
            found.setdefault(task.name, source)
    yield from found.values()
    yield from locate_sessions(sessions_dir(around), TOOL)


def open_reader(source: TranscriptSource) -> RecordReader:
    return SessionReader(source) if _is_session(source) else TaskReader(source.path.parent)


def create_parser(source: TranscriptSource) -> TranscriptParser:
    return SessionParser(source) if _is_session(source) else TaskParser(source)


def _is_session(source: TranscriptSource) -> bool:
    return source.path.name.endswith(MESSAGES_SUFFIX)


class TaskReader:
    """Reads the records of a task, and remembers which it has given."""

    started_anew = False
    """Always false: Cline rewrites the whole list, so there is no position to start again from."""
    unfinished = 0

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[str, FileStatus] = {}
        self._lists: dict[str, list[bytes]] = {}
        self._given: set[tuple[str, str]] = set()
        self._metadata_facts = ""

    def __call__(self) -> Iterator[RawRecord]:
        """Yield the new records in the order of their origin: history up to a request, then the request's messages."""
        # Read the history before the messages. Then every message that belongs to the history so far is in the list.
        history, shown = self._read_list(API_FILE), self._read_list(UI_FILE)
        if history is None or shown is None:
            return
        # The metadata, if the facts that become an event have changed.
        data = read_if_regular(self._directory / METADATA_FILE, FILE_MAX)
        metadata_record = parse_json(data) if data else None
        facts = str(task_info(metadata_record)) if isinstance(metadata_record, dict) else ""
        if data and facts and facts != self._metadata_facts:
            self._metadata_facts = facts
            yield record_from_bytes(METADATA_PLACE, data)
        messages = [parse_json(text) for text in shown]
        placed = any(_find_history_index(message) is not None for message in messages)
        given = 0 if placed else len(history)
        yield from self._new_history(history[:given], 0)
        whole, growing = _split_final(messages)
        counts: dict[str, int] = {}
        for index in (*whole, *growing):
            at = _find_history_index(messages[index])
            if at is not None and at + 2 > given:
                yield from self._new_history(history[given : at + 2], given)
                given = at + 2
            if index in growing:
                return
            record = record_from_bytes(f"ui:{index}", shown[index])
            # Cline may change other fields of a message later. So its time and kind identify it.
            message, identity = messages[index], record.sha256
            if isinstance(message, dict) and isinstance(message.get("ts"), int):
                identity = f"{message['ts']}:{_message_kind(message)}"
            counts[identity] = counts.get(identity, 0) + 1
            if self._is_new("ui", f"{identity}#{counts[identity]}"):
                yield record
        yield from self._new_history(history[given:], given)

    def _new_history(self, texts: list[bytes], start: int) -> Iterator[RawRecord]:
        for index, text in enumerate(texts, start):
            record = record_from_bytes(f"api:{index}", text)
            if self._is_new(record.place, record.sha256):
                yield record

    def _read_list(self, name: str) -> list[bytes] | None:
        """Return the elements of a file, which is read again only if it has changed; None if it is incomplete now."""
        path = self._directory / name
        status = read_file_status(path)
        if status is None:
            return []
        if self._read.get(name) != status:
            found = split_array(read_if_regular(path, FILE_MAX) or b"")
            if found is None:
                return None
            self._lists[name] = found
            if is_settled([status]):
                self._read[name] = status
        return self._lists[name]

    def _is_new(self, kind: str, identity: str) -> bool:
        if (kind, identity) in self._given:
            return False
        self._given.add((kind, identity))
        return True


def _message_kind(message: Any) -> Any:
    return (message.get("say") or message.get("ask")) if isinstance(message, dict) else None


def _find_history_index(message: Any) -> int | None:
    """Return the index of the last history message before a request; None for other messages and in older versions."""
    at = message.get("conversationHistoryIndex") if _message_kind(message) == "api_req_started" else None
    return at if isinstance(at, int) and not isinstance(at, bool) and at >= -1 else None


def _split_final(messages: list[Any]) -> tuple[list[int], list[int]]:
    """Return the messages that cannot change any more, up to the first that can; and that message, if there is one."""
    requests = [index for index, message in enumerate(messages) if _message_kind(message) == "api_req_started"]
    last_request = requests[-1] if requests else -1
    found: list[int] = []
    for index, message in enumerate(messages):
        is_partial = isinstance(message, dict) and message.get("partial") is True
        if index < last_request:
            if not is_partial:  # A partial message before a later request was cut off, and never becomes complete.
                found.append(index)
        elif is_partial or not _is_final(message, followed=index + 1 < len(messages)):
            return found, [index]
        else:
            found.append(index)
    return found, []


def _is_final(message: Any, *, followed: bool) -> bool:
    """Return whether a message after the last request is complete."""
    kind = _message_kind(message)
    if kind == "api_req_started":
        info = parse_embedded_json(message.get("text"))
        return isinstance(info, Mapping) and any(info.get(name) for name in ("cost", "tokensOut", "cancelReason"))
    if kind == "checkpoint_created":
        return bool(message.get("lastCheckpointHash"))
    return followed or kind not in ("command_output", "browser_action_result", "subagent")


ADAPTER = Adapter(
    tool=TOOL,
    title="Cline",
    locate=locate,
    read=open_reader,
    parser=create_parser,
    places=watched_dirs,
    rewrites=lambda place: place in (METADATA_PLACE, MANIFEST),
)
