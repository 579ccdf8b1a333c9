"""What `install`, `uninstall` and `status` share: which clients there are, and whose settings they are."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json
from aver.cli.output import Screen, one_line, print_json

if TYPE_CHECKING:
    from aver.install.clients import Surroundings
    from aver.install.registering import Outcome

__all__ = ["NAMES", "PARTS", "add_clients", "add_project", "change", "surroundings"]

NAMES = ("claude-code", "codex", "cursor", "cline", "vscode")

PARTS = ("mcp", "hooks")
"""What is put into a client: the MCP server, and the hooks."""

_MARKS = {
    **dict.fromkeys(("installed", "updated", "removed"), "ok"),
    **dict.fromkeys(("unchanged", "absent"), "not_checked"),
    "kept": "warning",
}


def add_clients(parser: argparse.ArgumentParser) -> None:
    """What `install` and `uninstall` take."""
    parser.add_argument("clients", nargs="+", choices=NAMES, metavar="CLIENT", help=", ".join(NAMES))
    add_project(parser)
    parser.add_argument("--only", choices=PARTS, help="only the MCP server, or only the hooks (default: both)")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, only say what would be done")
    add_json(parser)


def add_project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="DIR", help="in this project's settings instead of the user's")


def change(given: argparse.Namespace, screen: Screen, works: Mapping[str, Callable[..., list[Outcome]]]) -> None:
    """Do the same with several clients, part by part. The first that cannot be changed ends it; those before it are
    done."""
    around = surroundings(given.project)
    if given.only == "hooks" and around.project is not None:
        raise Usage("hooks are put into the user's settings, not into a project's", advice="leave out --project")
    done: list[Outcome] = []
    for client in dict.fromkeys(given.clients):
        for part in works if given.only is None else [given.only]:
            for outcome in works[part](client, around, dry_run=given.dry_run):
                done.append(outcome)
                if not given.json:
                    _show(outcome, screen, dry_run=given.dry_run)
    if given.json:
        print_json({"dry_run": given.dry_run, "files": list(_told(done))})


def _show(outcome: Outcome, screen: Screen, *, dry_run: bool) -> None:
    word = f"would be {outcome.done}" if dry_run else outcome.done
    why = f"  ({one_line(outcome.why)})" if outcome.why else ""
    words = f" {outcome.client:<12}  {outcome.part:<5}  {word}  "
    screen.line(screen.mark(_MARKS[outcome.done]), words, one_line(str(outcome.path)), why)


def _told(done: Iterable[Outcome]) -> Iterable[dict[str, Any]]:
    for one in done:
        yield {"client": one.client, "part": one.part, "file": str(one.path), "done": one.done, "why": one.why}


def surroundings(project: str | None) -> Surroundings:
    """Whose settings they are: of the user, or of a project."""
    from aver.errors import NotFound
    from aver.install.clients import Surroundings

    if project is not None and not os.path.isdir(project):
        raise NotFound(f"the project {project} is not a directory")
    return Surroundings(Path.home(), os.environ, None if project is None else Path(os.path.abspath(project)))
