"""`aver log`: the chains of a ledger, or records, one line each. It reads and does not verify."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json, add_ledger, add_tenant, parse_count, parse_time
from aver.cli.record_line import RecordLine, print_record_line, to_record_line
from aver.cli.terminal import Screen, StderrScreen, StyledText, format_time, print_json
from aver.text import plural

if TYPE_CHECKING:
    from aver.capsule import Sealed
    from aver.ledger import Ledger

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver log                               the chains
  aver log claude-code.5d2e              the records of one
  aver log --type tool --since 2h        tool calls of the last two hours, in all chains
  aver log claude-code.5d2e -n 20 --reverse
  aver log --unfinished                  audited calls that are running, or were cut off
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
    parser.add_argument(
        "--since", type=parse_time, metavar="TIME", help="sealed at or after 2026-05-31T09:00, or 2h ago"
    )
    parser.add_argument("--until", type=parse_time, metavar="TIME", help="sealed before this time")
    parser.add_argument("-n", "--limit", type=parse_count, metavar="N", help="only the newest N")
    parser.add_argument("--reverse", action="store_true", help="newest first")
    parser.add_argument("--unfinished", action="store_true", help="only intents without an outcome: running or cut off")
    parser.add_argument("--follow", "-f", action="store_true", help="then wait, and print records as they come")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger

    if given.follow and (given.json or given.reverse):
        raise Usage("--follow prints lines as they come, oldest first", advice="leave out --json and --reverse")
    if given.unfinished and (given.follow or _filters(given)):
        raise Usage("--unfinished stands alone", advice="give a chain, -n, --reverse or --json with it, nothing else")
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        if given.follow:
            _follow(ledger, given, screen)
        elif not (given.chain or given.unfinished or _filters(given) or given.limit is not None or given.reverse):
            _print_chains(ledger, screen, as_json=given.json)
        else:
            _print_records(ledger, given, screen)
    return 0


def _print_chains(ledger: Ledger, screen: Screen, *, as_json: bool) -> None:
    chains = [_chain_to_dict(ledger, row) for row in ledger.store.chains(ledger.tenant)]
    if as_json:
        print_json({"ledger": ledger.id, "tenant": ledger.tenant, "chains": chains})
        return
    if not chains:
        StderrScreen().print_note(f"no chains of tenant {ledger.tenant} yet; aver seal FILE --chain NAME begins one")
    screen.print_table(
        [
            (
                chain["chain"],
                plural(chain["records"], "record"),
                format_time(chain["last_at"]),
                StyledText((chain["head"] or "")[:12], "dim"),
                StyledText("frozen" if chain["frozen"] else "", "warn"),
            )
            for chain in chains
        ],
        header=("chain", "records", "last sealed (UTC)", "head", ""),
    )


def _chain_to_dict(ledger: Ledger, row: Any) -> dict[str, Any]:
    last = next(ledger.read(row.name, row.count - 1), None) if row.count else None
    return {
        "chain": row.name,
        "records": row.count,
        "head": row.head,
        "last_at": last.signed_at if last else None,
        "frozen": row.frozen,
    }


def _print_records(ledger: Ledger, given: argparse.Namespace, screen: Screen) -> None:
    entries = map(to_record_line, _select_records(ledger, given, given.limit))
    if given.json:
        listed = [entry.to_dict() for entry in (_newest_first(entries) if given.reverse else entries)]
        print_json({"ledger": ledger.id, "tenant": ledger.tenant, "records": listed})
        return
    printed = 0
    for entry in _newest_first(entries) if given.reverse else entries:
        print_record_line(screen, entry, with_chain=given.chain is None)
        printed += 1
    if not printed:
        StderrScreen().print_note("no records match")


def _newest_first(entries: Iterable[RecordLine]) -> Iterator[RecordLine]:
    return reversed(list(entries))


def _select_records(ledger: Ledger, given: argparse.Namespace, limit: int | None) -> Iterable[Sealed]:
    """The records asked for, oldest first; with a limit, the newest of them."""
    if given.unfinished:
        from aver.recording.run import unfinished_intents

        intents = unfinished_intents(ledger, given.chain)
        return intents if limit is None else deque(intents, maxlen=limit)
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
    seen = {head.chain: head.count for head in ledger.heads()}
    printed = set()
    for record in _select_records(ledger, given, FOLLOW_FIRST if given.limit is None else given.limit):
        print_record_line(screen, to_record_line(record), with_chain=given.chain is None)
        printed.add(record.hash)
    while True:
        sys.stdout.flush()
        time.sleep(POLL_SECONDS)
        # Row numbers would not do: writers on a server finish in another order than they began in.
        heads = {head.chain: head.count for head in ledger.heads() if given.chain in (None, head.chain)}
        grown = {chain: seen.get(chain, 0) for chain, count in heads.items() if count > seen.get(chain, 0)}
        for record in _find_new_records(ledger, grown, heads, _filters(given)):
            if record.hash not in printed:
                print_record_line(screen, to_record_line(record), with_chain=given.chain is None)
        seen, printed = heads, set()


def _find_new_records(
    ledger: Ledger, starts: dict[str, int], stops: dict[str, int], filters: dict[str, Any]
) -> Iterable[Sealed]:
    """The records asked for that came to these chains, in the order in which they were sealed."""
    found = [
        record
        for chain, start in starts.items()
        for record in ledger.find(chain=chain, start=start, stop=stops[chain], **filters)
    ]
    return sorted(found, key=lambda record: record.signed_at)
