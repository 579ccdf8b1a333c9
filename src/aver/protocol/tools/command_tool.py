"""The tool `command`: a program with its arguments, run in the workspace without a shell.

    {"argv": ["python3", "-m", "pytest", "-q", "--junitxml=build/tests.xml"],
     "cwd": "services/shop",                       relative to the workspace; the workspace itself if left out
     "collect": {"tests": "build/tests.xml"}}      files that become outputs, relative to cwd

The outputs are `stdout`, `stderr` and those of `collect`. Nothing expands `$HOME` or `*`: the gate judges exactly the
words that run. A file to collect must be newer than the start of the run, or it does not count, so that an old report
cannot stand for a run that wrote none. Aver removes a collected file that was not there before the run: a report must
not make the workspace look changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aver.capsule.blobs import TEXT_MEDIA
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.regular import NotRegularFile, open_descriptor
from aver.log import debug
from aver.protocol.runner import BYTES, JSON, CallDescription, ToolFailure, ToolResult
from aver.protocol.tools.processes import run_process, tool_environment
from aver.protocol.tools.tool import ToolOrder, fail_tool, read_arguments, read_words

COMMAND = "command"

WORDS_MAX = 1024
"""Most words of a command."""

COLLECT_MAX = 16
"""Most files that one run collects."""

OWN_OUTPUTS = ("stdout", "stderr")

_MEDIA_BY_ENDING = {
    ".xml": "application/xml",
    ".json": JSON,
    ".txt": TEXT_MEDIA,
    ".tap": TEXT_MEDIA,
    ".log": TEXT_MEDIA,
}


@dataclass(frozen=True, slots=True)
class _Command:
    argv: list[str]
    cwd: str
    collect: Mapping[str, str]


class CommandTool:
    """Runs programs in the workspace."""

    def describe(self, order: ToolOrder) -> CallDescription:
        """Return the question for the gate: a command as a list of words, and where it runs."""
        command = _read_command(order)
        where = {"cwd": command.cwd} if "cwd" in order.arguments else {}
        return CallDescription(type="shell_exec", arguments={"command": command.argv, **where})

    def find_places(self, order: ToolOrder) -> frozenset[str]:
        """Return the files that the command collects, and its program: two runs of one may share their build output."""
        command = _read_command(order)
        is_module = command.argv[1:2] == ["-m"] and len(command.argv) > 2  # `python3 -m pytest` is pytest.
        program = command.argv[2] if is_module else os.path.basename(command.argv[0])
        files = (os.path.realpath(os.path.join(command.cwd, path)) for path in command.collect.values())
        return frozenset({f"program {program}", *files})

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        """Run the command to its end."""
        command = _read_command(order)
        started = time.time()
        paths = {name: os.path.join(command.cwd, path) for name, path in command.collect.items()}
        before = {name for name, path in paths.items() if os.path.lexists(path)}
        try:
            end = run_process(
                command.argv,
                cwd=command.cwd,
                environment=tool_environment(order.workspace),
                limits=order.limits,
            )
        except OSError as error:
            return fail_tool("ERROR", f"{command.argv[0]} cannot be started: {error.strerror}")
        outputs = {"stdout": (end.stdout, TEXT_MEDIA), "stderr": (end.stderr, TEXT_MEDIA)}
        cut = list(end.cut)
        if end.reason != "exited":
            if end.reason == "timeout":
                words = f"it did not end within {order.limits.seconds:g} seconds"
                return fail_tool("TIMEOUT", words, outputs, end.cut)
            words = f"it wrote far more than the {order.limits.output_max} bytes that are kept"
            return fail_tool("ERROR", words, outputs, end.cut)
        room = order.limits.output_max - len(end.stdout) - len(end.stderr)
        for name, path in paths.items():
            data = _collect(path, started, room)
            if data is None:
                continue
            if name not in before:
                with suppress(OSError):
                    os.unlink(path)
            if len(data) > room:
                data, cut = data[:room], [*cut, name]
            room -= len(data)
            outputs[name] = (data, guess_media(path))
        return ToolResult(end.exit_code, outputs, tuple(cut))


def _read_command(order: ToolOrder) -> _Command:
    given = read_arguments(order, {"argv": list}, {"cwd": str, "collect": dict})
    argv = read_words(given["argv"], f"{order.tool}: argv", WORDS_MAX)
    if not argv[0]:
        raise BadInput(f"{order.tool}: argv begins with the name of a program")
    root = os.path.realpath(order.workspace)
    cwd = os.path.realpath(os.path.join(root, given.get("cwd", "")))
    if "\0" in cwd or not (cwd == root or cwd.startswith(f"{root}{os.sep}")):
        raise BadInput(f"{order.tool}: cwd must lie in the workspace", advice="give a path relative to it")
    return _Command(argv, cwd, _read_collect(order, given.get("collect", {})))


def _read_collect(order: ToolOrder, collect: Mapping[str, Any]) -> Mapping[str, str]:
    if len(collect) > COLLECT_MAX:
        raise BadInput(f"{order.tool}: at most {COLLECT_MAX} files are collected")
    for name, path in collect.items():
        if not name or name in OWN_OUTPUTS or not name.isprintable():
            raise BadInput(f"{order.tool}: {ascii(name)[:80]} is no name for a collected file")
        if not isinstance(path, str) or not path or "\0" in path or os.path.isabs(path) or ".." in path.split("/"):
            raise BadInput(f"{order.tool}: collect {name}: give a path below cwd")
    return dict(collect)


def _collect(path: str, started: float, room: int) -> bytes | None:
    """Return the bytes of a file, one more than `room` at most; None if the run did not write a regular file there."""
    try:
        with os.fdopen(open_descriptor(path, follow=False), "rb") as file:
            # File systems keep times coarser than the clock: allow for that.
            if os.fstat(file.fileno()).st_mtime < started - 2.0:
                debug("protocol", "%s is older than the run, and not collected", path)
                return None
            return file.read(max(room, 0) + 1)
    except NotRegularFile:
        debug("protocol", "%s is no regular file, and not collected", path)
        return None
    except OSError as error:
        debug("protocol", "%s is not collected: %s", path, error.strerror)
        return None


def guess_media(path: str) -> str:
    """Return the media type of a file by its ending."""
    return _MEDIA_BY_ENDING.get(os.path.splitext(path)[1].lower(), BYTES)
