"""Cursor's conversations: where they are, and how Aver reads its database and its transcript files.

    <user data>/Cursor/User/globalStorage/state.vscdb                conversations of the desktop program
    ~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl   those of the command line, and of subagents
    ~/.cursor/ai-tracking/ai-code-tracking.db                        the author of each line of code

The database keeps a conversation as a `composerData:` value that lists its bubbles, and one value for each bubble (see
`bubbles`). Aver reads a conversation in the database only from there, so that no event gets two keys. The reader gives
each bubble once, in the order of the conversation, when it cannot change any more: a call when it has ended, a text
when another bubble follows or the conversation is idle. A call that is open at the end of its turn is given as pending,
and again when it has ended.

A transcript file is JSON Lines:

    {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>fix the sum</user_query>"}]}}
    {"role": "assistant", "message": {"content": [{"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}]}}
    {"type": "turn_ended", "status": "success"}

Its lines have no ids, so a line's number and digest are its key. Most versions write no results. A call without a
result at the end of its turn stays pending.
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
from aver.ingest.open_calls import OpenCalls

_TIMESTAMP = re.compile(r"<timestamp>([^<]{1,64})</timestamp>").search


class CursorLineParser:
    """Turns the lines of a transcript file into events."""

    def __init__(self, source: TranscriptSource) -> None:
        self._prompt: Prompt | None = None
        self._project = source.hints.get("project")
        self._open = OpenCalls[AgentEvent]()
        self._owners: set[str] = set()

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        record = parse_json(raw)
        if not isinstance(record, dict):
            kept = raw.read_text() if record is UNREADABLE else record
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
            kind = str(record.get("type") or record.get("role") or "unknown")
            yield build_unknown_event(raw.place, kind, record, key=line_key(raw))

    def finish(self) -> Iterable[AgentEvent]:
        return self._open.leave_all()

    def _read_prompt(self, raw: RawRecord, content: str | list[Any]) -> Iterator[AgentEvent]:
        for block in content if isinstance(content, list) else ():
            answered = block.get("tool_use_id") if isinstance(block, dict) else None
            if isinstance(answered, str) and block.get("type") == "tool_result":
                yield from self._open.leave_before(answered)
                opened = self._open.pop(answered)
                if opened is None or (call := opened.call) is None:
                    continue
                block_content = block.get("content")
                result = replace_images(parse_embedded_json(content_text(block_content) or block_content))
                code = calls.find_exit_code(result)
                ok = block.get("is_error") is not True and not code
                done = tuple(calls.list_effects(call.tool, call.arguments, find_path(call.arguments))) if ok else ()
                error = None if ok else f"exit code {code}" if code else content_text(block_content) or None
                yield replace(
                    opened,
                    call=replace(call, result=calls.normalize_streams(call.tool, result), ok=ok, error=error),
                    status=None,
                    side_effects=done,
                    places=(*opened.places, raw.place),
                )
        text = content_text(content)
        if not text:
            return
        yield from self.finish()
        # Cursor puts tags and context around the person's text.
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
        # Blocks of thinking have a `text` in some versions, so they must not count as text.
        blocks = content if isinstance(content, list) else [content]
        thoughts = [part for part in blocks if isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")]
        text = content_text([block for block in blocks if block not in thoughts])
        texts = (block.get("thinking") or block.get("text") for block in thoughts)
        thinking = "\n".join(thought for thought in texts if isinstance(thought, str) and thought)
        answer = AgentEvent(
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
            for number, block in enumerate(blocks)
            if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_call")
        ]
        if not uses and (text or thinking):
            yield answer
        # The text and the thinking go to the first call.
        for number, block in uses:
            event = self._build_call(replace(answer, what="call"), f"{line_key(raw)}.{number}", block)
            self._open.add(event.key, event, raw.place)
            answer = replace(answer, text="", thinking="")

    def _build_call(self, event: AgentEvent, place: str, block: dict[str, Any]) -> AgentEvent:
        given_id = block.get("id") or block.get("toolCallId")
        key = given_id if isinstance(given_id, str) and given_id and given_id not in self._owners else place
        self._owners.add(key)
        name = str(block.get("name") or block.get("toolName") or "tool")
        given = parse_embedded_json(block.get("input") if "input" in block else block.get("args"))
        arguments = given if isinstance(given, dict) else {} if given in (None, "") else {"raw": given}
        path = find_path(arguments)
        diff = build_diff(name, arguments, None, {}, path) if name.lower() in EDIT_TOOLS else None
        return replace(
            event,
            key=key,
            summary=calls.build_summary(name, arguments, path, diff, None),
            call=AgentCall(tool=name, id=key, arguments=arguments, diff=diff),
            status="pending",
            environment={**event.environment, **({} if key == given_id else {"call_id_known": False})},
        )

    def _build_environment(self) -> dict[str, Any]:
        return {"project": self._project} if self._project else {}


QUERY_TAGS_SIZE = len("<user_query>\n\n</user_query>")
"""The length of the tags around a prompt. If the text has nothing else, Aver does not keep it a second time."""


TOOL = "cursor"

_IDLE_STATUSES = ("completed", "aborted", "error", "cancelled")
"""The status of a conversation in which the model generates nothing."""

RECENT_CONVERSATIONS = 8
"""The conversations written last, which Aver reads again whenever the database changes. So it misses nothing if a
version of Cursor changes rows in place, which does not change their numbers."""


_NEWEST_BY_DATABASE: dict[tuple[Path, int], NewestBubbles] = {}
"""The rows of each database at the last look, so that the next look reads only new rows. The key has the inode, because
a new file at the same path is another database."""


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
    # Transcript files, of conversations that are not in the database.
    projects = around.home / ".cursor" / "projects"
    transcripts: dict[tuple[str, str, str], TranscriptSource] = {}
    for pattern in ("*/agent-transcripts/*/*.jsonl", "*/agent-transcripts/*.jsonl"):
        for path in sorted(projects.glob(pattern)):
            if path.stem == path.parent.name or path.parent.name == "agent-transcripts":
                source = _transcript_source(projects, path, database, path.stem, "")
                transcripts.setdefault((source.session, "", source.below), source)
    for path in sorted(projects.glob("*/agent-transcripts/*/subagents/*.jsonl")):
        source = _transcript_source(projects, path, database, path.parent.parent.name, path.stem)
        transcripts.setdefault((source.session, source.agent, source.below), source)
    for _, source in sorted(transcripts.items()):
        if (source.agent or source.session) not in known:
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
    """Reads a transcript file until the conversation appears in the database."""

    def __init__(self, source: TranscriptSource) -> None:
        self._lines = LineReader(source.path)
        self._database = source.hints.get("database")
        self._conversation = source.agent or source.session
        self._stamp: DatabaseStamp | None = None
        self._in_database = False

    @property
    def started_anew(self) -> bool:
        return self._lines.started_anew

    @property
    def unfinished(self) -> int:
        return 0 if self._in_database else self._lines.unfinished

    def __call__(self) -> Iterator[RawRecord]:
        if isinstance(self._database, Path) and (stamp := database_stamp(self._database)) != self._stamp:
            key = composer_key(self._conversation)
            self._in_database = bool(query_snapshot(self._database, lambda connection: read_value(connection, key)))
            self._stamp = stamp
        if not self._in_database:
            yield from self._lines()


class _ConversationScan(NamedTuple):
    """The result of one look at the database. `query_snapshot` drops it if Cursor wrote in the meantime."""

    records: list[RawRecord]
    given: set[str]
    opened: set[str]
    info: str = ""
    composer: str = ""
    is_idle: bool = False
    is_waiting: bool = False
    """Whether Cursor is still writing a bubble."""


class ConversationReader:
    """Reads one conversation of the database, and remembers which bubbles it has given."""

    started_anew = False
    """Always false: rows of a database have keys, so there is no position to start again from."""
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
        # A file that changed a moment ago may change again without a new time stamp. Then look again the next time.
        self._stamps = stamps if is_settled(status for stamp in stamps for status in stamp) else ()
        self._done = step._replace(records=[])
        return [*step.records, *self._read_new_authorship()]

    def _scan(self, connection: sqlite3.Connection) -> _ConversationScan:
        before = self._done
        found = read_value(connection, composer_key(self._conversation))
        # Most changes of the database are about other conversations. The conversation's own value shows this.
        if found is None or (found.sha256 == before.composer and not before.is_waiting):
            return before
        composer = parse_json(found)
        if not isinstance(composer, dict):
            records = [] if found.sha256 == before.composer else [found]
            return before._replace(records=records, composer=found.sha256)
        is_idle = composer.get("status") in _IDLE_STATUSES and not composer.get("generatingBubbleIds")
        # Newer versions list the bubbles by id. Older ones have them inside the conversation's value.
        headers = composer.get("fullConversationHeadersOnly")
        by_id: dict[str, _BubbleRef] = {}
        for header in headers if isinstance(headers, list) else ():
            if isinstance(header, dict) and isinstance(identity := header.get("bubbleId"), str) and identity:
                kind = header.get("type")
                by_id.setdefault(identity, _BubbleRef(identity, kind if isinstance(kind, int) else 0))
        bubbles = list(by_id.values()) or _inline_bubbles(found, composer)
        given, opened, records = set(before.given), set(before.opened), list[RawRecord]()
        info = str(conversation_info(composer))
        if bubbles and info != before.info:
            records.append(found)
        is_waiting = False
        last_asked = max((number for number, bubble in enumerate(bubbles) if bubble.kind == 1), default=-1)
        for number, bubble in enumerate(bubbles):
            if bubble.identity in given:
                continue
            record = bubble.record or read_value(connection, f"bubbleId:{self._conversation}:{bubble.identity}")
            if record is None:
                # Cursor writes the list before the bubble. In an idle conversation the bubble will not come any more.
                is_waiting = is_waiting or not is_idle
                continue
            state = _bubble_state(parse_json(record), followed=number + 1 < len(bubbles), is_idle=is_idle)
            if state == "final":
                given.add(bubble.identity)
                records += [*_read_references(connection, record), record]
            # A call that is still open when its turn is over is given once as it is, and stays in `is_waiting`.
            elif state == "open" and (is_idle or number < last_asked) and bubble.identity not in opened:
                opened.add(bubble.identity)
                records.append(record)
            is_waiting = is_waiting or state != "final"
        return _ConversationScan(records, given, opened, info if bubbles else "", found.sha256, is_idle, is_waiting)

    def _read_new_authorship(self) -> Iterator[RawRecord]:
        """Yield Cursor's count of the conversation's lines when the conversation is idle and the count has changed."""
        if not self._done.is_idle or not isinstance(self._tracking, Path):
            return
        data = read_authorship(self._tracking, self._conversation)
        if data is not None and (record := record_from_bytes(AUTHORSHIP_PLACE, data)).sha256 != self._authorship:
            self._authorship = record.sha256
            yield record


class _BubbleRef(NamedTuple):
    """A bubble of a conversation. `record` is set if the bubble is inside the conversation's own value."""

    identity: str
    kind: int
    record: RawRecord | None = None


def _inline_bubbles(value: RawRecord, composer: Mapping[str, Any]) -> list[_BubbleRef]:
    """Return the bubbles of older versions, which are inside the conversation's value."""
    conversation = composer.get("conversation")
    if not isinstance(conversation, list):
        return []
    parts = split_array((split_object(value.data) or {}).get("conversation", b""))
    found: dict[str, _BubbleRef] = {}
    for number, (bubble, data) in enumerate(zip(conversation, parts or (), strict=False)):
        given_id = bubble.get("bubbleId") if isinstance(bubble, dict) else None
        identity = given_id if isinstance(given_id, str) and given_id else str(number)
        kind = bubble.get("type") if isinstance(bubble, dict) else 0
        record = record_from_bytes(f"{value.place}#{identity}", data)
        found.setdefault(identity, _BubbleRef(identity, kind if isinstance(kind, int) else 0, record))
    return list(found.values())


def _bubble_state(bubble: Any, *, followed: bool, is_idle: bool) -> str:
    """Return `final`, `open` for a running call, or `growing` for a text that Cursor may still extend."""
    call = bubble.get("toolFormerData") if isinstance(bubble, dict) else None
    if isinstance(call, dict):
        state = calls.call_state(call)
        if state != "unclear":
            return "final" if state == "ended" else "open"
    if followed or is_idle or (isinstance(bubble, dict) and bubble.get("type") == 1):
        return "final"
    return "growing"


def _read_references(connection: sqlite3.Connection, record: RawRecord) -> Iterator[RawRecord]:
    """Yield the values that a bubble refers to by key."""
    bubble = parse_json(record)
    for key in dict.fromkeys(find_references(bubble) if isinstance(bubble, dict) else ()):
        found = read_value(connection, key)
        if found is not None:
            yield found


def is_rewritten(place: str) -> bool:
    """Return whether Cursor rewrites the value at this place: a conversation's value, but not the bubbles inside it."""
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
