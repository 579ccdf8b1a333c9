"""The installed `aver mcp`, and the official client that talks to it; or bare lines of JSON-RPC."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

COMMAND = Path(sys.executable).with_name("aver")

DIFF = "--- a/{0}\n+++ b/{0}\n@@ -1 +1,2 @@\n a\n+b\n"


def environment() -> dict[str, str]:
    """What a server needs of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AVER_")} | {
        "AVER_HOME": os.environ["AVER_HOME"]
    }


@asynccontextmanager
async def connected(workspace: Path, *options: str, **client: Any) -> AsyncIterator[Client]:
    """The official client, with a server of its own."""
    arguments = ["mcp", "--workspace", str(workspace), *options]
    started = StdioServerParameters(command=str(COMMAND), args=arguments, env=environment())
    with tempfile.TemporaryFile("w+") as errors:
        async with Client(stdio_client(started, errlog=errors), **client) as found:
            yield found


def talk(workspace: Path, work: Callable[[Client], Awaitable[Any]], *options: str, **client: Any) -> Any:
    """Do something with a client, and give what it gives."""

    async def run() -> Any:
        async with connected(workspace, *options, **client) as found:
            return await work(found)

    return anyio.run(run)


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed; both forms of its answer must agree."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    told = result.structured_content
    assert isinstance(told, dict)
    assert json.loads(result.content[0].text) == told
    return told


async def fail(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must fail, as tools do."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    told: dict[str, Any] = json.loads(result.content[0].text)
    assert told["ok"] is False
    return told


def edit(file: str = "src/app.py", description: str = "fix the bug") -> dict[str, Any]:
    """A small change, as the gate is asked about it."""
    return {
        "action_type": "edit",
        "description": description,
        "files_affected": [file],
        "diff_text": DIFF.format(file),
    }


def done(file: str = "src/app.py", description: str = "fix the bug", **more: Any) -> dict[str, Any]:
    """The same change, as it is recorded."""
    given = edit(file, description)
    del given["diff_text"]
    return {**given, "tool_name": "Edit", "success": True, **more}


@contextmanager
def started(workspace: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server on pipes, ended at last."""
    child = subprocess.Popen(
        [str(COMMAND), "mcp", "--workspace", str(workspace), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def call(number: int, tool: str, arguments: dict[str, Any]) -> bytes:
    return request(number, "tools/call", {"name": tool, "arguments": arguments})


def greeting(client: str = "tests") -> bytes:
    """What a client of the handshake era begins with."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1"},
    }
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode() + b"\n"
    return request(0, "initialize", params) + ready


def events(workspace: Path) -> list[dict[str, Any]]:
    text = (workspace / ".capseal" / "events.jsonl").read_text("ascii")
    return [json.loads(line) for line in text.splitlines()]


@dataclass
class Listening:
    """A server that listens on this machine."""

    port: int
    token: str
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def send(self, headers: dict[str, str], method: str = "POST", path: str = "/mcp", body: bytes = b"{}") -> int:
        """One bare request; gives the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        status = connection.getresponse().status
        connection.close()
        return status

    @asynccontextmanager
    async def client(self, query: str = "", **options: Any) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as wire:
            async with Client(streamable_http_client(self.url + query, http_client=wire), **options) as found:
                yield found


@contextmanager
def listening(workspace: Path) -> Iterator[Listening]:
    """`aver mcp --http` on a free port, ended at last."""
    child = subprocess.Popen(
        [str(COMMAND), "mcp", "--workspace", str(workspace), "--http"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert child.stderr is not None
        line = child.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp; the token is in (.+)$", line.strip())
        assert found is not None, line
        yield Listening(int(found[1]), Path(found[2]).read_text().strip(), child)
    finally:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
