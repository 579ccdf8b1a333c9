"""The gateway's MCP door: one tool, `act`, over the protocol.

The tool has a closed schema, and the gateway enforces it: an argument more or less is `BAD_REQUEST`, and such a call is
recorded like every other. The result of a call is the gateway's envelope, as text and as structured content. A denial
is an error of the tool (`isError`), so that no client takes it for a success.

A process on standard input tells nothing about itself. So the door has no identity, and every record says so: ingress
`stdio` with an empty identity. Each process is a session of its own, unless it is started with a name for it.

The SDK reads the JSON of a call. Of a key that comes twice it keeps the last, so that the gateway sees only one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from aver import __version__
from aver.gateway.act_records import IngressNote
from aver.gateway.acts.visit import Door
from aver.gateway.codes import build_envelope
from aver.gateway.gateway import Gateway
from aver.gateway.request import CLOSED_SCHEMA
from aver.mcp.tool_result import build_tool_result

SERVER_NAME = "aver-gateway"
ACT = "act"

ACTS_AT_ONCE = 32
"""As many calls as the MCP server of the recording tools runs at a time. Further ones wait."""

INSTRUCTIONS = (
    "Use the tool act for every effect: read, write and delete files of the workspace, send messages, fetch resources, "
    "run commands. A name such as CheckWriteWorkspaceFile only asks whether an act would be allowed, and answers with "
    "a tx_id. Send that tx_id as the only input to carry it out. If the answer is REQUIRE_CONFIRM, a person must "
    "approve the act first. Then send the same act again."
)

_ENVELOPE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["OK", "DENY"]},
        "reason_code": {"type": "string"},
        "summary": {"type": "string"},
        "data": {"type": "object"},
        "artifacts": {"type": "array"},
    },
    "required": ["status", "reason_code", "summary", "data", "artifacts"],
}

_LOG = logging.getLogger("aver.mcp")


SendAct = Callable[[dict[str, Any]], dict[str, Any]]
"""Sends an act, and returns its envelope."""


def build_gateway_server(open_gateway: Callable[[], Gateway]) -> Server[Any]:
    """Build the server, ready to run on a transport. The first call of the tool calls `open_gateway`, once."""

    def open_way() -> SendAct:
        gateway = open_gateway()
        door = Door(session=gateway.door.session, ingress=IngressNote("stdio"))
        return lambda act: gateway.act(act, door=door)

    return build_act_server(open_way)


def build_act_server(open_way: Callable[[], SendAct]) -> Server[Any]:
    """Build the server for another way to a gateway. The first call of the tool calls `open_way`, once."""
    tool = _ActTool(open_way)
    return Server(
        SERVER_NAME,
        version=__version__,
        title="Aver gateway",
        description="Carries out an agent's acts, after two policy servers have allowed them.",
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=tool.call_tool,
    )


async def _list_tools(
    context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    tool = types.Tool(
        name=ACT,
        title="Act",
        description="Carry out one act, or ask whether it would be allowed. Answers with status OK or DENY, and why.",
        input_schema=dict(CLOSED_SCHEMA),
        output_schema=_ENVELOPE_SCHEMA,
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
        ),
    )
    return types.ListToolsResult(tools=[tool])


class _ActTool:
    """Answers the calls of the tool, each in a thread."""

    def __init__(self, open_way: Callable[[], SendAct]) -> None:
        self._open_way = open_way
        self._send: SendAct | None = None
        self._opening = threading.Lock()
        self._turns = anyio.CapacityLimiter(ACTS_AT_ONCE)

    async def call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name != ACT:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        # The thread continues if the client disconnects: an act that has begun gets its outcome.
        envelope = await anyio.to_thread.run_sync(partial(self._act, params.arguments or {}), limiter=self._turns)
        return build_tool_result(envelope, is_error=envelope["status"] != "OK")

    def _act(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            with self._opening:
                self._send = self._send or self._open_way()
            return self._send(arguments)
        except Exception as error:  # noqa: BLE001 - a defect here must not take the server down
            _LOG.exception("an act failed")
            # Only the type: the text of an unexpected error may contain a secret, and the agent would see it.
            words = f"internal error: {type(error).__name__}; nothing may be taken as done"
            return build_envelope("EXECUTOR_UNAVAILABLE", words)
