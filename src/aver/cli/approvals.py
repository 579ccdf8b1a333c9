"""`aver approvals`: what waits for a person, the answer that the person signs, and who may answer."""

from __future__ import annotations

import argparse
from typing import Any

from aver.cli.options import Parser, add_json, add_ledger, add_tenant, count
from aver.cli.output import Screen

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver keys new person:ada               once: a key under a passphrase
  aver approvals enrol person:ada        once: may approve in this ledger
  aver approvals list
  aver approvals show 3f0c9a1b
  aver approvals approve 3f0c9a1b        shows all of it, then asks for the passphrase
  aver approvals deny 3f0c9a1b --because "not on a Friday"
  aver approvals watch"""

ID = "the request's id, or its beginning"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    listing = _action(actions, "list", "list the requests that wait", "  aver approvals list --json")
    listing.add_argument("--all", action="store_true", help="also those that have ended, of the last seven days")
    show = _action(actions, "show", "show one request", "  aver approvals show 3f0c9a1b --all")
    show.add_argument("request", metavar="ID", help=ID)
    show.add_argument("--all", action="store_true", help="cut nothing")
    _add_answers(actions)
    _action(actions, "watch", "wait, and print requests as they come and end", "  aver approvals watch")
    approvers = _action(actions, "approvers", "list who may approve", "  aver approvals approvers --toml")
    approvers.add_argument(
        "--toml", action="store_true", help="as a file for /etc/aver, where the agent's user cannot change it"
    )
    _add_roster(actions)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.approval_actions import ACTIONS

    return ACTIONS[given.action](given, screen)


def _action(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, summary=summary, examples=examples)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)
    return parser


def _add_answers(actions: Any) -> None:
    for name, summary in (
        ("approve", "approve a request, once, for exactly the action that is shown"),
        ("deny", "deny a request"),
        ("escalate", "pass a request on to the next level"),
    ):
        answer = _action(actions, name, summary, f'  aver approvals {name} 3f0c9a1b --because "as agreed"')
        answer.add_argument("request", metavar="ID", help=ID)
        answer.add_argument("--as", dest="identity", metavar="IDENTITY", help="person:NAME, where several could")
        answer.add_argument("--because", default="", metavar="TEXT", help="a reason, recorded with the answer")
        answer.add_argument("--although-cut", action="store_true", help="answer even if not all of it could be shown")
        answer.add_argument("--yes", action="store_true", help="do not ask before ssh-agent signs")
        _add_passphrase(answer)


def _add_roster(actions: Any) -> None:
    examples = "  aver approvals enrol person:ada\n  aver approvals enrol person:ben --by person:ada"
    enrol = _action(actions, "enrol", "let a person approve; all but the first need one who already may", examples)
    enrol.add_argument("identity", metavar="IDENTITY", help="person:NAME, with a key here")
    enrol.add_argument("--by", metavar="IDENTITY", help="an approver who signs as well")
    _add_passphrase(enrol)
    summary = "let a person approve no longer"
    withdraw = _action(actions, "withdraw", summary, "  aver approvals withdraw person:ben --by person:ada")
    withdraw.add_argument("identity", metavar="IDENTITY", help="person:NAME")
    withdraw.add_argument("--by", metavar="IDENTITY", help="the approver who signs (default: the person)")
    _add_passphrase(withdraw)


def _add_passphrase(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd", type=count, metavar="N", help="read passphrases, a line each, from this file descriptor"
    )
