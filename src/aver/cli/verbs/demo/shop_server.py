"""The demo's MCP server: a small shop, as a program on standard input and output. It needs no package.

    python shop_server.py ORDERS

`get_order` reads the file ORDERS, and `refund` adds a line to it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {
        "name": "get_order",
        "description": "Look an order up.",
        "inputSchema": {"type": "object", "properties": {"order": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "refund",
        "description": "Pay the price of an order back.",
        "inputSchema": {"type": "object", "properties": {"order": {"type": "integer"}}},
    },
]


def answer(orders: Path, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        info = {"name": "shop", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    line = f"refunded {params['arguments']['order']}"
    if params["name"] == "refund":
        with orders.open("a") as file:
            file.write(f"{line}\n")
    return {"content": [{"type": "text", "text": line if params["name"] == "refund" else orders.read_text()}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(Path(sys.argv[1]), message["method"], message.get("params", {}))
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
