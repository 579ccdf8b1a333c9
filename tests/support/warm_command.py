"""The `aver` command without the time that Python and its imports take to start.

A server, one for each test process, has imported every verb, and all that verbs import later, and waits. For each
command line it forks: the child has the caller's environment, directory and open files, runs `aver.cli.main.main` as
the installed command does, and ends as a process ends. So a test sees a real process with a real exit code, and one
test cannot disturb another.

The server starts no thread and runs no command itself, so a fork copies nothing that is in use. It ends when the test
process closes its end of the connection, or dies.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

START = "from support.warm_command import serve; serve({})"


class WarmCommand:
    """The client's side: starts the server when it is first needed."""

    def __init__(self, command: Path, timeout: float) -> None:
        self._command = command
        self._timeout = timeout
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def run(
        self, arguments: list[str], stdin: bytes, cwd: Path, environment: dict[str, str]
    ) -> tuple[int, bytes, bytes]:
        """Run one command line. Returns the exit code (negative for a signal), stdout and stderr."""
        control = self._connect()
        ours, theirs = socket.socketpair()
        with ours, theirs, tempfile.TemporaryFile() as given, _output() as out, _output() as err:
            given.write(stdin)
            given.seek(0)
            socket.send_fds(control, [b"+"], [theirs.fileno(), given.fileno(), out.fileno(), err.fileno()])
            theirs.close()
            ours.settimeout(self._timeout)
            wanted = {"command": [str(self._command), *arguments], "cwd": str(cwd), "environment": environment}
            ours.sendall(json.dumps(wanted).encode() + b"\n")
            answer = ours.recv(64)
            assert answer, f"no exit code from aver {' '.join(arguments)}"
            out.seek(0)
            err.seek(0)
            return int(answer), out.read(), err.read()

    def _connect(self) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair()
            environment = {name: value for name, value in os.environ.items() if not name.startswith("AVER_")}
            tests = str(Path(__file__).resolve().parents[1])
            environment |= {"PYTHONPATH": os.pathsep.join([tests, *filter(None, sys.path)]), "PYTHONUTF8": "1"}
            with theirs:
                self._server = subprocess.Popen(
                    [sys.executable, "-c", START.format(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                )
        return self._control

    def close(self) -> None:
        if self._control is not None and self._server is not None:
            self._control.close()
            self._server.wait(timeout=10)


def _output() -> tempfile._TemporaryFileWrapper[bytes]:
    return tempfile.TemporaryFile()  # type: ignore[return-value]


# --- the server's side


def serve(control_fd: int) -> None:
    """Fork for every command line that comes, until the client is gone."""
    import aver
    from aver.cli.main import VERBS
    from support.quick_derivation import derive_quickly

    derive_quickly()
    for module, _ in VERBS.values():
        import_module(module)
    # The verbs import the rest as late as they can.
    for found in walk_packages(aver.__path__, "aver."):
        if not found.name.startswith(("aver.__main__", "aver.adapters", "aver.mcp")):
            import_module(found.name)
    gc.collect()
    gc.freeze()  # A child that looked through all this for garbage would copy it.
    control = socket.socket(fileno=control_fd)
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        message, files, _, _ = socket.recv_fds(control, 1, 4)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            _attend(*files)
        for file in files:
            os.close(file)


def _attend(connection_fd: int, *streams: int) -> None:
    """Run one command in a child of this process, and send its exit code. Only the child returns, by `SystemExit`."""
    connection = socket.socket(fileno=connection_fd)
    with connection.makefile("rb") as lines:
        wanted = json.loads(lines.readline())
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(status).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["cwd"])
    sys.argv = wanted["command"]

    from aver.cli.main import main

    _end(main())


def _end(code: int) -> None:
    """End as an interpreter does, but leave its modules in place: to take them apart costs more than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # The interpreter reports that.
    os._exit(code)
