"""Which chains of a ledger examiners have to look at, and under which names.

The ledger's own chains form one examination. Imported chains form one for each ledger and tenant that their first
records name, so that an imported decision is compared with the approvals that were imported with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aver.errors import AverError
from aver.ledger.stores.rows import ChainRow
from aver.verdict import Examination, ExaminedChain, Rules
from aver.verdict.examiner import EXAMINED_DOMAINS, ValidRecords, read_chain_identity

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = ["build_examinations", "has_examined_domain"]


def build_examinations(
    ledger: Ledger,
    rules: Rules,
    rows: Sequence[ChainRow],
    starts: Mapping[str, int],
    doubtful: set[str | None],
    *,
    is_single: bool,
) -> list[Examination]:
    """The examinations of the chains in `rows`. `doubtful` are those with findings, by their stored names."""
    if not any(has_examined_domain(row.origin or row.name) for row in rows):
        return []
    chosen = {row.name for row in rows}
    own = ledger.id, ledger.tenant
    sources: dict[tuple[str, str], dict[str, ChainRow]] = {own: {}}
    # Own chains first: an imported chain cannot take the name of one of them.
    for row in sorted(ledger.store.chains(ledger.tenant) if is_single else rows, key=lambda row: row.frozen):
        if has_examined_domain(row.origin or row.name):
            origin, source = _read_origin(ledger, row) if row.frozen else (row.name, own)
            sources.setdefault(source, {}).setdefault(origin, row)
    found = []
    for source, chains in sources.items():
        examined = tuple(
            ExaminedChain(row.name, origin, row.count, starts.get(row.name, 0))
            for origin, row in chains.items()
            if row.name in chosen
        )
        if examined:
            reader = ValidRecords(ledger, rules, {origin: row.name for origin, row in chains.items()}, doubtful)
            # What was imported need not be all that the other ledger has.
            found.append(Examination(reader, rules, *source, examined, is_complete=source == own, is_single=is_single))
    return found


def has_examined_domain(chain: str) -> bool:
    return chain.partition(".")[0] in EXAMINED_DOMAINS


def _read_origin(ledger: Ledger, row: ChainRow) -> tuple[str, tuple[str, str]]:
    """The name, and the ledger and tenant, that the first record of an imported chain gives it."""
    try:
        named = read_chain_identity(next(ledger.read(row.name, 0, 1), None))
    except AverError:
        named = {}
    name, source = named.get("name"), (str(named.get("ledger", "")), str(named.get("tenant", "")))
    return (name if isinstance(name, str) else row.origin or row.name), source
