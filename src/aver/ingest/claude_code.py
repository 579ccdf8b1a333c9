"""Claude Code: what the records of its transcripts say.

Calls are told when their result has come, with what the model wrote and thought before them. What it says without
calling a tool is told once the message is over: its line says why it stopped, or another message, a prompt or a notice
follows. Records of subagents that stand among those of the session (`isSidechain`) have prompts and messages of their
own.

Keys: a call's is its id, of all else it is the record's `uuid`, numbered where a record gives more than one deed. Only
settings and titles have no id, and are told by their line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aver.ingest.claude_messages import Begun, Held, Lane, Origin, Spending
from aver.ingest.claude_places import TOOL, deletes_after, located, places
from aver.ingest.claude_results import AGENT_TOOLS, Outcome, outcome_of, subject_of
from aver.ingest.claude_settings import KNOWN, SKIPPED, Change, Settings, authority_of, decision_in
from aver.ingest.claude_values import Json, items, light, one_line, words
from aver.ingest.claude_words import Said, of_attachment, of_system, of_user
from aver.ingest.contract import Adapter, Raw, Source, line_key
from aver.ingest.deed import FROM_WORDS, Allowed, Call, Deed, Prompt, unknown
from aver.ingest.lines import LineReader
from aver.ingest.records import UNREADABLE, as_json, parsed
from aver.ingest.times import ms_between, utc

__all__ = ["ADAPTER"]

SKIPPED_NOTICES = ("turn_duration", "file_snapshot", "thinking_tokens")
"""Notices of the program (`system`) that say only what other records show."""

_ENVIRONMENT = (
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
_COMMON = {theirs for theirs, _ in _ENVIRONMENT} | {
    *("type", "timestamp", "sessionId", "isSidechain", "isMeta", "agentId", "slug", "sessionKind")
}
_GOES_ON = ("", "tool_use", "pause_turn")


class Transcript:
    """What has been read of one transcript."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._settings = Settings()
        self._lanes: dict[str, Lane] = {"": Lane()}
        self._agent_of: dict[str, str] = {}
        """Of records of subagents that do not say which: whose they are."""
        self._begun: dict[str, Begun] = {}
        self._asked: dict[str, list[str]] = {}
        """What subagents were launched for, and by which calls that have no result."""
        self._keys: dict[str, int] = {}
        """Under which something was told, and how often."""
        self._spending = Spending()
        self._newest = ""
        """The id of the conversation's last record."""

    def take(self, raw: Raw) -> Iterator[Deed]:
        record = parsed(raw)
        if not isinstance(record, dict):
            yield self._unknown(self._origin(self._lanes[""], {}, raw), "", _readable(raw, record))
            return
        sort = words(record.get("type"))
        lane = self._lane_of(record)
        self._newest = words(record.get("uuid")) or self._newest
        if sort in SKIPPED:
            return
        origin = self._origin(lane, record, raw)
        if sort == "assistant" and isinstance(record.get("message"), dict):
            yield from self._message(lane, origin, record, record["message"])
        elif sort == "user":
            yield from self._user(lane, origin, record)
        elif sort == "system":
            yield from self._notice(lane, origin, record)
        elif sort == "attachment" and isinstance(record.get("attachment"), dict):
            yield self._attachment(lane, origin, record["attachment"])
        elif sort in KNOWN:
            yield from self._setting(sort, origin, record)
        else:
            yield self._unknown(origin, sort or "without a type", record)

    def end(self) -> Iterator[Deed]:
        for lane in self._lanes.values():
            yield from self._over(lane)
        for begun in self._begun.values():
            if not begun.given_up:
                begun.given_up = True
                yield self._called(begun, begun.call, status="pending")

    # --- the model

    def _message(self, lane: Lane, origin: Origin, record: Json, message: Json) -> Iterator[Deed]:
        name = words(message.get("id")) or words(record.get("requestId")) or origin.key
        if lane.held is not None and lane.held.message != name:
            yield from self._over(lane)
        if isinstance(message.get("usage"), dict):
            self._spending.note(name, message["usage"])
        model, stopped = words(message.get("model")), words(message.get("stop_reason"))
        more = {"message_id": name} | ({"stop_reason": stopped} if stopped else {})
        # Where the program speaks in the model's place, it says so.
        known = None if model in ("", "<synthetic>") else model
        origin = origin._replace(model=known, environment={**origin.environment, **more})
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        for number, block in enumerate(blocks):
            yield from self._block(lane, name, origin.numbered(number), block)
        if lane.held is not None and record.get("isApiErrorMessage") is True:
            lane.held.failed = True
        if lane.held is not None and lane.held.texts and stopped not in _GOES_ON:
            # The last of its lines says why it stopped.
            lane.held.origin = lane.held.origin._replace(environment=origin.environment)
            yield from self._over(lane)

    def _block(self, lane: Lane, message: str, origin: Origin, block: Any) -> Iterator[Deed]:
        sort = words(block.get("type")) if isinstance(block, dict) else ""
        if sort in ("text", "thinking", "redacted_thinking"):
            if lane.held is None:
                lane.held = Held(message, origin)
            lane.held.add(block, origin.place)
        elif sort.endswith("tool_use") and words(block.get("id")):
            yield from self._begin(lane, message, origin, block)
        elif sort.endswith("tool_result") and words(block.get("tool_use_id")) in self._begun:
            yield from self._finish(lane, origin, block, {})
        else:
            yield self._unknown(origin, f"assistant {sort}", block)

    def _begin(self, lane: Lane, message: str, origin: Origin, block: Json) -> Iterator[Deed]:
        name, told = words(block.get("name")) or "unnamed", as_json(block.get("input"))
        call = Call(tool=name, id=block["id"], arguments=told if isinstance(told, dict) else {"input": told})
        if call.id in self._begun and self._begun[call.id].call == call:
            return  # The same, written twice.
        if call.id in self._keys:
            yield self._unknown(origin, "a second call with the id of another", block)
            return
        held, lane.held = lane.held, None
        self._begun[self._fresh(call.id)] = Begun(
            origin,
            call,
            message,
            summary=_titled(name, subject_of(name, call.arguments)),
            allowed=authority_of(self._settings.mode),
            said={} if held is None else held.said(),
            places=[origin.place] if held is None else [*held.places, origin.place],
        )
        if name in AGENT_TOOLS:
            self._asked.setdefault(words(call.arguments.get("prompt")), []).append(call.id)

    def _over(self, lane: Lane) -> Iterator[Deed]:
        """The message is over: what was said in it without calling a tool."""
        held, lane.held = lane.held, None
        if held is None:
            return
        said = held.said()
        yield held.origin.deed(
            "answer",
            self._fresh(held.origin.key),
            one_line(said["text"]) or ("reasoning, redacted" if held.redacted else "reasoning"),
            status="failure" if held.failed else None,
            tokens=self._spending.take(held.message),
            places=_once(held.places),
            **said,
        )

    # --- the user, and what stands under that name

    def _user(self, lane: Lane, origin: Origin, record: Json) -> Iterator[Deed]:
        if not lane.agent and (change := self._settings.mode_change(record.get("permissionMode"))):
            yield self._changed(origin._replace(key=f"{origin.key}:mode"), change)
            origin = origin._replace(environment={**origin.environment, "permission_mode": self._settings.mode})
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        results = [block for block in items(content) if isinstance(block, dict) and block.get("type") == "tool_result"]
        # Beside more than one result nobody could say whose they are.
        beside = record if len(results) == 1 else {}
        for number, block in enumerate(results):
            yield from self._finish(lane, origin.numbered(number), block, beside)
        said = of_user(record, content)
        if said is not None:
            yield from self._over(lane)
            yield self._said(lane, origin.numbered(len(results)), said)
        elif not results:
            yield self._unknown(origin, "user", record)

    def _finish(self, lane: Lane, origin: Origin, block: Json, beside: Json) -> Iterator[Deed]:
        begun = self._begun.pop(words(block.get("tool_use_id")), None)
        if begun is None:
            yield self._unknown(origin, "the result of no known call", light(block))
            return
        if lane.held is not None and lane.held.message != begun.message:
            yield from self._over(lane)
        call = begun.call
        self._forget_asking(call)
        data, decided = beside.get("toolUseResult"), decision_in(beside)
        outcome = outcome_of(call.tool, call.arguments, block, data, beside.get("toolDenialKind"))
        if begun.denied_by:
            decided = Allowed(by="policy", reference=f"hook={begun.denied_by}", denied=True)
        if decided is not None and decided.denied and not outcome.ok:
            outcome = replace(outcome, allowed=decided, note=" (denied)", side_effects=(), status=None)
        elif decided is not None and outcome.allowed is None and not decided.denied:
            outcome = replace(outcome, allowed=decided)
        if data is None and outcome.ok:
            begun.origin = begun.origin._replace(environment={**begun.origin.environment, **FROM_WORDS})
        begun.launched = outcome.launched or begun.launched
        launched = self._lanes.get(begun.launched)
        if launched is not None and launched.agent:
            yield from self._over(launched)  # It has reported, and says no more.
        yield self._finished(begun, outcome, origin)

    def _finished(self, begun: Begun, outcome: Outcome, origin: Origin) -> Deed:
        begun.summary += outcome.note
        begun.allowed = outcome.allowed or begun.allowed
        begun.places.append(origin.place)
        took = outcome.duration_ms if outcome.duration_ms is not None else ms_between(begun.origin.at, origin.at)
        call = Call(
            tool=begun.call.tool,
            id=begun.call.id,
            arguments=begun.call.arguments,
            result=outcome.result,
            ok=outcome.ok,
            error=outcome.error,
            diff=outcome.diff,
        )
        status = "blocked" if begun.allowed.denied else outcome.status
        return self._called(begun, call, status=status, duration_ms=took, side_effects=outcome.side_effects)

    def _called(self, begun: Begun, call: Call, **more: Any) -> Deed:
        return begun.origin.deed(
            "call",
            call.id,
            begun.summary,
            call=call,
            allowed=begun.allowed,
            launched=begun.launched,
            tokens=self._spending.take(begun.message),
            places=_once(begun.places),
            **begun.said,
            **more,
        )

    def _said(self, lane: Lane, origin: Origin, said: Said) -> Deed:
        key = self._fresh(origin.key)
        if said.resets:
            lane.prompt = None
        if said.what == "prompt":
            lane.prompt = Prompt(key=key, text=said.text)
            self._launch(lane, said.text)
        return origin.deed(
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

    def _launch(self, lane: Lane, text: str) -> None:
        """The first prompt of a subagent among our records is what the call that launched it asked for."""
        if lane.agent and not lane.cause and text in self._asked:
            lane.cause = self._asked[text][0]
            self._begun[lane.cause].launched = lane.agent
            self._forget_asking(self._begun[lane.cause].call)

    def _forget_asking(self, call: Call) -> None:
        text = words(call.arguments.get("prompt"))
        waiting = self._asked.get(text, [])
        if call.id in waiting:
            waiting.remove(call.id)
        if not waiting:
            self._asked.pop(text, None)

    # --- the program

    def _notice(self, lane: Lane, origin: Origin, record: Json) -> Iterator[Deed]:
        yield from self._over(lane)
        if words(record.get("subtype")) not in SKIPPED_NOTICES:
            rest = {name: value for name, value in record.items() if name not in _COMMON}
            yield self._said(lane, origin, of_system(record, rest))

    def _attachment(self, lane: Lane, origin: Origin, attachment: Json) -> Deed:
        begun = self._begun.get(words(attachment.get("toolUseID")))
        if begun is not None and _refuses(attachment):
            begun.denied_by = words(attachment.get("hookName")) or words(attachment.get("hookEvent"))
        return self._said(lane, origin, of_attachment(attachment))

    def _setting(self, sort: str, origin: Origin, record: Json) -> Iterator[Deed]:
        if change := self._settings.change(sort, record, self._newest):
            if change.ends_session:
                yield from self._over(self._lanes[""])
            yield self._changed(origin, change)

    def _changed(self, origin: Origin, change: Change) -> Deed:
        origin = origin._replace(environment={**origin.environment, **change.environment})
        return origin.deed(
            change.what,
            self._fresh(origin.key),
            change.summary,
            text=change.text,
            result=change.result,
            title=change.title,
            ends_session=change.ends_session and not self._source.agent,
        )

    # --- all of them

    def _lane_of(self, record: Json) -> Lane:
        if record.get("isSidechain") is not True or self._source.agent:
            return self._lanes[""]
        uuid, parent = words(record.get("uuid")), words(record.get("parentUuid"))
        agent = words(record.get("agentId")) or self._agent_of.get(parent) or uuid or "sidechain"
        if uuid and not record.get("agentId"):
            self._agent_of[uuid] = agent
        return self._lanes.setdefault(agent, Lane(agent=agent))

    def _origin(self, lane: Lane, record: Json, raw: Raw) -> Origin:
        told = ((ours, record.get(theirs)) for theirs, ours in _ENVIRONMENT)
        environment = {name: value for name, value in told if value and isinstance(value, str)}
        if self._settings.mode:
            environment["permission_mode"] = self._settings.mode
        # Subagents share the keys of their session, and have lines of their own.
        line = f"{self._source.agent}:{line_key(raw)}" if self._source.agent else line_key(raw)
        key, at = environment.get("uuid") or line, utc(record.get("timestamp"))
        return Origin(raw.place, key, at, environment, lane.prompt, lane.agent, lane.cause)

    def _unknown(self, origin: Origin, sort: str, record: Any) -> Deed:
        kept = unknown(origin.place, sort, record, key=self._fresh(origin.key), at=origin.at)
        return replace(kept, prompt=origin.prompt, agent=origin.agent, cause=origin.cause)

    def _fresh(self, key: str) -> str:
        """The key, if nothing was told under it yet; otherwise with a number."""
        fresh = key
        while fresh in self._keys:
            self._keys[key] += 1
            fresh = f"{key}~{self._keys[key]}"
        self._keys[fresh] = 1
        return fresh


def _refuses(attachment: Json) -> bool:
    """Whether a hook says here that a call must not be made."""
    if attachment.get("type") == "hook_permission_decision":
        return attachment.get("decision") == "deny"
    return attachment.get("type") == "hook_blocking_error" and attachment.get("hookEvent") == "PreToolUse"


def _titled(name: str, subject: str) -> str:
    return f"{one_line(name)}: {subject}" if subject else one_line(name)


def _once(places: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(places))


def _readable(raw: Raw, record: Any) -> Any:
    """What is kept of a line that is no object: its value, its text, or, where it is too large, its digest."""
    if record is not UNREADABLE:
        return record
    if not raw.data:
        return {"sha256": raw.sha256, "size": raw.size}
    return raw.data.decode("utf-8", "replace")


ADAPTER = Adapter(
    tool=TOOL,
    title="Claude Code",
    locate=located,
    read=lambda source: LineReader(source.path),
    turn=Transcript,
    places=places,
    deletes_after=deletes_after,
)
