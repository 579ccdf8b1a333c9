"""A run for the adapters of agent frameworks: every call that they gate and record is a call under one proposal.

    run = session.executor.under(proposal.id)          # in place of an AgentRuntime

`gate` signs the intent, asks the gate and seals the start; `record_simple` seals the end. A call that a critic or a
person must approve first is refused for now. Its intent stays open: the same call, made again after the approval, is
begun under it. A call that has failed is tried again as a retry of the failed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from aver.errors import BadInput, Refused
from aver.protocol.calls import BegunCall, begin_call, finish_call, mask_call, sign_intent
from aver.protocol.events import Event
from aver.protocol.runner import CallDescription, ToolFailure, ToolResult, encode_value
from aver.protocol.standings import IntentStanding
from aver.protocol.statements import digest_json

if TYPE_CHECKING:
    from aver.gate.decision import Decision
    from aver.gate.decision_record import CallerAnswer
    from aver.gate.settings import GateMode
    from aver.protocol.handles import ExecutorHandle

RESULT_NAME = "result"
"""The name of the output of a call that a framework makes."""


class UnderProposal:
    """Gates and records the calls of an executor under one proposal. Safe for threads."""

    mode: GateMode = "enforce"
    """The protocol always enforces."""

    def __init__(self, executor: ExecutorHandle, proposal: str) -> None:
        self._executor = executor
        self._proposal = proposal
        self._begun: dict[str, BegunCall] = {}

    def gate(
        self,
        diff_text: str = "",
        *,
        action_type: str | None = None,
        description: str = "",
        tool: str = "",
        arguments: Mapping[str, Any] | None = None,
        files: Iterable[str] = (),
        declared: Iterable[str] | None = None,
        mode: GateMode | None = None,
        wait: float = 0.0,
        answer_with: Callable[[Decision], CallerAnswer | None] | None = None,
    ) -> dict[str, Any]:
        """Say the intent of a call, and begin it. `allows` says whether the call may be made now.

        Pass `gate_id` to `record_simple`. Raises `BadInput` for the mode `observe`: the protocol always enforces.
        """
        if mode == "observe":
            raise BadInput("the protocol holds back what is refused: it does not only observe")
        given = dict(arguments or {})
        call = CallDescription(
            type=action_type or ("code_edit" if diff_text else "action"),
            tool=tool,
            arguments=given,
            files=tuple(files),
            diff=diff_text or None,
            declared=None if declared is None else tuple(declared),
        )
        session, agent = self._executor.session, self._executor.agent
        try:
            intent = self._find_open_intent(tool, given) or self._sign_intent(call, description)
            patience = max(wait, session.wait, session.fold.bounds.wait)
            begun = begin_call(session, agent, intent, given, call, wait=patience)
        except Refused as refusal:
            return {"allows": False, "decision": refusal.code, "gate_id": None, "reason": str(refusal)}
        if isinstance(begun, Event):
            return {"allows": False, "decision": "skip", "gate_id": None, "reason": begun.payload["words"]}
        self._begun[begun.start.id] = begun
        return {"allows": True, "decision": "pass", "gate_id": begun.start.id, "reason": ""}

    def record_simple(
        self,
        action_type: str,
        instruction: str,
        inputs: Any,
        outputs: Any,
        *,
        success: bool = True,
        duration_ms: int = 0,
        metadata: Mapping[str, Any] | None = None,
        gate_id: str | None = None,
    ) -> str:
        """Seal the end of a call that `gate` began. Returns the hash of its record; empty where no call was begun."""
        begun = self._begun.pop(gate_id, None) if gate_id is not None else None
        if begun is None:
            return ""  # The gate could not judge it, or refused it: the trace has no start.
        data, media = encode_value(outputs)
        found = {RESULT_NAME: (data, media)}
        result: ToolResult | ToolFailure = ToolResult(None, found)
        if not success:
            result = ToolFailure("ERROR", data.decode("utf-8", "replace") or "the call failed", found)
        return finish_call(self._executor.session, self._executor.agent, begun, result).hash

    def _sign_intent(self, call: CallDescription, description: str) -> str:
        session = self._executor.session
        event = sign_intent(
            session,
            self._executor.agent,
            self._proposal,
            call.tool,
            call.arguments,
            justification=description or f"call {call.tool}",
            risk=None,
            repeatable=False,
            retry_of=session.fold.failed_calls.get((self._proposal, _digest_call(call.tool, call.arguments))),
            call=call,
        )
        session.keep_arguments(event.id, call.arguments)
        return event.id

    def _find_open_intent(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """Return an own intent for the same call that was not begun yet; None if there is none."""
        digest = _digest_call(tool, arguments)

        def is_same(intent: IntentStanding) -> bool:
            return (intent.proposal, intent.agent) == (self._proposal, self._executor.agent) and (
                intent.input_sha256 == digest and intent.start is None and intent.end is None
            )

        with self._executor.session.hold_fold() as fold:
            # Only those that may still start are looked at: the past of a trace may be long.
            waiting = (fold.intents[found] for found in fold.open_intents)
            return next((intent.id for intent in waiting if is_same(intent)), None)


def _digest_call(tool: str, arguments: Mapping[str, Any]) -> str:
    return digest_json({"tool": tool, "arguments": mask_call(tool, arguments).arguments})
