"""`aver gateway mcp`: a real client of the official SDK acts through the gateway's one tool."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from aver import open_ledger
from aver.gateway.request import CLOSED_SCHEMA
from support.mcp_clients import COMMAND, environment


def talk(workspace: Path, work: Callable[[Client], Awaitable[Any]], *options: str) -> Any:
    """Do something with a client that started the server, and return what it returns."""

    async def run() -> Any:
        arguments = ["gateway", "mcp", "--workspace", str(workspace), *options]
        started = StdioServerParameters(command=str(COMMAND), args=arguments, env=environment())
        with (workspace.parent / "errors").open("w+") as errors:
            async with Client(stdio_client(started, errlog=errors)) as client:
                return await work(client)

    return anyio.run(run)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def act(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "intent_id": "WriteWorkspaceFile",
        "inputs": {"relpath": "a.txt", "content": "hello\n"},
        "constraints": {},
        "caller": "agent:writer",
    }
    return {name: value for name, value in (document | changes).items() if value is not None}


@pytest.mark.more
def test_there_is_one_tool_with_a_closed_schema(workspace: Path) -> None:
    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools

    [tool] = talk(workspace, work)
    assert tool.name == "act"
    assert tool.input_schema == CLOSED_SCHEMA


@pytest.mark.more
def test_an_act_is_carried_out_and_a_denial_is_an_error(workspace: Path) -> None:
    async def work(client: Client) -> Any:
        calls = [
            act(),
            act(inputs={"relpath": "../b", "content": ""}),
            act(more=1),
            act(caller=None),
            act(constraints={"anything": True}),
        ]
        return [await client.call_tool("act", call) for call in calls]

    done, *denied = talk(workspace, work)
    assert not done.is_error
    assert done.structured_content["reason_code"] == "ALLOW"
    assert json.loads(done.content[0].text) == done.structured_content
    assert (workspace / "a.txt").read_text() == "hello\n"
    assert all(each.is_error for each in denied)
    codes = [each.structured_content["reason_code"] for each in denied]
    assert codes == ["WORKSPACE_PATH_BLOCKED", "BAD_REQUEST", "BAD_REQUEST", "BAD_REQUEST"]


@pytest.mark.more
def test_each_process_is_a_session_without_an_identity(workspace: Path) -> None:
    async def work(client: Client) -> Any:
        await client.call_tool("act", act(intent_id="CheckWriteWorkspaceFile"))

    for _ in range(2):
        talk(workspace, work)
    talk(workspace, work, "--session", "s1")
    with open_ledger() as ledger:
        found = [record.to_dict() for record in ledger.find(kind="act.preview")]
    sessions = {each["context"]["session_id"] for each in found}
    assert len(sessions) == 3
    assert "s1" in sessions
    doors = [each["context"]["environment"]["gateway"]["ingress"] for each in found]
    assert doors == [{"kind": "stdio", "identity": ""}] * 3


@pytest.mark.more
def test_another_tool_is_a_protocol_error(workspace: Path) -> None:
    async def work(client: Client) -> Any:
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("seal", {})

    talk(workspace, work)
