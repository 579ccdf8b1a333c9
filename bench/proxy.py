"""The MCP proxy's rows of `make bench`: a call through it beside the direct call, its growth, memory and start.

    python bench/proxy.py             these rows alone, some minutes
    python bench/proxy.py --long      compares call 100 of a session with call 10,000, not with call 1,000

The server is a bare program that answers at once. The floor of a call is the direct call and an embedded act of the
same intent: no proxy could leave out either. A call through the proxy may take the direct call and 1.3 such acts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from measuring import Line, in_turns, table, timed

import aver
from aver.agents.registry import provide_known_agents
from aver.gateway.calls.upstream import FunctionTools
from aver.gateway.embedded_parts import open_embedded
from aver.gateway.settings import read_gateway_settings

CALLS = 20
"""Calls that are timed together."""

CPU_CALLS = 100
"""Calls whose CPU is measured: the kernel counts it in ticks of 10 ms."""

EARLY, LATE, LATEST = 100, 1000, 10_000
"""The calls of one session whose times are compared: the first with the second, or with the third."""

AROUND = 100
"""Calls that are measured together with each of them."""

AVER = str(Path(sys.executable).with_name("aver"))
SERVER = Path(__file__).parent.parent / "tests" / "support" / "odd_server.py"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Pipe:
    """A server on pipes, and requests to it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._number = 0

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._number += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def call(self) -> None:
        answer = self.request("tools/call", {"name": "get_order", "arguments": {"id": 7}})
        if answer["result"].get("isError"):
            raise SystemExit(f"the call was refused: {answer['result']['content']}")


@contextmanager
def start(words: Sequence[str], home: Path) -> Iterator[Pipe]:
    environment = {**os.environ, "AVER_HOME": str(home)}
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        yield Pipe(process)
    finally:
        process.kill()
        process.communicate()


def bench_proxy(directory: Path, rounds: int, *, last: int = LATE) -> list[Line]:
    provide_known_agents()
    home = directory / "proxy-home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[gate.tools]\nmcp__shop__get_order = ["read"]\n')
    bare = [sys.executable, str(SERVER), os.devnull]
    proxied = [AVER, "proxy", "--name", "shop", "--workspace", str(directory), "--", *bare]
    return [
        *_bench_call(directory, home, bare, proxied, rounds, last),
        *_bench_start(home, bare, proxied, max(3, rounds // 3)),
    ]


def _bench_call(
    directory: Path, home: Path, bare: list[str], proxied: list[str], rounds: int, last: int
) -> Iterable[Line]:
    """A call through the proxy beside the direct call and an embedded act, its growth, and its memory."""
    own = directory / "proxy-embedded"
    own.mkdir(mode=0o700)
    (own / "config.toml").write_text((home / "config.toml").read_text())
    with (
        start(bare, home) as direct,
        start(proxied, home) as proxy,
        aver.open_ledger(f"sqlite:///{own / 'ledger.db'}", home=own) as ledger,
        open_embedded(
            ledger, read_gateway_settings(ledger.config), workspace=str(directory), effects={}, close=lambda: None
        ) as gateway,
    ):
        gateway.connect("shop", FunctionTools({"get_order": lambda **given: given}))
        inputs = {"server": "shop", "tool": "get_order", "arguments": {"id": 7}}
        document = {"intent_id": "CallTool", "inputs": inputs, "constraints": {}, "caller": "agent:bench"}

        def act() -> None:
            if gateway.act(document)["reason_code"] != "ALLOW":
                raise SystemExit("the act was refused")

        for work in (direct.call, act, proxy.call):
            work()
        once, embedded, through = in_turns(rounds, *(timed(work, CALLS) for work in (direct.call, act, proxy.call)))
        floor = f"{once * 1e3:.2f} ms + {embedded * 1e3:.2f} ms"
        ratio = f"direct + {(through - once) / embedded:.2f} acts"
        yield Line("MCP call through the proxy", floor, f"{through * 1e3:.2f} ms", "–", ratio, "direct + 1.3 acts")
        began, before = time.process_time(), _read_cpu(proxy.process.pid)
        for _ in range(CPU_CALLS):
            act()
            proxy.call()
        alone, ours = (time.process_time() - began) / CPU_CALLS, (_read_cpu(proxy.process.pid) - before) / CPU_CALLS
        yield Line(
            "  the same, CPU",
            f"{alone * 1e3:.2f} ms",
            f"{ours * 1e3:.2f} ms",
            "–",
            f"{ours / alone:.2f} acts",
            "1.3 acts",
        )
        yield from _bench_growth(proxy, last, rounds * CALLS + CPU_CALLS + 1)
        used = _read_memory(proxy.process.pid)
    with start([AVER, "mcp", "--workspace", str(directory)], home) as server:
        server.request("initialize", HELLO)
        server.request("tools/call", {"name": "capseal_status", "arguments": {}})
        other = _read_memory(server.process.pid)
    yield Line("  memory beside aver mcp", f"{other:.0f} MB", f"{used:.0f} MB", "–", f"{used / other:.2f} x", "≤ 1.5 x")


def _bench_growth(proxy: Pipe, last: int, made: int) -> Iterable[Line]:
    """A late call of a session beside an early one: the time that it takes, and the CPU of the proxy."""

    def measure() -> tuple[float, float]:
        times, before = [], _read_cpu(proxy.process.pid)
        for _ in range(AROUND):
            began = time.perf_counter()
            proxy.call()
            times.append(time.perf_counter() - began)
        return statistics.median(times), (_read_cpu(proxy.process.pid) - before) / AROUND

    early = measure()
    for _ in range(last - made - 2 * AROUND):
        proxy.call()
    late = measure()
    words = f"  call {last:,} of a session beside call {max(EARLY, made)}"
    for name, first, then in zip((words, "  the same, CPU"), early, late, strict=True):
        yield Line(name, f"{first * 1e3:.2f} ms", f"{then * 1e3:.2f} ms", "–", f"{then / first:.2f} x", "≤ 1.2 x")


def _bench_start(home: Path, bare: list[str], proxied: list[str], rounds: int) -> Iterable[Line]:
    """From the start of the process to the answer to `initialize`."""

    def hello(words: list[str]) -> Callable[[], None]:
        def work() -> None:
            with start(words, home) as pipe:
                pipe.request("initialize", HELLO)

        return work

    def run(code: str) -> Callable[[], None]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True) and None

    works = (hello(bare), hello(proxied), run("pass"), run("import mcp"))
    own, through, empty, imported = in_turns(rounds, *(timed(work, 1) for work in works))
    sdk = imported - empty
    floor = f"{own * 1e3:.0f} ms + {sdk * 1e3:.0f} ms"
    ratio = f"own + {(through - own) / sdk:.2f} imports"
    yield Line(
        "  initialize through the proxy", floor, f"{through * 1e3:.0f} ms", "–", ratio, "own + 1.5 imports of mcp"
    )


def _read_cpu(process: int) -> float:
    """The CPU seconds of a process. Its name, which may hold spaces, ends with the last parenthesis."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read_memory(process: int) -> float:
    """The megabytes that a process has resident."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(table(bench_proxy(Path(name), 5, last=LATEST if "--long" in sys.argv else LATE)))
