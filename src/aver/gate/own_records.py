"""Records that the gate relies on: verified, in one of this ledger's own chains, and sealed by its own ring.

The gate reads who may approve (`approvers.<tenant>`), what was asked and answered (`approvals.<tenant>`), and what a
session did before (`gate.<session>` and the records of its calls). Anybody who can write to the store can put records
there. A record counts only if all of this holds:

1. Its chain is not imported.
2. It passes every rule of `aver.verdict.chain`, and its signatures were checked: an unknown signer does not pass.
3. The key is an entry of the ring in `AVER_HOME`, and its purpose is `seal`. A known key (`aver keys trust`) is another
   party's key, so it does not count.
4. All records up to the head that the caller read are there.
5. If the key is retired, the ledger has recorded that, as this machine remembers, and the chain still has the head that
   it had then. Else the holder of an old key could write another past.

`OwnRecords` raises `IntegrityError` at the first record that does not count. The gate then allows nothing.

A process verifies the same bytes once: it keeps the last records that counted, and the ring by which they did. A record
that is read again is compared with them byte by byte, seal included. With any difference, or with another ring, it is
verified as if it were new. Records that a retired key has sealed are not kept. `keep_sealed` keeps records that this
process has sealed itself: it knows their bytes before any store had them.

Hooks load this module, so it imports little.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from aver.capsule.aver_block import read_block
from aver.capsule.sealed import Sealed, content_hash
from aver.errors import IntegrityError, NotFound
from aver.keys.ring import Ring
from aver.ledger import Head, Ledger
from aver.verdict import ChainJudge, Rules

if TYPE_CHECKING:
    from aver.ledger.key_history import KeyHistory

SEAL_PURPOSE = "seal"

KEPT_MAX = 256
"""Verified records that a process keeps. A long-lived one reads the newest few of its sessions again and again."""

KEPT_SIZE_MAX = 64 * 1024
"""Largest record that is kept, in bytes: all of them together stay below 16 MiB."""

_kept: OrderedDict[tuple[str, str, str, str], tuple[Ring | None, Sealed]] = OrderedDict()
"""The records that counted, and the ring by which they did, by ledger, tenant, chain and hash.

The ring is None for a record that this process sealed, until it is read for the first time."""

_own_chains: set[tuple[str, str, str, str]] = set()
"""Chains with records that are this ledger's own, by ledger, its address, tenant and name. They stay its own: an import
never takes the name of a chain that is there."""

OWN_CHAINS_MAX = 1024
"""Chains that a process remembers as the ledger's own."""

_SIGNATURE_CHECKS = frozenset({"signature", "signature_pq"})


class OwnRecords:
    """Reads records of a ledger and gives only those that count.

    The keys are those of the moment it was made. Make it after the head or the records were read: a key that was
    rotated in between would be unknown.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ring = ledger.keys.ring()
        self._rules = Rules(self._ring)
        self._strict_rules: Rules | None = None
        """The rules with the limits of retired keys. Hooks rarely meet a retired key, so these are read when needed."""
        self._heads_at_ends: Mapping[str, tuple[int, str]] = {}
        """Count and hash of every chain when a key last ended; read with the strict rules."""
        self._unchanged: set[str] = set()
        """The chains that were compared with these heads."""
        self._is_imported: dict[str, bool] = {}

    def read(self, head: Head, start: int = 0) -> Iterator[Sealed]:
        """Yield the records of a chain from `start` up to `head`. Raises `IntegrityError` at one that does not count.

        The caller must take all of them before it relies on any: a missing record is reported at the end.
        """
        if start >= head.count:
            return
        self._require_own_chain(head.chain)
        judge: ChainJudge | None = None
        count, last = start, None
        for found in self._ledger.read(head.chain, start, head.count):
            record = self._recall(found, head.chain)
            # That it counts does not say that it stands in this place.
            if record is not None and record.sequence == count and last in (None, record.previous_hash):
                judge = None
            else:
                record, judge = found, judge or self._build_judge(head.chain, count, last)
                self._require(judge, record)
            count, last = count + 1, record.hash
            yield record
        if count != head.count:
            raise _build_error("SEQUENCE_GAP", head.chain, count, f"{head.count - count} records are missing")
        if last != head.hash:
            raise _build_error("COLUMN_MISMATCH", head.chain, count - 1, "the head row names another last record")

    def require(self, record: Sealed) -> Sealed:
        """Return a record that was found by itself. Raises `IntegrityError` if it does not count."""
        chain = str(record.chain)
        self._require_own_chain(chain)
        known = self._recall(record, chain)
        if known is not None:
            return known
        self._require(self._build_judge(chain, None), record)
        return record

    def get(self, reference: str) -> Sealed | None:
        """Return the record with this hash, id or key; None if there is none.

        Raises `IntegrityError` if it does not count. It is verified once; `Ledger.get` and `require` would do it twice.
        """
        found = self._ledger.look_up(reference)
        if found is None:
            return None
        chain, row, column, value = found
        record = row.sealed
        record.chain = chain
        record = self.require(record)
        content = record.content
        named = (read_block(content) or {}).get("key") if column == "key" else content["id"]
        # The column led here, and it is not signed.
        if value != (content_hash(record.canonical) if column == "hash" else named):
            words = f"it is stored under the {column} {value}, but says another"
            raise _build_error("COLUMN_MISMATCH", chain, row.sequence, words)
        return record

    def is_imported(self, chain: str) -> bool:
        """Whether a chain came from elsewhere."""
        name = self._ledger.id, self._ledger.config.ledger, self._ledger.tenant, chain
        if name in _own_chains:
            return False
        known = self._is_imported.get(chain)
        if known is None:
            row = self._ledger.store.chain(self._ledger.tenant, chain)
            known = self._is_imported[chain] = row is not None and row.frozen
            if row is not None and row.count and not row.frozen:
                if len(_own_chains) >= OWN_CHAINS_MAX:
                    _own_chains.clear()
                _own_chains.add(name)
        return known

    def _require_own_chain(self, chain: str) -> None:
        if self.is_imported(chain):
            words = f"chain {chain}, sequence 0: the chain was imported, and imported records decide nothing here"
            raise IntegrityError("CHAIN_IDENTITY", words, advice=f"to remove that import: aver import --drop {chain}")

    def _recall(self, record: Sealed, chain: str) -> Sealed | None:
        """Return the same record of this chain as it was when it counted; None if these bytes were not verified yet."""
        ring, known = _kept.get((self._ledger.id, self._ledger.tenant, chain, record.hash), (None, None))
        if known is None or known != record:
            return None
        if ring is None:
            # This process has sealed it. It counts if the key that it names is still an active one that may seal.
            entry = self._ring.entry(known.signed_by)
            if entry is None or entry.purpose != SEAL_PURPOSE or entry.retired_at is not None:
                return None
            _keep(self._ledger, self._ring, known)
            return known
        return known if ring is self._ring else None

    def _build_judge(self, chain: str, start: int | None, previous: str | None = None) -> ChainJudge:
        identity = {"name": chain, "ledger": self._ledger.id, "tenant": self._ledger.tenant}
        return ChainJudge(self._rules, chain=chain, start=start, previous=previous, identity=identity, needs_block=True)

    def _require(self, judge: ChainJudge, record: Sealed) -> None:
        _judge(judge, record)
        signer = judge.signer
        entry = None if signer is None else self._ring.entry(signer.fingerprint)
        is_own = entry is not None and signer is not None and entry.key.ed25519 == signer.ed25519
        if entry is None or not is_own or entry.fingerprint != record.signed_by:
            words = f"sealed by the key {ascii(record.signed_by)[1:33]}, which is not one of this ledger's own ring"
            raise _build_error("UNKNOWN_SIGNER", str(record.chain), record.sequence, words)
        if entry.purpose != SEAL_PURPOSE:
            words = f"sealed by a key of {entry.identity}, whose purpose is {entry.purpose}, not {SEAL_PURPOSE}"
            raise _build_error("KEY_MISMATCH", str(record.chain), record.sequence, words)
        if entry.retired_at is not None:
            if self._strict_rules is None:
                from aver.ledger.key_history import heads_at_ends

                history = read_key_history(self._ledger, self._ring)
                self._strict_rules = Rules(self._ring, retired=history.retired)
                self._heads_at_ends = heads_at_ends(history.ends)
            self._require_unchanged(str(record.chain))
            _judge(ChainJudge(self._strict_rules, chain=record.chain, start=None), record)
        else:
            _keep(self._ledger, self._ring, record)

    def _require_unchanged(self, chain: str) -> None:
        """Raise `IntegrityError` unless a chain has the head that it had when a key last ended."""
        if chain in self._unchanged:
            return
        count, digest = self._heads_at_ends.get(chain, (0, ""))
        row = self._ledger.store.chain(self._ledger.tenant, chain)
        if count and (row is None or self._ledger.store.hash_at(row, count - 1) != digest):
            raise _build_error("ROLLBACK", chain, count - 1, "another record was here when the key was retired")
        self._unchanged.add(chain)


def keep_sealed(ledger: Ledger, records: Iterable[Sealed]) -> None:
    """Keep records that this process has just sealed and that are durable: a later look compares the stored bytes."""
    for record in records:
        if not record.existed:
            _keep(ledger, None, record)


def _keep(ledger: Ledger, ring: Ring | None, record: Sealed) -> None:
    if len(record.canonical) > KEPT_SIZE_MAX:
        return
    if len(_kept) >= KEPT_MAX:
        with suppress(KeyError):  # Another thread was quicker.
            _kept.popitem(last=False)  # The oldest one.
    _kept[ledger.id, ledger.tenant, str(record.chain), record.hash] = ring, record


def _judge(judge: ChainJudge, record: Sealed) -> None:
    """Judge a record. Raises `IntegrityError` unless it holds, with all its signatures."""
    findings = judge.tally.findings
    before = len(findings)
    judge.judge(record)
    for found in findings[before:]:
        # A signature that was not checked, or of which a half is missing, is as bad as a wrong one here.
        if found.status == "failed" or found.check in _SIGNATURE_CHECKS:
            raise IntegrityError(found.code, f"{found.place}: {found.words}", evidence=found, advice="run: aver verify")


def read_key_history(ledger: Ledger, ring: Ring) -> KeyHistory:
    """Return how far retired keys of the ring count. Raises `IntegrityError` if the `keys` chain was cut."""
    from aver.ledger.key_history import KeyHistory, read_history, retirements_by_time
    from aver.ledger.keys_chain import KEYS_CHAIN
    from aver.ledger.seen_heads import read_keys_head

    seen = read_keys_head(ledger.keys.home, ledger.id, ledger.tenant)
    row = ledger.store.chain(ledger.tenant, KEYS_CHAIN)
    if seen is not None and (row is None or ledger.store.hash_at(row, seen.count - 1) != seen.hash):
        words = "this machine recorded here that a key ended, and that record is gone"
        raise _build_error("ROLLBACK", KEYS_CHAIN, seen.count - 1, words)
    try:
        return read_history(ring, ledger.read(KEYS_CHAIN), ledger.blob)
    except NotFound:
        return KeyHistory(retirements_by_time(ring))


def _build_error(code: str, chain: str, sequence: int, words: str) -> IntegrityError:
    return IntegrityError(code, f"chain {chain}, sequence {sequence}: {words}", advice="run: aver verify")
