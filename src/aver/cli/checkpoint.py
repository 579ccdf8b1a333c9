"""`aver checkpoint`: a signed statement of where every chain is, to be kept where the ledger's owner cannot reach."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from aver.cli.files import check_free, write_new
from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.output import Errors, Screen, plural, print_json
from aver.errors import NotFound

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver checkpoint --out monday.json          keep this file elsewhere
  aver verify --checkpoint monday.json       later: is all of it still there?
  aver checkpoint --close claude-code.5d2e   also record that this chain has ended
  aver checkpoint --sweep                    also record all heads in the meta chain"""

STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", default=STDOUT, help="write the statement here (default: stdout)")
    parser.add_argument("--close", action="append", default=[], metavar="CHAIN", help="record this chain's end first")
    parser.add_argument("--sweep", action="store_true", help="record the heads of all changed chains in meta first")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger
    from aver.ledger.checkpoint import make_checkpoint
    from aver.ledger.meta import sweep

    to_file = given.out != STDOUT
    if to_file:
        check_free(Path(given.out))
    notes = []
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        if not ledger.chains():
            raise NotFound(f"tenant {ledger.tenant} has no chains yet", advice="seal something first: aver seal --help")
        for chain in given.close:
            entry = ledger.close_chain(chain)
            notes.append(f"closed {chain}: recorded in meta, sequence {entry.sequence}")
        if given.sweep:
            notes.append(f"swept: {plural(len(sweep(ledger)), 'new record')} in meta")
        statement = make_checkpoint(ledger).to_dict()
    if to_file:
        write_new(Path(given.out), json.dumps(statement, indent=2).encode("ascii") + b"\n")
        heads = len(statement["content"]["heads"])
        notes.append(f"wrote {given.out}: the heads of {plural(heads, 'chain')}; keep it where nobody can change it")
    on_stdout = given.json or not to_file
    if on_stdout:
        print_json(statement)
    for note in notes:
        (Errors() if on_stdout else screen).line(note)
    return 0
