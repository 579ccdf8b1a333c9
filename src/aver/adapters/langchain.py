"""LangChain and LangGraph: a middleware that gates every tool call of an agent and records its result.

    with AgentRuntime("runs/today", agent="helper") as run:
        agent = create_agent(model, tools, middleware=[AverMiddleware(run)])
        agent.invoke({"messages": [("user", "What do the notes say?")]})

Put it last in the list: a middleware after it could still change a call that the gate allowed. In your own graph, pass
the same object to the tool node:

    gated = AverMiddleware(run)
    ToolNode(tools, wrap_tool_call=gated.wrap_tool_call, awrap_tool_call=gated.awrap_tool_call)

The model gets a refused call as a `ToolMessage` with `status="error"` and the reason. Aver records the exception of a
tool and raises it again; a call whose tool asks a person by `interrupt()` is recorded as waiting. `invoke`, `stream`,
`batch` and their `async` forms all use this middleware, once per call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from aver.adapters.tool_calls import Failure, GatedRun, ToolCallGate
from aver.gate.own_tools import find_declared_effects

ToolResult = ToolMessage | Command[Any]


class AverMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gates and records the tool calls of an agent. `wait` is the number of seconds to wait for a human approval.

    With `enforce=False` it holds nothing back: it only judges and records.
    """

    def __init__(self, run: GatedRun, *, wait: float = 0.0, enforce: bool = True) -> None:
        super().__init__()
        waits = (GraphInterrupt,)  # `interrupt()` raises it, and the call is made again with the answer.
        self._calls = ToolCallGate(run, library="langchain", wait=wait, enforce=enforce, waits=waits)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        options = _describe_call(request, "func", "coroutine", "_run")
        result: ToolResult = self._calls.run_gated(execute=lambda: handler(request), **options)
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        options = _describe_call(request, "coroutine", "func", "_arun", "_run")
        result: ToolResult = await self._calls.run_gated_async(execute=lambda: handler(request), **options)
        return result


def _describe_call(request: ToolCallRequest, *names: str) -> dict[str, Any]:
    """Return the options of `run_gated`, but for the call itself. `names` are where its function may be."""
    call = request.tool_call
    return {
        "tool": call["name"],
        "arguments": call["args"],
        "call_id": call["id"] or "",
        "function": _find_function(request, *names),
        "refuse": lambda reason: _refusal_message(request, reason),
        "failure_in": _find_failure,
        "output_of": _tool_output,
    }


def _find_function(request: ToolCallRequest, *names: str) -> object:
    """Return the function of a tool that `aver.tool` declares, under the first of these names that has one."""
    found = (getattr(request.tool, name, None) for name in names)
    return next((function for function in found if find_declared_effects(function) is not None), None)


def _refusal_message(request: ToolCallRequest, reason: str) -> ToolResult:
    call = request.tool_call
    return ToolMessage(content=reason, name=call["name"], tool_call_id=call["id"] or "", status="error")


def _find_failure(result: ToolResult) -> Failure | None:
    """Return the error that the tool node has turned into a message for the model; None if there is none."""
    for message in _tool_messages(result):
        if message.status == "error":
            return Failure("ToolMessage", str(message.text))
    return None


def _tool_output(result: ToolResult) -> Any:
    return result.content if isinstance(result, ToolMessage) else result


def _tool_messages(result: Any) -> list[ToolMessage]:
    """Return the messages in a result. A tool may return one message, or a list of messages and commands."""
    return [item for item in (result if isinstance(result, list) else [result]) if isinstance(item, ToolMessage)]
