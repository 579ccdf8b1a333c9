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

    from aver.cli.terminal import Screen

EXAMPLES = """\
  aver hook claude-code PreToolUse < payload.json     this is how Claude Code calls it
  aver hook codex notify '{"type": "agent-turn-complete", ...}'

aver install adds this command to the settings of Claude Code, Codex, Cursor and Cline. You do not call it yourself.
exit code: as the tool expects it."""

FAILED = 1
"""Tools show what stands on stderr then, and go on."""

FORBIDDEN = 2
"""Most tools take this for a denial. It is never an accident: it is used where a denial cannot be written, and where
settings want a damaged installation to deny."""

HOOK_TIMEOUT_SECONDS = 50
"""How long a hook may take. Tools wait for 60, and then most of them go on unjudged."""


def run_and_exit(arguments: Sequence[str]) -> NoReturn:
    """Run a hook as a program. What it wrote is written, and what it opened is closed, when this leaves."""
    gc.disable()
    _interrupt_on_timeout()
    code = run_hook(arguments)
    os._exit(code)


def _interrupt_on_timeout() -> None:
    """Have what takes too long, or is told to end, interrupted: an answer and a record of that are still due."""
    import signal

    def interrupt(number: int, frame: object) -> NoReturn:
        for one in ends:
            signal.signal(one, signal.SIG_IGN)  # Once is enough: what is done about it must not be interrupted.
        took_long = number == signal.SIGALRM
        raise KeyboardInterrupt(
            f"it took longer than {HOOK_TIMEOUT_SECONDS} seconds" if took_long else "it was told to end"
        )

    ends = (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP)
    for number in ends:
        if number == signal.SIGALRM or signal.getsignal(number) != signal.SIG_IGN:  # What the tool ignores, so do we.
            signal.signal(number, interrupt)
    signal.alarm(HOOK_TIMEOUT_SECONDS)


def run_hook(arguments: Sequence[str]) -> int:
    """Run a hook without a parser: `TOOL EVENT [PAYLOAD]`. Nothing that happens gets past here but the exit code."""
    try:
        return _answer_event(arguments)
    except Exception as error:  # noqa: BLE001 - a hook that fails must not take the agent with it
        _print_stderr(f"aver: the hook failed: {type(error).__name__}: {error}")
        return FORBIDDEN if _must_fail_closed(arguments) else FAILED


def _must_fail_closed(arguments: Sequence[str]) -> bool:
    """Whether an event asks, and the settings say that nothing may go on where Aver fails: here nobody else reads them,
    because not even what a hook needs could be loaded."""
    try:
        from aver.config import load_config

        asks = arguments[1].lower().startswith(("pretooluse", "before"))
        return asks and load_config().hooks.get("on_failure") == "closed"
    except Exception:  # noqa: BLE001 - settings that cannot be read say nothing
        return False


def _answer_event(arguments: Sequence[str]) -> int:
    from aver.cli.lazy_imports import import_lazily

    import_lazily("difflib", "inspect", "ipaddress", "tempfile")
    from aver.agents.registry import AGENTS, load_hook, provide_known_agents
    from aver.hooks.run import answer_event

    provide_known_agents()

    name, event, *rest = arguments
    given = b"" if sys.stdin is None else sys.stdin.buffer  # None where the tool has closed it.
    payload = rest[0].encode("utf-8", "surrogateescape") if rest else given
    reply = answer_event(load_hook(name), event, payload, agents=AGENTS)
    if reply.err:
        _print_stderr(reply.err)
    try:
        _write_answer(reply.out)
    except (OSError, ValueError, AttributeError) as error:
        _print_stderr(f"aver: the answer could not be written: {error}: {reply.out}")
        return FORBIDDEN if reply.forbids else FAILED
    return reply.code


def _write_answer(answer: str) -> None:
    """Write the answer whole: half of one says nothing, and the tool would go on."""
    left = answer.encode("utf-8", "backslashreplace") + b"\n" if answer else b""
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


def _print_stderr(words: str) -> int:
    try:
        from aver.text import to_one_line

        sys.stderr.write(to_one_line(words) + "\n")
        sys.stderr.flush()
    except Exception:  # noqa: BLE001, S110 - nobody listens; what is still to be done matters more
        pass
    return FAILED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from aver.agents.registry import AGENTS

    parser.add_argument("tool", metavar="TOOL", help=", ".join(AGENTS))
    parser.add_argument("event", metavar="EVENT", help="the hook's own name for what happens, such as PreToolUse")
    parser.add_argument("payload", metavar="PAYLOAD", nargs="?", help="JSON, where the tool gives it as an argument")


def run(given: argparse.Namespace, screen: Screen) -> int:
    payload = [] if given.payload is None else [given.payload]
    return run_hook([given.tool, given.event, *payload])
