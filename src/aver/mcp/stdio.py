"""Serve MCP on standard input and output, so that no call is lost when the client closes its end.

The server of the SDK cancels running calls when its input ends. A client that sends its last calls and exits would lose
their answers, and could not know what was recorded. So this module keeps the input of the SDK server open until the
server has answered every request, or the client has cancelled it.

The SDK also ignores lines that it cannot read, for example a text with half a character. The client would wait for an
answer forever. This module answers such lines with an error.
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

DRAIN_SECONDS = 120.0
"""How many seconds Aver waits for answers after the input ended. A call that waits for a human may take longer; Aver
seals its decision anyway."""

REQUEST_ID_DIGITS = 16
"""Aver ignores a request id with this many digits or more. No client counts that far."""

Incoming = SessionMessage | Exception


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until its input ends and all its requests are answered."""
    async with stdio_server() as (reading, writing):
        # The SDK server reads from our streams instead of the input, so that we decide when its input ends.
        to_server, from_client = anyio.create_memory_object_stream[Incoming](0)
        from_server, to_relay = anyio.create_memory_object_stream[SessionMessage](0)
        pending = _PendingRequests()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_relay_requests, reading, to_server, from_server.clone(), pending)
            tasks.start_soon(_relay_answers, to_relay, writing, pending)
            await server.run(from_client, from_server, server.create_initialization_options())


class _PendingRequests:
    """The requests without an answer. A client may use one id several times, so each id has a count."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._changed = anyio.Event()

    def add_request(self, request: types.RequestId) -> None:
        key = repr(request)  # Keeps the ids `1` and `"1"` apart.
        self._ids[key] = self._ids.get(key, 0) + 1

    def mark_answered(self, request: types.RequestId | None) -> None:
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
        # The input ended. Keep `to_server` open until all answers are sent.
        with anyio.move_on_after(DRAIN_SECONDS):
            await pending.wait_until_empty()


def _unreadable_line(error: Exception) -> str | None:
    """Return the line if the error means that it is not readable JSON; otherwise None."""
    found = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
    raw = found["input"] if found is not None and found["type"] == "json_invalid" else None
    return raw if isinstance(raw, str) and raw.strip() else None


def _build_parse_error(raw: str) -> SessionMessage:
    """Build the error for an unreadable line. It names the id of the request if the line shows one."""
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
        # The server does not answer a cancelled request.
        cancelled = (message.params or {}).get("requestId")
        if isinstance(cancelled, str | int):
            pending.mark_answered(cancelled)


async def _relay_answers(
    to_relay: MemoryObjectReceiveStream[SessionMessage], writing: Any, pending: _PendingRequests
) -> None:
    async with writing, to_relay:
        async for item in to_relay:
            await writing.send(item)
            # Only after it was sent: the last mark ends the wait for answers, and with it the server.
            if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                pending.mark_answered(item.message.id)
