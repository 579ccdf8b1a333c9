"""The server behind the proxy at a URL: streamable HTTP, or the older transport of server-sent events.

The transport is that of the MCP SDK, in a thread with an event loop of its own. The proxy adds the headers that a
client adds: the version of the protocol, and for versions from 2026-07-28 on the method and the name.

Where an answer is lost on its way, or is a status of HTTP without a message, the transport makes an error of JSON-RPC
of its own. The server may have acted all the same. So the link reports such an error as a lost answer
(`LinkEvents.lose`), and a call ends as `OUTCOME_UNKNOWN`.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx2
import mcp_types as types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage

from aver.errors import Unavailable
from aver.log import debug
from aver.mcp.proxy.messages import MESSAGE_MAX, PROTOCOL_VERSION_KEY
from aver.mcp.proxy.server_link import LinkEvents

START_SECONDS = 30.0
"""How long connecting may take."""

READ_SECONDS = 24 * 3600.0
"""How long a server may be silent. A call may take any time; the client ends it where it wants to."""


class HttpLink:
    """A server at a URL."""

    def __init__(self, url: str, *, headers: Mapping[str, str], is_sse: bool, tell: Callable[[str], None]) -> None:
        self._url = url
        self._headers = dict(headers)
        self._is_sse = is_sse
        self._tell = tell
        self._portal: anyio.from_thread.BlockingPortal | None = None
        self._writing: Any = None
        self._started = threading.Event()
        self._stop: anyio.Event | None = None
        self._done = threading.Event()
        self._trouble = ""
        self._version = ""
        """The version of the protocol that client and server agreed on by `initialize`."""
        self._schemas: dict[str, Mapping[str, Any]] = {}
        """Schemas of tools' arguments: some arguments also go into headers."""

    def start(self, events: LinkEvents) -> None:
        """Connect. Raises `Unavailable` where the transport cannot be set up."""
        threading.Thread(target=self._run_loop, args=(events,), daemon=True).start()
        if not self._started.wait(START_SECONDS) or self._trouble:
            words = self._trouble or f"no connection within {START_SECONDS:g} seconds"
            raise Unavailable(f"the server cannot be reached: {words}", advice="check the URL")

    def _run_loop(self, events: LinkEvents) -> None:
        try:
            anyio.run(self._relay, events)
            reason = "the connection to the server has ended"
        except Exception as error:  # noqa: BLE001 - the transport may raise anything
            reason = self._trouble = f"the connection to the server failed: {_describe(error)}"
            debug("mcp", "%s", reason)
        self._done.set()
        self._started.set()
        events.end(reason)

    async def _relay(self, events: LinkEvents) -> None:
        self._stop = anyio.Event()
        async with anyio.from_thread.BlockingPortal() as portal, self._connect() as (reading, writing):
            self._portal, self._writing = portal, writing
            self._started.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_messages, reading, events, tasks.cancel_scope)
                await self._stop.wait()
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[tuple[Any, Any]]:
        if self._is_sse:
            async with sse_client(self._url, headers=self._headers, sse_read_timeout=READ_SECONDS) as streams:
                yield streams
            return
        timeout = httpx2.Timeout(START_SECONDS, read=READ_SECONDS)
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=timeout) as client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=MESSAGE_MAX) as streams,
        ):
            yield streams

    async def _read_messages(self, reading: Any, events: LinkEvents, scope: anyio.CancelScope) -> None:
        async for item in reading:
            if not isinstance(item, SessionMessage):
                self._tell("a message of the server cannot be read, and was dropped")
                continue
            message = item.message
            if isinstance(message, types.JSONRPCResponse):
                self._note_answer(message.result)
            elif isinstance(message, types.JSONRPCError) and message.id is not None and _is_lost(message.error):
                await anyio.to_thread.run_sync(events.lose, message.id, message.error.message)
                continue
            line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            # In a thread: the client may read slowly, and the loop must go on.
            await anyio.to_thread.run_sync(events.receive, line)
        scope.cancel()

    def _note_answer(self, result: Any) -> None:
        """Note the version that the server has chosen, and the schemas of its tools."""
        if not isinstance(result, dict):
            return
        if isinstance(result.get("protocolVersion"), str) and "capabilities" in result:
            self._version = result["protocolVersion"]
        for tool in result.get("tools") or ():
            if isinstance(tool, dict) and isinstance(tool.get("inputSchema"), dict):
                self._schemas[str(tool.get("name"))] = tool["inputSchema"]

    def send(self, line: bytes) -> None:
        """Hand a message to the transport. `Unavailable` where the connection has ended before."""
        portal, writing = self._portal, self._writing
        if portal is None or self._done.is_set():
            raise Unavailable("the connection to the server has ended")
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        wrapped = SessionMessage(message, ClientMessageMetadata(headers=self._build_headers(message)))
        try:
            portal.call(writing.send, wrapped)
        except Exception as error:
            raise Unavailable(f"the connection to the server does not work: {_describe(error)}") from error

    def _build_headers(self, message: Any) -> dict[str, str] | None:
        """Return the headers of the protocol for a message: a version with the message itself wins."""
        method = getattr(message, "method", None)
        params = getattr(message, "params", None) or {}
        meta = params.get("_meta")
        stated = meta.get(PROTOCOL_VERSION_KEY) if isinstance(meta, dict) else None
        if not isinstance(stated, str):
            return {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version and method != "initialize" else None
        headers = {MCP_PROTOCOL_VERSION_HEADER: stated, MCP_METHOD_HEADER: str(method)}
        named = NAME_BEARING_METHODS.get(str(method))
        if named is not None and isinstance(name := params.get(named), str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
        schema = self._schemas.get(str(params.get("name"))) if method == "tools/call" else None
        if schema is not None:
            headers |= mcp_param_headers(x_mcp_header_map(schema), params.get("arguments") or {})
        return headers

    def close(self) -> int:
        """End the connection. A server at a URL has no exit code."""
        if self._portal is not None and self._stop is not None and not self._done.is_set():
            try:
                self._portal.call(self._stop.set)
            except RuntimeError:
                debug("mcp", "the connection has ended by itself")
        self._done.wait(START_SECONDS)
        return 0


def _is_lost(error: types.ErrorData) -> bool:
    """Whether an error is the transport's own, about an answer that did not come. A server may use the same code."""
    return error.code == types.CONNECTION_CLOSED or error.message == _STATUS_ERROR


_STATUS_ERROR = "Server returned an error response"
"""The words of the SDK's transport for a status of HTTP that came without a message."""


def _describe(error: BaseException) -> str:
    """Say what went wrong, without the headers and the URL, which may hold secrets."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return type(error).__name__
