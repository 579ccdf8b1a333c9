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

from aver.ingest.changes import Status, is_settled, status_of
from aver.ingest.contract import Raw, Source, raw
from aver.ingest.pieces import elements, members
from aver.ingest.plain import read_plain
from aver.ingest.records import parsed
from aver.surroundings import Surroundings

__all__ = ["MANIFEST", "MESSAGES", "SYSTEM_PROMPT", "SessionReader", "sessions", "sessions_in"]

MESSAGES, MANIFEST, SYSTEM_PROMPT = ".messages.json", "manifest", "system_prompt"

FILE_MAX = 512 * 1024 * 1024
"""Bytes of a file that are read: a list has to be held whole to be read."""

MANIFEST_MAX = 16 * 1024 * 1024

_FACE = ("source", "provider", "model", "cwd", "workspace_root", "team_name", "interactive")
_RUNS = "running"


def sessions(around: Surroundings) -> Path:
    """The directory that holds all sessions."""
    told = around.environment.get
    if own := told("CLINE_SESSION_DATA_DIR"):
        return Path(own)
    if data := told("CLINE_DATA_DIR"):
        return Path(data) / "sessions"
    cline = told("CLINE_DIR")
    return (Path(cline) if cline else around.home / ".cline") / "data" / "sessions"


def sessions_in(directory: Path, tool: str) -> Iterator[Source]:
    for path in sorted(directory.glob(f"*/*{MESSAGES}")):
        session, name = path.parent.name, path.name.removesuffix(MESSAGES)
        agent = "" if name == session else name
        stamp = f"{status_of(path)};{status_of(_manifest_of(path))}"
        yield Source(tool=tool, session=session, path=path, agent=agent, appends=False, stamp=stamp)


def face_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth telling of a session, and does not change with every message."""
    metadata = manifest.get("metadata")
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    status = manifest.get("status")
    told = {
        **{name: manifest.get(name) for name in _FACE},
        "title": title,
        "status": None if status == _RUNS else status,
    }
    return {name: value for name, value in told.items() if isinstance(value, str | bool) and value != ""}


class SessionReader:
    """Reads the messages of a session, or of one of its agents: which of them were given."""

    started_anew = False
    """A list that is rewritten has no beginning to start from again: its elements are told apart."""
    unfinished = 0

    def __init__(self, source: Source) -> None:
        self._path = source.path
        self._is_agent = bool(source.agent)
        self._read: Status | None = None
        self._file: dict[str, bytes] = {}
        self._told: dict[int, bytes] = {}
        self._given: set[tuple[str, str]] = set()

    def __call__(self) -> Iterator[Raw]:
        """What is new; nothing while the file is not whole."""
        if not self._refresh():
            return
        data = read_plain(_manifest_of(self._path), MANIFEST_MAX)
        manifest = parsed(data) if data else None
        facts: Mapping[str, Any] = manifest if isinstance(manifest, dict) else {}
        if data and facts and not self._is_agent and self._is_new(MANIFEST, str(face_of(facts))):
            yield raw(MANIFEST, data)
        if (prompt := self._file.get(SYSTEM_PROMPT)) and self._is_new(SYSTEM_PROMPT, raw("", prompt).sha256):
            yield raw(SYSTEM_PROMPT, prompt)
        listed = elements(self._file.get("messages", b"[]")) or []
        for index, text in enumerate(listed):
            if self._told.get(index) == text:
                continue  # Most of them, each time that the file is written.
            place, message = f"message:{index}", parsed(text)
            followed = index + 1 < len(listed)
            if not followed and not _is_final(message, runs=facts.get("status") == _RUNS):
                return
            self._told[index] = text
            if self._is_new(place, _identity(message, text)):
                yield raw(place, text)

    def _refresh(self) -> bool:
        """Whether what the file holds is known; it is read only where it has changed."""
        status = status_of(self._path)
        if status is None:
            return False
        if status != self._read:
            found = members(read_plain(self._path, FILE_MAX) or b"")
            if found is None:
                return False
            self._file, self._read = found, status if is_settled([status]) else None
        return True

    def _is_new(self, sort: str, identity: str) -> bool:
        if (sort, identity) in self._given:
            return False
        self._given.add((sort, identity))
        return True


def _identity(message: Any, text: bytes) -> str:
    """What tells a message from another that takes its place: what it says. Ids, times and counts may come later."""
    if not isinstance(message, dict):
        return raw("", text).sha256
    return raw("", repr((message.get("role"), message.get("content"))).encode("utf-8", "surrogatepass")).sha256


def _is_final(message: Any, *, runs: bool) -> bool:
    if not runs or not isinstance(message, dict) or message.get("role") != "assistant":
        return True
    return isinstance(message.get("metrics"), dict)


def _manifest_of(messages: Path) -> Path:
    return messages.with_name(f"{messages.parent.name}.json")
