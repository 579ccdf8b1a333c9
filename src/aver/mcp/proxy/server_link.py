"""The server behind the proxy as a process: its input and output carry one message a line.

The server gets the environment of the proxy, which is the one that the client gives to its servers. Aver's own settings
are left out: the URL of a ledger may hold a password, and MAC keys are not the server's.

The server's standard error goes to the proxy's, line by line, without characters that a terminal would obey.

A server that ends, closes its output, or sends a line without end is given up: `LinkEvents.end` is called once, with
the reason.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from aver.errors import Unavailable
from aver.log import debug
from aver.mcp.proxy.messages import MESSAGE_MAX, RequestId
from aver.text import to_one_line

EXIT_SECONDS = 3.0
"""How long a server may take to end after its input was closed, and again after SIGTERM."""

STDERR_LINE_MAX = 8192
"""Most bytes of a line on a server's standard error. A longer one is cut into several."""

_OWN_VARIABLES = ("AVER_", "POLICY_MAC_", "POLICY0_MAC_", "POLICY1_MAC_", "EXECUTOR_")
"""How the names of variables begin that are Aver's own."""

SIGNAL_CODE = 128
"""Added to the number of the signal that ended a server, as shells do."""


class LinkEvents(NamedTuple):
    """What a link calls, from threads of its own."""

    receive: Callable[[bytes], None]
    """Gets each line of the server, in order."""
    lose: Callable[[RequestId, str], None]
    """Gets the id of a request whose answer was lost on the way, and the reason. The server may have acted."""
    end: Callable[[str], None]
    """Gets the reason why no more lines will come. Called once."""


class ServerLink(Protocol):
    """The way to a server: messages out, and messages in through the functions that `start` was given."""

    def start(self, events: LinkEvents) -> None:
        """Begin. Raises `Unavailable` where the server cannot be started or reached."""

    def send(self, line: bytes) -> None:
        """Send one message, without its end of line. `Unavailable` where the server has certainly not got it."""

    def close(self) -> int:
        """End the server, and return its exit code; 0 for a server that is no process."""


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the server gets."""
    return {name: value for name, value in environment.items() if not name.startswith(_OWN_VARIABLES)}


class ProcessLink:
    """A server that the proxy starts, on its standard input and output."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], tell: Callable[[str], None]) -> None:
        self._command = list(command)
        self._environment = server_environment(environment)
        self._tell = tell
        self._sending = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, events: LinkEvents) -> None:
        """Start the server. Raises `Unavailable` where it cannot be started."""
        try:
            # In a session of its own, so that all processes which it starts can be ended with it.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            words = f"the server {self._command[0]} cannot be started: {error}"
            raise Unavailable(words, advice="check the command after --") from error
        for work in (lambda: self._read_messages(events), self._read_errors):
            threading.Thread(target=work, daemon=True).start()

    def _read_messages(self, events: LinkEvents) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        reason = "the server has ended"
        with suppress(OSError, ValueError):  # Closed by `close`.
            while line := self._process.stdout.readline(MESSAGE_MAX + 1):
                if len(line) > MESSAGE_MAX:
                    reason = f"the server sent a message of more than {MESSAGE_MAX} bytes, and was stopped"
                    self._kill(signal.SIGKILL)
                    break
                if stripped := line.strip():
                    events.receive(stripped)
        debug("mcp", "no more messages: %s", reason)
        events.end(reason)

    def _read_errors(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        with suppress(OSError, ValueError):
            while line := self._process.stderr.readline(STDERR_LINE_MAX):
                self._tell(to_one_line(line.decode("utf-8", "replace").rstrip("\n")))

    def send(self, line: bytes) -> None:
        """Send a message. A server that has closed its input gets no whole line, so it has not got the message."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            with self._sending:
                self._process.stdin.write(line + b"\n")
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise Unavailable(f"the server does not take messages any more: {error}") from error

    def close(self) -> int:
        """Close the server's input, and end it where it does not end by itself."""
        process = self._process
        if process is None:
            return 0
        assert process.stdin is not None
        # Closing waits for a thread that is writing to a server which reads nothing. Then only a signal helps.
        if self._sending.acquire(timeout=EXIT_SECONDS):
            with suppress(OSError, ValueError):
                process.stdin.close()
            self._sending.release()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._kill(number)
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(EXIT_SECONDS)
                return code if code >= 0 else SIGNAL_CODE - code
        return SIGNAL_CODE + signal.SIGKILL

    def _kill(self, number: signal.Signals) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            with suppress(OSError):
                os.killpg(self._process.pid, number)
