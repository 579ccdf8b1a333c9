"""Serving on standard input and output, so that no call is lost when the client closes its end.

The SDK's server cancels what it is doing when its input ends. A client that sends its last calls and closes the pipe,
as a program does that exits, would lose their answers, and could not know what was recorded. So the server's input is
kept open here until every request that came has been answered or was taken back by the client.

It also passes over what it cannot read, such as half a character that a client cut a text at, and the client would wait
for ever. That is answered here.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from aver.capsule.canonical import has_surrogate

__all__ = ["serve_stdio"]

DRAIN_SECONDS = 120.0
"""For how long answers are waited for after the input ended. A call that waits for a human may take longer; it is
sealed as a decision all the same."""

REQUEST_ID_DIGITS = 16
"""Digits of a request's number: more than any client counts to."""

Incoming = SessionMessage | Exception


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until its input ends and what it asked for is done."""
    async with stdio_server() as (reading, writing):
        to_server, from_client = anyio.create_memory_object_stream[Incoming](0)
        from_server, to_relay = anyio.create_memory_object_stream[SessionMessage](0)
        pending = _PendingRequests()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_relay_requests, reading, to_server, from_server.clone(), pending)
            tasks.start_soon(_relay_answers, to_relay, writing, pending)
            await server.run(from_client, from_server, server.create_initialization_options())


class _PendingRequests:
    """The requests that were not answered yet."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._changed = anyio.Event()

    def add_request(self, request: types.RequestId) -> None:
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

    async def wait_until_empty(self) -> None:
        while self._ids:
            self._changed = anyio.Event()
            await self._changed.wait()


async def _relay_requests(
    reading: Any,
    to_server: MemoryObjectSendStream[Incoming],
    answering: MemoryObjectSendStream[SessionMessage],
    pending: _PendingRequests,
) -> None:
    async with to_server, answering:
        async for item in reading:
            if isinstance(item, SessionMessage):
                _track_request(item.message, pending)
            elif (raw := _unreadable_line(item)) is not None:
                await answering.send(_build_parse_error(raw))
                continue
            await to_server.send(item)
        with anyio.move_on_after(DRAIN_SECONDS):
            await pending.wait_until_empty()


def _unreadable_line(error: Exception) -> str | None:
    """The line that is not JSON, or not JSON that can be read."""
    found = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
    raw = found["input"] if found is not None and found["type"] == "json_invalid" else None
    return raw if isinstance(raw, str) and raw.strip() else None


def _build_parse_error(raw: str) -> SessionMessage:
    """The answer to such a line, to the request in it where that can be told."""
    try:
        content = _LENIENT_DECODER.decode(raw)
    except (ValueError, RecursionError):
        content = None
    number = content.get("id") if isinstance(content, dict) else None
    if (
        isinstance(number, bool)
        or not isinstance(number, str | int)
        or (isinstance(number, str) and has_surrogate(number))
    ):
        number = None
    words = "this cannot be read: not JSON, half a character (a lone surrogate), or nested or long beyond measure"
    return SessionMessage(
        types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=types.PARSE_ERROR, message=words))
    )


_LENIENT_DECODER = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) < REQUEST_ID_DIGITS else None)


def _track_request(message: Any, pending: _PendingRequests) -> None:
    if isinstance(message, types.JSONRPCRequest):
        pending.add_request(message.id)
    elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
        # What a client takes back is not answered.
        taken_back = (message.params or {}).get("requestId")
        if isinstance(taken_back, str | int):
            pending.done(taken_back)


async def _relay_answers(
    to_relay: MemoryObjectReceiveStream[SessionMessage], writing: Any, pending: _PendingRequests
) -> None:
    async with writing, to_relay:
        async for item in to_relay:
            await writing.send(item)
            if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                pending.done(item.message.id)
