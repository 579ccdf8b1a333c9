"""`aver status`: which clients start Aver's MCP server and hooks, and whether they start this one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aver.cli.clients import NAMES, add_project, surroundings
from aver.cli.options import add_json
from aver.cli.output import Screen, one_line, print_json

if TYPE_CHECKING:
    from aver.install.clients import Surroundings
    from aver.install.registering import Standing

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
    found = list(_found(surroundings(given.project)))
    if given.json:
        told = [
            {"client": one.client, "part": one.part, "file": str(one.path), "state": one.state, "why": one.why}
            for one in found
        ]
        print_json({"clients": told})
        return 0
    for one in found:
        words = f" {one.client:<12}  {one.part:<5}  {one.state:<10}  "
        why = f"  ({one_line(one.why)})" if one.why else ""
        mark = "warning" if one.state == "installed" and one.why else _MARKS[one.state]
        screen.line(screen.mark(mark), words, one_line(str(one.path)), why)
    return 0


def _found(around: Surroundings) -> Iterator[Standing]:
    from aver.install.clients import CLIENTS
    from aver.install.hooking import hooks_standing
    from aver.install.registering import standing

    for client in NAMES:
        if CLIENTS[client](around):  # One without settings for projects is not asked about them.
            yield from standing(client, around)
        yield from hooks_standing(client, around)
