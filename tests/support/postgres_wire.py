"""A line between a client and a PostgreSQL server that can be cut, at the worst moment, in every way a line can be.

It listens on the loopback interface and forwards to the server's socket. It reads nothing of what it forwards but
whether a commit is in it.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Fault = Literal["cut before", "cut after", "hold the commit", "lose the answer"]
"""What happens to the next commit: the line is cut before the server hears of it, or after it has answered and before
the client hears that; or the line stays up and swallows the commit, or the answer, and everything after it."""

FAULTS: tuple[Fault, ...] = get_args(Fault)

CHUNK = 65_536
COMMIT = b"COMMIT\0"


class Wire:
    """Use as a context. `options` says how to connect through it."""

    def __init__(self, server: Path) -> None:
        self._server = str(server)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._guard = threading.Lock()
        self._fault: Fault | None = None
        self.happened = threading.Event()
        """That a fault was struck."""
        self.is_down = False
        """While it is set, whoever connects is turned away; and once one line is cut, so are the others."""

    def __enter__(self) -> Wire:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    @property
    def options(self) -> dict[str, str]:
        return {"host": "127.0.0.1", "port": str(self._listener.getsockname()[1])}

    def strike(self, fault: Fault) -> None:
        """Let it happen to the next commit, once."""
        self.happened.clear()
        self._fault = fault

    def cut(self) -> None:
        """End every connection, without a word."""
        with self._guard:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            _close(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.is_down:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._server)
            except OSError:
                client.close()
                continue
            with self._guard:
                self._sockets += [client, server]
            line = _Line(client, server)
            threading.Thread(target=self._to_server, args=(line,), daemon=True).start()
            threading.Thread(target=self._to_client, args=(line,), daemon=True).start()

    def _to_server(self, line: _Line) -> None:
        while data := _received(line.client):
            if COMMIT in data and line.fault is None:
                line.fault = self._take_fault()
                if line.fault is not None:
                    self.happened.set()
            if line.fault == "cut before":
                break
            if line.fault != "hold the commit" and not _sent(line.server, data):
                break
        line.close()

    def _to_client(self, line: _Line) -> None:
        while data := _received(line.server):
            if line.fault == "cut after":
                break
            if line.fault is None and not _sent(line.client, data):
                break
        if line.fault in (None, "cut after"):
            line.close()
        if self.is_down:
            self.cut()

    def _take_fault(self) -> Fault | None:
        with self._guard:
            fault, self._fault = self._fault, None
        return fault


@dataclass
class _Line:
    """One connection through the wire, and what has befallen it."""

    client: socket.socket
    server: socket.socket
    fault: Fault | None = None

    def close(self) -> None:
        _close(self.client)
        _close(self.server)


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(CHUNK)
    except OSError:
        return b""


def _sent(end: socket.socket, data: bytes) -> bool:
    try:
        end.sendall(data)
    except OSError:
        return False
    return True


def _close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
