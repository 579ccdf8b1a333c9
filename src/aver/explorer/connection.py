"""One HTTP connection of the Explorer's server, within limits of number and time.

uvicorn waits for ever for a request that never arrives, and for a client that never reads. Each such connection would
keep a descriptor, and each answer its memory. So a connection ends

* when `CONNECTIONS_MAX` are open and another client comes: the one that has waited longest without a request. If all
  have one, the new connection gets 429;
* when its first request, or the rest of one, does not arrive within `REQUEST_SECONDS`;
* when its client takes nothing of an answer for `STALL_SECONDS`.

Nothing but what the kernel takes is buffered for a client: the application waits instead.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from aver.explorer.answers import raw_problem
from aver.log import debug

CONNECTIONS_MAX = 128
"""Open connections. A browser makes six to one server, and a page with a live stream keeps one more."""

REQUEST_SECONDS = 20.0
"""How long a request may take to arrive. The largest, 16 MiB, needs less than 1 MB a second."""

LINGER_SECONDS = 1.0
"""How long a connection that is refused stays open for its client to read why."""

STALL_SECONDS = 30.0
"""How long a client may leave an answer unread."""


class ExplorerConnection(H11Protocol):
    """uvicorn's connection with the limits of this module."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._is_refused = False
        self._is_ended = False
        self._since = self.loop.time()
        self._arrival: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        others = [each for each in self.connections if isinstance(each, ExplorerConnection) and not each._is_ended]
        super().connection_made(transport)
        # With bytes in our memory, `pause_writing` is called: so the clock runs also for the end of an answer. Not 0:
        # with TLS, asyncio takes an empty buffer for a full one then, and answers would wait for ever.
        transport.set_write_buffer_limits(high=1, low=0)
        self._is_refused = len(others) >= CONNECTIONS_MAX and not _make_room(others)
        if self._is_refused:
            debug("explorer", "refused a connection: %d are at work", len(others))
            transport.write(raw_problem(429, "Too Many Requests", "too many connections are open"))
            # A socket that is closed with unread bytes makes the client lose the answer. So wait for it a moment, but
            # not for a flood.
            linger = LINGER_SECONDS if len(others) < 2 * CONNECTIONS_MAX else 0.0
            self._arrival = self.loop.call_later(linger, self._end, "was one too many")
        else:
            self._arrival = self.loop.call_later(REQUEST_SECONDS, self._end, "sent no whole request")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clocks()
        # uvicorn leaves its own clock running if the client reset the connection: all of it would be held for a while.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._since = self.loop.time()
        super().data_received(data)
        # Asked of the parser: a connection that is kept open may send the next request as slowly as the first.
        is_arriving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not is_arriving and self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None
        elif is_arriving and self._arrival is None and not self.transport.is_closing():
            self._arrival = self.loop.call_later(REQUEST_SECONDS, self._end, "sent no whole request")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(STALL_SECONDS, self._end, "did not read its answer")

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP. With uvicorn's own answer, the common headers would be missing."""
        self.transport.write(raw_problem(400, "Bad Request", "this is not an HTTP request"))
        self.transport.close()

    @property
    def is_waiting(self) -> bool:
        """Whether no request of it is being carried out."""
        return self.cycle is None or self.cycle.response_complete

    def _end(self, why: str) -> None:
        debug("explorer", "ended a connection: its client %s", why)
        self._is_ended = True
        self._stop_clocks()
        self.transport.abort()  # Not `close`, which waits until the client has read everything.

    def _stop_clocks(self) -> None:
        for clock in (self._arrival, self._stall):
            if clock is not None:
                clock.cancel()
        self._arrival = self._stall = None


def _make_room(others: list[ExplorerConnection]) -> bool:
    """End the connection that has waited longest without a request. Returns False if there is none."""
    waiting = [each for each in others if each.is_waiting and not each._is_refused]
    if not waiting:
        return False
    min(waiting, key=lambda each: each._since)._end("waited longest, and another one came")
    return True
