"""`aver policy allow`, `forget`, `init` and `pin`: a person changes the rules that are in force."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from aver.cli.options import Usage
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.cli.user_name import find_user_name
from aver.config import Config, load_config
from aver.errors import AverError
from aver.text import escape_invisible


def pin_directory(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.terminal import ask_passphrase
    from aver.gate.approvals import find_person
    from aver.gate.policy.bundle import load_policy_bundle
    from aver.gate.policy.rules_source import pin_rules
    from aver.ledger import open_ledger

    directory = Path(given.directory).absolute()
    bundle = load_policy_bundle(directory)  # Rules that cannot be used are not pinned.
    with open_ledger() as ledger:
        person = find_person(ledger.keys, given.person, lambda: ask_passphrase(given.person, given.passphrase_fd))
        path = pin_rules(ledger, directory, person)
    line = f'policy = "{_to_toml_path(directory, ledger.config.home)}"'
    if given.json:
        print_json({"directory": str(directory), "pin": str(path), "digest": bundle.digest, "line": line})
        return 0
    screen.print_line(f"{given.person} pinned the rules in {directory}")
    screen.print_line(f"to use them, have these lines in {ledger.config.file}:")
    screen.print_line("")
    screen.print_line("[gate]")
    screen.print_line(line)
    return 0


def allow_command(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.effects.known_agents import default_known_agents
    from aver.gate.policy.rule_changes import allow_for_good
    from aver.gate.policy.standing_rules import build_command_rule, build_tool_rule
    from aver.ledger import open_ledger

    if (given.command is None) == (given.tool is None):
        raise Usage("give a command or a tool", advice="aver policy allow 'npm ci'")
    workspace, by = _workspace_of(given), find_user_name()
    if given.tool is not None:
        rule = build_tool_rule(given.tool, workspace, by, default_known_agents())
    else:
        rule = build_command_rule(given.command, workspace, by)
    with open_ledger(given.ledger, tenant=given.tenant, create=True) as ledger:
        record = allow_for_good(ledger, rule, workspace, by)
        path = ledger.config.home / "allowed.cedar"
    if given.json:
        told = {"rule": rule.id, "about": rule.about, "workspace": workspace, "file": str(path), "text": rule.text}
        print_json({**told, "record": record.id})
        return 0
    for line in rule.text.splitlines():
        screen.print_line(f"  {line}")
    screen.print_line(f"allowed in {workspace} for good, by the rule {rule.id} in {path}")
    StderrScreen().print_note("secrets still do not leave this machine, and Aver's own files stay closed")
    return 0


def forget_rule(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.policy.rule_changes import forget_rules
    from aver.ledger import open_ledger

    workspace = _workspace_of(given)
    with open_ledger(given.ledger, tenant=given.tenant, create=True) as ledger:
        removed = forget_rules(ledger, given.rule, workspace, find_user_name())
    if given.json:
        print_json({"removed": [{"rule": rule.id, "about": rule.about} for rule in removed]})
        return 0
    for rule in removed:
        screen.print_line(f"removed the rule {rule.id}: {escape_invisible(rule.about)}")
    return 0


def _workspace_of(given: argparse.Namespace) -> str:
    return os.path.abspath(os.path.expanduser(given.workspace)) if given.workspace else os.getcwd()


def copy_starter_rules(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.policy.bundle import install_starter
    from aver.gate.settings import read_gate_settings
    from aver.gateway.parts.part_directories import PartDirectories

    config = load_config()
    target = Path(given.directory).absolute() if given.directory is not None else config.home / "policy"
    if given.use and not target.is_relative_to(config.home):
        raise Usage(f"only rules in {config.home} can be put in force by --use", advice="leave out DIR")
    install_starter(target)
    if given.use:
        _use_rules(target, config)
        config = load_config()
    try:
        is_used = read_gate_settings(config).policy == target
    except AverError:
        is_used = False
    line = f'policy = "{_to_toml_path(target, config.home)}"'
    if given.json:
        print_json(
            {"directory": str(target), "in_force": is_used, "settings": str(config.home / "config.toml"), "line": line}
        )
        return 0
    screen.print_line(f"copied the starter rules to {target}")
    if is_used:
        screen.print_line("they are in force: edit them, then run aver policy check")
        if PartDirectories(config.home).are_made:
            screen.print_line("the gateway's parts refuse every act until you pin them: aver gateway pin")
    else:
        screen.print_line(f"to use them, add these lines to {config.home / 'config.toml'}:")
        screen.print_line("")
        screen.print_line("[gate]")
        screen.print_line(line)
    return 0


def _use_rules(target: Path, config: Config) -> None:
    """Write the directory of the rules into `config.toml`, and leave everything else in it as it is."""
    from aver.config import ensure_home
    from aver.files.atomic import replace_file
    from aver.install.edit import add_table, read_toml, set_value

    ensure_home(config.home)
    path, name = config.home / "config.toml", str(target.relative_to(config.home))
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if "gate" in read_toml(text):
        changed = set_value(text, ("gate",), "policy", name)
    else:
        changed = add_table(text, ("gate",), {"policy": name})
    replace_file(path, changed.encode())


def _to_toml_path(target: Path, home: Path) -> str:
    """The path as the content of a TOML string, relative to the home directory where possible."""
    path = str(target.relative_to(home)) if target.is_relative_to(home) and target != home else str(target)
    return path.replace("\\", "\\\\").replace('"', '\\"')
