"""Hooks and proxies of one client find each other, and those of other clients do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aver.hooks.client_process import (
    ClientProcess,
    ProxyNote,
    is_alive,
    is_behind_proxy,
    note_session,
    read_session,
)
from support.mcp_clients import COMMAND, environment

SELF = ClientProcess(os.getpid(), int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]))

FIND = "from aver.hooks.client_process import find_client; print(find_client(' '.join(('hook', 'demo', 'Event'))))"


def test_the_client_is_the_process_above() -> None:
    found = subprocess.run([sys.executable, "-c", FIND], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(SELF)
    assert is_alive(SELF)
    assert not is_alive(ClientProcess(SELF.pid, SELF.started - 1))


def test_shells_that_run_the_hook_are_passed_over() -> None:
    inner = '"$@"; exit 0'
    words = ["/bin/sh", "-c", inner, "aver-hook", sys.executable, "-c", FIND, "hook", "demo", "Event"]
    outer = ["/bin/sh", "-c", '"$@"; exit 0', "outer", *words]
    found = subprocess.run(outer, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(SELF)


def test_a_shell_that_runs_something_else_is_the_client() -> None:
    words = ["/bin/sh", "-c", '"$@"; exit 0', "agent", sys.executable, "-c", FIND]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert found.stdout.strip() != str(SELF)


def test_sessions_are_noted_for_one_process(aver_home: Path) -> None:
    aver_home.mkdir(mode=0o700)
    note_session(aver_home, SELF, "claude-code", "one")
    note_session(aver_home, SELF, "claude-code", "two")
    assert read_session(aver_home, SELF) == ("claude-code", "two")
    assert read_session(aver_home, ClientProcess(SELF.pid, SELF.started + 1)) is None
    [path] = (aver_home / "gateway" / "clients").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("no note")
    assert read_session(aver_home, SELF) is None


def test_a_living_proxy_of_this_client_and_name_counts_and_no_other(aver_home: Path) -> None:
    other = ClientProcess(SELF.pid, SELF.started + 1)
    note = ProxyNote(aver_home, SELF, "my shop")
    assert is_behind_proxy(aver_home, SELF, "mcp__my_shop__refund")
    assert not is_behind_proxy(aver_home, other, "mcp__my_shop__refund")
    assert not is_behind_proxy(aver_home, SELF, "mcp__my__refund")
    assert not is_behind_proxy(aver_home, SELF, "mcp__my_shop__a__b")  # It may be of the server `my shop__a`.
    assert not is_behind_proxy(aver_home, SELF, "Bash")
    note.close()
    assert not is_behind_proxy(aver_home, SELF, "mcp__my_shop__refund")


def test_a_note_whose_proxy_has_died_does_not_count(aver_home: Path) -> None:
    script = (
        "import os; from pathlib import Path; from aver.hooks.client_process import ClientProcess, ProxyNote;"
        f"ProxyNote(Path({str(aver_home)!r}), ClientProcess({SELF.pid}, {SELF.started}), 'shop'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert len(list((aver_home / "gateway" / "clients").iterdir())) == 1
    assert not is_behind_proxy(aver_home, SELF, "mcp__shop__refund")


@pytest.mark.parametrize("is_proxied", [True, False])
def test_a_hook_leaves_an_mcp_call_only_to_a_proxy_of_its_own_client(
    tmp_path: Path, aver_home: Path, is_proxied: bool
) -> None:
    note = ProxyNote(aver_home, SELF if is_proxied else ClientProcess(SELF.pid, SELF.started + 1), "shop")
    payload = {
        "session_id": "s1",
        "hook_event_name": "PreToolUse",
        "tool_name": "mcp__shop__refund",
        "tool_input": {"order": 7},
        "tool_use_id": "t1",
        "cwd": str(tmp_path),
    }
    words = [str(COMMAND), "hook", "claude-code", "PreToolUse"]
    done = subprocess.run(words, input=json.dumps(payload), capture_output=True, text=True, env=environment())
    note.close()
    assert done.returncode == 0, done.stderr
    asked = "permissionDecision" in done.stdout
    assert asked is not is_proxied
    assert read_session(aver_home, SELF) == ("claude-code", "s1")
