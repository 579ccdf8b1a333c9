"""HTTP/1.1 on one connection, within limits of time and size. h11 parses; this module reads, writes and waits.

Every wait has a deadline for the whole step. A deadline that began again with each byte would let a slow sender hold a
connection for ever:

    first byte    `idle_seconds` after the last answer; a new connection has `head_seconds`
    head          `head_seconds` after its first byte
    body          `body_seconds` after the head
    answer        `write_seconds`, for a reader that does not read

A head has at most `HEAD_MAX` bytes, and a body `body_max`, counted as they arrive. A request that breaks a limit, or is
not HTTP/1.1, is answered with a status (408, 413, 431, 400), and then the connection is closed: nobody knows where the
next request would begin. Requests that a client sends without waiting (pipelining) are answered in their order; the
server reads no more than `BODY_RECEIVE_SIZE` ahead.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import h11

from aver.fast_dataclass import dataclass
from aver.log import debug
from aver.serving.guard import BODY_TOO_LARGE, HttpRefusal

HEAD_MAX = 16 * 1024
"""Most bytes of a request line with its headers. A delegation token is some kilobytes; no other header is long."""

RECEIVE_SIZE = HEAD_MAX
"""Bytes that are taken from the socket at a time while a head is read, so that h11 sees one that is too long."""

BODY_RECEIVE_SIZE = 128 * 1024
"""The same while a body is read."""


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Limits of one connection of a server. The times are seconds for a whole step."""

    head_seconds: float = 10.0
    """A program on this machine writes a head in one piece."""
    body_seconds: float = 30.0
    """Ample for megabytes between two processes of one machine that is busy."""
    idle_seconds: float = 60.0
    """Longer than `aver.serving.part_client.REUSE_SECONDS`: so the client gives up an idle connection first."""
    write_seconds: float = 30.0
    linger_seconds: float = 2.0
    """How long a server that closes a connection early still reads. Otherwise the system would drop the answer, too."""
    body_max: int = 4 * 1024 * 1024
    """As the MCP server's. The largest body has the content of a file, a diff and the facts about them."""


DEFAULT_WIRE_LIMITS = WireLimits()


class RequestHead(NamedTuple):
    """Method, target and headers of a request. The names of headers are in lower case."""

    method: str
    target: str
    headers: list[tuple[bytes, bytes]]


class BadRequest(Exception):
    """The request cannot be read to its end. After the answer, the connection must be closed."""

    def __init__(self, refusal: HttpRefusal) -> None:
        super().__init__(refusal.words)
        self.refusal = refusal


class ServerConnection:
    """The server's end of a connection. Its methods are called in turn: `read_head`, `read_body`, `send_answer`.

    They raise `OSError` if the connection breaks, and `BadRequest` as the module's docstring says.
    """

    def __init__(self, connection: socket.socket, limits: WireLimits) -> None:
        self._socket = connection
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MAX)
        self._first = True
        self._wants_body = True

    def read_head(self) -> RequestHead | None:
        """Wait for the next request. None if the client has closed the connection, or sends nothing for too long."""
        if not self._first:
            self._http.start_next_cycle()
        patience = self._limits.head_seconds if self._first else self._limits.idle_seconds
        self._first = False
        if not self._http.trailing_data[0] and not self._wait_for_first_byte(patience):
            return None
        event = self._next_event(time.monotonic() + self._limits.head_seconds, RECEIVE_SIZE)
        if not isinstance(event, h11.Request):
            return None
        self._wants_body = event.method != b"HEAD"
        headers = [(bytes(name), bytes(value)) for name, value in event.headers]
        # h11 holds a head to the limit only as long as its end is missing.
        if len(event.target) + sum(len(name) + len(value) for name, value in headers) > HEAD_MAX:
            raise BadRequest(HttpRefusal(431, "the head is too large"))
        # h11 obeys the second and drops the first. A forwarder that obeys the first would see other requests than we.
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
            raise BadRequest(HttpRefusal(400, "the body has two lengths"))
        return RequestHead(event.method.decode("ascii"), event.target.decode("ascii"), headers)

    def _wait_for_first_byte(self, seconds: float) -> bool:
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(RECEIVE_SIZE)
        except TimeoutError:
            debug("serving", "closed a connection that was idle")
            return False
        self._http.receive_data(data)
        return bool(data)

    def read_body(self) -> bytes:
        """Read the body of the request whose head was read last."""
        deadline = time.monotonic() + self._limits.body_seconds
        if self._http.they_are_waiting_for_100_continue:
            self._send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
        body = bytearray()
        while isinstance(event := self._next_event(deadline, BODY_RECEIVE_SIZE), h11.Data):
            body += event.data
            if len(body) > self._limits.body_max:
                raise BadRequest(BODY_TOO_LARGE)
        if not isinstance(event, h11.EndOfMessage):
            raise ConnectionResetError("the client went away")
        return bytes(body)

    def _next_event(self, deadline: float, size: int) -> Any:
        try:
            return receive_event(self._http, self._socket, deadline, size)
        except TimeoutError as error:
            raise BadRequest(HttpRefusal(408, "the request did not arrive in time")) from error
        except h11.RemoteProtocolError as error:
            # Without the words of h11: they repeat the line, which may hold a token.
            raise BadRequest(HttpRefusal(error.error_status_hint, "not a request of HTTP/1.1")) from error

    def send_answer(
        self, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = (), *, last: bool = False
    ) -> bool:
        """Send an answer in JSON. Returns whether another request may follow; `last` tells the client that none may."""
        fields = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *headers,
        ]
        # If the body of the request was not read, the rest of it would be taken for the next request.
        if last or self._http.their_state is not h11.DONE:
            fields.append((b"connection", b"close"))
        http = self._http
        response = h11.Response(status_code=status, headers=fields)
        data = h11.Data(data=body if self._wants_body else b"")
        self._send(b"".join(http.send(event) or b"" for event in (response, data, h11.EndOfMessage())))
        return bool(http.our_state is h11.DONE and http.their_state is h11.DONE)

    def _send(self, data: bytes | None) -> None:
        self._socket.settimeout(self._limits.write_seconds)
        self._socket.sendall(data or b"")  # The timeout is for all of it.

    def linger(self) -> None:
        """Read and drop what the client still sends, for a while, so that it gets the last answer."""
        deadline = time.monotonic() + self._limits.linger_seconds
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(BODY_RECEIVE_SIZE):
                    return


def receive_event(http: h11.Connection, connection: socket.socket, deadline: float, size: int) -> Any:
    """The next event of h11, from bytes that arrive until the deadline. Raises `TimeoutError` after it."""
    while (event := http.next_event()) is h11.NEED_DATA:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for this step is over")
        connection.settimeout(left)
        http.receive_data(connection.recv(size))
    return event
