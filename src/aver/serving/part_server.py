"""A server of JSON routes: the gateway, its policy servers and its executor are such parts.

    routes = {("POST", "/evaluate"): evaluate}                  # evaluate(call) -> document
    server = PartServer(routes, identify=ClientList(clients), health=lambda: {"ok": True, "part": "policy0"})
    serve_until_signal(server, [listen_on(parse_address("unix:/run/policy0.sock"))])

A request is judged in this order, and the first refusal is the answer:

1. `Host` and `Origin` (421, 403), see `aver.serving.guard`; a header `Aver-…` that comes twice (400).
2. Who makes it: `identify` (401).
3. The route: 404, or 405 with the methods that the path has. `GET /health` is there always. It checks no signature, so
   a client that is known by nothing else gets 401 there.
4. The body: too large (413), not JSON by Aver's strict reader (400).

The route's function decides all else, and its answer is sent with the status 200. A `BadInput` that it raises becomes
a 400, another `AverError` a 503. Any other exception is a defect: it becomes a 500 that says no more than its type,
because the text may hold a secret. Refusals have the form `{"error": "…"}`, unless the part gives a function `refuse`.

Each connection has a thread, at most `connections` of them, and at most `calls` functions run at a time. When another
connection comes and all places are taken, the server closes the one that has waited longest without a request in
progress; one that never showed who it is, goes first. If every connection is at work, the new one gets 503.

A server that is stopped closes idle connections, finishes the calls that it has begun, and answers them.
"""

from __future__ import annotations

import logging
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.capsule.json_reader import Unreadable, read_json
from aver.errors import AverError, BadInput, NotCanonical
from aver.fast_dataclass import dataclass
from aver.log import debug
from aver.serving.guard import NO_TOKEN, HttpRefusal, check_headers
from aver.serving.peers import Credentials, Identify, Peer, read_peer_pid, read_peer_uid
from aver.serving.sockets import Listener
from aver.serving.tokens import find_bearer_token
from aver.serving.wire import DEFAULT_WIRE_LIMITS, BadRequest, RequestHead, ServerConnection, WireLimits

HEALTH = ("GET", "/health")
HEADER_PREFIX = b"aver-"

GRACE_SECONDS = 30.0
"""How long a server that is stopped waits for running calls."""

EVICTION_SECONDS = 1.0
"""How long a new connection waits for the place of one that the server closes. That takes well under a millisecond."""

EXHAUSTED_SECONDS = 0.1
"""How long the server waits when the system has no more descriptors, before it accepts again."""

_ALL_AT_WORK = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

_LOG = logging.getLogger("aver.serving")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of a server. A thread that waits takes some 50 kB."""

    connections: int = 64
    """A gateway has one connection to a part for each call at a time, and clients have one each."""
    calls: int = 32
    """As many as the MCP server runs. More would only wait for the ledger."""
    grace_seconds: float = GRACE_SECONDS
    wire: WireLimits = DEFAULT_WIRE_LIMITS


DEFAULT_LIMITS = ServerLimits()


@dataclass(frozen=True, slots=True)
class PartCall:
    """One request, as a route's function gets it.

    `document` is the JSON value of the body, and None for GET. `headers` are those that begin with `aver-`, by
    lower-case name. `body` has the bytes as they arrived, for signatures over them.
    """

    document: Any
    peer: Peer
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Handler = Callable[[PartCall], Mapping[str, Any]]
Refuse = Callable[[int, str], Mapping[str, Any]]
"""Builds the document of a refusal from its status and one sentence."""

StatusAndBody = tuple[int, bytes]


def _refuse_plainly(status: int, words: str) -> Mapping[str, Any]:
    return {"error": words}


class _Routes:
    """Judges requests and runs the functions of routes. It knows nothing of connections."""

    def __init__(
        self, routes: Mapping[tuple[str, str], Handler], identify: Identify, refuse: Refuse, calls: int
    ) -> None:
        self._handlers = routes
        self._identify = identify
        self._refuse = refuse
        self._turns = threading.BoundedSemaphore(calls)

    def examine_head(
        self, head: RequestHead, uid: int | None, pid: int | None, listener: Listener
    ) -> tuple[Peer, Mapping[str, str]]:
        """Steps 1 and 2: who makes a request, and its headers `Aver-…`. Raises `BadRequest`."""
        hosts = [host.encode("ascii") for host in listener.hosts]
        if (refusal := check_headers(head.headers, hosts)) is not None:
            raise BadRequest(refusal)
        own = [(name, value) for name, value in head.headers if name.startswith(HEADER_PREFIX)]
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in own}
        if len(headers) != len(own):
            raise BadRequest(HttpRefusal(400, "a header of Aver comes twice"))
        client = self._identify(Credentials(find_bearer_token(head.headers), uid, headers, pid))
        if client is None:
            raise BadRequest(NO_TOKEN)
        return Peer(uid, client, str(listener.address)), headers

    def find_handler(self, head: RequestHead, peer: Peer) -> Handler:
        """Step 3. Raises `BadRequest`."""
        if (head.method, head.target) == HEALTH and not peer.client:
            raise BadRequest(NO_TOKEN)
        handler = self._handlers.get((head.method, head.target))
        if handler is not None:
            return handler
        methods = sorted(method for method, path in self._handlers if path == head.target)
        if not methods:
            raise BadRequest(HttpRefusal(404, "there is nothing at this path"))
        allow = ((b"allow", ", ".join(methods).encode("ascii")),)
        raise BadRequest(HttpRefusal(405, "the path has other methods", allow))

    def answer(
        self, handler: Handler, head: RequestHead, body: bytes, peer: Peer, headers: Mapping[str, str]
    ) -> StatusAndBody:
        """Step 4, and then run the function of the route. Returns the status and the body of the answer."""
        try:
            document = None if head.method == "GET" else read_json(body)
        except Unreadable as error:
            return self._describe(400, f"the body cannot be read: {error}")
        call = PartCall(document, peer, head.method, head.target, headers, body)
        try:
            # GET is not in the queue: a part must say how it is, also when it is busy.
            with nullcontext() if head.method == "GET" else self._turns:
                answer = handler(call)
        except AverError as error:
            return self._describe(400 if isinstance(error, BadInput) else 503, str(error))
        except Exception as error:  # noqa: BLE001 - a defect here must not take the server down
            _LOG.exception("%s failed", head.target)
            return self._describe(500, f"internal error: {type(error).__name__}")
        try:
            return 200, canonical_json(answer)
        except NotCanonical as error:
            _LOG.error("the answer of %s is not JSON: %s", head.target, error)
            return self._describe(500, "internal error: the answer is not JSON")

    def describe_refusal(self, status: int, words: str) -> bytes:
        """The body of an answer that refuses."""
        debug("serving", "refused with %s: %s", status, words)
        # The words may repeat text of the request that has no canonical form.
        return canonical_json(self._refuse(status, words.encode("utf-8", "backslashreplace").decode("utf-8")))

    def _describe(self, status: int, words: str) -> StatusAndBody:
        return status, self.describe_refusal(status, words)


class PartServer:
    """Serves routes at any number of listeners. `serve` blocks; `stop` ends it from another thread or a signal."""

    def __init__(
        self,
        routes: Mapping[tuple[str, str], Handler],
        *,
        identify: Identify,
        health: Callable[[], Mapping[str, Any]],
        refuse: Refuse = _refuse_plainly,
        limits: ServerLimits = DEFAULT_LIMITS,
    ) -> None:
        self._routes = _Routes({HEALTH: lambda call: health(), **routes}, identify, refuse, limits.calls)
        self._limits = limits
        self._connections: set[_PartConnection] = set()
        self._changed = threading.Condition()
        """Guards the set and the state of each connection in it. Notified when one has ended."""
        self._stopping = False
        self._wake, self._wake_end = socket.socketpair()
        self._wake_end.setblocking(False)

    def serve(self, listeners: Sequence[Listener]) -> None:
        """Serve until `stop` is called, and close the listeners. Running calls are finished first."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake, selectors.EVENT_READ)
                for listener in listeners:
                    listener.socket.setblocking(False)
                    selector.register(listener.socket, selectors.EVENT_READ, listener)
                while not self._stopping:
                    for key, _ in selector.select():
                        if key.data is not None and not self._stopping:
                            self._accept(key.data)
        finally:
            for listener in listeners:
                listener.close()
            self._finish()

    def stop(self) -> None:
        """Make `serve` return, once the running calls are finished. A signal's handler may call it."""
        self._stopping = True
        with suppress(OSError):  # The server has ended, or is awake already.
            self._wake_end.send(b"\0")

    def _accept(self, listener: Listener) -> None:
        try:
            accepted, _ = listener.socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            _LOG.warning("cannot accept a connection: %s", error)
            time.sleep(EXHAUSTED_SECONDS)
            return
        if not self._make_room():
            debug("serving", "refused a connection: %d are at work", self._limits.connections)
            with accepted, suppress(OSError):
                accepted.settimeout(0)
                accepted.send(_ALL_AT_WORK)
            return
        connection = _PartConnection(self, self._routes, accepted, listener)
        with self._changed:
            self._connections.add(connection)
        try:
            threading.Thread(target=connection.run, name="aver-part", daemon=True).start()
        except RuntimeError as error:  # The system has no more threads.
            _LOG.warning("cannot serve a connection: %s", error)
            self._forget(connection)

    def _make_room(self) -> bool:
        """Close a connection if there is no place for another one. Returns whether there is one now."""
        with self._changed:
            if len(self._connections) < self._limits.connections:
                return True
            waiting = [each for each in self._connections if not each.at_work and not each.evicted]
            if not waiting:
                return False
            debug("serving", "closed a connection to make room for another")
            min(waiting, key=lambda each: (each.identified, each.since)).evict()
            return self._changed.wait_for(lambda: len(self._connections) < self._limits.connections, EVICTION_SECONDS)

    def _finish(self) -> None:
        with self._changed:
            for connection in self._connections:
                if not connection.at_work:
                    connection.evict()
            if not self._changed.wait_for(lambda: not self._connections, self._limits.grace_seconds):
                _LOG.warning("stopped although %d calls are still running", len(self._connections))
        self._wake.close()
        self._wake_end.close()

    # --- for connections

    def _forget(self, connection: _PartConnection) -> None:
        """Close a connection and give its place away."""
        with self._changed:
            connection.socket.close()  # Under the lock: nobody may shut down a descriptor that is another's by now.
            self._connections.discard(connection)
            self._changed.notify_all()

    @contextmanager
    def _hold_place(self, connection: _PartConnection) -> Iterator[bool]:
        """Keep a connection from being closed. Gives False if the server has closed it already."""
        with self._changed:
            connection.at_work = not connection.evicted
        try:
            yield connection.at_work
        finally:
            with self._changed:
                connection.at_work = False
                connection.since = time.monotonic()
                if self._stopping:
                    connection.evict()


class _PartConnection:
    """One connection of a client, and the thread that serves it. The server's lock guards its state."""

    def __init__(self, server: PartServer, routes: _Routes, accepted: socket.socket, listener: Listener) -> None:
        self.socket = accepted
        self.at_work = False
        """Whether a whole request has arrived, and is not answered yet."""
        self.evicted = False
        self.identified = False
        """Whether a request on it has passed steps 1 and 2. Only its own thread writes this."""
        self.since = time.monotonic()
        self._server = server
        self._routes = routes
        self._listener = listener
        self._wire = ServerConnection(accepted, server._limits.wire)

    def evict(self) -> None:
        """End the wait of the thread. The caller holds the server's lock, and the connection is not at work."""
        self.evicted = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        try:
            if self.socket.family != socket.AF_UNIX:
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            uid, pid = read_peer_uid(self.socket), read_peer_pid(self.socket)
            try:
                while (head := self._wire.read_head()) is not None and self._serve_request(head, uid, pid):
                    pass
            except BadRequest as error:
                status, words, headers = error.refusal
                self._wire.send_answer(status, self._routes.describe_refusal(status, words), headers, last=True)
                self._wire.linger()
        except OSError as error:
            debug("serving", "a connection ended: %s", error)
        except Exception:  # noqa: BLE001 - a defect here must not take the server down
            _LOG.exception("a connection failed")
        finally:
            self._server._forget(self)

    def _serve_request(self, head: RequestHead, uid: int | None, pid: int | None) -> bool:
        """Answer one request. Returns whether another one may follow."""
        peer, headers = self._routes.examine_head(head, uid, pid, self._listener)
        # A client whose signature a route has still to check may be anybody.
        self.identified = self.identified or bool(peer.client)
        handler = self._routes.find_handler(head, peer)
        body = self._wire.read_body()
        # From here on the request is carried out: before, the server may close the connection at any time.
        with self._server._hold_place(self) as is_kept:
            if not is_kept:
                return False
            status, answer = self._routes.answer(handler, head, body, peer, headers)
            return self._wire.send_answer(status, answer, last=self._server._stopping)


def serve_until_signal(server: PartServer, listeners: Sequence[Listener]) -> None:
    """Serve until SIGTERM or SIGINT. Must be called in the main thread. A second signal ends the process at once."""
    before: dict[signal.Signals, Any] = {}

    def stop(number: int, frame: object) -> None:
        for each, handler in before.items():
            signal.signal(each, handler)
        server.stop()

    for each in (signal.SIGTERM, signal.SIGINT):
        before[each] = signal.signal(each, stop)
    try:
        server.serve(listeners)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
