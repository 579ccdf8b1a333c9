"""The official client of SDK 1.x, in an environment of its own, against this server: over stdio and over HTTP."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from support.mcp_clients import COMMAND, DIFF, environment, listening
from support.older_sdk import install_older_sdk
from support.proxies import SESSION, read_outcomes, write_settings

pytestmark = pytest.mark.long

FLOW = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError

given = json.loads(sys.argv[1])

async def flow(read, write):
    async with ClientSession(read, write) as session:
        started = await session.initialize()
        tools = (await session.list_tools()).tools
        change = {"action_type": "edit", "description": "fix", "files_affected": ["a.py"]}
        gate = await session.call_tool("capseal_gate", {**change, "diff_text": given["diff"]})
        receipt = gate.structuredContent["receipt_id"]
        done = {**change, "tool_name": "Edit", "success": True, "receipt_id": receipt}
        record = await session.call_tool("capseal_record", done)
        bad = await session.call_tool("capseal_record", {**done, "success": "yes"})
        sealed = await session.call_tool("capseal_seal", {})
        try:
            await session.call_tool("capseal_nothing", {})
            unknown = "answered"
        except McpError as error:
            unknown = error.error.message
        print(json.dumps({
            "version": started.protocolVersion,
            "instructions": started.instructions,
            "tools": [tool.name for tool in tools],
            "decision": gate.structuredContent["decision"],
            "recorded": record.structuredContent["recorded"],
            "errors": [gate.isError, record.isError, bad.isError, sealed.isError],
            "sealed": sealed.structuredContent,
            "unknown": unknown,
        }))

async def main():
    if "url" in given:
        async with streamablehttp_client(given["url"], headers=given["headers"]) as (read, write, _):
            await flow(read, write)
    else:
        server = StdioServerParameters(command=given["command"], args=given["args"], env=given["env"])
        async with stdio_client(server) as (read, write):
            await flow(read, write)

asyncio.run(main())
"""


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with SDK 1.x."""
    return install_older_sdk(tmp_path_factory.mktemp("sdk1") / "venv")


def flow(python: Path, given: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-c", FLOW, json.dumps(given)], capture_output=True, text=True, timeout=120, env=environment()
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def hold(told: dict[str, Any]) -> None:
    assert told["version"] == "2025-11-25"
    assert "capseal_gate" in told["instructions"]
    assert len(told["tools"]) == 5
    assert (told["decision"], told["recorded"]) == ("approve", True)
    assert told["errors"] == [False, False, True, False]
    assert (told["sealed"]["actions_count"], told["sealed"]["verification"]) == (1, "passed")
    assert told["unknown"] == "Unknown tool: capseal_nothing"


def test_over_stdio(older: Path, workspace: Path) -> None:
    given = {
        "command": str(COMMAND),
        "args": ["mcp", "--workspace", str(workspace)],
        "env": environment(),
        "diff": DIFF.format("a.py"),
    }
    hold(flow(older, given))


def test_over_http(older: Path, workspace: Path) -> None:
    with listening(workspace) as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        hold(flow(older, {"url": server.url, "headers": headers, "diff": DIFF.format("a.py")}))


def test_through_the_proxy(older: Path, workspace: Path, aver_home: Path) -> None:
    """The same server behind the proxy. A tool that nobody knows is refused by Aver, and not by the server."""
    tools = ("capseal_gate", "capseal_record", "capseal_seal")
    write_settings(aver_home, tools, server="own")
    server = [str(COMMAND), "mcp", "--workspace", str(workspace)]
    given = {
        "command": str(COMMAND),
        "args": ["proxy", "--name", "own", "--session", SESSION, "--wait", "0", "--", *server],
        "env": environment(),
        "diff": DIFF.format("a.py"),
    }
    told = flow(older, given)
    assert told["unknown"] == "answered"
    hold({**told, "unknown": "Unknown tool: capseal_nothing"})
    with open_ledger() as ledger:
        assert read_outcomes(ledger) == ["ALLOW"] * 4
