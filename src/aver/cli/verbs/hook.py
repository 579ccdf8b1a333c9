"""`aver hook`: the one program that coding agents' hooks start.

It runs before and after every tool call, so it goes its own short way: `main` calls `run_and_exit`, which loads no
parser and only the modules that the event needs, collects no garbage, and ends without taking Python apart. In every
case standard output holds the answer in the agent's format or nothing, and the exit code is one that the agent
understands.
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

aver install adds this command to the settings of coding agents. You do not call it yourself.
exit code: as the tool expects it."""

FAILED = 1
"""Agents show standard error to the person then, and go on. Of a hook that asks, the guard around it blocks then."""

FORBIDDEN = 2
"""Most agents take this for a denial. Aver uses it where a denial cannot be written, and where an installation is so
damaged that it cannot judge."""

HOOK_TIMEOUT_SECONDS = 50
"""How long a hook may take. Agents wait for 60 seconds, and then most of them go on without an answer."""


def run_and_exit(arguments: Sequence[str]) -> NoReturn:
    """Run a hook as a program, and end the process.

    A signal to end, or the end of the time, interrupts the hook by `KeyboardInterrupt`: it still answers, and
    remembers the failure.
    """
    import signal

    gc.disable()  # The process ends soon, and gives back all memory at once.
    signals = (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: object) -> NoReturn:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)  # A second signal must not interrupt the answer to the first.
        timed_out = number == signal.SIGALRM
        raise KeyboardInterrupt(
            f"it took longer than {HOOK_TIMEOUT_SECONDS} seconds" if timed_out else "it was told to end"
        )

    for number in signals:
        # The agent may have started the hook so that it ignores a signal. Leave that as it is.
        if number == signal.SIGALRM or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    signal.alarm(HOOK_TIMEOUT_SECONDS)
    code = run_hook(arguments)
    # Nothing is left to do: the answer is written without a buffer, and the ledger is closed.
    os._exit(code)


_ASKING = ("pretooluse", "beforeshell", "beforemcp", "beforeread")
"""How the names of events that ask begin, whatever the agent."""


def run_hook(arguments: Sequence[str]) -> int:
    """Run a hook without a parser, by `TOOL EVENT [PAYLOAD]`. Returns the exit code, and raises no `Exception`."""
    try:
        return _answer_event(arguments)
    except Exception as error:  # noqa: BLE001 - a hook that fails must not take the agent with it
        _print_stderr(f"aver: the hook failed: {type(error).__name__}: {error}")
        if not isinstance(error, ImportError | SyntaxError | OSError):
            return FAILED  # A wrong command line, which nobody installs, or a defect.
    # The modules of a hook could not be loaded, so `hooks.run` cannot apply the setting `on_failure`.
    if not "".join(arguments[1:2]).lower().startswith(_ASKING):
        return FAILED
    try:
        from aver.config import load_config

        return 0 if load_config().hooks.get("on_failure") == "open" else FORBIDDEN
    except Exception:  # noqa: BLE001 - without readable settings nothing says that it may go on
        return FORBIDDEN


def _answer_event(arguments: Sequence[str]) -> int:
    from aver.cli.lazy_imports import import_lazily

    # Before all other imports: the modules below import these, and hardly any hook uses them.
    import_lazily("base64", "difflib", "inspect", "ipaddress", "platform", "tempfile")
    from aver.agents.registry import AGENTS, load_hook, provide_known_agents
    from aver.hooks.run import answer_event

    provide_known_agents()

    name, event, *rest = arguments
    given = b"" if sys.stdin is None else sys.stdin.buffer  # None where the agent has closed it.
    payload = rest[0].encode("utf-8", "surrogateescape") if rest else given
    reply = answer_event(load_hook(name), event, payload, agents=AGENTS)
    if reply.err:
        _print_stderr(reply.err)
    left = reply.out.encode("utf-8", "backslashreplace") + b"\n" if reply.out else b""
    try:
        while left:  # Write all of it: the agent cannot read half an answer, and would go on.
            left = left[os.write(sys.stdout.fileno(), left) :]
    except (OSError, ValueError, AttributeError) as error:
        _print_stderr(f"aver: the answer could not be written: {error}: {reply.out}")
        return FORBIDDEN if reply.forbids else FAILED
    return reply.code


def _print_stderr(words: str) -> None:
    try:
        from aver.text import to_one_line

        sys.stderr.write(to_one_line(words) + "\n")
        sys.stderr.flush()
    except Exception:  # noqa: BLE001, S110 - standard error is closed; the answer matters more
        pass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from aver.agents.registry import AGENTS

    parser.add_argument("tool", metavar="TOOL", help=", ".join(AGENTS))
    parser.add_argument("event", metavar="EVENT", help="the hook's own name for what happens, such as PreToolUse")
    parser.add_argument("payload", metavar="PAYLOAD", nargs="?", help="JSON, where the tool gives it as an argument")


def run(given: argparse.Namespace, screen: Screen) -> int:
    payload = [] if given.payload is None else [given.payload]
    return run_hook([given.tool, given.event, *payload])
