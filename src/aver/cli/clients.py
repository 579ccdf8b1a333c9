"""The code that `install`, `uninstall` and `status` share: the clients, and whose settings they are."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.agents.registry import client_names, load_client
from aver.cli.options import Usage, add_json
from aver.cli.terminal import Screen, print_json
from aver.text import to_one_line

if TYPE_CHECKING:
    from aver.files.user_dirs import UserEnvironment
    from aver.install.client import InstallOutcome

PARTS = ("mcp", "hooks", "proxy")
"""The parts that Aver puts into a client: the MCP server, the hooks, and the proxy before the client's own servers."""

_MARKS = {
    **dict.fromkeys(("installed", "updated", "removed"), "ok"),
    **dict.fromkeys(("unchanged", "absent"), "not_checked"),
    **dict.fromkeys(("kept", "skipped"), "warning"),
}


def add_client_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `install` and `uninstall`."""
    names = client_names()
    parser.add_argument("clients", nargs="+", choices=names, metavar="CLIENT", help=", ".join(names))
    add_project(parser)
    parser.add_argument("--only", choices=PARTS, help="only this part (default: the MCP server and the hooks)")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, only say what would be done")
    add_json(parser)


def add_project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="DIR", help="in this project's settings instead of the user's")


def change_clients(
    given: argparse.Namespace,
    screen: Screen,
    works: Mapping[str, Callable[..., list[InstallOutcome]]],
    effects: Mapping[str, str] | None = None,
) -> None:
    """Do the same with several clients, part by part. The first that cannot be changed ends it; those before it are
    done. `effects` says for each client in a sentence what changes for the user."""
    around = build_user_environment(given.project)
    if given.only == "hooks" and around.project is not None:
        raise Usage("hooks are put into the user's settings, not into a project's", advice="leave out --project")
    done: list[InstallOutcome] = []
    for client in dict.fromkeys(given.clients):
        for part in works if given.only is None else [given.only]:
            for outcome in works[part](load_client(client), around, dry_run=given.dry_run):
                done.append(outcome)
                if not given.json:
                    word = f"would be {outcome.done}" if given.dry_run else outcome.done
                    why = f"  ({to_one_line(outcome.why)})" if outcome.why else ""
                    words = f" {outcome.client:<12}  {outcome.part:<5}  {word}  "
                    screen.print_line(
                        screen.status_mark(_MARKS[outcome.done]), words, to_one_line(str(outcome.path)), why
                    )
    if given.json:
        said = {} if effects is None else {"effects": dict(effects)}
        print_json({"dry_run": given.dry_run, "files": list(_outcomes_to_dicts(done)), **said})
    elif effects:
        for words in dict.fromkeys(effects.values()):
            screen.print_hanging("", text=words)


def _outcomes_to_dicts(done: Iterable[InstallOutcome]) -> Iterable[dict[str, Any]]:
    for one in done:
        yield {"client": one.client, "part": one.part, "file": str(one.path), "done": one.done, "why": one.why}


def build_user_environment(project: str | None) -> UserEnvironment:
    """Whose settings they are: of the user, or of a project."""
    from aver.errors import NotFound
    from aver.files.user_dirs import UserEnvironment

    if project is not None and not os.path.isdir(project):
        raise NotFound(f"the project {project} is not a directory")
    return UserEnvironment(Path.home(), os.environ, None if project is None else Path(os.path.abspath(project)))
