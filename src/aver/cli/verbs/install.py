"""`aver install`: have clients start the MCP server, and ask and tell Aver through their hooks."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from aver.agents.registry import AGENTS, load_agent, load_client
from aver.cli.clients import add_client_options, build_user_environment, change_clients
from aver.cli.options import Usage
from aver.cli.terminal import Screen, StderrScreen

EXAMPLES = """\
  aver install claude-code                install for all of your projects
  aver install claude-code --observe      decide and record, and hold nothing back
  aver install claude-code --auto-allow   calls that pass run without Claude Code's own prompt
  aver install cursor vscode --project .  install for this project and everyone who works on it
  aver install codex --dry-run            only print the changes
  aver install cline --only hooks         install the hooks, not the MCP server
  aver install claude-code --proxy        also put all of its MCP servers behind aver proxy
  aver status                             show where Aver is installed
  aver uninstall claude-code              remove it again"""

CHOICES = ("auto-allow", "no-auto-allow", "observe")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_client_options(parser)
    parser.add_argument("--proxy", action="store_true", help="also put the client's own MCP servers behind aver proxy")
    choice = parser.add_mutually_exclusive_group()
    help_texts = (
        "calls that pass the gate, and that it understands in every part, run without the client's own prompt",
        "calls that pass are left to the client's own rules (the default)",
        "decide about every call and seal that, but hold nothing back",
    )
    for name, text in zip(CHOICES, help_texts, strict=True):
        choice.add_argument(f"--{name}", dest="choice", action="store_const", const=name, default="leave", help=text)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.install.hooks import install_hooks
    from aver.install.mcp_server import install_server
    from aver.install.proxied_servers import install_proxies

    has_hooks = given.only in (None, "hooks") and given.project is None
    if given.choice != "leave" and not has_hooks:
        raise Usage(f"--{given.choice} is about hooks", advice="leave it out, or leave out --only and --project")
    if has_hooks and not given.dry_run:
        _seal_settings("")  # A change by somebody else must not look like this one.
    effects = dict(_write_choices(given)) if has_hooks else {}
    works = {"mcp": install_server, "hooks": install_hooks}
    if given.proxy or given.only == "proxy":
        works["proxy"] = install_proxies
    change_clients(given, screen, works, effects)
    if effects and not given.dry_run:
        from aver.cli.user_name import find_user_name

        option = "" if given.choice == "leave" else f" --{given.choice}"
        _seal_settings(f"aver install{option} ({find_user_name()})")
    if not given.json and not given.dry_run:
        for words in _next_steps(given):
            StderrScreen().print_note(words)
    return 0


def _write_choices(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Write the user's choice for each agent into Aver's settings. Yields what it changes, in a sentence."""
    from aver.config import home_dir
    from aver.install.hook_choice import describe_choice, write_choice

    for name in dict.fromkeys(given.clients):
        if name not in AGENTS:
            continue
        agent = load_agent(name)
        write_choice(home_dir(), name, given.choice, dry_run=given.dry_run)
        words = describe_choice(given.choice, agent.title)
        if given.choice == "auto-allow" and not agent.load_hook().can_allow:
            words = f"{describe_choice('leave', agent.title)} {agent.title} does not let a hook skip its own prompt."
        yield name, words


def _seal_settings(by: str) -> None:
    """Seal a change of settings, and who made it. Else the next decision finds a change that nobody explains."""
    from aver.config import load_config
    from aver.errors import AverError, NotFound
    from aver.gate.ask import load_gate
    from aver.gate.changes import seal_change
    from aver.gate.decision_record import SETTINGS_CHAIN
    from aver.ledger import open_ledger

    try:
        config = load_config()
        with open_ledger(config.ledger, home=config.home, create=False) as ledger:
            if ledger.head(SETTINGS_CHAIN).count:  # The first decision seals the first basis, and explains nothing.
                seal_change(ledger, load_gate(config, "", ledger), by=by)
    except NotFound:
        return
    except AverError as error:
        words = f"a change of settings is not sealed yet, and the next decision seals it: {error.message}"
        StderrScreen().print_note(words)


def _next_steps(given: argparse.Namespace) -> Iterator[str]:
    """Yield the steps that the user must still take in the clients."""
    from aver.install.hooks import read_hooks_state
    from aver.install.mcp_server import find_missing_package

    if given.only == "proxy":
        yield "restart the client, or reload its MCP servers: then Aver judges each of their calls"
    elif given.only != "hooks" and not find_missing_package():
        yield "restart the client, or reload its MCP servers; it then offers capseal_gate, capseal_record, ..."
    if given.only in ("mcp", "proxy") or given.project is not None:
        return
    around = build_user_environment(None)
    for client in map(load_client, dict.fromkeys(given.clients)):
        if client.after_hooks:
            yield f"{client.name}: {client.after_hooks}"
        yield from (f"{client.name}: {one.why}" for one in read_hooks_state(client, around) if one.why)
    from aver.gate.confinement import find_wrapper

    rewriters = [
        name for name in dict.fromkeys(given.clients) if name in AGENTS and load_agent(name).load_hook().can_rewrite
    ]
    if rewriters and find_wrapper() is not None:
        yield 'to run tests and builds without network, set confine = "build" under [gate] in config.toml'
    yield "run aver doctor to test the hooks"
