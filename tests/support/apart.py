"""A gateway whose parts are real processes on Unix sockets, in a home of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver import Ledger, open_ledger
from aver.errors import Unavailable
from aver.gateway.gateway import Gateway
from aver.gateway.parts.part_directories import LINK_TOKEN, PARTS, PartDirectories, make_part_directories
from aver.gateway.parts.remote_parts import open_apart
from aver.gateway.settings import read_gateway_settings
from aver.serving.part_client import PartClient
from aver.serving.tokens import read_token
from support.parts import short_directory

CALLER = "agent:writer"

FAULTY = """
import os, signal, sys
from aver.gateway.effects import workspace_effects
from aver.gateway.executor.executor import Executor
write, execute = workspace_effects.WorkspaceEffects.write, Executor.execute
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
def write_before(self, order):
    die()
def write_after(self, order):
    write(self, order)
    die()
def execute_after(self, order):
    execute(self, order)
    die()
if sys.argv[1] == "outcome":
    Executor.execute = execute_after
else:
    workspace_effects.WorkspaceEffects.write = {"before": write_before, "after": write_after}[sys.argv[1]]
del sys.argv[1]
from aver.cli.main import main
sys.exit(main())
"""
"""An executor that kills itself: before the effect, after it, or after its outcome was sealed."""


class Town:
    """The home, the workspace and the processes of one gateway whose parts run apart."""

    def __init__(self, home: Path, ledger: Ledger) -> None:
        self.home = home
        self.ledger = ledger
        self.workspace = home.parent / "work"
        self.workspace.mkdir(exist_ok=True)
        self.directories = PartDirectories(home)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def words(self, part: str) -> list[str]:
        if part.startswith("policy"):
            return ["gateway", "policy-server", part[-1]]
        verb = "serve" if part == "gateway" else part
        return ["gateway", verb, "--workspace", str(self.workspace)]

    def client(self, part: str, *, token: str | None = None, timeout: float = 30) -> PartClient:
        address = self.directories.find_address(part, read_gateway_settings(self.ledger.config))
        shown = read_token(self.directories.of(part) / LINK_TOKEN) if token is None else token
        return PartClient(address, shown, timeout, part=part)

    def start(self, *parts: str, fault: str = "", **environment: str) -> None:
        """Start parts and wait until each answers."""
        for part in parts:
            begin = ["-c", FAULTY, fault] if fault else ["-m", "aver"]
            self.processes[part] = subprocess.Popen(
                [sys.executable, *begin, *self.words(part)],
                env={**os.environ, "AVER_HOME": str(self.home), **environment},
                stdin=subprocess.DEVNULL,
                stderr=(self.home.parent / f"{part}.err").open("ab"),
            )
        for part in parts:
            while True:
                assert self.processes[part].poll() is None, (self.home.parent / f"{part}.err").read_text()
                with suppress(Unavailable):
                    self.client(part).get("/health")
                    break
                time.sleep(0.02)

    def send(self, part: str, number: signal.Signals) -> None:
        self.processes[part].send_signal(number)

    def stop(self, part: str) -> None:
        """Stop a part until it gets SIGCONT. On a busy machine, it may still answer for a while after the signal."""
        self.send(part, signal.SIGSTOP)
        os.waitid(os.P_PID, self.processes[part].pid, os.WSTOPPED)

    def end(self, part: str, number: signal.Signals = signal.SIGKILL) -> int:
        process = self.processes.pop(part)
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        return process.wait()

    def end_all(self) -> None:
        for part in list(self.processes):
            self.end(part)

    @contextmanager
    def open(
        self, *, session: str = "s1", seconds: float = 30, clock: Callable[[], float] = time.time, **changes: Any
    ) -> Iterator[Gateway]:
        """Open the gateway in this process. `changes` are settings that differ; `seconds` the patience with parts."""
        settings = replace(read_gateway_settings(self.ledger.config), **changes)
        with open_apart(
            self.ledger,
            settings,
            workspace=str(self.workspace),
            session=session,
            clock=clock,
            policy_seconds=seconds,
            executor_seconds=seconds,
            close=lambda: None,
        ) as gateway:
            yield gateway

    def kinds(self, session: str = "s1") -> list[str]:
        return [str(record.kind) for record in self.ledger.read(f"gateway.{session}")]


@contextmanager
def open_town() -> Iterator[Town]:
    """A home whose parts are made, and not started. Whatever was started ends with it."""
    with short_directory() as directory:
        home = directory / "home"
        with open_ledger(home=home) as ledger:
            make_part_directories(ledger)
            town = Town(home, ledger)
            try:
                yield town
            finally:
                town.end_all()


def write(name: str = "a.txt", content: str = "one\n", **changes: Any) -> dict[str, Any]:
    """An act that writes a file."""
    return {
        "intent_id": "WriteWorkspaceFile",
        "inputs": {"relpath": name, "content": content},
        "constraints": {},
        "caller": CALLER,
        **changes,
    }


def preview(name: str = "a.txt", content: str = "one\n") -> dict[str, Any]:
    return write(name, content, intent_id="CheckWriteWorkspaceFile")


def commit(tx_id: str) -> dict[str, Any]:
    return write(inputs={"tx_id": tx_id})


ALL = tuple(part for part in PARTS if part != "gateway")
"""The parts that the gateway calls."""
