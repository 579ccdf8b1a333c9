"""Servers of tools: who carries out the call behind an act of the intent `CallTool`.

A gateway knows servers by name. Each is an `Upstream`: an MCP server behind the proxy, or functions of this process.

    tools = FunctionTools({"add_note": add_note})
    with aver.open_gateway() as gateway:
        gateway.connect("notes", tools)
        gateway.act({"intent_id": "CallTool", "inputs": {"server": "notes", "tool": "add_note",
                     "arguments": {"text": "buy milk"}}, "constraints": {}, "caller": "agent:writer"})

Definitions and results have the form that MCP gives them, so that a proxy hands both on as they came:

    definition   {"name", "description", "inputSchema", "annotations", ...}
    result       {"content": [{"type": "text", "text": "..."}], "structuredContent": {...}, "isError": false}

A definition is the server's own word about its tool. `aver.gate.origins` says how far it counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from aver.capsule.canonical import ascii_json
from aver.errors import Refused
from aver.fast_dataclass import dataclass
from aver.gate.effects.effects import CHANGED_TOOL_HINT


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The definition of one tool, as its server gives it."""

    document: Mapping[str, Any]
    is_changed: bool = False
    """Whether it is another definition than the one that was first seen. Then a person must approve each call."""

    @property
    def name(self) -> str:
        return str(self.document.get("name", ""))

    @property
    def description(self) -> str:
        found = self.document.get("description")
        return found if isinstance(found, str) else ""

    @property
    def input_schema(self) -> Mapping[str, Any]:
        found = self.document.get("inputSchema")
        return found if isinstance(found, dict) else {}

    @property
    def annotations(self) -> Mapping[str, Any]:
        found = self.document.get("annotations")
        return found if isinstance(found, dict) else {}

    @property
    def hints(self) -> Mapping[str, Any]:
        """The annotations that the gate reads, and whether the tool is not as it was first seen."""
        known = {name: value for name, value in self.annotations.items() if isinstance(value, bool)}
        return {**known, CHANGED_TOOL_HINT: True} if self.is_changed else known

    @property
    def sha256(self) -> str:
        """The digest of the whole definition. A tool that changes has another one."""
        return hashlib.sha256(ascii_json(dict(self.document))).hexdigest()


class UpstreamCall(NamedTuple):
    """One call that was judged, and that goes to the server as it stands here."""

    tool: str
    arguments: Mapping[str, Any]
    params: Mapping[str, Any]
    """The rest of the parameters of `tools/call`."""
    action_id: str
    """The act's id: a server that knows idempotency keys can use it."""


class Upstream(Protocol):
    """A server of tools. Calls may come from several threads."""

    def find_tool(self, name: str) -> ToolDefinition | None:
        """Return the definition of a tool; None where the server has no such tool."""

    def call(self, call: UpstreamCall) -> Mapping[str, Any]:
        """Make a call, and return its result in the form of MCP.

        Raises `Refused` with `EFFECT_FAILED` where the call surely did nothing, with `TOOL_CHANGED` where it was not
        made because the tool is not the one that was judged, and with `OUTCOME_UNKNOWN` where nobody knows.
        """

    def read(self, uri: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read a resource, and return the result in the form of MCP. Raises as `call` does."""


class FunctionTools:
    """Functions of this process as a server of tools. Each takes its arguments by name and returns a JSON value."""

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]], definitions: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._functions = dict(functions)
        self._definitions = dict(definitions or {})

    def find_tool(self, name: str) -> ToolDefinition | None:
        """Return the definition of a function: the one that was given, or its name and docstring."""
        function = self._functions.get(name)
        if function is None:
            return None
        own = {"name": name, "description": (function.__doc__ or "").strip()}
        return ToolDefinition({**own, **self._definitions.get(name, {})})

    def call(self, call: UpstreamCall) -> Mapping[str, Any]:
        """Call a function with its arguments by name. Raises `Refused` where there is none."""
        function = self._functions.get(call.tool)
        if function is None:
            raise Refused("EFFECT_FAILED", f"there is no tool {call.tool!r}")
        return {"structuredContent": {"result": function(**call.arguments)}, "isError": False}

    def read(self, uri: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raise `Refused`: functions have no resources."""
        raise Refused("EFFECT_FAILED", "functions have no resources")
