"""The parser of Cline tasks: it joins the messages that the user saw with the API history.

    ui:2    {"ts": 1780218002000, "type": "say", "say": "tool", "conversationHistoryIndex": 0,
             "text": "{\\"tool\\": \\"editedExistingFile\\", \\"path\\": \\"totals.py\\", …}"}
    api:1   {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_c1", "name": "replace_in_file", …}]}
    api:2   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_c1", "content": "…saved…"}]}

These three records become one event.

- The tokens and the reasoning of a request go to the first event after it.
- A call becomes an event when the history has its result. Without a history, it does when the next request begins.
- The order in which messages and history arrive does not change the events.
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
from aver.ingest.foreign_json import UNREADABLE, parse_embedded_json, parse_json

_SKIPPED_KINDS = (
    *("api_req_finished", "mcp_server_request_started", "shell_integration_warning"),
    "shell_integration_warning_with_suggestion",
)
"""Messages about progress, which say nothing about the agent's actions."""

_PROMPT_KINDS = ("task", "user_feedback")
_ANSWER_KINDS = ("text", "completion_result", "plan_mode_respond", "act_mode_respond", "followup", "new_task")
_FAILURE_KINDS = ("error", "diff_error", "clineignore_error", "api_req_failed", "mistake_limit_reached", "error_retry")
_HAS_CHANGES = "HAS_CHANGES"
"""Cline adds this word to the end of a completion if the task changed files."""


class _RequestUsage(NamedTuple):
    """The tokens of an API request, and how it ended."""

    tokens: Tokens | None
    environment: Mapping[str, Any]
    key: str
    at: str | None
    place: str


class TaskParser:
    """Turns the records of one task into events."""

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
        self._ignored: list[tuple[str, int | None]] = []
        """The paths that Cline refused because of `.clineignore`, and the history's last index at that moment."""

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        kind, _, number = raw.place.partition(":")
        record = parse_json(raw)
        if kind == "metadata":
            if not isinstance(record, dict):
                return
            self._models = [usage for usage in list_or_empty(record.get("model_usage")) if isinstance(usage, dict)]
            facts = task_info(record)
            self._version = facts.get("cline_version")
            key = f"metadata:{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]}"
            if facts and key not in self._keys:
                self._keys[key] = raw.place
                yield AgentEvent(
                    what="session",
                    key=key,
                    summary=f"task of Cline {facts.get('cline_version') or ''}".rstrip(),
                    model=facts.get("model"),
                    result={"files_in_context": record.get("files_in_context")}
                    if record.get("files_in_context")
                    else None,
                    environment=facts,
                    places=(raw.place,),
                )
        elif kind == "api":
            self._has_history = True
            if record is UNREADABLE:
                key = f"unreadable-{number}-{raw.sha256[:16]}"
                yield build_unknown_event(raw.place, "history", raw.read_text(), key=key)
            self._history.add(int(number) if number.isdecimal() else 0, record)
            yield from self._flush_complete()
        elif isinstance(record, dict) and isinstance(record.get("say") or record.get("ask"), str):
            yield from self._read_message(raw, record)
        else:
            kept = record if isinstance(record, dict) else raw.read_text()
            yield build_unknown_event(
                raw.place, "message", kept, key=self._message_key(record, raw), at=message_time(record)
            )

    def finish(self) -> Iterable[AgentEvent]:
        for open_call in self._open:
            self._match_history(open_call)
        shown = [self._build_shown_call(open_call) for open_call in self._open]
        self._open.clear()
        alone = [self._build_unshown_call(call) for call in self._history.untaken_calls()]
        return [*shown, *alone, *self._flush_request()]

    # --- messages

    def _read_message(self, raw: RawRecord, message: dict[str, Any]) -> Iterator[AgentEvent]:
        kind = str(message.get("say") or message.get("ask"))
        if raw.place == "ui:0" and kind == "text":
            kind = "task"  # Older versions write the first prompt as `text`.
        if kind not in OUTPUT_MESSAGES:
            yield from self._flush_complete()  # The history may already have results of earlier calls.
        if kind == "api_req_started":
            yield from self._read_request(raw, message)
        elif kind == "reasoning":
            self._thinking.append(message_text(message) or str(message.get("reasoning") or ""))
            self._thought_shown = True
        elif kind in OUTPUT_MESSAGES:
            # Output messages name no call. Cline shows them after it, so they belong to the last call of their kind.
            of_kind = [open_call for open_call in self._open if open_call.shown.kind == OUTPUT_MESSAGES[kind]]
            open_call = of_kind[-1] if of_kind else None
            if open_call is None:
                if message.get("text"):
                    yield self._build_note(raw, message, kind)
                return
            open_call.places.append(raw.place)
            if kind == "command_permission_denied":
                open_call.denied_by = "command permissions"
            open_call.outputs.append(message.get("text"))
        elif (shown := read_shown_call(message, kind)) is not None:
            yield from self._open_call(raw, message, shown)
        elif kind in _PROMPT_KINDS:
            yield from self._read_prompt(raw, message, kind)
        elif kind in _ANSWER_KINDS:
            yield from self._read_answer(raw, message, kind)
        elif kind not in _SKIPPED_KINDS:
            if kind == "clineignore_error" and message_text(message):
                index = message.get("conversationHistoryIndex")
                self._ignored.append((message_text(message), index if isinstance(index, int) else None))
                del self._ignored[:-IGNORED_MAX]
            yield self._build_note(raw, message, kind)

    def _read_request(self, raw: RawRecord, message: dict[str, Any]) -> Iterator[AgentEvent]:
        """Start a request. Yields the cost and the calls of the request before it."""
        yield from self._flush_request()
        index = message.get("conversationHistoryIndex")
        self._started = index if isinstance(index, int) else None
        if self._started is not None:
            # In the history the user's message comes next, then the model's answer with its calls.
            self._prompts[self._started + 2] = self._prompt
        # Cline shows nothing more about calls before this request. A call that it has not shown so far stays unshown.
        for open_call in self._open:
            open_call.is_closed = True
        yield from self._flush_complete()
        for call in self._history.untaken_calls():
            requested = self._started is not None and self._started >= call.index
            if requested and self._history.has_passed(call):
                yield self._build_unshown_call(call)
        self._thought_shown = False
        info = parse_embedded_json(message.get("text"))
        info = info if isinstance(info, dict) else {}
        fields = {
            "cancel_reason": info.get("cancelReason"),
            "streaming_failed": info.get("streamingFailedMessage"),
            "retry_status": info.get("retryStatus"),
        }
        environment = {name: value for name, value in fields.items() if value}
        self._usage = _RequestUsage(
            read_task_tokens(info), environment, self._message_key(message, raw), message_time(message), raw.place
        )

    def _read_prompt(self, raw: RawRecord, message: dict[str, Any], kind: str) -> Iterator[AgentEvent]:
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
            title=line[:TITLE_MAX] or None if kind == "task" else None,
            result=replace_images(attached) or None,
            environment=self._build_environment(message),
            places=(raw.place,),
        )

    def _read_answer(self, raw: RawRecord, message: dict[str, Any], kind: str) -> Iterator[AgentEvent]:
        fields = parse_embedded_json(message.get("text"))
        fields = fields if isinstance(fields, dict) else {}
        text = str(fields.get("response") or fields.get("question") or fields.get("context") or message_text(message))
        changed = kind == "completion_result" and text.endswith(_HAS_CHANGES)
        text = text.removesuffix(_HAS_CHANGES).rstrip() if changed else text
        if not text:
            return  # Cline shows a button and no text.
        more = {name: fields[name] for name in ("options", "selected") if fields.get(name)}
        event = AgentEvent(
            what="answer",
            key=self._message_key(message, raw),
            summary=f"{kind.replace('_', ' ')}: {text.strip().partition(chr(10))[0]}",
            text=text,
            at=message_time(message),
            result=more or None,
            environment=self._build_environment(message) | ({"has_changes": True} if changed else {}),
            places=(raw.place,),
        )
        yield self._attach_request(event, message)

    def _build_note(self, raw: RawRecord, message: dict[str, Any], kind: str) -> AgentEvent:
        known = kind in _NOTE_KINDS or kind in _FAILURE_KINDS
        event = AgentEvent(
            what="note",
            key=self._message_key(message, raw),
            summary=kind.replace("_", " "),
            at=message_time(message),
            result=replace_images(parse_embedded_json(message.get("text"))),
            environment=self._build_environment(message),
            status="failure" if kind in _FAILURE_KINDS else None,
            prompt=self._prompt,
            places=(raw.place,),
        )
        if not known:
            return replace(
                build_unknown_event(raw.place, kind, message, key=event.key, at=event.at), prompt=self._prompt
            )
        if kind == "checkpoint_created":
            return replace(event, summary=f"checkpoint {str(message.get('lastCheckpointHash') or '')[:12]}".strip())
        usage = read_task_tokens(event.result) if kind == "subagent_usage" else None
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
        """Yield the events of complete calls."""
        still: list[OpenCall] = []
        for open_call in self._open:
            self._match_history(open_call)
            if self._is_complete(open_call):
                yield self._build_shown_call(open_call)
            else:
                still.append(open_call)
        self._open = still

    def _match_history(self, open_call: OpenCall) -> None:
        if open_call.call is None and (found := self._history.find_call(open_call.shown.match)) is not None:
            self._history.take(found)
            open_call.call = found

    def _is_complete(self, open_call: OpenCall) -> bool:
        """Return whether no more record about the call can come."""
        # The reader gives a message that names its place in the history before the history after that place. So with
        # such a place, everything that was shown is known when the result comes.
        at = open_call.shown.match.history
        if open_call.call is not None:
            has_result = self._history.find_result(open_call.call) is not None
            return (has_result and at is not None) or (open_call.is_closed and self._history.has_passed(open_call.call))
        passed = at is not None and self._history.last_index >= at + 2
        return open_call.is_closed and (not self._has_history or passed)

    def _build_shown_call(self, open_call: OpenCall) -> AgentEvent:
        call = open_call.call
        result = self._history.find_result(call) if call else None
        key = self._reserve_key(call.id, call.place) if call and call.id else open_call.event.key
        event = build_shown_event(open_call, result, key, ignored=self._is_ignored(call))
        lost = self._has_history and call is None
        return replace(event, environment={**event.environment, "joined": False}) if lost else event

    def _build_unshown_call(self, call: ApiCall) -> AgentEvent:
        self._history.take(call)
        key = self._reserve_key(call.id or f"api-{call.index}.{call.number}", call.place)
        about = {"cwd": self._history.directory} if self._history.directory else {}
        event = AgentEvent(what="call", key=key, summary="", prompt=self._prompts.get(call.index), environment=about)
        return build_unshown_event(call, self._history.find_result(call), event, ignored=self._is_ignored(call))

    def _is_ignored(self, call: ApiCall | None) -> bool:
        """Return whether Cline itself showed that `.clineignore` covers what this call names."""
        if call is None:
            return False
        texts = [value for value in call.arguments.values() if isinstance(value, str)]
        named = {word for text in texts for word in (text, *text.split())}
        return any(
            path in named and (index is None or index in (call.index - 1, call.index)) for path, index in self._ignored
        )

    # --- requests

    def _attach_request(self, event: AgentEvent, message: dict[str, Any]) -> AgentEvent:
        """Return the event with the tokens and the reasoning of its request, if it is the first event after it."""
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
        """Yield a note with the tokens and the reasoning of a request that gave no other event."""
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

    # --- for all messages

    def _build_environment(self, message: Mapping[str, Any]) -> dict[str, Any]:
        info = message.get("modelInfo")
        info = info if isinstance(info, dict) else {}
        fields = {
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
        return {name: value for name, value in fields.items() if value not in (None, "", False)}

    def _find_model(self, message: Mapping[str, Any]) -> str | None:
        info = message.get("modelInfo")
        if isinstance(info, dict) and isinstance(model := info.get("modelId"), str) and model:
            return model
        when = message.get("ts")
        used = [usage.get("model_id") for usage in self._models if is_before(usage.get("ts"), when)]
        return used[-1] if used and isinstance(used[-1], str) else None

    def _message_key(self, message: Any, raw: RawRecord) -> str:
        """Return the key of a message: its time, as in Cline. If another message has it, the place is added."""
        when = message.get("ts") if isinstance(message, dict) else None
        key = f"ts-{when}" if isinstance(when, int) and not isinstance(when, bool) else f"at-{raw.place}"
        identity = f"{raw.place}:{raw.sha256}"
        if self._keys.setdefault(key, identity) == identity:
            return key
        return self._reserve_key(f"{key}.{raw.place}", identity)

    def _reserve_key(self, key: str, identity: str) -> str:
        """Return the key, with a number if another record has it."""
        number = 1
        while self._keys.setdefault(key if number == 1 else f"{key}.{number}", identity) != identity:
            number += 1
        return key if number == 1 else f"{key}.{number}"


IGNORED_MAX = 64
"""The newest refusals by `.clineignore` that are kept. A refusal belongs to a call of the same request."""

OPEN_MAX = 16
"""Calls that may be open at once. Cline makes one after the other, or a few in one request. Beyond this the oldest
becomes an event without its result, so that a hostile task cannot fill the memory."""

TITLE_MAX = 120
"""The most characters of a session's title, which is the first line of its task."""

_NOTE_KINDS = (
    *("checkpoint_created", "user_feedback_diff", "api_req_retried", "mcp_notification", "deleted_api_reqs", "info"),
    *("load_mcp_documentation", "generate_explanation", "task_progress", "hook_status", "hook_output_stream"),
    *("subagent_usage", "conditional_rules_applied", "resume_task", "resume_completed_task", "condense", "report_bug"),
    *("summarize_task", "tool", *OUTPUT_MESSAGES),
)
