"""The parser of Codex rollouts: it turns the records of one thread into events.

Codex writes most facts twice. `response_item` records have the model's messages, calls and outputs; `event_msg` records
repeat much of that and add more. The parser makes one event from all records about a thing:

    response_item.function_call          call_2, exec_command          a call opens
    event_msg.exec_command_end           call_2, exit code 0           a report about it
    response_item.function_call_output   call_2, "3 passed"            it has its output
    event_msg.token_count                last_token_usage              it gets its tokens, and becomes an event

1. A call waits for its output, and then for a token count or any record that is no report. The event has everything
   up to there. Only the order of records decides this, so that a second reading gives the same events. A later report,
   for example about a background command, becomes a note.
2. A message and the event that repeats it become one event, whichever comes first.
3. Tokens come from `last_token_usage`, once per answer of the API. `total_token_usage` is a sum; Codex repeats both.
4. A forked thread may begin with a copy of another thread's records. The parser skips the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from aver.agents.codex.calls import NO_OUTPUT, CallReport, read_report
from aver.agents.codex.pending import (
    CALL_KINDS,
    OUTPUT_KINDS,
    CodexCall,
    MessageSide,
    PendingEvent,
    PendingThoughts,
    RepeatFilter,
    TokenCounter,
    add_tokens,
    message_pictures,
    message_text,
    read_call,
)
from aver.agents.codex.records import (
    ANSWER_REPEATS,
    NOTE_LABELS,
    PROMPT_REPEATS,
    REPORT_KINDS,
    SKIPPED_KINDS,
    THOUGHT_KINDS,
    TURN_ENDS,
    CodexLine,
    first_line,
    is_from_user,
    is_older_turn,
    looks_injected,
    names_thread,
    parse_line,
    permission_from_policy,
    read_base_instructions,
    read_note,
    read_session_facts,
    read_settings,
    replace_heavy_fields,
)
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.contract import (
    AgentCall,
    AgentEvent,
    Permission,
    Prompt,
    RawRecord,
    Tokens,
    TranscriptSource,
    build_unknown_event,
    line_key,
)
from aver.ingest.foreign_json import UNREADABLE, parse_json
from aver.ingest.open_calls import OpenCalls

_APPROVAL_REQUESTS = ("event_msg.exec_approval_request", "event_msg.apply_patch_approval_request")
_REPORTED_FIRST = ("web_search_end", "WebSearch", "image_generation_end", "ImageGeneration")
"""Reports that Codex writes before the call itself."""


WAITING_MAX = 256
"""Calls that may be open at once; Codex opens a few. Beyond this the oldest becomes an event without its output, so
that a hostile rollout cannot fill the memory."""


class RolloutParser:
    """Turns the records of one rollout into events, in the order of the file."""

    def __init__(self, source: TranscriptSource) -> None:
        self._thread = source.agent or source.session
        self._prefix = f"{source.agent}:" if source.agent else ""
        """Keys are unique within a session. A subagent's rollout counts its lines from 1 again, so its id is added."""
        self._session: dict[str, Any] = {}
        self._settings: dict[str, Any] = {}
        self._prompt: Prompt | None = None
        self._pending_events: list[PendingEvent] = []
        self._calls = OpenCalls[PendingEvent]()
        self._message, self._has_results = 0, False
        """The number of the model's message, and whether an output came since: then the next call is of a later one."""
        self._early_reports: dict[str, tuple[CallReport, CodexLine]] = {}
        self._keys: set[str] = set()
        self._prompts, self._answers = RepeatFilter(), RepeatFilter()
        self._held_message: CodexLine | None = None
        """A message with the role `user`. The next record shows whether the user wrote it."""
        self._prompts_have_events = False
        self._thoughts = PendingThoughts()
        self._tokens: Tokens | None = None
        """Tokens of an answer of the API that has given no event yet."""
        self._tokens_in = CodexLine("", {}, None, "", {})
        self._counted = TokenCounter()
        self._answered = False
        """Whether an output came since the last flush."""
        self._may_copy = self._after_other = self._copying = False

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        line = parse_line(raw)
        if line is None:
            # No record of Codex: keep its JSON value, its text, or else its digest.
            value = parse_json(raw)
            content = raw.read_text() if value is UNREADABLE else value
            return [
                *self._release_held(None),
                *self._flush(),
                self._build_unknown(raw.place, "", content, None, line_key(raw)),
            ]
        if self._is_copy(line):
            return []
        return [*self._release_held(line), *self._read_line(line)]

    def finish(self) -> Iterable[AgentEvent]:
        events = [*self._release_held(None), *self._flush_unclaimed(), *self._flush()]
        events += [pending.build_event() for pending in self._pending_events]
        self._pending_events.clear()
        self._calls = OpenCalls()
        if self._thoughts.lines or self._tokens is not None:
            # Reasoning or tokens without a call or an answer after them.
            line = self._thoughts.lines[-1] if self._thoughts.lines else self._tokens_in
            event = self._build_event(
                line, "note", key=f"{self._record_key(line)}:last", summary="without an action that came of it"
            )
            tokens, self._tokens = self._tokens, None
            events.append(replace(self._thoughts.attach_to(event), tokens=tokens))
        return events

    # --- one record

    def _read_line(self, line: CodexLine) -> Iterator[AgentEvent]:
        kind = line.kind
        if kind in SKIPPED_KINDS:
            return
        if kind in REPORT_KINDS:
            yield from self._read_report(line)
        elif kind in _APPROVAL_REQUESTS:
            pending = self._calls.get(line.body.get("call_id"))
            if pending is not None:
                pending.asked = True
                pending.places.append(line.place)
        elif kind == "token_usage_record":
            self._count_tokens(line)
        elif kind == "event_msg.token_count":
            self._settings |= read_settings(line)
            self._count_tokens(line)
            yield from self._flush()
        else:
            # Step 1. Records of the model in a row are one answer of the API. Its token count follows them, so no
            # flush may come between.
            if self._answered or not _is_from_model(line):
                yield from self._flush()
            yield from self._read_content_line(line)

    def _read_content_line(self, line: CodexLine) -> Iterator[AgentEvent]:
        kind, body = line.kind, line.body
        if kind in ("turn_context", "event_msg.thread_settings_applied", "event_msg.session_configured"):
            self._settings |= read_settings(line)
        elif kind in ("event_msg.task_started", "event_msg.turn_started"):
            self._forget_repeats()
            self._settings |= read_settings(line)
        elif kind == "session_meta":
            yield self._build_session_event(line)
        elif kind in THOUGHT_KINDS:
            self._thoughts.take(line)
        elif kind in ANSWER_REPEATS:
            self._read_answer(line, "event")
        elif kind == "response_item.message":
            yield from self._read_message(line)
        elif kind in PROMPT_REPEATS:
            yield from self._read_prompt(line, "event")
        elif kind in CALL_KINDS:
            yield from self._read_call(line, read_call(kind, body))
        elif kind in OUTPUT_KINDS:
            identifier = line.body.get("call_id")
            pending = self._calls.get(identifier)
            if pending is None or pending.output is not NO_OUTPUT:
                yield self._build_late_note(line, identifier)
                return
            yield from self._leave_calls(self._calls.leave_before(str(identifier)))
            if pending not in self._pending_events:
                self._pending_events.append(pending)  # It was given out without its output.
            self._has_results = True
            pending.output = line.body.get("output", line.body.get("tools"))
            pending.ended = line.at
            pending.ready = self._answered = True
            pending.places.append(line.place)
        elif kind in NOTE_LABELS:
            yield from self._read_note(line)
        else:
            yield self._build_unknown(line.place, kind, dict(line.outer), line.at, line.key)

    def _is_copy(self, line: CodexLine) -> bool:
        """Return whether a record is a copy from the thread that this one was forked from (step 4).

        A skipped record is hidden, so all of this must be certain: this thread says that it is a fork; it has no
        records of its own yet; the record follows the other thread's first record; its turn is older than this thread.
        """
        if line.kind == "session_meta":
            return False
        of_turn = line.kind in ("turn_context", "event_msg.task_started", "event_msg.turn_started")
        older = of_turn and self._after_other and is_older_turn(line.body.get("turn_id"), self._thread)
        if names_thread(line, self._thread) or (of_turn and not older):
            self._may_copy = self._copying = False
        elif older and self._may_copy:
            self._copying = True
        return self._copying

    # --- prompts and answers

    def _read_message(self, line: CodexLine) -> Iterator[AgentEvent]:
        role, text = line.body.get("role"), message_text(line.body)
        if role == "assistant":
            self._read_answer(line, "item")
        elif role == "user" and (theirs := is_from_user(line.body)) is not False:
            if theirs is None and not self._prompts.is_repeated("item", text, _is_same_prompt):
                self._held_message = line
            elif theirs:
                yield from self._read_prompt(line, "item")
        else:
            yield self._build_context_note(line)

    def _release_held(self, line: CodexLine | None) -> Iterator[AgentEvent]:
        """Decide whether the held message is a prompt or a text of Codex. `line` is the record after it, if any."""
        # Codex also writes its own texts with the role `user`. Versions that repeat prompts as events repeat only the
        # user's. In other versions only the beginning of the text shows whose it is.
        message_line, self._held_message = self._held_message, None
        if message_line is None:
            return
        repeated = (
            line is not None
            and line.kind in PROMPT_REPEATS
            and _is_same_prompt(message_text(message_line.body), message_text(line.body))
        )
        if repeated or not (self._prompts_have_events or looks_injected(message_text(message_line.body))):
            yield from self._read_prompt(message_line, "item")
        else:
            yield self._build_context_note(message_line)

    def _build_context_note(self, line: CodexLine) -> AgentEvent:
        summary = f"told to the model ({line.body.get('role')})"
        return self._build_event(
            line, "note", summary=summary, text=message_text(line.body), result=message_pictures(line.body)
        )

    def _read_prompt(self, line: CodexLine, side: MessageSide) -> Iterator[AgentEvent]:
        text = message_text(line.body)
        self._prompts_have_events = self._prompts_have_events or side == "event"
        if self._prompts.is_repeated(side, text, _is_same_prompt):
            return
        self._prompts.expect(side, text)
        event = self._build_event(
            line, "prompt", summary=first_line(text) or "prompt", text=text, result=message_pictures(line.body)
        )
        yield from self._leave_calls(self._calls.leave_all())
        self._prompt = Prompt(key=event.key, text=text)
        yield replace(event, prompt=None)

    def _read_answer(self, line: CodexLine, side: MessageSide) -> None:
        text = message_text(line.body)
        if self._answers.is_repeated(side, text, str.__eq__):
            return
        self._answers.expect(side, text)
        phase = line.body.get("phase")
        more = {"phase": phase} if isinstance(phase, str) else {}
        self._add_pending(
            self._build_event(line, "answer", summary=first_line(text) or "answer", text=text, more=more), line
        )

    # --- calls

    def _read_call(self, line: CodexLine, call: CodexCall) -> Iterator[AgentEvent]:
        identifier = call.id if isinstance(call.id, str) else ""
        if call.tool in ("web_search", "image_generation") and not isinstance(call.id, str):
            # Some versions write these calls without an id. The report came before, so the first that fits is theirs.
            reports = ((name, report) for name, (report, _) in self._early_reports.items())
            identifier = next((name for name, report in reports if report.tool == call.tool), "")
        before = self._calls.get(identifier)
        if before is not None and before in self._pending_events:
            # Another call has the same id. Records after this one are about the new call, so the old one ends here.
            self._pending_events.remove(before)
            yield before.build_event()
        arguments = call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}
        pending = self._open_call(line, call.tool, identifier, arguments)
        if call.output is not NO_OUTPUT:
            pending.output, pending.ready = call.output, True
        if identifier in self._early_reports:
            report, first = self._early_reports.pop(identifier)
            pending.reports.append(report)
            pending.places.append(first.place)

    def _open_call(self, line: CodexLine, tool: str, identifier: str, arguments: Mapping[str, Any]) -> PendingEvent:
        call = AgentCall(tool=tool, id=identifier or line.key, arguments=arguments)
        pending = self._add_pending(self._build_event(line, "call", key=identifier, summary=tool, call=call), line)
        if self._has_results:
            self._message, self._has_results = self._message + 1, False
        if identifier:
            self._calls.add(identifier, pending, str(self._message))
        return pending

    def _leave_calls(self, calls: list[PendingEvent]) -> Iterator[AgentEvent]:
        """Give out calls without an output, which the conversation has left behind. An output may still come."""
        for pending in calls:
            if pending in self._pending_events and not pending.ready:
                self._pending_events.remove(pending)
                yield pending.build_event()
                pending.tokens = None  # They were counted just now.

    def _read_report(self, line: CodexLine) -> Iterator[AgentEvent]:
        report = read_report(line.kind.partition(".")[2], line.body)
        if report is None:
            yield self._build_unknown(line.place, line.kind, dict(line.outer), line.at, line.key)
        elif (pending := self._calls.get(report.id)) is not None:
            pending.reports.append(report)
            pending.places.append(line.place)
        elif report.id in self._keys:
            yield self._build_late_note(line, report.id)
        elif report.kind in _REPORTED_FIRST:
            self._early_reports[report.id] = (report, line)
        else:
            self._open_reported_call(report, line)

    def _open_reported_call(self, report: CallReport, line: CodexLine) -> None:
        """Open a call that only a report mentions: the user's own command, or a command inside a script."""
        pending = self._open_call(line, report.tool, report.id, report.arguments or {})
        pending.reports.append(report)
        pending.ready = True
        if report.source == "user_shell":
            pending.base = replace(pending.base, allowed=Permission(by="human_approved", reference="source=user_shell"))

    def _build_late_note(self, line: CodexLine, identifier: Any) -> AgentEvent:
        """Build a note for a report or an output whose call is an event already, or is not in the rollout."""
        known = isinstance(identifier, str) and identifier in self._keys
        summary = f"{line.kind.partition('.')[2]}, {'later' if known else 'of a call that is not in the rollout'}"
        key = f"{identifier}:later" if known else ""
        more = {"call_id": identifier} if known else {}
        return self._build_event(
            line, "note", key=key, summary=summary, result=replace_heavy_fields(line.body), more=more
        )

    # --- notes

    def _build_session_event(self, line: CodexLine) -> AgentEvent:
        thread = line.body.get("id")
        if thread != self._thread:
            self._after_other = self._may_copy
            summary = f"{'forked from' if self._may_copy else 'first record of another session:'} {thread}"
            return self._build_event(line, "note", summary=summary, result=replace_heavy_fields(line.body))
        self._may_copy = self._thread not in self._keys and bool(line.body.get("forked_from_id"))
        self._session = read_session_facts(line.body)
        text = read_base_instructions(line.body)
        event = self._build_event(
            line,
            "session",
            key=self._thread,
            summary=f"Codex {self._session.get('version', '')} session".replace("  ", " "),
        )
        result = replace_heavy_fields(line.body) | ({"base_instructions": digest_reference(text)} if text else {})
        return replace(event, text=text, result=result)

    def _read_note(self, line: CodexLine) -> Iterator[AgentEvent]:
        note = read_note(line)
        if line.kind in TURN_ENDS:
            yield from self._flush_unclaimed()
            yield from self._leave_calls(self._calls.leave_all())
            self._forget_repeats()
        yield replace(
            self._build_event(line, "note", key=note.ends_turn, summary=note.summary, text=note.words, more=note.facts),
            result=replace_heavy_fields(line.body),
            status=note.status,
            title=note.title,
            duration_ms=note.took_ms,
            ends_session=line.kind == "event_msg.shutdown_complete",
        )

    def _count_tokens(self, line: CodexLine) -> None:
        """Give the tokens of an answer of the API to its first event (step 3)."""
        tokens = self._counted.count_new(line)
        if tokens is None:
            return
        first = next((pending for pending in self._pending_events if pending.tokens is None), None)
        if first is None:
            self._tokens, self._tokens_in = add_tokens(self._tokens, tokens), line
            return
        first.tokens = tokens
        first.places.append(line.place)
        if isinstance(answer := line.body.get("response_id"), str):
            first.base = replace(first.base, environment={**first.base.environment, "request_id": answer})

    # --- events

    def _add_pending(self, event: AgentEvent, line: CodexLine) -> PendingEvent:
        pending = PendingEvent(self._thoughts.attach_to(event), line)
        pending.tokens, self._tokens = self._tokens, None
        self._pending_events.append(pending)
        return pending

    def _flush(self) -> list[AgentEvent]:
        """Return the events of all calls and answers that are complete."""
        self._answered = False
        for pending in self._pending_events[:-WAITING_MAX]:
            pending.ready = True
        done = [pending for pending in self._pending_events if pending.ready]
        self._pending_events = [pending for pending in self._pending_events if not pending.ready]
        for pending in done:
            if pending.base.call is not None:
                self._calls.pop(pending.base.call.id)
        return [pending.build_event() for pending in done]

    def _flush_unclaimed(self) -> list[AgentEvent]:
        """Return events for reports whose call never came."""
        for report, line in self._early_reports.values():
            self._open_reported_call(report, line)
        self._early_reports.clear()
        return self._flush()

    def _forget_repeats(self) -> None:
        self._prompts.forget()
        self._answers.forget()

    def _build_event(
        self,
        line: CodexLine,
        what: Literal["prompt", "call", "answer", "session", "note"],
        *,
        summary: str,
        key: str = "",
        text: str = "",
        result: Any = None,
        call: AgentCall | None = None,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> AgentEvent:
        model = self._settings.get("model")
        known = {name: value for name, value in self._settings.items() if name != "model"}
        return AgentEvent(
            what=what,
            key=self._reserve_key(key or self._record_key(line), line.place),
            summary=summary,
            at=line.at,
            prompt=self._prompt,
            text=text,
            result=result,
            model=model if isinstance(model, str) else None,
            allowed=Permission() if call is None else permission_from_policy(self._settings),
            call=call,
            environment={**self._session, **known, **more},
            places=(line.place,),
        )

    def _build_unknown(self, place: str, kind: str, record: Any, at: str | None, key: str) -> AgentEvent:
        key = self._reserve_key(f"{self._prefix}{key}", place)
        return build_unknown_event(place, kind, replace_images(record), key=key, at=at)

    def _record_key(self, line: CodexLine) -> str:
        identifier = line.body.get("id")
        return f"{self._prefix}{identifier if isinstance(identifier, str) and identifier else line.key}"

    def _reserve_key(self, key: str, place: str) -> str:
        """Return an unused key. Some providers give the same id twice; then the place is added."""
        while key in self._keys:
            key = f"{key}.{place}"
        self._keys.add(key)
        return key


def _is_same_prompt(report: str, other: str) -> bool:
    """Return whether an item and an event are the same prompt. The event leaves out the names of pictures."""
    return report in other or other in report


def _is_from_model(line: CodexLine) -> bool:
    """Return whether a record is part of the model's answer: text, reasoning or a call."""
    if line.kind == "response_item.message":
        return line.body.get("role") == "assistant"
    return line.kind in CALL_KINDS or line.kind in THOUGHT_KINDS or line.kind in ANSWER_REPEATS
