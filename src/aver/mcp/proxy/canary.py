"""The test of `aver doctor`: a proxy that judges a call as always, and has no server behind it.

`aver doctor` runs the command in a client's settings with the variable `AVER_PROXY_CANARY`. The proxy then starts no
server and uses a temporary ledger. It introduces itself by the canary's name, and a call must be refused: nobody knows
the tool, and nobody can approve it. A call that came through would say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aver.mcp.proxy.messages import write_message
from aver.mcp.proxy.server_link import LinkEvents

CANARY_TOOL = "aver_canary"

PASSED_WORDS = "the canary was not refused"
"""The answer to a call that reaches the place of the server."""

PROTOCOL = "2025-06-18"


def canary_messages() -> bytes:
    """The lines that a client sends for the test: an introduction, and a call with the id 2."""
    client = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "aver-doctor", "version": "1"}}
    call = {"name": CANARY_TOOL, "arguments": {}}
    messages: tuple[dict[str, Any], ...] = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    )
    return b"".join(write_message(message) + b"\n" for message in messages)


def find_canary_problem(output: bytes, name: str) -> str:
    """Say why the answers to the test are not those of a proxy that refuses; empty where they are."""
    answers: dict[Any, Any] = {}
    for line in output.splitlines():
        try:
            message = json.loads(line)
            answers[message["id"]] = message["result"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    try:
        if answers[1]["serverInfo"]["name"] != name:
            return "something else than Aver's proxy answers"
        if answers[2]["isError"] is not True or answers[2]["content"][0]["text"] == PASSED_WORDS:
            return "it does not refuse a call that nobody has approved"
    except (KeyError, TypeError, IndexError):
        return "it does not answer the test"
    return ""


class CanaryLink:
    """Stands in the place of the server."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._receive: Callable[[bytes], None] = lambda line: None

    def start(self, events: LinkEvents) -> None:
        self._receive = events.receive

    def send(self, line: bytes) -> None:
        message = json.loads(line)
        info = {"name": self._name, "version": "1"}
        results: dict[str, Any] = {
            "initialize": {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": info},
            "tools/list": {"tools": []},
            "tools/call": {"content": [{"type": "text", "text": PASSED_WORDS}]},
        }
        if message.get("method") in results:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
            self._receive(write_message(answer))

    def close(self) -> int:
        return 0
