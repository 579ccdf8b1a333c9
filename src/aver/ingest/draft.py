"""Turn an event into the draft of a capsule: one mapping for all agents.

    prompt          chat       the prompt is `trigger.request`
    call            tool       arguments and result in `execution.tool_calls[0]`; `outcome.result` is the result once
                               more, and of an edit, the diff
    answer          chat       the answer is `outcome.result`
    all others      system

Every event after a prompt names it: `reasoning.prompt_hash` is its SHA3-256, and its first line is in
`trigger.request`. The whole prompt is sealed once, in its own capsule. If the transcript has no time or no duration,
`environment.time_known` or `duration_known` is false.

Secrets are masked in prompts, answers, arguments and results before anything is hashed. E-mail addresses are removed
from `environment`. The content of files and command output is not changed otherwise.

`link_decision` adds the gate's decision to the record of a call. The hook before a call asks the gate under the call's
id. The hook after it, and the follower of the transcript, find the decision under the same id. The draft then gets

    trigger.correlation_id    the call's id, which the decision has, too
    refs.decision             the id of the decision's record, and `refs.approval` if a person's approval was used
    authority                 that of the decision: see `aver.gate.call_decisions.authorize_call`

A call without a decision keeps the authority that its client reports.

Some clients tell only in words that a call was refused, and its output may contain the same words. So such a call has
failed. It counts as blocked if the gate itself refused it, and no sign shows that it ran all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson

from aver import log
from aver.capsule.aver_block import BLOCK_KEY, chain_name
from aver.capsule.blobs import Blob
from aver.capsule.canonical import ascii_json
from aver.capsule.masking.mask import mask, mask_draft, mask_part, shows_secret
from aver.capsule.model import Authority, Capsule, Context, Execution, Outcome, Reasoning, ToolCall, Trigger
from aver.clock import now
from aver.diffs import count_changed_lines
from aver.errors import AverError
from aver.fast_dataclass import NamedTuple
from aver.gate.call_decisions import DoneAction, authorize_call, bind, find_decisions
from aver.gate.decision_record import RecordedDecision
from aver.ingest.contract import SAID_BY_WORDS, AgentEvent
from aver.ingest.foreign_json import to_utc
from aver.lazy_pattern import lazy_pattern
from aver.ledger import Ledger

INLINE_MAX = 32 * 1024
"""The largest object, in bytes of JSON, that stays in a capsule. A larger one becomes a blob. Four fit."""

EXCERPT_MAX = 200
"""Most characters of a prompt that later events repeat."""

SUMMARY_MAX = 240
"""The most characters of a capsule's summary."""

KEY_ID_MAX = 200
"""Characters of an id that become part of a key as they are."""

SIGNATURES = "thinking_signatures"
"""The key in `context.environment` of the signatures of the model's reasoning."""

TRANSCRIPT = "transcript"
"""The key in `context.environment` under which a capsule names its raw records."""

SESSION_ENDED = "session_ended"
"""The key in `context.environment` of the record in which the client says that the session is over."""

_TYPES = {"prompt": "chat", "call": "tool", "answer": "chat"}
_KINDS = {"call": "call", "prompt": "turn", "answer": "turn"}
_CHAIN_PART = lazy_pattern(r"[A-Za-z0-9_-]{1,63}")
_DIGEST_ID = lazy_pattern(r"x-[0-9a-f]{32}")
_RESERVED_KEY = lazy_pattern(r"\A(?:read|cut|changed|other):|:(?:transcript|hook|launched)\Z|@")
"""Prefixes, suffixes and separators of keys that Aver makes itself: see `seal` and `child_records`."""
_SIGNATURE = lazy_pattern(r"[A-Za-z0-9+/]{100,}={0,2}|gAAAAA[A-Za-z0-9_-]{100,}={0,2}")
"""A signature of reasoning, in base64 or as a Fernet token. No key of a known service is so long without `-` or `_`."""
_EMAIL = lazy_pattern(r"[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")


class EventDraft(NamedTuple):
    """The capsule and blobs that are appended for an event."""

    capsule: Capsule
    blobs: list[Blob]
    shows_secret: bool = False
    """Whether the result of the call has a secret in it: then the session has seen one."""


def session_chain_name(tool: str, session: str, agent: str = "") -> str:
    """Return the name of a session's chain, or of a subagent's own chain."""
    # `.` separates session and subagent. It cannot be part of either, so no session has the chain of a subagent. An id
    # that looks like a digest is digested again, so that it cannot equal the digest of another id.
    parts = [
        part if _CHAIN_PART.fullmatch(part) and not _DIGEST_ID.fullmatch(part) else _digest_id(part)
        for part in ((session, agent) if agent else (session,))
    ]
    return chain_name(tool, ".".join(parts))


def event_key(tool: str, session: str, identifier: str) -> str:
    """Return the idempotency key of an event. Hooks and followers use the same one. No id can give a key of another
    session, or one that Aver uses for its own notes."""
    named = _digest_id(identifier) if _RESERVED_KEY.search(identifier) else _key_part(identifier)
    return f"{tool}:{_digest_id(session) if ':' in session else _key_part(session)}:{named}"


def note_key(tool: str, session: str, name: str) -> str:
    """Return the key of Aver's own note about a transcript: `read:`, `cut:`, `changed:` or `other:`, and a digest."""
    return f"{tool}:{_digest_id(session) if ':' in session else _key_part(session)}:{name}"


def draft_event(tool: str, session: str, event: AgentEvent, seen: Mapping[str, Any] | None = None) -> EventDraft:
    """Build the draft for an event. `seen` is what the capsule says about its raw records, if it has any."""
    blobs: list[Blob] = []
    secrets: set[str] = set()
    call, denied, tokens = event.call, event.allowed.denied, event.tokens
    # The prompt that the event belongs to. An event after it repeats only an excerpt of the prompt's first line.
    request, turn = "", None
    if event.what == "prompt":
        request, turn = event.text, event_key(tool, session, event.key)
    elif event.prompt is not None:
        masked = _masked_prompt(event.prompt.text)  # Before it is cut: half a secret is not recognised.
        line = next((line for line in masked.splitlines() if line.strip()), "").strip()
        request = line if len(line) <= EXCERPT_MAX else f"{line[: EXCERPT_MAX - 1]}…"
        turn = event_key(tool, session, event.prompt.key)
    # The call, and its error. A call without a result may have been made: its outcome is unknown.
    calls, error, shown = list[ToolCall](), None, False
    if call is not None:
        if call.ok is False or denied:
            error = call.error or ("denied" if denied else "the tool reported an error")
        elif call.ok is None:
            error = "OUTCOME_UNKNOWN"
        arguments = _externalise_large(dict(call.arguments), blobs, secrets)
        result = _externalise_large(call.result, blobs, secrets)
        shown = not denied and _shows_secret(call.arguments, [call.result, event.result])
        calls.append(
            ToolCall(
                tool=call.tool,
                arguments=arguments,
                result=result,
                success=call.ok is True,
                duration_ms=event.duration_ms or 0,
                error=error,
            )
        )
    # The tokens that were used, as far as they are known.
    used: dict[str, Any] = {}
    if tokens is not None:
        named = {"tokens_in": tokens.input, "tokens_out": tokens.output, "cost_usd": tokens.cost_usd}
        named |= {"input_tokens": tokens.input, "output_tokens": tokens.output}  # The names of agent-capsule's readers.
        used = {name: value for name, value in named.items() if value is not None}
        used |= {"native": dict(tokens.native)} if tokens.native else {}
    capsule = Capsule(
        type=_TYPES.get(event.what, "system"),
        domain=tool,
        trigger=Trigger(
            type="agent" if event.agent else "user_request",
            source=session,
            timestamp=to_utc(event.at) or now(),
            request=request,
            correlation_id=turn,
        ),
        context=Context(
            agent_id=f"{tool}/{event.agent}" if event.agent else tool,
            session_id=session,
            environment=_build_environment(tool, session, event, seen),
        ),
        reasoning=Reasoning(
            analysis=event.text if event.what != "answer" else "",
            reasoning=event.thinking,
            model=event.model,
            prompt_hash=None if event.prompt is None else _prompt_hash(event.prompt.text),
        ),
        authority=Authority(
            type=event.allowed.by,
            approver="client" if event.allowed.by == "human_approved" else None,  # It tells of a person, and not whom.
            policy_reference=event.allowed.reference,
        ),
        execution=Execution(tool_calls=calls, duration_ms=event.duration_ms or 0, resources_used=used),
        outcome=_build_outcome(event, error, calls, blobs, secrets),
    )
    return EventDraft(mask_draft(capsule, opaque=(SIGNATURES, TRANSCRIPT), found=secrets), blobs, shown)


def _shows_secret(arguments: Mapping[str, Any], results: list[Any]) -> bool:
    """Whether the results of a call have a secret that its arguments do not have."""
    found: set[str] = set()
    masked = mask_part(results, found)
    if not masked.count:
        return False
    try:
        given = ascii_json(dict(arguments)).decode()
    except AverError:
        given = ""
    return shows_secret(masked, found, given)


def _build_environment(tool: str, session: str, event: AgentEvent, seen: Mapping[str, Any] | None) -> dict[str, Any]:
    environment = {name: _mask_emails(value) for name, value in event.environment.items() if value is not None}
    environment |= {"model": event.model} if event.model else {}
    environment[BLOCK_KEY] = {"kind": _KINDS.get(event.what, "record")}
    if seen is not None:
        environment[TRANSCRIPT] = dict(seen)
    if event.signatures:
        # A transcript can have anything in the place of a signature. One that has not its form is masked as any text.
        environment[SIGNATURES] = [
            text if _SIGNATURE.fullmatch(text) else mask(text).value for text in event.signatures
        ]
    if event.call is not None:
        environment["tool_call_id"] = event.call.id
    if event.redacted:
        environment["thinking_redacted"] = True
    if to_utc(event.at) is None:
        environment["time_known"] = False
    if event.duration_ms is None:
        environment["duration_known"] = False
    if event.ends_session:
        environment[SESSION_ENDED] = True
    if event.title:
        environment["title"] = event.title
    if event.launched:
        environment["subagent"] = {"id": event.launched, "chain": session_chain_name(tool, session, event.launched)}
    if event.cause:
        environment["launched_by"] = event_key(tool, session, event.cause)
    return environment


def _build_outcome(
    event: AgentEvent, error: str | None, calls: list[ToolCall], blobs: list[Blob], secrets: set[str]
) -> Outcome:
    call = event.call
    # A refusal by the client says more than any status. Without a call or a status, the event itself has happened.
    status: str | None = "blocked" if event.allowed.denied else event.status
    if status is None:
        status = "success" if call is None else {True: "success", False: "failure", None: "pending"}[call.ok]
    # The diff of an edit, or the text of an answer, comes first; what else the agent reports is `more`.
    result: Any = event.result
    metrics: dict[str, Any] = {}
    if event.what == "answer":
        result = event.text if result is None else {"text": event.text, "more": result}
    elif call is not None and call.diff is not None:
        added, removed = count_changed_lines(call.diff)
        metrics = {"lines_added": added, "lines_removed": removed}
        result = {"diff": call.diff} if result is None else {"diff": call.diff, "more": result}
    # A summary may be made from a whole file: look at its beginning only. It is masked before it is cut.
    line = " ".join(str(mask_part(event.summary[: 4 * SUMMARY_MAX], secrets).value).split())
    return Outcome(
        status=status,
        # A large value of the call has its blob already, and both places name it.
        result=calls[0].result if calls and result is None else _externalise_large(result, blobs, secrets),
        summary=line if len(line) <= SUMMARY_MAX else f"{line[: SUMMARY_MAX - 1]}…",
        error=error,
        side_effects=list(event.side_effects),
        metrics=metrics,
    )


def _externalise_large(value: Any, blobs: list[Blob], secrets: set[str]) -> Any:
    """Return the value, or a reference to a blob if it is a large object. The ledger moves large texts later.

    `secrets` receives the secrets that the blob had: other parts of the capsule may repeat them.
    """
    if not isinstance(value, dict | list):
        return value
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):  # An integer beyond 64 bits. It is rare, and not in large objects.
        return value
    if len(written) <= INLINE_MAX:
        return value
    # The ledger does not look into blobs. So secrets must be masked here.
    blob = Blob(orjson.dumps(mask_part(value, secrets).value, option=orjson.OPT_SORT_KEYS), "application/json")
    blobs.append(blob)
    return blob.reference


def _prompt_hash(text: str) -> str:
    # Hash the masked prompt: from the hash of a short secret, anyone can find the secret by trying.
    return hashlib.sha3_256(_masked_prompt(text).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=256)
def _masked_prompt(text: str) -> str:
    return str(mask(text).value)


def _key_part(identifier: str) -> str:
    """Return an id as part of a key. A long, empty or unprintable id becomes its digest."""
    # An id that looks like a digest is digested again, so that it cannot equal the digest of another id.
    fits = 0 < len(identifier) <= KEY_ID_MAX and identifier.isprintable() and not _DIGEST_ID.fullmatch(identifier)
    return identifier if fits else _digest_id(identifier)


def _digest_id(identifier: str) -> str:
    return "x-" + hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _mask_emails(value: Any) -> Any:
    if isinstance(value, str):
        return _EMAIL.sub("[masked:email]", value) if "@" in value else value
    if isinstance(value, dict):
        return {name: _mask_emails(item) for name, item in value.items()}
    return [_mask_emails(item) for item in value] if isinstance(value, list | tuple) else value


def link_decision(ledger: Ledger, call_id: str, event: AgentEvent, draft: EventDraft) -> EventDraft:
    """Return the draft of a call with the decision about it. A draft of anything else is returned as it is."""
    if event.call is None:
        return draft
    try:
        found = find_decisions(ledger, call_id)
    except AverError as error:  # The call is recorded all the same. `aver verify` names the damage.
        log.debug("ingest", "the decision about %s cannot be read: %s", call_id, error)
        return draft
    if not found:
        return draft
    decision: RecordedDecision | None = found[0]
    if len(found) > 1:
        # Several decisions about one id: a client that uses ids again, or a second hook. The arguments tell them apart.
        try:
            digest = hashlib.sha256(ascii_json(dict(event.call.arguments))).hexdigest()
        except AverError:
            digest = ""
        action = DoneAction(call_id=call_id, is_like=lambda decision: decision.has_input(digest))
        decision = bind(action, found) or bind(DoneAction(call_id=call_id), found)
    if decision is None:
        return draft
    capsule, permission = draft.capsule, event.allowed
    # The client's own refusal says more than a decision that let the call pass.
    keeps_own = permission.denied and decision.allows
    told_by_words = SAID_BY_WORDS.items() <= event.environment.items()
    stopped = decision.refuses and told_by_words and event.call.ok is False and not event.side_effects
    authority = authorize_call(
        decision,
        refused=permission.denied or stopped,
        approved=permission.by == "human_approved" and not permission.denied,
    )
    environment = capsule.context.environment
    block = {**environment[BLOCK_KEY], "refs": decision.refs}
    linked = replace(
        capsule,
        trigger=replace(capsule.trigger, correlation_id=call_id),
        context=replace(capsule.context, environment={**environment, BLOCK_KEY: block}),
        authority=capsule.authority if keeps_own else authority,
        outcome=replace(capsule.outcome, status="blocked") if stopped else capsule.outcome,
    )
    return draft._replace(capsule=linked)
