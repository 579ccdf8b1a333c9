"""Hooks and proxy of one client share a session: what one tool has read counts for the calls of another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aver import open_ledger
from support.mcp_clients import COMMAND, environment
from support.proxies import ODD_SERVER, Command, read_outcomes

pytestmark = pytest.mark.more


def run_hook(workspace: Path, session: str, command: str) -> None:
    """Ask about a command, as Claude Code does, from this process."""
    payload = {
        "session_id": session,
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": f"t-{session}",
        "cwd": str(workspace),
    }
    words = [str(COMMAND), "hook", "claude-code", "PreToolUse"]
    done = subprocess.run(words, input=json.dumps(payload), capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr


def test_after_a_command_has_read_a_secret_a_call_that_could_send_it_steps_up(tmp_path: Path, aver_home: Path) -> None:
    aver_home.mkdir(mode=0o700)
    (aver_home / "config.toml").write_text('[gate.tools]\nmcp__shop__get_order = ["service-read"]\n')
    (tmp_path / ".env").write_text("API_TOKEN=not-a-real-one\n")
    log = tmp_path / "log.txt"
    words = [str(COMMAND), "proxy", "--name", "shop", "--workspace", str(tmp_path), "--wait", "0", "--"]
    # This process is the client: it starts the proxy, and the hooks.
    process = subprocess.Popen(
        [*words, sys.executable, str(ODD_SERVER), str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        proxy = Command(process, log)
        run_hook(tmp_path, "first", "ls")
        proxy.call(1, "get_order", {"id": 7})
        assert "isError" not in proxy.result(1)
        run_hook(tmp_path, "first", "cat .env")
        proxy.call(2, "get_order", {"id": 7})
        refused = proxy.result(2)
        assert refused["_meta"]["aver/reason_code"] == "REQUIRE_CONFIRM"
        assert "has seen a secret" in refused["content"][0]["text"]
        # A client may begin a new session at any time, which has seen nothing.
        run_hook(tmp_path, "second", "ls")
        proxy.call(3, "get_order", {"id": 7})
        assert "isError" not in proxy.result(3)
    finally:
        process.kill()
        process.communicate()
    with open_ledger() as ledger:
        assert read_outcomes(ledger, "first") == ["ALLOW"]
        assert read_outcomes(ledger, "second") == ["ALLOW"]
