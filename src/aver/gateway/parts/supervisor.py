"""All parts as child processes: started in order, watched, and ended together.

0. No part may run already. Then nothing is started.
1. Both policy servers and the executor start, all at once. The supervisor waits until each answers.
2. The gateway's door starts.
3. The supervisor waits for a signal, or for the end of any child. A child that ends by itself is told loudly, and ends
   the rest: a gateway without one of its parts could only deny.

The children end in the opposite order, so that acts that have begun get their outcome. Each child has a pipe from the
supervisor as its standard input, and ends when that closes. So no child outlives a supervisor that was killed.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from aver.errors import Unavailable
from aver.serving.part_client import PartClient, PartUnavailable

START_SECONDS = 60.0
"""How long a part may take until it answers. It takes one or two seconds; closing acts of a dead executor adds some."""

END_SECONDS = 40.0
"""How long a part may take to end. It finishes running calls within 30 seconds, see `aver.serving.part_server`."""

PACE_SECONDS = 0.05

STOP_ON_EOF = "--stop-on-eof"


class PartCommand(NamedTuple):
    """A part to start: its name, the words after `aver`, and a client that asks for its health."""

    name: str
    words: Sequence[str]
    client: PartClient


class Supervisor:
    """Runs the parts. The last command is the door. `tell` gets one line about each event."""

    def __init__(self, commands: Sequence[PartCommand], tell: Callable[[str], None]) -> None:
        self._commands = commands
        self._tell = tell
        self._children: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._is_ending = False
        self._wake, self._wake_end = socket.socketpair()
        self._wake_end.setblocking(False)

    def run(self) -> str:
        """Run all parts until a signal. Returns the name of a part that ended by itself; empty after a signal."""
        self._check_free()
        with self._catch_signals():
            try:
                *first, door = self._commands
                for group in (first, [door]):
                    for command in group:
                        self._start(command)
                    for command in group:
                        failed = self._wait_until_ready(command)
                        if failed or self._is_ending:
                            return failed
                self._tell("all parts run")
                return self._watch()
            finally:
                self._end_all()

    def _check_free(self) -> None:
        """Raise `Unavailable` where a part runs already. Its answers would be taken for those of our own child."""
        for command in self._commands:
            try:
                command.client.get("/health")
            except PartUnavailable as error:
                if error.status is None:
                    continue
            words = f"{command.name} runs already: another program answers at {command.client.address}"
            raise Unavailable(words, advice="end the other aver gateway up first")

    def _start(self, command: PartCommand) -> None:
        words = [sys.executable, "-m", "aver", *command.words, STOP_ON_EOF]
        # In a group of its own: Ctrl-C reaches the supervisor alone, which ends the parts in their order.
        child = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        self._children.append((command.name, child))
        self._tell(f"{command.name} starts as process {child.pid}")

    def _wait_until_ready(self, command: PartCommand) -> str:
        """Wait until a part answers. Returns the name of a part that has ended instead."""
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ending:
            if (dead := self._find_dead()) is not None:
                return dead
            with suppress(Unavailable):
                command.client.get("/health")
                self._tell(f"{command.name} listens on {command.client.address}")
                return ""
            if time.monotonic() > deadline:
                raise Unavailable(f"{command.name} gave no answer within {START_SECONDS:g} seconds")
            time.sleep(PACE_SECONDS)
        return ""

    def _watch(self) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            while not self._is_ending:
                # SIGCHLD and the signals that end us wake this up.
                selector.select()
                with suppress(BlockingIOError):
                    self._wake.recv(4096, socket.MSG_DONTWAIT)
                if (dead := self._find_dead()) is not None:
                    return dead
        return ""

    def _find_dead(self) -> str | None:
        for name, child in self._children:
            if (code := child.poll()) is not None:
                how = f"killed by signal {-code}" if code < 0 else f"with exit code {code}"
                self._tell(f"{name} (process {child.pid}) HAS ENDED, {how}; the other parts are ended, too")
                return name
        return None

    def _end_all(self) -> None:
        for name, child in reversed(self._children):
            if child.poll() is None:
                child.send_signal(signal.SIGCONT)  # A part that was stopped could not end.
                child.terminate()
                try:
                    child.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    self._tell(f"{name} does not end, and is killed")
                    child.kill()
                    child.wait()
            if child.stdin is not None:
                child.stdin.close()
        self._wake.close()
        self._wake_end.close()

    @contextmanager
    def _catch_signals(self) -> Iterator[None]:
        def wake(number: int, frame: object) -> None:
            if number != signal.SIGCHLD:
                self._is_ending = True
            with suppress(OSError):
                self._wake_end.send(b"\0")

        before = {each: signal.signal(each, wake) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def stop_on_eof(stop: Callable[[], None]) -> None:
    """Call `stop` when standard input ends: the supervisor has gone."""
    import threading

    def wait() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        stop()

    threading.Thread(target=wait, name="aver-stdin", daemon=True).start()
