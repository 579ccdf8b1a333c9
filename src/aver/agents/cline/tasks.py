"""Cline: its tasks, from the files in which it keeps them.

    <tasks>/<task>/ui_messages.json               what a person saw: a list, rewritten at every message
    <tasks>/<task>/api_conversation_history.json  what went to the model and came back
    <tasks>/<task>/task_metadata.json             models, versions, files

Tasks lie where an editor keeps what is its extensions', `User/globalStorage/saoudrizwan.claude-dev/tasks`, here or on a
machine that is edited from afar, and in `~/.cline/data/tasks` for JetBrains and the command line. Newer versions keep
sessions instead (`cline_sessions`); tasks of older ones stay where they are.

A record is an element of a list, as it stands: `ui:<index>`, `api:<index>`; and `metadata`. Each is given once it is
final, in order. A file that is being rewritten, and is not whole, gives nothing this time.
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
"""Bytes of a file that are read: a list has to be held whole to be read."""


def watched_dirs(around: UserEnvironment) -> Iterable[Path]:
    """Where tasks are kept. The data directory of an editor is watched, because the extension makes the rest."""
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
            task = path.parent.name
            parent = path.parent
            task_stamp = ";".join(str(read_file_status(parent / name)) for name in (UI_FILE, API_FILE, METADATA_FILE))
            found.setdefault(
                task,
                TranscriptSource(tool=TOOL, session=task, path=path, appends=False, stamp=task_stamp),
            )
    yield from found.values()
    yield from locate_sessions(sessions_dir(around), TOOL)


def open_reader(source: TranscriptSource) -> RecordReader:
    return SessionReader(source) if _is_session(source) else TaskReader(source.path.parent)


def create_parser(source: TranscriptSource) -> TranscriptParser:
    return SessionParser(source) if _is_session(source) else TaskParser(source)


def _is_session(source: TranscriptSource) -> bool:
    return source.path.name.endswith(MESSAGES_SUFFIX)


class TaskReader:
    """Reads a task: which of its records were given."""

    started_anew = False
    """A list that is rewritten has no beginning to start from again: its elements are told apart."""
    unfinished = 0

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[str, FileStatus] = {}
        self._lists: dict[str, list[bytes]] = {}
        self._given: set[tuple[str, str]] = set()
        self._face = ""

    def __call__(self) -> Iterator[RawRecord]:
        """What is new, in the order in which it came to be: a request follows what is in the history when it begins.

        The history is read first, so that all that was shown before its last message is there to be read."""
        history, shown = self._read_list(API_FILE), self._read_list(UI_FILE)
        if history is None or shown is None:
            return
        # What is around the task, whenever what is worth telling of it is new.
        data = read_if_regular(self._directory / METADATA_FILE, FILE_MAX)
        metadata_record = parse_json(data) if data else None
        face = str(task_info(metadata_record)) if isinstance(metadata_record, dict) else ""
        if data and face and face != self._face:
            self._face = face
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
            # What tells a message from others, whatever else of it is written later: its time and its sort.
            message = messages[index]
            if not isinstance(message, dict) or not isinstance(message.get("ts"), int):
                message_identity = ""
            else:
                message_identity = f"{message['ts']}:{_message_kind(message)}"
            identity = message_identity or record.sha256
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
        """The elements of a file, which is read only where it has changed; None where it is not whole now."""
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

    def _is_new(self, sort: str, identity: str) -> bool:
        if (sort, identity) in self._given:
            return False
        self._given.add((sort, identity))
        return True


def _message_kind(message: Any) -> Any:
    return (message.get("say") or message.get("ask")) if isinstance(message, dict) else None


def _find_history_index(message: Any) -> int | None:
    """Of a request: the last message that was in the history when it began. Older versions do not tell."""
    at = message.get("conversationHistoryIndex") if _message_kind(message) == "api_req_started" else None
    return at if isinstance(at, int) and not isinstance(at, bool) and at >= -1 else None


def _split_final(messages: list[Any]) -> tuple[list[int], list[int]]:
    """Which messages will not change any more, up to the first that may; and that one, if there is one."""
    requests = [index for index, message in enumerate(messages) if _message_kind(message) == "api_req_started"]
    last_request = requests[-1] if requests else -1
    found: list[int] = []
    for index, message in enumerate(messages):
        is_partial = isinstance(message, dict) and message.get("partial") is True
        if index < last_request:
            if not is_partial:  # Else it was cut off, and never became whole.
                found.append(index)
        elif is_partial or not _is_final(message, followed=index + 1 < len(messages)):
            return found, [index]
        else:
            found.append(index)
    return found, []


def _is_final(message: Any, *, followed: bool) -> bool:
    """Whether nothing of a message that matters will change, though no request was made after it."""
    sort = _message_kind(message)
    if sort == "api_req_started":
        info = parse_embedded_json(message.get("text"))
        return isinstance(info, Mapping) and any(info.get(name) for name in ("cost", "tokensOut", "cancelReason"))
    if sort == "checkpoint_created":
        return bool(message.get("lastCheckpointHash"))
    return followed or sort not in ("command_output", "browser_action_result", "subagent")


ADAPTER = Adapter(
    tool=TOOL,
    title="Cline",
    locate=locate,
    read=open_reader,
    parser=create_parser,
    places=watched_dirs,
    rewrites=lambda place: place in (METADATA_PLACE, MANIFEST),
)
