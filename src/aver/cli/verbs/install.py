"""`aver install`: have clients start the MCP server, and ask and tell Aver through their hooks."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from aver.agents.registry import load_client
from aver.cli.clients import add_client_options, change_clients
from aver.cli.terminal import Screen, StderrScreen

EXAMPLES = """\
  aver install claude-code                install for all of your projects
  aver install cursor vscode --project .  install for this project and everyone who works on it
  aver install codex --dry-run            only print the changes
  aver install cline --only hooks         install the hooks, not the MCP server
  aver status                             show where Aver is installed
  aver uninstall claude-code              remove it again"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_client_options(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.install.hooks import install_hooks
    from aver.install.mcp_server import install_server

    change_clients(given, screen, {"mcp": install_server, "hooks": install_hooks})
    if not given.json and not given.dry_run:
        for words in _next_steps(given):
            StderrScreen().print_note(words)
    return 0


def _next_steps(given: argparse.Namespace) -> Iterator[str]:
    """Yield the steps that the user must still take in the clients."""
    if given.only != "hooks":
        yield "restart the client, or reload its MCP servers; it then offers capseal_gate, capseal_record, ..."
    if given.only == "mcp" or given.project is not None:
        return
    yield from filter(None, (load_client(name).after_hooks for name in dict.fromkeys(given.clients)))
    yield "run aver doctor to test the hooks"
