"""Verify a ledger: streaming, on all cores, and only the records that were there when it began.

1. The heads are read and fix the bound.
2. Each chain is judged in slices (see `slices`), each slice in one short read.
3. The ledger is compared with its own statements: head rows, keys, imports, and the heads remembered from before.
4. Examiners check the records of the rooms above the ledger: see `aver.verdict.examiner`. The ledger's own chains form
   one examination. Imported chains form one for each source, and each ledger and tenant that their first records
   name, so that an imported decision is compared with the approvals that were imported with it, and with no others.

Memory does not grow with the ledger.

A store that cannot be reached ends the verification with `Unavailable`: there is no verdict on records that were not
read. Only data that the store has and cannot read (`StoreDamaged`) is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from aver.capsule.aver_block import RESERVED_CHAINS, is_tenant_name
from aver.errors import AverError, BadInput, IntegrityError, NotFound, StoreDamaged, is_outage
from aver.keys import Ring
from aver.ledger.head import Head
from aver.ledger.imports.history import ImportHistory, read_import_history
from aver.ledger.imports.source import OLD_IMPORT, read_digits
from aver.ledger.key_history import (
    KeyEnd,
    KeyHistory,
    heads_at_ends,
    read_history,
    report_unrecorded,
    retirements_by_time,
)
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.ledger.seen_heads import META_CHAIN, HeadChecker, SeenHead, check_heads, check_keys_head
from aver.ledger.slices import KeyHistories, forget_blobs, judge_slice, judge_slices, split_into_slices, stored_hash
from aver.ledger.stores.protocol import ChainRow, NotALedger
from aver.ledger.verified_heads import (
    VerifiedChains,
    check_remembered_heads,
    save_meta_head,
    save_verified,
    try_load_verified,
    update_verified,
)
from aver.verdict import (
    ChainJudge,
    Examination,
    ExaminedChain,
    Examiner,
    Finding,
    Level,
    Place,
    Rules,
    Tally,
    Verdict,
    conclude,
)
from aver.verdict.chain import UNREADABLE_MAX
from aver.verdict.examiner import (
    EXAMINED_DOMAINS,
    ChainFollower,
    ValidRecords,
    examine,
    read_chain_identity,
    skip_examiners,
)

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger


def build_examinations(
    ledger: Ledger,
    rules: Rules,
    rows: Sequence[ChainRow],
    starts: Mapping[str, int],
    doubtful: set[str | None],
    *,
    histories: KeyHistories,
    is_single: bool,
    follower: ChainFollower | None = None,
) -> list[Examination]:
    """The examinations of the chains in `rows`. `doubtful` are those with findings, by their stored names.

    `histories` are those of the keys of imported ledgers. Our own keys chain says nothing about their keys. `follower`
    has taken the records of the one chain that is verified.
    """
    if not any(has_examined_domain(row.origin or row.name) for row in rows):
        return []
    chosen = {row.name for row in rows}
    # Another import may name the same ledger. It must not stand in for this one, nor an import for what is our own.
    own = "", ledger.id, ledger.tenant
    is_ours = _has_sealed_here(ledger, rules.ring)
    sources: dict[tuple[str, str, str], dict[str, ChainRow]] = {own: {}}
    for row in ledger.store.chains(ledger.tenant) if is_single else rows:
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
            roles = rules.roles if source == own else histories.get(source, KeyHistory()).roles
            held = replace(rules, roles=roles)
            # Chains that are only read along were not judged before.
            unjudged = {row.name for row in chains.values() if row.name not in chosen}
            names = {origin: row.name for origin, row in chains.items()}
            reader = ValidRecords(ledger, held, names, doubtful | unjudged, are_blobs_judged=not starts)
            # What was imported need not be all that the other ledger has.
            _, of_ledger, tenant = source
            found.append(
                Examination(
                    reader,
                    held,
                    of_ledger,
                    tenant,
                    examined,
                    is_complete=source == own,
                    is_single=is_single,
                    is_own=source == own and is_ours,
                    home=str(ledger.config.home) if source == own and is_ours else "",
                    verifier_home="" if rules.ring.closed else str(ledger.config.home),
                    follower=None if chosen & doubtful else follower,
                )
            )
    return found


def _has_sealed_here(ledger: Ledger, ring: Ring) -> bool:
    """Whether a key of the ring itself has begun a chain of this ledger. An auditor's ring has not."""
    if ring.closed or not ring.entries:
        return False
    # The ledger's own chains come first: in one's own ledger, a single record is read.
    rows = [row for row in ledger.store.chains(ledger.tenant) if not row.frozen]
    for row in sorted(rows, key=lambda row: row.name not in RESERVED_CHAINS):
        try:
            first = next(ledger.read(row.name, 0, 1), None)
            if first is None or ring.entry(first.signed_by) is None:
                continue
        except AverError as error:
            if is_outage(error):
                raise
            continue  # Reported with the chain.
        judge = ChainJudge(Rules(ring), chain=row.name, start=None)
        judge.judge(first)
        if judge.signer is not None and ring.entry(judge.signer.fingerprint) is not None:
            return True
    return False


def has_examined_domain(chain: str) -> bool:
    return chain.partition(".")[0] in EXAMINED_DOMAINS


def _read_origin(ledger: Ledger, row: ChainRow) -> tuple[str, tuple[str, str, str]]:
    """The name of an imported chain in its first record, and its source: digits, ledger and tenant."""
    try:
        named = read_chain_identity(next(ledger.read(row.name, 0, 1), None))
    except AverError as error:
        if is_outage(error):
            raise
        named = {}
    name, digits = named.get("name"), read_digits(row.name) or OLD_IMPORT
    source = digits, str(named.get("ledger", "")), str(named.get("tenant", ""))
    return (name if isinstance(name, str) else row.origin or row.name), source


Progress = Callable[[int, int], None]


Since = Head | VerifiedChains | Literal["last"]
"""Where to go on from: a trusted head, or the chains verified before, given or (`last`) noted on this machine."""


class LedgerExamination(NamedTuple):
    """A verdict, and the chains that are verified after it. The next examination can go on from these."""

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
    examiners: Sequence[Examiner] = (),
    seen: SeenHead = "stored",
) -> Verdict:
    """Verify one chain, or all chains of a tenant. Verifying `meta` compares every chain with its entry there."""
    return examine_ledger(
        ledger,
        chain,
        level=level,
        since=since,
        ring=ring,
        require_pq=require_pq,
        progress=progress,
        examiners=examiners,
        seen=seen,
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
    examiners: Sequence[Examiner] = (),
    seen: SeenHead = "stored",
    store_checked_with: str | None = None,
) -> LedgerExamination:
    """Verify, and note what was verified. Without `examiners` their checks are reported as not checked.

    `store_checked_with` names the tenant with which the whole store was checked just before.
    """
    tally = Tally()
    # A table or index that was altered could hide records from every query below. Then nothing else is worth asking.
    altered = ledger.store.schema_differences()
    if _has_altered_schema(ledger, altered, tally):
        before = since if isinstance(since, VerifiedChains) else VerifiedChains()
        return LedgerExamination(conclude(f"ledger {ledger.store.name}", tally, level=level), before.distrust([None]))
    # 1. Records that are appended from now on are left to the next verification. Keys, imports and drops are read after
    # that: another process may import, or rotate a key, at any time.
    rows = _select_chains(ledger, chain)
    ring = _renew_ring(ledger, ring)
    # Which records a retired key may have signed, and which imports were dropped, must be known before the first record
    # is judged.
    key_history = _read_key_history(ledger, ring, tally)
    rules = key_history.rules(Rules(ring, level, require_pq))
    history = _read_imports(ledger, rules, tally)
    rules = _excuse_dropped(rules, key_history, history)
    known = since if isinstance(since, VerifiedChains) else try_load_verified(ledger, tally)
    known = known.without_dropped(history)
    forget_blobs(ledger)
    empty = [row for row in rows if row.count == 0]
    if len(empty) > UNREADABLE_MAX:
        return _stop_reading(f"more than {UNREADABLE_MAX} chains have no records", level, tally, since)
    resumed = (
        {} if since is None or isinstance(since, Head) else known.resumable_heads(rows, ring, require_pq=require_pq)
    )
    starts = {name: head.count for name, head in resumed.items()} | _start_from_head(ledger, rows, since, tally)
    # 2. The records are judged.
    sources = _read_imported_histories(ledger, ring, rows)
    total = sum(row.count - starts.get(row.name, 0) for row in rows)
    done = failed = 0
    follower = _start_follower(ledger, rules, rows, examiners) if chain is not None and not starts else None
    for piece in judge_slices(ledger, rules, split_into_slices(ledger, rows, starts), total, sources, follower):
        tally.merge(piece)
        done += piece.records
        failed += any(finding.status == "failed" for finding in piece.findings)
        if failed > UNREADABLE_MAX:
            return _stop_reading(f"more than {UNREADABLE_MAX} pieces of it failed", level, tally, since)
        if progress:
            progress(done, total)
    # 3. The ledger is compared with its own statements.
    for row in rows:
        _check_head_row(ledger, row, tally)
    _check_heads_at_key_ends(ledger, key_history.ends, chain, history, tally)
    if not ring.closed:
        check_keys_head(ledger, tally)
    if chain not in (None, KEYS_CHAIN):
        _check_keys_chain(ledger, rules, tally)
    _check_imports((row for row in rows if row.name not in resumed), history, tally)
    tally.chains = len(rows)
    if chain is None and not resumed:
        _check_strays(ledger, tally)
        if store_checked_with is None:
            _check_store(ledger, altered, tally)
        else:
            tally.skip("store", f"checked once for all tenants, with tenant {store_checked_with}", matters=False)
    else:
        words = "only one chain was verified" if chain else "only new records were verified"
        tally.skip("store", words, matters=False)
    check_remembered_heads(ledger, chain, rows, known, resumed, history, tally, seen)
    # 4. Last, because examiners must not rely on a record of a chain with findings.
    doubtful = set(tally.doubtful)
    examinations = build_examinations(
        ledger, rules, rows, starts, doubtful, histories=sources, is_single=chain is not None, follower=follower
    )
    examine(examiners, examinations, tally)
    report_unrecorded(tally)  # After the examiners: those of traces vouch for the keys that joined.
    verdict = conclude(f"ledger {ledger.id}" if chain is None else f"chain {chain}", tally, level=level)
    if isinstance(since, Head) and verdict.status != "failed":
        return LedgerExamination(verdict, known)  # What lies before that head was not verified here.
    verified = update_verified(known, rows, resumed, tally, verdict, chain=chain, ring=ring, require_pq=require_pq)
    # Pinned keys are the caller's choice for this one call: what they accept must not count later.
    if not ring.closed:
        save_meta_head(ledger, rows, tally, verdict)
        save_verified(ledger, verified, history)
    return LedgerExamination(verdict, verified)


def _start_follower(
    ledger: Ledger, rules: Rules, rows: Sequence[ChainRow], examiners: Sequence[Examiner]
) -> ChainFollower | None:
    """A follower of the one chain in `rows`, from the examiner of its domain; None if there is none.

    Imported chains have none: they are judged by other rules than these.
    """
    if len(rows) != 1 or rows[0].frozen or rules.level != "signature":
        return None
    name = rows[0].name
    found = (each.follow for each in examiners if name.partition(".")[0] in each.domains)
    follow = next((each for each in found if each is not None), None)
    return None if follow is None else follow(rules, ledger.id, ledger.tenant, name)


def _renew_ring(ledger: Ledger, ring: Ring) -> Ring:
    """The ring of the ledger's home as it is now, if `ring` is an earlier state of it; otherwise `ring` itself.

    A key that was rotated after the caller had read the ring may have sealed some of the records to judge.
    """
    if ring.closed or not ring.entries:
        return ring
    now = ledger.keys.ring()
    is_earlier = {entry.key for entry in ring.entries} < {entry.key for entry in now.entries}
    return now if is_earlier else ring


def _stop_reading(words: str, level: Level, tally: Tally, since: Since | None) -> LedgerExamination:
    """End an examination that would cost far more than it can tell. It fails, and says what was not done."""
    tally.add(Finding("schema", "failed", "NOT_READ", f"{words}; the rest was not read"))
    for check in ("columns", "store", "meta", "rollback"):
        tally.skip(check, "the verifier stopped before", matters=True)
    before = since if isinstance(since, VerifiedChains) else VerifiedChains()
    return LedgerExamination(conclude("ledger", tally, level=level), before.distrust([None]))


def failed_verdict(subject: str, error: NotALedger | IntegrityError, level: Level) -> Verdict:
    """The verdict on a ledger that cannot be opened, because its header or its tables were changed."""
    tally = Tally()
    code = error.code if isinstance(error, IntegrityError) else "STORE_DAMAGED"
    tally.count_done("store")
    tally.add(Finding("store", "failed", code, str(error)))
    return conclude(subject, tally, level=level)


def _has_altered_schema(ledger: Ledger, altered: Iterable[str], tally: Tally) -> bool:
    """Whether a table or index by which records are found was altered. Then reading may miss records."""
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
    except StoreDamaged as error:
        damage = [error.message]
    for words in (*(f"{name} is not as Aver makes it" for name in altered), *damage):
        tally.add(Finding("store", "failed", "STORE_DAMAGED", words))


def _read_imports(ledger: Ledger, rules: Rules, tally: Tally) -> ImportHistory:
    try:
        return read_import_history(ledger, rules.ring, rules.retired)
    except StoreDamaged as error:
        tally.skip("meta", f"the meta chain cannot be read: {error.message}", matters=True)
        return ImportHistory()


def _check_imports(rows: Iterable[ChainRow], history: ImportHistory, tally: Tally) -> None:
    """Check that a signed entry of `meta` confirms every imported chain: less is demanded of such a chain."""
    for row in rows:
        if row.origin is not None and not row.frozen:
            words = "has a name from elsewhere, but was not imported"
            tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, Place(row.name)))
        if not row.frozen:
            continue
        tally.count_done("identity")
        entry = history.imported.get(row.name)
        if row.name in RESERVED_CHAINS or entry is None or entry.origin != row.origin:
            words = "said to be imported, but no signed entry of the meta chain says so"
            tally.add(Finding("identity", "failed", "CHAIN_IDENTITY", words, Place(row.name)))


def verify_record(ledger: Ledger, chain: str, sequence: int, *, level: Level, ring: Ring, require_pq: bool) -> Verdict:
    """The verdict on the one record at a place, and on its link to the record before it."""
    tally = Tally()
    if _has_altered_schema(ledger, ledger.store.schema_differences(), tally):
        return conclude(f"ledger {ledger.store.name}", tally, level=level)
    row = _select_chains(ledger, chain)[0]
    key_history = _read_key_history(ledger, ring, tally)
    rules = key_history.rules(Rules(ring, level, require_pq))
    imports = _read_imports(ledger, rules, tally)
    rules = _excuse_dropped(rules, key_history, imports)
    sources = _read_imported_histories(ledger, ring, [row])
    tally.merge(judge_slice(ledger, rules, row, sequence, sequence + 1, sources))
    report_unrecorded(tally)
    if chain != KEYS_CHAIN:
        _check_keys_chain(ledger, rules, tally)
    _check_imports([row], imports, tally)
    tally.chains = 1
    tally.skip("meta", "only one record was verified", matters=False)
    skip_examiners((row.origin or row.name).partition(".")[0], "only one record was verified", tally)
    return conclude(f"record {sequence} of chain {chain}", tally, level=level)


def _select_chains(ledger: Ledger, chain: str | None) -> list[ChainRow]:
    if chain is None:
        return ledger.store.chains(ledger.tenant)
    row = ledger.store.chain(ledger.tenant, chain)
    if row is None and chain != META_CHAIN:
        raise NotFound(f"there is no chain {chain} in this ledger", advice="aver log lists the chains")
    return [] if row is None else [row]


def _start_from_head(ledger: Ledger, rows: list[ChainRow], since: Since | None, tally: Tally) -> dict[str, int]:
    """Where to begin, given a head that the caller trusts. The chain must still contain that head."""
    if not isinstance(since, Head):
        return {}
    if len(rows) != 1 or (since.ledger, since.tenant, since.chain) != (ledger.id, ledger.tenant, rows[0].name):
        raise BadInput("since= takes a head of the very chain to verify, in this ledger and tenant")
    check_heads(ledger, [since], tally, check="links", remembered="the trusted head")
    return {since.chain: min(since.count, rows[0].count)}


def _read_key_history(ledger: Ledger, ring: Ring, tally: Tally) -> KeyHistory:
    try:
        identity = {"ledger": ledger.id, "tenant": ledger.tenant}
        return read_history(ring, ledger.read(KEYS_CHAIN), ledger.blob, identity)
    except NotFound:
        pass
    except StoreDamaged as error:
        words = f"the chain {KEYS_CHAIN!r} cannot be read, so only times show how long keys were valid: {error.message}"
        tally.skip("keys", words, matters=True)
    return KeyHistory(retirements_by_time(ring))


def _excuse_dropped(rules: Rules, keys: KeyHistory, imports: ImportHistory) -> Rules:
    """The rules without the places of imports that were dropped: another chain may have the name of an old import."""
    dropped = {
        name
        for end in keys.ends
        for name, (count, digest) in end.heads.items()
        if imports.has_dropped(Head("", "", name, count, digest))
    }
    if not dropped:
        return rules
    began = {key: {name: n for name, n in counts.items() if name not in dropped} for key, counts in rules.began.items()}
    return replace(rules, began=began)


def _read_imported_histories(ledger: Ledger, ring: Ring, rows: Iterable[ChainRow]) -> KeyHistories:
    """The history of keys of every ledger and tenant that imported chains are from."""
    if not any(row.frozen for row in rows):
        return {}
    found: KeyHistories = {}
    for row in ledger.store.chains(ledger.tenant):
        if row.frozen and row.origin == KEYS_CHAIN:
            _, source = _read_origin(ledger, row)
            try:
                identity = dict(zip(("ledger", "tenant"), source[1:], strict=True))
                found.setdefault(source, read_history(ring, ledger.read(row.name), ledger.blob, identity))
            except (NotFound, StoreDamaged):
                continue  # Reported where the chain itself is judged.
    return found


def _check_keys_chain(ledger: Ledger, rules: Rules, tally: Tally) -> None:
    """Check the `keys` chain, which limits retired keys, also where another chain is verified."""
    row = ledger.store.chain(ledger.tenant, KEYS_CHAIN)
    for piece in () if row is None else split_into_slices(ledger, [row], {}):
        failed = (found for found in judge_slice(ledger, rules, *piece).findings if found.status == "failed")
        if (first := next(failed, None)) is not None:
            tally.add(replace(first, check="keys"))
            return


def _check_heads_at_key_ends(
    ledger: Ledger, ends: Iterable[KeyEnd], chain: str | None, history: ImportHistory, tally: Tally
) -> None:
    """Compare chains with their heads when a key was retired: its holder could have signed another past since."""
    ends = tuple(ends)
    latest = heads_at_ends(ends)
    if not latest:
        return
    # How many entries `meta` had when each of these heads was noted.
    entries = {name: end.heads.get(META_CHAIN, (0, ""))[0] for end in ends for name in end.heads}
    checker = HeadChecker.for_ledger(ledger, tally, check="keys", excuse=history.has_dropped)
    for name, end_head in latest.items():
        if chain in (None, name):
            head = Head(ledger.id, ledger.tenant, name, *end_head)
            checker.check([head], "the newest rotation", entries[name])


def _check_head_row(ledger: Ledger, row: ChainRow, tally: Tally) -> None:
    """Check that the head row, which appending continues from, names the last record."""
    if row.count == 0 and not row.frozen:
        # Aver adds the row and its first record in one transaction. An imported chain may be empty where it is from.
        words = "the chain has a head row and no records: they were removed, or somebody else made the row"
        tally.add(Finding("columns", "failed", "TRUNCATED", words, Place(row.name, 0)))
    last = stored_hash(ledger, row, row.count - 1)
    if last is not None and last != row.head:
        words = "the head row does not name the chain's last record"
        tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, Place(row.name, row.count - 1)))
    try:
        beyond = ledger.store.has_record_beyond(row)
    except StoreDamaged as error:
        tally.skip("columns", f"records beyond the head rows could not be looked for: {error.message}", matters=True)
        return
    if beyond:
        words = f"records lie beyond the {row.count} that the head row counts"
        tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, Place(row.name, row.count)))


def _check_strays(ledger: Ledger, tally: Tally) -> None:
    """Report records that are stored twice, and records that belong to no chain."""
    try:
        for column, chain, sequence in ledger.store.find_repeated(ledger.tenant):
            words = f"its {column} occurs before"
            tally.add(Finding("columns", "failed", "DUPLICATE_RECORD", words, Place(chain, sequence)))
        if orphans := ledger.store.count_orphans(ledger.tenant):
            words = f"{orphans} records belong to no chain: the head row of theirs was removed"
            tally.add(Finding("columns", "failed", "CHAIN_MISSING", words))
    except StoreDamaged as error:
        tally.skip("columns", f"repeated records could not be looked for: {error.message}", matters=True)
