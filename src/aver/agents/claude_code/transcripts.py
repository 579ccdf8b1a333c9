"""Where Claude Code keeps its transcripts, and whose each of them is.

    <home>/.claude/projects/<project>/<session>.jsonl                          a session
    <home>/.claude/projects/<project>/<session>/subagents/agent-<id>.jsonl     a subagent of it
    <home>/.claude/projects/<project>/agent-<id>.jsonl                         the same, in older versions

`CLAUDE_CONFIG_DIR` stands for `<home>/.claude` where it is set. Beside the transcript of a subagent there may be an
`agent-<id>.meta.json`, which names the call that launched it.

Claude Code: what the records of its transcripts say.

Calls are told when their result has come, with what the model wrote and thought before them. What it says without
calling a tool is told once the message is over: its line says why it stopped, or another message, a prompt or a notice
follows. Records of subagents that stand among those of the session (`isSidechain`) have prompts and messages of their
own.

Keys: a call's is its id, of all else it is the record's `uuid`, numbered where a record gives more than one event. Only
settings and titles have no id, and are told by their line.
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
    ClaudeOutcome,
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

TOOL = "claude-code"

DEFAULT_RETENTION_DAYS = 30
"""Days for which Claude Code keeps transcripts unless its settings say otherwise."""

SETTINGS_MAX = 4 * 1024 * 1024
"""Bytes of its settings that are read."""

META_FILE_MAX = 1024 * 1024
"""Bytes of the file that says what a subagent is: a few hundred, and not read if it is something else."""


def watched_dirs(around: UserEnvironment) -> Iterator[Path]:
    yield _home(around) / "projects"


def read_retention_days(around: UserEnvironment) -> int:
    """After how many days Claude Code deletes transcripts: by its settings, or by itself."""
    settings = _read_json_file(_home(around) / "settings.json", SETTINGS_MAX)
    days = settings.get("cleanupPeriodDays") if isinstance(settings, dict) else None
    return days if isinstance(days, int) and not isinstance(days, bool) and days >= 0 else DEFAULT_RETENTION_DAYS


def _home(around: UserEnvironment) -> Path:
    told = around.environment.get("CLAUDE_CONFIG_DIR")
    return Path(told) if told else around.home / ".claude"


def locate(around: UserEnvironment) -> Iterator[TranscriptSource]:
    for place in watched_dirs(around):
        for path in sorted(place.glob("*/*.jsonl")):
            if not path.name.startswith("agent-"):
                yield TranscriptSource(tool=TOOL, session=path.stem, path=path, below=_relative_dir(place, path))
            elif (session := _read_session_id(path)) is not None:
                yield _subagent_source(place, path, session)
        # Some are kept in directories of their own, by the workflow that they belong to.
        for path in sorted(place.glob("*/*/subagents/**/agent-*.jsonl")):
            yield _subagent_source(place, path, path.relative_to(place).parts[1])


def _read_session_id(path: Path) -> str | None:
    """Whose a subagent's transcript beside those of sessions is: its first record says so. Until that is whole nobody
    knows; if it does not say so, the transcript is taken as a session."""
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
    below, launched_by = _relative_dir(place, path), _read_launching_call(path)
    return TranscriptSource(tool=TOOL, session=session, path=path, agent=agent, launched_by=launched_by, below=below)


def _relative_dir(place: Path, path: Path) -> str:
    """A session may go on in another project, and workflows may have agents of the same name."""
    return path.parent.relative_to(place).as_posix()


def _read_launching_call(path: Path) -> str:
    value = _read_json_file(path.with_suffix(".meta.json"), META_FILE_MAX)
    return string_or_empty(value.get("toolUseId")) if isinstance(value, dict) else ""


def _read_json_file(path: Path, most: int) -> Any:
    """The JSON value in a file; None where there is no such file, or none that can be read."""
    try:
        data = read_if_regular(path, most)
    except Unavailable:
        return None
    return None if data is None else parse_json(data)


SKIPPED_NOTICES = ("turn_duration", "file_snapshot", "thinking_tokens")
"""Notices of the program (`system`) that say only what other records show."""

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
"""What records say of where they come from, by their names and by ours."""
_COMMON_FIELDS = {theirs for theirs, _ in _ENVIRONMENT_FIELDS} | {
    *("type", "timestamp", "sessionId", "isSidechain", "isMeta", "agentId", "slug", "sessionKind")
}
_UNFINISHED_STOPS = ("", "tool_use", "pause_turn")


class ClaudeTranscriptParser:
    """What has been read of one transcript."""

    def __init__(self, source: TranscriptSource) -> None:
        self._source = source
        self._settings = ClaudeSettings()
        self._lanes: dict[str, Conversation] = {"": Conversation()}
        self._agent_of: dict[str, str] = {}
        """Of records of subagents that do not say which: whose they are."""
        self._begun: dict[str, StartedCall] = {}
        self._asked: dict[str, list[str]] = {}
        """What subagents were launched for, and by which calls that have no result."""
        self._keys: dict[str, int] = {}
        """Under which something was told, and how often."""
        self._spending = MessageUsage()
        self._newest = ""
        """The id of the conversation's last record."""

    def feed(self, raw: RawRecord) -> Iterator[AgentEvent]:
        record = parse_json(raw)
        if not isinstance(record, dict):
            yield self._build_unknown(self._build_origin(self._lanes[""], {}, raw), "", _fallback_content(raw, record))
            return
        sort = string_or_empty(record.get("type"))
        lane = self._find_conversation(record)
        self._newest = string_or_empty(record.get("uuid")) or self._newest
        if sort in SKIPPED_KINDS:
            return
        origin = self._build_origin(lane, record, raw)
        if sort == "assistant" and isinstance(record.get("message"), dict):
            yield from self._read_message(lane, origin, record, record["message"])
        elif sort == "user":
            yield from self._read_user(lane, origin, record)
        elif sort == "system":
            yield from self._read_notice(lane, origin, record)
        elif sort == "attachment" and isinstance(record.get("attachment"), dict):
            yield self._read_attachment(lane, origin, record["attachment"])
        elif sort in SETTING_KINDS:
            yield from self._read_setting(sort, origin, record)
        else:
            yield self._build_unknown(origin, sort or "without a type", record)

    def finish(self) -> Iterator[AgentEvent]:
        for lane in self._lanes.values():
            yield from self._end_message(lane)
        for begun in self._begun.values():
            if not begun.given_up:
                begun.given_up = True
                yield self._build_call_event(begun, begun.call, status="pending")

    # --- the model

    def _read_message(self, lane: Conversation, origin: Origin, record: Json, message: Json) -> Iterator[AgentEvent]:
        name = string_or_empty(message.get("id")) or string_or_empty(record.get("requestId")) or origin.key
        if lane.held is not None and lane.held.message != name:
            yield from self._end_message(lane)
        if isinstance(message.get("usage"), dict):
            self._spending.note(name, message["usage"])
        model, stopped = string_or_empty(message.get("model")), string_or_empty(message.get("stop_reason"))
        more = {"message_id": name} | ({"stop_reason": stopped} if stopped else {})
        # Where the program speaks in the model's place, it says so.
        known = None if model in ("", "<synthetic>") else model
        origin = origin._replace(model=known, environment={**origin.environment, **more})
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_or_empty(content)
        for number, block in enumerate(blocks):
            yield from self._read_block(lane, name, origin.with_number(number), block)
        if lane.held is not None and record.get("isApiErrorMessage") is True:
            lane.held.failed = True
        if lane.held is not None and lane.held.texts and stopped not in _UNFINISHED_STOPS:
            # The last of its lines says why it stopped.
            lane.held.origin = lane.held.origin._replace(environment=origin.environment)
            yield from self._end_message(lane)

    def _read_block(self, lane: Conversation, message: str, origin: Origin, block: Any) -> Iterator[AgentEvent]:
        sort = string_or_empty(block.get("type")) if isinstance(block, dict) else ""
        if sort in ("text", "thinking", "redacted_thinking"):
            if lane.held is None:
                lane.held = PendingMessage(message, origin)
            lane.held.add(block, origin.place)
        elif sort.endswith("tool_use") and string_or_empty(block.get("id")):
            yield from self._start_call(lane, message, origin, block)
        elif sort.endswith("tool_result") and string_or_empty(block.get("tool_use_id")) in self._begun:
            yield from self._finish_call(lane, origin, block, {})
        else:
            yield self._build_unknown(origin, f"assistant {sort}", block)

    def _start_call(self, lane: Conversation, message: str, origin: Origin, block: Json) -> Iterator[AgentEvent]:
        name, told = string_or_empty(block.get("name")) or "unnamed", parse_embedded_json(block.get("input"))
        call = AgentCall(tool=name, id=block["id"], arguments=told if isinstance(told, dict) else {"input": told})
        if call.id in self._begun and self._begun[call.id].call == call:
            return  # The same, written twice.
        if call.id in self._keys:
            yield self._build_unknown(origin, "a second call with the id of another", block)
            return
        held, lane.held = lane.held, None
        self._begun[self._reserve_key(call.id)] = StartedCall(
            origin,
            call,
            message,
            summary=_build_summary(name, find_subject(name, call.arguments)),
            allowed=permission_from_mode(self._settings.mode),
            said={} if held is None else held.event_fields(),
            places=[origin.place] if held is None else [*held.places, origin.place],
        )
        if name in AGENT_TOOLS:
            self._asked.setdefault(string_or_empty(call.arguments.get("prompt")), []).append(call.id)

    def _end_message(self, lane: Conversation) -> Iterator[AgentEvent]:
        """The message is over: what was said in it without calling a tool."""
        held, lane.held = lane.held, None
        if held is None:
            return
        said = held.event_fields()
        yield held.origin.event(
            "answer",
            self._reserve_key(held.origin.key),
            one_line(said["text"]) or ("reasoning, redacted" if held.redacted else "reasoning"),
            status="failure" if held.failed else None,
            tokens=self._spending.take(held.message),
            places=_without_duplicates(held.places),
            **said,
        )

    # --- the user, and what stands under that name

    def _read_user(self, lane: Conversation, origin: Origin, record: Json) -> Iterator[AgentEvent]:
        if not lane.agent and (change := self._settings.update_mode(record.get("permissionMode"))):
            yield self._build_setting_event(origin._replace(key=f"{origin.key}:mode"), change)
            origin = origin._replace(environment={**origin.environment, "permission_mode": self._settings.mode})
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        results = [
            block for block in list_or_empty(content) if isinstance(block, dict) and block.get("type") == "tool_result"
        ]
        # Beside more than one result nobody could say whose they are.
        beside = record if len(results) == 1 else {}
        for number, block in enumerate(results):
            yield from self._finish_call(lane, origin.with_number(number), block, beside)
        said = classify_user(record, content)
        if said is not None:
            yield from self._end_message(lane)
            yield self._build_message_event(lane, origin.with_number(len(results)), said)
        elif not results:
            yield self._build_unknown(origin, "user", record)

    def _finish_call(self, lane: Conversation, origin: Origin, block: Json, beside: Json) -> Iterator[AgentEvent]:
        begun = self._begun.pop(string_or_empty(block.get("tool_use_id")), None)
        if begun is None:
            yield self._build_unknown(origin, "the result of no known call", replace_files(block))
            return
        if lane.held is not None and lane.held.message != begun.message:
            yield from self._end_message(lane)
        call = begun.call
        self._forget_launch(call)
        data, decided = beside.get("toolUseResult"), read_decision(beside)
        outcome = read_outcome(call.tool, call.arguments, block, data, beside.get("toolDenialKind"))
        if begun.denied_by:
            decided = Permission(by="policy", reference=f"hook={begun.denied_by}", denied=True)
        if decided is not None and decided.denied and not outcome.ok:
            outcome = replace(outcome, allowed=decided, note=" (denied)", side_effects=(), status=None)
        elif decided is not None and outcome.allowed is None and not decided.denied:
            outcome = replace(outcome, allowed=decided)
        if data is None and outcome.ok:
            begun.origin = begun.origin._replace(environment={**begun.origin.environment, **INFERRED_OUTCOME})
        begun.launched = outcome.launched or begun.launched
        launched = self._lanes.get(begun.launched)
        if launched is not None and launched.agent:
            yield from self._end_message(launched)  # It has reported, and says no more.
        yield self._build_finished_call(begun, outcome, origin)

    def _build_finished_call(self, begun: StartedCall, outcome: ClaudeOutcome, origin: Origin) -> AgentEvent:
        begun.summary += outcome.note
        begun.allowed = outcome.allowed or begun.allowed
        begun.places.append(origin.place)
        took = outcome.duration_ms if outcome.duration_ms is not None else ms_between(begun.origin.at, origin.at)
        call = AgentCall(
            tool=begun.call.tool,
            id=begun.call.id,
            arguments=begun.call.arguments,
            result=outcome.result,
            ok=outcome.ok,
            error=outcome.error,
            diff=outcome.diff,
        )
        status = "blocked" if begun.allowed.denied else outcome.status
        return self._build_call_event(begun, call, status=status, duration_ms=took, side_effects=outcome.side_effects)

    def _build_call_event(self, begun: StartedCall, call: AgentCall, **more: Any) -> AgentEvent:
        return begun.origin.event(
            "call",
            call.id,
            begun.summary,
            call=call,
            allowed=begun.allowed,
            launched=begun.launched,
            tokens=self._spending.take(begun.message),
            places=_without_duplicates(begun.places),
            **begun.said,
            **more,
        )

    def _build_message_event(self, lane: Conversation, origin: Origin, said: ClassifiedMessage) -> AgentEvent:
        key = self._reserve_key(origin.key)
        if said.resets:
            lane.prompt = None
        if said.what == "prompt":
            lane.prompt = Prompt(key=key, text=said.text)
            self._link_subagent(lane, said.text)
        return origin.event(
            said.what,
            key,
            said.summary,
            text=said.text,
            result=said.result,
            status=said.status,
            prompt=None if said.what == "prompt" else lane.prompt,
            cause=lane.cause,
            ends_session=said.ends_session and not self._source.agent,
        )

    def _link_subagent(self, lane: Conversation, text: str) -> None:
        """The first prompt of a subagent among our records is what the call that launched it asked for."""
        if lane.agent and not lane.cause and text in self._asked:
            lane.cause = self._asked[text][0]
            self._begun[lane.cause].launched = lane.agent
            self._forget_launch(self._begun[lane.cause].call)

    def _forget_launch(self, call: AgentCall) -> None:
        text = string_or_empty(call.arguments.get("prompt"))
        waiting = self._asked.get(text, [])
        if call.id in waiting:
            waiting.remove(call.id)
        if not waiting:
            self._asked.pop(text, None)

    # --- the program

    def _read_notice(self, lane: Conversation, origin: Origin, record: Json) -> Iterator[AgentEvent]:
        yield from self._end_message(lane)
        if string_or_empty(record.get("subtype")) not in SKIPPED_NOTICES:
            rest = {name: value for name, value in record.items() if name not in _COMMON_FIELDS}
            yield self._build_message_event(lane, origin, classify_system(record, rest))

    def _read_attachment(self, lane: Conversation, origin: Origin, attachment: Json) -> AgentEvent:
        begun = self._begun.get(string_or_empty(attachment.get("toolUseID")))
        if begun is not None and _is_hook_denial(attachment):
            begun.denied_by = string_or_empty(attachment.get("hookName")) or string_or_empty(
                attachment.get("hookEvent")
            )
        return self._build_message_event(lane, origin, classify_attachment(attachment))

    def _read_setting(self, sort: str, origin: Origin, record: Json) -> Iterator[AgentEvent]:
        if change := self._settings.change(sort, record, self._newest):
            if change.ends_session:
                yield from self._end_message(self._lanes[""])
            yield self._build_setting_event(origin, change)

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

    # --- all of them

    def _find_conversation(self, record: Json) -> Conversation:
        if record.get("isSidechain") is not True or self._source.agent:
            return self._lanes[""]
        uuid, parent = string_or_empty(record.get("uuid")), string_or_empty(record.get("parentUuid"))
        agent = string_or_empty(record.get("agentId")) or self._agent_of.get(parent) or uuid or "sidechain"
        if uuid and not record.get("agentId"):
            self._agent_of[uuid] = agent
        return self._lanes.setdefault(agent, Conversation(agent=agent))

    def _build_origin(self, lane: Conversation, record: Json, raw: RawRecord) -> Origin:
        told = ((ours, record.get(theirs)) for theirs, ours in _ENVIRONMENT_FIELDS)
        environment = {name: value for name, value in told if value and isinstance(value, str)}
        if self._settings.mode:
            environment["permission_mode"] = self._settings.mode
        # Subagents share the keys of their session, and have lines of their own.
        line = f"{self._source.agent}:{line_key(raw)}" if self._source.agent else line_key(raw)
        key, at = environment.get("uuid") or line, to_utc(record.get("timestamp"))
        return Origin(raw.place, key, at, environment, lane.prompt, lane.agent, lane.cause)

    def _build_unknown(self, origin: Origin, sort: str, record: Any) -> AgentEvent:
        kept = build_unknown_event(origin.place, sort, record, key=self._reserve_key(origin.key), at=origin.at)
        return replace(kept, prompt=origin.prompt, agent=origin.agent, cause=origin.cause)

    def _reserve_key(self, key: str) -> str:
        """The key, if nothing was told under it yet; otherwise with a number."""
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


def _build_summary(name: str, subject: str) -> str:
    return f"{one_line(name)}: {subject}" if subject else one_line(name)


def _without_duplicates(places: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(places))


def _fallback_content(raw: RawRecord, record: Any) -> Any:
    """What is kept of a line that is no object: its value, its text, or, where it is too large, its digest."""
    if record is not UNREADABLE:
        return record
    if not raw.data:
        return {"sha256": raw.sha256, "size": raw.size}
    return raw.data.decode("utf-8", "replace")


ADAPTER = Adapter(
    tool=TOOL,
    title="Claude Code",
    locate=locate,
    read=lambda source: LineReader(source.path),
    parser=ClaudeTranscriptParser,
    places=watched_dirs,
    deletes_after=read_retention_days,
)
