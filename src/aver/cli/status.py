"""`aver status`: which clients start Aver's MCP server, and whether they start this one."""

from __future__ import annotations

import argparse

from aver.cli.clients import NAMES, add_project, surroundings
from aver.cli.options import add_json
from aver.cli.output import Screen, one_line, print_json

__all__ = ["EXAMPLES", "add_arguments", "run"]

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
    from aver.install.clients import CLIENTS
    from aver.install.registering import standing

    around = surroundings(given.project)
    # A client without settings for projects is not asked about them.
    found = [one for client in NAMES if CLIENTS[client](around) for one in standing(client, around)]
    if given.json:
        told = [{"client": one.client, "file": str(one.path), "state": one.state, "why": one.why} for one in found]
        print_json({"clients": told})
        return 0
    for one in found:
        words = f" {one.client:<12}  {one.state:<10}  "
        why = f"  ({one_line(one.why)})" if one.why else ""
        screen.line(screen.mark(_MARKS[one.state]), words, one_line(str(one.path)), why)
    return 0
