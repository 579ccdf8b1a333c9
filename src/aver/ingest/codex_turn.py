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

from aver.ingest.codex_calls import NOTHING, Account, account
from aver.ingest.codex_records import (
    ACCOUNTS,
    ANSWERS_AGAIN,
    NOTES,
    PROMPTS_AGAIN,
    SKIPPED,
    THOUGHTS,
    TURN_ENDS,
    Line,
    base_instructions,
    first_line,
    is_older,
    is_users,
    light,
    line_of,
    looks_injected,
    names_thread,
    note_of,
    session_facts,
    settings_of,
    under_policy,
)
from aver.ingest.codex_told import CALLS, OUTPUTS, Counted, Repeats, Side, Thoughts, Told, added, pictures, said
from aver.ingest.contract import Raw, Source, line_key
from aver.ingest.deed import Allowed, Call, Deed, Prompt, Tokens, unknown
from aver.ingest.heavy import reference, without_pictures
from aver.ingest.records import UNREADABLE, parsed

__all__ = ["CodexTurn"]

_ASKS = ("event_msg.exec_approval_request", "event_msg.apply_patch_approval_request")
_COMES_FIRST = ("web_search_end", "WebSearch", "image_generation_end", "ImageGeneration")
"""Accounts that are written before the call that they are of."""


WAITING_MAX = 256
"""Calls that may be open at once. Codex makes a few; the first of more are told as they are, so that no rollout takes
for ever."""


class CodexTurn:
    """What was read of a rollout so far."""

    def __init__(self, source: Source) -> None:
        self._thread = source.agent or source.session
        self._prefix = f"{source.agent}:" if source.agent else ""
        """Keys are unique in a session, and a subagent's records have numbers and ids of their own."""
        self._session: dict[str, Any] = {}
        self._settings: dict[str, Any] = {}
        self._prompt: Prompt | None = None
        self._waiting: list[Told] = []
        self._calls: dict[str, Told] = {}
        self._early: dict[str, tuple[Account, Line]] = {}
        self._keys: set[str] = set()
        self._prompts, self._answers = Repeats(), Repeats()
        self._held: Line | None = None
        """A message in the user's name, of which the next record tells whether it is the user's."""
        self._prompts_have_events = False
        self._thoughts = Thoughts()
        self._tokens: Tokens | None = None
        """What an answer of the API cost that nothing was told of yet."""
        self._tokens_in = Line("", {}, None, "", {})
        self._counted = Counted()
        self._answered = False
        """Whether an output was told since anything was given out."""
        self._may_copy = self._after_other = self._copying = False

    def take(self, raw: Raw) -> Iterable[Deed]:
        line = line_of(raw)
        if line is None:
            return [
                *self._held_back(None),
                *self._flush(),
                self._unknown(raw.place, "", _kept(raw), None, line_key(raw)),
            ]
        if self._is_copy(line):
            return []
        return [*self._held_back(line), *self._told(line)]

    def end(self) -> Iterable[Deed]:
        deeds = [*self._held_back(None), *self._unclaimed(), *self._flush()]
        deeds += [told.deed() for told in self._waiting]
        self._waiting.clear()
        self._calls.clear()
        if self._thoughts.lines or self._tokens is not None:
            deeds.append(self._trailing())
        return deeds

    # --- one record

    def _told(self, line: Line) -> Iterator[Deed]:
        sort = line.sort
        if sort in SKIPPED:
            return
        if sort in ACCOUNTS:
            yield from self._account(line)
        elif sort in _ASKS:
            self._asked(line)
        elif sort == "token_usage_record":
            self._count(line)
        elif sort == "event_msg.token_count":
            self._settings |= settings_of(line)
            self._count(line)
            yield from self._flush()
        else:
            # What the model says in a row is one answer of the API, whose tokens are told after it.
            if self._answered or not _is_models(line):
                yield from self._flush()
            yield from self._other(line)

    def _other(self, line: Line) -> Iterator[Deed]:
        sort, body = line.sort, line.body
        if sort in ("turn_context", "event_msg.thread_settings_applied", "event_msg.session_configured"):
            self._settings |= settings_of(line)
        elif sort in ("event_msg.task_started", "event_msg.turn_started"):
            self._turn_over()
            self._settings |= settings_of(line)
        elif sort == "session_meta":
            yield self._session_deed(line)
        elif sort in THOUGHTS:
            self._thoughts.take(line)
        elif sort in ANSWERS_AGAIN:
            self._answer(line, "event")
        elif sort == "response_item.message":
            yield from self._message(line)
        elif sort in PROMPTS_AGAIN:
            yield from self._asked_for(line, "event")
        elif sort in CALLS:
            yield from self._call(line, *CALLS[sort](body))
        elif sort in OUTPUTS:
            yield from self._output(line)
        elif sort in NOTES:
            yield from self._note(line)
        else:
            yield self._unknown(line.place, sort, dict(line.outer), line.at, line.key)

    def _is_copy(self, line: Line) -> bool:
        """Whether a record is another thread's, copied when this one was forked from it. Only what is certain counts,
        as nobody may hide records by this: this thread says that it is a fork, nothing of its own was told before, and
        the record stands after the other thread's first one, in a turn that is older than this thread."""
        if line.sort == "session_meta":
            return False
        of_turn = line.sort in ("turn_context", "event_msg.task_started", "event_msg.turn_started")
        older = of_turn and self._after_other and is_older(line.body.get("turn_id"), self._thread)
        if names_thread(line, self._thread) or (of_turn and not older):
            self._may_copy = self._copying = False
        elif older and self._may_copy:
            self._copying = True
        return self._copying

    # --- what was asked and said

    def _message(self, line: Line) -> Iterator[Deed]:
        role, text = line.body.get("role"), said(line.body)
        if role == "assistant":
            self._answer(line, "item")
        elif role == "user" and (theirs := is_users(line.body)) is not False:
            if theirs is None and not self._prompts.told("item", text, _same_prompt):
                self._held = line
            elif theirs:
                yield from self._asked_for(line, "item")
        else:
            yield self._told_to_model(line)

    def _held_back(self, line: Line | None) -> Iterator[Deed]:
        """Codex puts messages of its own in the user's name. Only those of the user are repeated by an event, in all
        versions that write such events; in others, it is seen by how a message begins."""
        held, self._held = self._held, None
        if held is None:
            return
        repeated = line is not None and line.sort in PROMPTS_AGAIN and _same_prompt(said(held.body), said(line.body))
        if repeated or not (self._prompts_have_events or looks_injected(said(held.body))):
            yield from self._asked_for(held, "item")
        else:
            yield self._told_to_model(held)

    def _told_to_model(self, line: Line) -> Deed:
        summary = f"told to the model ({line.body.get('role')})"
        return self._made(line, "note", summary=summary, text=said(line.body), result=pictures(line.body))

    def _asked_for(self, line: Line, side: Side) -> Iterator[Deed]:
        text = said(line.body)
        self._prompts_have_events = self._prompts_have_events or side == "event"
        if self._prompts.told(side, text, _same_prompt):
            return
        self._prompts.expect(side, text)
        deed = self._made(line, "prompt", summary=first_line(text) or "prompt", text=text, result=pictures(line.body))
        self._prompt = Prompt(key=deed.key, text=text)
        yield replace(deed, prompt=None)

    def _answer(self, line: Line, side: Side) -> None:
        text = said(line.body)
        if self._answers.told(side, text, str.__eq__):
            return
        self._answers.expect(side, text)
        phase = line.body.get("phase")
        more = {"phase": phase} if isinstance(phase, str) else {}
        self._wait(self._made(line, "answer", summary=first_line(text) or "answer", text=text, more=more), line)

    # --- calls

    def _call(self, line: Line, tool: str, identifier: Any, arguments: Any, result: Any) -> Iterator[Deed]:
        if tool in ("web_search", "image_generation") and not isinstance(identifier, str):
            identifier = next((name for name, (one, _) in self._early.items() if one.tool == tool), None)
        identifier = identifier if isinstance(identifier, str) else ""
        if (before := self._calls.get(identifier)) is not None:
            # An id that comes again: what was begun under it will not be told of any more.
            self._waiting.remove(before)
            yield before.deed()
        told = self._open(line, tool, identifier, arguments if isinstance(arguments, dict) else {"input": arguments})
        if result is not NOTHING:
            told.output, told.ready = result, True
        if identifier in self._early:
            one, first = self._early.pop(identifier)
            told.accounts.append(one)
            told.places.append(first.place)

    def _open(self, line: Line, tool: str, identifier: str, arguments: Mapping[str, Any]) -> Told:
        call = Call(tool=tool, id=identifier or line.key, arguments=arguments)
        told = self._wait(self._made(line, "call", key=identifier, summary=tool, call=call), line)
        if identifier:
            self._calls[identifier] = told
        return told

    def _output(self, line: Line) -> Iterator[Deed]:
        identifier = line.body.get("call_id")
        told = self._calls.get(identifier) if isinstance(identifier, str) else None
        if told is None or told.output is not NOTHING:
            yield self._afterwards(line, identifier)
            return
        told.output = line.body.get("output", line.body.get("tools"))
        told.ended = line.at
        told.ready = self._answered = True
        told.places.append(line.place)

    def _account(self, line: Line) -> Iterator[Deed]:
        one = account(line.sort.partition(".")[2], line.body)
        if one is None:
            yield self._unknown(line.place, line.sort, dict(line.outer), line.at, line.key)
        elif (told := self._calls.get(one.id)) is not None:
            told.accounts.append(one)
            told.places.append(line.place)
        elif one.id in self._keys:
            yield self._afterwards(line, one.id)
        elif one.sort in _COMES_FIRST:
            self._early[one.id] = (one, line)
        else:
            self._by_account(one, line)

    def _by_account(self, one: Account, line: Line) -> None:
        """A call that only an event tells of: a command of the user's own, or one inside a script."""
        told = self._open(line, one.tool, one.id, one.arguments or {})
        told.accounts.append(one)
        told.ready = True
        if one.source == "user_shell":
            told.base = replace(told.base, allowed=Allowed(by="human_approved", reference="source=user_shell"))

    def _asked(self, line: Line) -> None:
        told = self._calls.get(str(line.body.get("call_id")))
        if told is not None:
            told.asked = True
            told.places.append(line.place)

    def _afterwards(self, line: Line, identifier: Any) -> Deed:
        """What is told of a call after its deed was given out, or of one that is not in the rollout."""
        known = isinstance(identifier, str) and identifier in self._keys
        summary = f"{line.sort.partition('.')[2]}, {'later' if known else 'of a call that is not in the rollout'}"
        key = f"{identifier}:later" if known else ""
        more = {"call_id": identifier} if known else {}
        return self._made(line, "note", key=key, summary=summary, result=light(line.body), more=more)

    # --- notes

    def _session_deed(self, line: Line) -> Deed:
        thread = line.body.get("id")
        if thread != self._thread:
            self._after_other = self._may_copy
            summary = f"{'forked from' if self._may_copy else 'first record of another session:'} {thread}"
            return self._made(line, "note", summary=summary, result=light(line.body))
        self._may_copy = self._thread not in self._keys and bool(line.body.get("forked_from_id"))
        self._session = session_facts(line.body)
        text = base_instructions(line.body)
        deed = self._made(
            line,
            "session",
            key=self._thread,
            summary=f"Codex {self._session.get('version', '')} session".replace("  ", " "),
        )
        result = light(line.body) | ({"base_instructions": reference(text)} if text else {})
        return replace(deed, text=text, result=result)

    def _note(self, line: Line) -> Iterator[Deed]:
        note = note_of(line)
        if line.sort in TURN_ENDS:
            yield from self._unclaimed()
            self._turn_over()
        yield replace(
            self._made(line, "note", key=note.ends_turn, summary=note.summary, text=note.words, more=note.facts),
            result=light(line.body),
            status=note.status,
            title=note.title,
            duration_ms=note.took_ms,
            ends_session=line.sort == "event_msg.shutdown_complete",
        )

    def _trailing(self) -> Deed:
        """Reasoning, or tokens, that nothing came of."""
        line = self._thoughts.lines[-1] if self._thoughts.lines else self._tokens_in
        deed = self._made(line, "note", key=f"{self._key(line)}:last", summary="without an action that came of it")
        tokens, self._tokens = self._tokens, None
        return replace(self._thoughts.given_to(deed), tokens=tokens)

    def _count(self, line: Line) -> None:
        """Tokens go to the first thing that came of the answer of the API that they are of."""
        tokens = self._counted.new_in(line)
        if tokens is None:
            return
        first = next((told for told in self._waiting if told.tokens is None), None)
        if first is None:
            self._tokens, self._tokens_in = added(self._tokens, tokens), line
            return
        first.tokens = tokens
        first.places.append(line.place)
        if isinstance(answer := line.body.get("response_id"), str):
            first.base = replace(first.base, environment={**first.base.environment, "request_id": answer})

    # --- giving out

    def _wait(self, deed: Deed, line: Line) -> Told:
        told = Told(self._thoughts.given_to(deed), line)
        told.tokens, self._tokens = self._tokens, None
        self._waiting.append(told)
        return told

    def _flush(self) -> list[Deed]:
        """What is complete."""
        self._answered = False
        for told in self._waiting[:-WAITING_MAX]:
            told.ready = True
        done = [told for told in self._waiting if told.ready]
        self._waiting = [told for told in self._waiting if not told.ready]
        for told in done:
            if told.base.call is not None:
                self._calls.pop(told.base.call.id, None)
        return [told.deed() for told in done]

    def _unclaimed(self) -> list[Deed]:
        """What an event told of calls that never came."""
        for one, line in self._early.values():
            self._by_account(one, line)
        self._early.clear()
        return self._flush()

    def _turn_over(self) -> None:
        self._prompts.forget()
        self._answers.forget()

    def _made(
        self,
        line: Line,
        what: Literal["prompt", "call", "answer", "session", "note"],
        *,
        summary: str,
        key: str = "",
        text: str = "",
        result: Any = None,
        call: Call | None = None,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> Deed:
        model = self._settings.get("model")
        known = {name: value for name, value in self._settings.items() if name != "model"}
        return Deed(
            what=what,
            key=self._unique(key or self._key(line), line.place),
            summary=summary,
            at=line.at,
            prompt=self._prompt,
            text=text,
            result=result,
            model=model if isinstance(model, str) else None,
            allowed=Allowed() if call is None else under_policy(self._settings),
            call=call,
            environment={**self._session, **known, **more},
            places=(line.place,),
        )

    def _unknown(self, place: str, sort: str, record: Any, at: str | None, key: str) -> Deed:
        key = self._unique(f"{self._prefix}{key}", place)
        return unknown(place, sort, without_pictures(record), key=key, at=at)

    def _key(self, line: Line) -> str:
        identifier = line.body.get("id")
        return f"{self._prefix}{identifier if isinstance(identifier, str) and identifier else line.key}"

    def _unique(self, key: str, place: str) -> str:
        """Some providers give ids that come again."""
        while key in self._keys:
            key = f"{key}.{place}"
        self._keys.add(key)
        return key


def _same_prompt(one: str, other: str) -> bool:
    """What an item holds besides the text (a picture's name) the event leaves out."""
    return one in other or other in one


def _is_models(line: Line) -> bool:
    """Whether the model said it."""
    if line.sort == "response_item.message":
        return line.body.get("role") == "assistant"
    return line.sort in CALLS or line.sort in THOUGHTS or line.sort in ANSWERS_AGAIN


def _kept(raw: Raw) -> Any:
    """What is kept of a record that is none of Codex's: its value, or if it has none, its digest."""
    value = parsed(raw)
    return {"sha256": raw.sha256, "size": raw.size} if value is UNREADABLE else value
