"""Lets a small server of the standard library answer on a thread, for as long as a context lasts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer


@contextmanager
def serve_on_thread(server: BaseServer, name: str) -> Iterator[None]:
    """Answer requests on a thread of this name until the context ends. Then the server's socket is closed."""
    thread = threading.Thread(target=server.serve_forever, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
