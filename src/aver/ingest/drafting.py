"""A deed becomes the draft of a capsule: one mapping for all tools.

    prompt          chat       what was asked is `trigger.request`
    call            tool       arguments and result in `execution.tool_calls[0]`; of an edit, `outcome.result.diff`
    answer          chat       what was said is `outcome.result`
    session         workflow
    note, unknown   system

Everything that follows from a prompt names it: its key is `trigger.correlation_id`, its SHA3-256
`reasoning.prompt_hash`, and its first line stands in `trigger.request`; in full it is sealed once, in its own capsule.
Where the transcript says neither a time nor a duration, `environment.time_known` and `duration_known` are false.

Secrets are masked, in what is asked and answered and in every argument and result, before anything is hashed. The one
who sits at the machine is not named: entries of `environment` that hold an e-mail address lose it. What a file or a
command's output says stays what it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from aver.capsule.blobs import Blob
from aver.capsule.block import BLOCK, chain_name
from aver.capsule.mask import mask, mask_draft
from aver.capsule.model import Authority, Capsule, Context, Execution, Outcome, Reasoning, ToolCall, Trigger
from aver.clock import now
from aver.ingest.deed import Allowed, Call, Deed, Tokens
from aver.ingest.diffs import counted
from aver.ingest.times import utc

__all__ = ["TRANSCRIPT", "Draft", "chain_of", "drafted", "key_of", "own_key"]

HEAVY = 32 * 1024
"""Bytes of an object, written as JSON, that stay in a capsule; a larger one is kept beside it. A capsule holds four."""

REQUEST_EXCERPT = 200
"""Characters of a prompt that stand in what follows from it."""

SUMMARY_MAX = 240
"""Characters of the line by which a capsule is listed."""

KEY_ID_MAX = 200
"""Characters of an id that become part of a key as they are."""

SIGNATURES = "thinking_signatures"
"""Where in `context.environment` the signatures of the model's reasoning stand."""

TRANSCRIPT = "transcript"
"""Where in `context.environment` a capsule says on which raw records it rests."""

_TYPES = {"prompt": "chat", "call": "tool", "answer": "chat", "session": "workflow"}
_KINDS = {"call": "call", "prompt": "turn", "answer": "turn"}
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,63}").fullmatch
_DIGESTED = re.compile(r"x-[0-9a-f]{32}").fullmatch
_OWN = re.compile(r"\A(?:read|cut|changed):|:(?:transcript|hook|launched)\Z|@")
"""What Aver puts before, after and into keys: see `sealing` and `later`."""
_EMAIL = re.compile(r"[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")


class Draft(NamedTuple):
    """What is appended to the ledger for a deed."""

    capsule: Capsule
    blobs: list[Blob]


def chain_of(tool: str, session: str, agent: str = "") -> str:
    """The chain of a session; a subagent has one of its own. No session has the chain of another's subagent."""
    return chain_name(tool, f"{_part(session)}.{_part(agent)}" if agent else _part(session))


def key_of(tool: str, session: str, identifier: str) -> str:
    """The idempotency key of a deed: whoever records it first, hook or watcher, uses this one. No id, whatever it is,
    gives a key of another session, or one under which Aver tells something of its own."""
    return own_key(tool, session, _digested(identifier) if _OWN.search(identifier) else _named(identifier))


def own_key(tool: str, session: str, name: str) -> str:
    """The key of what Aver itself tells of a session's transcript: `read:`, `cut:` or `changed:`, and a digest."""
    return f"{tool}:{_digested(session) if ':' in session else _named(session)}:{name}"


def drafted(tool: str, session: str, deed: Deed, seen: Mapping[str, Any] | None = None) -> Draft:
    """The draft for a deed. `seen` is what is sealed of the raw records that it rests on, if it rests on any."""
    blobs: list[Blob] = []
    call = deed.call
    capsule = Capsule(
        type=_TYPES.get(deed.what, "system"),
        domain=tool,
        trigger=_trigger(tool, session, deed),
        context=Context(
            agent_id=f"{tool}/{deed.agent}" if deed.agent else tool,
            session_id=session,
            environment=_environment(tool, session, deed, seen),
        ),
        reasoning=Reasoning(
            analysis=deed.text if deed.what != "answer" else "",
            reasoning=deed.thinking,
            model=deed.model,
            prompt_hash=None if deed.prompt is None else _prompt_hash(deed.prompt.text),
        ),
        authority=_authority(deed.allowed),
        execution=Execution(
            tool_calls=[] if call is None else [_tool_call(deed, call, blobs)],
            duration_ms=deed.duration_ms or 0,
            resources_used=_resources(deed.tokens),
        ),
        outcome=_outcome(deed, blobs),
    )
    return Draft(mask_draft(capsule, opaque=(SIGNATURES, TRANSCRIPT)), blobs)


def _trigger(tool: str, session: str, deed: Deed) -> Trigger:
    if deed.what == "prompt":
        request, turn = deed.text, key_of(tool, session, deed.key)
    elif deed.prompt is not None:
        request, turn = _excerpt(deed.prompt.text), key_of(tool, session, deed.prompt.key)
    else:
        request, turn = "", None
    return Trigger(
        type="agent" if deed.agent else "user_request",
        source=session,
        timestamp=utc(deed.at) or now(),
        request=request,
        correlation_id=turn,
    )


def _environment(tool: str, session: str, deed: Deed, seen: Mapping[str, Any] | None) -> dict[str, Any]:
    environment = {name: _without_email(value) for name, value in deed.environment.items() if value is not None}
    environment[BLOCK] = {"kind": _KINDS.get(deed.what, "record")}
    if seen is not None:
        environment[TRANSCRIPT] = dict(seen)
    if deed.signatures:
        environment[SIGNATURES] = list(deed.signatures)
    if deed.call is not None:
        environment["tool_call_id"] = deed.call.id
    if deed.redacted:
        environment["thinking_redacted"] = True
    if utc(deed.at) is None:
        environment["time_known"] = False
    if deed.duration_ms is None:
        environment["duration_known"] = False
    if deed.title:
        environment["title"] = deed.title
    if deed.launched:
        environment["subagent"] = {"id": deed.launched, "chain": chain_of(tool, session, deed.launched)}
    if deed.cause:
        environment["launched_by"] = key_of(tool, session, deed.cause)
    return environment


def _authority(allowed: Allowed) -> Authority:
    return Authority(type=allowed.by, policy_reference=allowed.reference)


def _tool_call(deed: Deed, call: Call, blobs: list[Blob]) -> ToolCall:
    return ToolCall(
        tool=call.tool,
        arguments=_light(dict(call.arguments), blobs),
        result=_light(call.result, blobs),
        success=call.ok is True,
        duration_ms=deed.duration_ms or 0,
        error=_error(deed, call),
    )


def _outcome(deed: Deed, blobs: list[Blob]) -> Outcome:
    call = deed.call
    result: Any = deed.result
    metrics: dict[str, Any] = {}
    if deed.what == "answer":
        result = deed.text if result is None else {"text": deed.text, "more": result}
    elif call is not None and call.diff is not None:
        added, removed = counted(call.diff)
        metrics = {"lines_added": added, "lines_removed": removed}
        result = {"diff": call.diff} if result is None else {"diff": call.diff, "more": result}
    return Outcome(
        status=_status(deed),
        result=_light(result, blobs),
        summary=_summary(deed.summary),
        error=None if call is None else _error(deed, call),
        side_effects=list(deed.side_effects),
        metrics=metrics,
    )


def _status(deed: Deed) -> str:
    if deed.allowed.denied:
        return "blocked"
    if deed.status is not None:
        return deed.status
    if deed.call is None:
        return "success"
    return {True: "success", False: "failure", None: "pending"}[deed.call.ok]


def _error(deed: Deed, call: Call) -> str | None:
    if call.ok is False or deed.allowed.denied:
        return call.error or ("denied" if deed.allowed.denied else "the tool reported an error")
    return "OUTCOME_UNKNOWN" if call.ok is None else None


def _resources(tokens: Tokens | None) -> dict[str, Any]:
    if tokens is None:
        return {}
    named = {"tokens_in": tokens.input, "tokens_out": tokens.output, "cost_usd": tokens.cost_usd}
    known = {name: value for name, value in named.items() if value is not None}
    return {**known, "native": dict(tokens.native)} if tokens.native else known


def _light(value: Any, blobs: list[Blob]) -> Any:
    """The value, or a reference to it where it is a large object. Large texts are moved when the draft is sealed."""
    if not isinstance(value, dict | list):
        return value
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):  # An integer beyond 64 bits: rare, and never in what is large.
        return value
    if len(written) <= HEAVY:
        return value
    blob = Blob(orjson.dumps(mask(value).value, option=orjson.OPT_SORT_KEYS), "application/json")
    blobs.append(blob)
    return blob.reference


@lru_cache(maxsize=256)
def _prompt_hash(text: str) -> str:
    """Over the prompt as it is sealed: the hash of a short secret would give it away."""
    return hashlib.sha3_256(mask(text).value.encode("utf-8", "surrogatepass")).hexdigest()


def _excerpt(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    return line if len(line) <= REQUEST_EXCERPT else f"{line[: REQUEST_EXCERPT - 1]}…"


def _summary(text: str) -> str:
    line = " ".join(text[: 4 * SUMMARY_MAX].split())
    return line if len(line) <= SUMMARY_MAX else f"{line[: SUMMARY_MAX - 1]}…"


def _named(identifier: str) -> str:
    """An id as a part of a key: as it is, or by its digest where it is long, empty or holds what no key may."""
    fits = 0 < len(identifier) <= KEY_ID_MAX and identifier.isprintable() and not _DIGESTED(identifier)
    return identifier if fits else _digested(identifier)


def _part(identifier: str) -> str:
    """An id as one of the two parts of a chain's name."""
    return identifier if _PLAIN(identifier) and not _DIGESTED(identifier) else _digested(identifier)


def _digested(identifier: str) -> str:
    return "x-" + hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _without_email(value: Any) -> Any:
    if isinstance(value, str):
        return _EMAIL.sub("[masked:email]", value) if "@" in value else value
    if isinstance(value, dict):
        return {name: _without_email(item) for name, item in value.items()}
    return [_without_email(item) for item in value] if isinstance(value, list | tuple) else value
