"""An MCP server by the official SDK, as a program: on standard input and output, or at a URL on this machine.

    python sdk_server.py LOG stdio
    python sdk_server.py LOG streamable-http PORT
    python sdk_server.py LOG sse PORT

Each call of a tool that gets through writes the tool's name to the file LOG.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

LOG = Path(sys.argv[1])

server = MCPServer("shop")


def note(name: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{name}\n")


class Choice(BaseModel):
    colour: str


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    note("add")
    return a + b


@server.tool()
def refund(order: int) -> str:
    """Pay the price of an order back."""
    note("refund")
    return f"refunded {order}"


@server.tool()
async def count(ctx: Context[Any, Any]) -> str:
    """Count, and report the progress."""
    note("count")
    for number in (1, 2, 3):
        await ctx.report_progress(number, 3, f"at {number}")
    return "counted"


@server.tool()
async def sample(ctx: Context[Any, Any]) -> str:
    """Ask the client's model."""
    note("sample")
    message = SamplingMessage(role="user", content=TextContent(type="text", text="hello"))
    found = await ctx.session.create_message([message], max_tokens=5)
    return str(found.content.text)  # type: ignore[union-attr]


@server.tool()
async def choose(ctx: Context[Any, Any]) -> str:
    """Ask the person."""
    note("choose")
    found = await ctx.elicit("Which colour?", Choice)
    return found.data.colour if found.action == "accept" else found.action


@server.tool()
async def folders(ctx: Context[Any, Any]) -> str:
    """Ask for the client's roots."""
    note("folders")
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


@server.resource("shop://orders/{order}")
def order(order: str) -> str:
    """An order."""
    note("resource")
    return f"order {order}"


if __name__ == "__main__":
    if sys.argv[2] == "stdio":
        server.run("stdio")
    elif sys.argv[2] == "sse":
        server.run("sse", host="127.0.0.1", port=int(sys.argv[3]))
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[3]))
