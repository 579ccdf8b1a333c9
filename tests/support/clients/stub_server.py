"""A server on loopback in place of a model's: it hears what clients ask, and says what it was given to say.

It is the clients' proxy as well, and lets nothing through: what wants to leave the machine ends here, by its address in
`refused`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

__all__ = ["Body", "StubServer", "event", "serving"]

Body = Mapping[str, Any]

Speaker = Callable[[Body], bytes]
"""The stream of events that answers a request."""


class StubServer:
    """What a running stub is asked, and where it is."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[Body] = []
        """The requests to the model, in the order in which they came."""
        self.refused_count: list[str] = []
        """Addresses elsewhere that somebody wanted."""


@contextmanager
def serving(path: str, speak: Speaker) -> Iterator[StubServer]:
    """A stub that answers what is posted to `path`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.path.startswith("http"):
                self._refuse()
            elif self.path.partition("?")[0] == path:
                body = json.loads(raw)
                stub.asked.append(body)
                self._answer("text/event-stream", speak(body))
            else:
                self._answer("application/json", b"{}")

        def do_GET(self) -> None:
            if self.path.startswith("http"):
                self._refuse()
            else:
                self._answer("application/json", b'{"data": [], "models": []}')

        do_HEAD = do_PUT = do_GET

        def do_CONNECT(self) -> None:
            self._refuse()

        def _refuse(self) -> None:
            stub.refused_count.append(self.path)
            self.send_error(403, "only loopback")

        def _answer(self, media: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Tests look at what was asked, not at a log of it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stub = StubServer(server.server_port)
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            server.shutdown()
            thread.join()


def event(data: Mapping[str, Any]) -> bytes:
    """One event of a stream, as both APIs name them."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
