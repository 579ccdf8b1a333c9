"""`aver log`: lists chains or records, one line each. Of what it reads, it verifies only bundles and `.cap` files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json, add_ledger, add_tenant, parse_count, parse_time
from aver.cli.read_only import count_records, print_read_only_note, read_only_verdict, verdict_entry
from aver.cli.record_line import RecordLine, print_record_line, to_record_line
from aver.cli.terminal import Screen, StderrScreen, StyledText, format_time, print_json
from aver.text import plural

if TYPE_CHECKING:
    from aver.capsule import Sealed
    from aver.ledger import Ledger

EXAMPLES = """\
  aver log                               list the chains
  aver log claude-code.5d2e              list the records of one chain
  aver log --type tool --since 2h        list the tool calls of the last two hours, in all chains
  aver log claude-code.5d2e -n 20 --reverse
  aver log --unfinished                  list audited calls that are still running or were interrupted
  aver log --follow                      print records as they are sealed"""

POLL_SECONDS = 0.5
"""How often `--follow` looks for new records. A look costs the ledger a few index reads."""

FOLLOW_FIRST = 10
"""How many existing records `--follow` prints first, unless `-n` is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chain", nargs="?", metavar="CHAIN", help="list this chain's records")
    parser.add_argument("--type", help="only records of this type: agent, tool, system, chat, ...")
    parser.add_argument("--kind", help="only records of this kind: call, turn, gate.decision, ...")
    parser.add_argument("--session", metavar="ID", help="only records of this session")
    parser.add_argument(
        "--since",
        type=parse_time,
        metavar="TIME",
        help="only records sealed at or after this time: 2026-05-31T09:00, or 2h for 2 hours ago",
    )
    parser.add_argument("--until", type=parse_time, metavar="TIME", help="only records sealed before this time")
    parser.add_argument("-n", "--limit", type=parse_count, metavar="N", help="list only the newest N")
    parser.add_argument("--reverse", action="store_true", help="list the newest first")
    parser.add_argument(
        "--unfinished", action="store_true", help="only calls without an outcome: still running or interrupted"
    )
    parser.add_argument(
        "--follow", "-f", action="store_true", help="then wait, and print new records as they are sealed"
    )
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger

    if given.follow and (given.json or given.reverse):
        raise Usage("--follow cannot be combined with --json or --reverse", advice="leave these out")
    if given.unfinished and (given.follow or _filters(given)):
        raise Usage(
            "--unfinished cannot be combined with --follow or filters",
            advice="only a chain, -n, --reverse and --json go with it",
        )
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        if given.chain is not None:
            ledger.read(given.chain)  # Raises `NotFound` for an unknown chain.
        if given.follow:
            if read_only_verdict(ledger) is not None:
                raise Usage("--follow needs a ledger", advice="a bundle does not grow: leave out --follow")
            _follow(ledger, given, screen)
        elif not (given.chain or given.unfinished or _filters(given) or given.limit is not None or given.reverse):
            _print_chains(ledger, screen, as_json=given.json)
        else:
            newest_first = _select_newest(ledger, given, given.limit)
            entries: Iterable[RecordLine] = map(
                to_record_line, newest_first if given.reverse else _select_records(ledger, given, given.limit)
            )
            if given.json:
                listed = [entry.to_dict() for entry in entries]
                print_json({"ledger": ledger.id, "tenant": ledger.tenant, "records": listed, **verdict_entry(ledger)})
            else:
                printed = 0
                for entry in entries:
                    print_record_line(screen, entry, with_chain=given.chain is None)
                    printed += 1
                if not printed:
                    StderrScreen().print_note("no records match")
        return print_read_only_note(ledger)


def _print_chains(ledger: Ledger, screen: Screen, *, as_json: bool) -> None:
    chains = [_chain_to_dict(ledger, row) for row in ledger.store.chains(ledger.tenant)]
    if as_json:
        print_json({"ledger": ledger.id, "tenant": ledger.tenant, "chains": chains, **verdict_entry(ledger)})
        return
    if not chains:
        StderrScreen().print_note(f"tenant {ledger.tenant} has no chains yet; aver seal FILE --chain NAME starts one")
    screen.print_table(
        [
            (
                chain["chain"],
                plural(chain["records"], "record"),
                format_time(chain["last_at"]),
                StyledText((chain["head"] or "")[:12], "dim"),
                StyledText(f"imported, was {chain['origin']}" if chain["frozen"] else "", "warn"),
            )
            for chain in chains
        ],
        header=("chain", "records", "last sealed (UTC)", "head", ""),
    )


def _chain_to_dict(ledger: Ledger, row: Any) -> dict[str, Any]:
    last = next(ledger.read(row.name, row.count - 1), None) if row.count else None
    return {
        "chain": row.name,
        "records": count_records(ledger, row),
        "head": row.head,
        "last_at": last.signed_at if last else None,
        "frozen": row.frozen,
        "origin": row.origin,
    }


def _select_records(ledger: Ledger, given: argparse.Namespace, limit: int | None) -> Iterable[Sealed]:
    """The records that match the options, oldest first. With a limit, only the newest of them."""
    filters = _filters(given)
    if limit is None and not given.unfinished:
        return ledger.read(given.chain) if given.chain and not filters else ledger.find(chain=given.chain, **filters)
    return reversed(list(_select_newest(ledger, given, limit)))


def _select_newest(ledger: Ledger, given: argparse.Namespace, limit: int | None) -> Iterator[Sealed]:
    """The records that match the options, newest first. Reads only as far as the limit asks."""
    if given.unfinished:
        from aver.recording.run import find_unfinished

        return find_unfinished(ledger, given.chain, limit=limit)
    return ledger.find_newest(chain=given.chain, limit=limit, **_filters(given))


def _filters(given: argparse.Namespace) -> dict[str, Any]:
    names = ("type", "kind", "session", "since", "until")
    return {name: getattr(given, name) for name in names if getattr(given, name) is not None}


def _follow(ledger: Ledger, given: argparse.Namespace, screen: Screen) -> None:
    """Print the newest records, then every new record, until the process is interrupted."""
    seen = {head.chain: head.count for head in ledger.heads()}
    printed = set()
    for record in _select_records(ledger, given, FOLLOW_FIRST if given.limit is None else given.limit):
        print_record_line(screen, to_record_line(record), with_chain=given.chain is None)
        printed.add(record.hash)
    while True:
        sys.stdout.flush()
        time.sleep(POLL_SECONDS)
        # Compare the chains' lengths, not row numbers: on a server, rows become visible out of order.
        heads = {head.chain: head.count for head in ledger.heads() if given.chain in (None, head.chain)}
        grown = {chain: seen.get(chain, 0) for chain, count in heads.items() if count > seen.get(chain, 0)}
        # The new records of these chains that match the filters, in the order in which they were sealed.
        filters = _filters(given)
        found = [
            record
            for chain, start in grown.items()
            for record in ledger.find(chain=chain, start=start, stop=heads[chain], **filters)
        ]
        for record in sorted(found, key=lambda record: record.signed_at):
            if record.hash not in printed:
                print_record_line(screen, to_record_line(record), with_chain=given.chain is None)
        seen, printed = heads, set()
