"""Running deeds (see `deeds`) under `strace`: with a fault at one system call, or with every change written down."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

DEEDS = Path(__file__).with_name("deeds.py")

CHANGING = (
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fallocate", "openat", "mkdir", "mkdirat"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "fchmod"),
)
"""The system calls by which Aver and SQLite change files. Not on every machine does each exist."""


@dataclass(frozen=True)
class Trial:
    """What came of one deed."""

    status: int
    """Its exit code; negative where a signal ended it."""
    said: tuple[tuple[str, ...], ...]
    """The lines that it told, parted at spaces; none that was torn."""
    trace: str
    """What strace wrote down."""

    @property
    def was_hit(self) -> bool:
        return "(INJECTED)" in self.trace or self.status < 0

    def acknowledged(self) -> dict[str, str]:
        return {line[1]: line[2] for line in self.said if line[0] == "ack"}

    def told(self, word: str) -> list[tuple[str, ...]]:
        return [line for line in self.said if line[0] == word]


class DeedServer:
    """A process that does deeds in children of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("AVER_LEDGER", None)
        self._process = subprocess.Popen(
            [sys.executable, str(DEEDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._hear() == "ready"

    def stop(self) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()

    def run(self, deed: str, home: Path, options: Sequence[str] = (), **more: int) -> Trial:
        """Do a deed in a home; with options, under strace with these. `more` is told to the child."""
        self._count += 1
        said, trace = (self._directory / f"{name}.{self._count}" for name in ("said", "trace"))
        self._tell(json.dumps({"deed": deed, "home": str(home), "said": str(said), **more}))
        number = self._hear()
        tracer = attached(number, trace, options) if options else None
        self._tell("go")
        status = int(self._hear())
        if tracer is not None:
            tracer.wait()
        text = said.read_text() if said.exists() else ""
        lines = tuple(tuple(line.split(" ")) for line in text.split("\n")[:-1])
        noted = trace.read_text() if trace.exists() else ""
        for file in (said, trace):
            file.unlink(missing_ok=True)
        return Trial(status, lines, noted)

    def _tell(self, line: str) -> None:
        pipe = _pipe(self._process.stdin)
        pipe.write(f"{line}\n")
        pipe.flush()

    def _hear(self) -> str:
        return str(_pipe(self._process.stdout).readline()).strip()


def attached(number: str, trace: Path, options: Sequence[str]) -> subprocess.Popen[str]:
    """strace, attached to a process. Skips the test where it cannot be."""
    command = ["strace", "-f", "-p", number, "-o", str(trace), *options]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    told = _pipe(tracer.stderr).readline()
    if "attached" not in told:
        tracer.wait()
        pytest.skip(f"strace cannot trace here: {told.strip()}")
    return tracer


def fault(call: str, what: str, number: int) -> list[str]:
    """The options for a fault at the so-manieth call: `error=EIO`, `signal=SIGKILL`."""
    return ["-e", f"trace=?{call}", "-e", f"inject=?{call}:{what}:when={number}"]


def need_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
