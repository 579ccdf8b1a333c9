"""What the records of a Codex rollout say: the deeds of one thread.

What the model said and called, and what came of it, stands in records `response_item`; records `event_msg` tell much of
that again, and more. So that everything is told once:

- A call is complete with its output. Events about it come before that or after: its deed waits for the count of tokens,
  or for another record that is no such event, and then holds all that was told of it. This depends on nothing but the
  order of the records, so that reading them again gives the same. What an event adds later still (a command ran on in
  the background) is a note of its own.
- A message and the event that repeats it are one, whichever comes first.
- Tokens are those of `last_token_usage`, once per answer of the API: Codex repeats it, and `total_token_usage` adds up.
- A forked thread may begin with a copy of another's records. They are that one's deeds, and are not told again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from aver.agents.codex.calls import NO_OUTPUT, CallReport, read_report
from aver.agents.codex.pending import (
    CALL_READERS,
    OUTPUT_KINDS,
    MessageSide,
    PendingEvent,
    PendingThoughts,
    RepeatFilter,
    TokenCounter,
    add_tokens,
    message_pictures,
    message_text,
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

_APPROVAL_REQUESTS = ("event_msg.exec_approval_request", "event_msg.apply_patch_approval_request")
_REPORTED_FIRST = ("web_search_end", "WebSearch", "image_generation_end", "ImageGeneration")
"""Accounts that are written before the call that they are of."""


WAITING_MAX = 256
"""Calls that may be open at once. Codex makes a few; the first of more are told as they are, so that no rollout takes
for ever."""


class RolloutParser:
    """What was read of a rollout so far."""

    def __init__(self, source: TranscriptSource) -> None:
        self._thread = source.agent or source.session
        self._prefix = f"{source.agent}:" if source.agent else ""
        """Keys are unique in a session, and a subagent's records have numbers and ids of their own."""
        self._session: dict[str, Any] = {}
        self._settings: dict[str, Any] = {}
        self._prompt: Prompt | None = None
        self._waiting: list[PendingEvent] = []
        self._calls: dict[str, PendingEvent] = {}
        self._early: dict[str, tuple[CallReport, CodexLine]] = {}
        self._keys: set[str] = set()
        self._prompts, self._answers = RepeatFilter(), RepeatFilter()
        self._held: CodexLine | None = None
        """A message in the user's name, of which the next record tells whether it is the user's."""
        self._prompts_have_events = False
        self._thoughts = PendingThoughts()
        self._tokens: Tokens | None = None
        """What an answer of the API cost that nothing was told of yet."""
        self._tokens_in = CodexLine("", {}, None, "", {})
        self._counted = TokenCounter()
        self._answered = False
        """Whether an output was told since anything was given out."""
        self._may_copy = self._after_other = self._copying = False

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        line = parse_line(raw)
        if line is None:
            return [
                *self._release_held(None),
                *self._flush(),
                self._build_unknown(raw.place, "", _fallback_content(raw), None, line_key(raw)),
            ]
        if self._is_copy(line):
            return []
        return [*self._release_held(line), *self._read_line(line)]

    def finish(self) -> Iterable[AgentEvent]:
        deeds = [*self._release_held(None), *self._flush_unclaimed(), *self._flush()]
        deeds += [told.build_event() for told in self._waiting]
        self._waiting.clear()
        self._calls.clear()
        if self._thoughts.lines or self._tokens is not None:
            deeds.append(self._build_trailing_note())
        return deeds

    # --- one record

    def _read_line(self, line: CodexLine) -> Iterator[AgentEvent]:
        sort = line.sort
        if sort in SKIPPED_KINDS:
            return
        if sort in REPORT_KINDS:
            yield from self._read_report(line)
        elif sort in _APPROVAL_REQUESTS:
            self._mark_approval_asked(line)
        elif sort == "token_usage_record":
            self._count_tokens(line)
        elif sort == "event_msg.token_count":
            self._settings |= read_settings(line)
            self._count_tokens(line)
            yield from self._flush()
        else:
            # What the model says in a row is one answer of the API, whose tokens are told after it.
            if self._answered or not _is_from_model(line):
                yield from self._flush()
            yield from self._read_content_line(line)

    def _read_content_line(self, line: CodexLine) -> Iterator[AgentEvent]:
        sort, body = line.sort, line.body
        if sort in ("turn_context", "event_msg.thread_settings_applied", "event_msg.session_configured"):
            self._settings |= read_settings(line)
        elif sort in ("event_msg.task_started", "event_msg.turn_started"):
            self._forget_repeats()
            self._settings |= read_settings(line)
        elif sort == "session_meta":
            yield self._build_session_event(line)
        elif sort in THOUGHT_KINDS:
            self._thoughts.take(line)
        elif sort in ANSWER_REPEATS:
            self._read_answer(line, "event")
        elif sort == "response_item.message":
            yield from self._read_message(line)
        elif sort in PROMPT_REPEATS:
            yield from self._read_prompt(line, "event")
        elif sort in CALL_READERS:
            yield from self._read_call(line, *CALL_READERS[sort](body))
        elif sort in OUTPUT_KINDS:
            yield from self._read_output(line)
        elif sort in NOTE_LABELS:
            yield from self._read_note(line)
        else:
            yield self._build_unknown(line.place, sort, dict(line.outer), line.at, line.key)

    def _is_copy(self, line: CodexLine) -> bool:
        """Whether a record is another thread's, copied when this one was forked from it. Only what is certain counts,
        as nobody may hide records by this: this thread says that it is a fork, nothing of its own was told before, and
        the record stands after the other thread's first one, in a turn that is older than this thread."""
        if line.sort == "session_meta":
            return False
        of_turn = line.sort in ("turn_context", "event_msg.task_started", "event_msg.turn_started")
        older = of_turn and self._after_other and is_older_turn(line.body.get("turn_id"), self._thread)
        if names_thread(line, self._thread) or (of_turn and not older):
            self._may_copy = self._copying = False
        elif older and self._may_copy:
            self._copying = True
        return self._copying

    # --- what was asked and said

    def _read_message(self, line: CodexLine) -> Iterator[AgentEvent]:
        role, text = line.body.get("role"), message_text(line.body)
        if role == "assistant":
            self._read_answer(line, "item")
        elif role == "user" and (theirs := is_from_user(line.body)) is not False:
            if theirs is None and not self._prompts.is_repeated("item", text, _is_same_prompt):
                self._held = line
            elif theirs:
                yield from self._read_prompt(line, "item")
        else:
            yield self._build_context_note(line)

    def _release_held(self, line: CodexLine | None) -> Iterator[AgentEvent]:
        """Codex puts messages of its own in the user's name. Only those of the user are repeated by an event, in all
        versions that write such events; in others, it is seen by how a message begins."""
        held, self._held = self._held, None
        if held is None:
            return
        repeated = (
            line is not None
            and line.sort in PROMPT_REPEATS
            and _is_same_prompt(message_text(held.body), message_text(line.body))
        )
        if repeated or not (self._prompts_have_events or looks_injected(message_text(held.body))):
            yield from self._read_prompt(held, "item")
        else:
            yield self._build_context_note(held)

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
        deed = self._build_event(
            line, "prompt", summary=first_line(text) or "prompt", text=text, result=message_pictures(line.body)
        )
        self._prompt = Prompt(key=deed.key, text=text)
        yield replace(deed, prompt=None)

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

    def _read_call(
        self, line: CodexLine, tool: str, identifier: Any, arguments: Any, result: Any
    ) -> Iterator[AgentEvent]:
        if tool in ("web_search", "image_generation") and not isinstance(identifier, str):
            identifier = next((name for name, (one, _) in self._early.items() if one.tool == tool), None)
        identifier = identifier if isinstance(identifier, str) else ""
        if (before := self._calls.get(identifier)) is not None:
            # An id that comes again: what was begun under it will not be told of any more.
            self._waiting.remove(before)
            yield before.build_event()
        told = self._open_call(
            line, tool, identifier, arguments if isinstance(arguments, dict) else {"input": arguments}
        )
        if result is not NO_OUTPUT:
            told.output, told.ready = result, True
        if identifier in self._early:
            one, first = self._early.pop(identifier)
            told.accounts.append(one)
            told.places.append(first.place)

    def _open_call(self, line: CodexLine, tool: str, identifier: str, arguments: Mapping[str, Any]) -> PendingEvent:
        call = AgentCall(tool=tool, id=identifier or line.key, arguments=arguments)
        told = self._add_pending(self._build_event(line, "call", key=identifier, summary=tool, call=call), line)
        if identifier:
            self._calls[identifier] = told
        return told

    def _read_output(self, line: CodexLine) -> Iterator[AgentEvent]:
        identifier = line.body.get("call_id")
        told = self._calls.get(identifier) if isinstance(identifier, str) else None
        if told is None or told.output is not NO_OUTPUT:
            yield self._build_late_note(line, identifier)
            return
        told.output = line.body.get("output", line.body.get("tools"))
        told.ended = line.at
        told.ready = self._answered = True
        told.places.append(line.place)

    def _read_report(self, line: CodexLine) -> Iterator[AgentEvent]:
        one = read_report(line.sort.partition(".")[2], line.body)
        if one is None:
            yield self._build_unknown(line.place, line.sort, dict(line.outer), line.at, line.key)
        elif (told := self._calls.get(one.id)) is not None:
            told.accounts.append(one)
            told.places.append(line.place)
        elif one.id in self._keys:
            yield self._build_late_note(line, one.id)
        elif one.sort in _REPORTED_FIRST:
            self._early[one.id] = (one, line)
        else:
            self._open_reported_call(one, line)

    def _open_reported_call(self, one: CallReport, line: CodexLine) -> None:
        """A call that only an event tells of: a command of the user's own, or one inside a script."""
        told = self._open_call(line, one.tool, one.id, one.arguments or {})
        told.accounts.append(one)
        told.ready = True
        if one.source == "user_shell":
            told.base = replace(told.base, allowed=Permission(by="human_approved", reference="source=user_shell"))

    def _mark_approval_asked(self, line: CodexLine) -> None:
        told = self._calls.get(str(line.body.get("call_id")))
        if told is not None:
            told.asked = True
            told.places.append(line.place)

    def _build_late_note(self, line: CodexLine, identifier: Any) -> AgentEvent:
        """What is told of a call after its deed was given out, or of one that is not in the rollout."""
        known = isinstance(identifier, str) and identifier in self._keys
        summary = f"{line.sort.partition('.')[2]}, {'later' if known else 'of a call that is not in the rollout'}"
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
        deed = self._build_event(
            line,
            "session",
            key=self._thread,
            summary=f"Codex {self._session.get('version', '')} session".replace("  ", " "),
        )
        result = replace_heavy_fields(line.body) | ({"base_instructions": digest_reference(text)} if text else {})
        return replace(deed, text=text, result=result)

    def _read_note(self, line: CodexLine) -> Iterator[AgentEvent]:
        note = read_note(line)
        if line.sort in TURN_ENDS:
            yield from self._flush_unclaimed()
            self._forget_repeats()
        yield replace(
            self._build_event(line, "note", key=note.ends_turn, summary=note.summary, text=note.words, more=note.facts),
            result=replace_heavy_fields(line.body),
            status=note.status,
            title=note.title,
            duration_ms=note.took_ms,
            ends_session=line.sort == "event_msg.shutdown_complete",
        )

    def _build_trailing_note(self) -> AgentEvent:
        """Reasoning, or tokens, that nothing came of."""
        line = self._thoughts.lines[-1] if self._thoughts.lines else self._tokens_in
        deed = self._build_event(
            line, "note", key=f"{self._record_key(line)}:last", summary="without an action that came of it"
        )
        tokens, self._tokens = self._tokens, None
        return replace(self._thoughts.attach_to(deed), tokens=tokens)

    def _count_tokens(self, line: CodexLine) -> None:
        """Tokens go to the first thing that came of the answer of the API that they are of."""
        tokens = self._counted.count_new(line)
        if tokens is None:
            return
        first = next((told for told in self._waiting if told.tokens is None), None)
        if first is None:
            self._tokens, self._tokens_in = add_tokens(self._tokens, tokens), line
            return
        first.tokens = tokens
        first.places.append(line.place)
        if isinstance(answer := line.body.get("response_id"), str):
            first.base = replace(first.base, environment={**first.base.environment, "request_id": answer})

    # --- giving out

    def _add_pending(self, deed: AgentEvent, line: CodexLine) -> PendingEvent:
        told = PendingEvent(self._thoughts.attach_to(deed), line)
        told.tokens, self._tokens = self._tokens, None
        self._waiting.append(told)
        return told

    def _flush(self) -> list[AgentEvent]:
        """What is complete."""
        self._answered = False
        for told in self._waiting[:-WAITING_MAX]:
            told.ready = True
        done = [told for told in self._waiting if told.ready]
        self._waiting = [told for told in self._waiting if not told.ready]
        for told in done:
            if told.base.call is not None:
                self._calls.pop(told.base.call.id, None)
        return [told.build_event() for told in done]

    def _flush_unclaimed(self) -> list[AgentEvent]:
        """What an event told of calls that never came."""
        for one, line in self._early.values():
            self._open_reported_call(one, line)
        self._early.clear()
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

    def _build_unknown(self, place: str, sort: str, record: Any, at: str | None, key: str) -> AgentEvent:
        key = self._reserve_key(f"{self._prefix}{key}", place)
        return build_unknown_event(place, sort, replace_images(record), key=key, at=at)

    def _record_key(self, line: CodexLine) -> str:
        identifier = line.body.get("id")
        return f"{self._prefix}{identifier if isinstance(identifier, str) and identifier else line.key}"

    def _reserve_key(self, key: str, place: str) -> str:
        """Some providers give ids that come again."""
        while key in self._keys:
            key = f"{key}.{place}"
        self._keys.add(key)
        return key


def _is_same_prompt(one: str, other: str) -> bool:
    """What an item holds besides the text (a picture's name) the event leaves out."""
    return one in other or other in one


def _is_from_model(line: CodexLine) -> bool:
    """Whether the model said it."""
    if line.sort == "response_item.message":
        return line.body.get("role") == "assistant"
    return line.sort in CALL_READERS or line.sort in THOUGHT_KINDS or line.sort in ANSWER_REPEATS


def _fallback_content(raw: RawRecord) -> Any:
    """What is kept of a record that is none of Codex's: its value, or if it has none, its digest."""
    value = parse_json(raw)
    return {"sha256": raw.sha256, "size": raw.size} if value is UNREADABLE else value
