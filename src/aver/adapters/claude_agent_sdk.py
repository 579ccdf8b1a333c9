"""Claude Agent SDK: hooks that gate every tool call of an agent and record what came of it.

    with AgentRuntime("runs/today", agent="helper") as run, AverHooks(run) as gated:
        options = ClaudeAgentOptions(hooks=gated.hooks)
        async for message in query(prompt="What do the notes say?", options=options):
            ...

A refused call is denied, and the model gets the reason. A call that passes is left to the permissions in force: the
hooks forbid and never allow. A hook that fails blocks (`on_failure`), so that no call goes through unjudged.

What a tool gives back or how it failed is recorded when the SDK reports it; a tool's exception comes as a text. What
was run is compared with what was judged: other hooks can change a call, and then its record says so. At the end of the
`with` block, calls of which no outcome was reported (denied by other permissions, cut off) are recorded as failed, and
a call that could not be recorded raises; the agent was stopped at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio.to_thread
from claude_agent_sdk import HookContext, HookMatcher
from claude_agent_sdk.types import HookEvent, HookInput, HookJSONOutput, SyncHookJSONOutput

from aver.actions.runtime import AgentRuntime
from aver.adapters.tool_calls import Failure, GatedCall, ToolCallGate
from aver.errors import AverError

__all__ = ["AverHooks"]

HOOK_SECONDS = 60.0
"""How long a hook may take besides waiting for a human: the gate and the ledger need milliseconds."""


class AverHooks:
    """Gates and records the tool calls of an agent. `wait`: how many seconds to wait for a human who must approve."""

    def __init__(self, run: AgentRuntime, *, wait: float = 0.0) -> None:
        self._calls = ToolCallGate(run, library="claude-agent-sdk", wait=wait)
        self._open: dict[str, GatedCall] = {}
        self._lock = threading.Lock()
        self._trouble: AverError | None = None
        self._seconds = wait + HOOK_SECONDS

    @property
    def hooks(self) -> dict[HookEvent, list[HookMatcher]]:
        """For `ClaudeAgentOptions(hooks=...)`. Other hooks may stand beside these."""
        return {
            "PreToolUse": [HookMatcher(hooks=[self._before_tool], timeout=self._seconds, on_failure="block")],
            "PostToolUse": [HookMatcher(hooks=[self._after_tool], timeout=HOOK_SECONDS, on_failure="block")],
            "PostToolUseFailure": [HookMatcher(hooks=[self._after_tool], timeout=HOOK_SECONDS, on_failure="block")],
        }

    async def _before_tool(self, given: HookInput, call_id: str | None, _: HookContext) -> HookJSONOutput:
        return await anyio.to_thread.run_sync(self._ask_gate, dict(given), call_id or "")

    async def _after_tool(self, given: HookInput, call_id: str | None, _: HookContext) -> HookJSONOutput:
        return await anyio.to_thread.run_sync(self._record_outcome, dict(given), call_id or "")

    def _ask_gate(self, given: Mapping[str, Any], call_id: str) -> SyncHookJSONOutput:
        try:
            call = self._calls.ask(given["tool_name"], given["tool_input"], call_id)
        except AverError as error:
            return {**_denial(str(error)), **self._stop_agent(error)}
        if call.refusal:
            return _denial(call.refusal)
        with self._lock:
            self._open[call_id] = call
        return {}

    def _record_outcome(self, given: Mapping[str, Any], call_id: str) -> SyncHookJSONOutput:
        with self._lock:
            call = self._open.pop(call_id, None)
        if call is None:  # Nobody was asked about it, so its record names no decision.
            call = GatedCall(given["tool_name"], call_id, {}, None, "", time.monotonic())
        took = given.get("duration_ms")
        started = call.started if took is None else time.monotonic() - took / 1000
        call = replace(call, arguments=given["tool_input"], started=started)
        try:
            self._calls.ended(call, given.get("tool_response"), _read_failure(given))
        except AverError as error:
            return self._stop_agent(error)
        return {}

    def _stop_agent(self, error: AverError) -> SyncHookJSONOutput:
        """End the agent's work: it must not go on where nothing can be judged or recorded."""
        self._trouble = self._trouble or error
        return {"continue_": False, "stopReason": str(error)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            left, self._open = list(self._open.values()), {}
        if self._trouble is None:
            for call in left:
                self._calls.failed(call, Failure("OUTCOME_UNKNOWN", "the SDK reported no outcome of this call"))
        if self._trouble is not None and error is None:
            raise self._trouble


def _denial(reason: str) -> SyncHookJSONOutput:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def _read_failure(given: Mapping[str, Any]) -> Failure | None:
    if given["hook_event_name"] != "PostToolUseFailure":
        return None
    return Failure("interrupted" if given.get("is_interrupt") else "error", str(given["error"]))
