"""PydanticAI: a capability that gates every tool call of an agent and records its result.

    with AgentRuntime("runs/today", agent="helper") as run:
        agent = Agent(model, toolsets=[files], capabilities=[AverCapability(run)])
        agent.run_sync("What do the notes say?")

It is the innermost wrapper of the agent's toolsets. So it sees each call as it runs: with validated arguments, and
after the changes of all other capabilities. `gate_toolset` gates a single toolset.

The model gets a refused call as a failed tool result with the reason (`ToolFailed`); this uses no retries. Aver records
the exception of a tool as a failed call and raises it again, including `ModelRetry`. A deferred call, and one that
needs an approval of PydanticAI's own, is judged and recorded as waiting. Aver does not see output tools, or tools that
the provider of the model runs: they are not calls of the agent's toolsets.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied, ToolFailed
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_jsonable_python

from aver.adapters.tool_calls import GatedRun, ToolCallGate
from aver.recording.render import render_value

LAYERS_MAX = 16
"""Toolsets around a tool that are looked through to find its function."""


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """A toolset whose calls are gated and recorded. `gate_toolset` makes one."""

    calls: ToolCallGate

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        return await self.calls.run_gated_async(
            name,
            _to_json_value(tool_args),
            ctx.tool_call_id or "",
            function=_find_function(tool),
            execute=lambda: self.wrapped.call_tool(name, tool_args, ctx, tool),
            refuse=_refuse,
            output_of=_to_json_value,
        )


class AverCapability(AbstractCapability[Any]):
    """Gates and records the tool calls of an agent. `wait` is the number of seconds to wait for a human approval.

    With `enforce=False` it holds nothing back: it only judges and records.
    """

    def __init__(self, run: GatedRun, *, wait: float = 0.0, enforce: bool = True) -> None:
        self._calls = _make_calls(run, wait=wait, enforce=enforce)

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self._calls)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Judge and record the calls that come to no tool before somebody answers. Answer those that are refused."""
        tools = (ctx.tool_manager.tools if ctx.tool_manager is not None else None) or {}
        refused = DeferredToolResults()
        for part in (*requests.approvals, *requests.calls):
            name, arguments, tool = part.tool_name, part.args_as_dict(), tools.get(part.tool_name)
            function = None if tool is None else _find_function(tool)
            given = name, arguments, part.tool_call_id, function, "DeferredToolRequests"
            reason = await asyncio.to_thread(self._calls.judge_waiting, *given)
            if reason and part in requests.approvals:
                refused.approvals[part.tool_call_id] = ToolDenied(reason)
            elif reason:
                refused.calls[part.tool_call_id] = ToolFailed(reason)
        return refused if refused.approvals or refused.calls else None


def gate_toolset(
    toolset: AbstractToolset[Any], run: GatedRun, *, wait: float = 0.0, enforce: bool = True
) -> GatedToolset:
    """Return a gated copy of one toolset, for an agent whose other toolsets are not gated."""
    return GatedToolset(toolset, _make_calls(run, wait=wait, enforce=enforce))


def _make_calls(run: GatedRun, *, wait: float, enforce: bool) -> ToolCallGate:
    waits = (ApprovalRequired, CallDeferred)
    return ToolCallGate(run, library="pydantic-ai", wait=wait, enforce=enforce, waits=waits)


def _find_function(tool: ToolsetTool[Any]) -> object:
    """Return the function of a tool; None where it is not one of a `FunctionToolset`."""
    # Toolsets may hold others, and may rename a tool. The method that calls the function stays the same.
    found: object = tool
    for _ in range(LAYERS_MAX):
        found = getattr(found, "source_tool", found)
    schema = getattr(getattr(found, "call_func", None), "__self__", None)
    return getattr(schema, "function", None)


def _refuse(reason: str) -> NoReturn:
    raise ToolFailed(reason)


def _to_json_value(value: Any) -> Any:
    """Turn validated values back into JSON, so that the gate sees, for example, a path as text and not as an object."""
    try:
        return to_jsonable_python(value, fallback=render_value)
    except ValueError:  # The value contains itself, or bytes that are not text.
        return render_value(value)
