"""`aver status`: which clients start Aver's MCP server, hooks and proxies, whether it is this Aver, and how."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aver.agents.registry import AGENTS, client_names, load_client, load_hook
from aver.cli.clients import add_project, build_user_environment
from aver.cli.options import add_json
from aver.cli.terminal import Screen, print_json
from aver.errors import AverError
from aver.text import to_one_line

if TYPE_CHECKING:
    from aver.files.user_dirs import UserEnvironment
    from aver.hooks.settings import HookSettings
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
    settings, trouble = _read_choices()
    if given.json:
        told = [
            {
                "client": one.client,
                "part": one.part,
                "file": str(one.path),
                "state": one.state,
                "why": one.why,
                **({"gated": one.is_gated} if one.part == "hooks" else {}),
                **(_choice_to_dict(settings.get(one.client)) if one.part == "hooks" else {}),
            }
            for one in found
        ]
        print_json({"clients": told, **({"trouble": trouble} if trouble else {})})
        return 0
    for one in found:
        words = f" {one.client:<12}  {one.part:<5}  {one.state:<10}  "
        choice = _describe_choice(settings.get(one.client)) if one.part == "hooks" and one.state == "installed" else ""
        more = "; ".join(filter(None, (choice, to_one_line(one.why))))
        is_limited = bool(one.why) if one.part != "proxy" else "NOT behind it" in one.why
        mark = "warning" if one.state == "installed" and (is_limited or choice) else _MARKS[one.state]
        screen.print_line(screen.status_mark(mark), words, to_one_line(str(one.path)), f"  ({more})" if more else "")
    if trouble:
        screen.print_line(screen.status_mark("problem"), f" {to_one_line(trouble)}")
    return 0


def _read_choices() -> tuple[dict[str, HookSettings], str]:
    """Return the settings of each agent's hooks; none, and why, where the settings cannot be read."""
    from aver.config import load_config
    from aver.hooks.settings import read_hook_settings

    try:
        config = load_config()
        found = {agent: read_hook_settings(config, agent, AGENTS) for agent in AGENTS}
    except AverError as error:
        return {}, f"no call passes, because the settings cannot be used: {error.message}"
    # Some agents do not let a hook skip their own prompt.
    left = {agent: one._replace(on_pass="leave") for agent, one in found.items() if not load_hook(agent).can_allow}  # noqa: S106
    return {**found, **left}, ""


def _describe_choice(settings: HookSettings | None) -> str:
    """Say what is not the default about the answers of hooks."""
    if settings is None:
        return ""
    if settings.mode == "observe":
        return "OBSERVES: nothing is held back"
    is_chosen = settings.on_pass == "allow"  # noqa: S105 - no password
    return "AUTO-ALLOW: calls that pass run without the client's own prompt" if is_chosen else ""


def _choice_to_dict(settings: HookSettings | None) -> dict[str, str]:
    return {} if settings is None else {"mode": settings.mode, "on_pass": settings.on_pass}


def _client_states(around: UserEnvironment) -> Iterator[InstallState]:
    from aver.install.hooks import read_hooks_state
    from aver.install.mcp_server import read_server_state
    from aver.install.proxied_servers import read_proxies_state

    for client in map(load_client, client_names()):
        if client.find_servers(around):  # Cline has no settings for a project.
            yield from read_server_state(client, around)
        yield from read_hooks_state(client, around)
        yield from read_proxies_state(client, around)
