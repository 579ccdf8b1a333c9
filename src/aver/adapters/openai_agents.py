"""OpenAI Agents SDK: function tools that are gated, and recorded with what came of them.

    with AgentRuntime("runs/today", agent="helper") as run:
        tools = AverTools(run)

        @tools.function_tool
        def read_file(path: str) -> str: ...

        agent = Agent(name="helper", tools=[read_file])
        Runner.run_sync(agent, "What do the notes say?", hooks=tools.hooks)

`function_tool` is the SDK's own, with all its options. A refused call comes back to the model as the tool's output,
which is the reason. A tool's exception is recorded first; then `failure_error_function` makes of it what the model is
told, as ever, or it is raised if that is None. A call that took longer than its `timeout` is one that failed.

A tool that was made elsewhere is gated by `gated`. What such a tool catches itself and answers with a text is, as far
as anyone can see, its output.

The `hooks` end a run before any other tool that the SDK runs on this machine is started: those of MCP servers, shells,
computers, editors, and function tools that were never gated. Tools that run at the model's provider start without
asking anybody here.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import agents
from agents.tool import ToolErrorFunction
from agents.tool_context import ToolContext

from aver.actions.runtime import AgentRuntime
from aver.adapters.tool_calls import Failure, ToolCallGate
from aver.capsule.json_reader import read_json
from aver.errors import AverError, Refused

__all__ = ["AverTools"]


class AverTools:
    """Makes tools that are gated and recorded. `wait`: how many seconds to wait for a human who must approve."""

    def __init__(self, run: AgentRuntime, *, wait: float = 0.0) -> None:
        self._calls = ToolCallGate(run, library="openai-agents", wait=wait)
        self.hooks: agents.RunHooks[Any] = _UngatedToolGuard()

    def function_tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        failure_error_function: ToolErrorFunction | None = agents.default_tool_error_function,
        **options: Any,
    ) -> Any:
        """`agents.function_tool`, gated. As a decorator, with or without options, or called with the function."""

        def make(function: Callable[..., Any]) -> agents.FunctionTool:
            # Without a handler of its own the tool raises, and the exception can be recorded for what it is.
            tool = agents.function_tool(function, failure_error_function=None, **options)
            return self._wrap_tool(tool, failure_error_function)

        return make if function is None else make(function)

    def gate_tool(self, tool: agents.FunctionTool) -> agents.FunctionTool:
        """The same tool, gated and recorded. What it raises is raised."""
        return self._wrap_tool(tool, None)

    def _wrap_tool(self, tool: agents.FunctionTool, tell: ToolErrorFunction | None) -> agents.FunctionTool:
        made = copy.copy(tool)
        made.on_invoke_tool = _GatedInvoker(tool, self._calls, tell)
        return made


@dataclass(frozen=True, slots=True)
class _ToolException:
    error: Exception


@dataclass(frozen=True, slots=True)
class _GatedInvoker:
    """What the SDK calls in place of the tool."""

    tool: agents.FunctionTool
    calls: ToolCallGate
    tell: ToolErrorFunction | None

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        result = await self.calls.run_gated_async(
            self.tool.qualified_name,
            _parse_arguments(arguments),
            context.tool_call_id,
            execute=lambda: self._invoke(context, arguments),
            refuse=lambda reason: reason,
            failure_in=lambda result: Failure.of(result.error) if isinstance(result, _ToolException) else None,
        )
        if not isinstance(result, _ToolException):
            return result
        if self.tell is None:
            raise result.error
        told = self.tell(context, result.error)
        return await told if inspect.isawaitable(told) else told

    async def _invoke(self, context: ToolContext[Any], arguments: str) -> Any:
        try:
            return await self.tool.on_invoke_tool(context, arguments)
        except Exception as error:  # noqa: BLE001 - whatever the tool raises is told, or raised again
            return _ToolException(error)


class _UngatedToolGuard(agents.RunHooks[Any]):
    """Ends a run before a tool is started that nobody gates."""

    async def on_tool_start(self, context: agents.RunContextWrapper[Any], agent: Any, tool: agents.Tool) -> None:
        if not isinstance(getattr(tool, "on_invoke_tool", None), _GatedInvoker):
            raise Refused("NOT_GATED", f"the tool {tool.name} is not gated", advice="make it with AverTools")


def _parse_arguments(arguments: str) -> Any:
    """The arguments as the model wrote them. What is not JSON, or is ambiguous, stays a text and is refused."""
    try:
        return read_json(arguments) if arguments else {}
    except AverError:
        return arguments
