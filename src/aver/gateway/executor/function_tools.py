"""Functions of this process as a server of tools, whose calls are acts.

    tools = FunctionTools({"add_note": add_note})
    with aver.open_gateway() as gateway:
        gateway.connect("notes", tools, tools.find_definition)
        gateway.act({"intent_id": "CallTool", "inputs": {"server": "notes", "tool": "add_note",
                     "arguments": {"text": "buy milk"}}, "constraints": {}, "caller": "agent:writer"})

A definition has the form that MCP gives it: `name`, `description`, `inputSchema` and `annotations`. It is the author's
own word about the tool. `aver.gate.origins` says how far it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aver.errors import Refused
from aver.gateway.executor.tool_effects import CALL_METHOD, UpstreamAnswer


class FunctionTools:
    """An `Upstream` of functions. Each takes its arguments by name and returns a JSON value."""

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]], definitions: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._functions = dict(functions)
        self._definitions = dict(definitions or {})

    def find_definition(self, tool: str) -> Mapping[str, Any] | None:
        """Return the definition of a tool; None where there is no such tool."""
        function = self._functions.get(tool)
        if function is None:
            return None
        own = {"name": tool, "description": (getattr(function, "__doc__", "") or "").strip()}
        return {**own, **self._definitions.get(tool, {})}

    def request(self, method: str, params: Mapping[str, Any]) -> UpstreamAnswer:
        """Call a function. One that raises has failed, and Aver does not know how far it came."""
        function = self._functions.get(str(params.get("name"))) if method == CALL_METHOD else None
        if function is None:
            raise Refused("EFFECT_FAILED", f"there is no tool {str(params.get('name'))[:80]!r}")
        return UpstreamAnswer(
            result={"structuredContent": {"result": function(**params["arguments"])}, "isError": False}
        )
