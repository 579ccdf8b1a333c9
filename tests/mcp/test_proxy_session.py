"""Hooks and proxy of one client share a session: what one tool has read counts for the calls of another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aver import open_ledger
from aver.sessions.figures import compute_totals
from aver.sessions.sessions import find_named_session
from aver.sessions.story import read_story
from support.mcp_clients import COMMAND, environment
from support.proxies import ODD_SERVER, Command, read_outcomes

pytestmark = pytest.mark.more


ASKED = {"to": "ada@example.com", "order": "T-2041"}
PROMPT = "Please send the receipt of order T-2041 to ada@example.com."


def run_hook(workspace: Path, session: str, event: str, **more: object) -> None:
    """Tell of an event, as Claude Code does, from this process."""
    payload = {"session_id": session, "hook_event_name": event, "cwd": str(workspace), **more}
    words = [str(COMMAND), "hook", "claude-code", event]
    done = subprocess.run(words, input=json.dumps(payload), capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr


def test_after_a_command_has_read_a_secret_a_call_that_could_send_it_steps_up(tmp_path: Path, aver_home: Path) -> None:
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
        proxy.request("hello", "ping")
        proxy.result("hello")
        for number, session in enumerate(("first", "second")):
            run_hook(tmp_path, session, "UserPromptSubmit", prompt=PROMPT)
            # The user asked for it, and this session has seen nothing yet: a client may begin a new one at any time.
            proxy.call(number, "send_receipt", ASKED)
            assert "isError" not in proxy.result(number)
            command = {"command": "cat .env"}
            run_hook(tmp_path, session, "PreToolUse", tool_name="Bash", tool_input=command, tool_use_id=session)
            proxy.call(f"again {number}", "send_receipt", ASKED)
            refused = proxy.result(f"again {number}")
            assert refused["_meta"]["aver/reason_code"] == "REQUIRE_CONFIRM"
            assert "has seen a secret" in refused["content"][0]["text"]
    finally:
        process.kill()
        process.communicate()
    with open_ledger() as ledger:
        assert read_outcomes(ledger, "first") == ["ALLOW"]
        assert read_outcomes(ledger, "second") == ["ALLOW"]


def test_a_proxied_call_is_gated_and_stands_once_in_the_story(tmp_path: Path, aver_home: Path) -> None:
    """The proxy decides under an id of its own; the hook after the call knows the client's."""
    log = tmp_path / "log.txt"
    words = [str(COMMAND), "proxy", "--name", "the shop", "--workspace", str(tmp_path), "--wait", "0", "--"]
    process = subprocess.Popen(
        [*words, sys.executable, str(ODD_SERVER), str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    called = {"tool_name": "mcp__the_shop__send_receipt", "tool_input": ASKED, "tool_use_id": "t1"}
    try:
        proxy = Command(process, log)
        proxy.request("hello", "ping")
        proxy.result("hello")
        run_hook(tmp_path, "s1", "UserPromptSubmit", prompt=PROMPT)
        run_hook(tmp_path, "s1", "PreToolUse", **called)
        proxy.call(1, "send_receipt", ASKED)
        response = proxy.result(1)["content"]
        run_hook(tmp_path, "s1", "PostToolUse", **called, tool_response=response)
    finally:
        process.kill()
        process.communicate()
    with open_ledger() as ledger:
        chains = find_named_session(ledger, "s1")
        assert chains is not None
        totals = compute_totals(ledger, chains)
        assert (totals.actions, totals.gated) == (1, 1)
        story = [entry for entry in read_story(ledger, chains) if entry.decision or (entry.step and entry.step.call)]
        (entry,) = story
        assert entry.step is not None
        assert entry.decision is not None
        assert entry.step.result
