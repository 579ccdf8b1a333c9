"""`aver gate`: ask whether something may happen, teach the gate what became of it, and see how well it does."""

from __future__ import annotations

import argparse
from typing import Any

from aver.cli.described import add_action
from aver.cli.options import Parser, add_json, add_ledger, add_tenant, count
from aver.cli.output import Screen

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  git diff | aver gate check                        may this change be made?
  aver gate check --command 'rm -rf build'          may this command run?
  aver gate check --staged                          what is staged: for a pre-commit hook
  aver gate learn --git .                           learn the level of risk here from history
  aver gate report --git . --svg risk.svg           how well the risk model does here
  aver gate outcome 3f0c9a1b-… tests_failed         tell what became of it

exit code of check: 0 it may happen, 5 it may not, or not without a human."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    _add_check(actions)
    learn = _action(actions, "learn", "learn a git history's level of risk", "  aver gate learn --git .")
    learn.add_argument("--git", required=True, metavar="PATH", help="a directory in the repository")
    add_json(learn)
    report = _action(actions, "report", "say how well the risk model does on a history", "  aver gate report --git .")
    report.add_argument("--git", default=".", metavar="PATH", help="a directory in the repository (default: here)")
    report.add_argument("--svg", metavar="FILE", help="also write the plots to this new file")
    add_json(report)
    outcome = _action(
        actions, "outcome", "record that what was let through failed", "  aver gate outcome 3f0c9a1b-… reverted"
    )
    outcome.add_argument("gate_id", metavar="GATE_ID", help="the decision's id, as check prints it")
    outcome.add_argument(
        "outcome", choices=("failed", "tests_failed", "reverted", "repaired"), help="what became of it"
    )
    add_ledger(outcome)
    add_tenant(outcome)
    add_json(outcome)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.gate_actions import ACTIONS

    return ACTIONS[given.action](given, screen)


def _action(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, summary=summary, examples=examples)
    return parser


def _add_check(actions: Any) -> None:
    examples = "  git diff | aver gate check --session nightly\n  aver gate check --tool WebFetch --arg url=https://example.org"
    check = _action(actions, "check", "decide whether an action may happen, and seal the decision", examples)
    add_action(check)
    check.add_argument("--staged", action="store_true", help="the change that is staged in git")
    check.add_argument(
        "--wait", type=count, default=0, metavar="SECONDS", help="wait so long for a human, if one must approve"
    )
    add_ledger(check)
    add_tenant(check)
    add_json(check)
