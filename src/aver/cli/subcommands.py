"""Verbs with subcommands in modules of their own, such as `aver gateway` and `aver protocol`.

    SUBCOMMANDS = {"act": ("aver.cli.verbs.gateway.act", "send one act through the gateway"), …}

A module has `EXAMPLES`, `add_arguments(parser)` and `run(given, screen) -> int`, as the module of a verb has.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module

from aver.cli.options import Parser, add_action_parser
from aver.cli.terminal import Screen

Subcommands = Mapping[str, tuple[str, str]]
"""By the name of a subcommand, its module and its summary."""


def add_subcommands(parser: argparse.ArgumentParser, subcommands: Subcommands) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    for name, (module_name, summary) in subcommands.items():
        module = import_module(module_name)
        module.add_arguments(add_action_parser(actions, name, summary, module.EXAMPLES))


def run_subcommand(subcommands: Subcommands, given: argparse.Namespace, screen: Screen) -> int:
    """Run the subcommand that the command line names. Returns its exit code."""
    return int(import_module(subcommands[given.action][0]).run(given, screen))
