"""`aver import`: adds the chains of a bundle or of another tool's database to the ledger, or drops such an import.

The records are stored byte for byte and the chains are frozen, under names of their own. Keys that come with them are
not trusted.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_json, add_ledger, add_tenant
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, print_json
from aver.cli.verdict_text import exit_code, status_parts
from aver.text import plural

if TYPE_CHECKING:
    from aver.ledger.bundle.import_ import ImportResult

EXAMPLES = """\
  aver import ./bundle
  aver import ./bundle --only claude-code.5d2e
  aver import ~/.agent-capsule                import everything that agent-capsule keeps on this machine
  aver import 5d2e.db                         import one database of agent-capsule or qp-capsule
  aver import --drop 93dbd7c3122c24a5         remove that import again, with all its chains
  aver keys import ./bundle/index.json        list the keys that signed it; you decide which to trust"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="a bundle, or a database or the directory of agent-capsule"
    )
    parser.add_argument("--only", action="extend", nargs="+", metavar="CHAIN", help="import only these chains")
    parser.add_argument(
        "--drop",
        metavar="SOURCE",
        help="remove an import: the 16 digits in the names of its chains, or the name of one of them",
    )
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.ledger.bundle import import_bundle
    from aver.ledger.bundle.layout import bundle_directory
    from aver.ledger.foreign.import_databases import import_databases, is_foreign_database

    if given.drop is not None:
        if given.path is not None or given.only is not None:
            raise Usage("--drop removes an import; it takes no PATH and no --only", advice="leave these out")
        return _drop(given, screen)
    if given.path is None:
        raise Usage("name a bundle or a database to import, or an import to drop", advice="aver import --help")
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
        print_json(
            {
                "source": done.source.digits,
                "chains": chains,
                "unknown_signers": list(done.unknown_signers),
                "verdict": verdict,
            }
        )
    else:
        _print_result(done, path, screen, foreign=foreign)
    return exit_code([done.verdict.status], strict=False)


def _print_result(done: ImportResult, path: Path, screen: Screen, *, foreign: bool) -> None:
    rows: list[list[LinePart]] = []
    for chain in done.chains:
        word = StyledText("existed", "dim") if chain.existed else StyledText("imported", "good")
        renamed = f"was {chain.origin}" if chain.origin != chain.name else ""
        since = f"{plural(chain.beyond, 'newer record')} not imported" if chain.beyond else ""
        rows.append([word, chain.name, plural(chain.count, "record"), since or renamed])
    screen.print_table(rows)
    extent = plural(done.verdict.records, "record")
    screen.print_line(*status_parts(screen, done.verdict), f": {extent}; details: aver verify {path}")
    notes = StderrScreen()
    if not all(chain.existed for chain in done.chains):
        notes.print_note(f"to remove this import again: aver import --drop {done.source.digits}")
    grown = [chain.name for chain in done.chains if chain.beyond]
    if grown:
        notes.print_note(
            f"{plural(len(grown), 'chain')} grew since the last import; imported chains stay unchanged. "
            f"To import everything: aver import --drop {grown[0]}, then import again"
        )
    for signer in done.unknown_signers:
        # A bundle contains the public keys of its signers; a foreign database does not.
        command = f"aver keys import {'FILE' if foreign else path}"
        notes.print_note(f"signed by an unknown key, {signer}; to see it whole, and then trust it: {command}")


def _drop(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger
    from aver.ledger.imports.drop import drop_import

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        done = drop_import(ledger, given.drop)
    if given.json:
        chains = [{"name": chain.name, "origin": chain.origin, "count": chain.count} for chain in done.chains]
        print_json({"dropped": {"source": done.source, "chains": chains, "blobs": done.blobs}})
        return 0
    screen.print_table(
        [
            [StyledText("dropped", "warn"), chain.name, plural(chain.count, "record"), f"was {chain.origin}"]
            for chain in done.chains
        ]
    )
    screen.print_line(f"{plural(len(done.chains), 'chain')} and {plural(done.blobs, 'blob')} removed; sealed in meta")
    return 0
