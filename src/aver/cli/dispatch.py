"""How every verb runs: its command line, its errors and its exit code.

    0    done, verified or qualified        4    internal error
    1    failed or empty                    5    refused
    2    bad input or usage                 130  interrupted (Ctrl-C), quietly
    3    the run failed: nothing was done   141  nobody reads our output any more, quietly

An error goes to stderr: what happened, then the next step. With `--json` it is also the one JSON object on stdout,
`{"error": {...}}`. A traceback is shown only when `AVER_DEBUG` is set: bad bytes from outside never earn one.
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
from aver.errors import AverError, Unavailable

__all__ = ["run_command"]

INTERNAL_ERROR = 4
BROKEN_PIPE = 141

DEBUG_ENV = "AVER_DEBUG"


def run_command(arguments: Sequence[str]) -> int:
    """Run a command line that names a verb, and turn whatever happens into an exit code."""
    try:
        try:
            code = _run_verb(arguments)
        except SystemExit as finished:  # argparse printed the help it was asked for.
            code = finished.code if isinstance(finished.code, int) else INTERNAL_ERROR
        except Exception as error:  # noqa: BLE001 - this is where a traceback becomes one line
            code = _report_error(error, as_json=has_json_option(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        _silence(sys.stdout)
        return _report_error(error, as_json=False)
    return code


def _run_verb(arguments: Sequence[str]) -> int:
    verb = arguments[0]
    if verb not in VERBS:
        raise Usage(f"{verb!r} is not a verb of aver", advice=_suggest_verb(verb))
    module = import_module(VERBS[verb][0])
    parser = Parser(prog=f"aver {verb}", summary=VERBS[verb][1], examples=module.EXAMPLES)
    module.add_arguments(parser)
    given = parser.parse_args(list(arguments[1:]))
    provide_known_agents()
    return int(module.run(given, Screen()))


def _suggest_verb(verb: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(verb, VERBS, n=1)
    return f"did you mean: aver {close[0]}" if close else "aver --help lists the verbs"


def _report_error(error: Exception, *, as_json: bool) -> int:
    """Tell of an error. Returns the exit code."""
    if isinstance(error, BrokenPipeError):
        raise error
    if os.environ.get(DEBUG_ENV):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OSError):
        error = Unavailable(_describe_os_error(error), advice="see whether the disk is full or the file may be used")
    if isinstance(error, AverError):
        code, message, advice = error.exit_code, hide_password(error.message), hide_password(error.advice)
    else:
        code, message = INTERNAL_ERROR, f"internal error: {type(error).__name__}: {error}"
        advice = f"this is a defect in Aver; set {DEBUG_ENV}=1 to see where, and report it"
    if as_json:
        print_json({"error": _error_to_dict(error, code, message, advice)})
    StderrScreen().print_error(message, advice)
    return code


def _error_to_dict(error: Exception, code: int, message: str, advice: str) -> dict[str, Any]:
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
    return described


def _describe_os_error(error: OSError) -> str:
    words = error.strerror or type(error).__name__
    return f"{error.filename}: {words}" if error.filename else f"cannot write the output, or read the input: {words}"


def _silence(stream: Any) -> None:
    """Leave nothing in a stream that Python would try, and fail, to flush at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return
