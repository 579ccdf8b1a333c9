"""Floods and slow readers against a real `aver serve`: bounded memory and threads, and others are still answered."""

from __future__ import annotations

import http.client
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from aver import Capsule, Ledger
from aver.explorer.api import THREADS_MAX
from aver.explorer.connection import CONNECTIONS_MAX
from aver.explorer.guard import REQUESTS_MAX
from aver.explorer.live import STREAMS_MAX
from support.explorer_servers import API

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory of a process is read from /proc"),
]

RECORDS, RECORD_SIZE = 400, 15_000
GROWTH_MAX = 200 * 1024
"""Kibibytes by which the server may grow: far less than all the answers that nobody reads."""

OWN_THREADS = 8
"""Threads of a server beside those that read the ledger: the loop, the index, the watch, and a few of the runtime."""

PATIENCE = 20.0
"""Seconds until an answer must have come, on a machine that does other things, too."""


@dataclass(frozen=True)
class Process:
    """A running `aver serve`."""

    pid: int
    port: int
    token: str

    def measure(self, name: str) -> int:
        """A number of the process by the kernel, such as its peak of memory in KiB."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def head(self, path: str, method: str = "GET") -> bytes:
        lines = (f"{method} {path} HTTP/1.1", f"Host: localhost:{self.port}", f"Authorization: Bearer {self.token}")
        return ("\r\n".join(lines) + "\r\n").encode()

    def ask(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Host": f"localhost:{self.port}", "Authorization": f"Bearer {self.token}"}
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


@pytest.fixture
def process(filled: Ledger, aver_home: Path) -> Iterator[Process]:
    text = "x" * RECORD_SIZE
    filled.append_many(
        "demo.large", [Capsule(type="tool", trigger={"source": "test", "request": text}) for _ in range(RECORDS)]
    )
    command = [sys.executable, "-u", "-m", "aver", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        printed = []
        for line in iter(server.stdout.readline, ""):
            printed.append(line)
            if found := re.search(r"http://localhost:(\d+)/#token=([\w-]+)", line):
                yield Process(server.pid, int(found[1]), found[2])
                break
        else:
            pytest.fail("".join(printed))
        server.terminate()


def ask_until_answered(process: Process, path: str) -> int:
    """An honest client in the middle of a burst may be ended with the silent ones around it. It asks again."""
    for _ in range(20):
        with suppress(ConnectionError):
            return process.ask(path)
    raise AssertionError("the server ends every connection")


def open_half(process: Process) -> socket.socket:
    """A request that never becomes whole."""
    made = socket.create_connection(("127.0.0.1", process.port), timeout=PATIENCE)
    made.sendall(process.head(f"{API}about"))
    return made


def open_unread(process: Process) -> socket.socket:
    """A request for megabytes, whose answer nobody reads."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(PATIENCE)
    made.connect(("127.0.0.1", process.port))
    made.sendall(process.head(f"{API}chains/demo.large/records") + b"\r\n")
    return made


def open_stream(process: Process) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", process.port), timeout=PATIENCE)
    made.sendall(process.head(f"{API}live") + b"\r\n")
    return made


ALL_UNREAD = REQUESTS_MAX - 2 * STREAMS_MAX - 4

FLOODS: dict[str, list[tuple[int, Callable[[Process], socket.socket]]]] = {
    "half requests": [(4 * CONNECTIONS_MAX, open_half)],
    "live streams": [(2 * STREAMS_MAX, open_stream)],
    "readers that never read": [(60, open_unread)],
    # Fewer than the server has at work at a time: with as many as that, everyone is asked to come again.
    "all of them": [(ALL_UNREAD, open_unread), (2 * STREAMS_MAX, open_stream), (4 * CONNECTIONS_MAX, open_half)],
}


@pytest.mark.parametrize("name", FLOODS)
def test_flood_is_bounded_and_others_are_answered(process: Process, name: str) -> None:
    assert process.ask(f"{API}chains/demo.large/records") == 200
    before = process.measure("VmRSS")
    with ExitStack() as opened:
        for count, open_one in FLOODS[name]:
            for _ in range(count):
                with suppress(ConnectionResetError, BrokenPipeError):  # The server may refuse to have so many.
                    opened.enter_context(open_one(process))
        for path in (f"{API}about", f"{API}chains", "/") * 5:
            assert process.ask(path) == 200, path
        assert process.measure("Threads") <= THREADS_MAX + OWN_THREADS
        assert process.measure("VmHWM") - before < GROWTH_MAX
    deadline = time.monotonic() + PATIENCE
    while process.ask(f"{API}chains/demo.large/records") != 200:  # After the flood, everything is as before.
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_stream_that_is_never_read_ends_nobody_elses(process: Process, filled: Ledger) -> None:
    """A slow page misses events. A quick one gets them, and the ledger grows meanwhile."""
    with ExitStack() as opened:
        for _ in range(STREAMS_MAX - 1):
            slow = opened.enter_context(open_stream(process))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        quick = opened.enter_context(open_stream(process))
        reader = quick.makefile("rb")
        assert b"200" in reader.readline()
        for number in range(50):
            filled.append("demo.news", Capsule(type="tool", trigger={"source": "test", "request": f"news {number}"}))
        while b"demo.news" not in (line := reader.readline()):
            assert line
        assert process.ask(f"{API}about") == 200
        assert process.measure("Threads") <= THREADS_MAX + OWN_THREADS


def test_clients_that_come_at_once_do_not_take_every_descriptor(process: Process) -> None:
    """They wait while the server is stopped. It must not accept them all before it ends the first ones."""
    assert process.ask(f"{API}about") == 200
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (450, 450))
    os.kill(process.pid, signal.SIGSTOP)
    with ExitStack() as opened:
        for _ in range(700):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", process.port))
        os.kill(process.pid, signal.SIGCONT)
        for _ in range(5):
            assert ask_until_answered(process, f"{API}about") == 200
