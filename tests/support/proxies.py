"""Proxies before the odd server: in this process, or as the installed command."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aver import Ledger, open_ledger
from aver.config import load_config
from aver.gate.approvals import Person, approve, deny, enrol_approver, load_request
from aver.mcp.proxy.call_judge import CallJudge
from aver.mcp.proxy.relay import Relay
from aver.mcp.proxy.run import ProxyPlan, open_proxy_gateway
from aver.mcp.proxy.server_link import ProcessLink
from aver.mcp.proxy.tool_book import ToolBook
from support.approvals import SHOWN, somebody
from support.mcp_clients import COMMAND, environment

ODD_SERVER = Path(__file__).with_name("odd_server.py")
SECONDS = 60
"""How long a test waits for a line before it fails."""

SESSION = "s1"

READS = ("get_order", "big", "flood", "other_id", "twice", "control", "progress", "fail", "sample", "raw", "junk")
"""Tools that the settings of these tests declare as reading, so that their calls pass."""


def write_settings(home: Path, tools: Sequence[str] = READS, server: str = "shop", more: str = "") -> None:
    """Declare tools that only read. All others are unknown, so a person must approve their calls."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    declared = "\n".join(f'mcp__{server}__{tool} = ["read"]' for tool in tools)
    (home / "config.toml").write_text(f"{more}\n[gate.tools]\n{declared}\n")


class Client:
    """The client's side: sends lines, and reads those that come back."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.kept: list[dict[str, Any]] = []

    def send(self, message: Any) -> None:
        self._send(message if isinstance(message, bytes) else json.dumps(message).encode())

    def request(self, number: Any, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})

    def call(self, number: Any, tool: str, arguments: dict[str, Any] | None = None, **params: Any) -> None:
        self.request(number, "tools/call", {"name": tool, "arguments": arguments or {}, **params})

    def cancel(self, number: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lines.get(timeout=SECONDS))
        return found

    def answer(self, number: Any) -> dict[str, Any]:
        """Return the answer with this id. Other messages that come meanwhile are kept."""
        for message in self.kept:
            if message.get("id") == number and "method" not in message:
                self.kept.remove(message)
                return message
        while (message := self.read()).get("id") != number or "method" in message:
            self.kept.append(message)
        return message

    def result(self, number: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.answer(number)["result"]
        return found

    def is_silent(self, seconds: float = 0.3) -> bool:
        """Whether nothing comes for a while."""
        try:
            self.kept.append(json.loads(self.lines.get(timeout=seconds)))
        except queue.Empty:
            return True
        return False


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


class Shop(Client):
    """A proxy in this process before the odd server, with its ledger and a person who can approve."""

    def __init__(self, place: Path, *, wait: float = 0.0, session: str = SESSION, name: str = "shop") -> None:
        self.log = place / "log.txt"
        self.log.touch()
        self.told: list[str] = []
        self.ledger = open_ledger()
        book = ToolBook(load_config().home, name)
        command = [sys.executable, str(ODD_SERVER), str(self.log)]
        link = ProcessLink(command, environment=os.environ, tell=self.told.append)
        self.relay = Relay(link, book, write=lambda line: self.lines.put(line), tell=self.told.append)
        super().__init__(self.relay.take_from_client)
        plan = ProxyPlan(name=name, command=tuple(command), headers={}, workspace=str(place), wait=wait)
        self.judge = CallJudge(
            self.relay,
            book,
            server=name,
            open_gateway=lambda: open_proxy_gateway(plan, self.relay, book, open_ledger()),
            find_session=lambda: session,
            wait=wait,
        )
        self.session = session
        self.person: Person | None = None
        self.relay.start(self.judge)

    def enrol(self) -> None:
        self.person = somebody("ada")
        self.ledger.keys.trust(self.person.public)
        enrol_approver(self.ledger, self.person)

    def approve(self, request: str) -> None:
        assert self.person is not None
        approve(self.ledger, load_request(self.ledger, request), self.person, shown=SHOWN)

    def deny(self, request: str) -> None:
        assert self.person is not None
        deny(self.ledger, load_request(self.ledger, request), self.person, shown=SHOWN)

    def reached(self) -> list[dict[str, Any]]:
        """The calls that have reached the server."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line["params"] for line in lines if line.get("method") in ("tools/call", "resources/read")]

    def outcomes(self) -> list[str]:
        """The codes of the session's outcomes, in order."""
        return read_outcomes(self.ledger, self.session)


def read_outcomes(ledger: Ledger, session: str = SESSION) -> list[str]:
    records = [record for record in ledger.read(f"gateway.{session}") if record.kind == "act.outcome"]
    return [record.to_dict()["outcome"]["result"]["reason_code"] for record in records]


def read_kinds(ledger: Ledger, session: str = SESSION) -> list[str]:
    return [str(record.kind) for record in ledger.read(f"gateway.{session}")]


@contextmanager
def open_shop(place: Path, **options: Any) -> Iterator[Shop]:
    shop = Shop(place, **options)
    try:
        yield shop
    finally:
        shop.relay.close()
        shop.judge.close()
        shop.ledger.close()


class Command(Client):
    """The installed `aver proxy` as a process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        assert process.stdin is not None
        self.process = process
        self.log = log

        def send(line: bytes) -> None:
            assert process.stdin is not None
            process.stdin.write(line + b"\n")
            process.stdin.flush()

        super().__init__(send)

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode() if self.process.stderr else ""
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def start_proxy(place: Path, *options: str, server: Sequence[str] | None = None) -> Iterator[Command]:
    """`aver proxy --name shop`, before the odd server or another; ended at last."""
    log = place / "log.txt"
    log.touch()
    command = list(server) if server is not None else [sys.executable, str(ODD_SERVER), str(log)]
    words = [str(COMMAND), "proxy", "--name", "shop", "--workspace", str(place), "--session", SESSION, *options]
    process = subprocess.Popen(
        [*words, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        yield Command(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
