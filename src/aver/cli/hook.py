"""`aver hook`: the one program that coding agents' hooks start.

It runs before and after every tool call, so it goes its own short way: `main` calls `start`, which loads no parser and
nothing but what the event needs, collects no garbage, and ends without taking Python apart. Whatever happens, standard
output holds the answer in the tool's format or nothing, and the exit code is one that the tool understands.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import argparse

    from aver.cli.output import Screen

__all__ = ["EXAMPLES", "add_arguments", "run", "start", "straight"]

EXAMPLES = """\
  aver hook claude-code PreToolUse < payload.json     as Claude Code starts it
  aver hook codex notify '{"type": "agent-turn-complete", ...}'

aver install puts it into the settings of Claude Code, Codex, Cursor and Cline; nobody has to type it.
exit code: as the tool expects it."""

FAILED = 1
"""Tools show what stands on stderr then, and go on. 2 would block what the agent does, and is never an accident."""


def start(arguments: Sequence[str]) -> NoReturn:
    """Run a hook as a program. What it wrote is written, and what it opened is closed, when this leaves."""
    gc.disable()
    code = straight(arguments)
    os._exit(code)


def straight(arguments: Sequence[str]) -> int:
    """Run a hook without a parser: `TOOL EVENT [PAYLOAD]`. Nothing that happens gets past here but the exit code."""
    try:
        return _answered(arguments)
    except Exception as error:  # noqa: BLE001 - a hook that fails must not take the agent with it
        return _told(f"aver: the hook failed: {type(error).__name__}: {error}")


def _answered(arguments: Sequence[str]) -> int:
    from aver.cli.later import load_later

    load_later("difflib", "inspect", "ipaddress", "tempfile")
    from aver.ingest.hooks.running import answer

    tool, event, *rest = arguments
    reply = answer(tool, event, rest[0].encode("utf-8", "surrogateescape") if rest else sys.stdin.buffer)
    if reply.err:
        _told(reply.err)
    if reply.out:
        os.write(sys.stdout.fileno(), reply.out.encode("utf-8", "backslashreplace") + b"\n")
    return reply.code


def _told(words: str) -> int:
    from aver.cli.output import one_line

    try:
        sys.stderr.write(one_line(words) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # Nobody listens.
    return FAILED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from aver.ingest.hooks.running import TOOLS

    parser.add_argument("tool", metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("event", metavar="EVENT", help="the hook's own name for what happens, such as PreToolUse")
    parser.add_argument("payload", metavar="PAYLOAD", nargs="?", help="JSON, where the tool gives it as an argument")


def run(given: argparse.Namespace, screen: Screen) -> int:
    payload = [] if given.payload is None else [given.payload]
    return straight([given.tool, given.event, *payload])
