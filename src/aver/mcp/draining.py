"""Serving on standard input and output, so that no call is lost when the client closes its end.

The SDK's server cancels what it is doing when its input ends. A client that sends its last calls and closes the pipe,
as a program does that exits, would lose their answers, and could not know what was recorded. So the server's input is
kept open here until every request that came has been answered or was taken back by the client.
"""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

__all__ = ["serve_stdio"]

DRAIN_SECONDS = 120.0
"""For how long answers are waited for after the input ended. A call that waits for a human may take longer; it is
sealed as a decision all the same."""

Incoming = SessionMessage | Exception


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until its input ends and what it asked for is done."""
    async with stdio_server() as (reading, writing):
        to_server, from_client = anyio.create_memory_object_stream[Incoming](0)
        from_server, to_relay = anyio.create_memory_object_stream[SessionMessage](0)
        pending = _Pending()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_relay_requests, reading, to_server, pending)
            tasks.start_soon(_relay_answers, to_relay, writing, pending)
            await server.run(from_client, from_server, server.create_initialization_options())


class _Pending:
    """The requests that were not answered yet."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._changed = anyio.Event()

    def came(self, request: types.RequestId) -> None:
        key = repr(request)
        self._ids[key] = self._ids.get(key, 0) + 1

    def done(self, request: types.RequestId | None) -> None:
        key = repr(request)
        left = self._ids.get(key, 0) - 1
        if left > 0:
            self._ids[key] = left
        else:
            self._ids.pop(key, None)
        self._changed.set()

    async def none_left(self) -> None:
        while self._ids:
            self._changed = anyio.Event()
            await self._changed.wait()


async def _relay_requests(reading: Any, to_server: MemoryObjectSendStream[Incoming], pending: _Pending) -> None:
    async with to_server:
        async for item in reading:
            if isinstance(item, SessionMessage):
                _note(item.message, pending)
            await to_server.send(item)
        with anyio.move_on_after(DRAIN_SECONDS):
            await pending.none_left()


def _note(message: Any, pending: _Pending) -> None:
    if isinstance(message, types.JSONRPCRequest):
        pending.came(message.id)
    elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
        # What a client takes back is not answered.
        taken_back = (message.params or {}).get("requestId")
        if isinstance(taken_back, str | int):
            pending.done(taken_back)


async def _relay_answers(to_relay: MemoryObjectReceiveStream[SessionMessage], writing: Any, pending: _Pending) -> None:
    async with writing, to_relay:
        async for item in to_relay:
            await writing.send(item)
            if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                pending.done(item.message.id)
