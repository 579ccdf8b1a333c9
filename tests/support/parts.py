"""Servers of JSON routes on this machine, raw connections to them, and servers that misbehave."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from aver.serving.part_client import PartClient
from aver.serving.part_server import DEFAULT_LIMITS, Handler, PartServer, ServerLimits
from aver.serving.peers import ClientList, Identify, PermittedClient
from aver.serving.sockets import Listener, PartAddress, UnixAddress, bind_loopback, bind_unix
from aver.serving.tokens import digest_token

TOKEN = "t" * 43

PATIENCE = 60.0
"""Seconds after which a thread of a test goes on by itself. Else a test that fails would hang all the others."""
CLIENTS = ClientList([PermittedClient("gateway", token_sha256=digest_token(TOKEN))])


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory whose path is short enough for sockets. Those of pytest are not."""
    path = Path(tempfile.mkdtemp(prefix="aver-", dir="/tmp"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def serving(
    routes: Mapping[tuple[str, str], Handler],
    listener: Listener,
    *,
    identify: Identify = CLIENTS,
    limits: ServerLimits = DEFAULT_LIMITS,
    **more: Any,
) -> Iterator[PartServer]:
    """A server in a thread, stopped at last."""
    server = PartServer(routes, identify=identify, health=lambda: {"ok": True}, limits=limits, **more)
    thread = threading.Thread(target=server.serve, args=([listener],))
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@contextmanager
def serving_part(
    routes: Mapping[tuple[str, str], Handler] | None = None, *, tcp: bool = False, **more: Any
) -> Iterator[PartAddress]:
    """A server with these routes, or with `POST /echo` alone, at an address of its own."""
    with short_directory() as directory:
        listener = bind_loopback(0) if tcp else bind_unix(directory / "part.sock")
        with serving(routes or {("POST", "/echo"): lambda call: {"got": call.document}}, listener, **more):
            yield listener.address


def client_of(address: PartAddress, *, token: str = TOKEN, timeout: float = 30, **more: Any) -> PartClient:
    return PartClient(address, token, timeout, part="the part", **more)


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[UnixAddress]:
    """A server without rules: each connection is given to `answer`, one after the other, and closed."""
    with short_directory() as directory, socket.socket(socket.AF_UNIX) as listening:
        path = directory / "raw.sock"
        listening.bind(str(path))
        listening.listen(8)

        current: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    current[:] = [connection]
                    with connection, suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield UnixAddress(path)
        finally:
            # More than once: the thread may have accepted a connection, and not noted it yet.
            while thread.is_alive():
                for open_one in (listening, *current):
                    with suppress(OSError):
                        open_one.shutdown(socket.SHUT_RDWR)
                thread.join(0.05)


def read_request(connection: socket.socket) -> bytes:
    """Read one request with a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    [length] = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    while len(body) < length and (more := connection.recv(65536)):
        body += more
    return head + b"\r\n\r\n" + body


def read_all(connection: socket.socket) -> bytes:
    """Read until the other end closes, or breaks, the connection."""
    data = b""
    with suppress(ConnectionResetError):
        while more := connection.recv(65536):
            data += more
    return data


def head_of(
    address: PartAddress, method: str = "POST", path: str = "/echo", *, length: int | None = 0, **headers: str
) -> bytes:
    """The head of a good request, as bytes. `Aver_Session="x"` adds the header `Aver-Session: x`; "" takes one away."""
    fields = {"Host": address.hosts[0], "Authorization": f"Bearer {TOKEN}"}
    if length is not None:
        fields["Content-Length"] = str(length)
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in fields.items() if value]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")


def exchange(address: PartAddress, *pieces: bytes) -> bytes:
    """Send bytes, say that there are no more, and return all that comes back."""
    with address.connect(30) as connection:
        with suppress(OSError):  # The server may close the connection before it has read everything.
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
        return read_all(connection)


def status_of(answer: bytes) -> int:
    """The status of the first answer in some bytes; 0 if there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
