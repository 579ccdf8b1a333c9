"""`aver gateway executor`: runs the executor, which alone causes effects."""

from __future__ import annotations

import argparse
from pathlib import Path

from aver.cli.terminal import Screen
from aver.cli.verbs.gateway.part_options import (
    add_part,
    add_place,
    check_workspace,
    find_address,
    open_with_settings,
    serve_part,
)

EXAMPLES = """\
  aver gateway executor --workspace ~/src/app
  aver gateway executor --workspace /srv/app --listen http://127.0.0.1:9002"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_part(parser, "executor")
    add_place(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gateway.parts.part_directories import EXECUTOR, PartDirectories
    from aver.gateway.parts.part_services import build_executor_part

    workspace, address = check_workspace(given), find_address(given, EXECUTOR)
    ledger, settings = open_with_settings(given)
    with ledger:
        directory = Path(given.directory) if given.directory else PartDirectories(ledger.config.home).of(EXECUTOR)
        server, executor = build_executor_part(
            ledger, settings, directory.absolute(), address, workspace=workspace, peer_uid=given.peer_uid
        )
        with executor:
            serve_part(given, server, address, "the executor")
    return 0
