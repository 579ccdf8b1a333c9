"""Options that describe an action, for the verbs that ask the gate or the policy about it."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage
from aver.errors import BadInput, Refused

if TYPE_CHECKING:
    from aver.gate.action import Action

STANDARD_INPUT = "-"


def add_action_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe an action."""
    about = parser.add_argument_group("the action")
    about.add_argument("--diff", metavar="FILE|-", help="a change, as a unified diff")
    about.add_argument("--command", metavar="TEXT", help="a shell command")
    about.add_argument(
        "--type", metavar="TYPE", help="one of the fifteen action types (default: derived from the other options)"
    )
    about.add_argument("--tool", metavar="NAME", default="", help="the tool's name, such as Bash or mcp__mail__send")
    about.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help="an argument of the tool, as text; repeatable"
    )
    about.add_argument("--args", metavar="JSON", help="all arguments of the tool, as one JSON object")
    about.add_argument("--file", action="append", default=[], metavar="PATH", help="a file it touches; repeatable")
    about.add_argument("--description", default="", metavar="TEXT", help="what it is for")
    about.add_argument("--caller", default="", metavar="NAME", help="the agent that asks")
    about.add_argument(
        "--for", dest="on_behalf_of", default="", metavar="NAME", help="the person for whom the agent acts"
    )
    about.add_argument(
        "--session", default="", metavar="NAME", help="the session it belongs to; earlier actions in it count"
    )
    about.add_argument("--workspace", metavar="DIR", help="where the agent works (default: here)")


def action_from_options(given: argparse.Namespace) -> Action:
    """Build the action that the options describe. Raises `Usage` if they do not say which action it is."""
    from aver.gate.action import Action

    arguments = arguments_from_options(given)
    diff = None if given.diff is None else read_diff_text(given.diff)
    type_, tool = given.type, given.tool
    if given.command is not None:
        if "command" in arguments:
            raise Usage("the command is given twice: by --command and as an argument")
        arguments["command"] = given.command
        tool = tool or "Bash"
    workspace = os.path.abspath(given.workspace or os.curdir)
    if type_ is None and diff is None and tool:
        from aver.hooks.action import diff_for_edit

        diff = diff_for_edit(tool, arguments, workspace)  # A hook shows the gate an edit as a diff, too.
    if type_ is None:
        type_ = _infer_type(given, tool, diff)
    return Action(
        type=type_,
        tool=tool,
        arguments=arguments,
        files=tuple(given.file),
        diff=diff,
        description=given.description,
        caller=given.caller,
        on_behalf_of=given.on_behalf_of,
        session=given.session,
        workspace=workspace,
    )


def arguments_from_options(given: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that `--args` and `--arg` give. Raises `Usage` or `BadInput` if they are none."""
    from aver.capsule.json_reader import read_json

    # --args gives the arguments as one object; each --arg adds one, and never replaces one.
    arguments: Any = {} if given.args is None else read_json(given.args.encode("utf-8", "surrogateescape"))
    if not isinstance(arguments, dict):
        raise BadInput("--args takes a JSON object")
    for item in given.arg:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise Usage(f"--arg takes NAME=VALUE, not {item!r}")
        if name in arguments:
            raise Usage(f"the argument {name!r} is given twice")
        arguments[name] = value
    return arguments


def request_from_options(given: argparse.Namespace, intent: str) -> Action:
    """Build the action of a request of the gateway: its inputs are the arguments. Only to explain, never to decide.

    Inputs that are not given get the defaults that the gateway fills in.
    """
    from aver.gate.effects.intents import build_intent_action
    from aver.gateway.intents import bind_inputs, find_intent

    if given.command is not None or given.tool or given.type is not None or given.file or given.description:
        raise Usage("--intent takes its inputs as arguments", advice="give each by --arg NAME=VALUE, or all by --args")
    inputs = arguments_from_options(given)
    # Inputs that the gateway would refuse stay as they are: rules can be asked about them, unless some are missing.
    with suppress(Refused):
        inputs = bind_inputs(find_intent(intent).intent, inputs)
    return build_intent_action(
        intent,
        inputs,
        # No rule can read the hash, so any will do here.
        request_sha256="0" * 64,
        caller=given.caller,
        session=given.session,
        workspace=os.path.abspath(given.workspace or os.curdir),
        on_behalf_of=given.on_behalf_of,
        diff=None if given.diff is None else read_diff_text(given.diff),
    )


def _infer_type(given: argparse.Namespace, tool: str, diff: str | None) -> str:
    """Return the type of the action, as a hook would name it."""
    if given.command is not None:
        return "shell_exec"
    if diff:
        return "code_edit"
    if tool:
        from aver.hooks.action import find_action_type

        return find_action_type(tool)
    raise Usage("no action is described", advice="give --diff, --command, --tool or --type")


def read_diff_text(source: str) -> str:
    """Read a diff from a file, or from standard input for `-`. Bytes that are not UTF-8 become escapes."""
    from aver.gate.action import DIFF_MAX

    if source == STANDARD_INPUT:
        raw = sys.stdin.buffer.read(DIFF_MAX + 1)
    else:
        from aver.files.regular import open_file

        with open_file(Path(source)) as file:
            raw = file.read(DIFF_MAX + 1)
    if len(raw) > DIFF_MAX:
        raise BadInput(f"the diff has more than {DIFF_MAX} bytes", advice="ask about smaller parts of it")
    if not raw.strip():
        raise BadInput("the diff is empty: there is nothing to decide", advice="check that there is a change: git diff")
    return raw.decode("utf-8", "backslashreplace")
