"""What the messages of a Cline task say, joined with what went to the model and came back.

Messages that a person sees come in order, and what belongs to a request is told with the first thing that came of it:
its tokens and its reasoning. A call is told when its result is in the API history; where there is no such history, when
the next request begins. What came first, message or history, makes no difference to what is told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from aver.agents.cline.api_calls import ApiCall, ApiHistory
from aver.agents.cline.event_builder import OpenCall, build_shown_event, build_unshown_event
from aver.agents.cline.results import is_before, list_or_empty, message_text, message_time, read_task_tokens, task_info
from aver.agents.cline.ui_messages import OUTPUT_MESSAGES, ShownCall, read_shown_call
from aver.ingest.attachments import replace_images
from aver.ingest.contract import AgentEvent, Prompt, RawRecord, Tokens, TranscriptSource, build_unknown_event
from aver.ingest.foreign_json import parse_embedded_json, parse_json

_SKIPPED_KINDS = (
    *("api_req_finished", "mcp_server_request_started", "shell_integration_warning"),
    "shell_integration_warning_with_suggestion",
)
"""Messages that tell a person to wait, and nothing of what was done."""

_PROMPT_KINDS = ("task", "user_feedback")
_ANSWER_KINDS = ("text", "completion_result", "plan_mode_respond", "act_mode_respond", "followup", "new_task")
_FAILURE_KINDS = ("error", "diff_error", "clineignore_error", "api_req_failed", "mistake_limit_reached", "error_retry")
_HAS_CHANGES = "HAS_CHANGES"


class _RequestUsage(NamedTuple):
    """What an API request cost, and what became of it."""

    tokens: Tokens | None
    environment: Mapping[str, Any]
    key: str
    at: str | None
    place: str


class TaskParser:
    """What of a task has been read."""

    def __init__(self, _: TranscriptSource) -> None:
        self._history = ApiHistory()
        self._has_history = False
        self._open: list[OpenCall] = []
        self._prompt: Prompt | None = None
        self._thinking: list[str] = []
        self._thought_shown = False
        self._usage: _RequestUsage | None = None
        self._models: list[Any] = []
        self._version: str | None = None
        self._started: int | None = None
        self._prompts: dict[int, Prompt | None] = {}
        self._keys: dict[str, str] = {}

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        sort, _, number = raw.place.partition(":")
        record = parse_json(raw)
        if sort == "metadata":
            if not isinstance(record, dict):
                return
            self._models = [one for one in list_or_empty(record.get("model_usage")) if isinstance(one, dict)]
            face = task_info(record)
            self._version = face.get("cline_version")
            key = f"metadata:{hashlib.sha256(json.dumps(face, sort_keys=True).encode()).hexdigest()[:16]}"
            if face and key not in self._keys:
                self._keys[key] = raw.place
                yield AgentEvent(
                    what="session",
                    key=key,
                    summary=f"task of Cline {face.get('cline_version') or ''}".rstrip(),
                    model=face.get("model"),
                    result={"files_in_context": record.get("files_in_context")}
                    if record.get("files_in_context")
                    else None,
                    environment=face,
                    places=(raw.place,),
                )
        elif sort == "api":
            self._has_history = True
            self._history.add(int(number) if number.isdecimal() else 0, record)
            yield from self._flush_complete()
        elif isinstance(record, dict) and isinstance(record.get("say") or record.get("ask"), str):
            yield from self._read_message(raw, record)
        else:
            kept = record if isinstance(record, dict) else raw.data.decode("utf-8", "replace")
            kept = kept if raw.data else {"sha256": raw.sha256, "size": raw.size}
            yield build_unknown_event(
                raw.place, "message", kept, key=self._message_key(record, raw), at=message_time(record)
            )

    def finish(self) -> Iterable[AgentEvent]:
        for one in self._open:
            self._match_history(one)
        shown = [self._build_shown_call(one) for one in self._open]
        self._open.clear()
        alone = [self._build_unshown_call(call) for call in self._history.untaken_calls()]
        return [*shown, *alone, *self._flush_request()]

    # --- messages

    def _read_message(self, raw: RawRecord, message: dict[str, Any]) -> Iterator[AgentEvent]:
        sort = str(message.get("say") or message.get("ask"))
        if raw.place == "ui:0" and sort == "text":
            sort = "task"  # As older versions write it.
        if sort not in OUTPUT_MESSAGES:
            yield from self._flush_complete()  # The history may have come first.
        if sort == "api_req_started":
            yield from self._read_request(raw, message)
        elif sort == "reasoning":
            self._thinking.append(message_text(message) or str(message.get("reasoning") or ""))
            self._thought_shown = True
        elif sort in OUTPUT_MESSAGES:
            # What came of a call is shown: it belongs to the last call of its sort, if that is not told yet.
            one = next((one for one in reversed(self._open) if one.shown.sort == OUTPUT_MESSAGES[sort]), None)
            if one is None:
                if message.get("text"):
                    yield self._build_note(raw, message, sort)
                return
            one.places.append(raw.place)
            if sort == "command_permission_denied":
                one.denied_by = "command permissions"
            one.outputs.append(message.get("text"))
        elif (shown := read_shown_call(message, sort)) is not None:
            yield from self._open_call(raw, message, shown)
        elif sort in _PROMPT_KINDS:
            yield from self._read_prompt(raw, message, sort)
        elif sort in _ANSWER_KINDS:
            yield from self._read_answer(raw, message, sort)
        elif sort not in _SKIPPED_KINDS:
            yield self._build_note(raw, message, sort)

    def _read_request(self, raw: RawRecord, message: dict[str, Any]) -> Iterator[AgentEvent]:
        """A request begins: what the one before cost is told, and what it called."""
        yield from self._flush_request()
        index = message.get("conversationHistoryIndex")
        self._started = index if isinstance(index, int) else None
        if self._started is not None:
            self._prompts[self._started + 2] = self._prompt  # The person's message comes next, then the model's.
        # Another request begins: nothing more will be shown of the calls before it, and what was not, never was.
        for one in self._open:
            one.is_closed = True
        yield from self._flush_complete()
        for call in self._history.untaken_calls():
            begun = self._started is not None and self._started >= call.index
            if begun and self._history.find_result(call) is not None:
                yield self._build_unshown_call(call)
        self._thought_shown = False
        info = parse_embedded_json(message.get("text"))
        info = info if isinstance(info, dict) else {}
        told = {
            "cancel_reason": info.get("cancelReason"),
            "streaming_failed": info.get("streamingFailedMessage"),
            "retry_status": info.get("retryStatus"),
        }
        environment = {name: value for name, value in told.items() if value}
        self._usage = _RequestUsage(
            read_task_tokens(info), environment, self._message_key(message, raw), message_time(message), raw.place
        )

    def _read_prompt(self, raw: RawRecord, message: dict[str, Any], sort: str) -> Iterator[AgentEvent]:
        text, key = message_text(message), self._message_key(message, raw)
        self._prompt = Prompt(key=key, text=text)
        line = text.strip().partition("\n")[0]
        attached = {name: list_or_empty(message.get(name)) for name in ("images", "files") if message.get(name)}
        yield AgentEvent(
            what="prompt",
            key=key,
            summary=f"prompt: {line or '(no text)'}",
            text=text,
            at=message_time(message),
            title=line[:TITLE_MAX] or None if sort == "task" else None,
            result=replace_images(attached) or None,
            environment=self._build_environment(message),
            places=(raw.place,),
        )

    def _read_answer(self, raw: RawRecord, message: dict[str, Any], sort: str) -> Iterator[AgentEvent]:
        said = parse_embedded_json(message.get("text"))
        said = said if isinstance(said, dict) else {}
        text = str(said.get("response") or said.get("question") or said.get("context") or message_text(message))
        changed = sort == "completion_result" and text.endswith(_HAS_CHANGES)
        text = text.removesuffix(_HAS_CHANGES).rstrip() if changed else text
        if not text:
            return  # Cline asks what comes next: a button, no words.
        more = {name: said[name] for name in ("options", "selected") if said.get(name)}
        event = AgentEvent(
            what="answer",
            key=self._message_key(message, raw),
            summary=f"{sort.replace('_', ' ')}: {text.strip().partition(chr(10))[0]}",
            text=text,
            at=message_time(message),
            result=more or None,
            environment=self._build_environment(message) | ({"has_changes": True} if changed else {}),
            places=(raw.place,),
        )
        yield self._attach_request(event, message)

    def _build_note(self, raw: RawRecord, message: dict[str, Any], sort: str) -> AgentEvent:
        known = sort in _NOTE_KINDS or sort in _FAILURE_KINDS
        event = AgentEvent(
            what="note",
            key=self._message_key(message, raw),
            summary=sort.replace("_", " "),
            at=message_time(message),
            result=replace_images(parse_embedded_json(message.get("text"))),
            environment=self._build_environment(message),
            status="failure" if sort in _FAILURE_KINDS else None,
            prompt=self._prompt,
            places=(raw.place,),
        )
        if not known:
            return replace(
                build_unknown_event(raw.place, sort, message, key=event.key, at=event.at), prompt=self._prompt
            )
        if sort == "checkpoint_created":
            return replace(event, summary=f"checkpoint {str(message.get('lastCheckpointHash') or '')[:12]}".strip())
        usage = read_task_tokens(event.result) if sort == "subagent_usage" else None
        return replace(event, tokens=usage)

    # --- calls

    def _open_call(self, raw: RawRecord, message: dict[str, Any], shown: ShownCall) -> Iterator[AgentEvent]:
        asked = message.get("type") == "ask" or "ask" in message
        event = AgentEvent(
            what="call",
            key=self._message_key(message, raw),
            summary="",
            at=message_time(message),
            environment=self._build_environment(message)
            | ({"outside_workspace": True} if shown.arguments.get("operationIsLocatedInWorkspace") is False else {}),
        )
        thought_shown = self._thought_shown
        event = self._attach_request(event, message)
        self._open.append(OpenCall(shown, event, place=raw.place, asked=asked, thought_shown=thought_shown))
        if len(self._open) > OPEN_MAX:
            yield self._build_shown_call(self._open.pop(0))

    def _flush_complete(self) -> Iterator[AgentEvent]:
        """The calls of which all is known that will be."""
        still: list[OpenCall] = []
        for one in self._open:
            self._match_history(one)
            if self._is_complete(one):
                yield self._build_shown_call(one)
            else:
                still.append(one)
        self._open = still

    def _match_history(self, one: OpenCall) -> None:
        if one.call is None and (found := self._history.find_call(one.shown.match)) is not None:
            self._history.take(found)
            one.call = found

    def _is_complete(self, one: OpenCall) -> bool:
        """Whether the result is there, and all that was shown of it: a message that names its place in the history is
        read before what comes after that place."""
        at = one.shown.match.history
        if one.call is not None:
            return self._history.find_result(one.call) is not None and (one.is_closed or at is not None)
        return one.is_closed and (not self._has_history or (at is not None and self._history.last_index >= at + 2))

    def _build_shown_call(self, one: OpenCall) -> AgentEvent:
        call = one.call
        result = self._history.find_result(call) if call else None
        key = self._reserve_key(call.id, call.place) if call and call.id else one.event.key
        event = build_shown_event(one, result, key)
        lost = self._has_history and call is None
        return replace(event, environment={**event.environment, "joined": False}) if lost else event

    def _build_unshown_call(self, call: ApiCall) -> AgentEvent:
        self._history.take(call)
        key = self._reserve_key(call.id or f"api-{call.index}.{call.number}", call.place)
        about = {"cwd": self._history.directory} if self._history.directory else {}
        event = AgentEvent(what="call", key=key, summary="", prompt=self._prompts.get(call.index), environment=about)
        return build_unshown_event(call, self._history.find_result(call), event)

    # --- what belongs to a request

    def _attach_request(self, event: AgentEvent, message: dict[str, Any]) -> AgentEvent:
        """The event with what the request cost and thought, if it is the first that came of it."""
        usage, self._usage = self._usage, None
        thinking = "\n\n".join(filter(None, self._thinking)) or str(message.get("reasoning") or "")
        self._thinking.clear()
        return replace(
            event,
            prompt=self._prompt,
            model=self._find_model(message),
            tokens=usage.tokens if usage else None,
            thinking=thinking,
            environment={**event.environment, **(usage.environment if usage else {})},
        )

    def _flush_request(self) -> Iterator[AgentEvent]:
        """A request of which nothing came: what it cost, and what was thought, is told all the same."""
        usage, self._usage = self._usage, None
        thinking = "\n\n".join(filter(None, self._thinking))
        self._thinking.clear()
        if usage is None or not (usage.tokens or usage.environment or thinking):
            return
        failed = "cancel_reason" in usage.environment or "streaming_failed" in usage.environment
        yield AgentEvent(
            what="note",
            key=usage.key,
            summary="API request" + (" that was cancelled" if failed else ""),
            at=usage.at,
            prompt=self._prompt,
            thinking=thinking,
            tokens=usage.tokens,
            status="failure" if failed else None,
            environment=usage.environment,
            places=(usage.place,),
        )

    # --- what is told of each

    def _build_environment(self, message: Mapping[str, Any]) -> dict[str, Any]:
        info = message.get("modelInfo")
        info = info if isinstance(info, dict) else {}
        told = {
            "checkpoint": message.get("lastCheckpointHash"),
            "checkpoint_checked_out": message.get("isCheckpointCheckedOut"),
            "conversation_history_index": message.get("conversationHistoryIndex"),
            "conversation_history_deleted": message.get("conversationHistoryDeletedRange"),
            "outside_workspace": message.get("isOperationOutsideWorkspace"),
            "mode": info.get("mode"),
            "provider": info.get("providerId"),
            "version": self._version,
            "cwd": self._history.directory,
        }
        return {name: value for name, value in told.items() if value not in (None, "", False)}

    def _find_model(self, message: Mapping[str, Any]) -> str | None:
        info = message.get("modelInfo")
        if isinstance(info, dict) and isinstance(model := info.get("modelId"), str) and model:
            return model
        when = message.get("ts")
        used = [one.get("model_id") for one in self._models if is_before(one.get("ts"), when)]
        return used[-1] if used and isinstance(used[-1], str) else None

    def _message_key(self, message: Any, raw: RawRecord) -> str:
        """A message's own time is what Cline knows it by; of two with the same, the second has its place too."""
        when = message.get("ts") if isinstance(message, dict) else None
        key = f"ts-{when}" if isinstance(when, int) and not isinstance(when, bool) else f"at-{raw.place}"
        identity = f"{raw.place}:{raw.sha256}"
        if self._keys.setdefault(key, identity) == identity:
            return key
        return self._reserve_key(f"{key}.{raw.place}", identity)

    def _reserve_key(self, key: str, identity: str) -> str:
        """The key, or one like it that no other record has."""
        number = 1
        while self._keys.setdefault(key if number == 1 else f"{key}.{number}", identity) != identity:
            number += 1
        return key if number == 1 else f"{key}.{number}"


OPEN_MAX = 16
"""Calls that may be open at once. Cline makes one after the other, or a few in one request; the first of more is told
as it is, so that no task takes for ever."""

TITLE_MAX = 120
"""Characters of a task's first line that name its session."""

_NOTE_KINDS = (
    *("checkpoint_created", "user_feedback_diff", "api_req_retried", "mcp_notification", "deleted_api_reqs", "info"),
    *("load_mcp_documentation", "generate_explanation", "task_progress", "hook_status", "hook_output_stream"),
    *("subagent_usage", "conditional_rules_applied", "resume_task", "resume_completed_task", "condense", "report_bug"),
    *("summarize_task", "tool", *OUTPUT_MESSAGES),
)
