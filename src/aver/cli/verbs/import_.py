"""`aver import`: adds the chains of a bundle or of another tool's database to the ledger.

The records are stored byte for byte and the chains are frozen. Keys that come with them are not trusted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, print_json
from aver.cli.verdict_text import exit_code, status_parts
from aver.text import plural

EXAMPLES = """\
  aver import ./bundle
  aver import ./bundle --only claude-code.5d2e
  aver import ~/.agent-capsule                import everything that agent-capsule keeps on this machine
  aver import 5d2e.db                         import one database of agent-capsule or qp-capsule
  aver keys import ./bundle/index.json        list the keys that signed it; you decide which to trust"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a bundle, or a database or the directory of agent-capsule")
    parser.add_argument("--only", action="extend", nargs="+", metavar="CHAIN", help="import only these chains")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.ledger.bundle import import_bundle
    from aver.ledger.bundle.layout import bundle_directory
    from aver.ledger.foreign.import_databases import import_databases, is_foreign_database

    path = Path(given.path).expanduser()
    foreign = is_foreign_database(path)
    path = path if foreign else bundle_directory(path)  # Fails here, before a ledger is created.
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        done = (import_databases if foreign else import_bundle)(ledger, path, only=given.only)
    if given.json:
        chains = [
            {
                "name": chain.name,
                "origin": chain.origin,
                "count": chain.count,
                "existed": chain.existed,
                "beyond": chain.beyond,
            }
            for chain in done.chains
        ]
        verdict = done.verdict.to_dict()
        print_json({"chains": chains, "unknown_signers": list(done.unknown_signers), "verdict": verdict})
        return exit_code([done.verdict.status], strict=False)
    rows: list[list[LinePart]] = []
    for chain in done.chains:
        word = StyledText("existed", "dim") if chain.existed else StyledText("imported", "good")
        renamed = f"was {chain.origin}" if chain.origin != chain.name else ""
        since = f"{plural(chain.beyond, 'newer record')} not imported" if chain.beyond else ""
        rows.append([word, chain.name, plural(chain.count, "record"), since or renamed])
    screen.print_table(rows)
    extent = plural(done.verdict.records, "record")
    screen.print_line(*status_parts(screen, done.verdict), f": {extent}; details: aver verify {path}")
    if grown := sum(chain.beyond > 0 for chain in done.chains):
        StderrScreen().print_note(
            f"{plural(grown, 'chain')} grew since the last import; imported chains stay unchanged. "
            f"To import everything: aver import {path} --tenant NAME"
        )
    for signer in done.unknown_signers:
        # A bundle contains the public keys of its signers; a foreign database does not.
        command = f"aver keys import {'FILE' if foreign else path} --trust {signer}"
        StderrScreen().print_note(f"signed by an unknown key, {signer}; once its owner has confirmed it: {command}")
    return exit_code([done.verdict.status], strict=False)
