"""`aver uninstall`: take the MCP server out of clients' settings, and leave them as they were."""

from __future__ import annotations

import argparse

from aver.cli.clients import add_clients, change
from aver.cli.output import Screen

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver uninstall claude-code
  aver uninstall cursor vscode --project ."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_clients(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.install.registering import uninstall

    change(given, screen, uninstall)
    return 0
