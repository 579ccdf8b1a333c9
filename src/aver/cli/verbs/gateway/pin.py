"""`aver gateway pin`: shows what changed in rules and settings, and pins the new program for all parts."""

from __future__ import annotations

import argparse
from dataclasses import replace

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json

EXAMPLES = """\
  aver gateway pin --dry-run                show what has changed since the program was pinned
  aver gateway pin                          show it, and let all parts decide by the present rules"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what has changed")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.gate.ask import load_gate
    from aver.gateway.parts.part_directories import PartDirectories, install_program
    from aver.gateway.parts.pinned_program import PinnedProgram, describe_differences

    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        directories = PartDirectories(ledger.config.home)
        old = PinnedProgram.read(directories.program_path)
        new = PinnedProgram.pin(load_gate(ledger.config, "", ledger=ledger))
        new.build_gate()
        changes = list(describe_differences(old.description, new.description))
        if not given.dry_run:
            # Also without a change: a part's copy may have been lost or damaged. The time is that of the last change.
            if new.program_id == old.program_id:
                new = replace(new, pinned_at=old.pinned_at)
            install_program(directories, new)
    if given.json:
        print_json({"before": old.program_id, "after": new.program_id, "changes": changes, "pinned": not given.dry_run})
        return 0
    for line in changes:
        screen.print_line(line)
    if not changes:
        screen.print_line(f"nothing has changed since {old.pinned_at}")
    elif given.dry_run:
        screen.print_line(f"not pinned: {new.program_id}")
    else:
        screen.print_line(f"pinned: {new.program_id}")
        if {**old.description, "files": None} != {**new.description, "files": None}:
            screen.print_line("Settings have changed: start the doors again (up, serve, mcp), which read them at start")
    return 0
