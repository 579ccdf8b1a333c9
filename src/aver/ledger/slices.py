"""Judging the chains of a ledger in slices.

A slice continues from the stored hash of the record before it. The slice before compares that hash with the record's
content. So slices are independent: worker processes may judge them, and their tallies merge in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from aver.capsule.blobs import record_references, written_digests
from aver.errors import AverError, StoreDamaged, is_outage
from aver.ledger.imports.source import OLD_IMPORT, read_digits
from aver.ledger.key_history import KeyHistory
from aver.ledger.stores.protocol import ChainRow, RecordRow
from aver.verdict import ChainJudge, Finding, Place, Retirement, Rules, Tally
from aver.verdict.chain import JUDGED_TOGETHER
from aver.verdict.examiner import ChainFollower, guard, read_chain_identity
from aver.verdict.parallel import judge_pieces
from aver.verdict.record import column_values, imported_column_values

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

PARALLEL_FROM = 25_000
"""Records below which one process is done sooner than a worker has started."""

SLICE_LENGTH = 2000
"""Records per piece of work: long enough to cost nothing extra, short enough to spread and to read in one go."""

Slice = tuple[ChainRow, int, int]
"""A chain and the range of its records to judge."""


def split_into_slices(ledger: Ledger, rows: list[ChainRow], starts: Mapping[str, int]) -> Iterator[Slice]:
    """The ranges to judge. A range without records is one slice, whatever length the head row claims."""
    for row in rows:
        begin = starts.get(row.name, 0)
        while begin < row.count:
            try:
                # A forged head row could claim 2**63 records: jump over the places where there are none.
                first = ledger.store.next_sequence(row, begin)
            except StoreDamaged:
                first = begin
            end = row.count if first is None else first
            if end == begin:
                end = min(begin + SLICE_LENGTH, row.count)
            yield row, begin, end
            begin = end


KeyHistories = dict[tuple[str, str, str], KeyHistory]
"""The history of the keys of other ledgers whose chains were imported, by `identify_source`."""


def identify_source(stored: str, named: Mapping[str, Any]) -> tuple[str, str, str]:
    """The source of an imported chain: the digits in its name here, and the ledger and tenant in its first record.

    Two imports may claim the same ledger. Their digits keep them apart.
    """
    return read_digits(stored) or OLD_IMPORT, str(named.get("ledger", "")), str(named.get("tenant", ""))


def judge_slices(
    ledger: Ledger,
    rules: Rules,
    slices: Iterator[Slice],
    total: int,
    sources: KeyHistories,
    follower: ChainFollower | None = None,
) -> Iterator[Tally]:
    """The tally of every slice, in the order of the slices. `sources` are for imported chains.

    `follower` takes the records of the one chain that is verified, if they are judged in this process.
    """

    def judge_here(piece: Slice) -> Tally:
        return judge_slice(ledger, rules, *piece, sources)

    if total < PARALLEL_FROM:
        return (judge_slice(ledger, rules, *piece, sources, follower) for piece in slices)
    # Each worker opens the ledger itself: only the bounds of a slice go to it, and only a tally comes back.
    open_judge = partial(_open_slice_judge, ledger.store.url, ledger.tenant, ledger.config.home, rules, sources)
    return judge_pieces(open_judge, judge_here, slices)


@contextmanager
def _open_slice_judge(
    url: str, tenant: str, home: Path, rules: Rules, sources: KeyHistories
) -> Iterator[Callable[[Slice], Tally]]:
    """Open the ledger in a worker. It is pickled by name, so it cannot be a nested function."""
    from aver.ledger.ledger import open_ledger

    with open_ledger(url, tenant=tenant, home=home, create=False) as ledger:
        yield lambda piece: judge_slice(ledger, rules, *piece, sources)


def judge_slice(
    ledger: Ledger,
    rules: Rules,
    row: ChainRow,
    begin: int,
    end: int,
    sources: KeyHistories | None = None,
    follower: ChainFollower | None = None,
) -> Tally:
    """Judge the records of a chain from `begin` up to `end`. Raises `Unavailable` if the store cannot be reached."""
    # Less is demanded of an imported chain. So the mark alone does not make a chain imported: an attacker could set it.
    named = _read_first_identity(ledger, row) if row.frozen else {}
    own = not row.frozen or (named.get("ledger"), named.get("tenant")) == (ledger.id, row.tenant)
    if own:
        identity = {"name": row.name, "ledger": ledger.id, "tenant": row.tenant}
    else:
        identity = {"name": row.origin or row.name}
        rules = rules_for_imported(rules, row.name, identity["name"], named, sources or {})
    previous = stored_hash(ledger, row, begin - 1)
    columns_of = imported_column_values if row.frozen else column_values
    judge = ChainJudge(
        rules,
        chain=row.name,
        start=begin,
        previous=previous,
        identity=identity,
        columns_of=columns_of,
        needs_block=own,
    )
    try:
        with ledger.store.read_rows(row, begin, end) as stored:
            expected = begin
            while together := list(islice(stored, JUDGED_TOGETHER)):
                judge.verify_ahead(each.sealed for each in together)
                _read_blobs_ahead(ledger, together)
                readable = []
                for sequence, sealed, columns, tenant in together:
                    if expected < sequence:  # A gap is one finding, however long it is.
                        judge.missing(int(sequence) - expected)
                        expected = int(sequence)
                    content = judge.judge(sealed, columns)
                    # The row itself, which the chain's judge does not see: its place, its tenant, its blobs.
                    if type(sequence) is not int or sequence != expected or tenant != row.tenant:
                        _report_misplaced(row, sequence, tenant, expected, judge.tally)
                    if content is not None:
                        if sealed.canonical.find(b'"blob":{') >= 0:
                            _check_blobs(ledger, content, sealed.canonical, Place(row.name, expected), judge.tally)
                        sealed.keep_content(content)
                        readable.append(sealed)
                    expected += 1
                if follower is not None:
                    follower.take(readable)
            if expected < end:
                judge.missing(end - expected)
    except StoreDamaged as error:
        if begin + 1 == end:
            judge.unreadable(f"the store cannot read this record: {error.message}")
            return judge.finish()
        # Judge record by record, so that a damaged page of the file costs only the records on it.
        tally = Tally()
        for sequence in range(begin, min(end, begin + SLICE_LENGTH)):
            tally.merge(judge_slice(ledger, rules, row, sequence, sequence + 1, sources))
        return tally
    return judge.finish()


def _report_misplaced(row: ChainRow, sequence: Any, tenant: Any, expected: int, tally: Tally) -> None:
    """Report a row that is not stored at its place, or not for the tenant of its chain."""
    place = Place(row.name, expected)
    if type(sequence) is not int or sequence != expected:
        words = f"the record is stored at {ascii(sequence)[:40]}, which is not its place"
        tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, place))
    if tenant != row.tenant:
        words = "the column tenant is not the chain's"
        tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, place))


def _check_blobs(ledger: Ledger, content: dict[str, Any], text: bytes, place: Place, tally: Tally) -> None:
    """Check that the blobs of a record are here."""
    with guard(tally, "blobs", place):
        for digest, size in record_references(content, text):
            if ledger.are_blobs_left_out:
                tally.skip("blobs", "the bundle was made without its blobs", matters=True)
                return
            tally.count_done("blobs")
            try:
                actual = _blob_size(ledger, digest)
            except StoreDamaged as error:
                words = f"the blob {digest} cannot be read: {error.message}"
                tally.add(Finding("blobs", "failed", "ARTIFACT_MISSING", words, place))
                continue
            if actual is None:
                tally.add(Finding("blobs", "failed", "ARTIFACT_MISSING", f"the blob {digest} is not here", place))
            elif actual != size:
                words = f"the blob stored as {digest} has other bytes"
                tally.add(Finding("blobs", "failed", "ARTIFACT_HASH_MISMATCH", words, place))


BLOBS_KEPT = 10_000
"""Blobs whose sizes are kept during a verification: records may refer to one large blob very often."""

BLOBS_READ_TOGETHER = 64
"""Blobs that one query reads. The largest of them take 4 MiB together."""

_blob_sizes: WeakKeyDictionary[Ledger, dict[str, int | None]] = WeakKeyDictionary()


def forget_blobs(ledger: Ledger) -> None:
    """Forget which blobs were read. A verification begins with this: a blob may have been changed since."""
    _blob_sizes.pop(ledger, None)


def _read_blobs_ahead(ledger: Ledger, rows: Iterable[RecordRow]) -> None:
    """Read the small blobs of the next records in one query. `_blob_size` reads the others, one by one."""
    known = _blob_sizes.setdefault(ledger, {})
    wanted = {digest: None for row in rows for digest in written_digests(row.sealed.canonical) if digest not in known}
    if not wanted:
        return
    try:
        found = ledger.store.small_blobs(ledger.tenant, list(islice(wanted, BLOBS_READ_TOGETHER)))
    except StoreDamaged:
        return  # One of them cannot be read. `_blob_size` finds out which.
    _make_room(known, len(found))
    for digest, data in found:
        known[digest] = len(data) if hashlib.sha256(data).hexdigest() == digest else -1


def _make_room(known: dict[str, int | None], number: int) -> None:
    if len(known) + number > BLOBS_KEPT:
        known.clear()


def _blob_size(ledger: Ledger, digest: str) -> int | None:
    """How many bytes a blob has; -1 if they are not those of its digest, None if there is none. Each is read once."""
    known = _blob_sizes.setdefault(ledger, {})
    if digest not in known:
        blob = ledger.store.blob(ledger.tenant, digest)
        _make_room(known, 1)
        known[digest] = None if blob is None else len(blob.data) if blob.digest == digest else -1
    return known[digest]


def stored_hash(ledger: Ledger, row: ChainRow, sequence: int) -> str | None:
    """The stored hash of a record; None if there is none or it cannot be read, which its own slice reports."""
    try:
        return ledger.store.hash_at(row, sequence) if sequence >= 0 else None
    except StoreDamaged:
        return None


def _read_first_identity(ledger: Ledger, row: ChainRow) -> Mapping[str, Any]:
    """Read which chain a first record names. One that names this ledger is our own, though marked as imported."""
    try:
        with ledger.store.read_rows(row, 0, 1) as stored:
            return next((read_chain_identity(item.sealed) for item in stored), {})
    except AverError as error:
        if is_outage(error):
            raise
        return {}


def rules_for_imported(
    rules: Rules, stored: str, origin: str, named: Mapping[str, Any], sources: KeyHistories
) -> Rules:
    """The rules for a chain that is called `stored` here, was `origin`, and says in its first record what it is.

    The history of its own ledger's keys counts, if it is here. Our own `keys` chain limits a retired key only in chains
    that were here before the retirement. Elsewhere the time limits it. Only Aver's own chains need recorded keys.
    """
    history = sources.get(identify_source(stored, named)) or KeyHistory()
    retired = {}
    for signer in {*rules.retired, *history.retired}:
        ours, theirs = rules.retired.get(signer, Retirement()), history.retired.get(signer)
        if ours.limits is not None and stored in ours.limits:
            retired[signer] = Retirement(ours.retired_at, {origin: ours.limits[stored]})
        else:
            retired[signer] = theirs or Retirement(ours.retired_at)
    recorded = frozenset(history.roles) if named.get("ledger") else None
    return replace(rules, retired=retired, roles=history.roles, recorded=recorded, began=history.began)
