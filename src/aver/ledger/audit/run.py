"""One audited call from its intent to its outcome, whatever is called: a function, a stream, a request.

In this order, always: the intent is sealed; the body runs; the outcome is sealed; the caller gets result or exception.

* The intent cannot be sealed: the body does not run and `NotRecorded` is raised (`ran` false). With
  `on_failure="log"` the loss is noted and the body runs.
* The outcome cannot be sealed after a body that returned: `NotRecorded` is raised (`ran` true, `result` the result).
  With `"log"` the loss is noted and the result returned.
* The outcome cannot be sealed after a body that raised: the loss is noted, and the body's exception goes on,
  unchanged. So do cancellation, `KeyboardInterrupt`, `SystemExit` and `GeneratorExit`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from aver.capsule.block import check_chain_name
from aver.capsule.model import Reasoning
from aver.clock import new_id
from aver.errors import AverError, NotRecorded, Refused
from aver.ledger.audit import drafts
from aver.ledger.audit.call import AuditedCall
from aver.ledger.audit.drafts import Ending, Subject
from aver.ledger.audit.recorder import Entry, Recorder
from aver.ledger.audit.render import exception_text, type_name
from aver.ledger.audit.scope import Entered, Scope
from aver.values import dataclass

__all__ = ["OnFailure", "Plan", "Run", "failure"]

OnFailure = Literal["raise", "log"]

CAUSES = 5
"""How far back the causes of an exception are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the records of a call say besides what it did. `name` is what it is called in a summary."""

    chain: str
    name: str
    recorder: Recorder
    on_failure: OnFailure
    scope: Scope
    type: str = "tool"
    domain: str = "agents"
    request: str = ""
    reasoning: Reasoning = field(default_factory=Reasoning)
    facts: Mapping[str, Any]
    environment: Mapping[str, Any]


class Run:
    """A call that is being made and recorded."""

    def __init__(self, plan: Plan) -> None:
        correlation = plan.scope.correlation_id or new_id()
        chain = check_chain_name(plan.chain)
        self.call = AuditedCall(plan.name, chain, correlation, self._seal_reasoning, self._seal_reasoning_async)
        self._recorder = plan.recorder
        self._on_failure = plan.on_failure
        scope = replace(plan.scope, correlation_id=correlation)
        self._inner = replace(scope, parent_id=self.call.id, call=self.call)
        self._subject = Subject(
            id=self.call.id,
            name=plan.name,
            type=plan.type,
            domain=plan.domain,
            request=plan.request,
            scope=scope,
            reasoning=plan.reasoning,
            facts=plan.facts,
            environment=plan.environment,
        )
        self._began = time.monotonic()

    def running(self) -> Entered:
        """Within the context this is the current call. For a stream, around each step and not across a yield."""
        return Entered(self._inner)

    def elapsed_ms(self) -> int:
        return round((time.monotonic() - self._began) * 1000)

    # --- the three steps, for plain code

    def open(self) -> None:
        """Seal the intent. The body may run only if this returns."""
        entry = self._intent()
        try:
            self._recorder.seal(entry)
        except Exception as error:  # noqa: BLE001 - whatever it is, it was not recorded
            self._not_opened(entry, error)
        except BaseException as error:
            self._recorder.lose(entry, error)
            raise
        self._began = time.monotonic()

    def returned(self, ending: Ending, result: Any) -> None:
        """Seal the outcome of a body that returned."""
        entry = self._outcome(ending)
        try:
            self._recorder.seal(entry)
        except Exception as error:  # noqa: BLE001
            self._not_closed(entry, error, result)
        except BaseException as error:
            self._recorder.lose(entry, error)
            raise

    def raised(self, ending: Ending) -> None:
        """Seal the outcome of a body whose exception goes on; a failure is noted and not raised."""
        self._recorder.seal_at_close(self._outcome(ending))

    # --- the same for coroutines

    async def open_async(self) -> None:
        """Seal the intent. A cancellation that comes meanwhile is recorded as what kept the body from running."""
        import asyncio

        entry = self._intent()
        try:
            await self._recorder.seal_async(entry)
        except asyncio.CancelledError as error:
            await self.raised_async(_kept_from_running(error))
            raise
        except GeneratorExit as error:
            self.raised(_kept_from_running(error))
            raise
        except Exception as error:  # noqa: BLE001
            self._not_opened(entry, error)
        self._began = time.monotonic()

    async def returned_async(self, ending: Ending, result: Any) -> None:
        """Seal the outcome of a body that returned."""
        entry = self._outcome(ending)
        try:
            await self._recorder.seal_async(entry)
        except Exception as error:  # noqa: BLE001
            self._not_closed(entry, error, result)

    async def raised_async(self, ending: Ending) -> None:
        """Seal the outcome of a body whose exception goes on; a failure is noted and not raised."""
        entry = self._outcome(ending)
        try:
            await self._recorder.seal_async(entry)
        except Exception as error:  # noqa: BLE001
            self._recorder.lose(entry, error)

    # --- what both do

    def _intent(self) -> Entry:
        return Entry(self.call.chain, "audit.intent", lambda: drafts.intent(self._subject))

    def _outcome(self, ending: Ending) -> Entry:
        added, reasoning = self.call._end(), self.call.sealed_reasoning
        return Entry(
            self.call.chain,
            "audit.outcome",
            lambda: drafts.outcome(self._subject, ending, added, reasoning_id=reasoning),
        )

    def _not_opened(self, entry: Entry, error: Exception) -> None:
        if self._on_failure == "raise":
            raise NotRecorded(
                f"{self._subject.name} was not run, because its intent could not be sealed: {_why(error)}",
                ran=False,
                advice="repair the ledger and call again",
            ) from error
        self._recorder.lose(entry, error)

    def _not_closed(self, entry: Entry, error: Exception, result: Any) -> None:
        if self._on_failure == "raise":
            raise NotRecorded(
                f"{self._subject.name} ran, but its outcome could not be sealed: {_why(error)}",
                ran=True,
                result=result,
                advice="do not just call again: what it does was done; its result is in .result",
            ) from error
        self._recorder.lose(entry, error)

    def _reasoning(self, reasoning: Reasoning, identifier: str) -> Entry:
        return Entry(self.call.chain, "audit.reasoning", lambda: drafts.reasoned(self._subject, reasoning, identifier))

    def _seal_reasoning(self, reasoning: Reasoning, identifier: str) -> None:
        entry = self._reasoning(reasoning, identifier)
        try:
            self._recorder.seal(entry)
        except Exception as error:  # noqa: BLE001
            self._reasoning_lost(entry, error)

    async def _seal_reasoning_async(self, reasoning: Reasoning, identifier: str) -> None:
        entry = self._reasoning(reasoning, identifier)
        try:
            await self._recorder.seal_async(entry)
        except Exception as error:  # noqa: BLE001
            self._reasoning_lost(entry, error)

    def _reasoning_lost(self, entry: Entry, error: Exception) -> None:
        if self._on_failure == "raise":
            raise NotRecorded(f"the reasoning could not be sealed: {_why(error)}", ran=False) from error
        self._recorder.lose(entry, error)


def _why(error: Exception) -> str:
    return error.message if isinstance(error, AverError) else f"{type_name(type(error))}: {exception_text(error)}"


# --- how it ended


def failure(error: BaseException, duration_ms: int, **more: Any) -> Ending:
    """The ending of a body that raised: `blocked` if it was not allowed, `partial` if it was closed, else `failure`."""
    kind = type_name(type(error))
    text = exception_text(error)
    if isinstance(error, GeneratorExit):
        return Ending(status="partial", words="was closed before its end", duration_ms=duration_ms, **more)
    words = f"{kind}: {text}" if text else kind
    return Ending(
        status="blocked" if isinstance(error, Refused | PermissionError) else "failure",
        words=f"raised {words}",
        error=words,
        duration_ms=duration_ms,
        **{"result": {"exception": kind, "text": text, "causes": _causes(error)}, **more},
    )


def _kept_from_running(error: BaseException) -> Ending:
    return replace(failure(error, 0), status="blocked", words="was cancelled before it began")


def _causes(error: BaseException) -> list[dict[str, str]]:
    causes: list[dict[str, str]] = []
    while len(causes) < CAUSES:
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is None:
            break
        causes.append({"exception": type_name(type(before)), "text": exception_text(before)})
        error = before
    return causes
