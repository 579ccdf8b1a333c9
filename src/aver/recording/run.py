"""One audited call from its intent to its outcome. The body is a function, a stream or a request.

The order is always: seal the intent, run the body, seal the outcome, give the caller the result or exception.

* The intent cannot be sealed: the body does not run, and `NotRecorded` is raised (`ran` false). With
  `on_failure="log"` the loss is noted, and the body runs.
* The outcome cannot be sealed, and the body returned: `NotRecorded` is raised (`ran` true, with the `result`). With
  `"log"` the loss is noted, and the result is returned.
* The outcome cannot be sealed, and the body raised: the loss is noted, and the body's exception is raised unchanged.
  The same applies to cancellation, `KeyboardInterrupt`, `SystemExit` and `GeneratorExit`.

An intent without an outcome is a call that is still running, or that a crash ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from aver.capsule.aver_block import RESERVED_CHAINS, check_chain_name
from aver.capsule.model import Reasoning
from aver.capsule.sealed import Sealed
from aver.clock import new_id
from aver.errors import AverError, NotRecorded, Refused
from aver.fast_dataclass import dataclass
from aver.ledger.ledger import FIRST_PAGE, Ledger
from aver.recording import drafts
from aver.recording.call import AuditedCall
from aver.recording.drafts import AuditSubject, CallEnding
from aver.recording.recorder import PendingRecord, Recorder
from aver.recording.render import exception_text, type_name
from aver.recording.scope import AuditScope, ScopeContext

OnFailure = Literal["raise", "log"]

CAUSES_MAX = 5
"""Most causes of an exception that are recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """The parts of a call's records that are known before it runs. The summary calls it `name`."""

    chain: str
    name: str
    recorder: Recorder
    on_failure: OnFailure
    scope: AuditScope
    type: str = "tool"
    domain: str = "agents"
    request: str = ""
    reasoning: Reasoning = field(default_factory=Reasoning)
    facts: Mapping[str, Any]
    environment: Mapping[str, Any]


class CallRun:
    """A call that is running and being recorded."""

    def __init__(self, plan: CallPlan) -> None:
        correlation = plan.scope.correlation_id or new_id()
        chain = check_chain_name(plan.chain)
        self.call = AuditedCall(plan.name, chain, correlation, self._seal_reasoning, self._seal_reasoning_async)
        self._recorder = plan.recorder
        self._on_failure = plan.on_failure
        scope = replace(plan.scope, correlation_id=correlation)
        self._inner = replace(scope, parent_id=self.call.id, call=self.call)
        self._subject = AuditSubject(
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

    def make_current(self) -> ScopeContext:
        """Within the context this is the current call. A stream enters it for each step, not across a `yield`."""
        return ScopeContext(self._inner)

    def elapsed_ms(self) -> int:
        return round((time.monotonic() - self._began) * 1000)

    # --- the three steps

    def seal_intent(self) -> None:
        """Seal the intent. The body may run only if this returns."""
        entry = self._pending_intent()
        try:
            self._recorder.seal(entry)
        except Exception as error:  # noqa: BLE001 - any failure means that it was not recorded
            self._handle_unsealed(entry, error)
        except BaseException as error:
            self._recorder.note_loss(entry, error)
            raise
        self._began = time.monotonic()

    def seal_returned(self, ending: CallEnding, result: Any) -> None:
        """Seal the outcome of a body that returned."""
        entry = self._pending_outcome(ending)
        try:
            self._recorder.seal(entry)
        except Exception as error:  # noqa: BLE001
            self._handle_unsealed(entry, error, result)
        except BaseException as error:
            self._recorder.note_loss(entry, error)
            raise

    def seal_raised(self, ending: CallEnding) -> None:
        """Seal the outcome of a body that raised. A failure is noted, not raised."""
        self._recorder.seal_at_close(self._pending_outcome(ending))

    # --- the same for coroutines

    async def seal_intent_async(self) -> None:
        """Seal the intent. A cancellation meanwhile is recorded as the reason why the body did not run."""
        import asyncio

        entry = self._pending_intent()
        try:
            await self._recorder.seal_async(entry)
        except (asyncio.CancelledError, GeneratorExit) as error:
            ending = replace(ending_from_error(error, 0), status="blocked", words="was cancelled before it began")
            if isinstance(error, GeneratorExit):
                self.seal_raised(ending)  # A coroutine that is being closed must not await any more.
            else:
                await self.seal_raised_async(ending)
            raise
        except Exception as error:  # noqa: BLE001
            self._handle_unsealed(entry, error)
        self._began = time.monotonic()

    async def seal_returned_async(self, ending: CallEnding, result: Any) -> None:
        """Seal the outcome of a body that returned."""
        entry = self._pending_outcome(ending)
        try:
            await self._recorder.seal_async(entry)
        except Exception as error:  # noqa: BLE001
            self._handle_unsealed(entry, error, result)

    async def seal_raised_async(self, ending: CallEnding) -> None:
        """Seal the outcome of a body that raised. A failure is noted, not raised."""
        entry = self._pending_outcome(ending)
        try:
            await self._recorder.seal_async(entry)
        except Exception as error:  # noqa: BLE001
            self._recorder.note_loss(entry, error)

    # --- shared

    def _pending_intent(self) -> PendingRecord:
        return PendingRecord(self.call.chain, "audit.intent", lambda: drafts.build_intent(self._subject))

    def _pending_outcome(self, ending: CallEnding) -> PendingRecord:
        added, reasoning = self.call._close(), self.call.sealed_reasoning
        return PendingRecord(
            self.call.chain,
            "audit.outcome",
            lambda: drafts.build_outcome(self._subject, ending, added, reasoning_id=reasoning),
        )

    def _handle_unsealed(self, entry: PendingRecord, error: Exception, result: Any = None) -> None:
        """Raise `NotRecorded` for a record that could not be sealed, or with `on_failure="log"` note the loss."""
        if self._on_failure == "log":
            self._recorder.note_loss(entry, error)
            return
        words = error.message if isinstance(error, AverError) else f"{type_name(type(error))}: {exception_text(error)}"
        if entry.kind == "audit.intent":
            raise NotRecorded(
                f"{self._subject.name} was not run, because its intent could not be sealed: {words}",
                ran=False,
                advice="repair the ledger and call again",
            ) from error
        if entry.kind == "audit.outcome":
            raise NotRecorded(
                f"{self._subject.name} ran, but its outcome could not be sealed: {words}",
                ran=True,
                result=result,
                advice="do not call it again: it has already run; its result is in .result",
            ) from error
        raise NotRecorded(f"the reasoning could not be sealed: {words}", ran=False) from error

    def _pending_reasoning(self, reasoning: Reasoning, identifier: str) -> PendingRecord:
        return PendingRecord(
            self.call.chain, "audit.reasoning", lambda: drafts.build_reasoning(self._subject, reasoning, identifier)
        )

    def _seal_reasoning(self, reasoning: Reasoning, identifier: str) -> None:
        entry = self._pending_reasoning(reasoning, identifier)
        try:
            self._recorder.seal(entry)
        except Exception as error:  # noqa: BLE001
            self._handle_unsealed(entry, error)

    async def _seal_reasoning_async(self, reasoning: Reasoning, identifier: str) -> None:
        entry = self._pending_reasoning(reasoning, identifier)
        try:
            await self._recorder.seal_async(entry)
        except Exception as error:  # noqa: BLE001
            self._handle_unsealed(entry, error)


# --- the ending


def ending_from_error(error: BaseException, duration_ms: int, **more: Any) -> CallEnding:
    """The ending of a body that raised: `blocked` if not allowed, `partial` if closed, otherwise `failure`."""
    kind = type_name(type(error))
    text = exception_text(error)
    if isinstance(error, GeneratorExit):
        return CallEnding(status="partial", words="was closed before its end", duration_ms=duration_ms, **more)
    words = f"{kind}: {text}" if text else kind
    raised: BaseException = error
    causes: list[dict[str, str]] = []
    while len(causes) < CAUSES_MAX:
        before = raised.__cause__ or (None if raised.__suppress_context__ else raised.__context__)
        if before is None:
            break
        causes.append({"exception": type_name(type(before)), "text": exception_text(before)})
        raised = before
    return CallEnding(
        status="blocked" if isinstance(error, Refused | PermissionError) else "failure",
        words=f"raised {words}",
        error=words,
        duration_ms=duration_ms,
        **{"result": {"exception": kind, "text": text, "causes": causes}, **more},
    )


def unfinished_intents(ledger: Ledger, chain: str | None = None) -> Iterator[Sealed]:
    """The `audit.intent` records whose `audit.outcome` is not in the chain, oldest first.

    Without `chain`, of all chains that were made here. An import is looked through only if it is named.

    Each is a call that is running now, or whose process ended during it; the ledger cannot say what it did.
    """
    return reversed(list(find_unfinished(ledger, chain)))


def find_unfinished(ledger: Ledger, chain: str | None = None, *, limit: int | None = None) -> Iterator[Sealed]:
    """Like `unfinished_intents`, newest first, and at most `limit`. Reads no further back than that takes.

    The column `kind` finds the records, and their content decides. Only the outcomes of calls that were open at the
    same time are kept in memory.
    """
    if chain is not None:
        ledger.read(chain)  # Raises `NotFound` for an unknown chain; `find_newest` would give nothing.
    imported = {row.name for row in ledger.store.chains(ledger.tenant) if row.frozen and row.name != chain}
    finished: set[tuple[str, str]] = set()
    left = sys.maxsize if limit is None else limit
    for record in ledger.find_newest(chain=chain, kind_group="audit", first_page=max(1, min(left, FIRST_PAGE))):
        name = str(record.chain)
        if name in imported or name in RESERVED_CHAINS:
            continue
        try:
            kind, content = record.kind, record.to_dict()
            if kind == "audit.outcome":
                finished.add((name, str(content["parent_id"])))
            elif kind == "audit.intent":
                # An outcome comes after its intent, so it was met before it here.
                if (name, record.id) in finished:
                    finished.discard((name, record.id))
                else:
                    yield record
                    left -= 1
                    if left <= 0:
                        return
        except (AverError, KeyError, TypeError, AttributeError):
            continue  # It cannot be read; a verdict reports that.
