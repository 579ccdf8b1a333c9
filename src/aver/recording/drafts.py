"""The records of an audited call as drafts: masked, cut to size, ready to append.

    audit.intent      before the body: function and arguments in `environment.audit`, request, authority, reasoning
    audit.reasoning   during the body, by `seal_reasoning`: the reasoning so far
    audit.outcome     after the body: result or error, status, duration, added details; its parent is the intent
    dropped           records that could not be sealed in time: how many, since when, why, which

Texts are shortened after masking, never before, because masking does not recognise half a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import CAPSULE_MAX, INLINE_MAX, Blob
from aver.capsule.canonical import canonical_json
from aver.capsule.masking.mask import mask_draft
from aver.capsule.model import Authority, Capsule, Context, Execution, Outcome, Reasoning, ToolCall, Trigger
from aver.capsule.sealed import content_hash
from aver.clock import new_id, now
from aver.fast_dataclass import dataclass
from aver.recording.call import CallDetails
from aver.recording.scope import AuditScope
from aver.text import clip_text

JSON_MEDIA = "application/json"
SUMMARY_MAX = 300
"""Longest summary or request that is composed here, in characters."""

ARGUMENT_MAX = 60
"""Longest argument in such a request, in characters. `environment.audit` has all of it."""

CALLS_MAX = CAPSULE_MAX // 2
"""Most bytes of tool calls in one record. Further tool calls go into a blob."""

ARGUMENTS_MAX = CAPSULE_MAX // 4
"""Most bytes of arguments in one record. If there are more, all arguments go into one blob."""

REFERENCE_BYTES = 160
"""Approximate size of a reference to a blob, in bytes."""

LOST_NAMED_MAX = 64
"""How many lost records a `dropped` record names. It counts all."""


class ReadyDraft(NamedTuple):
    """A draft that can be appended, and the blobs that it refers to."""

    capsule: Capsule
    blobs: Sequence[Blob]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSubject:
    """The audited call as far as it is known before it begins. Values are JSON."""

    id: str
    name: str
    type: str
    domain: str
    request: str
    scope: AuditScope
    reasoning: Reasoning
    facts: Mapping[str, Any]
    """Entries of the intent's environment, such as the function and its arguments."""
    environment: Mapping[str, Any]
    """Entries of the environment of both records."""
    began: str = field(default_factory=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnding:
    """The end of a call. Values are JSON."""

    status: str
    words: str
    """The text after the call's name in the summary."""
    error: str | None = None
    result: Any = None
    duration_ms: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


def build_intent(subject: AuditSubject) -> ReadyDraft:
    """Build the record that is sealed before the body runs."""
    capsule = Capsule(
        id=subject.id,
        parent_id=subject.scope.parent_id,
        **_common_fields(subject),
        context=_build_context(subject, subject.facts),
        reasoning=subject.reasoning,
        authority=subject.scope.authority or Authority(),
    )
    masked = mask_draft(of_kind(capsule, "audit.intent"))
    if not masked.trigger.request:
        arguments = masked.context.environment.get("audit", {}).get("arguments", {})
        # Write `refund(order="A-1", amount=12)` from arguments that are already masked.
        given = arguments.items() if isinstance(arguments, dict) else ()
        words = ", ".join(f"{key}={clip_text(canonical_json(value).decode(), ARGUMENT_MAX)}" for key, value in given)
        masked = replace(
            masked, trigger=replace(masked.trigger, request=clip_text(f"{subject.name}({words})", SUMMARY_MAX))
        )
    return _fit_to_size(masked)


def build_reasoning(subject: AuditSubject, reasoning: Reasoning, identifier: str) -> ReadyDraft:
    """Build the record of the reasoning so far."""
    capsule = Capsule(
        id=identifier,
        parent_id=subject.id,
        **{**_common_fields(subject), "type": "agent"},
        context=_build_context(subject, {}),
        reasoning=reasoning,
        outcome=Outcome(summary=reasoning.selected_option or reasoning.reasoning or reasoning.analysis),
    )
    return finish_draft(capsule, "audit.reasoning", {"intent": subject.id})


def build_outcome(
    subject: AuditSubject, ending: CallEnding, added: CallDetails, *, reasoning_id: str | None
) -> ReadyDraft:
    """Build the record that is sealed after the body."""
    refs = {"intent": subject.id, **({"reasoning": reasoning_id} if reasoning_id else {})}
    resources = {**added.resources, **({"native": added.native} if added.native else {})}
    capsule = Capsule(
        parent_id=subject.id,
        **_common_fields(subject),
        context=_build_context(subject, ending.facts),
        reasoning=added.reasoning,
        authority=added.authority or subject.scope.authority or Authority(),
        execution=Execution(tool_calls=added.tool_calls, duration_ms=ending.duration_ms, resources_used=resources),
        outcome=Outcome(
            status=added.status or ending.status,
            result=ending.result,
            summary=added.summary or f"{subject.name} {ending.words}",
            error=added.error or ending.error,
            side_effects=added.side_effects,
            metrics={**ending.metrics, **added.metrics},
        ),
    )
    return finish_draft(capsule, "audit.outcome", refs)


def finish_draft(capsule: Capsule, kind: str, refs: Mapping[str, str] | None = None) -> ReadyDraft:
    """Give a draft its kind, mask it and cut it to size."""
    return _fit_to_size(mask_draft(of_kind(capsule, kind, refs)))


def _common_fields(subject: AuditSubject) -> dict[str, Any]:
    scope = subject.scope
    return {
        "type": subject.type,
        "domain": subject.domain,
        "trigger": Trigger(
            type=scope.trigger or "system",
            source=scope.source or "",
            timestamp=subject.began,
            request=subject.request,
            correlation_id=scope.correlation_id,
            user_id=scope.user_id,
        ),
    }


def _build_context(subject: AuditSubject, facts: Mapping[str, Any]) -> Context:
    return Context(
        agent_id=subject.scope.agent_id or "",
        session_id=subject.scope.session_id,
        environment={**subject.environment, **facts},
    )


# --- size


def _fit_to_size(draft: Capsule) -> ReadyDraft:
    """Move large values of a draft into blobs. The ledger itself moves long texts."""
    draft = replace(draft, outcome=replace(draft.outcome, summary=clip_text(draft.outcome.summary, SUMMARY_MAX)))
    if len(canonical_json(draft.to_dict())) <= INLINE_MAX:
        return ReadyDraft(draft, ())
    blobs: list[Blob] = []

    def inline(value: Any) -> Any:
        if isinstance(value, dict | list) and len(data := canonical_json(value)) > INLINE_MAX:
            blobs.append(Blob(data, JSON_MEDIA))
            return blobs[-1].reference
        return value

    environment = {key: _move_large_arguments(value, inline) for key, value in draft.context.environment.items()}
    calls = [
        replace(call, arguments=inline(call.arguments), result=inline(call.result))
        for call in draft.execution.tool_calls
    ]
    size = 0
    for number, call in enumerate(calls):
        size += sum(map(_inline_size, (call.tool, call.arguments, call.result, call.error))) + REFERENCE_BYTES
        if size > CALLS_MAX:
            kept: Sequence[ToolCall] = calls[:number]
            break
    else:
        kept = calls
    if len(kept) < len(calls):
        rest = Blob(canonical_json([call.to_dict() for call in calls[len(kept) :]]), JSON_MEDIA)
        blobs.append(rest)
        environment["more_tool_calls"] = {"count": len(calls) - len(kept), "calls": rest.reference}
    fitted = replace(
        draft,
        context=replace(draft.context, environment=environment),
        execution=replace(draft.execution, tool_calls=kept, resources_used=inline(draft.execution.resources_used)),
        outcome=replace(draft.outcome, result=inline(draft.outcome.result), metrics=inline(draft.outcome.metrics)),
    )
    return ReadyDraft(fitted, blobs)


def _move_large_arguments(value: Any, inline: Callable[[Any], Any]) -> Any:
    """Move a large value of the environment; arguments one by one, so that small ones stay readable."""
    if not isinstance(value, dict) or not isinstance(value.get("arguments"), dict):
        return inline(value)
    arguments = {name: inline(item) for name, item in value["arguments"].items()}
    crowded = sum(map(_inline_size, arguments.values())) > ARGUMENTS_MAX
    return {**value, "arguments": inline(arguments) if crowded else arguments}


def _inline_size(value: Any) -> int:
    """The size of a value in a record, where a long text becomes a reference."""
    size = len(canonical_json(value))
    return REFERENCE_BYTES if size > INLINE_MAX else size


# --- lost records


@dataclass(slots=True)
class ChainLoss:
    """Records of one chain that could not be sealed."""

    chain: str
    since: str
    first_error: str
    until: str = ""
    count: int = 0
    lost: list[dict[str, Any]] = field(default_factory=list)
    """Id, kind and digest of the first lost records."""

    def add(self, kind: str, ready: ReadyDraft | None, at: str) -> None:
        """Count a lost record, and name it while fewer than `LOST_NAMED_MAX` are named."""
        self.count += 1
        self.until = at
        if len(self.lost) < LOST_NAMED_MAX:
            self.lost.append({"kind": kind} if ready is None else {"kind": kind, **_id_and_digest(ready)})

    def merge(self, later: ChainLoss) -> None:
        """Add later losses of the same chain."""
        self.count += later.count
        self.until = max(self.until, later.until)
        self.lost = [*self.lost, *later.lost][:LOST_NAMED_MAX]


def _id_and_digest(ready: ReadyDraft) -> dict[str, Any]:
    content = ready.capsule.to_dict()
    return {"id": content["id"], "digest": content_hash(canonical_json(content))}


def build_dropped(loss: ChainLoss, source: str) -> ReadyDraft:
    """Build the record that reports lost records."""
    words = "1 record" if loss.count == 1 else f"{loss.count} records"
    capsule = Capsule(
        id=new_id(),
        type="system",
        trigger=Trigger(type="system", source=source, request="record what could not be sealed"),
        outcome=Outcome(
            status="failure",
            summary=f"{words} could not be sealed since {loss.since}",
            error=loss.first_error,
            result={
                "dropped": loss.count,
                "chain": loss.chain,
                "since": loss.since,
                "until": loss.until,
                "lost": loss.lost,
            },
        ),
    )
    return finish_draft(capsule, "dropped")
