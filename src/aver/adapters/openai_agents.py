"""OpenAI Agents SDK: function tools that Aver gates and records.

    with AgentRuntime("runs/today", agent="helper") as run:
        tools = AverTools(run)

        @tools.function_tool
        def read_file(path: str) -> str: ...

        agent = Agent(name="helper", tools=[read_file])
        Runner.run_sync(agent, "What do the notes say?", hooks=tools.hooks)

`function_tool` is the function of the SDK, with all its options. The model gets the reason for a refused call as the
output of the tool. Aver records the exception of a tool first. Then `failure_error_function` turns it into a text for
the model, as usual; if that function is None, the exception is raised. A call that exceeds its `timeout` has failed.

`gate_tool` gates a tool that was made elsewhere. If such a tool catches an exception itself and returns a text, Aver
can only record this text as its output.

Put `aver.tool` below `tools.function_tool`: it declares the function. `gate_tool(tool, function)` takes the function
that a tool was made of, because the SDK does not show it.

A call that needs an approval of the SDK's own (`needs_approval`) is judged, and recorded as waiting, before a person is
asked. If the person approves, it is judged and recorded again when the SDK makes it.

The `hooks` end a run before the SDK starts any other tool on this machine: tools of MCP servers, shells, computers,
editors, and function tools that are not gated. They cannot stop tools that run at the provider of the model.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import agents
from agents.tool import ToolErrorFunction
from agents.tool_context import ToolContext

from aver.adapters.tool_calls import Failure, GatedRun, ToolCallGate
from aver.capsule.json_reader import read_json
from aver.errors import AverError, Refused


class AverTools:
    """Makes tools that are gated and recorded. `wait` is the number of seconds to wait for a human approval.

    With `enforce=False` it holds nothing back: it only judges and records.
    """

    def __init__(self, run: GatedRun, *, wait: float = 0.0, enforce: bool = True) -> None:
        self._calls = ToolCallGate(run, library="openai-agents", wait=wait, enforce=enforce)
        self.hooks: agents.RunHooks[Any] = _UngatedToolGuard(self._calls)

    def function_tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        failure_error_function: ToolErrorFunction | None = agents.default_tool_error_function,
        **options: Any,
    ) -> Any:
        """Make a gated tool, as `agents.function_tool` does. Use it as a decorator, with or without options."""

        def make(function: Callable[..., Any]) -> agents.FunctionTool:
            # Without its own error function the tool raises, and Aver can record the exception itself.
            tool = agents.function_tool(function, failure_error_function=None, **options)
            return self._wrap_tool(tool, failure_error_function, function)

        return make if function is None else make(function)

    def gate_tool(self, tool: agents.FunctionTool, function: Callable[..., Any] | None = None) -> agents.FunctionTool:
        """Return a gated copy of a tool. Exceptions of the tool are raised.

        The SDK does not show which function a tool was made of. `function` is the one that `aver.tool` declares.
        """
        return self._wrap_tool(tool, None, function)

    def _wrap_tool(
        self, tool: agents.FunctionTool, tell: ToolErrorFunction | None, function: Callable[..., Any] | None
    ) -> agents.FunctionTool:
        made = copy.copy(tool)
        made.on_invoke_tool = _GatedInvoker(tool, self._calls, tell, function)
        if tool.needs_approval is not False:
            made.needs_approval = _JudgedApproval(tool, self._calls, function)
        return made


@dataclass(frozen=True, slots=True)
class _ToolException:
    error: Exception


@dataclass(frozen=True, slots=True)
class _GatedInvoker:
    """The SDK calls this object instead of the tool."""

    tool: agents.FunctionTool
    calls: ToolCallGate
    tell: ToolErrorFunction | None
    function: Callable[..., Any] | None

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        result = await self.calls.run_gated_async(
            self.tool.qualified_name,
            _parse_arguments(arguments),
            context.tool_call_id,
            function=self.function,
            execute=lambda: self._invoke(context, arguments),
            refuse=lambda reason: reason,
            failure_in=lambda result: Failure.of(result.error) if isinstance(result, _ToolException) else None,
        )
        if not isinstance(result, _ToolException):
            return result
        if self.tell is None:
            raise result.error
        text = self.tell(context, result.error)
        return await text if inspect.isawaitable(text) else text

    async def _invoke(self, context: ToolContext[Any], arguments: str) -> Any:
        try:
            return await self.tool.on_invoke_tool(context, arguments)
        except Exception as error:  # noqa: BLE001 - the caller reports or raises it
            return _ToolException(error)


@dataclass(frozen=True, slots=True)
class _JudgedApproval:
    """The SDK asks this object whether a person must approve a call. It judges and records a call that waits."""

    tool: agents.FunctionTool
    calls: ToolCallGate
    function: Callable[..., Any] | None

    async def __call__(self, context: agents.RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        needed = self.tool.needs_approval
        if callable(needed):
            needed = await needed(context, arguments, call_id)
        if not needed:
            return False
        given = self.tool.qualified_name, arguments, call_id, self.function, "needs_approval"
        # Also where the gate refuses: the person is asked all the same, and the invoker asks the gate again.
        await asyncio.to_thread(self.calls.judge_waiting, *given)
        return True


class _UngatedToolGuard(agents.RunHooks[Any]):
    """Ends a run before the SDK starts a tool that is not gated. In the mode `observe` it does nothing."""

    def __init__(self, calls: ToolCallGate) -> None:
        self._calls = calls

    async def on_tool_start(self, context: agents.RunContextWrapper[Any], agent: Any, tool: agents.Tool) -> None:
        is_gated = isinstance(getattr(tool, "on_invoke_tool", None), _GatedInvoker)
        if not is_gated and self._calls.mode == "enforce":
            raise Refused("NOT_GATED", f"the tool {tool.name} is not gated", advice="make it with AverTools")


def _parse_arguments(arguments: str) -> Any:
    """Parse the arguments of the model. Invalid or ambiguous JSON stays a text, which the gate call refuses."""
    try:
        return read_json(arguments) if arguments else {}
    except AverError:
        return arguments
