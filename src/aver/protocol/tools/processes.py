"""Runs a program without a shell, for a bounded time, with bounded output, and ends all that it started.

    end = run_process(["pytest", "-q"], cwd="/work/shop", environment=tool_environment("/work/shop"), limits=Limits())
    end.exit_code, end.stdout, end.stderr, end.cut, end.reason

* The program gets a session and process group of its own. At the end Aver ends the whole group, also after a program
  that ended by itself and left others behind. A process that makes a session of its own is out of reach: nothing but a
  container or control group could end it. Aver does not wait for such a process.
* The bytes that are kept of both streams together are bounded. `cut` names a stream whose end is missing. Aver reads
  on and drops the rest, so that a talkative program can finish. A program that floods is ended.
* The program sees only the variables that it is given. Those of `tool_environment` have no tokens, and no setting of
  Aver. The program of a call also has the mark by which it is found if Aver is killed (`marked_processes`).
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, Literal

from aver.fast_dataclass import dataclass
from aver.protocol.tools.marked_processes import build_mark
from aver.protocol.tools.tool import Limits

CHUNK = 64 * 1024

FLOOD_FACTOR = 16
"""A program that writes this many times what is kept is ended: it would only heat the machine until its time is up."""

GRACE_SECONDS = 2.0
"""Between asking the processes of a group to end, and ending them."""

DRAIN_SECONDS = 1.0
"""How long Aver reads on after the program has ended. A process that it left behind may hold the pipe open for ever."""

PASSED_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV")
"""Variables that a tool gets as they are. Everything else, such as tokens, stays here."""

Reason = Literal["exited", "timeout", "flood"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """How a program ended. `exit_code` is None unless it exited; a signal is its number as a negative code."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    cut: tuple[str, ...]
    reason: Reason


def tool_environment(workspace: str, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a tool's process.

    From PATH, Aver leaves out relative entries and those inside the workspace: a file there must not take the place of
    the program whose name the gate judged.
    """
    given = os.environ if inherited is None else inherited
    root = os.path.realpath(workspace)
    found = {name: given[name] for name in PASSED_VARIABLES if name in given}
    entries = [entry for entry in given.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(entry)]
    found["PATH"] = os.pathsep.join(entry for entry in entries if not _is_inside(entry, root)) or os.defpath
    # Colours and pagers help nobody who reads an artifact.
    return {**found, "TERM": "dumb", "NO_COLOR": "1", "GIT_PAGER": "cat", "PAGER": "cat"}


def _is_inside(path: str, root: str) -> bool:
    found = os.path.realpath(path)
    return found == root or found.startswith(f"{root}{os.sep}")


_STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


@contextmanager
def stop_with(event: threading.Event) -> Iterator[None]:
    """Have the programs that this thread runs meanwhile ended when an event is set: `run_process` raises then.

    Python interrupts the main thread alone. This carries the interruption to programs that run on other threads.
    """
    token = _STOP.set(event)
    try:
        yield
    finally:
        _STOP.reset(token)


def _check_stop() -> None:
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


def run_process(
    argv: Sequence[str], *, cwd: str, environment: Mapping[str, str], limits: Limits, given: bytes = b""
) -> ProcessEnd:
    """Run a program to its end. `given` is written to its standard input. Raises `OSError` if it cannot be started."""
    program = _find_program(argv[0], cwd, environment)
    process = subprocess.Popen(
        [argv[0], *argv[1:]],
        executable=program,
        cwd=cwd,
        env={**environment, **build_mark()},
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        return _Exchange(process, limits, given).run()
    finally:
        _end_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _find_program(name: str, cwd: str, environment: Mapping[str, str]) -> str:
    """Return the file of a program. A name with a slash is relative to `cwd`, as for a shell."""
    if os.sep in name:
        return os.path.join(cwd, name)
    for entry in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(entry, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(2, f"there is no program {name!r} in PATH outside the workspace", name)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End every process of the group. Its leader, if it still runs, is asked first; the others are ended at once."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if number == signal.SIGTERM and process.poll() is not None:
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)


class _Exchange:
    """Reads both streams of one process and writes its input, within the limits."""

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits, given: bytes) -> None:
        self._process = process
        self._limits = limits
        self._given = memoryview(given)
        self._kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._seen = 0
        self._cut: dict[str, None] = {}

    def run(self) -> ProcessEnd:
        until = time.monotonic() + self._limits.seconds
        reason: Reason = "exited"
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            drained_by: float | None = None
            while selector.get_map():
                _check_stop()
                now = time.monotonic()
                if self._process.poll() is not None and drained_by is None:
                    drained_by = now + DRAIN_SECONDS
                if now >= until and drained_by is None:
                    reason = "timeout"
                    break
                if drained_by is not None and now >= drained_by:
                    break
                if self._seen > FLOOD_FACTOR * max(self._limits.output_max, CHUNK):
                    reason = "flood"
                    break
                # Short waits: the end of the process is not an event of the selector.
                for key, _ in selector.select(timeout=min(0.05, max(0.0, until - now))):
                    self._serve(selector, key)
        while reason == "exited" and self._process.poll() is None:
            if time.monotonic() >= until:  # It closed its streams and goes on.
                reason = "timeout"
                break
            _check_stop()
            time.sleep(0.02)
        code = self._process.returncode if reason == "exited" else None
        return ProcessEnd(
            exit_code=code,
            stdout=bytes(self._kept["stdout"]),
            stderr=bytes(self._kept["stderr"]),
            cut=tuple(self._cut),
            reason=reason,
        )

    def _register(self, selector: selectors.BaseSelector) -> None:
        process = self._process
        assert process.stdout is not None
        assert process.stderr is not None
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")

    def _serve(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
        if key.data == "stdin":
            try:
                self._given = self._given[os.write(stream.fileno(), self._given[:CHUNK]) :]
            except BlockingIOError:
                return
            except OSError:  # The program does not want more.
                self._given = memoryview(b"")
            if not self._given:
                selector.unregister(stream)
                stream.close()
            return
        try:
            chunk = os.read(stream.fileno(), CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            selector.unregister(stream)
            return
        self._seen += len(chunk)
        room = self._limits.output_max - sum(map(len, self._kept.values()))
        self._kept[key.data] += chunk[: max(room, 0)]
        if len(chunk) > room:
            self._cut[key.data] = None
