"""`@aver.audit(chain=...)`: every call of a function is sealed, before as an intent and after as an outcome.

    @aver.audit(chain="shop.refunds")
    def refund(order: str, amount: int) -> str: ...

For functions, methods, class and static methods, coroutines, generators and async generators. What is decorated stays
what it was: its kind, its name, its signature, its exceptions. A generator's intent is sealed when its body begins; one
that is never started leaves no record, because nothing ran.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from aver.capsule.block import BLOCK, RESERVED_CHAINS, check_chain_name
from aver.capsule.mask import NOTE, note
from aver.capsule.model import Authority, Capsule, Context, Reasoning
from aver.capsule.validate import validate
from aver.errors import BadInput
from aver.ledger.audit.recorder import recorder_of
from aver.ledger.audit.render import clean_text, rendered, type_name
from aver.ledger.audit.run import OnFailure, Plan, Run
from aver.ledger.audit.scope import Scope, check_scope, scope_here
from aver.values import dataclass

if TYPE_CHECKING:
    from aver.ledger.aio import AsyncLedger
    from aver.ledger.ledger import Ledger

__all__ = ["Audit", "audit"]

Audited = TypeVar("Audited", bound=Callable[..., Any] | classmethod | staticmethod)  # type: ignore[type-arg]
Arguments = Mapping[str, Any]

RESULT = "return"
"""What `leave_out` and `mask` call the result, as annotations do; no parameter can be called so."""

_OURS = (BLOCK, NOTE, "audit")


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

    `chain` is a chain's name, or makes one of the arguments. `ledger` is where to record; without it the one of
    `audit_scope`, or the default one. `reasoning` is known beforehand and goes into the intent; it too may be made of
    the arguments. Parameters in `leave_out` are not recorded, those in `mask` are recorded as masked; `"return"` names
    the result. With `on_failure="log"` a call goes on when it cannot be recorded, and a `dropped` record tells later.
    The rest are fields of the record; what is not given is taken from `audit_scope` and from the call around this one.
    """
    if on_failure not in ("raise", "log"):
        raise BadInput(f"on_failure is 'raise' or 'log', not {on_failure!r}")
    if isinstance(chain, str) and check_chain_name(chain) in RESERVED_CHAINS:
        raise BadInput(f"the chain {chain!r} is written by the ledger itself")
    ours = [name for name in _OURS if name in (environment or {})]
    if ours:
        raise BadInput(f"the environment's {ours[0]!r} is written by Aver itself", advice="choose another name")
    scope = Scope(
        trigger=trigger, source=source, user_id=user_id, agent_id=agent_id, session_id=session_id, authority=authority
    )
    check_scope(scope)
    shown = rendered(dict(environment or {}))
    known = reasoning if isinstance(reasoning, Reasoning) else Reasoning()
    validate(Capsule(type=type, domain=domain, context=Context(environment=shown), reasoning=known))
    settings = _Settings(
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
        return cast(Audited, _decorated(function, settings))

    return decorate


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    chain: str | Callable[[Arguments], str]
    ledger: Ledger | AsyncLedger | None
    type: str
    domain: str
    request: str
    scope: Scope
    reasoning: Reasoning | Callable[[Arguments], Reasoning]
    environment: Mapping[str, Any]
    leave_out: frozenset[str]
    mask: frozenset[str]
    on_failure: OnFailure


def _decorated(function: Any, settings: _Settings) -> Any:
    from aver.ledger.audit import wrapping

    if isinstance(function, classmethod | staticmethod):
        return type(function)(_decorated(function.__func__, settings))
    if isinstance(function, property) or inspect.isclass(function) or not callable(function):
        raise BadInput(
            f"@aver.audit decorates functions and methods, not a {type(function).__name__}",
            advice="decorate the getter of a property, the methods of a class",
        )
    return wrapping.wrapped(function, Audit(function, settings))


class Audit:
    """How one function is audited: begins a run for each of its calls."""

    def __init__(self, function: Callable[..., Any], settings: _Settings) -> None:
        self._settings = settings
        part = function if isinstance(function, functools.partial) else functools.partial(function)
        self._fixed = part.args, part.keywords
        self._signature = _signature(part.func)
        module = getattr(function, "__module__", None)
        name = getattr(function, "__qualname__", type_name(type(function)))
        self.name = clean_text(str(name))
        self._function = clean_text(f"{module}.{name}" if module else str(name))
        known = {RESULT} if self._signature is None else {RESULT, *self._signature.parameters}
        unknown = (settings.leave_out | settings.mask) - known
        if unknown and self._signature is not None:
            raise BadInput(f"{self.name} has no parameter {min(unknown)!r} to leave out or to mask")

    def begin(self, form: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
        """A run of the function with these arguments. Nothing is sealed yet."""
        settings, here = self._settings, scope_here()
        given = self._bound(args, kwargs)
        chain = settings.chain if isinstance(settings.chain, str) else settings.chain(given)
        reasoning = settings.reasoning if isinstance(settings.reasoning, Reasoning) else settings.reasoning(given)
        arguments = {
            clean_text(name): self._shown(name, value)
            for name, value in given.items()
            if name not in settings.leave_out
        }
        own = {name: value for name in _OWN if (value := getattr(settings.scope, name)) is not None}
        facts = {"function": self._function, "form": form, "arguments": arguments}
        left_out = sorted(settings.leave_out)
        return Run(
            Plan(
                chain=chain,
                name=self.name,
                recorder=recorder_of(settings.ledger or here.ledger),
                on_failure=settings.on_failure,
                scope=replace(here, **own),
                type=settings.type,
                domain=settings.domain,
                request=settings.request,
                reasoning=reasoning,
                facts={
                    "audit": {**facts, "left_out": left_out} if left_out else facts,
                    NOTE: self._masked_in(given),
                },
                environment={"audit": {"function": self._function, "form": form}, **settings.environment},
            )
        )

    def result(self, value: Any) -> Any:
        """The result as it is recorded: left out, masked, or rendered."""
        return None if RESULT in self._settings.leave_out else self._shown(RESULT, value)

    @property
    def shows_result(self) -> bool:
        return RESULT not in self._settings.leave_out | self._settings.mask

    def result_facts(self) -> dict[str, Any]:
        """What an outcome notes of a masked result."""
        return {NOTE: self._masked_in({RESULT})}

    def _shown(self, name: str, value: Any) -> Any:
        return "[masked:parameter]" if name in self._settings.mask else rendered(value)

    def _masked_in(self, names: Collection[str]) -> dict[str, Any]:
        masked = self._settings.mask.intersection(names) - self._settings.leave_out
        return note({"parameter": len(masked)} if masked else {})

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if self._signature is None:
            return {"args": args, "kwargs": kwargs}
        fixed, named = self._fixed
        try:
            bound = self._signature.bind(*fixed, *args, **{**named, **kwargs})
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        bound.apply_defaults()
        return bound.arguments


_OWN = ("trigger", "source", "user_id", "agent_id", "session_id", "authority")
"""What a decorator may set of a scope."""


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # Some that are written in C have none.
