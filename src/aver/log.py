"""Debug lines of Aver's rooms, through the standard `logging`, at no cost where they are off.

A line goes to the logger `aver.<room>`, such as `aver.gate` or `aver.hooks`. A program that uses Aver turns lines on as
with any library. For the command line, `AVER_LOG=debug` writes them to standard error, also those of `aver hook`:

    $ AVER_LOG=debug aver hook claude-code PreToolUse < payload.json
    aver.gate: facts gathered in 3.1 ms
    aver.gate: pass by git-reads (starter.cedar) of the rules that Aver ships: reading git's state is harmless

Importing `logging` takes longer than some decisions, so this module does not import it. If no other module has imported
it, no handler can exist.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

LOG_VARIABLE = "AVER_LOG"


def debug(room: str, message: str, *values: object) -> None:
    """Log a line that says why Aver did something. `values` fill the `%s` in the message."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger(f"aver.{room}").debug(message, *values)


def is_logged(room: str) -> bool:
    """Whether the debug lines of a room go anywhere: for lines that take long to make."""
    logging = sys.modules.get("logging")
    return logging is not None and bool(logging.getLogger(f"aver.{room}").isEnabledFor(logging.DEBUG))


@contextmanager
def log_time(room: str, step: str) -> Iterator[None]:
    """Log how long the block took: `with log_time("gate", "facts gathered"): ...`."""
    started, failure = perf_counter(), ""
    try:
        yield
    except BaseException as error:
        failure = f", failed: {type(error).__name__}"
        raise
    finally:
        debug(room, "%s in %.1f ms%s", step, (perf_counter() - started) * 1000, failure)


def log_to_stderr() -> None:
    """Write Aver's log to standard error, if `AVER_LOG` names a level. An unknown level counts as `debug`."""
    level = os.environ.get(LOG_VARIABLE, "")
    if not level:
        return
    import logging

    from aver.text import to_one_line

    class OneLine(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            # These lines hold text by agents: it must not reach the terminal as control characters.
            return to_one_line(super().format(record))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(name)s: %(message)s"))
    logger = logging.getLogger("aver")
    known = logging.getLevelNamesMapping().get(level.upper(), logging.DEBUG)
    logger.setLevel(known)
    logger.addHandler(handler)
