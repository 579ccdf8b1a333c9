"""`aver uninstall`: take hooks, MCP server and proxies out of clients' settings, and leave them as they were."""

from __future__ import annotations

import argparse

from aver.cli.clients import add_client_options, change_clients
from aver.cli.terminal import Screen

EXAMPLES = """\
  aver uninstall claude-code
  aver uninstall cursor vscode --project ."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_client_options(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.agents.registry import AGENTS
    from aver.config import home_dir
    from aver.install.hook_choice import write_choice
    from aver.install.hooks import uninstall_hooks
    from aver.install.mcp_server import uninstall_server
    from aver.install.proxied_servers import uninstall_proxies

    # In this order, the other way round than they were put in: so bytes come back as they were.
    change_clients(given, screen, {"proxy": uninstall_proxies, "hooks": uninstall_hooks, "mcp": uninstall_server})
    if given.only in (None, "hooks") and given.project is None:
        for name in AGENTS.keys() & set(given.clients):
            write_choice(home_dir(), name, "leave", dry_run=given.dry_run)
    return 0
