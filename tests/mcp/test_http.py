"""`aver mcp --http`: the official client in both eras, many sessions at once, and everybody else kept out."""

from __future__ import annotations

import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from aver.mcp.http import read_mcp_token
from support.many_cases import first_now
from support.mcp_clients import COMMAND, Listening, ask, done, edit, environment, events, listening


@pytest.mark.more
def test_only_who_has_the_token_and_asks_for_us_gets_in(workspace: Path) -> None:
    with listening(workspace) as server:
        host, token = f"127.0.0.1:{server.port}", f"Bearer {server.token}"
        good = {"Host": host, "Authorization": token, "Content-Type": "application/json"}
        assert server.send(good) not in (401, 403, 421), "the Guard lets it through; the SDK refuses the empty request"
        for headers, expected in [
            ({**good, "Host": "evil.example"}, 421),
            ({**good, "Host": f"evil.example:{server.port}"}, 421),
            ({**good, "Host": f"127.0.0.1:{server.port + 1}"}, 421),
            ({**good, "Host": f"{host}.evil.example"}, 421),
            ({**good, "Host": "127.0.0.1"}, 421),
            ({name: value for name, value in good.items() if name != "Host"}, 421),
            ({**good, "Origin": "http://evil.example"}, 403),
            ({**good, "Origin": f"http://{host}"}, 403),
            ({**good, "Origin": "null"}, 403),
            ({**good, "Authorization": ""}, 401),
            ({**good, "Authorization": "Bearer "}, 401),
            ({**good, "Authorization": token[:-1]}, 401),
            ({**good, "Authorization": f"{token}x"}, 401),
            ({**good, "Authorization": f"Basic {server.token}"}, 401),
            ({**good, "Authorization": server.token}, 401),
        ]:
            for method, path in (
                ("POST", "/mcp"),
                ("GET", "/mcp"),
                ("DELETE", "/mcp"),
                ("GET", "/"),
                ("OPTIONS", "/mcp"),
            ):
                # A request without a host is refused by the HTTP server itself.
                assert server.send(headers, method, path) in (expected, 400 if "Host" not in headers else expected)
        assert server.send(good, "GET", "/elsewhere") == 404
        assert not (workspace / ".capseal").exists()


def test_the_token_is_in_the_home(aver_home: Path) -> None:
    token, path = read_mcp_token()
    assert path == aver_home / "mcp-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_mcp_token() == (token, path)


@pytest.mark.more
@pytest.mark.parametrize("mode", first_now(["legacy", "auto"]))
def test_a_session_over_http(workspace: Path, mode: str) -> None:
    async def run(server: Listening) -> Any:
        async with server.client(mode=mode) as client:
            gate = await ask(client, "capseal_gate", **edit())
            await ask(client, "capseal_record", **done(receipt_id=gate["receipt_id"]))
            return await ask(client, "capseal_seal")

    with listening(workspace) as server:
        sealed = anyio.run(run, server)
    assert (sealed["actions_count"], sealed["verification"]) == (1, "passed")
    assert [event["type"] for event in events(workspace)] == ["gate", "record", "seal"]


@pytest.mark.more
def test_many_sessions_at_once(workspace: Path) -> None:
    """Clients with a connection each have a session each; without one, whoever names a session is in it."""

    async def work(server: Listening, options: dict[str, Any], query: str, told: list[Any]) -> None:
        async with server.client(query, **options) as client:
            for number in range(3):
                file = f"f{number}.py"
                gate = await ask(client, "capseal_gate", **edit(file))
                await ask(client, "capseal_record", **done(file, receipt_id=gate["receipt_id"]))
            told.append(await ask(client, "capseal_seal"))

    async def run(server: Listening) -> list[Any]:
        told: list[Any] = []
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(work, server, {"mode": "legacy"}, "", told)
                tasks.start_soon(work, server, {"mode": "auto"}, f"?session=s{number}", told)
        return told

    with listening(workspace) as server:
        told = anyio.run(run, server)
    assert len({one["session_id"] for one in told}) == len(told) == 8
    assert {(one["actions_count"], one["verification"]) for one in told} == {(3, "passed")}


@pytest.mark.more
def test_calls_in_flight_are_finished_when_the_server_is_stopped(workspace: Path) -> None:
    async def run(server: Listening) -> Any:
        async with server.client() as client:
            await ask(client, "capseal_status")
            told: list[Any] = []

            async def record(number: int) -> None:
                told.append(await ask(client, "capseal_record", **done(description=f"step {number}")))
                server.process.send_signal(signal.SIGTERM)

            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    tasks.start_soon(record, number)
            return told

    with listening(workspace) as server:
        assert len(anyio.run(run, server)) == 5
        assert server.process.wait(60) in (0, -signal.SIGTERM)


@pytest.mark.more
def test_it_listens_on_this_machine_only(workspace: Path) -> None:
    with listening(workspace) as server:
        found = subprocess.run(["cat", f"/proc/{server.process.pid}/net/tcp"], capture_output=True, text=True)
        if found.returncode:
            pytest.skip("no /proc here")
        addresses = [line.split()[1] for line in found.stdout.splitlines()[1:] if line.split()[3] == "0A"]
        ours = [address for address in addresses if int(address.split(":")[1], 16) == server.port]
        assert ours == [f"0100007F:{server.port:04X}"]


@pytest.mark.more
def test_a_port_that_is_taken_is_told(workspace: Path) -> None:
    with listening(workspace) as server:
        second = subprocess.run(
            [COMMAND, "mcp", "--http", "--port", str(server.port), "--workspace", str(workspace)],
            env=environment(),
            capture_output=True,
            text=True,
        )
    assert second.returncode == 3
    assert "cannot listen" in second.stderr
