"""Codex CLI: where its rollouts are, and whose each of them is.

A rollout is `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, one line per record; what was archived lies in
`archived_sessions`. Its first line says whose it is: its own id is taken, and the id in its name where the line says
none, or where another rollout has that id. So that none can take the place of another, those whose name and first line
say the same come first. A subagent has a rollout of its own, whose first line names the thread that
launched it: it belongs to that session, and its own id is the agent's. A fork is a session of its own.

What Codex has compressed (`.jsonl.zst`) is not read. It is told of by one note: its name, size and digest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

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
"""Bytes of a first line that are read to learn whose a rollout is. It holds the instructions of the model, and grew to
some ten thousand."""

HASH_CHUNK_SIZE = 1024 * 1024
"""Bytes of a compressed rollout that are hashed at a time."""

_COMPRESSED_SUFFIX = ".jsonl.zst"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$").search


class _RolloutOwner(NamedTuple):
    session: str
    agent: str = ""


def _home(around: UserEnvironment) -> Path:
    return Path(around.environment.get("CODEX_HOME") or around.home / ".codex")


def _watched_dirs(around: UserEnvironment) -> list[Path]:
    home = _home(around)
    return [home / "sessions", home / "archived_sessions"]


def _locate(around: UserEnvironment) -> Iterator[TranscriptSource]:
    owned: set[_RolloutOwner] = set()
    names: set[str] = set()
    for path, owner in sorted(_list_rollouts(around), key=_is_misnamed):
        # A rollout that is being archived is in both places for a moment; a compressed one is the same as the plain.
        name = path.name.removesuffix(".zst")
        if name in names:
            continue
        free = (
            one
            for one in (owner, _RolloutOwner(_id_from_name(path)), _RolloutOwner(_rollout_name(path)))
            if one not in owned
        )
        if (chosen := next(free, None)) is not None:
            owned.add(chosen)
            names.add(name)
            compressed = path.name.endswith(_COMPRESSED_SUFFIX)
            yield TranscriptSource(
                tool=TOOL, session=chosen.session, agent=chosen.agent, path=path, appends=not compressed
            )


def _is_misnamed(one: tuple[Path, _RolloutOwner]) -> bool:
    """Whether a rollout says in its first line that it is another than by its name."""
    path, owner = one
    return (owner.agent or owner.session) != _id_from_name(path)


def _list_rollouts(around: UserEnvironment) -> Iterator[tuple[Path, _RolloutOwner]]:
    """All rollouts, and whose each is by its own account: the plain before the compressed, the live before the
    archived."""
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
    """Whose a rollout is; None where its first line is still being written, or it cannot be read."""
    try:
        file = open_if_regular(path)
        if file is None:
            return None
        with file, BufferedReader(file) as lines:
            first = lines.readline(FIRST_LINE_MAX)
    except (OSError, Unavailable):
        return None
    if not first.endswith(b"\n") and len(first) < FIRST_LINE_MAX:
        return None
    line = parse_line(record_from_bytes("1", first.rstrip(b"\n")))
    meta = line.body if line is not None and line.sort == "session_meta" else {}
    own = meta.get("id")
    if not isinstance(own, str) or not own:
        return _RolloutOwner(_id_from_name(path))
    parent = _find_parent(meta)
    return _RolloutOwner(parent, own) if parent and parent != own else _RolloutOwner(own)


def _find_parent(meta: Mapping[str, Any]) -> str:
    """The session of a subagent; empty where the rollout is none of a subagent, or does not say whose."""
    source = meta.get("source")
    if not isinstance(source, Mapping) or "subagent" not in source:
        return ""
    kind = source["subagent"]
    spawned = kind.get("thread_spawn") if isinstance(kind, Mapping) else None
    launched_by = spawned.get("parent_thread_id") if isinstance(spawned, Mapping) else None
    # `session_id` is that of the first thread, also where a subagent launched another.
    root = meta.get("session_id") if meta.get("session_id") != meta.get("id") else None
    told = (root, launched_by, meta.get("parent_thread_id"), meta.get("forked_from_id"))
    return next((name for name in told if isinstance(name, str) and name), "")


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
    """A compressed rollout, as one record that is known by its digest. Codex does not change one."""

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
    """What is told of a compressed rollout."""

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
