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

from aver.ingest.claude_messages import Begun, Held, Lane, Spending
from aver.ingest.claude_places import TOOL, located, places
from aver.ingest.claude_results import AGENT_TOOLS, Outcome, outcome_of, subject_of
from aver.ingest.claude_settings import KNOWN, SKIPPED, Change, Settings, authority_of
from aver.ingest.claude_values import Json, items, light, one_line, words
from aver.ingest.claude_words import Said, of_attachment, of_system, of_user
from aver.ingest.contract import Adapter, Raw, Source
from aver.ingest.deed import Allowed, Call, Deed, Prompt, What, unknown
from aver.ingest.lines import LineReader
from aver.ingest.records import UNREADABLE, as_json, parsed
from aver.ingest.times import ms_between, utc

__all__ = ["ADAPTER"]

SKIPPED_NOTICES = ("turn_duration", "file_snapshot", "thinking_tokens")
"""Notices of the program (`system`) that say only what other records show."""

_ENVIRONMENT = {
    "cwd": "cwd",
    "gitBranch": "git_branch",
    "version": "version",
    "uuid": "uuid",
    "parentUuid": "parent_uuid",
    "requestId": "request_id",
    "promptId": "prompt_id",
    "entrypoint": "entrypoint",
    "userType": "user_type",
    "attributionSkill": "attribution_skill",
}
_COMMON = (*_ENVIRONMENT, "type", "timestamp", "sessionId", "isSidechain", "isMeta", "agentId", "slug", "sessionKind")
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
        self._keys: set[str] = set()
        self._spending = Spending()

    def take(self, raw: Raw) -> Iterator[Deed]:
        record = parsed(raw)
        if not isinstance(record, dict):
            yield self._unknown(self._deed("unknown", self._lanes[""], {}, raw), "", _readable(raw, record))
            return
        sort = words(record.get("type"))
        lane = self._lane_of(record)
        if sort in SKIPPED:
            return
        if sort == "assistant":
            yield from self._assistant(lane, record, raw)
        elif sort == "user":
            yield from self._user(lane, record, raw)
        elif sort == "system":
            yield from self._system(lane, record, raw)
        elif sort == "attachment" and isinstance(record.get("attachment"), dict):
            yield self._attachment(lane, record, record["attachment"], raw)
        else:
            yield from self._session(sort, record, raw)

    def end(self) -> Iterator[Deed]:
        for lane in self._lanes.values():
            yield from self._over(lane)
        for begun in self._begun.values():
            if not begun.given_up:
                begun.given_up = True
                tokens = self._spending.take(begun.message)
                yield replace(begun.deed, call=begun.call, status="pending", launched=begun.launched, tokens=tokens)

    # --- the model

    def _assistant(self, lane: Lane, record: Json, raw: Raw) -> Iterator[Deed]:
        message = record.get("message")
        if not isinstance(message, dict):
            yield self._unknown(self._deed("unknown", lane, record, raw), "assistant", record)
            return
        name = words(message.get("id")) or words(record.get("requestId")) or f"at-{raw.place}"
        if lane.held is not None and lane.held.message != name:
            yield from self._over(lane)
        if isinstance(message.get("usage"), dict):
            self._spending.note(name, message["usage"])
        deed = self._of_message(lane, record, message, raw)
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        for number, block in enumerate(blocks):
            yield from self._block(lane, name, replace(deed, key=_numbered(deed.key, number)), block, raw)
        if words(message.get("stop_reason")) not in _GOES_ON and lane.held is not None and lane.held.texts:
            lane.held.deed = replace(lane.held.deed, environment=deed.environment)  # It says why the model stopped.
            yield from self._over(lane)

    def _block(self, lane: Lane, message: str, deed: Deed, block: Any, raw: Raw) -> Iterator[Deed]:
        sort = words(block.get("type")) if isinstance(block, dict) else ""
        if sort in ("text", "thinking", "redacted_thinking"):
            if lane.held is None:
                lane.held = Held(message, deed)
            lane.held.add(block, raw.place)
        elif sort.endswith("tool_use") and words(block.get("id")):
            yield from self._begin(lane, message, deed, block)
        elif sort.endswith("tool_result") and words(block.get("tool_use_id")) in self._begun:
            yield from self._finish(lane, deed, block, None, None)
        else:
            yield self._unknown(deed, f"assistant {sort}", block)

    def _begin(self, lane: Lane, message: str, deed: Deed, block: Json) -> Iterator[Deed]:
        name, told = words(block.get("name")) or "unnamed", as_json(block.get("input"))
        call = Call(tool=name, id=block["id"], arguments=told if isinstance(told, dict) else {"input": told})
        if call.id in self._begun and self._begun[call.id].call == call:
            return  # The same, written twice.
        if call.id in self._keys:
            yield self._unknown(deed, "a second call with the id of another", block)
            return
        summary = _titled(name, subject_of(name, call.arguments))
        allowed = authority_of(self._settings.mode)
        deed = replace(deed, what="call", key=self._fresh(call.id), summary=summary, allowed=allowed)
        if lane.held is not None:
            deed, lane.held = lane.held.before(deed), None
        self._begun[call.id] = Begun(deed, call, message)

    def _over(self, lane: Lane) -> Iterator[Deed]:
        """The message is over: what was said in it without calling a tool."""
        held, lane.held = lane.held, None
        if held is None:
            return
        said = "\n".join(held.texts)
        summary = one_line(said) or ("reasoning, redacted" if held.redacted else "reasoning")
        tokens = self._spending.take(held.message)
        yield held.before(replace(held.deed, key=self._fresh(held.deed.key), summary=summary, tokens=tokens))

    def _of_message(self, lane: Lane, record: Json, message: Json, raw: Raw) -> Deed:
        deed = self._deed("answer", lane, record, raw)
        model = words(message.get("model"))
        more = {"message_id": message.get("id"), "stop_reason": message.get("stop_reason")}
        environment = {**deed.environment, **{name: value for name, value in more.items() if words(value)}}
        return replace(
            deed,
            model=None if model in ("", "<synthetic>") else model,  # The program speaks in the model's place.
            environment=environment,
            status="failure" if record.get("isApiErrorMessage") is True else None,
        )

    # --- the user, and what stands under that name

    def _user(self, lane: Lane, record: Json, raw: Raw) -> Iterator[Deed]:
        deed = self._deed("note", lane, record, raw)
        if not lane.agent and (change := self._settings.mode_change(record.get("permissionMode"))):
            yield self._changed(replace(deed, key=f"{deed.key}:mode"), change)
            deed = self._deed("note", lane, record, raw)  # It says under which mode it was asked.
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        results = [block for block in items(content) if isinstance(block, dict) and block.get("type") == "tool_result"]
        # Beside more than one result nobody could say whose the object is.
        data = record.get("toolUseResult") if len(results) == 1 else None
        for number, block in enumerate(results):
            at = replace(deed, key=_numbered(deed.key, number))
            yield from self._finish(lane, at, block, data, record.get("toolDenialKind"))
        said = of_user(record, content)
        if said is not None:
            yield from self._over(lane)
            yield self._said(lane, replace(deed, key=_numbered(deed.key, len(results))), said)
        elif not results:
            yield self._unknown(deed, "user", record)

    def _finish(self, lane: Lane, deed: Deed, block: Json, data: Any, denial_kind: Any) -> Iterator[Deed]:
        begun = self._begun.pop(words(block.get("tool_use_id")), None)
        if begun is None:
            yield self._unknown(deed, "the result of no known call", light(block))
            return
        if lane.held is not None and lane.held.message != begun.message:
            yield from self._over(lane)
        call = begun.call
        outcome = outcome_of(call.tool, call.arguments, block, data, denial_kind)
        if begun.denied_by and not outcome.ok:
            denied = Allowed(by="policy", reference=f"hook={begun.denied_by}", denied=True)
            outcome = replace(outcome, allowed=denied, note=" (denied)", side_effects=(), status=None)
        yield self._finished(begun, outcome, deed)

    def _finished(self, begun: Begun, outcome: Outcome, deed: Deed) -> Deed:
        call = replace(begun.call, result=outcome.result, ok=outcome.ok, error=outcome.error, diff=outcome.diff)
        took = outcome.duration_ms if outcome.duration_ms is not None else ms_between(begun.deed.at, deed.at)
        allowed = outcome.allowed or begun.deed.allowed
        return replace(
            begun.deed,
            summary=begun.deed.summary + outcome.note,
            call=call,
            duration_ms=took,
            tokens=self._spending.take(begun.message),
            allowed=allowed,
            status="blocked" if allowed.denied else outcome.status,
            side_effects=outcome.side_effects,
            launched=outcome.launched or begun.launched,
            places=tuple(dict.fromkeys((*begun.deed.places, *deed.places))),
        )

    def _said(self, lane: Lane, deed: Deed, said: Said) -> Deed:
        key = self._fresh(deed.key)
        if said.resets:
            lane.prompt = None
        if said.what == "prompt":
            lane.prompt = Prompt(key=key, text=said.text)
            self._launch(lane, said.text)
        return replace(
            deed,
            what=said.what,
            key=key,
            summary=said.summary,
            text=said.text,
            result=said.result,
            status=said.status,
            prompt=None if said.what == "prompt" else lane.prompt,
            cause=lane.cause,
            ends_session=said.ends_session and not self._source.agent,
        )

    def _launch(self, lane: Lane, text: str) -> None:
        """The first prompt of a subagent among our records is what the call that launched it asked for."""
        if not lane.agent or lane.cause:
            return
        for key, begun in self._begun.items():
            if begun.call.tool in AGENT_TOOLS and not begun.launched and begun.call.arguments.get("prompt") == text:
                lane.cause, begun.launched = key, lane.agent
                return

    # --- the program

    def _system(self, lane: Lane, record: Json, raw: Raw) -> Iterator[Deed]:
        yield from self._over(lane)
        if words(record.get("subtype")) not in SKIPPED_NOTICES:
            rest = {name: value for name, value in record.items() if name not in _COMMON}
            yield self._said(lane, self._deed("note", lane, record, raw), of_system(record, rest))

    def _attachment(self, lane: Lane, record: Json, attachment: Json, raw: Raw) -> Deed:
        begun = self._begun.get(words(attachment.get("toolUseID")))
        if begun is not None and _refuses(attachment):
            begun.denied_by = words(attachment.get("hookName")) or words(attachment.get("hookEvent"))
        return self._said(lane, self._deed("note", lane, record, raw), of_attachment(attachment))

    def _session(self, sort: str, record: Json, raw: Raw) -> Iterator[Deed]:
        lane = self._lanes[""]
        deed = self._deed("session", lane, record, raw)
        if sort not in KNOWN:
            yield self._unknown(deed, sort or "without a type", record)
        elif change := self._settings.change(sort, record):
            if change.ends_session:
                yield from self._over(lane)
            yield self._changed(deed, change)

    def _changed(self, deed: Deed, change: Change) -> Deed:
        return replace(
            deed,
            what=change.what,
            key=self._fresh(deed.key),
            summary=change.summary,
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

    def _deed(self, what: What, lane: Lane, record: Json, raw: Raw) -> Deed:
        environment = {ours: record[theirs] for theirs, ours in _ENVIRONMENT.items() if words(record.get(theirs))}
        if self._settings.mode:
            environment["permission_mode"] = self._settings.mode
        return Deed(
            what=what,
            key=words(record.get("uuid")) or self._at(raw),
            summary="",
            at=utc(record.get("timestamp")),
            prompt=lane.prompt,
            environment=environment,
            agent=lane.agent,
            cause=lane.cause,
            places=(raw.place,),
        )

    def _unknown(self, deed: Deed, sort: str, record: Any) -> Deed:
        kept = unknown(deed.places[0], sort, record, key=self._fresh(deed.key), at=deed.at)
        return replace(kept, prompt=deed.prompt, agent=deed.agent, cause=deed.cause)

    def _at(self, raw: Raw) -> str:
        """The key of a record without an id. Subagents share their session's keys, and have lines of their own."""
        return f"at-{self._source.agent}-{raw.place}" if self._source.agent else f"at-{raw.place}"

    def _fresh(self, key: str) -> str:
        """The key, if nothing was told under it yet."""
        number, fresh = 1, key
        while fresh in self._keys:
            number += 1
            fresh = f"{key}~{number}"
        self._keys.add(fresh)
        return fresh


def _refuses(attachment: Json) -> bool:
    """Whether a hook says here that a call must not be made."""
    if attachment.get("type") == "hook_permission_decision":
        return attachment.get("decision") == "deny"
    return attachment.get("type") == "hook_blocking_error" and attachment.get("hookEvent") == "PreToolUse"


def _titled(name: str, subject: str) -> str:
    return f"{one_line(name)}: {subject}" if subject else one_line(name)


def _numbered(key: str, number: int) -> str:
    return f"{key}:{number}" if number else key


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
)
