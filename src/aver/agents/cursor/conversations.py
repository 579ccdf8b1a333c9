"""What Cursor's transcript files say, which it keeps for conversations that are in no database.

    {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>…</user_query>"}]}}
    {"role": "assistant", "message": {"content": [{"type": "text", …}, {"type": "tool_use", "name": …, "input": …}]}}
    {"type": "turn_ended", "status": "success"}

Lines have no ids, and only ever grow: their numbers are the keys. Results are not written, or only by some versions: a
call that has none when its turn ends is told as one whose outcome was never learned.

Cursor: its conversations, from its database where it has them, from its transcript files where it has not.

    <user data>/Cursor/User/globalStorage/state.vscdb              every conversation of the desktop program
    ~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl   those of its command line, and subagents'
    ~/.cursor/ai-tracking/ai-code-tracking.db                      whose lines were whose

A conversation that is in the database is read from there alone, so that nothing is told twice under two keys. Bubbles
are given in the order of the conversation, each once it will not change any more: a call when it has ended, a text when
another follows it or the conversation rests. A call that is still open when its turn is over is given as it is, and
again when it has ended.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from aver.agents.cursor import calls
from aver.agents.cursor.bubbles import AUTHORSHIP_PLACE, BubbleParser, conversation_info, find_references
from aver.agents.cursor.calls import EDIT_TOOLS, build_diff, find_path
from aver.agents.cursor.database import (
    DatabaseStamp,
    NewestBubbles,
    composer_key,
    database_stamp,
    find_parents,
    list_conversations,
    query_snapshot,
    read_authorship,
    read_value,
)
from aver.files.user_dirs import UserEnvironment, user_data_dir
from aver.ingest.attachments import replace_images
from aver.ingest.contract import (
    Adapter,
    AgentCall,
    AgentEvent,
    Prompt,
    RawRecord,
    RecordReader,
    TranscriptParser,
    TranscriptSource,
    build_unknown_event,
    line_key,
    record_from_bytes,
)
from aver.ingest.foreign_json import (
    UNREADABLE,
    content_text,
    parse_embedded_json,
    parse_json,
    split_array,
    split_object,
    to_utc,
)
from aver.ingest.json_lines import LineReader, is_settled, read_file_status

_TIMESTAMP = re.compile(r"<timestamp>([^<]{1,64})</timestamp>").search


class CursorLineParser:
    """What of a transcript has been read."""

    def __init__(self, source: TranscriptSource) -> None:
        self._prompt: Prompt | None = None
        self._project = source.hints.get("project")
        self._open: dict[str, AgentEvent] = {}
        self._owners: set[str] = set()

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        record = parse_json(raw)
        if not isinstance(record, dict):
            kept: Any = raw.data.decode("utf-8", "replace") if record is UNREADABLE else record
            kept = kept if raw.data else {"sha256": raw.sha256, "size": raw.size}
            yield build_unknown_event(raw.place, "unreadable", kept, key=line_key(raw))
            return
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if record.get("role") == "user" and isinstance(content, str | list):
            yield from self._read_prompt(raw, content)
        elif record.get("role") == "assistant" and isinstance(content, str | list):
            yield from self._read_answer(raw, content)
        elif record.get("type") == "turn_ended":
            yield from self.finish()
            status = str(record.get("status") or "unknown")
            yield AgentEvent(
                what="note",
                key=line_key(raw),
                summary=f"turn ended: {status}",
                prompt=self._prompt,
                result=record if set(record) - {"type", "status"} else None,
                status="success" if status in ("success", "completed") else "failure",
                environment=self._build_environment(),
                places=(raw.place,),
            )
        else:
            sort = str(record.get("type") or record.get("role") or "unknown")
            yield build_unknown_event(raw.place, sort, record, key=line_key(raw))

    def finish(self) -> Iterable[AgentEvent]:
        begun = list(self._open.values())
        self._open.clear()
        return begun

    def _read_prompt(self, raw: RawRecord, content: str | list[Any]) -> Iterator[AgentEvent]:
        for block in content if isinstance(content, list) else ():
            answered = block.get("tool_use_id") if isinstance(block, dict) else None
            if isinstance(answered, str) and block.get("type") == "tool_result" and answered in self._open:
                begun = self._open.pop(answered)
                call = begun.call
                if call is None:
                    continue
                held = block.get("content")
                result = replace_images(parse_embedded_json(content_text(held) or held))
                code = calls.find_exit_code(result)
                ok = block.get("is_error") is not True and not code
                done = tuple(calls.list_effects(call.tool, call.arguments, find_path(call.arguments))) if ok else ()
                error = None if ok else f"exit code {code}" if code else content_text(held) or None
                yield replace(
                    begun,
                    call=replace(call, result=calls.normalize_streams(call.tool, result), ok=ok, error=error),
                    status=None,
                    side_effects=done,
                    places=(*begun.places, raw.place),
                )
        text = content_text(content)
        if not text:
            return
        yield from self.finish()
        # What a person wrote, without what Cursor put around it.
        _, opening, rest = text.partition("<user_query>")
        query, closing, _ = rest.partition("</user_query>")
        asked, when = query.strip() if opening and closing else text, _TIMESTAMP(text)
        self._prompt = Prompt(key=line_key(raw), text=asked)
        yield AgentEvent(
            what="prompt",
            key=line_key(raw),
            summary=f"prompt: {asked.strip().partition(chr(10))[0]}",
            text=asked,
            at=to_utc(when[1]) if when else None,
            result=None if asked == text or len(asked) + QUERY_TAGS_SIZE >= len(text.strip()) else {"as_sent": text},
            environment=self._build_environment(),
            places=(raw.place,),
        )

    def _read_answer(self, raw: RawRecord, content: str | list[Any]) -> Iterator[AgentEvent]:
        text = content_text(
            [block for block in content if not _is_thinking(block)] if isinstance(content, list) else content
        )
        thinking = "\n".join(filter(None, map(_thinking_text, content if isinstance(content, list) else ())))
        said = AgentEvent(
            what="answer",
            key=line_key(raw),
            summary=f"answer: {text.strip().partition(chr(10))[0]}" if text.strip() else "thinking",
            text=text,
            thinking=thinking,
            prompt=self._prompt,
            environment=self._build_environment(),
            places=(raw.place,),
        )
        uses = [
            (number, block)
            for number, block in enumerate(content if isinstance(content, list) else ())
            if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_call")
        ]
        if not uses and (text or thinking):
            yield said
        for number, block in uses:
            event = self._build_call(replace(said, what="call"), f"{line_key(raw)}.{number}", block)
            self._open[event.key] = event
            said = replace(said, text="", thinking="")

    def _build_call(self, event: AgentEvent, place: str, block: dict[str, Any]) -> AgentEvent:
        told = block.get("id") or block.get("toolCallId")
        key = told if isinstance(told, str) and told and told not in self._owners else place
        self._owners.add(key)
        name = str(block.get("name") or block.get("toolName") or "tool")
        asked = parse_embedded_json(block.get("input") if "input" in block else block.get("args"))
        arguments = asked if isinstance(asked, dict) else {} if asked in (None, "") else {"raw": asked}
        path = find_path(arguments)
        diff = build_diff(name, arguments, None, {}, path) if name.lower() in EDIT_TOOLS else None
        return replace(
            event,
            key=key,
            summary=calls.build_summary(name, arguments, path, diff, None),
            call=AgentCall(tool=name, id=key, arguments=arguments, diff=diff),
            status="pending",
            environment={**event.environment, **({} if key == told else {"call_id_known": False})},
        )

    def _build_environment(self) -> dict[str, Any]:
        return {"project": self._project} if self._project else {}


QUERY_TAGS_SIZE = len("<user_query>\n\n</user_query>")
"""Characters around a prompt that say nothing besides."""


def _is_thinking(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")


def _thinking_text(block: Any) -> str:
    text = (block.get("thinking") or block.get("text")) if _is_thinking(block) else None
    return text if isinstance(text, str) else ""


TOOL = "cursor"

_IDLE_STATUSES = ("completed", "aborted", "error", "cancelled")
"""What the status of a conversation is while nothing is being generated."""

RECENT_CONVERSATIONS = 8
"""Conversations, of those written last, that are looked at whenever the database changes: so that nothing is missed if
a version of Cursor changes rows without replacing them."""


_NEWEST_BY_DATABASE: dict[tuple[Path, int], NewestBubbles] = {}
"""What was seen of each database the last time, so that a look at it costs what is new in it. By path and inode: a file
in its place is another database."""


def _database_path(around: UserEnvironment) -> Path:
    return user_data_dir(around, "Cursor") / "globalStorage" / "state.vscdb"


def watched_dirs(around: UserEnvironment) -> Iterable[Path]:
    dot = around.home / ".cursor"
    return (_database_path(around).parent, dot / "projects", dot / "ai-tracking")


def locate(around: UserEnvironment) -> Iterator[TranscriptSource]:
    database = _database_path(around)
    status = read_file_status(database)
    place = database, 0 if status is None else status.inode
    before = _NEWEST_BY_DATABASE.get(place)
    found = query_snapshot(
        database, lambda connection: (*list_conversations(connection, before), find_parents(connection))
    )
    known, newest, launched = found or ({}, None, {})
    if newest is not None:
        _NEWEST_BY_DATABASE[place] = newest
    tracking = around.home / ".cursor" / "ai-tracking" / "ai-code-tracking.db"
    recent = sorted(known, key=lambda name: max(known[name]), reverse=True)[:RECENT_CONVERSATIONS]
    now = f";{database_stamp(database)};{database_stamp(tracking)}"
    for conversation, rows in known.items():
        parent, call = launched.get(conversation, ("", ""))
        yield TranscriptSource(
            tool=TOOL,
            session=parent or conversation,
            path=database,
            agent=conversation if parent else "",
            launched_by=call,
            appends=False,
            stamp=f"{rows}{now if conversation in recent else ''}",
            hints={"tracking": tracking},
        )
    # Transcript files of conversations that the database does not have.
    projects = around.home / ".cursor" / "projects"
    transcripts_known = set(known)
    transcripts_found: dict[tuple[str, str, str], TranscriptSource] = {}
    for pattern in ("*/agent-transcripts/*/*.jsonl", "*/agent-transcripts/*.jsonl"):
        for path in sorted(projects.glob(pattern)):
            if path.stem == path.parent.name or path.parent.name == "agent-transcripts":
                source = _transcript_source(projects, path, database, path.stem, "")
                transcripts_found.setdefault((source.session, "", source.below), source)
    for path in sorted(projects.glob("*/agent-transcripts/*/subagents/*.jsonl")):
        source = _transcript_source(projects, path, database, path.parent.parent.name, path.stem)
        transcripts_found.setdefault((source.session, source.agent, source.below), source)
    for _, source in sorted(transcripts_found.items()):
        if (source.agent or source.session) not in transcripts_known:
            yield source


def _transcript_source(projects: Path, path: Path, database: Path, session: str, agent: str) -> TranscriptSource:
    project = path.relative_to(projects).parts[0]
    hints = {"database": database, "project": project}
    return TranscriptSource(tool=TOOL, session=session, path=path, agent=agent, hints=hints, below=project)


def open_reader(source: TranscriptSource) -> RecordReader:
    return CursorTranscriptReader(source) if source.appends else ConversationReader(source)


def create_parser(source: TranscriptSource) -> TranscriptParser:
    return CursorLineParser(source) if source.appends else BubbleParser(source)


class CursorTranscriptReader:
    """Reads a transcript file for as long as the database does not have the conversation."""

    def __init__(self, source: TranscriptSource) -> None:
        self._lines = LineReader(source.path)
        self._database = source.hints.get("database")
        self._conversation = source.agent or source.session
        self._stamp: DatabaseStamp | None = None
        self._elsewhere = False

    @property
    def started_anew(self) -> bool:
        return self._lines.started_anew

    @property
    def unfinished(self) -> int:
        return 0 if self._elsewhere else self._lines.unfinished

    def __call__(self) -> Iterator[RawRecord]:
        if isinstance(self._database, Path) and (stamp := database_stamp(self._database)) != self._stamp:
            key = composer_key(self._conversation)
            self._elsewhere = bool(query_snapshot(self._database, lambda connection: read_value(connection, key)))
            self._stamp = stamp
        if not self._elsewhere:
            yield from self._lines()


class _ConversationScan(NamedTuple):
    """What one look at the database gave. It counts only if the database was not written meanwhile."""

    records: list[RawRecord]
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

    def __init__(self, source: TranscriptSource) -> None:
        self._path = source.path
        self._conversation = source.agent or source.session
        self._tracking = source.hints.get("tracking")
        self._stamps: tuple[DatabaseStamp, ...] = ()
        self._done = _ConversationScan([], set(), set())
        self._authorship = ""

    def __call__(self) -> list[RawRecord]:
        stamps = (
            database_stamp(self._path),
            database_stamp(self._tracking) if isinstance(self._tracking, Path) else (),
        )
        if stamps == self._stamps:
            return []
        step = query_snapshot(self._path, self._scan)
        if step is None:
            return []
        self._stamps = stamps if is_settled(status for stamp in stamps for status in stamp) else ()
        self._done = step._replace(records=[])
        return [*step.records, *self._read_new_authorship()]

    def _scan(self, connection: sqlite3.Connection) -> _ConversationScan:
        before = self._done
        found = read_value(connection, composer_key(self._conversation))
        if found is None or (found.sha256 == before.composer and not before.waits):
            return before
        composer = parse_json(found)
        if not isinstance(composer, dict):
            records = [] if found.sha256 == before.composer else [found]
            return before._replace(records=records, composer=found.sha256)
        rests = composer.get("status") in _IDLE_STATUSES and not composer.get("generatingBubbleIds")
        headers = composer.get("fullConversationHeadersOnly")
        bubbles_found: dict[str, _BubbleRef] = {}
        for header in headers if isinstance(headers, list) else ():
            if isinstance(header, dict) and isinstance(identity := header.get("bubbleId"), str) and identity:
                kind = header.get("type")
                bubbles_found.setdefault(identity, _BubbleRef(identity, kind if isinstance(kind, int) else 0))
        bubbles = list(bubbles_found.values()) or _inline_bubbles(found, composer)
        given, begun, records = set(before.given), set(before.begun), list[RawRecord]()
        face = str(conversation_info(composer))
        if bubbles and face != before.face:
            records.append(found)
        waits = False
        last_asked = max((number for number, one in enumerate(bubbles) if one.kind == 1), default=-1)
        for number, one in enumerate(bubbles):
            if one.identity in given:
                continue
            record = one.record or read_value(connection, f"bubbleId:{self._conversation}:{one.identity}")
            if record is None:
                waits = waits or not rests
                continue
            state = _bubble_state(parse_json(record), followed=number + 1 < len(bubbles), rests=rests)
            if state == "final":
                given.add(one.identity)
                records += [*_read_references(connection, record), record]
            elif state == "open" and (rests or number < last_asked) and one.identity not in begun:
                begun.add(one.identity)
                records.append(record)
            waits = waits or state != "final"
        return _ConversationScan(records, given, begun, face if bubbles else "", found.sha256, rests, waits)

    def _read_new_authorship(self) -> Iterator[RawRecord]:
        """What Cursor counted of the lines, once the conversation rests: again whenever it counts otherwise."""
        if not self._done.rests or not isinstance(self._tracking, Path):
            return
        data = read_authorship(self._tracking, self._conversation)
        if data is not None and (record := record_from_bytes(AUTHORSHIP_PLACE, data)).sha256 != self._authorship:
            self._authorship = record.sha256
            yield record


class _BubbleRef(NamedTuple):
    """A bubble of a conversation: by its key, or as it stands in the conversation's own value."""

    identity: str
    kind: int
    record: RawRecord | None = None


def _inline_bubbles(value: RawRecord, composer: Mapping[str, Any]) -> list[_BubbleRef]:
    """Bubbles of older versions, which stand in the conversation itself."""
    conversation = composer.get("conversation")
    if not isinstance(conversation, list):
        return []
    parts = split_array((split_object(value.data) or {}).get("conversation", b""))
    found: dict[str, _BubbleRef] = {}
    for number, (bubble, data) in enumerate(zip(conversation, parts or (), strict=False)):
        told = bubble.get("bubbleId") if isinstance(bubble, dict) else None
        identity = told if isinstance(told, str) and told else str(number)
        kind = bubble.get("type") if isinstance(bubble, dict) else 0
        record = record_from_bytes(f"{value.place}#{identity}", data)
        found.setdefault(identity, _BubbleRef(identity, kind if isinstance(kind, int) else 0, record))
    return list(found.values())


def _bubble_state(bubble: Any, *, followed: bool, rests: bool) -> str:
    """`final`, `open` for a call that runs, `growing` for what may still be written."""
    call = bubble.get("toolFormerData") if isinstance(bubble, dict) else None
    if isinstance(call, dict):
        state = calls.call_state(call)
        if state != "unclear":
            return "final" if state == "ended" else "open"
    if followed or rests or (isinstance(bubble, dict) and bubble.get("type") == 1):
        return "final"
    return "growing"


def _read_references(connection: sqlite3.Connection, record: RawRecord) -> Iterator[RawRecord]:
    """What a bubble names instead of holding it."""
    bubble = parse_json(record)
    for key in dict.fromkeys(find_references(bubble) if isinstance(bubble, dict) else ()):
        found = read_value(connection, key)
        if found is not None:
            yield found


def is_rewritten(place: str) -> bool:
    """The value of a conversation lists its bubbles, among much else; bubbles that stand in it have places of their
    own."""
    return place == AUTHORSHIP_PLACE or (place.startswith(composer_key("")) and "#" not in place)


ADAPTER = Adapter(
    tool=TOOL,
    title="Cursor",
    locate=locate,
    read=open_reader,
    parser=create_parser,
    places=watched_dirs,
    rewrites=is_rewritten,
)
