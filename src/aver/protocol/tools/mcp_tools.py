"""Tools of an MCP server as tools of an executor. Needs the extra `mcp`.

    with McpServer("shop", ["shop-mcp-server", "--stdio"]) as server:
        tools = server.tools()              # named `mcp__shop__<tool>`, as coding agents name them

The server runs as long as the context is open, with the variables of a tool's process (`tools.processes`). Its
annotations reach the gate, which believes them only where they make a tool worse. The outputs of a call are `result`,
the structured content as JSON, and `text`, the text content. A call that the server reports as an error fails.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from aver.capsule.blobs import TEXT_MEDIA
from aver.capsule.canonical import canonical_bytes
from aver.errors import BadInput, Unavailable, install_advice
from aver.protocol.runner import JSON, CallDescription, ToolFailure, ToolResult
from aver.protocol.tools.processes import tool_environment
from aver.protocol.tools.tool import Tool, ToolOrder, fail_tool

TOOLS_MAX = 1000
"""Most tools of one server."""

START_SECONDS = 60.0
"""How long a server may take to start and to list its tools."""


class McpServer:
    """One MCP server on standard input and output, for the time of a context."""

    def __init__(self, name: str, command: Sequence[str], *, workspace: str = ".") -> None:
        if not command:
            raise BadInput(f"the MCP server {name} needs a command")
        self.name = name
        self._command = list(command)
        self._workspace = workspace
        self._open = ExitStack()
        self._portal: Any = None
        self._client: Any = None
        self._tools: dict[str, Tool] = {}

    def __enter__(self) -> Self:
        try:
            from anyio.from_thread import start_blocking_portal
            from mcp import Client, StdioServerParameters
            from mcp.client.stdio import stdio_client
        except ImportError as error:
            advice = install_advice("mcp")
            raise Unavailable(f"MCP tools need a package that is not installed: {error.name}", advice=advice) from error
        environment = tool_environment(self._workspace)
        started = StdioServerParameters(command=self._command[0], args=self._command[1:], env=environment)
        try:
            # The client lives in a thread with an event loop of its own, because tools are called without one.
            self._portal = self._open.enter_context(start_blocking_portal())
            silent = self._open.enter_context(open(os.devnull, "w"))  # A server's log is no output of a tool.
            client = Client(stdio_client(started, errlog=silent), read_timeout_seconds=START_SECONDS)
            self._client = self._open.enter_context(self._portal.wrap_async_context_manager(client))
            for found in self._portal.call(self._list_tools):
                name = f"mcp__{self.name}__{found.name}"
                annotations = (
                    found.annotations.model_dump(by_alias=True, exclude_none=True) if found.annotations else {}
                )
                self._tools[name] = McpTool(self, found.name, name, annotations)
        except BadInput:
            self._open.close()
            raise
        except Exception as error:
            self._open.close()
            raise Unavailable(f"the MCP server {self.name} cannot be used: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    async def _list_tools(self) -> list[Any]:
        found: list[Any] = []
        cursor = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if len(found) > TOOLS_MAX:
                raise BadInput(f"the MCP server {self.name} has more than {TOOLS_MAX} tools")
            if not cursor:
                return found

    def tools(self) -> dict[str, Tool]:
        """Return the tools of the server, by their names here."""
        return dict(self._tools)

    def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> Any:
        """Call a tool and return its result. Raises what the SDK raises."""

        async def call() -> Any:
            return await self._client.call_tool(tool, dict(arguments), read_timeout_seconds=seconds)

        return self._portal.call(call)


class McpTool:
    """One tool of a server."""

    def __init__(self, server: McpServer, tool: str, name: str, annotations: Mapping[str, Any]) -> None:
        self._server = server
        self._tool = tool
        self._name = name
        self._annotations = annotations

    def describe(self, order: ToolOrder) -> CallDescription:
        """Return the question for the gate. The server itself checks the arguments."""
        return CallDescription(
            type="tool_call", tool=self._name, arguments=dict(order.arguments), annotations=self._annotations
        )

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        """Call the tool."""
        try:
            found = self._server.call(self._tool, order.arguments, order.limits.seconds)
        except Exception as error:  # noqa: BLE001 - the SDK has errors of many kinds; each is a failed call
            is_late = isinstance(error, TimeoutError) or "timed out" in str(error).lower()
            return fail_tool("TIMEOUT" if is_late else "ERROR", f"{type(error).__name__}: {error}")
        outputs: dict[str, tuple[bytes, str]] = {}
        cut: list[str] = []
        room = order.limits.output_max
        texts = [part.text for part in found.content if part.type == "text"]
        pieces = {"text": ("\n".join(texts).encode("utf-8", "surrogatepass"), TEXT_MEDIA)} if texts else {}
        if found.structured_content is not None:
            pieces["result"] = (canonical_bytes(found.structured_content), JSON)
        for name, (data, media) in pieces.items():
            if len(data) > room:
                cut.append(name)
            outputs[name] = (data[:room], media)
            room -= len(outputs[name][0])
        if found.is_error:
            return fail_tool("ERROR", "the server reports an error", outputs, tuple(cut))
        return ToolResult(0, outputs, tuple(cut))
