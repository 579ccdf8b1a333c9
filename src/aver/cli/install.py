"""`aver install`: have clients start the MCP server."""

from __future__ import annotations

import argparse

from aver.cli.clients import add_clients, change
from aver.cli.output import Errors, Screen

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver install claude-code                for all of your projects
  aver install cursor vscode --project .  for this project, shared with whoever works on it
  aver install codex --dry-run            only say what would be done
  aver uninstall claude-code              take it out again; aver status tells how things stand"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_clients(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.install.registering import install

    change(given, screen, install)
    if not given.json and not given.dry_run:
        Errors().note("restart the client, or reload its MCP servers; it then offers capseal_gate, capseal_record, ...")
    return 0
