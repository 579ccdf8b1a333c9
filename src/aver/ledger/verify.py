"""Verifying a ledger: streaming, over all cores, and only what was there when it began.

The heads are read first and fix the bound. Then each chain is judged in slices (see `slices`), each slice in one short
read. At last the ledger is held to what it says of itself: head rows, keys, imports, and what is remembered of it.
Memory does not grow with the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from aver.capsule.aver_block import RESERVED_CHAINS, is_tenant_name
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound, Unavailable
from aver.keys import Ring
from aver.ledger.examiners import VerificationScope, run_examiners
from aver.ledger.head import Head
from aver.ledger.keys_chain import KEYS_CHAIN, KeyEnd, heads_at_ends, key_ends, retirements
from aver.ledger.meta_chain import read_imports
from aver.ledger.parallel import judge_slices
from aver.ledger.seen_heads import META_CHAIN, check_heads
from aver.ledger.slices import judge_slice, split_into_slices, stored_hash
from aver.ledger.stores.rows import ChainRow
from aver.ledger.verified_heads import (
    VerifiedChains,
    check_remembered_heads,
    save_meta_head,
    save_verified,
    try_load_verified,
    update_verified,
)
from aver.verdict import ChainJudge, Finding, Level, Place, Retirement, Rules, Tally, Verdict, conclude

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = [
    "LedgerExamination",
    "Since",
    "examine_ledger",
    "only_valid",
    "verify_ledger",
    "verify_record",
]

Progress = Callable[[int, int], None]


Since = Head | VerifiedChains | Literal["last"]
"""Where to go on from: a head that is trusted, or what was verified before, here or (`last`) on this machine."""


class LedgerExamination(NamedTuple):
    """A verdict, and what is known of the chains after it: the next examination can go on from that."""

    verdict: Verdict
    verified: VerifiedChains


def verify_ledger(
    ledger: Ledger,
    chain: str | None,
    *,
    level: Level,
    since: Since | None,
    ring: Ring,
    require_pq: bool,
    progress: Progress | None = None,
) -> Verdict:
    """The verdict on one chain, or on all of a tenant's. That on `meta` holds every chain to what it records of it."""
    return examine_ledger(
        ledger, chain, level=level, since=since, ring=ring, require_pq=require_pq, progress=progress
    ).verdict


def examine_ledger(
    ledger: Ledger,
    chain: str | None,
    *,
    level: Level,
    since: Since | None,
    ring: Ring,
    require_pq: bool,
    progress: Progress | None = None,
) -> LedgerExamination:
    """Verify, and note what was verified."""
    tally = Tally()
    altered = ledger.store.schema_differences()
    if _has_altered_schema(ledger, altered, tally):
        before = since if isinstance(since, VerifiedChains) else VerifiedChains()
        return LedgerExamination(conclude(f"ledger {ledger.store.name}", tally, level=level), before.distrust([None]))
    known = since if isinstance(since, VerifiedChains) else try_load_verified(ledger, tally)
    rows = _select_chains(ledger, chain)
    resumed = (
        {} if since is None or isinstance(since, Head) else known.resumable_heads(rows, ring, require_pq=require_pq)
    )
    starts = {name: head.count for name, head in resumed.items()} | _start_from_head(ledger, rows, since, tally)
    ends = _read_key_ends(ledger, ring, tally)
    rules = Rules(ring, level, require_pq, retirements(ring, ends))
    total = sum(row.count - starts.get(row.name, 0) for row in rows)
    done = 0
    for piece in judge_slices(ledger, rules, split_into_slices(ledger, rows, starts), total):
        tally.merge(piece)
        done += piece.records
        if progress:
            progress(done, total)
    for row in rows:
        _check_head_row(ledger, row, tally)
    _check_heads_at_key_ends(ledger, ends, chain, tally)
    if chain not in (None, KEYS_CHAIN):
        _check_keys_chain(ledger, rules, tally)
    _check_imports(ledger, rules, (row for row in rows if row.name not in resumed), tally)
    tally.chains = len(rows)
    if chain is None and not resumed:
        _check_strays(ledger, tally)
        _check_store(ledger, altered, tally)
    else:
        words = "only one chain was verified" if chain else "only what came since was verified"
        tally.skip("store", words, matters=False)
    check_remembered_heads(ledger, chain, rows, known, resumed, tally)
    run_examiners(ledger, VerificationScope(rules, rows, starts), tally)
    verdict = conclude(f"ledger {ledger.id}" if chain is None else f"chain {chain}", tally, level=level)
    if isinstance(since, Head) and verdict.status != "failed":
        return LedgerExamination(verdict, known)  # What lies before that head was not verified here.
    verified = update_verified(known, rows, resumed, tally, verdict, chain=chain, ring=ring, require_pq=require_pq)
    if not ring.closed:
        save_meta_head(ledger, rows, tally, verdict)
        save_verified(ledger, verified)
    return LedgerExamination(verdict, verified)


def _has_altered_schema(ledger: Ledger, altered: Iterable[str], tally: Tally) -> bool:
    """Whether what records are read by was altered. Then nothing that is read can be trusted to be all there is."""
    fatal = [name for name in altered if name in ledger.store.essential_indexes or not name.startswith("index ")]
    for name in fatal:
        tally.add(Finding("store", "failed", "STORE_DAMAGED", f"{name} is not as Aver makes it"))
    return bool(fatal)


def _check_store(ledger: Ledger, altered: Iterable[str], tally: Tally) -> None:
    """The store's tables and indexes must agree, or readers may see what no verifier sees."""
    tally.count_done("store")
    try:
        if remarks := ledger.store.limitations():
            tally.notes["store"] = "; ".join(remarks)
        strangers = [name for name in ledger.store.tenants() if not is_tenant_name(name)]
        nameless = [f"rows belong to {ascii(name)[:80]}, which is no tenant" for name in strangers]
        damage = [*nameless, *ledger.store.find_damage()]
    except Unavailable as error:
        damage = [error.message]
    for words in (*(f"{name} is not as Aver makes it" for name in altered), *damage):
        tally.add(Finding("store", "failed", "STORE_DAMAGED", words))


def _check_imports(ledger: Ledger, rules: Rules, rows: Iterable[ChainRow], tally: Tally) -> None:
    """A chain that is called imported is excused from much; so a signed entry of `meta` must say that it is."""
    said: dict[str, str] | None = None
    for row in rows:
        if row.origin is not None and not row.frozen:
            words = "has a name from elsewhere, but was not imported"
            tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, Place(row.name)))
        if not row.frozen:
            continue
        if said is None:
            try:
                said = read_imports(only_valid(rules.ring, ledger.read(META_CHAIN), META_CHAIN, rules.retired))
            except (NotFound, Unavailable):
                said = {}
        tally.count_done("identity")
        if row.name in RESERVED_CHAINS or row.origin is None or said.get(row.name) != row.origin:
            words = "said to be imported, but no signed entry of the meta chain says so"
            tally.add(Finding("identity", "failed", "CHAIN_IDENTITY", words, Place(row.name)))


def verify_record(ledger: Ledger, chain: str, sequence: int, *, level: Level, ring: Ring, require_pq: bool) -> Verdict:
    """The verdict on the one record at a place, and on its link to the record before it."""
    tally = Tally()
    if _has_altered_schema(ledger, ledger.store.schema_differences(), tally):
        return conclude(f"ledger {ledger.store.name}", tally, level=level)
    row = _select_chains(ledger, chain)[0]
    retired = retirements(ring, _read_key_ends(ledger, ring, tally))
    rules = Rules(ring, level, require_pq, retired)
    tally.merge(judge_slice(ledger, rules, row, sequence, sequence + 1))
    if chain != KEYS_CHAIN:
        _check_keys_chain(ledger, rules, tally)
    _check_imports(ledger, rules, [row], tally)
    tally.chains = 1
    tally.skip("meta", "only one record was verified", matters=False)
    return conclude(f"record {sequence} of chain {chain}", tally, level=level)


def _select_chains(ledger: Ledger, chain: str | None) -> list[ChainRow]:
    rows = ledger.store.chains(ledger.tenant)
    if chain is None:
        return rows
    rows = [row for row in rows if row.name == chain]
    if not rows and chain != META_CHAIN:
        raise NotFound(f"there is no chain {chain} in this ledger", advice="aver log lists the chains")
    return rows


def _start_from_head(ledger: Ledger, rows: list[ChainRow], since: Since | None, tally: Tally) -> dict[str, int]:
    """Where to begin, by a head that the caller trusts. The chain must still contain it, at its place."""
    if not isinstance(since, Head):
        return {}
    if len(rows) != 1 or (since.ledger, since.tenant, since.chain) != (ledger.id, ledger.tenant, rows[0].name):
        raise BadInput("since= takes a head of the very chain to verify, in this ledger and tenant")
    check_heads(ledger, [since], tally, check="links", remembered="the trusted head")
    return {since.chain: min(since.count, rows[0].count)}


def _read_key_ends(ledger: Ledger, ring: Ring, tally: Tally) -> list[KeyEnd]:
    try:
        return key_ends(ring, only_valid(ring, ledger.read(KEYS_CHAIN)), ledger.blob)
    except NotFound:
        return []
    except Unavailable as error:
        words = (
            f"the chain {KEYS_CHAIN!r} cannot be read, so only times tell until when keys were good: {error.message}"
        )
        tally.skip("keys", words, matters=True)
        return []


def _check_keys_chain(ledger: Ledger, rules: Rules, tally: Tally) -> None:
    """Until where a key was good, the `keys` chain tells: so it must hold, also where another chain is verified."""
    row = ledger.store.chain(ledger.tenant, KEYS_CHAIN)
    for piece in () if row is None else split_into_slices(ledger, [row], {}):
        failed = (found for found in judge_slice(ledger, rules, *piece).findings if found.status == "failed")
        if (first := next(failed, None)) is not None:
            tally.add(replace(first, check="keys"))
            return


def _check_heads_at_key_ends(ledger: Ledger, ends: Iterable[KeyEnd], chain: str | None, tally: Tally) -> None:
    """Hold chains to where they were when a key ended: whoever holds that key could have signed another past."""
    latest = heads_at_ends(ends).items()
    heads = [Head(ledger.id, ledger.tenant, name, *end) for name, end in latest if chain in (None, name)]
    if heads:
        check_heads(ledger, heads, tally, check="keys", remembered="the newest rotation")


def only_valid(
    ring: Ring, records: Iterable[Sealed], chain: str | None = None, retired: Mapping[str, Retirement] | None = None
) -> Iterator[Sealed]:
    """Those records of the `keys` or `meta` chain whose own content and signature hold.

    Given the chain and which keys were `retired`, also not those that a retired key has signed beyond its time.
    """
    rules = Rules(ring, retired=retired or {})
    for record in records:
        judge = ChainJudge(rules, chain=chain, start=None)
        judge.judge(record)
        signer = judge.signer
        if not judge.tally.findings and signer is not None and signer.fingerprint == record.signed_by:
            yield record


def _check_head_row(ledger: Ledger, row: ChainRow, tally: Tally) -> None:
    """The head row is what appends go by: it must name the last record that is there."""
    last = stored_hash(ledger, row, row.count - 1)
    if last is not None and last != row.head:
        words = "the head row does not name the chain's last record"
        tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, Place(row.name, row.count - 1)))
    try:
        beyond = ledger.store.has_record_beyond(row)
    except Unavailable as error:
        tally.skip("columns", f"records beyond the head rows could not be looked for: {error.message}", matters=True)
        return
    if beyond:
        words = f"records lie beyond the {row.count} that the head row counts"
        tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, Place(row.name, row.count)))


def _check_strays(ledger: Ledger, tally: Tally) -> None:
    """Records that stand twice, and records that belong to no chain."""
    try:
        for column, chain, sequence in ledger.store.find_repeated(ledger.tenant):
            words = f"its {column} occurs before"
            tally.add(Finding("columns", "failed", "DUPLICATE_RECORD", words, Place(chain, sequence)))
        if orphans := ledger.store.count_orphans(ledger.tenant):
            words = f"{orphans} records belong to no chain: the head row of theirs was removed"
            tally.add(Finding("columns", "failed", "CHAIN_MISSING", words))
    except Unavailable as error:
        tally.skip("columns", f"repeated records could not be looked for: {error.message}", matters=True)
