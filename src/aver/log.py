"""Debug lines of Aver's rooms, through the standard `logging`, at no cost where they are off.

A line goes to the logger `aver.<room>`, such as `aver.gate` or `aver.hooks`. A program that uses Aver turns lines on as
with any library. For the command line, `AVER_LOG=debug` writes them to standard error, also those of `aver hook`:

    $ AVER_LOG=debug aver hook claude-code PreToolUse < payload.json
    aver.gate: facts gathered in 3.1 ms
    aver.gate: human_review by network (30-step-up.cedar:24) of the rules that Aver ships
    aver.gate: because: talks to another machine
    aver.gate: sealed as capsule://gate.s1/3, which aver show prints

Coding agents hide the standard error of a hook that works. So `AVER_LOG_FILE=PATH` appends the lines to a file instead,
each with its time and process. Aver makes the file readable for its owner only. A project can set that variable, so no
value of it changes a file that was no log of Aver's before: Aver appends to a file that begins as its logs do, or is
new, or is empty and named `*.log`; in `AVER_HOME` only to `*.log`. In both places, Aver masks what looks
like a secret, as it does in a record. A program that takes the lines with handlers of its own gets them as they are.

Importing `logging` takes longer than some decisions, so this module does not import it. If no other module has imported
it, no handler can exist.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from aver.lazy_pattern import lazy_pattern

LOG_VARIABLE = "AVER_LOG"
FILE_VARIABLE = "AVER_LOG_FILE"


DEBUG = 10
"""`logging.DEBUG`, for a process that has not loaded that module."""

_loggers: dict[str, Any] = {}
"""The loggers of rooms that were asked for. `logging` keeps them, too, and takes a lock for each look."""


def _find_logger(room: str) -> Any:
    """Return the logger of a room; None as long as nobody has loaded `logging`, which takes a while."""
    found = _loggers.get(room)
    if found is None and (logging := sys.modules.get("logging")) is not None:
        found = _loggers[room] = logging.getLogger(f"aver.{room}")
    return found


def debug(room: str, message: str, *values: object) -> None:
    """Log a line that says why Aver did something. `values` fill the `%s` in the message."""
    if (logger := _find_logger(room)) is not None:
        logger.debug(message, *values)


def is_logged(room: str) -> bool:
    """Whether the debug lines of a room go anywhere: for lines that take long to make."""
    logger = _find_logger(room)
    return logger is not None and bool(logger.isEnabledFor(DEBUG))


def log_time(room: str, step: str) -> AbstractContextManager[None]:
    """Log how long the block took: `with log_time("gate", "facts gathered"): ...`."""
    return _log_time(room, step) if is_logged(room) else _NOT_LOGGED


_NOT_LOGGED = nullcontext()


@contextmanager
def _log_time(room: str, step: str) -> Iterator[None]:
    started, failure = perf_counter(), ""
    try:
        yield
    except BaseException as error:
        failure = f", failed: {type(error).__name__}"
        raise
    finally:
        debug(room, "%s in %.1f ms%s", step, (perf_counter() - started) * 1000, failure)


def start_logging(mask: Callable[[str], str], home: Path | None = None) -> None:
    """Write Aver's log to `AVER_LOG_FILE`, or to standard error, if `AVER_LOG` names a level.

    `mask` takes the secrets out of a line: lines quote commands and errors, and people send logs to others. An unknown
    level counts as `debug`. If the file cannot be opened, or is no log, Aver says so on standard error and writes
    there. `home` is `AVER_HOME`; None where it leads nowhere.
    """
    level = os.environ.get(LOG_VARIABLE, "")
    if not level:
        return
    import logging

    from aver.text import to_one_line

    class OneLine(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            # These lines hold text by agents: it must not reach the terminal as control characters.
            # Masked first: a secret of several lines is not found in one.
            return to_one_line(mask(super().format(record)))

    stream, form, failure = sys.stderr, "%(name)s: %(message)s", ""
    # The agent may set variables without a shell, so `~` arrives here as it was written.
    if path := os.path.expanduser(os.environ.get(FILE_VARIABLE, "")):
        try:
            stream, form = _open_log_file(path, home), f"%(asctime)s %(process)d {form}"
        except OSError as error:
            failure = f"{FILE_VARIABLE}: the log goes to standard error, because {path} cannot be used: {error}"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLine(form))
    logger = logging.getLogger("aver")
    known = logging.getLevelNamesMapping().get(level.upper(), logging.DEBUG)
    logger.setLevel(known)
    logger.addHandler(handler)
    if failure:  # By the logger, which raises nothing where standard error is closed.
        logger.critical("%s", failure)


def _open_log_file(path: str, home: Path | None) -> TextIO:
    """Open the file of the log for appending. Raises `OSError`, also for a pipe, which could block a hook."""
    from aver.files.regular import open_descriptor

    # Where a link leads is judged, and nothing else is opened.
    real = Path(os.path.realpath(path))
    if home is not None and real.suffix != ".log" and Path(os.path.realpath(home)) in real.parents:
        raise PermissionError("in AVER_HOME, a log is named *.log")
    try:
        handle = open_descriptor(real, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, follow=False)
    except FileExistsError:
        handle = open_descriptor(real, os.O_RDWR | os.O_APPEND, follow=False)
        beginning = os.pread(handle, LINE_START_MAX, 0)
        if not (_LINE_START.match(beginning) or (not beginning and real.suffix == ".log")):
            os.close(handle)
            raise PermissionError("it is there, and is no log of Aver's: name a new file") from None
    return open(handle, "a", encoding="utf-8", errors="backslashreplace")


_LINE_START = lazy_pattern(rb"[0-9-]{10} [0-9:,]{12} [0-9]+ aver\.")
LINE_START_MAX = 64
"""Bytes by which a log of Aver's is known: the time, the process and the logger of its first line."""
