"""How far a request travels through the code: functions, files and room switches of four journeys.

    .venv/bin/python bench/journeys.py

Each journey runs once with a profiler in a throw-away home. Imports, class bodies and comprehensions are not counted:
before Python 3.12 a comprehension is a function of its own, but nobody jumps to read it. The figures show how many
places an engineer crosses who follows the request; they say nothing about speed.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import aver

SOURCE = str(Path(aver.__file__).parent) + os.sep
NO_PLACES = ("<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Trace:
    """Counts calls of Aver's own functions while it is active."""

    def __init__(self) -> None:
        self.calls = 0
        self.functions: set[tuple[str, str, int]] = set()
        self.switches = 0
        self.deepest = 0
        self._room = ""
        self._depth = 0

    def __enter__(self) -> Trace:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(SOURCE) or code.co_name in NO_PLACES or frame.f_locals.get("__module__"):
            return
        if event == "call":
            self.calls += 1
            self._depth += 1
            self.deepest = max(self.deepest, self._depth)
            self.functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))
            room = code.co_filename[len(SOURCE) :].split(os.sep)[0]
            self.switches += room != self._room
            self._room = room
        elif event == "return":
            self._depth -= 1

    def row(self) -> tuple[int, int, int, int, int]:
        return self.calls, len(self.functions), len({file for file, *_ in self.functions}), self.switches, self.deepest


def run_command(*arguments: str, payload: object = None) -> None:
    """Run `aver` in this process, with its output kept away from the screen."""
    from aver.cli.main import main

    def leave(code: int) -> None:
        raise SystemExit(code)

    kept = sys.stdin, sys.stdout, sys.stderr
    leave_at_once, os._exit = os._exit, leave  # type: ignore[assignment]  # A hook ends its process at once.
    text = json.dumps(payload).encode()
    sys.stdin = io.TextIOWrapper(io.BytesIO(text))
    sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    try:
        main(list(arguments))
    except SystemExit:
        pass
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept
        os._exit = leave_at_once


def journeys(workspace: Path, ledger: aver.Ledger) -> dict[str, Callable[[], None]]:
    """The journeys by name, in the order in which they are run."""
    before, after, runs = count(), count(), count()

    def call(number: int, **more: object) -> dict[str, object]:
        event = {"session_id": "s1", "cwd": str(workspace), "tool_name": "Bash", "tool_use_id": f"toolu_{number}"}
        return {**event, "tool_input": {"command": "pytest -q"}, **more}

    done = {"stdout": "1 passed\n", "stderr": ""}

    @aver.audit(chain="demo.journey", ledger=ledger)
    def add(first: int, second: int) -> int:
        return first + second

    def run() -> None:
        with aver.AgentRuntime(workspace / f"run-{next(runs)}") as runtime:
            answer = runtime.gate(action_type="shell_exec", tool="Bash", arguments={"command": "ls"})
            runtime.record_simple("shell_exec", "list the files", {"command": "ls"}, "", gate_id=answer["gate_id"])

    return {
        "`aver hook claude-code PreToolUse` (Bash)": lambda: run_command(
            "hook", "claude-code", "PreToolUse", payload=call(next(before))
        ),
        "`aver hook claude-code PostToolUse`": lambda: run_command(
            "hook", "claude-code", "PostToolUse", payload=call(next(after), tool_response=done)
        ),
        "`@aver.audit`, one call": lambda: add(1, 2) and None,
        "`AgentRuntime`: gate, record, finalize": run,
        "`aver verify bundle`": lambda: run_command("verify", str(workspace / "bundle")),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        workspace = Path(directory) / "work"
        workspace.mkdir()
        os.environ["AVER_HOME"] = str(Path(directory) / "home")
        os.chdir(workspace)
        with aver.open_ledger() as ledger:
            ledger.append("demo.one", aver.Capsule(type="tool"))
            run_command("export", "--out", str(workspace / "bundle"))
            print("| journey | calls | functions | files | room switches | deepest stack |")
            print("|---|---|---|---|---|---|")
            for name, travel in journeys(workspace, ledger).items():
                travel()  # The first time loads modules.
                with Trace() as trace:
                    travel()
                print(f"| {name} | {' | '.join(f'{number:,}' for number in trace.row())} |")


if __name__ == "__main__":
    main()
