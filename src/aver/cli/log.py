"""`aver log`: the chains of a ledger, or records, one line each. It reads and does not verify."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from aver.cli.entries import Entry, entry_of, print_entry
from aver.cli.options import Usage, add_json, add_ledger, add_tenant, count, moment
from aver.cli.output import Errors, Painted, Screen, plural, print_json, short_time

if TYPE_CHECKING:
    from aver.capsule import Sealed
    from aver.ledger import Ledger

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver log                               the chains
  aver log claude-code.5d2e              the records of one
  aver log --type tool --since 2h        tool calls of the last two hours, in all chains
  aver log claude-code.5d2e -n 20 --reverse
  aver log --follow                      watch records arrive"""

POLL_SECONDS = 0.5
"""How often `--follow` looks for new records: soon enough for a person, and a few index reads for the ledger."""

FOLLOW_FIRST = 10
"""How many records `--follow` shows before it waits, unless `-n` says otherwise."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chain", nargs="?", metavar="CHAIN", help="list this chain's records")
    parser.add_argument("--type", help="only records of this type: agent, tool, system, chat, ...")
    parser.add_argument("--kind", help="only records of this kind: call, turn, gate.decision, ...")
    parser.add_argument("--session", metavar="ID", help="only records of this session")
    parser.add_argument("--since", type=moment, metavar="TIME", help="sealed at or after 2026-05-31T09:00, or 2h ago")
    parser.add_argument("--until", type=moment, metavar="TIME", help="sealed before this time")
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="only the newest N")
    parser.add_argument("--reverse", action="store_true", help="newest first")
    parser.add_argument("--follow", "-f", action="store_true", help="then wait, and print records as they come")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger

    if given.follow and (given.json or given.reverse):
        raise Usage("--follow prints lines as they come, oldest first", advice="leave out --json and --reverse")
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        if given.follow:
            _follow(ledger, given, screen)
        elif given.chain is None and not _filters(given) and given.limit is None and not given.reverse:
            _print_chains(ledger, screen, as_json=given.json)
        else:
            _print_records(ledger, given, screen)
    return 0


def _print_chains(ledger: Ledger, screen: Screen, *, as_json: bool) -> None:
    chains = [_chain_entry(ledger, row) for row in ledger.store.chains(ledger.tenant)]
    if as_json:
        print_json({"ledger": ledger.id, "tenant": ledger.tenant, "chains": chains})
        return
    if not chains:
        Errors().note(f"no chains of tenant {ledger.tenant} yet; aver seal FILE --chain NAME begins one")
    screen.table(
        [
            (
                chain["chain"],
                plural(chain["records"], "record"),
                short_time(chain["last_at"]),
                Painted((chain["head"] or "")[:12], "dim"),
                Painted("frozen" if chain["frozen"] else "", "warn"),
            )
            for chain in chains
        ],
        header=("chain", "records", "last sealed (UTC)", "head", ""),
    )


def _chain_entry(ledger: Ledger, row: Any) -> dict[str, Any]:
    last = next(ledger.read(row.name, row.count - 1), None) if row.count else None
    return {
        "chain": row.name,
        "records": row.count,
        "head": row.head,
        "last_at": last.signed_at if last else None,
        "frozen": row.frozen,
    }


def _print_records(ledger: Ledger, given: argparse.Namespace, screen: Screen) -> None:
    entries = map(entry_of, _records(ledger, given, given.limit))
    if given.json:
        listed = [entry.to_dict() for entry in (_reversed(entries) if given.reverse else entries)]
        print_json({"ledger": ledger.id, "tenant": ledger.tenant, "records": listed})
        return
    printed = 0
    for entry in _reversed(entries) if given.reverse else entries:
        print_entry(screen, entry, with_chain=given.chain is None)
        printed += 1
    if not printed:
        Errors().note("no records match")


def _reversed(entries: Iterable[Entry]) -> Iterator[Entry]:
    return reversed(list(entries))


def _records(ledger: Ledger, given: argparse.Namespace, limit: int | None) -> Iterable[Sealed]:
    """The records asked for, oldest first; with a limit, the newest of them."""
    filters = _filters(given)
    if given.chain is not None and not filters:
        head = ledger.head(given.chain).count
        return ledger.read(given.chain, 0 if limit is None else max(head - limit, 0))
    if given.chain is not None:
        ledger.read(given.chain)  # Says so if there is no such chain, where `find` would only find nothing.
    found = ledger.find(chain=given.chain, **filters)
    return found if limit is None else deque(found, maxlen=limit)


def _filters(given: argparse.Namespace) -> dict[str, Any]:
    names = ("type", "kind", "session", "since", "until")
    return {name: getattr(given, name) for name in names if getattr(given, name) is not None}


def _follow(ledger: Ledger, given: argparse.Namespace, screen: Screen) -> None:
    newest = ledger.store.newest_record()
    printed = set()
    for record in _records(ledger, given, FOLLOW_FIRST if given.limit is None else given.limit):
        print_entry(screen, entry_of(record), with_chain=given.chain is None)
        printed.add(record.hash)
    while True:
        sys.stdout.flush()
        time.sleep(POLL_SECONDS)
        # A record that comes between these two reads is found now and again by the next look, hence `printed`.
        upto = ledger.store.newest_record()
        found = list(ledger.find(chain=given.chain, newer_than=newest, **_filters(given)))
        for record in found:
            if record.hash not in printed:
                print_entry(screen, entry_of(record), with_chain=given.chain is None)
        newest, printed = upto, {record.hash for record in found}
