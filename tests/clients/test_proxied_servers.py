"""Servers from npm behind the proxy: driven by SDK 2.x and 1.x, by the real Claude Code and by the real Codex."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from aver import open_ledger
from aver.gate.approvals import ApprovalRequest, approve, enrol_approver, load_request
from support.approvals import SHOWN, somebody
from support.approving_person import person_at_work
from support.clients import stub_anthropic, stub_responses
from support.clients.npm_clients import installed
from support.clients.rooms import Room, new_room
from support.mcp_clients import COMMAND, environment
from support.proxies import read_outcomes, write_settings

pytestmark = [pytest.mark.long, pytest.mark.clients]

FILES = "@modelcontextprotocol/server-filesystem@2026.8.31"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"


def list_with(command: Sequence[str], place: Path, work: Any, **options: Any) -> Any:
    """Do something with a client of the SDK that has started a server by a command."""

    async def run() -> Any:
        server = StdioServerParameters(command=command[0], args=list(command[1:]), env=environment())
        with (place / "errors.txt").open("w+") as errors:
            async with Client(stdio_client(server, errlog=errors), mode="legacy", **options) as client:
                return await work(client)

    return anyio.run(run)


def through_proxy(command: Sequence[str], name: str, place: Path) -> list[str]:
    words = [str(COMMAND), "proxy", "--name", name, "--session", "s1", "--wait", "0", "--workspace", str(place)]
    return [*words, "--", *command]


async def list_names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


def test_the_filesystem_server_works_behind_the_proxy(tmp_path: Path, aver_home: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text("one\ntwo\n")
    server = [str(installed(FILES) / "mcp-server-filesystem"), str(data)]
    names = list_with(server, tmp_path, list_names)
    reading = [name for name in names if not name.startswith(("write", "edit", "create", "move"))]
    write_settings(aver_home, reading, server="files")
    person = somebody("ada")
    with open_ledger() as ledger:
        ledger.keys.trust(person.public)
        enrol_approver(ledger, person)
    path = str(data / "a.txt")

    async def read_all(client: Client) -> list[Any]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("read_text_file", {"path": path}),
            ("read_multiple_files", {"paths": [path]}),
            ("list_directory", {"path": str(data)}),
            ("directory_tree", {"path": str(data)}),
            ("search_files", {"path": str(data), "pattern": "a*"}),
            ("get_file_info", {"path": path}),
            ("list_allowed_directories", {}),
            ("read_text_file", {"path": str(data / "missing.txt")}),
        ]
        found = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [result.model_dump(mode="json", exclude={"meta"}) for result in found]

    async def use(client: Client) -> None:
        assert await list_names(client) == names
        assert await read_all(client) == direct
        target = str(data / "b.txt")
        refused = await client.call_tool("write_file", {"path": target, "content": "new\n"})
        assert refused.is_error
        assert not Path(target).exists()
        with open_ledger() as ledger:
            approve(ledger, load_request(ledger, (refused.meta or {})["aver/approval"]), person, shown=SHOWN)
        done = await client.call_tool("write_file", {"path": target, "content": "new\n"})
        assert not done.is_error
        assert Path(target).read_text() == "new\n"
        Path(target).unlink()
        assert (await client.call_tool("write_file", {"path": target, "content": "new\n"})).is_error
        assert not Path(target).exists()

    direct = list_with(server, tmp_path, read_all)
    list_with(through_proxy(server, "files", tmp_path), tmp_path, use)
    with open_ledger() as ledger:
        assert ledger.verify().status == "verified"
        assert set(read_outcomes(ledger)) == {"ALLOW"}


def test_the_everything_server_works_behind_the_proxy(tmp_path: Path, aver_home: Path) -> None:
    server = [str(installed(EVERYTHING) / "mcp-server-everything")]
    names = list_with(server, tmp_path, list_names)
    write_settings(aver_home, names, server="all")

    async def use(client: Client) -> list[Any]:
        found: list[Any] = []
        for name in await list_names(client):
            if name not in ("get-env", "gzip-file-as-resource") and not name.startswith(
                ("toggle", "trigger", "simulate")
            ):
                try:
                    result = await client.call_tool(name, ARGUMENTS.get(name, {}))
                except Exception as error:  # The same error must come through the proxy.
                    found.append((name, type(error).__name__))
                else:
                    found.append((name, result.model_dump(mode="json", exclude={"meta"})))
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        resources = [str(one.uri) for one in (await client.list_resources()).resources]
        return list(without_times([*found, prompts, resources]))

    direct = list_with(server, tmp_path, use)
    assert list_with(through_proxy(server, "all", tmp_path), tmp_path, use) == direct
    with open_ledger() as ledger:
        assert ledger.verify().status == "verified"


def without_times(value: Any) -> Any:
    """Return a value of the everything server without times of day, which some of its resources have in them."""
    return json.loads(re.sub(r"[0-9]+:[0-9]{2}:[0-9]{2} [AP]M", "now", json.dumps(value)))


ARGUMENTS: dict[str, dict[str, Any]] = {
    "echo": {"message": "hello"},
    "get-sum": {"a": 2, "b": 3},
    "get-annotated-message": {"messageType": "success"},
    "get-structured-content": {"location": "Chicago"},
    "get-resource-links": {"count": 2},
    "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
}


OLDER_FLOW = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

command, calls, env = json.loads(sys.argv[1])

async def main():
    server = StdioServerParameters(command=command[0], args=command[1:], env=env)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        told = [await session.call_tool(name, arguments) for name, arguments in calls]
        parts = [[each.model_dump(mode="json") for each in one.content] for one in told]
        print(json.dumps([names, [[one.isError, content] for one, content in zip(told, parts)]]))

asyncio.run(main())
"""


def call_by_older_sdk(python: Path, command: Sequence[str], calls: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Call tools with SDK 1.x. Returns the names of the tools, and whether each call failed, with its content."""
    words = [str(python), "-c", OLDER_FLOW, json.dumps([command, calls, environment()])]
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    names, told = json.loads(done.stdout)
    return names, told


def wants_first_write(data: Path, name: str) -> Any:
    """A person who approves the first call that writes a file of this name, and nothing else."""
    seen: list[str] = []

    def wants(request: ApprovalRequest) -> bool:
        seen.append(json.dumps(request.content["action"]["arguments"]))
        return str(data / name) in seen[-1] and seen.count(seen[-1]) == 1

    return wants


def test_servers_work_behind_the_proxy_with_sdk_1(older_sdk: Path, tmp_path: Path, aver_home: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text("one\n")
    write_settings(aver_home, ("read_text_file", "list_directory"), server="files")
    files = [str(installed(FILES) / "mcp-server-filesystem"), str(data)]
    reads = [["read_text_file", {"path": str(data / "a.txt")}], ["list_directory", {"path": str(data)}]]
    approved = ["write_file", {"path": str(data / "b.txt"), "content": "two\n"}]
    denied = ["write_file", {"path": str(data / "c.txt"), "content": "three\n"}]
    direct = call_by_older_sdk(older_sdk, files, reads)
    words = [str(COMMAND), "proxy", "--name", "files", "--session", "s1", "--workspace", str(tmp_path), "--", *files]
    with person_at_work(wants_first_write(data, "b.txt")) as answered:
        names, told = call_by_older_sdk(older_sdk, words, [*reads, approved, approved, denied])
    assert (names, told[:2]) == direct
    assert [is_error for is_error, _ in told] == [False, False, False, True, True]
    assert len(answered) == 3
    assert (data / "b.txt").read_text() == "two\n"
    assert not (data / "c.txt").exists()
    with open_ledger() as ledger:
        assert read_outcomes(ledger).count("ALLOW") == 3
        assert ledger.verify().status == "verified"


APPROVED, DENIED = "toggle-simulated-logging", "toggle-subscriber-updates"
"""Tools of the everything server that nobody has declared as reading. A person approves one call of the first."""

PLAIN_READS = ("echo", "get-env", "get-tiny-image", *(name for name in ARGUMENTS if name != "echo"))
"""The tools of the everything server that only read."""


def log_before(log: Path, package: str, program: str) -> list[str]:
    """The command of a server that keeps every line that reaches it in a file."""
    return ["sh", "-c", 'tee "$0" | "$1"', str(log), str(installed(package) / program)]


def list_reached(log: Path) -> list[str]:
    """The tools whose calls have reached a server, in order."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["params"]["name"] for line in lines if line.get("method") == "tools/call"]


def wants_once(tool: str) -> Any:
    """A person who approves the first call of a tool, and nothing else."""
    seen: list[str] = []

    def wants(request: ApprovalRequest) -> bool:
        seen.append(request.content["action"]["arguments"]["tool"])
        return seen[-1] == tool and seen.count(tool) == 1

    return wants


def test_the_everything_server_works_behind_the_proxy_with_sdk_1(
    older_sdk: Path, tmp_path: Path, aver_home: Path
) -> None:
    write_settings(aver_home, PLAIN_READS, server="all")
    reads = [[name, ARGUMENTS.get(name, {})] for name in PLAIN_READS if name != "get-env"]
    log = tmp_path / "reached.jsonl"
    server = log_before(log, EVERYTHING, "mcp-server-everything")
    direct = without_times(call_by_older_sdk(older_sdk, server, reads))
    log.unlink()
    words = [str(COMMAND), "proxy", "--name", "all", "--session", "s1", "--workspace", str(tmp_path), "--", *server]
    effects = [[APPROVED, {}], [APPROVED, {}], [DENIED, {}]]
    with person_at_work(wants_once(APPROVED)) as answered:
        names, told = without_times(call_by_older_sdk(older_sdk, words, [*reads, ["get-env", {}], *effects]))
    assert [names, told[: len(reads)]] == direct
    assert [is_error for is_error, _ in told] == [False] * (len(reads) + 2) + [True, True]
    assert len(answered) == 3
    assert list_reached(log) == [*(name for name, _ in reads), "get-env", APPROVED]
    with open_ledger() as ledger:
        assert read_outcomes(ledger).count("ALLOW") == len(reads) + 2
        assert ledger.verify().status == "verified"


def prepare(room: Room, aver_home: Path) -> Path:
    """A directory that the filesystem server may use, and rules by which reading it passes."""
    data = room.workspace / "data"
    data.mkdir()
    (data / "a.txt").write_text("one\n")
    write_settings(aver_home, ("read_text_file", "list_directory"), server="files")
    return data


def test_claude_code_calls_through_the_proxy_in_one_session(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    data = tmp_path / "workspace" / "data"
    call, answer = stub_anthropic.call, stub_anthropic.answer
    turns: stub_anthropic.Turns = [
        [call("toolu_read", "mcp__files__read_text_file", path=str(data / "a.txt"))],
        [call("toolu_write", "mcp__files__write_file", path=str(data / "b.txt"), content="two\n")],
        [call("toolu_again", "mcp__files__write_file", path=str(data / "b.txt"), content="two\n")],
        [call("toolu_other", "mcp__files__write_file", path=str(data / "c.txt"), content="three\n")],
        [answer("That was all.")],
    ]
    with stub_anthropic.model_that_says(turns) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        prepare(room, aver_home)
        settings = room.home / ".claude.json"
        entry = {"type": "stdio", "command": str(installed(FILES) / "mcp-server-filesystem"), "args": [str(data)]}
        before = json.dumps({"mcpServers": {"files": entry}}, indent=2)
        settings.write_text(before)
        room.aver("install", "claude-code", "--proxy")
        assert "behind it: files" in room.aver("status")
        key = {"ANTHROPIC_BASE_URL": stub.url, "ANTHROPIC_API_KEY": "not-a-real-one"}
        inside = Room(room.home, room.workspace, {**room.environment, **key})
        asked = ("-p", "Note what there is.", "--model", stub_anthropic.MODEL, "--output-format", "stream-json")
        with person_at_work(wants_first_write(data, "b.txt")) as answered:
            done = inside.run("claude", *asked, "--verbose", "--allowedTools", "mcp__files")
        assert done.returncode == 0, done.stdout + done.stderr
        session = json.loads(done.stdout.splitlines()[0])["session_id"]
    assert "one" in stub_anthropic.heard(stub, "toolu_read")
    assert "Aver: " not in stub_anthropic.heard(stub, "toolu_write")
    for refused in ("toolu_again", "toolu_other"):
        assert "Aver: " in stub_anthropic.heard(stub, refused)
    # The hook told the user's words. Nobody asked for the second call, and its path stands in a text by then: the
    # server's answer to the first one. Such a call is refused, and nobody is asked.
    assert len(answered) == 2
    assert "Aver: POLICY_DENY" in stub_anthropic.heard(stub, "toolu_again")
    assert (data / "b.txt").read_text() == "two\n"
    assert not (data / "c.txt").exists()
    with open_ledger() as ledger:
        # The proxy joined the session of the client, and the hook left all calls to it.
        assert read_outcomes(ledger, session).count("ALLOW") == 2
        assert ledger.verify().status in ("verified", "qualified")
    assert "the proxy before files refuses the canary" in room.aver("doctor")
    room.aver("uninstall", "claude-code")
    assert json.loads(settings.read_text())["mcpServers"] == {"files": entry}


def test_codex_calls_through_the_proxy(codex: Path, tmp_path: Path, aver_home: Path) -> None:
    data = tmp_path / "workspace" / "data"
    call, answer = stub_responses.call, stub_responses.answer
    space = {"namespace": "mcp__files"}
    find = {"type": "tool_search_call", "call_id": "c_find", "execution": "client", "status": "completed"}
    turns: stub_responses.Turns = [
        # Codex keeps tools of MCP servers back until the model has searched for them.
        [{**find, "arguments": {"query": "read text file, write file", "limit": 10}}],
        [{**call("c_read", "read_text_file", path=str(data / "a.txt")), **space}],
        [{**call("c_write", "write_file", path=str(data / "b.txt"), content="two\n"), **space}],
        [{**call("c_again", "write_file", path=str(data / "b.txt"), content="two\n"), **space}],
        [{**call("c_other", "write_file", path=str(data / "c.txt"), content="three\n"), **space}],
        [answer("That was all.")],
    ]
    with stub_responses.model_that_says(turns) as stub:
        room = new_room(tmp_path, aver_home, stub, codex)
        prepare(room, aver_home)
        settings = room.home / ".codex" / "config.toml"
        settings.parent.mkdir()
        program = str(installed(FILES) / "mcp-server-filesystem")
        text = CODEX_SETTINGS.format(
            model=stub_responses.MODEL, url=stub.url, workspace=room.workspace, program=program, data=data
        )
        settings.write_text(text)
        servers = tomllib.loads(text)["mcp_servers"]
        room.aver("install", "codex", "--proxy")
        free = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        with person_at_work(wants_first_write(data, "b.txt")) as answered:
            done = room.run("codex", "exec", *free, "Note what there is.")
        assert done.returncode == 0, done.stdout + done.stderr
    assert "one" in stub_responses.heard(stub, "c_read")
    assert "Aver: " not in stub_responses.heard(stub, "c_write")
    for refused in ("c_again", "c_other"):
        assert "Aver: " in stub_responses.heard(stub, refused)
    assert len(answered) == 3
    assert (data / "b.txt").read_text() == "two\n"
    assert not (data / "c.txt").exists()
    with open_ledger() as ledger:
        [chain] = [name for name in ledger.chains() if name.startswith("gateway.")]
        assert read_outcomes(ledger, chain.removeprefix("gateway.")).count("ALLOW") == 2
        assert ledger.verify().status in ("verified", "qualified")
    room.aver("uninstall", "codex")
    assert tomllib.loads(settings.read_text())["mcp_servers"] == servers


CODEX_SETTINGS = """\
model = "{model}"
model_provider = "stub"
check_for_update_on_startup = false

[model_providers.stub]
name = "stub"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0

[analytics]
enabled = false

[features]
apps = false
plugins = false

[mcp_servers.files]
command = "{program}"
args = ["{data}"]
required = true
startup_timeout_sec = 60

[projects."{workspace}"]
trust_level = "trusted"
"""


def test_claude_code_uses_the_everything_server_through_the_proxy(
    claude_code: Path, tmp_path: Path, aver_home: Path
) -> None:
    call, answer = stub_anthropic.call, stub_anthropic.answer
    effects = {"toolu_first": APPROVED, "toolu_again": APPROVED, "toolu_denied": DENIED}
    turns: stub_anthropic.Turns = [
        *([call(f"toolu_{name}", f"mcp__all__{name}", **ARGUMENTS.get(name, {}))] for name in PLAIN_READS),
        *([call(number, f"mcp__all__{name}")] for number, name in effects.items()),
        [answer("That was all.")],
    ]
    log = tmp_path / "reached.jsonl"
    command, *words = log_before(log, EVERYTHING, "mcp-server-everything")
    with stub_anthropic.model_that_says(turns) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        write_settings(aver_home, PLAIN_READS, server="all")
        settings = room.home / ".claude.json"
        entry = {"type": "stdio", "command": command, "args": words, "env": {"SHOP": "open"}}
        settings.write_text(json.dumps({"mcpServers": {"all": entry}}, indent=2))
        room.aver("install", "claude-code", "--proxy")
        key = {"ANTHROPIC_BASE_URL": stub.url, "ANTHROPIC_API_KEY": "not-a-real-one"}
        inside = Room(room.home, room.workspace, {**room.environment, **key})
        asked = ("-p", "Note what there is.", "--model", stub_anthropic.MODEL, "--output-format", "stream-json")
        with person_at_work(wants_once(APPROVED)):
            done = inside.run("claude", *asked, "--verbose", "--allowedTools", "mcp__all")
        assert done.returncode == 0, done.stdout + done.stderr
        session = json.loads(done.stdout.splitlines()[0])["session_id"]
    for name in PLAIN_READS:
        assert "Aver: " not in stub_anthropic.heard(stub, f"toolu_{name}"), name
    assert "5" in stub_anthropic.heard(stub, "toolu_get-sum")
    assert "Aver: " not in stub_anthropic.heard(stub, "toolu_first")
    for refused in ("toolu_again", "toolu_denied"):
        assert "Aver: " in stub_anthropic.heard(stub, refused)
    assert list_reached(log) == [*PLAIN_READS, APPROVED]
    with open_ledger() as ledger:
        assert read_outcomes(ledger, session).count("ALLOW") == len(PLAIN_READS) + 1
        assert ledger.verify().status in ("verified", "qualified")
    room.aver("uninstall", "claude-code")
    assert json.loads(settings.read_text())["mcpServers"] == {"all": entry}


def test_codex_uses_the_everything_server_through_the_proxy(codex: Path, tmp_path: Path, aver_home: Path) -> None:
    call, answer = stub_responses.call, stub_responses.answer
    space = {"namespace": "mcp__all"}
    find = {"type": "tool_search_call", "call_id": "c_find", "execution": "client", "status": "completed"}
    effects = {"c_first": APPROVED, "c_again": APPROVED, "c_denied": DENIED}
    turns: stub_responses.Turns = [
        # Codex writes a low line where the name of a tool has a hyphen.
        [{**find, "arguments": {"query": "echo, get, toggle", "limit": 20}}],
        *([{**call(f"c_{name}", name.replace("-", "_"), **ARGUMENTS.get(name, {})), **space}] for name in PLAIN_READS),
        *([{**call(number, name.replace("-", "_")), **space}] for number, name in effects.items()),
        [answer("That was all.")],
    ]
    log = tmp_path / "reached.jsonl"
    command, *words = log_before(log, EVERYTHING, "mcp-server-everything")
    with stub_responses.model_that_says(turns) as stub:
        room = new_room(tmp_path, aver_home, stub, codex)
        write_settings(aver_home, PLAIN_READS, server="all")
        settings = room.home / ".codex" / "config.toml"
        settings.parent.mkdir()
        text = CODEX_SETTINGS.format(
            model=stub_responses.MODEL, url=stub.url, workspace=room.workspace, program=command, data=""
        )
        text = text.replace("[mcp_servers.files]", "[mcp_servers.all]").replace('args = [""]', f"args = {words!r}")
        settings.write_text(text)
        servers = tomllib.loads(text)["mcp_servers"]
        room.aver("install", "codex", "--proxy")
        free = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        with person_at_work(wants_once(APPROVED)):
            done = room.run("codex", "exec", *free, "Note what there is.")
        assert done.returncode == 0, done.stdout + done.stderr
    for name in PLAIN_READS:
        assert "Aver: " not in stub_responses.heard(stub, f"c_{name}"), name
    assert "5" in stub_responses.heard(stub, "c_get-sum")
    assert "Aver: " not in stub_responses.heard(stub, "c_first")
    for refused in ("c_again", "c_denied"):
        assert "Aver: " in stub_responses.heard(stub, refused)
    assert list_reached(log) == [*PLAIN_READS, APPROVED]
    with open_ledger() as ledger:
        [chain] = [name for name in ledger.chains() if name.startswith("gateway.")]
        assert read_outcomes(ledger, chain.removeprefix("gateway.")).count("ALLOW") == len(PLAIN_READS) + 1
        assert ledger.verify().status in ("verified", "qualified")
    room.aver("uninstall", "codex")
    assert tomllib.loads(settings.read_text())["mcp_servers"] == servers
