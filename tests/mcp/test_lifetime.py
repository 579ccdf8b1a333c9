"""Servers that end, are killed, start again, and work side by side: no record lost, doubled or mixed up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from aver import open_ledger
from support.mcp_clients import ask, call, connected, done, edit, events, greeting, request, started, talk


def answers(output: bytes) -> dict[int, Any]:
    told = [json.loads(line) for line in output.splitlines()]
    return {one["id"]: one for one in told if "id" in one}


def recorded() -> dict[str, list[str]]:
    """The descriptions of all recorded actions, by their chains."""
    with open_ledger() as ledger:
        return {
            chain: [
                one.to_dict()["outcome"]["result"]["action"]["metadata"]["description"]
                for one in ledger.read(chain)
                if one.kind == "action"
            ]
            for chain in ledger.chains()
            if chain.startswith("actions.")
        }


@pytest.mark.more
def test_calls_in_flight_are_finished_when_the_client_closes_its_end(workspace: Path) -> None:
    calls = [call(number, "capseal_record", done(description=f"step {number}")) for number in range(1, 41)]
    with started(workspace) as server:
        out, _ = server.communicate(greeting() + b"".join(calls), timeout=120)
        assert server.returncode == 0
    found = answers(out)
    assert sorted(found) == list(range(41)), "every request was answered"
    assert all(found[number]["result"]["isError"] is False for number in range(1, 41))
    [actions] = recorded().values()
    assert sorted(actions) == sorted(f"step {number}" for number in range(1, 41))


@pytest.mark.more
def test_the_last_call_without_a_line_end_and_nonsense_between(workspace: Path) -> None:
    lines = greeting() + b"this is no JSON\n\n[1,2]\n{}\n" + call(1, "capseal_record", done()).rstrip(b"\n")
    with started(workspace) as server:
        out, _ = server.communicate(lines, timeout=120)
        assert server.returncode == 0
    assert answers(out)[1]["result"]["structuredContent"]["recorded"] is True


@pytest.mark.more
def test_what_cannot_be_read_is_answered(workspace: Path) -> None:
    nested = "{" + '"a":{' * 500 + "}" * 501
    unread = [
        call(1, "capseal_record", done(description="cut in the middle of \ud83d")),
        request(2, "tools/call", {"name": "capseal_record", "arguments": 0}).replace(b"0}", nested.encode() + b"}"),
        request(3, "tools/call", {"name": "capseal_record", "arguments": 0}).replace(b"0}", b"9" * 5000 + b"}"),
        b'{"jsonrpc":"2.0","id":"\\ud83d","method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":5\n',
    ]
    with started(workspace) as server:
        out, _ = server.communicate(greeting() + b"".join(unread) + call(6, "capseal_record", done()), timeout=120)
        assert server.returncode == 0
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["id"] for one in told if "error" in one] == [1, 2, 3, None, None]
    assert {one["error"]["code"] for one in told if "error" in one} == {-32700}
    assert answers(out)[6]["result"]["structuredContent"]["recorded"] is True


@pytest.mark.more
def test_a_request_that_was_taken_back_does_not_keep_the_server_waiting(workspace: Path) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    lines = greeting() + call(1, "capseal_record", done()) + json.dumps(cancel).encode() + b"\n"
    with started(workspace) as server:
        server.communicate(lines + call(2, "capseal_status", {}), timeout=60)
        assert server.returncode == 0


@pytest.mark.more
def test_a_client_that_says_nothing_ends_the_server(workspace: Path) -> None:
    with started(workspace) as server:
        out, _ = server.communicate(b"", timeout=60)
    assert (server.returncode, out) == (0, b"")


def read_answer(server: subprocess.Popen[bytes]) -> Any:
    assert server.stdout is not None
    return json.loads(server.stdout.readline())


def send(server: subprocess.Popen[bytes], data: bytes) -> None:
    assert server.stdin is not None
    server.stdin.write(data)
    server.stdin.flush()


@pytest.mark.more
def test_a_killed_server_goes_on_where_it_was(workspace: Path) -> None:
    with started(workspace) as server:
        send(server, greeting() + call(1, "capseal_gate", edit()))
        read_answer(server)
        gate = read_answer(server)["result"]["structuredContent"]
        send(server, call(2, "capseal_record", done(description="something else")))
        first = read_answer(server)["result"]["structuredContent"]
        server.send_signal(signal.SIGKILL)
        server.wait()

    async def again(client: Client) -> Any:
        status = await ask(client, "capseal_status")
        record = await ask(client, "capseal_record", **done())
        return status, record, await ask(client, "capseal_seal")

    status, record, sealed = talk_as(workspace, "tests", again)
    assert (status["session_id"], status["actions_count"], status["gates_count"]) == (gate["session_id"], 1, 1)
    assert record["session_id"] == first["session_id"] == gate["session_id"]
    assert (record["receipt_chain_length"], record["p_fail"]) == (2, gate["p_fail"]), (
        "the gate's answer was not forgotten"
    )
    assert (sealed["actions_count"], sealed["verification"]) == (2, "passed")
    assert [event["type"] for event in events(workspace)] == ["gate", "record", "record", "seal"]


def talk_as(workspace: Path, name: str, work: Any) -> Any:
    from mcp_types import Implementation

    return talk(workspace, work, client_info=Implementation(name=name, version="1"))


@pytest.mark.long
def test_a_server_killed_at_any_moment_loses_and_doubles_nothing(workspace: Path) -> None:
    acknowledged = 0
    for round_number in range(12):
        with started(workspace) as server:
            send(server, greeting())
            read_answer(server)
            for number in range(1, 4 + round_number):
                send(server, call(number, "capseal_record", done(description=f"{round_number}.{number}")))
                if number < 3 + round_number:
                    read_answer(server)
                    acknowledged += 1
            server.kill()
    [actions] = recorded().values()
    assert acknowledged <= len(actions) <= acknowledged + 12
    assert len(set(actions)) == len(actions)

    async def finish(client: Client) -> Any:
        return await ask(client, "capseal_seal")

    sealed = talk_as(workspace, "tests", finish)
    assert (sealed["verification"], sealed["actions_count"]) == ("passed", len(actions))
    assert sum(event["type"] == "record" for event in events(workspace)) == len(actions)


@pytest.mark.more
def test_two_servers_in_one_workspace_have_a_session_each(workspace: Path) -> None:
    async def run() -> Any:
        async with connected(workspace) as one, connected(workspace) as two:
            told = []
            for number in range(3):
                for name, client in (("one", one), ("two", two)):
                    file = f"{name}{number}.py"
                    gate = await ask(client, "capseal_gate", **edit(file))
                    told.append(await ask(client, "capseal_record", **done(file, receipt_id=gate["receipt_id"])))
            return (
                told,
                await ask(one, "capseal_seal"),
                await ask(two, "capseal_seal"),
                await ask(one, "capseal_status"),
            )

    told, first, second, status = anyio.run(run)
    assert len({one["session_id"] for one in told}) == 2
    assert [one["receipt_chain_length"] for one in told] == [1, 1, 2, 2, 3, 3]
    for sealed in (first, second):
        assert (sealed["actions_count"], sealed["verification"]) == (3, "passed")
    assert first["cap_file"] != second["cap_file"]
    assert status["project_stats"]["total_sessions"] == 2
    assert sorted(os.listdir(workspace / ".capseal" / "sessions")) == [
        "mcp-2.json",
        "mcp-2.lease",
        "mcp.json",
        "mcp.lease",
    ]


@pytest.mark.more
def test_two_servers_may_share_a_session_by_name(workspace: Path) -> None:
    async def run() -> Any:
        async with connected(workspace, "--session", "both") as one, connected(workspace, "--session", "both") as two:
            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    for client in (one, two):
                        tasks.start_soon(record, client, f"{id(client)} {number}")
            gate = await ask(one, "capseal_gate", **edit())
            bound = await ask(two, "capseal_record", **done())
            sealed = await ask(one, "capseal_seal")
            after = await ask(two, "capseal_record", **done(description="after the seal"))
            return gate, bound, sealed, after

    async def record(client: Client, description: str) -> None:
        await ask(client, "capseal_record", **done(description=description))

    gate, bound, sealed, after = anyio.run(run)
    assert bound["p_fail"] == gate["p_fail"], "what one asked, the other did"
    assert (sealed["actions_count"], sealed["verification"]) == (21, "passed")
    assert after["session_id"] != sealed["session_id"]
    assert sorted(map(len, recorded().values())) == [1, 21]
    assert [event["type"] for event in events(workspace)].count("record") == 22
