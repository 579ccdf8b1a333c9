"""The MCP server: the five tools over the protocol, through the server of the official SDK.

A tool that fails reports this in its result (`isError`), so that the agent can correct itself. A call of an unknown
tool is a protocol error. Every result contains the same answer as text and as structured content. Calls run in threads,
many at the same time. The server finishes every call that it started, even if the client disconnects.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from aver import __version__
from aver.mcp.tool_result import build_tool_result
from aver.mcp.tools import INSTRUCTIONS, PROMPT, TOOLS, ToolSpec, build_input_schema

if TYPE_CHECKING:
    from aver.mcp.service import Caller, Service

SERVER_NAME = "aver"

CALLS_AT_ONCE = 32
"""The maximum number of calls that run at the same time. Further calls wait."""

_LOG = logging.getLogger("aver.mcp")

_ENVELOPE = {
    "ok": {"type": "boolean"},
    "tool": {"type": "string"},
    "session_id": {"type": ["string", "null"]},
    "timestamp": {"type": "string"},
    "schema_version": {"type": "string"},
    "human_summary": {"type": "string"},
}

RequestContext = ServerRequestContext[Any, Any]


def build_server(open_service: Callable[[], Service]) -> Server[Any]:
    """Build the server, ready to run on a transport.

    The first call of a tool calls `open_service`, once. Loading the service takes as long as the SDK needs to answer
    `initialize`, so the server does not load it at the start.
    """
    handler = _ToolHandler(open_service)
    return Server(
        SERVER_NAME,
        version=__version__,
        title="Aver",
        description="Gates what an agent is about to do, seals what it did.",
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=handler.call_tool,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
    )


class _ToolHandler:
    """Runs the calls of tools, each in a thread."""

    def __init__(self, open_service: Callable[[], Service]) -> None:
        self._open_service = open_service
        self._service: Service | None = None
        self._opening = threading.Lock()
        self._turns = anyio.CapacityLimiter(CALLS_AT_ONCE)

    async def call_tool(self, context: RequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        from aver.mcp.service import Caller

        # Over stdio there is one connection; over HTTP a header names it.
        caller_params = context.session.client_params
        client = "" if caller_params is None else caller_params.client_info.name
        request = context.request
        if request is None:
            caller = Caller("stdio", client)
        else:
            connection = request.headers.get("mcp-session-id", "")
            caller = Caller(connection, client, request.query_params.get("session", ""), lasting=bool(connection))
        work = partial(self._run_tool, caller, params.name, params.arguments or {})
        # The thread continues if the client disconnects, so that each call is sealed or refused completely.
        return await anyio.to_thread.run_sync(work, limiter=self._turns)

    def _run_tool(self, caller: Caller, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        try:
            with self._opening:
                self._service = self._service or self._open_service()
            answer = self._service.call(caller, tool, arguments)
        except Exception as error:  # noqa: BLE001 - a defect here must not take the server down
            _LOG.exception("%s failed", tool)
            # Only the type: the text of an unexpected error may contain a secret, and the agent would see it.
            words = f"internal error: {type(error).__name__}; nothing may be taken as done"
            return build_tool_result({"ok": False, "tool": tool, "error": words, "human_summary": words}, is_error=True)
        return build_tool_result(answer.content, is_error=answer.is_error)


async def _list_tools(context: RequestContext, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_describe_tool(name, spec) for name, spec in TOOLS.items()])


def _describe_tool(name: str, spec: ToolSpec) -> types.Tool:
    return types.Tool(
        name=name,
        title=spec.title,
        description=spec.about,
        input_schema=build_input_schema(spec.takes),
        output_schema={
            "type": "object",
            "properties": {**_ENVELOPE, **spec.answers},
            "required": [*_ENVELOPE, *spec.answers],
        },
        annotations=types.ToolAnnotations(
            read_only_hint=spec.only_reads,
            destructive_hint=False,
            idempotent_hint=spec.only_reads,
            open_world_hint=False,
        ),
    )


async def _list_prompts(
    context: RequestContext, params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    prompt = types.Prompt(name=PROMPT, description="How to use the tools: gate, record, seal.", arguments=[])
    return types.ListPromptsResult(prompts=[prompt])


async def _get_prompt(context: RequestContext, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    if params.name != PROMPT:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:80]}")
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=INSTRUCTIONS))
    return types.GetPromptResult(messages=[message])
