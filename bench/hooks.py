"""The hooks' rows of `make bench`: `aver hook` from the command line, before and after a call.

    python bench/hooks.py

Whole processes with their bytecode cached, in turns with Python that does nothing. Before a call the gate is asked,
with the starter rules, and its decision is sealed; after it the call is sealed. Both wait for the disk, as they must.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from measuring import Line, in_turns, timed

AVER = Path(sys.executable).with_name("aver")


class Hooks:
    """Hooks of Claude Code in a home and a project of their own."""

    def __init__(self, directory: Path) -> None:
        self._project = directory / "project"
        self._project.mkdir()
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "AVER_HOME": str(directory / "home"),
            "PYTHONPYCACHEPREFIX": str(directory / "cache"),
            "CLAUDE_PROJECT_DIR": str(self._project),
        }
        self._calls = itertools.count()

    def bare(self) -> None:
        self._run(sys.executable, "-c", "pass")

    def asking(self, tool: str, **arguments: Any) -> Callable[[], None]:
        return lambda: self._fire("PreToolUse", tool_name=tool, tool_input=arguments)

    def telling(self) -> None:
        response = {"stdout": "notes.txt\n", "stderr": "", "interrupted": False}
        self._fire("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response=response)

    def _fire(self, event: str, **more: Any) -> None:
        number = next(self._calls)
        # A session of 20 calls: what it did before is looked at each time.
        payload = {"session_id": f"s{number // 20}", "cwd": str(self._project), "tool_use_id": f"t{number}", **more}
        self._run(AVER, "hook", "claude-code", event, given=json.dumps(payload).encode())

    def _run(self, *command: str | Path, given: bytes = b"") -> None:
        subprocess.run(command, input=given, env=self._environment, cwd=self._project, capture_output=True, check=True)


def bench_hooks(rounds: int) -> list[Line]:
    with tempfile.TemporaryDirectory() as name:
        hooks = Hooks(Path(name))
        edit = {"file_path": str(Path(name) / "project" / "a.py"), "old_string": "x = 1", "new_string": "x = 2"}
        works = {
            "aver hook after a call": (hooks.telling, "≤ 8 x"),
            "aver hook before a command": (hooks.asking("Bash", command="git status"), "≤ 10 x"),
            "aver hook before an edit": (hooks.asking("Edit", **edit), "≤ 10 x"),
            "aver hook before a read": (hooks.asking("Read", file_path=edit["file_path"]), "≤ 10 x"),
        }
        for work, _ in works.values():
            work()
        bare, *ours = in_turns(rounds, timed(hooks.bare, 1), *(timed(work, 1) for work, _ in works.values()))
    return [
        Line(name, f"{bare * 1e3:.0f} ms", f"{spent * 1e3:.0f} ms", "", f"{spent / bare:.1f} x bare", target)
        for (name, (_, target)), spent in zip(works.items(), ours, strict=True)
    ]


if __name__ == "__main__":
    for line in bench_hooks(15):
        print(f"{line.work:<34} {line.floor:>8} {line.aver:>10} {line.ratio:>12} {line.target:>10}")
