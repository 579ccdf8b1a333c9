"""A running server of the Explorer for tests, and the requests of a client that may send anything."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aver import Ledger
from aver.explorer.server import ExplorerServer, ListeningPlace, listen_locally

API = "/api/v1/"


@dataclass(frozen=True)
class Answer:
    """What the server answered. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class ServedExplorer:
    """A server that runs, and a client of it."""

    def __init__(self, server: ExplorerServer, place: ListeningPlace) -> None:
        self.server = server
        self.port = place.port

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        *,
        token: str | None = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request on a connection of its own. An empty token is the right one, None is none."""
        sent = {"Host": f"localhost:{self.port}"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.server.token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Any:
        """The document at a path of the API, which must be there."""
        answer = self.ask(API + path, **more)
        assert answer.status == 200, answer.body
        return answer.document

    def post(self, path: str, document: Any) -> Answer:
        body = json.dumps(document).encode()
        return self.ask(API + path, "POST", body, headers={"Content-Type": "application/json"})

    def send_bytes(self, raw: bytes) -> bytes:
        """Send bytes as they are, and return everything that comes back until the server ends the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(raw)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    @contextmanager
    def live(self, last_id: str = "") -> Iterator[Callable[[], tuple[str, str, Any]]]:
        """A live stream. The function that it gives waits for the next event: its name, id and data."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Host": f"localhost:{self.port}", "Authorization": f"Bearer {self.server.token}"}
        connection.request("GET", f"{API}live", headers=headers | ({"Last-Event-ID": last_id} if last_id else {}))
        stream = connection.getresponse()
        assert stream.status == 200, stream.read()

        def next_event() -> tuple[str, str, Any]:
            found = {"event": "", "id": "", "data": "null"}
            while (line := stream.readline().decode().rstrip("\n")) or not found["event"]:
                name, _, value = line.partition(": ")
                if name in found:
                    found[name] = value
                if not line and stream.isclosed():
                    raise EOFError
            return found["event"], found["id"], json.loads(found["data"])

        try:
            yield next_event
        finally:
            connection.close()


@contextmanager
def serve(
    ledger: Ledger, *, read_only: bool = False, origin: str | None = None, port: int = 0
) -> Iterator[ServedExplorer]:
    """Serve a ledger on a free port, in a thread. At the port of an earlier server, a browser takes it for the same."""
    with listen_locally(port, origin) as place:
        server = ExplorerServer(ledger, place, read_only=read_only)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        served = ServedExplorer(server, place)
        try:
            yield served
        finally:
            while thread.is_alive():
                server.stop()
                thread.join(0.05)
                time.sleep(0.01)
