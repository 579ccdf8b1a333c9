"""The tool `command`: a program with its arguments, run in the workspace without a shell.

    {"argv": ["python3", "-m", "pytest", "-q", "--junitxml=build/tests.xml"],
     "cwd": "services/shop",                       relative to the workspace; the workspace itself if left out
     "collect": {"tests": "build/tests.xml"}}      files that become outputs, relative to cwd

The outputs are `stdout`, `stderr` and those of `collect`. Nothing expands `$HOME` or `*`: the gate judges exactly the
words that run. A file to collect must be newer than the start of the run, and another than before it. So an old report
cannot stand for a run that wrote none. No step of its path follows a link. A file that the gate guards, such as `.env`,
is not collected: reading it is a call of its own. Aver removes a collected file that was not there before the run: a
report must not make the workspace look changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from aver.capsule.blobs import TEXT_MEDIA
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.files.regular import NotRegularFile, open_descriptor
from aver.files.workspace_files import WorkspaceFiles, split_relpath
from aver.gate.effects.paths import build_path_roots, locate_path
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
    """The files to collect, relative to the workspace, by the names of their outputs."""


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
        files = (os.path.join(os.path.realpath(order.workspace), path) for path in command.collect.values())
        return frozenset({f"program {program}", *files})

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        """Run the command to its end."""
        command = _read_command(order)
        started = time.time()
        files = WorkspaceFiles(os.path.realpath(order.workspace))
        before = {name: _look(files, path) for name, path in command.collect.items()}
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
        for name, path in command.collect.items():
            data = _collect(files, path, before[name], started, room)
            if data is None:
                continue
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
    return _Command(argv, cwd, _read_collect(order, given.get("collect", {}), root, cwd))


def _read_collect(order: ToolOrder, collect: Mapping[str, Any], root: str, cwd: str) -> dict[str, str]:
    if len(collect) > COLLECT_MAX:
        raise BadInput(f"{order.tool}: at most {COLLECT_MAX} files are collected")
    for name, path in collect.items():
        if not name or name in OWN_OUTPUTS or not name.isprintable():
            raise BadInput(f"{order.tool}: {ascii(name)[:80]} is no name for a collected file")
        if not isinstance(path, str) or not path or "\0" in path or os.path.isabs(path) or ".." in path.split("/"):
            raise BadInput(f"{order.tool}: collect {name}: give a path below cwd")
    found = {name: os.path.relpath(os.path.join(cwd, path), root) for name, path in collect.items()}
    for name, path in found.items():
        try:
            split_relpath(path)
        except Refused as error:
            raise BadInput(f"{order.tool}: collect {name}: {error.message}") from error
        if locate_path(os.path.join(root, path), None, build_path_roots(root, {})).classes:
            words = f"{order.tool}: collect {name}: the gate guards {path}"
            raise BadInput(words, advice="read it by a call of its own, such as read_file")
    return found


@contextmanager
def _open_parent(files: WorkspaceFiles, path: str) -> Iterator[tuple[int, str]]:
    """Open the directory of a file without following a link. Gives it, and the file's name there."""
    directory, _, name = path.rpartition("/")
    with files.open_directory(directory or ".") as parent:
        yield parent, name


_FileState = tuple[int, int, int, int]


def _state_of(found: os.stat_result) -> _FileState:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _look(files: WorkspaceFiles, path: str) -> _FileState | None:
    """Return the state of a file before the run; None if there is none."""
    try:
        with _open_parent(files, path) as (parent, name):
            return _state_of(os.stat(name, dir_fd=parent, follow_symlinks=False))
    except (Refused, OSError):
        return None


def _collect(files: WorkspaceFiles, path: str, before: _FileState | None, started: float, room: int) -> bytes | None:
    """Return the bytes of a file, one more than `room` at most; None if the run did not write a regular file there."""
    try:
        with (
            _open_parent(files, path) as (parent, name),
            os.fdopen(open_descriptor(name, follow=False, below=parent), "rb") as file,
        ):
            found = os.fstat(file.fileno())
            # File systems keep times coarser than the clock: allow for that.
            if found.st_mtime < started - 2.0 or _state_of(found) == before:
                debug("protocol", "%s is older than the run, and not collected", path)
                return None
            data = file.read(max(room, 0) + 1)
            if before is None:
                with suppress(OSError):
                    os.unlink(name, dir_fd=parent)
            return data
    except NotRegularFile:
        debug("protocol", "%s is no regular file, and not collected", path)
        return None
    except (Refused, OSError) as error:
        debug("protocol", "%s is not collected: %s", path, error)
        return None


def guess_media(path: str) -> str:
    """Return the media type of a file by its ending."""
    return _MEDIA_BY_ENDING.get(os.path.splitext(path)[1].lower(), BYTES)
