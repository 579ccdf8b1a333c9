"""The MCP server: how soon it answers, and what a call costs over the wire beside the same call in this process.

    python bench/serving.py

The floor of `initialize` is the import of the SDK alone, in a Python of its own; that of a call is the same work
without the wire.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from measuring import Line, in_turns

from aver.mcp.service import Caller, Service
from aver.mcp.workspace import Workspace

COMMAND = Path(sys.executable).with_name("aver")
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
DONE = {
    "action_type": "code_edit",
    "description": "fix",
    "tool_name": "Edit",
    "success": True,
    "files_affected": ["a.py"],
}


class Wire:
    """A server on pipes."""

    def __init__(self, workspace: Path) -> None:
        pipe = subprocess.PIPE
        self._child = subprocess.Popen([COMMAND, "mcp", "--workspace", workspace], stdin=pipe, stdout=pipe, text=True)
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    def close(self) -> None:
        self._child.communicate()


def rows(place: Path, rounds: int) -> list[Line]:
    """The lines of the table."""
    imported, answered = in_turns(rounds, _imported, lambda: _answered(place))
    wire = Wire(_made(place / "wire"))
    wire.ask("initialize", GREETING)
    service = Service(Workspace(_made(place / "here")))
    called, direct = in_turns(
        rounds,
        _each(lambda: wire.ask("tools/call", {"name": "capseal_record", "arguments": DONE})),
        _each(lambda: service.call(Caller("bench"), "capseal_record", DONE)),
    )
    wire.close()
    service.close()
    return [
        _line("answer to initialize / import of the SDK", imported, answered, "≤ 1.5"),
        _line("capseal_record over stdio / in process", direct, called, ""),
    ]


def _imported() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp"], check=True)
    return time.perf_counter() - started


def _answered(place: Path) -> float:
    started = time.perf_counter()
    wire = Wire(place)
    wire.ask("initialize", GREETING)
    took = time.perf_counter() - started
    wire.close()
    return took


def _each(work: Callable[[], Any], times: int = 50) -> Callable[[], float]:
    def once() -> float:
        work()  # What the first call loads is not measured.
        started = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - started) / times

    return once


def _line(work: str, floor: float, aver: float, target: str) -> Line:
    return Line(work, f"{floor * 1e3:.1f} ms", f"{aver * 1e3:.1f} ms", "", f"{aver / floor:.2f}", target)


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        os.environ["AVER_HOME"] = str(Path(directory) / "home")
        for line in rows(Path(directory), 5):
            print(f"{line.work:<44} {line.floor:>10} {line.aver:>10} {line.ratio:>8} {line.target:>8}")
