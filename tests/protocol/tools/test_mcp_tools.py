"""Tools of a real MCP server, through the official SDK."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from aver.errors import Unavailable
from aver.protocol.runner import ToolFailure, ToolResult
from aver.protocol.tools.mcp_tools import McpServer
from aver.protocol.tools.tool import ToolBox

pytestmark = pytest.mark.more

SERVER = '''
from mcp.server.mcpserver import MCPServer
server = MCPServer("shop")

@server.tool()
def price(item: str) -> dict[str, str | int]:
    """The price of an item."""
    return {"item": item, "price": 4}

@server.tool()
def broken() -> str:
    """Fails."""
    raise ValueError("no tea")

@server.tool()
def slow() -> str:
    """Takes long."""
    import time
    time.sleep(60)
    return ""

server.run()
'''


def test_tools_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    with McpServer("shop", [sys.executable, str(tmp_path / "server.py")], workspace=str(tmp_path)) as server:
        tools = ToolBox(str(tmp_path), server.tools())
        assert tools.names == ("mcp__shop__broken", "mcp__shop__price", "mcp__shop__slow")
        found = tools.describe("mcp__shop__price", {"item": "tea"})
        assert (found.type, found.tool) == ("tool_call", "mcp__shop__price")
        result = tools.run("mcp__shop__price", {"item": "tea"}, seconds=60, output_max=1000)
        assert isinstance(result, ToolResult)
        assert json.loads(result.outputs["result"][0]) == {"item": "tea", "price": 4}
        failed = tools.run("mcp__shop__broken", {}, seconds=60, output_max=1000)
        assert isinstance(failed, ToolFailure)
        assert failed.code == "ERROR"
        assert b"broken" in failed.outputs["text"][0]
        late = tools.run("mcp__shop__slow", {}, seconds=1.0, output_max=1000)
        assert isinstance(late, ToolFailure)
        assert late.code == "TIMEOUT"


def test_a_server_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be used"), McpServer("shop", ["no-such-server"]):
        pass
