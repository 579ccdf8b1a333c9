"""`aver import`: chains of a bundle or of other tools' databases, stored as they are and frozen. No key that comes with
them is trusted."""

from __future__ import annotations

import argparse
from pathlib import Path

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, print_json
from aver.cli.verdict_text import exit_code, status_parts
from aver.text import plural

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver import ./bundle
  aver import ./bundle --only claude-code.5d2e
  aver import ~/.agent-capsule                all that agent-capsule keeps on this machine
  aver import 5d2e.db                         one database of agent-capsule or qp-capsule
  aver keys import ./bundle/index.json        which keys signed it; trusting one is your decision"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a bundle; a database, or all of the directory, of agent-capsule")
    parser.add_argument("--only", action="extend", nargs="+", metavar="CHAIN", help="only the chains with these ids")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger
    from aver.ledger.bundle import import_bundle
    from aver.ledger.bundle.layout import bundle_directory
    from aver.ledger.foreign.import_databases import import_databases, is_foreign_database

    path = Path(given.path).expanduser()
    foreign = is_foreign_database(path)
    path = path if foreign else bundle_directory(path)  # Before a ledger is made for it.
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
        since = f"{chain.beyond} of them since, not here" if chain.beyond else ""
        rows.append([word, chain.name, plural(chain.count, "record"), since or renamed])
    screen.print_table(rows)
    extent = plural(done.verdict.records, "record")
    screen.print_line(*status_parts(screen, done.verdict), f": {extent}; aver verify {path} tells more")
    if grown := sum(chain.beyond > 0 for chain in done.chains):
        StderrScreen().print_note(
            f"{plural(grown, 'chain')} grew since the import before; what was imported stays as it was. "
            f"To have all of it: aver import {path} --tenant NAME"
        )
    for signer in done.unknown_signers:
        StderrScreen().print_note(
            f"signed by {signer}, whose key is not known here: "
            f"{_key_import_command(signer, None if foreign else path)}, "
            "once its owner has confirmed it"
        )
    return exit_code([done.verdict.status], strict=False)


def _key_import_command(signer: str, bundle: Path | None) -> str:
    """A bundle has the keys with it; a database has none."""
    return f"aver keys import {'FILE' if bundle is None else bundle} --trust {signer}"
