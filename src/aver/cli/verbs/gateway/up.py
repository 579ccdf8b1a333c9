"""`aver gateway up`: runs the gateway, both policy servers and the executor as processes of their own."""

from __future__ import annotations

import argparse

from aver.cli.terminal import Screen, StderrScreen
from aver.cli.verbs.gateway.part_options import add_place, check_workspace

EXAMPLES = """\
  aver gateway init                         once
  aver gateway up --workspace ~/src/app     until Ctrl-C or SIGTERM

exit code: 0 after a signal, 3 if a part ended by itself."""

RUN_FAILED = 3

HEALTH_SECONDS = 5.0
"""How long one question after a part's health may take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.config import load_config
    from aver.errors import NotFound
    from aver.gateway.parts.part_directories import (
        EXECUTOR,
        GATEWAY,
        LINK_TOKEN,
        POLICY_PARTS,
        PartDirectories,
        read_link_token,
    )
    from aver.gateway.parts.supervisor import PartCommand, Supervisor
    from aver.gateway.settings import read_gateway_settings
    from aver.serving.part_client import PartClient

    workspace, config = check_workspace(given), load_config()
    settings, directories = read_gateway_settings(config), PartDirectories(config.home)
    if not directories.are_made:
        raise NotFound(f"{directories.root} has no parts yet", advice="run: aver gateway init")
    place = ["--workspace", workspace]
    for option in ("ledger", "tenant"):
        if getattr(given, option):
            place += [f"--{option}", getattr(given, option)]

    def command(part: str, *words: str) -> PartCommand:
        token = read_link_token(directories.of(part) / LINK_TOKEN)
        client = PartClient(directories.find_address(part, settings), token, HEALTH_SECONDS, part=part)
        return PartCommand(part, ("gateway", *words), client)

    commands = [
        *(command(part, "policy-server", str(number)) for number, part in enumerate(POLICY_PARTS)),
        command(EXECUTOR, "executor", *place),
        command(GATEWAY, "serve", *place),
    ]
    failed = Supervisor(commands, StderrScreen().print_note).run()
    return RUN_FAILED if failed else 0
