"""Claude Code's transcripts: where they are, and how Aver reads their records.

    <home>/.claude/projects/<project>/<session>.jsonl                          a session
    <home>/.claude/projects/<project>/<session>/subagents/agent-<id>.jsonl     one of its subagents
    <home>/.claude/projects/<project>/agent-<id>.jsonl                         the same, in older versions

`CLAUDE_CONFIG_DIR` replaces `<home>/.claude`. `agent-<id>.meta.json` beside a subagent's transcript names the call that
launched it. A transcript is JSON Lines. A call and its result (shortened, wrapped):

    {"type": "assistant", "uuid": "r-2", "parentUuid": "r-1", "timestamp": "2026-05-31T09:00:02.000Z",
     "message": {"id": "msg_1", "model": "claude-opus-4-8", "stop_reason": "tool_use", "usage": {…}, "content":
       [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest -q"}}]}}
    {"type": "user", "uuid": "r-3", "parentUuid": "r-2", "timestamp": "2026-05-31T09:00:03.000Z",
     "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "3 passed"}]},
     "toolUseResult": {"stdout": "3 passed", "stderr": "", "interrupted": false}}

- A call becomes an event when its result comes. The event includes the text and the thinking before the call.
- Text without a call becomes an event when its message ends: at a stop reason, another message, a prompt or a notice.
- Records with `isSidechain` are a subagent's, among the session's records. They have their own prompts and messages.
- The key of a call is its id. Other events have the record's `uuid`, numbered if a record gives several events.
  Settings and titles have no `uuid`; their key is the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver.agents.claude_code.messages import (
    ClassifiedMessage,
    Conversation,
    MessageUsage,
    Origin,
    PendingMessage,
    StartedCall,
    classify_attachment,
    classify_system,
    classify_user,
)
from aver.agents.claude_code.results import (
    AGENT_TOOLS,
    Json,
    find_subject,
    list_or_empty,
    one_line,
    read_outcome,
    replace_files,
    string_or_empty,
)
from aver.agents.claude_code.settings import (
    SETTING_KINDS,
    SKIPPED_KINDS,
    ClaudeSettings,
    SettingChange,
    permission_from_mode,
    read_decision,
)
from aver.errors import Unavailable
from aver.files.regular import read_if_regular
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import (
    INFERRED_OUTCOME,
    SAID_BY_WORDS,
    Adapter,
    AgentCall,
    AgentEvent,
    Permission,
    Prompt,
    RawRecord,
    TranscriptSource,
    build_unknown_event,
    line_key,
)
from aver.ingest.foreign_json import UNREADABLE, ms_between, parse_embedded_json, parse_json, to_utc
from aver.ingest.json_lines import LineReader
from aver.ingest.open_calls import OpenCalls

TOOL = "claude-code"

DEFAULT_RETENTION_DAYS = 30
"""Days for which Claude Code keeps transcripts by default."""

SETTINGS_MAX = 4 * 1024 * 1024
"""The largest `settings.json` that Aver reads, in bytes."""

META_FILE_MAX = 1024 * 1024
"""The largest `.meta.json` that Aver reads, in bytes. Claude Code writes a few hundred."""


def watched_dirs(around: UserEnvironment) -> Iterator[Path]:
    yield _home(around) / "projects"


def read_retention_days(around: UserEnvironment) -> int:
    """Return after how many days Claude Code deletes transcripts: `cleanupPeriodDays`, or its default."""
    settings = _read_json_file(_home(around) / "settings.json", SETTINGS_MAX)
    days = settings.get("cleanupPeriodDays") if isinstance(settings, dict) else None
    return days if isinstance(days, int) and not isinstance(days, bool) and days >= 0 else DEFAULT_RETENTION_DAYS


def _home(around: UserEnvironment) -> Path:
    return Path(around.environment.get("CLAUDE_CONFIG_DIR") or around.home / ".claude")


def locate(around: UserEnvironment) -> Iterator[TranscriptSource]:
    for place in watched_dirs(around):
        for path in sorted(place.glob("*/*.jsonl")):
            if not path.name.startswith("agent-"):
                below = path.parent.relative_to(place).as_posix()
                yield TranscriptSource(tool=TOOL, session=path.stem, path=path, below=below)
            elif (session := _read_session_id(path)) is not None:
                yield _subagent_source(place, path, session)
        # `**`, because the subagents of a workflow are in a directory of that workflow.
        for path in sorted(place.glob("*/*/subagents/**/agent-*.jsonl")):
            yield _subagent_source(place, path, path.relative_to(place).parts[1])


def _read_session_id(path: Path) -> str | None:
    """Return the session of a subagent's transcript that lies beside the sessions, from its first record.

    Returns None while that record is incomplete. If the record names no session, the transcript counts as one.
    """
    try:
        first = next(iter(LineReader(path)()), None)
    except Unavailable:
        return None
    if first is None:
        return None
    record = parse_json(first)
    return (string_or_empty(record.get("sessionId")) if isinstance(record, dict) else "") or path.stem


def _subagent_source(place: Path, path: Path, session: str) -> TranscriptSource:
    agent = path.stem.removeprefix("agent-") if session != path.stem else ""
    meta = _read_json_file(path.with_suffix(".meta.json"), META_FILE_MAX)
    launched_by = string_or_empty(meta.get("toolUseId")) if isinstance(meta, dict) else ""
    # The directory belongs to the identity: a session may continue in another project, and two workflows may have
    # agents of the same name.
    below = path.parent.relative_to(place).as_posix()
    return TranscriptSource(tool=TOOL, session=session, path=path, agent=agent, launched_by=launched_by, below=below)


def _read_json_file(path: Path, most: int) -> Any:
    """Return the JSON value in a file; None if the file is missing, unreadable or over `most` bytes."""
    try:
        data = read_if_regular(path, most)
    except Unavailable:
        return None
    return None if data is None else parse_json(data)


SKIPPED_NOTICES = ("turn_duration", "file_snapshot", "thinking_tokens")
"""Subtypes of `system` records that repeat other records."""

_ENVIRONMENT_FIELDS = (
    ("cwd", "cwd"),
    ("gitBranch", "git_branch"),
    ("version", "version"),
    ("uuid", "uuid"),
    ("parentUuid", "parent_uuid"),
    ("requestId", "request_id"),
    ("promptId", "prompt_id"),
    ("entrypoint", "entrypoint"),
    ("userType", "user_type"),
    ("attributionSkill", "attribution_skill"),
)
"""Fields of a record that go into the event's environment: Claude Code's name and Aver's."""
_COMMON_FIELDS = {theirs for theirs, _ in _ENVIRONMENT_FIELDS} | {
    *("type", "timestamp", "sessionId", "isSidechain", "isMeta", "agentId", "slug", "sessionKind")
}
_UNFINISHED_STOPS = ("", "tool_use", "pause_turn")
"""Values of `stop_reason` after which more lines of the same message may follow."""


class ClaudeTranscriptParser:
    """Turns the records of one transcript into events, in the order of the file."""

    def __init__(self, source: TranscriptSource) -> None:
        self._source = source
        self._settings = ClaudeSettings()
        self._conversations: dict[str, Conversation] = {"": Conversation()}
        """By the subagent's id. The session's own conversation has the empty id."""
        self._agent_by_uuid: dict[str, str] = {}
        """The subagent of records that have no `agentId`, by their `uuid`. A record has the agent of its parent."""
        self._started_calls = OpenCalls[StartedCall]()
        self._launch_prompts: dict[str, list[str]] = {}
        """The prompts of subagents, and the calls without a result that launched them with that prompt."""
        self._keys: dict[str, int] = {}
        """The keys of events so far, and how many events asked for each."""
        self._usage = MessageUsage()
        self._last_uuid = ""
        """The `uuid` of the last record."""

    def feed(self, raw: RawRecord) -> Iterator[AgentEvent]:
        record = parse_json(raw)
        if not isinstance(record, dict):
            # The line is no object. Keep its value or its text; of a line over the size limit, its digest.
            content = raw.read_text() if record is UNREADABLE else record
            yield self._build_unknown(self._build_origin(self._conversations[""], {}, raw), "", content)
            return
        kind = string_or_empty(record.get("type"))
        conversation = self._find_conversation(record)
        self._last_uuid = string_or_empty(record.get("uuid")) or self._last_uuid
        if kind in SKIPPED_KINDS:
            return
        origin = self._build_origin(conversation, record, raw)
        if kind == "assistant" and isinstance(record.get("message"), dict):
            yield from self._read_message(conversation, origin, record, record["message"])
        elif kind == "user":
            yield from self._read_user(conversation, origin, record)
        elif kind == "system":
            yield from self._end_message(conversation)
            if string_or_empty(record.get("subtype")) not in SKIPPED_NOTICES:
                rest = {name: value for name, value in record.items() if name not in _COMMON_FIELDS}
                yield self._build_message_event(conversation, origin, classify_system(record, rest))
        elif kind == "attachment" and isinstance(record.get("attachment"), dict):
            attachment = record["attachment"]
            started = self._started_calls.get(attachment.get("toolUseID"))
            if started is not None and _is_hook_denial(attachment):
                started.denied_by = string_or_empty(attachment.get("hookName")) or string_or_empty(
                    attachment.get("hookEvent")
                )
            yield self._build_message_event(conversation, origin, classify_attachment(attachment))
        elif kind in SETTING_KINDS:
            if change := self._settings.change(kind, record, self._last_uuid):
                if change.ends_session:
                    yield from self._end_message(self._conversations[""])
                yield self._build_setting_event(origin, change)
        else:
            yield self._build_unknown(origin, kind or "without a type", record)

    def finish(self) -> Iterator[AgentEvent]:
        for conversation in self._conversations.values():
            yield from self._end_message(conversation)
        yield from self._leave_calls(self._started_calls.leave_all())

    def _leave_calls(self, calls: list[StartedCall]) -> Iterator[AgentEvent]:
        """Give out calls without a result, which the conversation has left behind."""
        for started in calls:
            yield self._build_call_event(started, started.call, status="pending")

    # --- the model

    def _read_message(
        self, conversation: Conversation, origin: Origin, record: Json, message: Json
    ) -> Iterator[AgentEvent]:
        """Read one line of a message of the model. Several lines with the same `message.id` are one message."""
        name = string_or_empty(message.get("id")) or string_or_empty(record.get("requestId")) or origin.key
        if conversation.pending is not None and conversation.pending.message != name:
            yield from self._end_message(conversation)
        if isinstance(message.get("usage"), dict):
            self._usage.note(name, message["usage"])
        model, stopped = string_or_empty(message.get("model")), string_or_empty(message.get("stop_reason"))
        more = {"message_id": name} | ({"stop_reason": stopped} if stopped else {})
        # Claude Code writes `<synthetic>` where its own text, such as an API error, replaces the model's.
        known = None if model in ("", "<synthetic>") else model
        origin = origin._replace(model=known, environment={**origin.environment, **more})
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_or_empty(content)
        for number, block in enumerate(blocks):
            block_origin = origin.with_number(number)
            kind = string_or_empty(block.get("type")) if isinstance(block, dict) else ""
            if kind in ("text", "thinking", "redacted_thinking"):
                if conversation.pending is None:
                    conversation.pending = PendingMessage(name, block_origin)
                conversation.pending.add(block, block_origin.place)
            elif kind.endswith("tool_use") and string_or_empty(block.get("id")):
                yield from self._start_call(conversation, name, block_origin, block)
            elif kind.endswith("tool_result") and self._started_calls.get(block.get("tool_use_id")):
                yield from self._finish_call(conversation, block_origin, block, {})
            else:
                yield self._build_unknown(block_origin, f"assistant {kind}", block)
        if conversation.pending is not None and record.get("isApiErrorMessage") is True:
            conversation.pending.failed = True
        if conversation.pending is not None and conversation.pending.texts and stopped not in _UNFINISHED_STOPS:
            # Only the last line of a message has a final stop reason. So the message is complete here.
            conversation.pending.origin = conversation.pending.origin._replace(environment=origin.environment)
            yield from self._end_message(conversation)

    def _start_call(
        self, conversation: Conversation, message: str, origin: Origin, block: Json
    ) -> Iterator[AgentEvent]:
        """Remember a call, with the text and the thinking before it, until its result comes."""
        name, given = string_or_empty(block.get("name")) or "unnamed", parse_embedded_json(block.get("input"))
        call = AgentCall(tool=name, id=block["id"], arguments=given if isinstance(given, dict) else {"input": given})
        if (known := self._started_calls.get(call.id)) is not None and known.call == call:
            return  # Claude Code wrote the same line twice.
        if call.id in self._keys:
            # Another call already has this id. Aver must not attach the result of one call to the other.
            yield self._build_unknown(origin, "a second call with the id of another", block)
            return
        pending, conversation.pending = conversation.pending, None
        subject = find_subject(name, call.arguments)
        summary = f"{one_line(name)}: {subject}" if subject else one_line(name)
        started = StartedCall(
            origin,
            call,
            message,
            summary=summary,
            allowed=permission_from_mode(self._settings.mode),
            output={} if pending is None else pending.event_fields(),
            places=[origin.place] if pending is None else [*pending.places, origin.place],
        )
        self._started_calls.add(self._reserve_key(call.id), started, message, conversation.agent)
        if name in AGENT_TOOLS:
            self._launch_prompts.setdefault(string_or_empty(call.arguments.get("prompt")), []).append(call.id)

    def _end_message(self, conversation: Conversation) -> Iterator[AgentEvent]:
        """End the pending message. Yields its text and thinking, unless a call has taken them."""
        pending, conversation.pending = conversation.pending, None
        if pending is None:
            return
        fields = pending.event_fields()
        yield pending.origin.event(
            "answer",
            self._reserve_key(pending.origin.key),
            one_line(fields["text"]) or ("reasoning, redacted" if pending.redacted else "reasoning"),
            status="failure" if pending.failed else None,
            tokens=self._usage.take(pending.message),
            places=tuple(dict.fromkeys(pending.places)),
            **fields,
        )

    # --- records of type `user`: prompts, results of tools, texts of the program

    def _read_user(self, conversation: Conversation, origin: Origin, record: Json) -> Iterator[AgentEvent]:
        if not conversation.agent and (change := self._settings.update_mode(record.get("permissionMode"))):
            yield self._build_setting_event(origin._replace(key=f"{origin.key}:mode"), change)
            origin = origin._replace(environment={**origin.environment, "permission_mode": self._settings.mode})
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        results = [
            block for block in list_or_empty(content) if isinstance(block, dict) and block.get("type") == "tool_result"
        ]
        # `toolUseResult` stands beside the message. With several results it is unknown which of them it describes.
        beside = record if len(results) == 1 else {}
        for number, block in enumerate(results):
            yield from self._finish_call(conversation, origin.with_number(number), block, beside)
        classified = classify_user(record, content)
        if classified is not None:
            yield from self._end_message(conversation)
            # Claude Code may write a line twice. The second says nothing new.
            if classified.what == "prompt" and origin.with_number(len(results)).key not in self._keys:
                yield from self._leave_calls(self._started_calls.leave_all(conversation.agent))
            yield self._build_message_event(conversation, origin.with_number(len(results)), classified)
        elif not results:
            yield self._build_unknown(origin, "user", record)

    def _finish_call(
        self, conversation: Conversation, origin: Origin, block: Json, beside: Json
    ) -> Iterator[AgentEvent]:
        """Join a result to its call. `beside` is the record, if it has no other result."""
        identifier = string_or_empty(block.get("tool_use_id"))
        yield from self._leave_calls(self._started_calls.leave_before(identifier))
        started = self._started_calls.pop(identifier)
        if started is None:
            yield self._build_unknown(origin, "the result of no known call", replace_files(block))
            return
        if conversation.pending is not None and conversation.pending.message != started.message:
            yield from self._end_message(conversation)
        call = started.call
        self._forget_launch(call)
        data, decided = beside.get("toolUseResult"), read_decision(beside)
        outcome = read_outcome(call.tool, call.arguments, block, data, beside.get("toolDenialKind"))
        # Who decided, the most certain source first: a hook that refused, the record's own decision, the result.
        if started.denied_by:
            decided = Permission(by="policy", reference=f"hook={started.denied_by}", denied=True)
        if decided is not None and decided.denied and not outcome.ok:
            outcome = replace(
                outcome, allowed=decided, note=" (denied)", side_effects=(), status=None, from_words=False
            )
        elif decided is not None and outcome.allowed is None and not decided.denied:
            outcome = replace(outcome, allowed=decided)
        if outcome.from_words:
            started.origin = started.origin._replace(environment={**started.origin.environment, **SAID_BY_WORDS})
        if data is None and outcome.ok:
            # Only the text says that the call worked. The event marks its outcome as inferred.
            started.origin = started.origin._replace(environment={**started.origin.environment, **INFERRED_OUTCOME})
        started.launched = outcome.launched or started.launched
        launched = self._conversations.get(started.launched)
        if launched is not None and launched.agent:
            yield from self._end_message(launched)  # The subagent has returned, so its last message is complete.
        started.summary += outcome.note
        started.allowed = outcome.allowed or started.allowed
        started.places.append(origin.place)
        duration = outcome.duration_ms if outcome.duration_ms is not None else ms_between(started.origin.at, origin.at)
        yield self._build_call_event(
            started,
            replace(call, result=outcome.result, ok=outcome.ok, error=outcome.error, diff=outcome.diff),
            status="blocked" if started.allowed.denied else outcome.status,
            duration_ms=duration,
            side_effects=outcome.side_effects,
        )

    def _build_call_event(self, started: StartedCall, call: AgentCall, **more: Any) -> AgentEvent:
        return started.origin.event(
            "call",
            call.id,
            started.summary,
            call=call,
            allowed=started.allowed,
            launched=started.launched,
            tokens=self._usage.take(started.message),
            places=tuple(dict.fromkeys(started.places)),
            **started.output,
            **more,
        )

    def _build_message_event(
        self, conversation: Conversation, origin: Origin, message: ClassifiedMessage
    ) -> AgentEvent:
        key = self._reserve_key(origin.key)
        if message.resets:
            conversation.prompt = None
        if message.what == "prompt":
            conversation.prompt = Prompt(key=key, text=message.text)
            # Records of a subagent do not name the call that launched it. Its first prompt is that call's argument.
            if conversation.agent and not conversation.cause and message.text in self._launch_prompts:
                conversation.cause = self._launch_prompts[message.text][0]
                if (launcher := self._started_calls.get(conversation.cause)) is not None:
                    launcher.launched = conversation.agent
                    self._forget_launch(launcher.call)
        return origin.event(
            message.what,
            key,
            message.summary,
            text=message.text,
            result=message.result,
            status=message.status,
            prompt=None if message.what == "prompt" else conversation.prompt,
            cause=conversation.cause,
            ends_session=message.ends_session and not self._source.agent,
        )

    def _forget_launch(self, call: AgentCall) -> None:
        text = string_or_empty(call.arguments.get("prompt"))
        waiting = self._launch_prompts.get(text, [])
        if call.id in waiting:
            waiting.remove(call.id)
        if not waiting:
            self._launch_prompts.pop(text, None)

    # --- records of the program

    def _build_setting_event(self, origin: Origin, change: SettingChange) -> AgentEvent:
        origin = origin._replace(environment={**origin.environment, **change.environment})
        return origin.event(
            change.what,
            self._reserve_key(origin.key),
            change.summary,
            text=change.text,
            result=change.result,
            title=change.title,
            ends_session=change.ends_session and not self._source.agent,
        )

    # --- for records of all types

    def _find_conversation(self, record: Json) -> Conversation:
        if record.get("isSidechain") is not True or self._source.agent:
            return self._conversations[""]
        uuid, parent = string_or_empty(record.get("uuid")), string_or_empty(record.get("parentUuid"))
        agent = string_or_empty(record.get("agentId")) or self._agent_by_uuid.get(parent) or uuid or "sidechain"
        if uuid and not record.get("agentId"):
            self._agent_by_uuid[uuid] = agent
        return self._conversations.setdefault(agent, Conversation(agent=agent))

    def _build_origin(self, conversation: Conversation, record: Json, raw: RawRecord) -> Origin:
        fields = ((ours, record.get(theirs)) for theirs, ours in _ENVIRONMENT_FIELDS)
        environment = {name: value for name, value in fields if value and isinstance(value, str)}
        if self._settings.mode:
            environment["permission_mode"] = self._settings.mode
        # Keys are unique within a session. A subagent's file counts its lines from 1 again, so its id is added.
        line = f"{self._source.agent}:{line_key(raw)}" if self._source.agent else line_key(raw)
        key, at = environment.get("uuid") or line, to_utc(record.get("timestamp"))
        return Origin(raw.place, key, at, environment, conversation.prompt, conversation.agent, conversation.cause)

    def _build_unknown(self, origin: Origin, kind: str, record: Any) -> AgentEvent:
        kept = build_unknown_event(origin.place, kind, record, key=self._reserve_key(origin.key), at=origin.at)
        return replace(kept, prompt=origin.prompt, agent=origin.agent, cause=origin.cause)

    def _reserve_key(self, key: str) -> str:
        """Return the key, with a number if an earlier event has it. The next call for the same key gives another."""
        fresh = key
        while fresh in self._keys:
            self._keys[key] += 1
            fresh = f"{key}~{self._keys[key]}"
        self._keys[fresh] = 1
        return fresh


def _is_hook_denial(attachment: Json) -> bool:
    """Whether a hook says here that a call must not be made."""
    if attachment.get("type") == "hook_permission_decision":
        return attachment.get("decision") == "deny"
    return attachment.get("type") == "hook_blocking_error" and attachment.get("hookEvent") == "PreToolUse"


ADAPTER = Adapter(
    tool=TOOL,
    title="Claude Code",
    locate=locate,
    read=lambda source: LineReader(source.path),
    parser=ClaudeTranscriptParser,
    places=watched_dirs,
    deletes_after=read_retention_days,
)
