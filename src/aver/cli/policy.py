"""`aver policy`: the rules that decide what may happen. Check them, test them, and ask them why."""

from __future__ import annotations

import argparse
from typing import Any

from aver.cli.described import add_action
from aver.cli.options import Parser, add_json
from aver.cli.output import Screen

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver policy show                        the rules in force
  aver policy explain --command "rm -rf build"
  aver policy explain --tool Write --arg file_path=src/app.py --risk low
  aver policy init                        the starter rules, to edit
  aver policy check ~/.aver/policy
  aver policy test cases.toml --policy ~/.aver/policy"""

DIRECTORY = "a directory of .cedar files (default: the one in the settings, or the starter set)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    show = _action(actions, "show", "list the rules in force", "  aver policy show --files")
    show.add_argument("directory", nargs="?", metavar="DIR", help=DIRECTORY)
    show.add_argument("--files", action="store_true", help="print the files themselves")
    check = _action(actions, "check", "look for what is wrong or doubtful in rules", "  aver policy check my-rules")
    check.add_argument("directory", nargs="?", metavar="DIR", help=DIRECTORY)
    check.add_argument("--strict", action="store_true", help="exit with 1 where something is doubtful")
    test = _action(actions, "test", "hold rules to cases", "  aver policy test cases.toml --policy my-rules")
    test.add_argument("files", nargs="*", metavar="FILE", help="cases (default: cases.toml beside the rules)")
    test.add_argument("--policy", metavar="DIR", help=DIRECTORY)
    _add_explain(actions)
    init = _action(actions, "init", "copy the starter rules, to edit them", "  aver policy init")
    init.add_argument("directory", nargs="?", metavar="DIR", help="a new directory (default: policy in AVER_HOME)")


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.policy_actions import ACTIONS

    return ACTIONS[given.action](given, screen)


def _action(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, summary=summary, examples=examples)
    add_json(parser)
    return parser


def _add_explain(actions: Any) -> None:
    examples = (
        '  aver policy explain --command "npm publish"\n'
        "  aver policy explain --tool Read --arg file_path=.env\n"
        "  git diff | aver policy explain --type code_edit --diff -"
    )
    explain = _action(
        actions, "explain", "tell what would be decided of an action, why, and what would change it", examples
    )
    add_action(explain)
    explain.add_argument(
        "--session-label", action="append", default=[], metavar="LABEL", help="what the session is marked with: secret"
    )
    explain.add_argument("--risk", choices=("low", "unsure", "high"), help="instead of what the model says")
    explain.add_argument("--approved", action="store_true", help="as if a human had approved it")
    explain.add_argument("--policy", metavar="DIR", help=DIRECTORY)
