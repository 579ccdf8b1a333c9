"""What every adapter does with a tool call: ask the gate before it, record what came of it after.

    calls = ToolCalls(run, library="langchain")
    result = calls.around("read_file", {"path": "notes.txt"}, "call_1", execute=read, refuse=tell_the_model)

* A call that the gate does not let through is not made; `refuse` gets the reason and answers in its place. The gate has
  sealed its decision by then. Where a human must approve, `wait` is for how many seconds to wait for that; asked again
  after the approval, the very same call goes through.
* A call that cannot be judged, because its arguments are not JSON, is refused, too, and recorded as one that failed.
* What the tool returns is recorded by its hash, what it raises by type and text, each once, with how long it took.
* What cannot be recorded raises `NotRecorded`, and from then on nothing is let through: a run with a gap must not go on
  as if it were whole.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from aver.actions.runtime import AgentRuntime
from aver.capsule.canonical import canonical_json
from aver.capsule.masking.mask import mask
from aver.errors import BadInput, NotRecorded, Refused
from aver.recording.render import clean_text, exception_text, render_value, type_name

__all__ = ["Failure", "GatedCall", "ToolCallGate"]

ACTION_TYPE = "tool_call"

NAME_MAX = 256
"""Characters of a tool's name. Models make names up; a longer one is no tool's."""

ERROR_MAX = 4096
"""Characters of an exception's text that are recorded: its beginning tells what went wrong."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed: the exception's type, as far as the library tells it, and its text."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        return cls(type_name(type(error)), exception_text(error))


@dataclass(frozen=True, slots=True)
class GatedCall:
    """A call that the gate was asked about. With a `refusal`, which says why, it must not be made."""

    tool: str
    call_id: str
    arguments: Any
    gate_id: str | None
    refusal: str
    started: float

    @property
    def elapsed_ms(self) -> int:
        return round((time.monotonic() - self.started) * 1000)


class ToolCallGate:
    """The tool calls of one run, whichever library makes them. Safe for threads and tasks."""

    def __init__(self, run: AgentRuntime, *, library: str, wait: float = 0.0) -> None:
        self._run = run
        self._library = library
        self._wait = wait
        self._gap: NotRecorded | None = None

    # --- both, around a call

    def run_gated(
        self,
        tool: str,
        arguments: Any,
        call_id: str,
        *,
        execute: Callable[[], T],
        refuse: Callable[[str], T],
        failure_in: Callable[[T], Failure | None] = lambda _: None,
        output_of: Callable[[T], Any] = lambda result: result,
    ) -> T:
        """Make the call if the gate lets it through. `failure_in` finds an error that came back as a result."""
        call = self.ask(tool, arguments, call_id)
        if call.refusal:
            return refuse(call.refusal)
        try:
            result = execute()
        except BaseException as error:
            self.failed(call, Failure.of(error))
            raise
        self.ended(call, output_of(result), failure_in(result))
        return result

    async def run_gated_async(
        self,
        tool: str,
        arguments: Any,
        call_id: str,
        *,
        execute: Callable[[], Awaitable[T]],
        refuse: Callable[[str], T],
        failure_in: Callable[[T], Failure | None] = lambda _: None,
        output_of: Callable[[T], Any] = lambda result: result,
    ) -> T:
        """`around` for a call that is awaited. The gate and the ledger work in a thread, so that the loop goes on."""
        call = await asyncio.to_thread(self.ask, tool, arguments, call_id)
        if call.refusal:
            return refuse(call.refusal)
        try:
            result = await execute()
        except BaseException as error:
            self.failed(call, Failure.of(error))  # Not in a thread: a task that was cancelled may not await.
            raise
        await asyncio.to_thread(self.ended, call, output_of(result), failure_in(result))
        return result

    # --- before

    def ask(self, tool: str, arguments: Any, call_id: str) -> GatedCall:
        """Ask the gate. Its decision is sealed when this returns; what cannot be sealed raises."""
        if self._gap is not None:
            raise NotRecorded(
                "an earlier call could not be recorded", ran=False, advice="open a new run"
            ) from self._gap
        if self._run.last_capsule is not None:
            raise Refused("SEALED", f"the run {self._run.run_id} is sealed", advice="open a new run")
        started = time.monotonic()
        try:
            _check_call(tool, arguments)
            judged = copy.deepcopy(dict(arguments))
            answer = self._run.gate(
                action_type=ACTION_TYPE, description=_description(tool), tool=tool, arguments=judged, wait=self._wait
            )
        except BadInput as error:
            name = clean_text(tool[:NAME_MAX])
            return self._record_unreadable(GatedCall(name, call_id, render_value(arguments), None, str(error), started))
        refusal = "" if answer["allows"] else f"Not allowed, and not done: {answer['reason'] or answer['decision']}"
        # A tool may change what it is given; what is recorded is what was judged.
        return GatedCall(tool, call_id, judged, answer["gate_id"], refusal, time.monotonic())

    def _record_unreadable(self, call: GatedCall) -> GatedCall:
        self.failed(call, Failure("BadInput", call.refusal))
        return call

    # --- after

    def ended(self, call: GatedCall, output: Any, failure: Failure | None = None) -> None:
        """Record a call that came to its end, well or with a failure that the library caught."""
        if failure is None:
            self._record(call, _to_json_value(output), {}, result=output)
        else:
            self.failed(call, failure)

    def failed(self, call: GatedCall, failure: Failure) -> None:
        """Record a call that failed."""
        text = mask(clean_text(failure.text)).value[:ERROR_MAX]  # In this order: half a secret would not be masked.
        self._record(call, f"{failure.kind}: {text}", {"error": {"type": failure.kind, "text": text}})

    def _record(self, call: GatedCall, output: Any, more: Mapping[str, Any], result: Any = None) -> None:
        metadata = {"tool_name": call.tool, "tool_call_id": clean_text(call.call_id), "library": self._library, **more}
        try:
            self._run.record_simple(
                ACTION_TYPE,
                _description(call.tool),
                call.arguments,
                output,
                success="error" not in more,
                duration_ms=call.elapsed_ms,
                metadata=metadata,
                gate_id=call.gate_id,
            )
        except Exception as error:
            words = f"the call of {call.tool} could not be recorded: {exception_text(error)}"
            self._gap = NotRecorded(words, ran=not call.refusal, result=result)
            raise self._gap from error


def _check_call(tool: str, arguments: Any) -> None:
    """`BadInput` where the gate could not tell what is called with what."""
    if len(tool) > NAME_MAX:
        raise BadInput(f"the name of a tool has at most {NAME_MAX} characters")
    if not isinstance(arguments, Mapping):
        raise BadInput("the arguments of a call must be an object")
    canonical_json({"tool": tool, "arguments": dict(arguments)})


def _description(tool: str) -> str:
    return f"call {tool}"


def _to_json_value(value: Any) -> Any:
    """The value itself where it is JSON; otherwise what can be read of it."""
    try:
        canonical_json({"value": value})
    except BadInput:
        return render_value(value)
    return value
