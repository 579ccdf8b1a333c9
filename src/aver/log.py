"""Debug lines of Aver's rooms, through the standard `logging`, at no cost where nobody reads them.

A line goes to the logger `aver.<room>`, such as `aver.gate` or `aver.hooks`. A program that uses Aver turns lines on as
with any library. For the command line, `AVER_LOG=debug` writes them to standard error, also those of `aver hook`:

    $ AVER_LOG=debug aver hook claude-code PreToolUse < payload.json
    aver.gate: facts gathered in 3.1 ms
    aver.gate: pass by git-reads (starter.cedar) of the rules that Aver ships: reading git's state is harmless

Importing `logging` takes longer than some decisions. So this module does not import it: where no one else has, no one
can be listening.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter
from types import TracebackType

LOG_VARIABLE = "AVER_LOG"


def debug(room: str, message: str, *values: object) -> None:
    """Log a line for those who look for the reason of something. `values` fill the `%s` in the message."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger(f"aver.{room}").debug(message, *values)


def is_logged(room: str) -> bool:
    """Whether anyone reads the debug lines of a room: for lines that take long to make."""
    logging = sys.modules.get("logging")
    return logging is not None and bool(logging.getLogger(f"aver.{room}").isEnabledFor(logging.DEBUG))


class timed:
    """Log how long the block took: `with timed("gate", "facts gathered"): ...`."""

    __slots__ = ("_room", "_started", "_step")

    def __init__(self, room: str, step: str) -> None:
        self._room, self._step = room, step

    def __enter__(self) -> None:
        self._started = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = (perf_counter() - self._started) * 1000
        debug(self._room, "%s in %.1f ms%s", self._step, took, "" if kind is None else f", failed: {kind.__name__}")


def log_to_stderr() -> None:
    """Write Aver's log to standard error, if `AVER_LOG` names a level. An unknown level counts as `debug`."""
    level = os.environ.get(LOG_VARIABLE, "")
    if not level:
        return
    import logging

    from aver.text import to_one_line

    class OneLine(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            # What agents wrote is in these lines: it must not reach the terminal as control characters.
            return to_one_line(super().format(record))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(name)s: %(message)s"))
    logger = logging.getLogger("aver")
    known = logging.getLevelNamesMapping().get(level.upper(), logging.DEBUG)
    logger.setLevel(known)
    logger.addHandler(handler)
