"""A server between the page and a true one, which changes, withholds, delays or repeats the answers."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.explorer_servers import API, ServedExplorer

Answerer = Callable[[str, bytes, Callable[[bytes], None]], None]
"""Given a path of the API, the true answer, and the way to send pieces of another. To return ends the answer."""

PASSED_ON = ("Authorization", "Content-Type", "Sec-Fetch-Site", "Last-Event-ID", "Accept")
STREAM_PIECE = 4096


@dataclass
class Liar:
    """The server in front. `answer` decides about each answer of the API, and may be changed while it runs."""

    served: ServedExplorer
    port: int
    answer: Answerer | None = None
    says_lengths: bool = False
    """Whether each answer says the length of the true one, so that a shorter one is seen to be cut off."""
    asked: list[str] = field(default_factory=list)
    """The paths that were asked for, in order."""

    @property
    def link(self) -> str:
        """The link that the true server printed, at this server."""
        return self.served.server.link.replace(f":{self.served.port}/", f":{self.port}/")

    def change_lines(self, path: str, change: Callable[[list[bytes]], Any]) -> None:
        """Change the lines of every answer at a path."""

        def answer(asked: str, body: bytes, send: Callable[[bytes], None]) -> None:
            if asked.startswith(path):
                lines = body.splitlines(keepends=True)
                change(lines)
                body = b"".join(lines)
            send(body)

        self.answer = answer


@contextmanager
def lie_about(served: ServedExplorer) -> Iterator[Liar]:
    """Stand in front of a true server. Until `answer` is set, everything is passed on."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.pass_on(None)

        def do_POST(self) -> None:
            self.pass_on(self.rfile.read(int(self.headers["Content-Length"])))

        def pass_on(self, body: bytes | None) -> None:
            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            headers["Host"] = f"localhost:{served.port}"
            connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
            connection.request(self.command, self.path, body, headers)
            found = connection.getresponse()
            self.send_response(found.status)
            for name, value in found.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            if liar.says_lengths and (length := found.getheader("Content-Length")):
                self.send_header("Content-Length", length)
            self.end_headers()
            # A browser that has seen enough ends the connection, and so does a true server that stops.
            with suppress(OSError, http.client.HTTPException):
                self.send_answer(found)
            connection.close()

        def send_answer(self, found: http.client.HTTPResponse) -> None:
            if self.path.startswith(f"{API}live"):
                while piece := found.read1(STREAM_PIECE):
                    self.send(piece)
            elif liar.answer is not None and self.path.startswith(API):
                liar.asked.append(self.path)
                liar.answer(self.path, found.read(), self.send)
            else:
                liar.asked.append(self.path)
                self.send(found.read())

        def send(self, piece: bytes) -> None:
            self.wfile.write(piece)
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        liar = Liar(served, server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield liar
        server.shutdown()
