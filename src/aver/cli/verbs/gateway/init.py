"""`aver gateway init`: makes a directory for each part of the gateway, with exactly the keys that it needs."""

from __future__ import annotations

import argparse

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json

EXAMPLES = """\
  aver gateway init
  aver gateway up --workspace ~/src/app     then run all parts"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.gateway.parts.part_directories import PARTS, PartDirectories, make_part_directories

    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        program = make_part_directories(ledger)
        directories = PartDirectories(ledger.config.home)
    if given.json:
        parts = {part: str(directories.of(part)) for part in PARTS}
        print_json({"program_id": program.program_id, "parts": parts})
        return 0
    screen.print_line(f"the parts of the gateway are in {directories.root}")
    screen.print_line(f"they decide by the program {program.program_id}")
    screen.print_wrapped(
        "From now on every door of this home uses these parts. Run them: aver gateway up --workspace DIR", indent=""
    )
    return 0
