"""`@aver.audit(chain=...)` seals every call of a function: an intent before it, an outcome after it.

    @aver.audit(chain="shop.refunds")
    def refund(order: str, amount: int) -> str: ...

It works for functions, methods, class and static methods, coroutines, generators and async generators. The decorated
function keeps its form, name, signature and exceptions. A generator's intent is sealed when its body begins. A
generator that is never started leaves no record, because nothing ran.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from aver.capsule.aver_block import BLOCK_KEY, RESERVED_CHAINS, check_chain_name
from aver.capsule.masking.mask import NOTE_KEY, masking_note
from aver.capsule.model import Authority, Capsule, Context, Reasoning
from aver.capsule.validate import validate
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.recording.recorder import get_recorder
from aver.recording.render import clean_text, render_value, type_name
from aver.recording.run import CallPlan, CallRun, OnFailure
from aver.recording.scope import AuditScope, check_scope, current_scope

if TYPE_CHECKING:
    from aver.ledger.async_ledger import AsyncLedger
    from aver.ledger.ledger import Ledger

Audited = TypeVar("Audited", bound=Callable[..., Any] | classmethod | staticmethod)  # type: ignore[type-arg]
Arguments = Mapping[str, Any]

RESULT_NAME = "return"
"""The name of the result in `leave_out` and `mask`, as in annotations. No parameter can have it."""

_RESERVED_NAMES = (BLOCK_KEY, NOTE_KEY, "audit")


def audit(
    *,
    chain: str | Callable[[Arguments], str],
    ledger: Ledger | AsyncLedger | None = None,
    type: str = "tool",  # noqa: A002 - the specification's name
    domain: str = "agents",
    request: str = "",
    trigger: str | None = None,
    source: str | None = None,
    user_id: str | None = None,
    agent_id: str | None = None,
    session_id: str | None = None,
    authority: Authority | None = None,
    reasoning: Reasoning | Callable[[Arguments], Reasoning] | None = None,
    environment: Mapping[str, Any] | None = None,
    leave_out: Collection[str] = (),
    mask: Collection[str] = (),
    on_failure: OnFailure = "raise",
) -> Callable[[Audited], Audited]:
    """Seal every call of the decorated function: `audit.intent` before it runs, `audit.outcome` after.

    `chain` is a chain's name, or a function that makes one from the arguments. `ledger` is the ledger to record in; by
    default that of `audit_scope`, or the default ledger. `reasoning` goes into the intent; it may also be a function of
    the arguments. Parameters in `leave_out` are not recorded, those in `mask` are recorded as masked; `"return"` names
    the result. With `on_failure="log"`, a call that cannot be recorded still runs, and a `dropped` record reports the
    loss later. The other parameters are fields of the record. Their defaults come from `audit_scope` and from the
    audited call around this one.
    """
    if on_failure not in ("raise", "log"):
        raise BadInput(f"on_failure is 'raise' or 'log', not {on_failure!r}")
    if isinstance(chain, str) and check_chain_name(chain) in RESERVED_CHAINS:
        raise BadInput(f"the chain {chain!r} is written by the ledger itself")
    ours = [name for name in _RESERVED_NAMES if name in (environment or {})]
    if ours:
        raise BadInput(f"the environment's {ours[0]!r} is written by Aver itself", advice="choose another name")
    scope = AuditScope(
        trigger=trigger, source=source, user_id=user_id, agent_id=agent_id, session_id=session_id, authority=authority
    )
    check_scope(scope)
    shown = render_value(dict(environment or {}))
    known = reasoning if isinstance(reasoning, Reasoning) else Reasoning()
    validate(Capsule(type=type, domain=domain, context=Context(environment=shown), reasoning=known))
    settings = _AuditSettings(
        chain=chain,
        ledger=ledger,
        type=type,
        domain=domain,
        request=request,
        scope=scope,
        reasoning=reasoning or Reasoning(),
        environment=shown,
        leave_out=frozenset(leave_out),
        mask=frozenset(mask),
        on_failure=on_failure,
    )

    def decorate(function: Audited) -> Audited:
        return cast(Audited, _decorate(function, settings))

    return decorate


@dataclass(frozen=True, slots=True, kw_only=True)
class _AuditSettings:
    chain: str | Callable[[Arguments], str]
    ledger: Ledger | AsyncLedger | None
    type: str
    domain: str
    request: str
    scope: AuditScope
    reasoning: Reasoning | Callable[[Arguments], Reasoning]
    environment: Mapping[str, Any]
    leave_out: frozenset[str]
    mask: frozenset[str]
    on_failure: OnFailure


def _decorate(function: Any, settings: _AuditSettings) -> Any:
    from aver.recording import wrappers

    if isinstance(function, classmethod | staticmethod):
        return type(function)(_decorate(function.__func__, settings))
    if isinstance(function, property) or inspect.isclass(function) or not callable(function):
        raise BadInput(
            f"@aver.audit decorates functions and methods, not a {type(function).__name__}",
            advice="decorate the getter of a property, the methods of a class",
        )
    return wrappers.wrap_function(function, AuditedFunction(function, settings))


class AuditedFunction:
    """The audit settings of one function. Begins a run for each of its calls."""

    def __init__(self, function: Callable[..., Any], settings: _AuditSettings) -> None:
        self._settings = settings
        part = function if isinstance(function, functools.partial) else functools.partial(function)
        self._fixed = part.args, part.keywords
        self._signature: inspect.Signature | None = None
        with suppress(TypeError, ValueError):  # Some functions written in C have no signature.
            self._signature = inspect.signature(part.func)
        module = getattr(function, "__module__", None)
        name = getattr(function, "__qualname__", type_name(type(function)))
        self.name = clean_text(str(name))
        self._function = clean_text(f"{module}.{name}" if module else str(name))
        known = {RESULT_NAME} if self._signature is None else {RESULT_NAME, *self._signature.parameters}
        unknown = (settings.leave_out | settings.mask) - known
        if unknown and self._signature is not None:
            raise BadInput(f"{self.name} has no parameter {min(unknown)!r} to leave out or to mask")

    def begin_run(self, form: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallRun:
        """Begin a run of the function with these arguments. Nothing is sealed yet."""
        settings, here = self._settings, current_scope()
        if self._signature is None:
            given: dict[str, Any] = {"args": args, "kwargs": kwargs}
        else:
            fixed, named = self._fixed
            try:
                bound = self._signature.bind(*fixed, *args, **{**named, **kwargs})
            except TypeError as error:
                raise TypeError(f"{self.name}(): {error}") from None
            bound.apply_defaults()
            given = bound.arguments
        chain = settings.chain if isinstance(settings.chain, str) else settings.chain(given)
        reasoning = settings.reasoning if isinstance(settings.reasoning, Reasoning) else settings.reasoning(given)
        arguments = {
            clean_text(name): self._render_argument(name, value)
            for name, value in given.items()
            if name not in settings.leave_out
        }
        own = {name: value for name in _SCOPE_FIELDS if (value := getattr(settings.scope, name)) is not None}
        facts = {"function": self._function, "form": form, "arguments": arguments}
        left_out = sorted(settings.leave_out)
        return CallRun(
            CallPlan(
                chain=chain,
                name=self.name,
                recorder=get_recorder(settings.ledger or here.ledger),
                on_failure=settings.on_failure,
                scope=replace(here, **own),
                type=settings.type,
                domain=settings.domain,
                request=settings.request,
                reasoning=reasoning,
                facts={
                    "audit": {**facts, "left_out": left_out} if left_out else facts,
                    NOTE_KEY: self._masking_note(given),
                },
                environment={"audit": {"function": self._function, "form": form}, **settings.environment},
            )
        )

    def render_result(self, value: Any) -> Any:
        """The result for the record: left out, masked, or rendered."""
        return None if RESULT_NAME in self._settings.leave_out else self._render_argument(RESULT_NAME, value)

    @property
    def can_show_result(self) -> bool:
        return RESULT_NAME not in self._settings.leave_out | self._settings.mask

    def result_facts(self) -> dict[str, Any]:
        """The note of an outcome about a masked result."""
        return {NOTE_KEY: self._masking_note({RESULT_NAME})}

    def _render_argument(self, name: str, value: Any) -> Any:
        return "[masked:parameter]" if name in self._settings.mask else render_value(value)

    def _masking_note(self, names: Collection[str]) -> dict[str, Any]:
        masked = self._settings.mask.intersection(names) - self._settings.leave_out
        return masking_note({"parameter": len(masked)} if masked else {})


_SCOPE_FIELDS = ("trigger", "source", "user_id", "agent_id", "session_id", "authority")
"""The fields of a scope that the decorator may set."""
