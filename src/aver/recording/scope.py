"""The scope of an audited call: who acts for whom, and which call it is part of.

`contextvars` carry the scope into tasks and `asyncio.to_thread` automatically. `carry` takes it into the threads of a
pool.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Authority, Capsule, Context, Trigger
from aver.capsule.validate import validate
from aver.errors import BadInput
from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from aver.ledger.async_ledger import AsyncLedger
    from aver.ledger.ledger import Ledger
    from aver.recording.call import AuditedCall

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Default = TypeVar("Default")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScope:
    """Defaults for every call that begins in this scope."""

    correlation_id: str | None = None
    parent_id: str | None = None
    trigger: str | None = None
    source: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    authority: Authority | None = None
    ledger: Ledger | AsyncLedger | None = None
    call: AuditedCall | None = None


_EMPTY_SCOPE = AuditScope()
_CURRENT_SCOPE: contextvars.ContextVar[AuditScope] = contextvars.ContextVar("aver_audit_scope", default=_EMPTY_SCOPE)
_SETTABLE = {field.name for field in fields(AuditScope)} - {"call"}


def current_scope() -> AuditScope:
    """The scope in which the caller runs."""
    return _CURRENT_SCOPE.get()


class ScopeContext:
    """Within the context, calls begin in this scope. A class, so that exceptions keep their traceback."""

    __slots__ = ("_scope", "_token")

    def __init__(self, scope: AuditScope) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        self._token = _CURRENT_SCOPE.set(self._scope)

    def __exit__(self, *_: object) -> None:
        try:
            _CURRENT_SCOPE.reset(self._token)
        except ValueError:
            pass  # A generator that is closed from another context has nothing to restore there.


@contextmanager
def audit_scope(**given: Any) -> Iterator[None]:
    """Within the context, audited calls have these values in their records.

    `correlation_id`, `parent_id`, `trigger` (its type), `source`, `user_id`, `agent_id`, `session_id`, `authority` (an
    `aver.Authority`), `ledger`. Values of a function's own decorator have precedence.
    """
    unknown = given.keys() - _SETTABLE
    if unknown:
        raise BadInput(f"audit_scope knows no {min(unknown)!r}", advice=f"known are {', '.join(sorted(_SETTABLE))}")
    scope = replace(current_scope(), **given)
    check_scope(scope)
    with ScopeContext(scope):
        yield


def check_scope(scope: AuditScope) -> None:
    """Raise `BadInput` for values that no record can hold, now and not when a call is recorded."""
    draft = Capsule(
        type="tool",
        parent_id=scope.parent_id,
        trigger=Trigger(
            type=scope.trigger or "system",
            source=scope.source or "",
            correlation_id=scope.correlation_id,
            user_id=scope.user_id,
        ),
        context=Context(agent_id=scope.agent_id or "", session_id=scope.session_id),
        authority=scope.authority or Authority(),
    )
    validate(draft)
    canonical_bytes(draft.to_dict())


@overload
def current() -> AuditedCall: ...
@overload
def current(default: Default) -> AuditedCall | Default: ...


def current(default: Any = ...) -> Any:
    """The audited call that is running here, to which code adds reasoning, options, tool calls and metrics.

    Outside an audited call it raises `BadInput`, because added details would be lost, or returns the default:
    `aver.current(None)`.
    """
    call = current_scope().call
    if call is not None:
        return call
    if default is not ...:
        return default
    raise BadInput(
        "aver.current() was called outside an audited call",
        advice="decorate the function with @aver.audit(chain=...); in a thread pool, submit aver.carry(function)",
    )


def carry(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Bind a function to the current scope: its audited calls belong to the call that runs here.

    Use it for threads and pools: `pool.submit(aver.carry(work), item)`. The result may be called many times, and from
    several threads at once.
    """
    here = contextvars.copy_context()

    @functools.wraps(function)
    def carried(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        return here.copy().run(function, *args, **options)

    return carried
