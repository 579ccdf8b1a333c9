"""`aver approvals`: shows requests for approval, signs a person's answer, and manages who may answer."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from aver.cli.options import Parser, add_action_parser, add_json, add_ledger, add_passphrase_fd, add_tenant
from aver.cli.terminal import Screen
from aver.cli.verbs.approvals.answer import answer_request
from aver.cli.verbs.approvals.approvers import endorse_page_passkey, enrol_person, list_approvers, withdraw_person
from aver.cli.verbs.approvals.requests import list_requests, show_request, watch_requests

EXAMPLES = """\
  aver keys new person:ada               once: make a key, protected by a passphrase
  aver approvals enrol person:ada        once: allow ada to approve in this ledger
  aver approvals list
  aver approvals show 3f0c9a1b
  aver approvals approve 3f0c9a1b        shows the whole request, then asks for the passphrase
  aver approvals approve 3f0c9a1b --scope workspace --uses 3
  aver approvals approve 3f0c9a1b --always     and never ask about this command here again
  aver approvals deny 3f0c9a1b --because "not on a Friday"
  aver approvals watch"""

REQUEST_HELP = "the request's id, or the beginning of it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    listing = _add_action_parser(actions, "list", "list the pending requests", "  aver approvals list --json")
    listing.add_argument("--all", action="store_true", help="also list requests of the last seven days that have ended")
    show = _add_action_parser(actions, "show", "show one request", "  aver approvals show 3f0c9a1b --all")
    show.add_argument("request", metavar="ID", help=REQUEST_HELP)
    show.add_argument("--all", action="store_true", help="show every line")
    _add_answer_parsers(actions)
    _add_action_parser(actions, "watch", "print requests as they are opened and answered", "  aver approvals watch")
    approvers = _add_action_parser(actions, "approvers", "list who may approve", "  aver approvals approvers --toml")
    approvers.add_argument(
        "--toml", action="store_true", help="print a file for /etc/aver, where the agent's user cannot change it"
    )
    examples = "  aver approvals enrol person:ada\n  aver approvals enrol person:ben --by person:ada"
    enrol = _add_action_parser(
        actions,
        "enrol",
        "allow a person to approve; every person after the first needs an approver's signature",
        examples,
    )
    enrol.add_argument("identity", metavar="IDENTITY", help="person:NAME, whose key is on this machine")
    enrol.add_argument("--by", metavar="IDENTITY", help="an approver who also signs")
    add_passphrase_fd(enrol)
    endorse = _add_action_parser(
        actions,
        "endorse",
        "allow a passkey to approve that a page has made; the page shows the code",
        "  aver approvals endorse eyJjb250ZW50… --by person:ada\n  aver approvals endorse - --by person:ada < code.txt",
    )
    endorse.add_argument("code", metavar="CODE", help="the code that the page shows; - reads it from standard input")
    endorse.add_argument("--by", metavar="IDENTITY", required=True, help="the approver who signs")
    endorse.add_argument("--yes", action="store_true", help="do not ask before ssh-agent signs")
    add_passphrase_fd(endorse)
    summary = "no longer allow a person to approve"
    withdraw = _add_action_parser(actions, "withdraw", summary, "  aver approvals withdraw person:ben --by person:ada")
    withdraw.add_argument("identity", metavar="IDENTITY", help="person:NAME")
    withdraw.add_argument("--by", metavar="IDENTITY", help="the approver who signs (default: the person)")
    add_passphrase_fd(withdraw)


def run(given: argparse.Namespace, screen: Screen) -> int:
    return ACTIONS[given.action](given, screen)


def _add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser = add_action_parser(actions, name, summary, examples)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)
    return parser


def _add_answer_parsers(actions: Any) -> None:
    for name, summary in (
        ("approve", "approve a request: exactly the action that is shown"),
        ("deny", "deny a request"),
        ("escalate", "pass a request on to the next level"),
    ):
        answer = _add_action_parser(actions, name, summary, f'  aver approvals {name} 3f0c9a1b --because "as agreed"')
        answer.add_argument("request", metavar="ID", help=REQUEST_HELP)
        answer.add_argument(
            "--as",
            dest="identity",
            metavar="IDENTITY",
            help="person:NAME who answers (default: the only approver with a key here)",
        )
        answer.add_argument("--because", default="", metavar="TEXT", help="a reason, which is recorded with the answer")
        answer.add_argument(
            "--although-cut", action="store_true", help="answer even if the request is too long to show"
        )
        if name == "approve":
            answer.add_argument(
                "--scope",
                choices=("session", "workspace"),
                default="session",
                help="where the approval is good: in the session that asked (default), or in every session",
            )
            answer.add_argument(
                "--uses", type=int, default=1, metavar="N", help="how often the approval is good (default: once)"
            )
            answer.add_argument(
                "--always", action="store_true", help="also allow this command in this workspace for good, by a rule"
            )
        answer.add_argument("--yes", action="store_true", help="do not ask before ssh-agent signs")
        add_passphrase_fd(answer)


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "list": list_requests,
    "show": show_request,
    "watch": watch_requests,
    "approve": answer_request,
    "deny": answer_request,
    "escalate": answer_request,
    "approvers": list_approvers,
    "enrol": enrol_person,
    "endorse": endorse_page_passkey,
    "withdraw": withdraw_person,
}
