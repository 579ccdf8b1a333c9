"""Verbs with subcommands in modules of their own, such as `aver gateway` and `aver protocol`.

    SUBCOMMANDS = {"act": ("aver.cli.verbs.gateway.act", "send one act through the gateway"), …}

A module has `EXAMPLES`, `add_arguments(parser)` and `run(given, screen) -> int`, as the module of a verb has. Only the
module of the subcommand that the command line names is loaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from aver.cli.options import Parser
from aver.cli.terminal import Screen

Subcommands = Mapping[str, tuple[str, str]]
"""By the name of a subcommand, its module and its summary."""


class SubcommandParser:
    """Stands for the parser of a subcommand, and makes it when its command line is parsed.

    `parse_known_args` is the one method that argparse calls of a parser below another. A parser takes long to make,
    and a verb has up to sixteen subcommands.
    """

    def __init__(self, *, prog: str, summary: str, module: str) -> None:
        self._prog = prog
        self._summary = summary
        self._module = module

    def build(self) -> Parser:
        module = import_module(self._module)
        parser = Parser(prog=self._prog, summary=self._summary, examples=module.EXAMPLES)
        module.add_arguments(parser)
        return parser

    def parse_known_args(self, arguments: Any, namespace: Any) -> Any:
        return self.build().parse_known_args(arguments, namespace)


def add_subcommands(parser: argparse.ArgumentParser, subcommands: Subcommands) -> None:
    parser_class: Any = SubcommandParser
    actions: Any = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=parser_class)
    for name, (module, summary) in subcommands.items():
        actions.add_parser(name, help=summary, summary=summary, module=module)


def run_subcommand(subcommands: Subcommands, given: argparse.Namespace, screen: Screen) -> int:
    """Run the subcommand that the command line names. Returns its exit code."""
    return int(import_module(subcommands[given.action][0]).run(given, screen))
