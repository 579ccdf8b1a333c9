"""The TLS handshake of a connection to the Explorer's server, within limits of number and time.

asyncio and uvicorn know a connection only when its handshake is done. Until then, they keep any number of them open for
a minute. So a client without a token could take every descriptor of the process by connecting and saying nothing. Here

* at most `HANDSHAKES_MAX` handshakes are under way. When another client comes, the oldest one ends;
* each takes at most `HANDSHAKE_SECONDS`.

After its handshake, `ExplorerConnection` takes the connection over, with limits of its own.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from aver.explorer.connection import ExplorerConnection
from aver.log import debug

HANDSHAKES_MAX = 128
"""Handshakes at a time. An honest one takes two or three round trips."""

HANDSHAKE_SECONDS = 10.0


class TlsHandshake(asyncio.Protocol):
    """A connection until its handshake is done. `pending` has those of one server, the oldest first.

    `given` are the arguments of uvicorn for the connection after it.
    """

    def __init__(self, *, context: ssl.SSLContext, pending: dict[TlsHandshake, None], **given: Any) -> None:
        self._context = context
        self._pending = pending
        self._connection = ExplorerConnection(**given)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._early = bytearray()
        self._is_secured = self._is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.pause_reading()  # `start_tls` goes on, and gets all bytes.
        if len(self._pending) >= HANDSHAKES_MAX:
            oldest = next(iter(self._pending))
            debug("explorer", "ended a TLS handshake: it was the oldest of %d", len(self._pending))
            oldest.abort()
        self._pending[self] = None
        self._task = asyncio.get_running_loop().create_task(self._secure(transport))

    def data_received(self, data: bytes) -> None:
        self._early += data  # It came with the end of the handshake, before `_secure` went on.

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if self._is_secured:
            self._connection.connection_lost(exc)

    def abort(self) -> None:
        """End the connection."""
        self._pending.pop(self, None)
        if self._transport is not None:
            self._transport.abort()

    async def _secure(self, transport: asyncio.Transport) -> None:
        secured: asyncio.Transport | None = None
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, self, self._context, server_side=True, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except OSError as error:  # Also those of TLS, and of a handshake that takes too long.
            debug("explorer", "a TLS handshake failed: %s", error)
        finally:
            self._pending.pop(self, None)
        if secured is None or self._is_lost:
            transport.abort()
            return
        self._is_secured = True
        secured.set_protocol(self._connection)
        self._connection.connection_made(secured)
        if self._early:
            self._connection.data_received(bytes(self._early))
