"""Metrics over HTTP, for a Prometheus on the same machine: `GET /metrics`, on the loopback address and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from aver.errors import Unavailable

__all__ = ["serve_metrics"]

ADDRESS = "127.0.0.1"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_TIMEOUT_SECONDS = 5.0
"""Seconds for one request. They are answered one by one, so that a slow client costs others no more than this."""


@contextmanager
def serve_metrics(port: int, text: Callable[[], str]) -> Iterator[None]:
    """Answer requests, on a thread of its own, for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_SECONDS
        server_version, sys_version = "aver", ""

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            body = (text() if found else "metrics are at /metrics\n").encode("utf-8", "backslashreplace")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Say nothing: a request every few seconds is nothing to tell."""

    try:
        server = HTTPServer((ADDRESS, port), Handler)
    except OSError as error:
        words = f"cannot serve metrics at {ADDRESS}:{port}: {error.strerror}"
        raise Unavailable(words, advice="choose another --metrics-port") from error
    thread = threading.Thread(target=server.serve_forever, name="aver-metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
