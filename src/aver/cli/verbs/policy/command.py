"""`aver policy`: shows, checks, tests and explains the rules of the gate, and changes them for a person.

Rules come from the directory that is named, or else from the one in the settings, or else from the starter set.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from aver.cli.action_options import add_action_options
from aver.cli.options import Parser, add_action_parser, add_json, add_ledger, add_passphrase_fd, add_tenant
from aver.cli.terminal import Screen
from aver.cli.verbs.policy.changes import allow_command, copy_starter_rules, forget_rule, pin_directory
from aver.cli.verbs.policy.explain import explain_decision
from aver.cli.verbs.policy.rules import check_rules, run_cases, show_rules

EXAMPLES = """\
  aver policy show                        list the rules in force
  aver policy explain --command "rm -rf build"
  aver policy explain --tool Write --arg file_path=src/app.py --risk low
  aver policy allow 'npm ci'              never ask about this command in this directory again
  aver policy forget 'npm ci'             ask again
  aver policy init --use                  copy the starter rules and put the copy in force, to edit it
  aver policy check ~/.aver/policy
  aver policy test cases.toml --policy ~/.aver/policy"""

DIRECTORY_HELP = "a directory of .cedar files (default: the one in the settings, or the starter set)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    show = _add_action_parser(actions, "show", "list the rules in force", "  aver policy show --files")
    show.add_argument("directory", nargs="?", metavar="DIR", help=DIRECTORY_HELP)
    show.add_argument("--files", action="store_true", help="print the files themselves")
    check = _add_action_parser(actions, "check", "find errors and doubtful rules", "  aver policy check my-rules")
    check.add_argument("directory", nargs="?", metavar="DIR", help=DIRECTORY_HELP)
    check.add_argument("--strict", action="store_true", help="exit with 1 when a rule is doubtful")
    test = _add_action_parser(
        actions, "test", "test rules with cases", "  aver policy test cases.toml --policy my-rules"
    )
    test.add_argument("files", nargs="*", metavar="FILE", help="files of cases (default: cases.toml beside the rules)")
    test.add_argument("--policy", metavar="DIR", help=DIRECTORY_HELP)
    examples = (
        '  aver policy explain --command "npm publish"\n'
        "  aver policy explain --tool Read --arg file_path=.env\n"
        "  aver policy explain --intent ReadWorkspaceFile --arg relpath=src/app.py\n"
        "  aver policy explain --intent CallTool --args '{…}' --prompt 'Pay the bill.' --read calls.json\n"
        "  git diff | aver policy explain --type code_edit --diff -"
    )
    explain = _add_action_parser(
        actions, "explain", "show what the gate would decide about an action, why, and what would change that", examples
    )
    add_action_options(explain)
    explain.add_argument(
        "--intent", metavar="NAME", help="a request of the gateway, such as SendMessage; its inputs are the arguments"
    )
    explain.add_argument(
        "--prompt", metavar="TEXT", help="the user's words, for CallTool and FinalizeOutput (default: the session's)"
    )
    explain.add_argument(
        "--read", metavar="FILE|-", help="the calls so far, as a JSON list of {tool, arguments, result}"
    )
    explain.add_argument(
        "--session-label", action="append", default=[], metavar="LABEL", help="a label of the session, such as secret"
    )
    explain.add_argument(
        "--risk", choices=("low", "unsure", "high"), help="assume this risk instead of the model's estimate"
    )
    explain.add_argument("--approved", action="store_true", help="assume that a person has approved the action")
    explain.add_argument("--policy", metavar="DIR", help=DIRECTORY_HELP)
    _add_change_parsers(actions)
    pin = _add_action_parser(
        actions,
        "pin",
        "let the gate use rules outside of AVER_HOME, by an approver's key",
        "  aver policy pin /srv/rules --as person:ada",
    )
    pin.add_argument("directory", metavar="DIR", help="the directory of the rules")
    pin.add_argument("--as", dest="person", required=True, metavar="PERSON", help="an enrolled approver: person:ada")
    add_passphrase_fd(pin)
    init = _add_action_parser(actions, "init", "copy the starter rules, to edit them", "  aver policy init --use")
    init.add_argument("directory", nargs="?", metavar="DIR", help="a new directory (default: policy in AVER_HOME)")
    init.add_argument("--use", action="store_true", help="put the copy in force: write it into config.toml")


def _add_change_parsers(actions: Any) -> None:
    summary = "allow a command in one workspace for good, by a rule that stands for your approval"
    allow = _add_action_parser(actions, "allow", summary, "  aver policy allow 'npm ci' --workspace ~/shop")
    allow.add_argument("command", nargs="?", metavar="COMMAND", help="the whole command, in quotes")
    allow.add_argument("--tool", metavar="NAME", help="a tool that Aver does not know, instead of a command")
    summary = "remove a rule that aver policy allow, or an approval with --always, has written"
    forget = _add_action_parser(actions, "forget", summary, "  aver policy forget 'npm ci'")
    forget.add_argument("rule", metavar="RULE", help="the rule's id, or the command or tool that it allows")
    for parser in (allow, forget):
        parser.add_argument("--workspace", metavar="DIR", help="the agent's workspace (default: this directory)")
        add_ledger(parser)
        add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    return ACTIONS[given.action](given, screen)


def _add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser = add_action_parser(actions, name, summary, examples)
    add_json(parser)
    return parser


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "show": show_rules,
    "check": check_rules,
    "test": run_cases,
    "explain": explain_decision,
    "allow": allow_command,
    "forget": forget_rule,
    "init": copy_starter_rules,
    "pin": pin_directory,
}
