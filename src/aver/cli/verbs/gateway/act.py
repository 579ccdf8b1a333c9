"""`aver gateway act`: sends one act through the gateway, and prints its answer."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aver.cli.files import read_json_file
from aver.cli.options import Usage, add_json, add_ledger, add_new_session, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.errors import BadInput

EXAMPLES = """\
  aver gateway act CheckWriteWorkspaceFile --inputs '{"relpath": "a.txt", "content": "hello"}'
  aver gateway act WriteWorkspaceFile --inputs @inputs.json --session build-7
  aver gateway act WriteWorkspaceFile --inputs '{"tx_id": "tx_..."}' --session build-7
  echo '{"relpath": "a.txt"}' | aver gateway act ReadWorkspaceFile --inputs - --json

exit code: 0 allowed, 5 denied."""

REFUSED = 5

DEFAULT_CALLER = "command"

CONNECT_SECONDS = 600.0
"""How long an act at another gateway may take. An effect, such as a command, may take minutes."""

STDIN_MAX = 16 * 1024 * 1024
"""Most bytes of inputs on standard input: the largest document that the strict reader takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("intent", metavar="INTENT", help="the action to take, such as WriteWorkspaceFile")
    parser.add_argument(
        "--inputs", required=True, metavar="JSON", help="the inputs as JSON; @FILE for those in a file, - for stdin"
    )
    parser.add_argument(
        "--constraints",
        default="{}",
        metavar="JSON",
        help="external_principal, delegation_token, user_confirm, workload_token",
    )
    parser.add_argument("--caller", default=DEFAULT_CALLER, metavar="NAME", help="who acts (default: command)")
    add_new_session(parser)
    parser.add_argument("--workspace", default=os.curdir, metavar="DIR", help="where acts happen (default: here)")
    add_connect(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gateway.act_records import IngressNote
    from aver.gateway.acts.visit import Door

    document = {
        "intent_id": given.intent,
        "inputs": _read_object(given.inputs, "--inputs"),
        "constraints": _read_object(given.constraints, "--constraints"),
        "caller": given.caller,
    }
    if given.connect:
        return _tell(connect_gateway(given)(document), given.session or "", given, screen)
    with open_command_gateway(given) as gateway:
        door = Door(session=gateway.door.session, ingress=IngressNote("command"))
        answer = gateway.act(document, door=door)
        session = gateway.door.session
    return _tell(answer, session, given, screen)


def _tell(answer: dict[str, Any], session: str, given: argparse.Namespace, screen: Screen) -> int:
    """Print an answer. Returns the exit code."""
    if given.json:
        print_json({**answer, "session": session})
    else:
        _print_answer(answer, session, screen)
    return 0 if answer["status"] == "OK" else REFUSED


def add_connect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--connect",
        default=os.environ.get("AVER_GATEWAY", ""),
        metavar="ADDRESS",
        help="send acts to the gateway at unix:/PATH instead (default: AVER_GATEWAY, which aver gateway run sets)",
    )


def connect_gateway(given: argparse.Namespace) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the way to the gateway of `--connect`. A gateway that gives no answer is an envelope, too."""
    from aver.gateway.codes import build_envelope
    from aver.serving.part_client import PartClient, PartUnavailable
    from aver.serving.sockets import parse_address

    client = PartClient(parse_address(given.connect), "", CONNECT_SECONDS, part="the gateway")
    headers = {"Aver-Session": given.session} if given.session else {}

    def send(act: dict[str, Any]) -> dict[str, Any]:
        try:
            return client.post("/act", act, headers)
        except PartUnavailable as error:
            words = "the act may have happened" if error.may_have_arrived else "nothing was done"
            return build_envelope("EXECUTOR_UNAVAILABLE", f"{words}: {error.message}")

    return send


def open_command_gateway(given: argparse.Namespace) -> Any:
    """Open the gateway for a command with `--workspace`, `--session`, `--ledger` and `--tenant`."""
    from aver.check import open_ledger
    from aver.gateway.parts.entrance import open_gateway_of

    if not os.path.isdir(given.workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    ledger = open_ledger(given.ledger, tenant=given.tenant)
    try:
        return open_gateway_of(ledger, workspace=given.workspace, session=given.session or "", close=ledger.close)
    except BaseException:
        ledger.close()
        raise


def _read_object(text: str, option: str) -> dict[str, Any]:
    """Read an object in JSON. `-` reads standard input, and `@FILE` a file."""
    from aver.capsule.json_reader import Unreadable, read_json

    if text.startswith("@"):
        found = read_json_file(Path(text[1:]))
    else:
        data = sys.stdin.buffer.read(STDIN_MAX + 1) if text == "-" else text.encode("utf-8", "surrogateescape")
        try:
            found = read_json(data)
        except Unreadable as error:
            raise BadInput(
                f"{option} cannot be read: {error}", advice='give an object, such as {"relpath": "a"}'
            ) from error
    if not isinstance(found, dict):
        raise BadInput(f"{option} must be an object in JSON")
    return found


def _print_answer(answer: dict[str, Any], session: str, screen: Screen) -> None:
    mark = screen.status_mark("passed" if answer["status"] == "OK" else "failed")
    screen.print_line(mark, f" {answer['status']} {answer['reason_code']}")
    screen.print_wrapped(answer["summary"], indent="  ")
    rows = {"session": session, **answer["data"]}
    for name, value in rows.items():
        if name == "reasons":  # The summary of a denial names them already.
            value = [reason for reason in value if reason not in answer["summary"]]
        if isinstance(value, dict) and value.get("encoding") == "utf-8":  # The output of a command.
            value = value.get("content")
        if value in (None, "", [], {}):
            continue
        if name == "content" or (isinstance(value, str) and "\n" in value):
            screen.print_line(f"  {name}")
            for line in str(value).splitlines():
                screen.print_line(f"    {line}")
        elif isinstance(value, dict):
            screen.print_line(f"  {name:<16}{' '.join(f'{key}={item}' for key, item in value.items())}")
        elif isinstance(value, list):
            screen.print_line(f"  {name:<16}{'; '.join(map(str, value))}")
        else:
            screen.print_line(f"  {name:<16}{value}")
