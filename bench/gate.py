"""The gate's rows of `make bench`: one decision, `aver gate check`, a huge command, and commands that others wrote.

    python bench/gate.py                all rows
    python bench/gate.py HISTORY…       edits of real commits, from git histories (`bench/edits.py`)

A decision is timed with the starter rules and a warm model, over actions of several kinds. The command is compared with
Python that does nothing, both as whole processes with their bytecode cached. A command of 60 MB goes through a hook in
a process of its own. `bench/commands.py` judges the collections of commands.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from commands import bench_commands
from edits import bench_edits
from measuring import Line, in_turns, timed

from aver.agents.registry import load_known_agents
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.policy.bundle import load_policy_bundle

DECISIONS = 200
CHANGE = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,1 +1,{size} @@\n-x = 1\n{lines}"


def change(size: int) -> str:
    return CHANGE.format(size=size, lines="".join(f"+    x{number} = {number}\n" for number in range(size)))


def actions() -> dict[str, Action]:
    def action(type_: str, tool: str, **more: Any) -> Action:
        return Action(type=type_, tool=tool, workspace="/work/shop", caller="agent", session="s", **more)

    return {
        "a read": action("file_read", "Read", arguments={"file_path": "src/a.py"}),
        "an edit of one line": action("code_edit", "Edit", files=("src/a.py",), diff=change(1)),
        "an edit of 200 lines": action("code_edit", "Edit", files=("src/a.py",), diff=change(200)),
        "a command": action("shell_exec", "Bash", arguments={"command": "git status && ls -la | head"}),
        "a tool of an MCP server": action("tool_call", "mcp__mail__send", arguments={"to": "x", "body": "hello"}),
    }


def bench_decide(rounds: int) -> list[Line]:
    gate = Gate(bundle=load_policy_bundle(), known=load_known_agents())
    facts = Facts(now="2026-01-05T09:00:00+00:00")
    asked = actions()
    works = [timed(_deciding(action, facts, gate), DECISIONS) for action in asked.values()]
    for work in works:
        work()
    bare = timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 1)
    *spent, start = in_turns(rounds, *works, bare)
    lines = [Line(f"  {name}", "", f"{time * 1e3:.2f} ms", "", "", "") for name, time in zip(asked, spent, strict=True)]
    mean = statistics.mean(spent)
    ratio = f"{mean / start:.2f} x bare"
    row = ("decide one action (risk + policy), mean", f"{start * 1e3:.0f} ms", f"{mean * 1e3:.2f} ms")
    return [Line(*row, "", ratio, "≤ 0.3 x"), *lines]


def _deciding(action: Action, facts: Facts, gate: Gate) -> Callable[[], Any]:
    return lambda: decide(action, facts, gate)


def bench_command(rounds: int) -> Line:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "change.diff").write_text(change(200))
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"AVER_HOME": str(directory / "home"), "PYTHONPYCACHEPREFIX": str(directory / "cache")}
        aver = Path(sys.executable).with_name("aver")

        def run(*command: str | Path) -> Callable[[], float]:
            return timed(
                lambda: subprocess.run(command, env=environment, cwd=directory, capture_output=True, check=False), 1
            )

        check = run(aver, "gate", "check", "--diff", "change.diff")
        check()
        bare, ours = in_turns(rounds, run(sys.executable, "-c", "pass"), check)
    ratio = f"{ours / bare:.1f} x bare"
    return Line("aver gate check, 200 lines", f"{bare * 1e3:.0f} ms", f"{ours * 1e3:.0f} ms", "", ratio, "≤ 10 x")


HUGE = 60_000_000
"""Characters of the huge command."""


def bench_huge_command(rounds: int) -> list[Line]:
    """A hook before a huge command: its time beside `json.loads` of its payload, and what the ledger grows by."""
    call = {"session_id": "s", "tool_name": "Bash", "tool_use_id": "t"}
    with tempfile.TemporaryDirectory() as name:
        home, payload = Path(name) / "home", Path(name) / "payload.json"
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"AVER_HOME": str(home), "HOME": name, "PYTHONPYCACHEPREFIX": str(Path(name) / "cache")}
        aver = Path(sys.executable).with_name("aver")

        def fire(command: str) -> None:
            payload.write_text(json.dumps({**call, "cwd": name, "tool_input": {"command": command}}))
            hook()

        def hook() -> None:
            with payload.open("rb") as given:
                done = [aver, "hook", "claude-code", "PreToolUse"]
                subprocess.run(done, stdin=given, env=environment, cwd=name, capture_output=True, check=True)

        fire("ls")  # It makes the home, its keys and the ledger.
        small = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
        fire("echo " + "a" * HUGE)
        grown = sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) - small
        bare, ours = in_turns(rounds, timed(lambda: json.loads(payload.read_bytes()), 1), timed(hook, 1))
    size = f"{HUGE // 1_000_000} MB"
    times = (f"{bare * 1e3:.0f} ms", f"{ours * 1e3:.0f} ms", "", f"{ours / bare:.1f} x json.loads")
    return [
        Line(f"hook before a command of {size}", *times, "≤ 4 x"),
        Line(f"  the ledger grows by, for {size}", "", f"{grown / 1e6:.2f} MB", "", "", "≤ 1 MB"),
    ]


def bench_gate(rounds: int) -> list[Line]:
    return [*bench_decide(rounds), bench_command(3 * rounds), *bench_huge_command(rounds), *bench_commands()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How fast the gate is, and what it asks about.")
    parser.add_argument("histories", nargs="*", type=Path, help="git histories whose edits are judged")
    histories = parser.parse_args().histories
    for line in bench_edits(histories) if histories else bench_gate(5):
        print(f"{line.work:<100} {line.floor:>8} {line.aver:>12} {line.ratio:>36} {line.target:>10}")
