"""The gate's rows of `make bench`: one decision, and `aver gate check` from the command line.

    python bench/gate.py

A decision is timed with the starter rules and a warm model, over actions of several kinds. The command is compared with
Python that does nothing, both as whole processes with their bytecode cached.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

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
    spent = in_turns(rounds, *works)
    lines = [Line(f"  {name}", "", f"{time * 1e3:.2f} ms", "", "", "") for name, time in zip(asked, spent, strict=True)]
    mean = f"{statistics.mean(spent) * 1e3:.2f} ms"
    return [Line("decide one action (risk + policy), mean", "", mean, "", "", "≤ 0.6 ms"), *lines]


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


def bench_gate(rounds: int) -> list[Line]:
    return [*bench_decide(rounds), bench_command(3 * rounds)]


if __name__ == "__main__":
    for line in bench_gate(5):
        print(f"{line.work:<44} {line.floor:>8} {line.aver:>10} {line.ratio:>12} {line.target:>10}")
