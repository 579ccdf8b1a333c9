"""`aver status`: which clients start Aver's MCP server and hooks, and whether they start this one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aver.agents.registry import client_names, load_client
from aver.cli.clients import add_project, build_user_environment
from aver.cli.options import add_json
from aver.cli.terminal import Screen, print_json
from aver.text import to_one_line

if TYPE_CHECKING:
    from aver.files.user_dirs import UserEnvironment
    from aver.install.client import InstallState

EXAMPLES = """\
  aver status                  in your own settings
  aver status --project .      in this project's"""

_MARKS = {
    "installed": "ok",
    "outdated": "warning",
    "foreign": "warning",
    "unreadable": "problem",
    "absent": "not_checked",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    found = list(_client_states(build_user_environment(given.project)))
    if given.json:
        told = [
            {
                "client": one.client,
                "part": one.part,
                "file": str(one.path),
                "state": one.state,
                "why": one.why,
                **({"gated": one.is_gated} if one.part == "hooks" else {}),
            }
            for one in found
        ]
        print_json({"clients": told})
        return 0
    for one in found:
        words = f" {one.client:<12}  {one.part:<5}  {one.state:<10}  "
        why = f"  ({to_one_line(one.why)})" if one.why else ""
        mark = "warning" if one.state == "installed" and one.why else _MARKS[one.state]
        screen.print_line(screen.status_mark(mark), words, to_one_line(str(one.path)), why)
    return 0


def _client_states(around: UserEnvironment) -> Iterator[InstallState]:
    from aver.install.hooks import read_hooks_state
    from aver.install.mcp_server import read_server_state

    for client in map(load_client, client_names()):
        if client.find_servers(around):  # Cline has no settings for a project.
            yield from read_server_state(client, around)
        yield from read_hooks_state(client, around)
