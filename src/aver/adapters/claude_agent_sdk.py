"""Claude Agent SDK: hooks that gate every tool call of an agent and record its result.

    with AgentRuntime("runs/today", agent="helper") as run, AverHooks(run) as gated:
        options = ClaudeAgentOptions(hooks=gated.hooks)
        async for message in query(prompt="What do the notes say?", options=options):
            ...

The hooks deny a refused call, and the model gets the reason. They never allow a call: the permissions of the SDK still
apply to a call that passes. A hook that fails blocks the call (`on_failure`), so that no call runs without a decision.

Tools of your own run in a server of your own. Give the hooks the same list, and they find what `aver.tool` declares:

    @tool("lookup_order", "Look an order up.", {"order": str})
    @aver.tool(effects=["read"])
    async def lookup_order(arguments): ...

    AverHooks(run, own_tools={"shop": [lookup_order]})

Aver records the result or the error of a tool when the SDK reports it; the SDK reports an exception as text. Other
hooks can change a call after the gate judged it. Aver compares both, and the record shows a difference.

At the end of the `with` block, Aver records calls without a reported result as failed. Other permissions may have
denied them, or the agent was interrupted. If Aver cannot record a call, it stops the agent at once, and the block
raises the error at its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio.to_thread
from claude_agent_sdk import HookContext, HookMatcher, SdkMcpTool
from claude_agent_sdk.types import HookEvent, HookInput, HookJSONOutput, SyncHookJSONOutput

from aver.adapters.tool_calls import Failure, GatedCall, GatedRun, ToolCallGate
from aver.errors import AverError

HOOK_SECONDS = 60.0
"""The time limit of a hook, without the wait for a human. The gate and the ledger need milliseconds."""


class AverHooks:
    """Gates and records the tool calls of an agent. `wait` is the number of seconds to wait for a human approval.

    With `enforce=False` it holds nothing back: it only judges and records. `own_tools` are the tools of the caller's
    own servers, by the names of these: the hooks see only names, and the declarations of `aver.tool` are on the tools.
    """

    def __init__(
        self,
        run: GatedRun,
        *,
        wait: float = 0.0,
        enforce: bool = True,
        own_tools: Mapping[str, Iterable[SdkMcpTool[Any]]] | None = None,
    ) -> None:
        self._calls = ToolCallGate(run, library="claude-agent-sdk", wait=wait, enforce=enforce)
        self._functions = {
            f"mcp__{server}__{tool.name}": tool.handler for server, tools in (own_tools or {}).items() for tool in tools
        }
        self._open: dict[str, GatedCall] = {}
        self._lock = threading.Lock()
        self._trouble: AverError | None = None
        self._seconds = wait + HOOK_SECONDS

    @property
    def hooks(self) -> dict[HookEvent, list[HookMatcher]]:
        """The hooks for `ClaudeAgentOptions(hooks=...)`. The caller may add other hooks."""
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
            function = self._functions.get(given["tool_name"])
            call = self._calls.ask(given["tool_name"], given["tool_input"], call_id, function)
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
        if call is None:  # The gate did not judge this call, so its record names no decision.
            call = GatedCall(given["tool_name"], call_id, {}, None, "", time.monotonic())
        took = given.get("duration_ms")
        started = call.started if took is None else time.monotonic() - took / 1000
        # Record the arguments that were used. If they differ from the judged ones, the record shows it.
        call = replace(call, arguments=given["tool_input"], started=started)
        try:
            failure = None
            if given["hook_event_name"] == "PostToolUseFailure":
                failure = Failure("interrupted" if given.get("is_interrupt") else "error", str(given["error"]))
            self._calls.record_end(call, given.get("tool_response"), failure)
        except AverError as error:
            return self._stop_agent(error)
        return {}

    def _stop_agent(self, error: AverError) -> SyncHookJSONOutput:
        """Stop the agent: it must not continue if Aver cannot judge or record its calls."""
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
                self._calls.record_failure(call, Failure("OUTCOME_UNKNOWN", "the SDK reported no outcome of this call"))
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
