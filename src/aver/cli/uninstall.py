"""`aver uninstall`: take the hooks and the MCP server out of clients' settings, and leave them as they were."""

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
    from aver.install.hooking import uninstall_hooks
    from aver.install.registering import uninstall

    # In this order, the other way round than they were put in: so bytes come back as they were.
    change(given, screen, {"hooks": uninstall_hooks, "mcp": uninstall})
    return 0
