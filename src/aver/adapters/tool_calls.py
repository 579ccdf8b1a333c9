"""The common part of all adapters: ask the gate before a tool call, and record the result after it.

    calls = ToolCallGate(run, library="langchain")
    result = calls.run_gated("read_file", {"path": "notes.txt"}, "call_1", execute=read, refuse=tell_the_model)

* If the gate refuses a call, the call does not run. `refuse` gets the reason and returns the result instead. The gate
  has then sealed its decision. `wait` is the number of seconds to wait for a human approval. After the approval, the
  same call passes when the agent repeats it.
* If the arguments are not JSON, the gate cannot judge the call. Aver refuses it and records it as failed.
* The gate knows an own tool by the declaration of its function (`aver.tool`), which the adapter finds and passes on.
* With `enforce=False`, or with `mode = "observe"` in the settings, no call is held back. Aver judges and records all.
* A call that stops to wait for a person by the means of the library (`waits`) is recorded as waiting, not as failed.
  When the library makes it again after the answer, the record of that call names the first.
* Aver records the output of a tool by its hash, and an exception by its type and text. It records each call once, with
  its duration.
* If Aver cannot record a call, it raises `NotRecorded` and refuses all further calls, because the run has a gap.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from aver.capsule.canonical import canonical_json
from aver.capsule.masking.mask import mask
from aver.errors import BadInput, NotRecorded
from aver.gate.decision import Decision
from aver.gate.decision_record import CallerAnswer
from aver.gate.own_tools import find_declared_effects
from aver.gate.settings import GateMode
from aver.recording.render import clean_text, exception_text, render_value, type_name

ACTION_TYPE = "tool_call"

NAME_MAX = 256
"""The maximum length of a tool name. Models invent names; no real tool has a longer one."""

ERROR_MAX = 4096
"""How many characters of the text of an exception Aver records. The beginning has the important part."""

Exceptions = tuple[type[BaseException], ...]
T = TypeVar("T")


class GatedRun(Protocol):
    """A run that gates and records calls: an `AgentRuntime`, or `session.executor.under(proposal)` of a trace."""

    @property
    def mode(self) -> GateMode: ...

    def gate(
        self,
        *,
        action_type: str,
        description: str,
        tool: str,
        arguments: Mapping[str, Any],
        declared: tuple[str, ...] | None,
        mode: GateMode,
        wait: float,
        answer_with: Callable[[Decision], CallerAnswer | None],
    ) -> dict[str, Any]:
        """Ask the gate. The answer has `allows`, `decision`, `reason` and `gate_id`."""

    def record_simple(
        self,
        action_type: str,
        instruction: str,
        inputs: Any,
        outputs: Any,
        *,
        success: bool,
        duration_ms: int,
        metadata: Mapping[str, Any],
        gate_id: str | None,
    ) -> str:
        """Record the end of a call. Returns the hash of its record."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed: the type of the exception, if the library reports it, and its text."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        return cls(type_name(type(error)), exception_text(error))


@dataclass(frozen=True, slots=True)
class GatedCall:
    """A call that the gate has judged. If `refusal` is not empty, it is the reason, and the call must not run."""

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
    """Gates and records the tool calls of one run, for any library. Safe for threads and tasks."""

    def __init__(
        self, run: GatedRun, *, library: str, wait: float = 0.0, enforce: bool = True, waits: Exceptions = ()
    ) -> None:
        """`waits` are the exceptions by which a tool of this library waits for a person."""
        self._run = run
        self._library = library
        self._waits = waits
        self._waiting: set[str] = set()
        self._wait = wait
        self._mode: GateMode | None = None if enforce else "observe"
        self._gap: NotRecorded | None = None

    @property
    def mode(self) -> GateMode:
        """The mode of the gate for these calls."""
        return self._mode or self._run.mode

    # --- ask, run and record

    def run_gated(
        self,
        tool: str,
        arguments: Any,
        call_id: str,
        *,
        function: object = None,
        execute: Callable[[], T],
        refuse: Callable[[str], T],
        failure_in: Callable[[T], Failure | None] = lambda _: None,
        output_of: Callable[[T], Any] = lambda result: result,
    ) -> T:
        """Run the call if the gate allows it, and record the result.

        `function` is the tool's own function, if the library shows it. `failure_in` finds an error that the library
        returned as a result; `output_of` gives the value to record. Raises what the call raises, and `NotRecorded`.
        """
        call = self.ask(tool, arguments, call_id, function)
        if call.refusal:
            return refuse(call.refusal)
        try:
            result = execute()
        except BaseException as error:
            self._record_raised(call, error)
            raise
        self.record_end(call, output_of(result), failure_in(result))
        return result

    async def run_gated_async(
        self,
        tool: str,
        arguments: Any,
        call_id: str,
        *,
        function: object = None,
        execute: Callable[[], Awaitable[T]],
        refuse: Callable[[str], T],
        failure_in: Callable[[T], Failure | None] = lambda _: None,
        output_of: Callable[[T], Any] = lambda result: result,
    ) -> T:
        """Do the same as `run_gated` for an async call.

        The gate and the ledger run in a thread, to keep the loop free.
        """
        call = await asyncio.to_thread(self.ask, tool, arguments, call_id, function)
        if call.refusal:
            return refuse(call.refusal)
        try:
            result = await execute()
        except BaseException as error:
            self._record_raised(call, error)  # Not in a thread: a cancelled task must not await.
            raise
        await asyncio.to_thread(self.record_end, call, output_of(result), failure_in(result))
        return result

    # --- before a call

    def ask(self, tool: str, arguments: Any, call_id: str, function: object = None) -> GatedCall:
        """Ask the gate. When this returns, the decision is sealed; if it cannot be sealed, this raises.

        `function` is the tool's own function, whose declaration counts.
        """
        if self._gap is not None:
            raise NotRecorded(
                "an earlier call could not be recorded", ran=False, advice="open a new run"
            ) from self._gap
        started = time.monotonic()
        try:
            # The gate cannot judge a call whose name is too long, or whose arguments are not JSON.
            if len(tool) > NAME_MAX:
                raise BadInput(f"the name of a tool has at most {NAME_MAX} characters")
            if not isinstance(arguments, Mapping):
                raise BadInput("the arguments of a call must be an object")
            canonical_json({"tool": tool, "arguments": dict(arguments)})
            # A tool may change its arguments. Keep a copy, so that the record has what the gate judged.
            judged = copy.deepcopy(dict(arguments))
            answer = self._run.gate(
                action_type=ACTION_TYPE,
                description=f"call {tool}",
                tool=tool,
                arguments=judged,
                declared=find_declared_effects(function),
                mode=self.mode,
                wait=self._wait,
                answer_with=self._describe_answer,
            )
        except BadInput as error:
            name = clean_text(tool[:NAME_MAX])
            if self.mode == "observe":
                # Nothing is held back. The record names no decision, and so shows that the gate did not judge it.
                return GatedCall(name, call_id, render_value(arguments), None, "", time.monotonic())
            call = GatedCall(name, call_id, render_value(arguments), None, str(error), started)
            self.record_failure(call, Failure("BadInput", call.refusal))
            return call
        refusal = "" if answer["allows"] else f"Not allowed, and not done: {answer['reason'] or answer['decision']}"
        return GatedCall(tool, call_id, judged, answer["gate_id"], refusal, time.monotonic())

    def _describe_answer(self, decision: Decision) -> CallerAnswer:
        """Return the consequence of a decision, for its record: a call that is not allowed does not run here."""
        if self.mode == "observe":
            return CallerAnswer("leave")
        return CallerAnswer("allow" if decision.allows else "deny")

    # --- after a call

    def record_end(self, call: GatedCall, output: Any, failure: Failure | None = None) -> None:
        """Record a call that returned: a success, or a failure that the library caught."""
        if failure is None:
            recorded = output
            try:
                canonical_json({"value": output})
            except BadInput:
                recorded = render_value(output)  # Not JSON: a readable form of it is hashed.
            self._record(call, recorded, {}, result=output)
        else:
            self.record_failure(call, failure)

    def _record_raised(self, call: GatedCall, error: BaseException) -> None:
        if isinstance(error, self._waits):
            self.record_waiting(call, type_name(type(error)))
        else:
            self.record_failure(call, Failure.of(error))

    def judge_waiting(self, tool: str, arguments: Any, call_id: str, function: object, means: str) -> str:
        """Judge and record, once, a call that waits before it comes to its tool. Return why it is refused, if it is."""
        if call_id in self._waiting:
            return ""
        call = self.ask(tool, arguments, call_id, function)
        if not call.refusal:
            self.record_waiting(call, means)
        return call.refusal

    def record_waiting(self, call: GatedCall, means: str) -> None:
        """Record a call that waits for a person. Nothing was done yet, and nothing failed."""
        self._waiting.add(call.call_id)
        self._record(call, f"waits for a person: {means}", {"waiting": means})

    def record_failure(self, call: GatedCall, failure: Failure) -> None:
        """Record a call that failed."""
        text = mask(clean_text(failure.text)).value[:ERROR_MAX]  # Mask first: half a secret would not be found.
        self._record(call, f"{failure.kind}: {text}", {"error": {"type": failure.kind, "text": text}})

    def _record(self, call: GatedCall, output: Any, more: Mapping[str, Any], result: Any = None) -> None:
        if "waiting" not in more:
            self._waiting.discard(call.call_id)
        metadata = {"tool_name": call.tool, "tool_call_id": clean_text(call.call_id), "library": self._library, **more}
        try:
            self._run.record_simple(
                ACTION_TYPE,
                f"call {call.tool}",
                call.arguments,
                output,
                success=not more,
                duration_ms=call.elapsed_ms,
                metadata=metadata,
                gate_id=call.gate_id,
            )
        except Exception as error:
            words = f"the call of {call.tool} could not be recorded: {exception_text(error)}"
            self._gap = NotRecorded(words, ran=not call.refusal, result=result)
            raise self._gap from error
