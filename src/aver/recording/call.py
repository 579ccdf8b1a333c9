"""The call that is being audited, as `aver.current()` returns it to the call's own code.

Details that the code adds here go into the call's outcome, which is sealed when the call ends. Reasoning proves
deliberation only if it was sealed before the effect. So give reasoning that is known beforehand to the decorator
(`reasoning=`), and seal later reasoning with `seal_reasoning` before acting on it.

Values that cannot be recorded are refused at once, at the line with the mistake, not when the outcome is sealed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aver.capsule.model import Authority, Capsule, Execution, Option, Outcome, Reasoning, ToolCall
from aver.capsule.validate import STATUSES, validate
from aver.clock import new_id
from aver.errors import BadInput, Refused
from aver.recording.render import clean_text, render_value

OPTIONS_MAX = 64
"""Most options of one decision. A search with more belongs into a tool call."""

SIDE_EFFECTS_MAX = 256
"""Most side effects of one call."""


@dataclass(slots=True)
class CallDetails:
    """The details that a call's own code has added so far."""

    reasoning: Reasoning = field(default_factory=Reasoning)
    tool_calls: list[ToolCall] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)
    native: list[Any] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    side_effects: list[str] = field(default_factory=list)
    summary: str = ""
    authority: Authority | None = None
    status: str | None = None
    error: str | None = None


class AuditedCall:
    """A call that is being recorded. `aver.current()` returns it; any thread may add to it."""

    def __init__(
        self,
        name: str,
        chain: str,
        correlation_id: str,
        seal: Callable[[Reasoning, str], None],
        seal_async: Callable[[Reasoning, str], Awaitable[None]],
    ) -> None:
        self.id = new_id()
        """The id of its intent, which is the `parent_id` of its outcome and of the calls made in it."""
        self.name = name
        self.chain = chain
        self.correlation_id = correlation_id
        self.sealed_reasoning: str | None = None
        """The id of the last record of `seal_reasoning`."""
        self._added = CallDetails()
        self._ended = False
        self._lock = threading.Lock()
        self._seal, self._seal_async = seal, seal_async

    # --- reasoning

    def reason(
        self,
        *,
        analysis: str | None = None,
        reasoning: str | None = None,
        confidence: float | None = None,
        model: str | None = None,
        prompt: str | bytes | None = None,
        prompt_hash: str | None = None,
    ) -> None:
        """Add reasons. Of `prompt` only the SHA3-256 is recorded; give `prompt_hash` instead if you have it."""
        if prompt is not None:
            data = prompt if isinstance(prompt, bytes) else prompt.encode("utf-8", "surrogatepass")
            prompt_hash = hashlib.sha3_256(data).hexdigest()
        given: dict[str, Any] = {
            "analysis": None if analysis is None else clean_text(analysis),
            "reasoning": None if reasoning is None else clean_text(reasoning),
            "confidence": confidence,
            "model": model,
            "prompt_hash": prompt_hash,
        }
        with self._edit() as added:
            added.reasoning = _check_reasoning(
                replace(added.reasoning, **{name: value for name, value in given.items() if value is not None})
            )

    def option(
        self,
        description: str,
        *,
        id: str = "",  # noqa: A002 - the specification's name
        pros: Sequence[str] = (),
        cons: Sequence[str] = (),
        risks: Sequence[str] = (),
        feasibility: float = 0.0,
        estimated_impact: Mapping[str, Any] | None = None,
        selected: bool = False,
        rejection_reason: str = "",
    ) -> None:
        """Add an option that was considered: either `selected=True`, or a `rejection_reason`."""
        with self._edit() as added:
            before = added.reasoning.options
            if len(before) >= OPTIONS_MAX:
                raise BadInput(f"a decision has at most {OPTIONS_MAX} options")
            option = Option(
                id=id or f"opt_{len(before) + 1}",
                description=clean_text(description),
                pros=[clean_text(text) for text in pros],
                cons=[clean_text(text) for text in cons],
                risks=[clean_text(text) for text in risks],
                feasibility=feasibility,
                estimated_impact=render_value(dict(estimated_impact or {})),
                selected=selected,
                rejection_reason=clean_text(rejection_reason),
            )
            chosen = option.description if selected else added.reasoning.selected_option
            added.reasoning = _check_reasoning(
                replace(added.reasoning, options=[*before, option], options_considered=None, selected_option=chosen)
            )

    def seal_reasoning(self) -> str:
        """Seal the reasoning so far, before acting on it. Returns the record's id. Later reasoning starts empty."""
        with self._take_reasoning() as (reasoning, identifier):
            self._seal(reasoning, identifier)
        return identifier

    async def seal_reasoning_async(self) -> str:
        """The same without blocking the event loop."""
        with self._take_reasoning() as (reasoning, identifier):
            await self._seal_async(reasoning, identifier)
        return identifier

    @contextmanager
    def _take_reasoning(self) -> Iterator[tuple[Reasoning, str]]:
        """Take the reasoning so far out of the details, with a new id, to seal it within the context."""
        with self._edit() as added:
            reasoning, added.reasoning = added.reasoning, Reasoning()
        if reasoning == Reasoning():
            raise BadInput("there is no reasoning to seal yet", advice="add some with reason() or option()")
        identifier = new_id()
        try:
            yield reasoning, identifier
        except BaseException:
            # Put it back for the outcome, unless there is newer reasoning.
            with self._lock:
                if self._added.reasoning == Reasoning():
                    self._added.reasoning = reasoning
            raise
        self.sealed_reasoning = identifier

    # --- actions and results

    def tool_call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        result: Any = None,
        error: str | BaseException | None = None,
        duration_ms: int = 0,
    ) -> None:
        """Add a tool call. It succeeded unless there is an error."""
        words = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
        call = ToolCall(
            tool=clean_text(tool),
            arguments=render_value({str(name): value for name, value in (arguments or {}).items()}),
            result=render_value(result),
            success=error is None,
            duration_ms=duration_ms,
            error=None if words is None else clean_text(words),
        )
        validate(Capsule(type="tool", execution=Execution(tool_calls=[call])))
        with self._edit() as added:
            added.tool_calls.append(call)

    def tokens(
        self,
        *,
        tokens_in: int = 0,
        tokens_out: int = 0,
        cost_usd: float = 0.0,
        latency_ms: int = 0,
        native: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the cost of a model's answer; several answers add up. `native` is the provider's own usage report."""
        given = {"tokens_in": tokens_in, "tokens_out": tokens_out, "cost_usd": cost_usd, "latency_ms": latency_ms}
        for name, amount in given.items():
            if type(amount) not in (int, float) or not 0 <= amount < float("inf"):
                raise BadInput(f"{name} must be a number that is not negative, not {amount!r}")
        with self._edit() as added:
            for name, amount in given.items():
                if amount or name.startswith("tokens"):
                    added.resources[name] = added.resources.get(name, 0) + amount
            if native is not None:
                added.native.append(render_value(dict(native)))

    def set_resources(self, **resources: Any) -> None:
        """Set other resources that the call used."""
        with self._edit() as added:
            added.resources.update({name: render_value(value) for name, value in resources.items()})

    def set_metrics(self, **metrics: Any) -> None:
        """Set metrics of the call's outcome, such as `quality_score`."""
        with self._edit() as added:
            added.metrics.update({name: render_value(value) for name, value in metrics.items()})

    def side_effect(self, text: str) -> None:
        """Add a change that the call made in the world."""
        with self._edit() as added:
            if len(added.side_effects) >= SIDE_EFFECTS_MAX:
                raise BadInput(f"a call names at most {SIDE_EFFECTS_MAX} side effects", advice="sum them up in one")
            added.side_effects.append(clean_text(text))

    def summarise(self, text: str) -> None:
        """Set the one-line summary."""
        with self._edit() as added:
            added.summary = clean_text(text)

    def conclude(self, status: str, error: str | None = None) -> None:
        """Set the status where returning or raising does not show it: `partial`, `blocked`, ..."""
        if status not in STATUSES:
            raise BadInput(f"{status!r} is not an outcome", advice=f"use one of {', '.join(sorted(STATUSES))}")
        with self._edit() as added:
            added.status, added.error = status, None if error is None else clean_text(error)

    def authorise(
        self,
        type: str,  # noqa: A002 - the specification's name
        *,
        approver: str | None = None,
        policy_reference: str | None = None,
        escalation_reason: str | None = None,
        chain: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Set who or what allowed the call. The intent is sealed already, and keeps its authority."""
        authority = Authority(
            type=type,
            approver=approver,
            policy_reference=policy_reference,
            escalation_reason=escalation_reason,
            chain=[render_value(dict(step)) for step in chain],
        )
        validate(Capsule(type="tool", authority=authority))
        with self._edit() as added:
            added.authority = authority

    # --- the end

    def _close(self) -> CallDetails:
        """Return the details and refuse further ones, because the outcome is about to be sealed."""
        with self._lock:
            self._ended = True
            return self._added

    @contextmanager
    def _edit(self) -> Iterator[CallDetails]:
        """Give the details to change, to one thread at a time. `Refused` after the call has ended."""
        with self._lock:
            if self._ended:
                raise Refused(
                    "OUTCOME_SEALED",
                    f"{self.name} has ended and its outcome is sealed",
                    advice="add to a call while it runs; audit later work as another call",
                )
            yield self._added

    def __repr__(self) -> str:
        return f"<AuditedCall {self.name} {self.id}>"


def _check_reasoning(reasoning: Reasoning) -> Reasoning:
    validate(Capsule(type="agent", reasoning=reasoning, outcome=Outcome()))
    return reasoning
