"""Cursor: its conversations, from its database where it has them, from its transcript files where it has not.

    <user data>/Cursor/User/globalStorage/state.vscdb              every conversation of the desktop program
    ~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl   those of its command line, and subagents'
    ~/.cursor/ai-tracking/ai-code-tracking.db                      whose lines were whose

A conversation that is in the database is read from there alone, so that nothing is told twice under two keys. Bubbles
are given in the order of the conversation, each once it will not change any more: a call when it has ended, a text when
another follows it or the conversation rests. A call that is still open when its turn is over is given as it is, and
again when it has ended.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aver.ingest import cursor_calls as calls
from aver.ingest.changes import is_settled, status_of
from aver.ingest.contract import Adapter, Raw, Reader, Source, Turn, raw
from aver.ingest.cursor_bubbles import AUTHORSHIP, BubbleTurn, face_of, references_in
from aver.ingest.cursor_db import (
    Newest,
    Stamp,
    authorship,
    composer_key,
    conversations,
    parents,
    read_state,
    stamp_of,
    value_of,
)
from aver.ingest.cursor_lines import LineTurn
from aver.ingest.lines import LineReader
from aver.ingest.pieces import elements, members
from aver.ingest.records import parsed
from aver.surroundings import Surroundings, user_data

__all__ = ["ADAPTER"]

TOOL = "cursor"

_RESTS = ("completed", "aborted", "error", "cancelled")
"""What the status of a conversation is while nothing is being generated."""

RECENT = 8
"""Conversations, of those written last, that are looked at whenever the database changes: so that nothing is missed if
a version of Cursor changes rows without replacing them."""


_NEWEST: dict[tuple[Path, int], Newest] = {}
"""What was seen of each database the last time, so that a look at it costs what is new in it. By path and inode: a file
in its place is another database."""


def _database(around: Surroundings) -> Path:
    return user_data(around, "Cursor") / "globalStorage" / "state.vscdb"


def places(around: Surroundings) -> Iterable[Path]:
    dot = around.home / ".cursor"
    return (_database(around).parent, dot / "projects", dot / "ai-tracking")


def locate(around: Surroundings) -> Iterator[Source]:
    database = _database(around)
    status = status_of(database)
    place = database, 0 if status is None else status.inode
    before = _NEWEST.get(place)
    found = read_state(database, lambda connection: (*conversations(connection, before), parents(connection)))
    known, newest, launched = found or ({}, None, {})
    if newest is not None:
        _NEWEST[place] = newest
    tracking = around.home / ".cursor" / "ai-tracking" / "ai-code-tracking.db"
    recent = sorted(known, key=lambda name: max(known[name]), reverse=True)[:RECENT]
    now = f";{stamp_of(database)};{stamp_of(tracking)}"
    for conversation, rows in known.items():
        parent, call = launched.get(conversation, ("", ""))
        yield Source(
            tool=TOOL,
            session=parent or conversation,
            path=database,
            agent=conversation if parent else "",
            launched_by=call,
            appends=False,
            stamp=f"{rows}{now if conversation in recent else ''}",
            hints={"tracking": tracking},
        )
    yield from _transcripts(around.home / ".cursor" / "projects", database, set(known))


def _transcripts(projects: Path, database: Path, known: set[str]) -> Iterator[Source]:
    """Transcript files of conversations that the database does not have."""
    found: dict[tuple[str, str, str], Source] = {}
    for pattern in ("*/agent-transcripts/*/*.jsonl", "*/agent-transcripts/*.jsonl"):
        for path in sorted(projects.glob(pattern)):
            if path.stem == path.parent.name or path.parent.name == "agent-transcripts":
                source = _transcript(projects, path, database, path.stem, "")
                found.setdefault((source.session, "", source.below), source)
    for path in sorted(projects.glob("*/agent-transcripts/*/subagents/*.jsonl")):
        source = _transcript(projects, path, database, path.parent.parent.name, path.stem)
        found.setdefault((source.session, source.agent, source.below), source)
    for _, source in sorted(found.items()):
        if (source.agent or source.session) not in known:
            yield source


def _transcript(projects: Path, path: Path, database: Path, session: str, agent: str) -> Source:
    project = path.relative_to(projects).parts[0]
    hints = {"database": database, "project": project}
    return Source(tool=TOOL, session=session, path=path, agent=agent, hints=hints, below=project)


def read(source: Source) -> Reader:
    return TranscriptReader(source) if source.appends else ConversationReader(source)


def turn(source: Source) -> Turn:
    return LineTurn(source) if source.appends else BubbleTurn(source)


class TranscriptReader:
    """Reads a transcript file for as long as the database does not have the conversation."""

    def __init__(self, source: Source) -> None:
        self._lines = LineReader(source.path)
        self._database = source.hints.get("database")
        self._conversation = source.agent or source.session
        self._stamp: Stamp | None = None
        self._elsewhere = False

    @property
    def started_anew(self) -> bool:
        return self._lines.started_anew

    @property
    def unfinished(self) -> int:
        return 0 if self._elsewhere else self._lines.unfinished

    def __call__(self) -> Iterator[Raw]:
        if isinstance(self._database, Path) and (stamp := stamp_of(self._database)) != self._stamp:
            key = composer_key(self._conversation)
            self._elsewhere = bool(read_state(self._database, lambda connection: value_of(connection, key)))
            self._stamp = stamp
        if not self._elsewhere:
            yield from self._lines()


class _Step(NamedTuple):
    """What one look at the database gave. It counts only if the database was not written meanwhile."""

    records: list[Raw]
    given: set[str]
    begun: set[str]
    face: str = ""
    composer: str = ""
    rests: bool = False
    waits: bool = False
    """Whether a bubble is still being written."""


class ConversationReader:
    """Reads one conversation: what of it was given, and what is still to come."""

    started_anew = False
    """A value in a database has no beginning: what changes is told apart by its key."""
    unfinished = 0

    def __init__(self, source: Source) -> None:
        self._path = source.path
        self._conversation = source.agent or source.session
        self._tracking = source.hints.get("tracking")
        self._stamps: tuple[Stamp, ...] = ()
        self._done = _Step([], set(), set())
        self._authorship = ""

    def __call__(self) -> list[Raw]:
        stamps = (stamp_of(self._path), stamp_of(self._tracking) if isinstance(self._tracking, Path) else ())
        if stamps == self._stamps:
            return []
        step = read_state(self._path, self._look)
        if step is None:
            return []
        self._stamps = stamps if is_settled(status for stamp in stamps for status in stamp) else ()
        self._done = step._replace(records=[])
        return [*step.records, *self._counted()]

    def _look(self, connection: sqlite3.Connection) -> _Step:
        before = self._done
        found = value_of(connection, composer_key(self._conversation))
        if found is None or (found.sha256 == before.composer and not before.waits):
            return before
        composer = parsed(found)
        if not isinstance(composer, dict):
            records = [] if found.sha256 == before.composer else [found]
            return before._replace(records=records, composer=found.sha256)
        rests = composer.get("status") in _RESTS and not composer.get("generatingBubbleIds")
        bubbles = _listed(composer) or _inline(found, composer)
        given, begun, records = set(before.given), set(before.begun), list[Raw]()
        face = str(face_of(composer))
        if bubbles and face != before.face:
            records.append(found)
        waits = False
        last_asked = max((number for number, one in enumerate(bubbles) if one.kind == 1), default=-1)
        for number, one in enumerate(bubbles):
            if one.identity in given:
                continue
            record = one.record or value_of(connection, f"bubbleId:{self._conversation}:{one.identity}")
            if record is None:
                waits = waits or not rests
                continue
            state = _state(parsed(record), followed=number + 1 < len(bubbles), rests=rests)
            if state == "final":
                given.add(one.identity)
                records += [*_named(connection, record), record]
            elif state == "open" and (rests or number < last_asked) and one.identity not in begun:
                begun.add(one.identity)
                records.append(record)
            waits = waits or state != "final"
        return _Step(records, given, begun, face if bubbles else "", found.sha256, rests, waits)

    def _counted(self) -> Iterator[Raw]:
        """What Cursor counted of the lines, once the conversation rests: again whenever it counts otherwise."""
        if not self._done.rests or not isinstance(self._tracking, Path):
            return
        data = authorship(self._tracking, self._conversation)
        if data is not None and (record := raw(AUTHORSHIP, data)).sha256 != self._authorship:
            self._authorship = record.sha256
            yield record


class _Listed(NamedTuple):
    """A bubble of a conversation: by its key, or as it stands in the conversation's own value."""

    identity: str
    kind: int
    record: Raw | None = None


def _listed(composer: Mapping[str, Any]) -> list[_Listed]:
    headers = composer.get("fullConversationHeadersOnly")
    found: dict[str, _Listed] = {}
    for header in headers if isinstance(headers, list) else ():
        if isinstance(header, dict) and isinstance(identity := header.get("bubbleId"), str) and identity:
            kind = header.get("type")
            found.setdefault(identity, _Listed(identity, kind if isinstance(kind, int) else 0))
    return list(found.values())


def _inline(value: Raw, composer: Mapping[str, Any]) -> list[_Listed]:
    """Bubbles of older versions, which stand in the conversation itself."""
    conversation = composer.get("conversation")
    if not isinstance(conversation, list):
        return []
    parts = elements((members(value.data) or {}).get("conversation", b""))
    found: dict[str, _Listed] = {}
    for number, (bubble, data) in enumerate(zip(conversation, parts or (), strict=False)):
        told = bubble.get("bubbleId") if isinstance(bubble, dict) else None
        identity = told if isinstance(told, str) and told else str(number)
        kind = bubble.get("type") if isinstance(bubble, dict) else 0
        record = raw(f"{value.place}#{identity}", data)
        found.setdefault(identity, _Listed(identity, kind if isinstance(kind, int) else 0, record))
    return list(found.values())


def _state(bubble: Any, *, followed: bool, rests: bool) -> str:
    """`final`, `open` for a call that runs, `growing` for what may still be written."""
    call = bubble.get("toolFormerData") if isinstance(bubble, dict) else None
    if isinstance(call, dict):
        state = calls.state_of(call)
        if state != "unclear":
            return "final" if state == "ended" else "open"
    if followed or rests or (isinstance(bubble, dict) and bubble.get("type") == 1):
        return "final"
    return "growing"


def _named(connection: sqlite3.Connection, record: Raw) -> Iterator[Raw]:
    """What a bubble names instead of holding it."""
    bubble = parsed(record)
    for key in dict.fromkeys(references_in(bubble) if isinstance(bubble, dict) else ()):
        found = value_of(connection, key)
        if found is not None:
            yield found


def rewrites(place: str) -> bool:
    """The value of a conversation lists its bubbles, among much else; bubbles that stand in it have places of their
    own."""
    return place == AUTHORSHIP or (place.startswith(composer_key("")) and "#" not in place)


ADAPTER = Adapter(tool=TOOL, title="Cursor", locate=locate, read=read, turn=turn, places=places, rewrites=rewrites)
