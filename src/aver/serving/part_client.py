"""The client of a part: sends JSON to a server of Aver on this machine, and reads the answer strictly.

    client = PartClient(parse_address("unix:/run/policy0.sock"), token, timeout=5, part="policy server 0")
    answer = client.post("/evaluate", {"v": 1, ...})

Every failure is a `PartUnavailable` that names the part, its address and what happened: it does not run, it is too
slow, its answer is not HTTP or not JSON, or the status is not 200. `may_have_arrived` says whether the part can have
carried out the request all the same.

The client keeps connections open and uses them again, from any thread. The part may close one in between. Then the
client opens another one, but only as long as it has not sent a single byte: a request that may have arrived is never
sent twice. Before a connection is used again, the client looks whether it is closed, or has bytes that nobody asked
for.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import h11

from aver.capsule.canonical import canonical_json
from aver.capsule.json_reader import Unreadable, read_json
from aver.errors import BadInput, Unavailable
from aver.log import debug
from aver.serving.sockets import PartAddress
from aver.serving.wire import HEAD_MAX, receive_event
from aver.text import clip_text, to_one_line

ANSWER_MAX = 16 * 1024 * 1024
"""Most bytes of an answer: the largest document that the strict reader takes."""

ANSWER_RECEIVE_SIZE = 64 * 1024

REUSE_SECONDS = 30.0
"""How long an idle connection is used again. Servers close theirs later, see `WireLimits.idle_seconds`."""

IDLE_MAX = 16
"""Most connections that wait to be used again. More calls at a time open more, and close them afterwards."""

SHOWN_MAX = 300
"""Characters of a part's refusal that an error repeats."""


class PartUnavailable(Unavailable):
    """A part of the gateway gave no answer that can be used.

    `status` is that of the answer, where there was one. Without `may_have_arrived`, the part cannot have seen the
    request.
    """

    def __init__(
        self, part: str, address: str, problem: str, *, may_have_arrived: bool, status: int | None = None
    ) -> None:
        super().__init__(f"{part} at {address} {problem}", advice="see which parts run: aver gateway status")
        self.part = part
        self.address = address
        self.status = status
        self.may_have_arrived = may_have_arrived


class PartClient:
    """Calls one part. `timeout` is for a whole call, in seconds. Without a token, none is sent."""

    def __init__(
        self, address: PartAddress, token: str, timeout: float, *, part: str, answer_max: int = ANSWER_MAX
    ) -> None:
        self.address = address
        self.part = part
        self._token = token
        self._timeout = timeout
        self._answer_max = answer_max
        self._idle: deque[_ClientConnection] = deque(maxlen=IDLE_MAX)

    def post(
        self,
        path: str,
        document: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        *,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Send a document, and return the answer's. `NotCanonical` if it is not JSON, else `PartUnavailable`.

        `deadline` is that of `begin`; without it, the whole timeout begins now.
        """
        return self._call("POST", path, canonical_json(document), headers or {}, deadline)

    def get(self, path: str, *, deadline: float | None = None) -> dict[str, Any]:
        """Return the document at a path. Raises `PartUnavailable`."""
        return self._call("GET", path, b"", {}, deadline)

    def begin(self, most: float | None = None) -> float:
        """Return the deadline of calls that share one timeout, of at most `most` seconds, which begins now."""
        return time.monotonic() + (self._timeout if most is None else min(self._timeout, most))

    def close(self) -> None:
        """Close the connections that wait to be used again. The client can still be used."""
        with suppress(IndexError):  # Empty: another thread may have taken the last one.
            while True:
                self._idle.pop().socket.close()

    def _call(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], deadline: float | None
    ) -> dict[str, Any]:
        deadline = self.begin() if deadline is None else deadline
        request = self._build_request(method, path, body, headers)
        connection = self._send_request(request, body, deadline)
        try:
            status, answer = self._read_answer(connection, deadline)
        except BaseException:
            connection.socket.close()
            raise
        self._keep(connection)
        if status != 200:
            words = to_one_line(answer[:SHOWN_MAX].decode("utf-8", "replace"))
            raise self._error(f"answered with the status {status}: {words}", may_have_arrived=True, status=status)
        try:
            document = read_json(answer)
        except Unreadable as error:
            raise self._error(f"gave an answer that cannot be read: {error}", may_have_arrived=True) from error
        if not isinstance(document, dict):
            raise self._error("gave an answer that is not an object", may_have_arrived=True)
        return document

    def _build_request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> h11.Request:
        fields = [("Host", self.address.hosts[0]), ("Content-Length", str(len(body)))]
        if body:
            fields.append(("Content-Type", "application/json"))
        if self._token:
            fields.append(("Authorization", f"Bearer {self._token}"))
        try:
            return h11.Request(method=method, target=path, headers=[*fields, *headers.items()])
        except (h11.LocalProtocolError, UnicodeError):
            # Without the error of h11, which repeats the value: it may be the token.
            raise BadInput(f"a request to {self.part} has a path or a header that HTTP does not allow") from None

    def _send_request(self, request: h11.Request, body: bytes, deadline: float) -> _ClientConnection:
        """Send a request on an open connection, or on a new one. Returns the connection."""
        while (connection := self._take_idle()) is not None:
            if connection.is_quiet():
                sent, problem = connection.send(request, body, deadline)
                if problem is None:
                    return connection
                if sent:
                    connection.socket.close()
                    raise self._broken_error(problem, may_have_arrived=True) from problem
            # It was closed before the first byte went out, so the request has reached nobody.
            debug("serving", "%s had closed the connection; opening another one", self.part)
            connection.socket.close()
        try:
            connection = _ClientConnection(self.address.connect(max(deadline - time.monotonic(), 0.001)))
        except OSError as error:
            raise self._broken_error(error, may_have_arrived=False) from error
        sent, problem = connection.send(request, body, deadline)
        if problem is not None:
            connection.socket.close()
            raise self._broken_error(problem, may_have_arrived=sent) from problem
        return connection

    def _take_idle(self) -> _ClientConnection | None:
        """The connection that was used last, or None. Those that are too old, or another process's, are closed."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            # After a fork, both processes have the descriptor, and would mix their requests.
            if connection.process == os.getpid() and time.monotonic() - connection.used < REUSE_SECONDS:
                return connection
            connection.socket.close()

    def _keep(self, connection: _ClientConnection) -> None:
        if connection.is_reusable():
            connection.used = time.monotonic()
            if len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.socket.close()

    def _read_answer(self, connection: _ClientConnection, deadline: float) -> tuple[int, bytes]:
        """Read the status and the body of an answer."""
        http, body, status = connection.http, bytearray(), 0
        try:
            while not isinstance(
                event := receive_event(http, connection.socket, deadline, ANSWER_RECEIVE_SIZE), h11.EndOfMessage
            ):
                if isinstance(event, h11.Response):
                    status = event.status_code
                elif isinstance(event, h11.Data):
                    body += event.data
                    if len(body) > self._answer_max:
                        raise self._error(f"gave more than {self._answer_max} bytes", may_have_arrived=True)
                elif isinstance(event, h11.ConnectionClosed):
                    raise ConnectionResetError("it closed the connection")
        except h11.RemoteProtocolError as error:
            # The part has gone, as one that was killed. h11 calls that a wrong message.
            if not status and http.trailing_data == (b"", True):
                raise self._error("closed the connection before it answered", may_have_arrived=True) from error
            words = clip_text(to_one_line(str(error)), SHOWN_MAX)
            raise self._error(f"gave an answer that is not HTTP/1.1: {words}", may_have_arrived=True) from error
        except OSError as error:
            raise self._broken_error(error, may_have_arrived=True) from error
        return status, bytes(body)

    def _broken_error(self, error: OSError, *, may_have_arrived: bool) -> PartUnavailable:
        if isinstance(error, TimeoutError):
            problem = f"gave no answer within {self._timeout:g} seconds"
        elif isinstance(error, ConnectionRefusedError | FileNotFoundError):
            problem = "does not run: nobody listens there"
        else:
            problem = f"cannot be reached: {error.strerror or error}"
        return self._error(problem, may_have_arrived=may_have_arrived)

    def _error(self, problem: str, *, may_have_arrived: bool, status: int | None = None) -> PartUnavailable:
        debug("serving", "%s at %s %s", self.part, self.address, problem)
        return PartUnavailable(self.part, str(self.address), problem, may_have_arrived=may_have_arrived, status=status)


class _ClientConnection:
    """A connection to a part, with the state of its HTTP."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        self.process = os.getpid()
        self.used = time.monotonic()

    def is_quiet(self) -> bool:
        """Whether the part has neither closed the connection nor sent anything since its last answer."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | select.POLLHUP | select.POLLERR)
        return not poll.poll(0)

    def is_reusable(self) -> bool:
        """Whether another request may follow. If so, HTTP is ready for it."""
        leftover, closed = self.http.trailing_data
        if leftover or closed or self.http.our_state is not h11.DONE or self.http.their_state is not h11.DONE:
            return False
        self.http.start_next_cycle()
        return True

    def send(self, request: h11.Request, body: bytes, deadline: float) -> tuple[bool, OSError | None]:
        """Send a request. Returns whether any byte went out, and the error that stopped it, if there was one."""
        http = self.http
        data = memoryview(
            b"".join(http.send(event) or b"" for event in (request, h11.Data(data=body), h11.EndOfMessage()))
        )
        sent = 0
        try:
            while sent < len(data):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError("the time for this step is over")
                self.socket.settimeout(left)
                sent += self.socket.send(data[sent:])
        except OSError as error:
            return sent > 0, error
        return True, None
