"""The second half of the demo's sixth part: an MCP server behind the proxy.

A client calls tools of a real server through the real `aver proxy`, which runs as a process of its own. The user's
words are sealed first. Tools that read pass, and so does the call that the user asked for. A call that a text of a
stranger asks for is refused, and the server never sees it. One to an address that nobody named waits for a person, and
happens once.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aver import open_ledger
from aver.cli.verbs.demo.acts import PERSON, ActStep
from aver.gate.approvals import (
    GLANCE_LINES,
    approve,
    enrol_approver,
    find_person,
    load_request,
    load_request_state,
    render_request,
)
from aver.gateway.calls.session_origins import seal_turn
from aver.install.client import aver_command
from aver.verdict import Verdict

SESSION = "shop-calls"

PROMPT = "Look order T-2041 up and send its receipt to ada@example.com."

SETTINGS = '[gate.tools]\nmcp__shop__get_order = ["read"]\nmcp__shop__get_reviews = ["read"]\n'
"""The user says that these tools only read. Nobody has said anything about the others."""

ASKED = {"to": "ada@example.com", "order": "T-2041"}
OTHER = {"to": "books@example.net", "order": "T-2041"}


def run_calls(home: Path, workspace: Path) -> Iterator[ActStep]:
    """Call tools through the proxy, one after the other."""
    workspace.mkdir()
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(SETTINGS)
    with (
        open_ledger(home / "ledger.db", home=home) as ledger,
        _start_proxy(home, workspace, workspace / "sent.txt") as client,
    ):
        passphrase = secrets.token_hex(16)
        ledger.keys.create(PERSON, passphrase=passphrase)
        person = find_person(ledger.keys, PERSON, lambda: passphrase)
        enrol_approver(ledger, person)
        # With a coding agent, its hooks seal the prompt.
        seal_turn(ledger, SESSION, PROMPT, told_by="aver demo")
        yield ActStep("get_order T-2041", "ALLOW", client.call("get_order", {"order": "T-2041"}))
        yield ActStep("send_receipt to ada, as asked", "ALLOW", client.call("send_receipt", ASKED))
        yield ActStep("get_reviews", "ALLOW", client.call("get_reviews", {"product": "tea"}))
        refused = client.call("delete_customer", {"customer": "eve@example.org"})
        yield ActStep("delete_customer, as a review asks", "POLICY_DENY", refused)
        asked = client.call("send_receipt", OTHER)
        yield ActStep("send_receipt to an address that nobody named", "REQUIRE_CONFIRM", asked)
        request = load_request(ledger, asked["approval"])
        shown = render_request(
            request, request.read_action(ledger.blob), None, load_request_state(ledger, request), limit=GLANCE_LINES
        )
        approve(ledger, request, person, shown=shown.text)
        yield ActStep(f"the same, signed by {PERSON}", "ALLOW", client.call("send_receipt", OTHER))
        yield ActStep("the same once more", "REQUIRE_CONFIRM", client.call("send_receipt", OTHER))


def verify_calls(home: Path) -> Verdict:
    """Return the verdict on the records of the calls."""
    with open_ledger(home / "ledger.db", home=home, create=False) as ledger:
        return ledger.verify()


class _ProxyClient:
    """The smallest client: it sends a request, and waits for the line that answers it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool. Returns the answer in the form of the gateway's answers."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        told = {name.removeprefix("aver/"): value for name, value in result.get("_meta", {}).items()}
        status = "DENY" if result.get("isError") else "OK"
        return {"status": status, "reason_code": "ALLOW", "summary": result["content"][0]["text"], **told}


@contextmanager
def _start_proxy(home: Path, workspace: Path, sent: Path) -> Iterator[_ProxyClient]:
    """Start the proxy before the demo's server, as a client does."""
    server = [sys.executable, "-P", str(Path(__file__).with_name("shop_server.py")), str(sent)]
    options = ["proxy", "--name", "shop", "--session", SESSION, "--wait", "0", "--workspace", str(workspace)]
    environment = {name: value for name, value in os.environ.items() if name not in ("AVER_LEDGER", "AVER_LOG")}
    process = subprocess.Popen(
        [*aver_command(), *options, "--", *server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environment, "AVER_HOME": str(home)},
    )
    try:
        client = _ProxyClient(process)
        info = {"name": "demo", "version": "1"}
        client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        yield client
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
