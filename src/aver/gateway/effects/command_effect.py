"""The effect of `RunCommand`: one program with its words, in the workspace, without a shell.

The operator lists the beginnings of commands that may run (`[gateway.commands] allow`). `"git status"` allows
`git status --short`, and not `git push`. The first word is a plain name, which is looked for in the executor's `PATH`
outside of the workspace, so that an agent cannot write the program that runs; or it is a path, exactly as it is listed.

The program gets a small environment, no input, and a working directory that no link can lead out of the workspace. It
is ended, with everything that it started in its session, when its time is over or when it returns. The output is kept
up to a limit. The caller gets the output; the record has its size and SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from aver.errors import Refused
from aver.files.workspace_files import WorkspaceFiles
from aver.gateway.effect_settings import CommandSettings
from aver.gateway.effects.preconditions import check_command
from aver.gateway.effects.shown_bytes import show_bytes
from aver.gateway.executor.executor import EFFECT_FAILED, EffectDone, EffectOrder

KEPT_VARIABLES = ("HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR")
"""The variables of the executor that a command sees, beside `PATH`. Others may hold secrets of the executor."""

CHUNK = 64 * 1024


class CommandOutput(NamedTuple):
    """The end of a command: its exit code, and what it wrote."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    is_cut: bool
    is_timed_out: bool


class CommandEffect:
    """Runs commands of the list, in one workspace."""

    def __init__(self, workspace: str, settings: CommandSettings) -> None:
        self._workspace = os.path.realpath(workspace)
        self._settings = settings

    def __call__(self, order: EffectOrder) -> EffectDone:
        argv, cwd = list(order.inputs["argv"]), order.inputs["cwd"]
        if os.path.realpath(order.workspace) != self._workspace:
            raise Refused(
                "WORKSPACE_PATH_BLOCKED", "the decision was about another workspace than that of this executor"
            )
        places = self._list_places()
        program = self._find_program(argv, places)
        with WorkspaceFiles(self._workspace).open_directory(cwd) as directory:
            output = run_command(program, argv, directory, self._settings, places)
        told: dict[str, Any] = {
            "exit_code": output.exit_code,
            "is_timed_out": output.is_timed_out,
            "is_cut": output.is_cut,
        }
        streams = {"stdout": output.stdout, "stderr": output.stderr}
        recorded = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in streams.items()
        }
        shown = {name: show_bytes(data) for name, data in streams.items()}
        words = f"ran {argv[0]}: exit code {output.exit_code}"
        if output.is_timed_out:
            words = f"ran {argv[0]}: it was ended after {self._settings.timeout} seconds"
        return EffectDone(words, {**told, **shown}, recorded={**told, **recorded})

    def _list_places(self) -> str:
        """Return the `PATH` of commands. A relative or empty entry, or one in the workspace, is the agent's to fill."""
        return os.pathsep.join(
            place
            for place in os.environ.get("PATH", os.defpath).split(os.pathsep)
            if os.path.isabs(place) and not _is_below(os.path.realpath(place), self._workspace)
        )

    def _find_program(self, argv: list[str], places: str) -> str:
        """Return the path of the program. Raises `Refused` where the list does not have the command."""
        check_command(argv, self._settings)
        if "/" in argv[0]:
            return argv[0]  # Listed as it is.
        found = shutil.which(argv[0], path=places) if places else None
        if found is None or _is_below(os.path.realpath(found), self._workspace):
            raise Refused(EFFECT_FAILED, f"there is no program {argv[0][:80]!r} on this machine")
        return found


def _is_below(path: str, directory: str) -> bool:
    return os.path.commonpath((path, directory)) == directory


def run_command(program: str, argv: list[str], directory: int, settings: CommandSettings, places: str) -> CommandOutput:
    """Run a program in an open directory. Raises `Refused` where it cannot be started.

    `places` is its `PATH`: a program such as `make` looks there for the programs that it starts.
    """
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ} | {"PATH": places}
    try:
        process = subprocess.Popen(
            argv,
            executable=program,
            # The handle, not the path: a link that takes the directory's place later changes nothing.
            cwd=f"/proc/self/fd/{directory}",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(directory,),
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(EFFECT_FAILED, f"cannot start {argv[0][:80]!r}: {error}") from error
    with _end_group(process):
        return _collect(process, settings)


@contextmanager
def _end_group(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the process, and all that it left behind in its session's group."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _collect(process: subprocess.Popen[bytes], settings: CommandSettings) -> CommandOutput:
    """Read both streams until the process ends, or its time is over. Beyond the limit, output is read and dropped."""
    end = time.monotonic() + settings.timeout
    kept: dict[int, bytearray] = {}
    left, is_cut = settings.output_max, False
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            kept[stream.fileno()] = bytearray()
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() and (remaining := end - time.monotonic()) > 0:
            # A program that it left behind may hold the streams. The end of the program itself is enough.
            if not (ready := selector.select(min(remaining, 0.2))) and process.poll() is not None:
                break
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                kept[key.fd] += chunk[:left]
                is_cut = is_cut or len(chunk) > left
                left -= min(left, len(chunk))
    is_timed_out = _is_still_running(process, end)
    if is_timed_out:
        os.killpg(process.pid, signal.SIGKILL)
    out, error = (bytes(each) for each in kept.values())
    return CommandOutput(process.wait(), out, error, is_cut, is_timed_out)


def _is_still_running(process: subprocess.Popen[bytes], end: float) -> bool:
    """Wait for a process whose streams are closed. Returns whether it still runs when its time is over."""
    try:
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return True
    return False
