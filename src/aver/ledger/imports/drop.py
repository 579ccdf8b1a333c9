"""Drop an import as a whole: its chains, their records, and the blobs that nobody else needs.

Aver does these steps, in this order:

1. find the imported chains of the source. A chain that was made here is never one of them, whatever the store says:
   only a chain that a signed entry of `meta` calls imported counts, and only with exactly the records of that entry;
2. in one transaction, seal `chain.drop` in `meta` with the heads of these chains, and remove them.

The sealed entry excuses the chains' absence in every later verdict (see `history`). The same source can be
imported again. Chains that an older version imported under names of this ledger's own (`gate.default`) are dropped in
the same way, and the names are free again.

Dropping is no erasure: copies, bundles and the free pages of the database may still have the records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aver.capsule.aver_block import IMPORT_DOMAIN, RESERVED_CHAINS
from aver.capsule.draft import prepare_draft
from aver.capsule.sealed import hold_signer
from aver.errors import AverError, BadInput, IntegrityError, NotFound, Refused
from aver.fast_dataclass import dataclass
from aver.keys import LEDGER, Ring
from aver.ledger.imports.history import ImportEntry, read_import_history
from aver.ledger.imports.source import DIGITS, read_digits, source_from_ledger
from aver.ledger.ledger import Ledger
from aver.ledger.meta_chain import build_drop_entries
from aver.ledger.seen_heads import META_CHAIN
from aver.ledger.stores.protocol import ChainRow
from aver.verdict import ChainJudge, Rules
from aver.verdict.examiner import read_chain_identity

_SOURCE = re.compile(rf"(?:{IMPORT_DOMAIN}\.)?([0-9a-f]{{{DIGITS}}})\.?").fullmatch


@dataclass(frozen=True, slots=True)
class DroppedChain:
    """One chain that was removed: its name here, its original name and its length."""

    name: str
    origin: str
    count: int


@dataclass(frozen=True, slots=True)
class DropResult:
    """The result of a drop. `source` has the digits of the import, or the name of its only chain."""

    source: str
    chains: tuple[DroppedChain, ...]
    blobs: int


def drop_import(ledger: Ledger, source: str) -> DropResult:
    """Remove the import from `source`: its 16 digits, with or without `import.`, or the name of one of its chains.

    Raises `NotFound` if there is no such import, `Refused` for a chain that was made here, and `IntegrityError` if a
    chain is not as it was imported. Then nothing is removed.
    """
    with hold_signer(ledger.signer()) as signer:  # The first use of a key makes it.
        ring, fingerprint = ledger.keys.ring(), signer.fingerprint
    own = {entry.fingerprint for entry in ring.entries if entry.identity == LEDGER}
    if fingerprint not in own:
        raise BadInput("an import is dropped by the ledger's own key, and this signer has another")
    # 1.
    source, rows = _select_chains(ledger, source)
    history = read_import_history(ledger, ring)
    entries = {row.name: _confirm_import(ledger, row, history.imported.get(row.name)) for row in rows}
    strangers = {entry.signed_by for entry in entries.values()} - own
    if strangers:
        raise Refused(
            "NOT_PERMITTED",
            f"nothing was dropped: the key {min(strangers)} of another machine made this import",
            advice="drop it on that machine; elsewhere its chains would seem to be missing",
        )
    # 2.
    heads = {name: (entry.count, entry.hash) for name, entry in entries.items()}
    with ledger.transaction(META_CHAIN, *heads) as (transaction, append):
        for row in rows:
            if transaction.chain(ledger.tenant, row.name) != row:
                raise Refused("HEAD_MOVED", f"another process has just changed {row.name}", advice="try again")
        # The entry comes first: SQLite would give the row numbers of removed records to the next ones, and readers
        # that read on from a row would miss these.
        for draft in build_drop_entries(source, heads):
            append(META_CHAIN, prepare_draft(draft))
        blobs = transaction.remove_chains(ledger.tenant, rows)
    chains = tuple(DroppedChain(row.name, entries[row.name].origin, row.count) for row in rows)
    return DropResult(source, chains, blobs)


def find_squatters(rows: Iterable[ChainRow]) -> list[ChainRow]:
    """The chains that an older version imported under names which this ledger itself may need."""
    return [row for row in rows if row.frozen and row.name.partition(".")[0] != IMPORT_DOMAIN]


def _select_chains(ledger: Ledger, source: str) -> tuple[str, list[ChainRow]]:
    """The imported chains of a source, and its digits."""
    rows = ledger.store.chains(ledger.tenant)
    digits = {row.name: _find_digits(ledger, row) for row in rows if row.frozen}
    named, match = next((row for row in rows if row.name == source), None), _SOURCE(source)
    wanted = digits.get(source) if named is not None else None if match is None else match[1]
    if named is not None and not named.frozen:
        words = f"{source} was made here, and no command removes such a chain"
        raise Refused("NOT_IMPORTED", words, advice="aver log marks imported chains")
    if named is not None and wanted is None:
        # A chain of an old import that names no ledger: nothing tells which other chains came with it.
        return source, [named]
    found = [row for row in rows if row.frozen and wanted is not None and digits[row.name] == wanted]
    if not found or wanted is None:
        advice = "give the 16 digits after `import.` in the names of its chains, which aver log lists"
        raise NotFound(f"nothing was imported here as {ascii(source)[:120]}", advice=advice)
    return wanted, found


def _find_digits(ledger: Ledger, row: ChainRow) -> str | None:
    """The digits of an imported chain's source: from its name, or else from the ledger that its first record names."""
    digits = read_digits(row.name)
    if digits is not None:
        return digits
    try:
        named = read_chain_identity(next(ledger.read(row.name, 0, 1), None))
    except AverError:
        return None
    source = source_from_ledger(named.get("ledger"), named.get("tenant"))
    return None if source is None else source.digits


def _confirm_import(ledger: Ledger, row: ChainRow, entry: ImportEntry | None) -> ImportEntry:
    """Return the signed entry about a chain, if the chain has exactly the records that were imported.

    Somebody who can write the store could mark a chain of our own as imported, or put its records in the place of an
    imported one. To drop that would destroy evidence.
    """
    if entry is None or row.name in RESERVED_CHAINS:
        words = f"{row.name} is marked as imported, but no signed entry of the meta chain says so"
        raise IntegrityError("CHAIN_IDENTITY", f"nothing was dropped: {words}", advice="run: aver verify")
    # Content and links: then the last hash stands for all records. Signatures say nothing about being imported.
    judge = ChainJudge(Rules(Ring(), "content"), chain=row.name)
    count, last = 0, None
    for record in ledger.read(row.name):
        judge.judge(record)
        count, last = count + 1, record.hash
    failed = any(finding.status == "failed" for finding in judge.tally.findings)
    if failed or (count, last) != (entry.count, entry.hash) or ledger.store.has_record_beyond(row):
        words = f"{row.name} does not have the records that were imported"
        raise IntegrityError("ROLLBACK", f"nothing was dropped: {words}", advice="run: aver verify")
    return entry
