"""Codex's rollouts: where they are, and to which session each belongs.

    $CODEX_HOME/sessions/2026/05/31/rollout-2026-05-31T09-00-00-019dd8e4-15dd-7143-95e8-219014341717.jsonl
    $CODEX_HOME/archived_sessions/rollout-….jsonl

The first line of a rollout names its thread, and for a subagent the thread that launched it:

    {"timestamp": "…", "type": "session_meta", "payload": {"id": "019dd8e4-15dd-…", "cwd": "/work/shop", "source":
      {"subagent": {"thread_spawn": {"parent_thread_id": "019dd8e3-77aa-…"}}}}}

- The id in the first line is the session. The id in the file's name replaces it if it is missing or taken.
- Rollouts whose name and first line agree come first, so that no other file can take their id.
- A subagent's rollout belongs to the session that launched it. A fork is a session of its own.
- Aver does not read a compressed rollout (`.jsonl.zst`). One note has its name, size and digest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from aver.agents.codex.records import parse_line
from aver.agents.codex.turn import RolloutParser
from aver.errors import Unavailable
from aver.files.regular import open_if_regular
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import (
    Adapter,
    AgentEvent,
    RawRecord,
    RecordReader,
    TranscriptParser,
    TranscriptSource,
    record_from_bytes,
)
from aver.ingest.json_lines import LineReader

TOOL = "codex"
FIRST_LINE_MAX = 4 * 1024 * 1024
"""The longest first line that Aver reads to find a rollout's session. It includes the model's instructions, which take
some ten thousand bytes."""

HASH_CHUNK_SIZE = 1024 * 1024
"""Bytes of a compressed rollout that are hashed at a time."""

_COMPRESSED_SUFFIX = ".jsonl.zst"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$").search


class _RolloutOwner(NamedTuple):
    session: str
    agent: str = ""


def _watched_dirs(around: UserEnvironment) -> list[Path]:
    home = Path(around.environment.get("CODEX_HOME") or around.home / ".codex")
    return [home / "sessions", home / "archived_sessions"]


def _locate(around: UserEnvironment) -> Iterator[TranscriptSource]:
    owned: set[_RolloutOwner] = set()
    names: set[str] = set()
    # Rollouts whose name and first line agree sort first, so that no other file takes their id.
    for path, owner in sorted(
        _list_rollouts(around), key=lambda found: (found[1].agent or found[1].session) != _id_from_name(found[0])
    ):
        # While Codex archives a rollout, both directories have it. A compressed copy may lie beside the plain file.
        name = path.name.removesuffix(".zst")
        if name in names:
            continue
        free = (
            candidate
            for candidate in (owner, _RolloutOwner(_id_from_name(path)), _RolloutOwner(_rollout_name(path)))
            if candidate not in owned
        )
        if (chosen := next(free, None)) is not None:
            owned.add(chosen)
            names.add(name)
            compressed = path.name.endswith(_COMPRESSED_SUFFIX)
            yield TranscriptSource(
                tool=TOOL, session=chosen.session, agent=chosen.agent, path=path, appends=not compressed
            )


def _list_rollouts(around: UserEnvironment) -> Iterator[tuple[Path, _RolloutOwner]]:
    """Yield all rollouts with the owner that each names: plain before compressed, live before archived."""
    found: list[Path] = []
    for place in _watched_dirs(around):
        for directory, _, files in os.walk(place):
            found += sorted(Path(directory, name) for name in files if name.startswith("rollout-"))
    for path in found:
        if path.suffix == ".jsonl" and (owner := _read_owner(path)) is not None:
            yield path, owner
    for path in found:
        if path.name.endswith(_COMPRESSED_SUFFIX):
            yield path, _RolloutOwner(_id_from_name(path))


def _read_owner(path: Path) -> _RolloutOwner | None:
    """Return the session and subagent of a rollout; None if its first line is incomplete or unreadable."""
    try:
        file = open_if_regular(path)
        if file is None:
            return None
        with file, BufferedReader(file) as lines:
            first = lines.readline(FIRST_LINE_MAX)
    except (OSError, Unavailable):
        return None
    if not first.endswith(b"\n") and len(first) < FIRST_LINE_MAX:
        return None  # Codex is still writing the first line. The next look finds the rollout.
    line = parse_line(record_from_bytes("1", first.rstrip(b"\n")))
    meta = line.body if line is not None and line.kind == "session_meta" else {}
    own = meta.get("id")
    if not isinstance(own, str) or not own:
        return _RolloutOwner(_id_from_name(path))
    source = meta.get("source")
    parent = ""
    if isinstance(source, Mapping) and "subagent" in source:
        kind = source["subagent"]
        spawned = kind.get("thread_spawn") if isinstance(kind, Mapping) else None
        launched_by = spawned.get("parent_thread_id") if isinstance(spawned, Mapping) else None
        # `session_id` names the first thread, even if another subagent launched this one. So it comes first.
        root = meta.get("session_id") if meta.get("session_id") != meta.get("id") else None
        names = (root, launched_by, meta.get("parent_thread_id"), meta.get("forked_from_id"))
        parent = next((name for name in names if isinstance(name, str) and name), "")
    return _RolloutOwner(parent, own) if parent and parent != own else _RolloutOwner(own)


def _id_from_name(path: Path) -> str:
    found = _ID(_rollout_name(path))
    return found[0] if found else _rollout_name(path)


def _rollout_name(path: Path) -> str:
    return path.name.removesuffix(".zst").removesuffix(".jsonl")


def _open_reader(source: TranscriptSource) -> RecordReader:
    return _CompressedReader(source.path) if source.path.name.endswith(_COMPRESSED_SUFFIX) else LineReader(source.path)


def _create_parser(source: TranscriptSource) -> TranscriptParser:
    return (
        _CompressedParser(source.path.name) if source.path.name.endswith(_COMPRESSED_SUFFIX) else RolloutParser(source)
    )


class _CompressedReader:
    """Reads a compressed rollout as one record with its digest. Codex never changes such a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._given = False
        self.started_anew = False
        self.unfinished = 0

    def __call__(self) -> Iterable[RawRecord]:
        if self._given:
            return []
        digest, size = hashlib.sha256(), 0
        file = open_if_regular(self._path)
        if file is None:
            return []
        with file:
            while piece := file.read(HASH_CHUNK_SIZE):
                digest.update(piece)
                size += len(piece)
        self._given = True
        return [RawRecord("file", b"", digest.hexdigest(), size)]


class _CompressedParser:
    """Makes the note about a compressed rollout."""

    def __init__(self, name: str) -> None:
        self._name = name

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        return [
            AgentEvent(
                what="note",
                key="compressed",
                summary=f"not read, because it is compressed: {self._name}",
                result={"name": self._name, "sha256": raw.sha256, "size": raw.size},
                status="partial",
                places=(raw.place,),
            )
        ]

    def finish(self) -> Iterable[AgentEvent]:
        return []


ADAPTER = Adapter(
    tool=TOOL, title="Codex CLI", locate=_locate, read=_open_reader, parser=_create_parser, places=_watched_dirs
)
