"""Running the installed `aver` command as a person would, in a home of its own."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.warm_command import WarmCommand

COMMAND = Path(sys.executable).with_name("aver")
WARM = WarmCommand(COMMAND, timeout=120)
atexit.register(WARM.close)

ONE_DRAFT = {"type": "tool", "outcome": {"status": "success", "summary": "ran the tests"}}


@dataclass(frozen=True)
class Ran:
    """What a command did: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        decoded = json.loads(self.out)
        assert isinstance(decoded, dict)
        return decoded


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Aver:
    """The installed `aver` command with its own AVER_HOME."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "home"
        own = ("AVER_", "NO_COLOR", "FORCE_COLOR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        self.environment = {**kept, "AVER_HOME": str(self.home), "PYTHONUTF8": "1"}

    def __call__(self, *arguments: str | Path, stdin: str | bytes = b"", **environment: str) -> Ran:
        """Run the command in a process that has everything imported already (see `support.warm_command`)."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        wanted = {**self.environment, **environment}
        code, out, err = WARM.run([str(one) for one in arguments], given, self.directory, wanted)
        return Ran(code, out.decode(), err.decode())

    def process(self, *arguments: str | Path, stdin: str | bytes = b"", **environment: str) -> Ran:
        """Run the installed command from a cold start, as a person does."""
        done = subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=self.directory,
            env={**self.environment, **environment},
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def started(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
        """The command, running; stdout and stderr are pipes. It can be interrupted, even if we cannot."""
        options.setdefault("preexec_fn", _interruptible)
        return subprocess.Popen(
            [str(COMMAND), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.directory,
            env=self.environment,
            **options,
        )

    def on_terminal(self, *arguments: str | Path, columns: int = 80, **environment: str) -> tuple[int, str]:
        """Exit code and everything shown, when stdin, stdout and stderr are a terminal of that width."""
        import fcntl
        import pty
        import struct
        import termios

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        child = subprocess.Popen(
            [str(COMMAND), *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.directory,
            env={**self.environment, "TERM": "xterm", **environment},
        )
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65_536):
                shown += chunk
        except OSError:
            pass  # How a terminal ends on Linux.
        os.close(ours)
        return child.wait(), shown.decode().replace("\r\n", "\n")

    def seal(self, *drafts: dict[str, Any], chain: str = "notes.today") -> list[dict[str, Any]]:
        """Seal drafts; gives what `aver seal --json` says of each."""
        lines = "\n".join(json.dumps(draft) for draft in drafts or [ONE_DRAFT])
        ran = self("seal", "-", "--chain", chain, "--json", stdin=lines)
        assert ran.code == 0, ran.err
        records: list[dict[str, Any]] = ran.json["records"]
        return records

    def listing(self) -> list[str]:
        """Everything that lies in the directory."""
        return sorted(str(path.relative_to(self.directory)) for path in self.directory.rglob("*"))


@contextmanager
def tampering(path: Path) -> Iterator[sqlite3.Connection]:
    """The ledger's file, with nothing in the way."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
