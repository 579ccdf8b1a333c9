"""The enclosure of an agent: the arguments of `bwrap` that give it what a contract allows, and nothing else.

Inside there is an empty root, and on it:

* the files of the contract: prefixes that may be read, read-only; those that may be written
* the runtime that every program needs: loader, shared libraries, time zones, and the Python that starts the agent
* `/tmp`, `/var/tmp` and `/dev/shm` of its own, where the contract allows to write there
* the gateway's socket at the first path of `transport.allowed_uds_paths`; the other paths as they are outside

Denied prefixes, Aver's home and all other sockets are covered. No path leads to Aver's ledger. There is no network but
an own loopback, no other process, no capability and no variable of the environment that was not named. Landlock limits
the programs that can be started (`inner_program`), and a filter the system calls (`syscall_filter`).

The directory is looked at once. A socket that somebody makes later in a directory that the agent sees can be used.
"""

from __future__ import annotations

import json
import os
import platform
import stat
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field
from pathlib import Path
from typing import IO

from aver.errors import BadInput, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.confinement import TEMPORARY_DIRECTORIES, find_wrapper, list_guarded
from aver.gateway.mediation import inner_program
from aver.gateway.mediation.contract import ExpandedContract, Values, is_inside
from aver.gateway.mediation.syscall_filter import TABLES, build_filter

RUNTIME_FILES = (
    *("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32"),
    *("/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"),
)
"""Files that a dynamic program needs to start, whatever a contract says. None of them belongs to a person."""

INNER_PROGRAM, INNER_PLAN = "/run/aver/inner_program.py", "/run/aver/plan.json"

PASSED_VARIABLES = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES"),
)
"""Variables that an agent gets as they are. All others must be named: one of them may be a secret."""

GATEWAY_VARIABLE = "AVER_GATEWAY"
"""The variable by which `aver gateway mcp` and `aver gateway act` find the socket inside."""

PRIVATE_TEMPORARY, STATE_DIRECTORY = "/tmp", "/var/tmp"
"""The values of TMPDIR and STATE_DIR: inside, both are empty and end with the agent."""

INTERPRETER_MAX = 4096
"""Longest path of a loader, in bytes."""


class CannotConfine(Unavailable):
    """This machine cannot confine an agent: `bwrap`, Landlock or the table of system calls is missing."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """A contract on this machine, ready to run programs in. `build_enclosure` makes one."""

    contract: ExpandedContract
    workspace: str
    wrapper: str
    options: tuple[str, ...]
    """The mounts. The socket and the variables come with each run."""
    programs: tuple[str, ...]
    """The files that may be started: those of the contract, and their loaders."""
    hidden: tuple[str, ...] = ()
    """Paths that are covered, because they are denied or are sockets."""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def socket(self) -> str:
        """Where the gateway's socket is inside."""
        return self.contract.sockets[0]

    def start(
        self,
        plan: Mapping[str, object],
        *,
        door: Path,
        stdin: int | None = None,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
    ) -> tuple[subprocess.Popen[bytes], int]:
        """Start the inner program with a plan. Returns its process, and the number of its process namespace.

        `door` is the socket outside. Raises `CannotConfine` if `bwrap` cannot make the namespaces.
        """
        reader, writer = os.pipe()
        text = json.dumps({"exec": list(self.programs), **plan}).encode("ascii")
        with ExitStack() as stack:
            stack.callback(os.close, writer)
            contents = (build_filter(TABLES[platform.machine()]), Path(inner_program.__file__).read_bytes(), text)
            blocked, program, told = (stack.enter_context(_open_content(content)) for content in contents)
            words = [self.wrapper, "--seccomp", str(blocked), "--info-fd", str(writer), *self.options]
            words += ["--file", str(program), INNER_PROGRAM, "--file", str(told), INNER_PLAN]
            words += ["--ro-bind", os.fspath(door), self.socket, "--remount-ro", "/"]
            words += ["--", find_python(), "-I", "-S", "-B", INNER_PROGRAM, INNER_PLAN]
            try:
                process = subprocess.Popen(
                    words,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=dict(self.variables),  # Not as options: everyone can read a command line.
                    pass_fds=(blocked, program, told, writer),
                )
            except OSError as error:
                os.close(reader)
                raise CannotConfine(f"{self.wrapper} cannot be started: {error.strerror}") from error
        with os.fdopen(reader, "rb") as pipe:
            return process, _read_namespace(pipe.read())


def build_enclosure(
    contract: ExpandedContract,
    workspace: str,
    *,
    private: Sequence[Path],
    environment: Mapping[str, str],
    passed: Sequence[str] = (),
) -> Enclosure:
    """Look at this machine, and build the enclosure of a contract.

    `private` are Aver's home and its ledger, which no contract can open. `passed` are the names of further variables
    for the agent. Raises `CannotConfine`, and `BadInput` for a contract that cannot be held.
    """
    wrapper = require_wrapper()
    root = os.path.realpath(workspace)
    hidden = tuple(os.path.realpath(path) for path in private)
    read = [*contract.read, *RUNTIME_FILES, *find_python_files()]
    _check_prefixes(contract, hidden, environment)
    mounts = _Mounts()
    for path in contract.write:
        mounts.add_writable(path)
    for path in read:
        mounts.add(path)
    for path in contract.exec_paths:
        mounts.add(path)
    if mounts.shows(contract.sockets[0]):
        raise BadInput(f"the gateway's socket cannot be at {contract.sockets[0]}, in a directory of the contract")
    options = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--proc", "/proc", "--dev", "/dev", *mounts.list_options()]
    covered = [*_list_denied(contract.deny_read, mounts), *_list_denied(hidden, mounts)]
    sockets = [path for path in mounts.list_sockets() if path not in contract.sockets]
    for path in (*covered, *sockets):
        options += ["--tmpfs", path, "--remount-ro", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    if mounts.may_write(root):
        for path in list_guarded(root, environment):
            if os.path.realpath(path) == path:  # An earlier run may have left a link that leads elsewhere.
                options += ["--ro-bind", path, path]
    for path in contract.sockets[1:]:
        if _is_socket(path) and not any(is_inside(path, place) for place in mounts.temporary):
            options += ["--ro-bind", path, path]
    # Without capabilities, root could still write to files of root there, such as the kernel's settings.
    options += [
        "--remount-ro",
        "/proc",
        "--remount-ro",
        "/dev",
        "--chdir",
        root if mounts.shows(root) else PRIVATE_TEMPORARY,
    ]
    return Enclosure(
        contract=contract,
        workspace=root,
        wrapper=wrapper,
        options=tuple(options),
        programs=tuple(_list_programs(contract.exec_paths)),
        hidden=(*covered, *sockets),
        variables=_choose_variables(contract.sockets[0], environment, passed),
    )


def require_wrapper() -> str:
    """Return the path of `bwrap`. Raises `CannotConfine` where this machine cannot confine an agent."""
    wrapper = find_wrapper()
    if wrapper is None:
        raise CannotConfine(
            "an agent cannot be confined here: bwrap is not installed", advice="install the package bubblewrap"
        )
    if platform.machine() not in TABLES:
        raise CannotConfine(f"Aver has no table of system calls for the processor {platform.machine()}")
    return wrapper


def list_values(workspace: str, home: Path, environment: Mapping[str, str]) -> Values:
    """Return the values of the variables of a contract. `home` is Aver's; all others are of the environment."""
    root = os.path.realpath(workspace)
    nodes = tuple(_find_program("node", environment, root))
    known = {
        "CAPSULE_WORKSPACE": (root,),
        "REPO_ROOT": (root,),
        "TMPDIR": (PRIVATE_TEMPORARY,),
        "STATE_DIR": (STATE_DIRECTORY,),
        "PY_PREFIX": tuple(find_module_directories()),
        "PY_BIN": (os.path.abspath(sys.executable),),
        "PY_REAL_BIN": (os.path.realpath(sys.executable),),
        "NODE_BIN": nodes,
        "NODE_REAL_BIN": tuple(os.path.realpath(path) for path in nodes),
    }
    canary = {"MIRAGE_CAPSULE_SECRET_PATH": (os.fspath(canary_path(home)),)}
    return {**canary, **{name: (value,) for name, value in environment.items() if value}, **known}


def canary_path(home: Path) -> Path:
    """Return the file that only a program outside can read."""
    return Path(os.path.realpath(home)) / "gateway" / "smoke" / "secret"


def find_python() -> str:
    """Return the Python behind a virtual environment: it needs no file but its own library."""
    return os.path.realpath(sys.executable)


def find_python_files() -> list[str]:
    """Return the files that this Python needs to start."""
    found = [find_python(), sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    directory, name = (str(sysconfig.get_config_var(key) or "") for key in ("LIBDIR", "INSTSONAME"))
    if directory and name and sysconfig.get_config_var("Py_ENABLE_SHARED"):
        found.append(os.path.join(directory, name))
    # A virtual environment answers with its own directory for the second one, and the library is not there.
    return [path for path in dict.fromkeys(found) if os.path.exists(path)]


def find_module_directories() -> list[str]:
    """Return the directories that this Python loads modules from."""
    # The first is where the program or the person is, which is no library.
    paths = [sys.prefix, sys.base_prefix, *(sys.path if sys.flags.safe_path else sys.path[1:])]
    found = {os.path.realpath(path) for path in paths if path and os.path.isabs(path) and os.path.exists(path)}
    return sorted(path for path in found if path != "/" and not any(is_inside(path, o) for o in found if o != path))


def read_loader(path: str) -> str:
    """Return the loader that an ELF program names; empty if it has none, or is no ELF program."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF" or head[4] != 2 or head[5] != 1:  # 64 bits, low byte first: as in `TABLES`.
                return ""
            (offset,) = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            for index in range(count):
                file.seek(offset + index * size)
                entry = file.read(56)
                if struct.unpack_from("<I", entry)[0] != 3:  # PT_INTERP
                    continue
                place, _, _, length = struct.unpack_from("<QQQQ", entry, 8)
                file.seek(place)
                return file.read(min(length, INTERPRETER_MAX)).rstrip(b"\0").decode("utf-8", "surrogateescape")
    except (OSError, struct.error):
        return ""
    return ""


@contextmanager
def _open_content(content: bytes) -> Iterator[int]:
    """Give a descriptor from which these bytes can be read."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file.fileno()


def _read_namespace(info: bytes) -> int:
    """Return the number of the process namespace that `bwrap` told; 0 where it told none, because it failed."""
    try:
        document = json.loads(info)
        return int(document.get("pid-namespace") or os.stat(f"/proc/{int(document['child-pid'])}/ns/pid").st_ino)
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _check_prefixes(contract: ExpandedContract, hidden: Iterable[str], environment: Mapping[str, str]) -> None:
    """Raise `BadInput` for a contract that allows what must stay closed, or what it denies itself."""
    home = os.path.realpath(environment.get("HOME") or "/nonexistent")
    named = (*contract.read, *contract.write, *contract.exec_paths)
    # Temporary directories are empty inside, so they open nothing.
    allowed = {path: os.path.realpath(path) for path in named if not _is_temporary(path)}
    for path, real in allowed.items():
        for denied in contract.deny_read:
            if is_inside(real, os.path.realpath(denied)):
                raise BadInput(f"the contract allows {path} and denies {denied}", advice="take one of them out")
        for closed in hidden:
            if is_inside(real, closed):
                raise BadInput(f"the contract allows {path}, which belongs to Aver", advice="take it out")
        if any(is_inside(closed, real) and os.path.isfile(closed) for closed in hidden):
            raise BadInput(f"the contract allows {path}, which contains Aver's ledger", advice="move the ledger")
    for path in contract.exec_paths:
        if os.path.isdir(path):
            raise BadInput(f"process.allow_exec_paths has the directory {path}", advice="name each program")
    closed_places = [(home, "the home directory"), ("/usr", "the system"), *((path, "Aver's home") for path in hidden)]
    for path in contract.write:
        for inner, name in closed_places:
            if path in allowed and is_inside(inner, allowed[path]):
                raise BadInput(f"the contract lets the agent write in {path}, which contains {name}")


class _Mounts:
    """The files that an enclosure shows, by their real paths, and the links that lead to them."""

    def __init__(self) -> None:
        self._writable: dict[str, bool] = {}
        self._links: dict[str, str] = {}
        self.temporary: set[str] = set()
        """Writable directories that are empty and the enclosure's own."""

    def add_writable(self, path: str) -> None:
        # A temporary directory is shared with all other programs, so the agent gets one of its own.
        if _is_temporary(path):
            self.temporary.add(path)
        else:
            self._add(path, is_writable=True)

    def add(self, path: str) -> None:
        if not _is_temporary(path):
            self._add(path, is_writable=False)

    def _add(self, path: str, *, is_writable: bool) -> None:
        real = os.path.realpath(path)
        if not os.path.exists(real):
            return
        self._writable[real] = self._writable.get(real, False) or is_writable
        if real != path:
            self._links[path] = real

    def list_options(self) -> list[str]:
        """Return the options of `bwrap`. A later mount covers an earlier one, so outer directories come first."""
        options: list[str] = []
        shown: dict[str, bool] = {}
        for directory in sorted(self.temporary):
            options += ["--tmpfs", directory]
        for path, is_writable in sorted(self._writable.items(), key=lambda item: item[0].count("/")):
            outer = [shown[other] for other in shown if is_inside(path, other)]
            if not outer or (is_writable and not any(outer)):
                options += ["--bind" if is_writable else "--ro-bind", path, path]
                shown[path] = is_writable
        for link, target in self._links.items():
            if not any(is_inside(link, other) for other in (*shown, *self.temporary)):
                options += ["--symlink", target, link]
        return options

    def shows(self, path: str) -> bool:
        return any(is_inside(path, other) for other in self._writable)

    def may_write(self, path: str) -> bool:
        return any(is_inside(path, other) for other, is_writable in self._writable.items() if is_writable)

    def list_sockets(self) -> Iterator[str]:
        """Yield the sockets in the files that are shown. Raises `BadInput` for more than can be looked at."""
        count, runtime = 0, {os.path.realpath(path) for path in RUNTIME_FILES}
        for directory in self._writable:
            if directory in runtime or not os.path.isdir(directory):
                continue
            for path in inner_program.walk_special(directory):
                count += path is None
                if count > inner_program.ENTRIES_MAX:
                    raise BadInput(
                        f"the contract shows more than {inner_program.ENTRIES_MAX} files, too many to look for sockets",
                        advice="name smaller directories",
                    )
                if path is not None and _is_socket(path):
                    yield path


def _list_denied(paths: Sequence[str], mounts: _Mounts) -> Iterator[str]:
    """Yield the denied paths that would be seen. `BadInput` for one that is not there: nothing can cover it."""
    for path in paths:
        real = os.path.realpath(path)
        if not mounts.shows(real):
            continue
        if not os.path.exists(real):
            raise BadInput(
                f"the contract denies {path}, which does not exist and would be seen if somebody made it",
                advice="make it, or allow smaller directories",
            )
        yield real


def _list_programs(paths: Sequence[str]) -> Iterator[str]:
    """Yield the files that may be started, and the loaders that they name. A directory stands for all its files."""
    found: dict[str, None] = {}
    for path in paths:
        found[os.path.realpath(path)] = None
        if loader := read_loader(path):
            found[os.path.realpath(loader)] = None
    yield from found


def _choose_variables(socket: str, environment: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
    chosen = {name: environment[name] for name in (*PASSED_VARIABLES, *passed) if name in environment}
    own = {"HOME": PRIVATE_TEMPORARY, "TMPDIR": PRIVATE_TEMPORARY, "AVER_CONFINED": "1"}
    return {**chosen, **own, GATEWAY_VARIABLE: f"unix:{socket}"}


def _find_program(name: str, environment: Mapping[str, str], workspace: str) -> Iterator[str]:
    """Yield the first program of a name in PATH. One in the workspace does not count: the agent could have made it."""
    for directory in environment.get("PATH", "").split(os.pathsep):
        path = os.path.join(directory, name)
        if os.path.isabs(path) and os.access(path, os.X_OK) and not is_inside(os.path.realpath(path), workspace):
            yield os.path.normpath(path)
            return


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_temporary(path: str) -> bool:
    """Whether a path is a temporary directory, or below one where another user could replace it."""
    for directory in TEMPORARY_DIRECTORIES:
        if not is_inside(path, directory):
            continue
        while path != directory:
            try:
                found = os.lstat(path)
            except OSError:
                return True
            if found.st_uid not in (os.geteuid(), 0) or (found.st_mode & 0o022 and not stat.S_ISLNK(found.st_mode)):
                return True
            path = os.path.dirname(path)
            if path == directory:
                return False
        return True
    return False
