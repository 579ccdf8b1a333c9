"""What `install`, `uninstall` and `status` share: which clients there are, and whose settings they are."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import add_json
from aver.cli.output import Screen, one_line, print_json

if TYPE_CHECKING:
    from aver.install.clients import Surroundings
    from aver.install.registering import Outcome

__all__ = ["NAMES", "add_clients", "add_project", "change", "surroundings"]

NAMES = ("claude-code", "codex", "cursor", "cline", "vscode")

_MARKS = {"installed": "ok", "updated": "ok", "removed": "ok", "unchanged": "not_checked", "absent": "not_checked"}


def add_clients(parser: argparse.ArgumentParser) -> None:
    """What `install` and `uninstall` take."""
    parser.add_argument("clients", nargs="+", choices=NAMES, metavar="CLIENT", help=", ".join(NAMES))
    add_project(parser)
    parser.add_argument("--dry-run", action="store_true", help="change nothing, only say what would be done")
    add_json(parser)


def add_project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="DIR", help="in this project's settings instead of the user's")


def change(given: argparse.Namespace, screen: Screen, work: Callable[..., list[Outcome]]) -> None:
    """Do the same with several clients. The first that cannot be changed ends it; those before it are done."""
    around = surroundings(given.project)
    done: list[Outcome] = []
    for client in dict.fromkeys(given.clients):
        for outcome in work(client, around, dry_run=given.dry_run):
            done.append(outcome)
            if not given.json:
                word = f"would be {outcome.done}" if given.dry_run else outcome.done
                screen.line(
                    screen.mark(_MARKS[outcome.done]), f" {outcome.client:<12}  {word}  ", one_line(str(outcome.path))
                )
    if given.json:
        print_json({"dry_run": given.dry_run, "files": list(_told(done))})


def _told(done: Iterable[Outcome]) -> Iterable[dict[str, Any]]:
    for one in done:
        yield {"client": one.client, "file": str(one.path), "done": one.done}


def surroundings(project: str | None) -> Surroundings:
    """Whose settings they are: of the user, or of a project."""
    from aver.errors import NotFound
    from aver.install.clients import Surroundings

    if project is not None and not os.path.isdir(project):
        raise NotFound(f"the project {project} is not a directory")
    return Surroundings(Path.home(), os.environ, None if project is None else Path(os.path.abspath(project)))
