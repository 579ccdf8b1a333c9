"""Runs a verb: parses its command line, reports its errors and returns its exit code.

    0    done, verified or qualified        4    internal error
    1    failed or empty                    5    refused
    2    bad input or usage                 130  interrupted (Ctrl-C), quietly
    3    the run failed: nothing was done   141  the reader of our output has gone, quietly

An error goes to stderr: first what happened, then what to do next. With `--json`, stdout also gets one JSON object,
`{"error": {...}}`. A traceback is shown only when `AVER_DEBUG` is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from aver.agents.registry import provide_known_agents
from aver.cli.main import VERBS
from aver.cli.options import Parser, Usage, has_json_option
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.config import hide_password
from aver.errors import AverError, Unavailable, find_machine_fault

INTERNAL_ERROR = 4
BROKEN_PIPE = 141

DEBUG_ENV = "AVER_DEBUG"


def run_command(arguments: Sequence[str]) -> int:
    """Run a command line that begins with a verb. Returns the exit code; only Ctrl-C is raised."""
    try:
        try:
            verb = arguments[0]
            if verb not in VERBS:
                from difflib import get_close_matches

                close = ["verify meta"] if verb == "verify-meta" else get_close_matches(verb, VERBS, n=1)
                advice = f"did you mean: aver {close[0]}" if close else "aver --help lists the verbs"
                raise Usage(f"{verb!r} is not an aver command", advice=advice)
            module = import_module(VERBS[verb][0])
            parser = Parser(prog=f"aver {verb}", summary=VERBS[verb][1], examples=module.EXAMPLES)
            module.add_arguments(parser)
            given = parser.parse_args(list(arguments[1:]))
            provide_known_agents()
            code = int(module.run(given, Screen()))
        except SystemExit as finished:  # argparse has printed the help.
            code = finished.code if isinstance(finished.code, int) else INTERNAL_ERROR
        except Exception as error:  # noqa: BLE001 - here every error becomes one line
            code = _report_error(error, as_json=has_json_option(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # As in `aver log | head`.
        _silence(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        _silence(sys.stdout)
        return _report_error(error, as_json=False)
    return code


def _report_error(error: Exception, *, as_json: bool) -> int:
    """Print an error. Returns its exit code."""
    if isinstance(error, BrokenPipeError):
        raise error
    if os.environ.get(DEBUG_ENV):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        error = find_machine_fault(error) or error
    if isinstance(error, OSError):
        words = error.strerror or type(error).__name__
        where = error.filename or "cannot write the output, or read the input"
        error = Unavailable(f"{where}: {words}", advice="check free disk space and the permissions of the file")
    if isinstance(error, AverError):
        code, message, advice = error.exit_code, hide_password(error.message), hide_password(error.advice)
    else:
        code, message = INTERNAL_ERROR, f"internal error: {type(error).__name__}: {error}"
        advice = f"this is a bug in Aver: please report it, with the traceback that {DEBUG_ENV}=1 shows"
    if as_json:
        described: dict[str, Any] = {
            "type": type(error).__name__,
            "message": message,
            "advice": advice,
            "exit_code": code,
        }
        for name in ("code", "category", "field", "path", "line"):
            value = getattr(error, name, None)
            if isinstance(value, str | int):
                described[name] = value
        print_json({"error": described})
    StderrScreen().print_error(message, advice)
    return code


def _silence(stream: Any) -> None:
    """Send the rest of a stream to /dev/null. Otherwise Python fails when it flushes the stream at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return
