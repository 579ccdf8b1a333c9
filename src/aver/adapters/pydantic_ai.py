"""PydanticAI: a capability that gates every tool call of an agent and records what came of it.

    with AgentRuntime("runs/today", agent="helper") as run:
        agent = Agent(model, toolsets=[files], capabilities=[AverCapability(run)])
        agent.run_sync("What do the notes say?")

It wraps the agent's toolsets from the inside, so that it sees a call as it is made: with the arguments that were
validated, and after all that other capabilities have changed. One toolset alone is gated by `GatedToolset`.

A refused call comes back to the model as a failed tool result with the reason (`ToolFailed`); that uses up no retries.
A tool's exception is recorded and goes on its way, `ModelRetry` and deferred calls included: to the run they are calls
that did not succeed. Tools that the model's provider runs, and output tools, are no calls of the agent's toolsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic_ai import RunContext, ToolFailed
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_jsonable_python

from aver.actions.runtime import AgentRuntime
from aver.adapters.tool_calls import ToolCallGate
from aver.recording.render import render_value

__all__ = ["AverCapability", "GatedToolset", "gate_toolset"]


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """A toolset whose calls are gated and recorded. `gated` makes one."""

    calls: ToolCallGate

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        return await self.calls.run_gated_async(
            name,
            _to_json_value(tool_args),
            ctx.tool_call_id or "",
            execute=lambda: self.wrapped.call_tool(name, tool_args, ctx, tool),
            refuse=_refuse,
            output_of=_to_json_value,
        )


class AverCapability(AbstractCapability[Any]):
    """Gates and records the tool calls of an agent. `wait`: how many seconds to wait for a human who must approve."""

    def __init__(self, run: AgentRuntime, *, wait: float = 0.0) -> None:
        self._calls = ToolCallGate(run, library="pydantic-ai", wait=wait)

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self._calls)


def gate_toolset(toolset: AbstractToolset[Any], run: AgentRuntime, *, wait: float = 0.0) -> GatedToolset:
    """The toolset, gated and recorded by itself, for an agent of which nothing else is to be."""
    return GatedToolset(toolset, ToolCallGate(run, library="pydantic-ai", wait=wait))


def _refuse(reason: str) -> NoReturn:
    raise ToolFailed(reason)


def _to_json_value(value: Any) -> Any:
    """Validated values as the JSON they came from, so that the gate reads a path as a text and not as an object."""
    try:
        return to_jsonable_python(value, fallback=render_value)
    except ValueError:  # It refers to itself, or is bytes that are no text.
        return render_value(value)
