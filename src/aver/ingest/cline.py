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

from aver.ingest.changes import Status, is_settled, status_of
from aver.ingest.cline_conversation import SessionTurn
from aver.ingest.cline_sessions import MANIFEST, MESSAGES, SessionReader, sessions, sessions_in
from aver.ingest.cline_turn import TaskTurn
from aver.ingest.cline_values import face_of
from aver.ingest.contract import Adapter, Raw, Reader, Source, Turn, raw
from aver.ingest.pieces import elements
from aver.ingest.plain import read_plain
from aver.ingest.records import as_json, parsed
from aver.surroundings import Surroundings, user_data

__all__ = ["ADAPTER"]

TOOL = "cline"
EXTENSION = "saoudrizwan.claude-dev"
EDITORS = ("Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf")
SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server", ".vscodium-server")

UI, API, METADATA = "ui_messages.json", "api_conversation_history.json", "task_metadata.json"
METADATA_PLACE = "metadata"

FILE_MAX = 512 * 1024 * 1024
"""Bytes of a file that are read: a list has to be held whole to be read."""


def places(around: Surroundings) -> Iterable[Path]:
    """Where tasks are kept. The data directory of an editor is watched, because the extension makes the rest."""
    below = Path("globalStorage") / EXTENSION / "tasks"
    yield from (user_data(around, editor) / below for editor in EDITORS)
    yield from (around.home / server / "data" / "User" / below for server in SERVERS)
    own = around.environment.get("CLINE_DIR")
    yield (Path(own) if own else around.home / ".cline") / "data" / "tasks"
    yield sessions(around)


def locate(around: Surroundings) -> Iterator[Source]:
    found: dict[str, Source] = {}
    for directory in places(around):
        for path in sorted(directory.glob(f"*/{UI}")):
            task = path.parent.name
            found.setdefault(task, Source(tool=TOOL, session=task, path=path, appends=False, stamp=_stamp(path.parent)))
    yield from found.values()
    yield from sessions_in(sessions(around), TOOL)


def read(source: Source) -> Reader:
    return SessionReader(source) if _is_session(source) else TaskReader(source.path.parent)


def turn(source: Source) -> Turn:
    return SessionTurn(source) if _is_session(source) else TaskTurn(source)


def _is_session(source: Source) -> bool:
    return source.path.name.endswith(MESSAGES)


class TaskReader:
    """Reads a task: which of its records were given."""

    started_anew = False
    """A list that is rewritten has no beginning to start from again: its elements are told apart."""
    unfinished = 0

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[str, Status] = {}
        self._lists: dict[str, list[bytes]] = {}
        self._given: set[tuple[str, str]] = set()
        self._face = ""

    def __call__(self) -> Iterator[Raw]:
        """What is new, in the order in which it came to be: a request follows what is in the history when it begins.

        The history is read first, so that all that was shown before its last message is there to be read."""
        history, shown = self._list(API), self._list(UI)
        if history is None or shown is None:
            return
        yield from self._metadata()
        messages = [parsed(text) for text in shown]
        placed = any(_history_at(message) is not None for message in messages)
        given = 0 if placed else len(history)
        yield from self._new_history(history[:given], 0)
        whole, growing = _final(messages)
        counts: dict[str, int] = {}
        for index in (*whole, *growing):
            at = _history_at(messages[index])
            if at is not None and at + 2 > given:
                yield from self._new_history(history[given : at + 2], given)
                given = at + 2
            if index in growing:
                return
            record = raw(f"ui:{index}", shown[index])
            identity = _identity(messages[index]) or record.sha256
            counts[identity] = counts.get(identity, 0) + 1
            if self._is_new("ui", f"{identity}#{counts[identity]}"):
                yield record
        yield from self._new_history(history[given:], given)

    def _new_history(self, texts: list[bytes], start: int) -> Iterator[Raw]:
        for index, text in enumerate(texts, start):
            record = raw(f"api:{index}", text)
            if self._is_new(record.place, record.sha256):
                yield record

    def _metadata(self) -> Iterator[Raw]:
        """What is around the task, whenever what is worth telling of it is new."""
        data = read_plain(self._directory / METADATA, FILE_MAX)
        record = parsed(data) if data else None
        face = str(face_of(record)) if isinstance(record, dict) else ""
        if data and face and face != self._face:
            self._face = face
            yield raw(METADATA_PLACE, data)

    def _list(self, name: str) -> list[bytes] | None:
        """The elements of a file, which is read only where it has changed; None where it is not whole now."""
        path = self._directory / name
        status = status_of(path)
        if status is None:
            return []
        if self._read.get(name) != status:
            found = elements(read_plain(path, FILE_MAX) or b"")
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


def _sort(message: Any) -> Any:
    return (message.get("say") or message.get("ask")) if isinstance(message, dict) else None


def _identity(message: Any) -> str:
    """What tells a message from others, whatever else of it is written later: its time and its sort."""
    if not isinstance(message, dict) or not isinstance(message.get("ts"), int):
        return ""
    return f"{message['ts']}:{_sort(message)}"


def _history_at(message: Any) -> int | None:
    """Of a request: the last message that was in the history when it began. Older versions do not tell."""
    at = message.get("conversationHistoryIndex") if _sort(message) == "api_req_started" else None
    return at if isinstance(at, int) and not isinstance(at, bool) and at >= -1 else None


def _final(messages: list[Any]) -> tuple[list[int], list[int]]:
    """Which messages will not change any more, up to the first that may; and that one, if there is one."""
    requests = [index for index, message in enumerate(messages) if _sort(message) == "api_req_started"]
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
    sort = _sort(message)
    if sort == "api_req_started":
        info = as_json(message.get("text"))
        return isinstance(info, Mapping) and any(info.get(name) for name in ("cost", "tokensOut", "cancelReason"))
    if sort == "checkpoint_created":
        return bool(message.get("lastCheckpointHash"))
    return followed or sort not in ("command_output", "browser_action_result", "subagent")


def _stamp(directory: Path) -> str:
    return ";".join(str(status_of(directory / name)) for name in (UI, API, METADATA))


ADAPTER = Adapter(
    tool=TOOL,
    title="Cline",
    locate=locate,
    read=read,
    turn=turn,
    places=places,
    rewrites=lambda place: place in (METADATA_PLACE, MANIFEST),
)
