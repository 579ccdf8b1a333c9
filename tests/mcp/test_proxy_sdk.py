"""The real client of the MCP SDK, the real `aver proxy`, and a real server: on pipes, over HTTP and over SSE."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from aver import open_ledger
from aver.gate.approvals import approve, enrol_approver, load_request
from support.approvals import SHOWN, somebody
from support.mcp_clients import COMMAND, environment
from support.proxies import SESSION, read_outcomes, write_settings

SERVER = Path(__file__).parents[1] / "support" / "sdk_server.py"

pytestmark = pytest.mark.more

READS = ("add", "count", "sample", "choose", "folders")


@contextmanager
def started(place: Path, transport: str) -> Iterator[list[str]]:
    """A server, and the words by which a proxy reaches it."""
    log = str(place / "log.txt")
    Path(log).touch()
    if transport == "stdio":
        yield ["--", sys.executable, str(SERVER), log, "stdio"]
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (place / "server.txt").open("w") as errors:
        child = subprocess.Popen([sys.executable, str(SERVER), log, transport, str(port)], stderr=errors)
        try:
            while True:
                assert child.poll() is None, (place / "server.txt").read_text()
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield (
                ["--sse", f"http://127.0.0.1:{port}/sse"]
                if transport == "sse"
                else [
                    "--http",
                    f"http://127.0.0.1:{port}/mcp",
                ]
            )
        finally:
            child.terminate()
            child.wait(60)


async def answer_sampling(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="hi there"), model="m")


async def answer_elicitation(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"colour": "blue"})


async def answer_roots(context: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///work")])  # type: ignore[arg-type]


def text_of(result: Any) -> str:
    return str(result.content[0].text)


async def use_everything(client: Client, *, is_legacy: bool) -> str:
    """Use each thing that the protocol has. Returns the id of the request for approval of the refund."""
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == {"add", "refund", "count", "sample", "choose", "folders"}
    result = await client.call_tool("add", {"a": 2, "b": 3})
    assert not result.is_error, result
    assert result.structured_content == {"result": 5}
    seen: list[float] = []

    async def note_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    await client.call_tool("count", progress_callback=note_progress)
    assert seen == [1, 2, 3]
    assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greet"]
    greeting = await client.get_prompt("greet", {"name": "Ada"})
    assert greeting.messages[0].content.text == "Say hello to Ada."  # type: ignore[union-attr]
    assert (await client.list_resource_templates()).resource_templates[0].uri_template == "shop://orders/{order}"
    with pytest.raises(MCPError, match="REQUIRE_CONFIRM"):
        await client.read_resource("shop://orders/7")
    if is_legacy:  # Newer versions ask in another way, and not all servers do.
        assert text_of(await client.call_tool("sample")) == "hi there"
        assert text_of(await client.call_tool("choose")) == "blue"
        assert text_of(await client.call_tool("folders")) == "file:///work"
    refused = await client.call_tool("refund", {"order": 7})
    assert refused.is_error
    assert "REQUIRE_CONFIRM" in text_of(refused)
    return str((refused.meta or {})["aver/approval"])


@pytest.mark.parametrize(
    ("transport", "mode"),
    [
        ("stdio", "legacy"),
        ("stdio", "auto"),
        ("streamable-http", "legacy"),
        ("streamable-http", "auto"),
        ("sse", "legacy"),
    ],
)
def test_everything_works_a_denied_call_never_arrives_and_an_approved_one_once(
    tmp_path: Path, aver_home: Path, transport: str, mode: Any
) -> None:
    write_settings(aver_home, READS)
    person = somebody("ada")
    with open_ledger() as ledger:
        ledger.keys.trust(person.public)
        enrol_approver(ledger, person)

    async def run(words: list[str]) -> None:
        options = ["proxy", "--name", "shop", "--session", SESSION, "--wait", "0", "--workspace", str(tmp_path)]
        server = StdioServerParameters(command=str(COMMAND), args=[*options, *words], env=environment())
        with (tmp_path / "errors.txt").open("w+") as errors:
            async with Client(
                stdio_client(server, errlog=errors),
                mode=mode,
                sampling_callback=answer_sampling,
                elicitation_callback=answer_elicitation,
                list_roots_callback=answer_roots,
            ) as client:
                request = await use_everything(client, is_legacy=mode == "legacy")
                log = tmp_path / "log.txt"
                assert "refund" not in log.read_text()
                assert "resource" not in log.read_text()
                with open_ledger() as ledger:
                    approve(ledger, load_request(ledger, request), person, shown=SHOWN)
                assert text_of(await client.call_tool("refund", {"order": 7})) == "refunded 7"
                assert (await client.call_tool("refund", {"order": 7})).is_error
                assert log.read_text().count("refund") == 1

    with started(tmp_path, transport) as words:
        anyio.run(run, words)
    with open_ledger() as ledger:
        codes = read_outcomes(ledger)
        assert set(codes) == {"ALLOW"}
        assert len(codes) == (6 if mode == "legacy" else 3)
        assert ledger.verify().status == "verified"
