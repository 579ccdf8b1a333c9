"""A mail server on loopback that answers each step as a test says: late, wrong, for ever, or not at all."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from support.loopback_servers import server_context

Talk = Callable[["ScriptedMail", bytes], None]
"""Answers a line of the client in some way of its own."""

ANSWERS: Mapping[str, bytes] = {
    "CONNECT": b"220 hello\r\n",
    "EHLO": b"250-here\r\n250-AUTH PLAIN LOGIN\r\n250-SMTPUTF8\r\n250-8BITMIME\r\n250 STARTTLS\r\n",
    "STARTTLS": b"220 go on\r\n",
    "AUTH": b"235 welcome\r\n",
    "MAIL": b"250 ok\r\n",
    "RCPT": b"250 ok\r\n",
    "DATA": b"354 go on\r\n",
    "TEXT": b"250 taken\r\n",
    "QUIT": b"221 bye\r\n",
}


class ScriptedMail:
    """One connection. `script` has answers by step; None ends the connection there."""

    def __init__(self, certificate: Path, script: Mapping[str, bytes | Talk | None]) -> None:
        self.script = script
        self.lines: list[bytes] = []
        self.text = b""
        self.tls = server_context(certificate)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connection = socket.socket()
        self.is_over = threading.Event()

    def serve(self) -> None:
        with suppress(OSError, EOFError):
            self.connection, _ = self.listener.accept()
            self.answer("CONNECT", b"")
            while line := self._read_line():
                self.lines.append(line)
                step = line.split()[0].decode("latin-1").upper()
                self.answer(step, line)
                if step == "STARTTLS":
                    self.connection = self.tls.wrap_socket(self.connection, server_side=True)
                if step == "DATA":
                    while not self.text.endswith(b"\r\n.\r\n"):
                        self.text += self._read()
                    self.answer("TEXT", b"")

    def answer(self, step: str, line: bytes) -> None:
        # The first EHLO is not encrypted, the second one is.
        name = "EHLO TLS" if step == "EHLO" and isinstance(self.connection, ssl.SSLSocket) else step
        given = self.script.get(name, ANSWERS.get(step, b"500 what\r\n"))
        if given is None:
            self.connection.close()
            raise EOFError
        if isinstance(given, bytes):
            self.connection.sendall(given)
        else:
            given(self, line)

    def _read(self) -> bytes:
        data = self.connection.recv(65_536)
        if not data:
            raise EOFError
        return data

    def _read_line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            byte = self.connection.recv(1)
            if not byte:
                return b""
            line += byte
        return line


@contextmanager
def serve_script(certificate: Path, script: Mapping[str, bytes | Talk | None]) -> Iterator[ScriptedMail]:
    """Run the server for one connection."""
    server = ScriptedMail(certificate, script)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.listener.close()
        # Wakes the thread, wherever it waits.
        with suppress(OSError):
            server.connection.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        server.connection.close()
