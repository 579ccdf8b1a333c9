"""Lines that a server or a file gives the proxy, and that it cannot use: each is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aver.errors import BadInput
from aver.gateway.codes import load_reason_codes
from aver.mcp.proxy.call_judge import NEXT_STEPS
from aver.mcp.proxy.messages import MessageProblem, read_server_line
from aver.mcp.proxy.tool_book import ToolBook, list_changed_tools, server_file


@pytest.mark.parametrize("depth", [255, 300, 900])
def test_a_message_of_the_server_that_is_nested_too_deeply(depth: int) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(MessageProblem, match=r"cannot be passed on|not JSON"):
        read_server_line(line)


@pytest.mark.parametrize("changed", [1, None, ["x"], {"a": 1}])
def test_a_file_of_known_tools_with_a_definition_that_is_no_text(tmp_path: Path, changed: object) -> None:
    home = tmp_path / "home"
    ToolBook(home, "mail").learn([{"name": "send"}])
    path = server_file(home, "mail")
    document = json.loads(path.read_bytes())
    document["tools"]["send"]["changed"] = changed
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="is not the file of the server"):
        list_changed_tools(home, "mail")


def test_advice_to_a_client_speaks_of_calls() -> None:
    """A client of MCP has no act, PREVIEW or COMMIT. The proxy itself keeps the tx of a call."""
    kept = {"TX_INVALID", "TX_SESSION_MISMATCH", "TX_CALLER_MISMATCH", "TX_AUTH_CONTEXT_MISMATCH"}
    for code in load_reason_codes().values():
        advice = NEXT_STEPS.get(code.name, code.advice)
        strange = [word for word in ("PREVIEW", "COMMIT", "tx_id", "act again") if word in advice]
        assert code.name in kept or not strange, code.name
