"""Cline from version 4 on, and its command line: sessions instead of tasks, where they are and how they are read.

    <sessions>/<session>/<session>.messages.json   what went to the model and came back: rewritten at every message
    <sessions>/<session>/<session>.json            what the session is: model, directory, title, how it ended
    <sessions>/<session>/<agent>.messages.json     the same of an agent that it launched

`<sessions>` is `CLINE_SESSION_DATA_DIR`, `CLINE_DATA_DIR/sessions`, `CLINE_DIR/data/sessions` or
`~/.cline/data/sessions`, whichever is set first.

A record is an element of the list of messages, as it stands: `message:<index>`; and `manifest` and `system_prompt`.
The last answer is given once its tokens are counted, another message follows it, or the session has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.files.regular import read_if_regular
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import RawRecord, TranscriptSource, record_from_bytes
from aver.ingest.file_status import FileStatus, is_settled, read_file_status
from aver.ingest.raw_json import split_array, split_object
from aver.ingest.tolerant_json import parse_json

__all__ = ["MANIFEST", "MESSAGES_SUFFIX", "SYSTEM_PROMPT", "SessionReader", "locate_sessions", "sessions_dir"]

MESSAGES_SUFFIX, MANIFEST, SYSTEM_PROMPT = ".messages.json", "manifest", "system_prompt"

FILE_MAX = 512 * 1024 * 1024
"""Bytes of a file that are read: a list has to be held whole to be read."""

MANIFEST_MAX = 16 * 1024 * 1024

_INFO_FIELDS = ("source", "provider", "model", "cwd", "workspace_root", "team_name", "interactive")
_RUNNING = "running"


def sessions_dir(around: UserEnvironment) -> Path:
    """The directory that holds all sessions."""
    told = around.environment.get
    if own := told("CLINE_SESSION_DATA_DIR"):
        return Path(own)
    if data := told("CLINE_DATA_DIR"):
        return Path(data) / "sessions"
    cline = told("CLINE_DIR")
    return (Path(cline) if cline else around.home / ".cline") / "data" / "sessions"


def locate_sessions(directory: Path, tool: str) -> Iterator[TranscriptSource]:
    for path in sorted(directory.glob(f"*/*{MESSAGES_SUFFIX}")):
        session, name = path.parent.name, path.name.removesuffix(MESSAGES_SUFFIX)
        agent = "" if name == session else name
        stamp = f"{read_file_status(path)};{read_file_status(_manifest_path(path))}"
        yield TranscriptSource(tool=tool, session=session, path=path, agent=agent, appends=False, stamp=stamp)


def session_info(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth telling of a session, and does not change with every message."""
    metadata = manifest.get("metadata")
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    status = manifest.get("status")
    told = {
        **{name: manifest.get(name) for name in _INFO_FIELDS},
        "title": title,
        "status": None if status == _RUNNING else status,
    }
    return {name: value for name, value in told.items() if isinstance(value, str | bool) and value != ""}


class SessionReader:
    """Reads the messages of a session, or of one of its agents: which of them were given."""

    started_anew = False
    """A list that is rewritten has no beginning to start from again: its elements are told apart."""
    unfinished = 0

    def __init__(self, source: TranscriptSource) -> None:
        self._path = source.path
        self._is_agent = bool(source.agent)
        self._read: FileStatus | None = None
        self._file: dict[str, bytes] = {}
        self._told: dict[int, bytes] = {}
        self._given: set[tuple[str, str]] = set()

    def __call__(self) -> Iterator[RawRecord]:
        """What is new; nothing while the file is not whole."""
        if not self._refresh():
            return
        data = read_if_regular(_manifest_path(self._path), MANIFEST_MAX)
        manifest = parse_json(data) if data else None
        facts: Mapping[str, Any] = manifest if isinstance(manifest, dict) else {}
        if data and facts and not self._is_agent and self._is_new(MANIFEST, str(session_info(facts))):
            yield record_from_bytes(MANIFEST, data)
        if (prompt := self._file.get(SYSTEM_PROMPT)) and self._is_new(
            SYSTEM_PROMPT, record_from_bytes("", prompt).sha256
        ):
            yield record_from_bytes(SYSTEM_PROMPT, prompt)
        listed = split_array(self._file.get("messages", b"[]")) or []
        for index, text in enumerate(listed):
            if self._told.get(index) == text:
                continue  # Most of them, each time that the file is written.
            place, message = f"message:{index}", parse_json(text)
            followed = index + 1 < len(listed)
            if not followed and not _is_final(message, runs=facts.get("status") == _RUNNING):
                return
            self._told[index] = text
            if self._is_new(place, _message_identity(message, text)):
                yield record_from_bytes(place, text)

    def _refresh(self) -> bool:
        """Whether what the file holds is known; it is read only where it has changed."""
        status = read_file_status(self._path)
        if status is None:
            return False
        if status != self._read:
            found = split_object(read_if_regular(self._path, FILE_MAX) or b"")
            if found is None:
                return False
            self._file, self._read = found, status if is_settled([status]) else None
        return True

    def _is_new(self, sort: str, identity: str) -> bool:
        if (sort, identity) in self._given:
            return False
        self._given.add((sort, identity))
        return True


def _message_identity(message: Any, text: bytes) -> str:
    """What tells a message from another that takes its place: what it says. Ids, times and counts may come later."""
    if not isinstance(message, dict):
        return record_from_bytes("", text).sha256
    return record_from_bytes(
        "", repr((message.get("role"), message.get("content"))).encode("utf-8", "surrogatepass")
    ).sha256


def _is_final(message: Any, *, runs: bool) -> bool:
    if not runs or not isinstance(message, dict) or message.get("role") != "assistant":
        return True
    return isinstance(message.get("metrics"), dict)


def _manifest_path(messages: Path) -> Path:
    return messages.with_name(f"{messages.parent.name}.json")
