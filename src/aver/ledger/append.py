"""Appending: the way from a prepared draft to a durable record.

A request (`AppendRequest`) has one part for each place that it appends to: a chain, and drafts for its end. `append`
makes one part with one draft, `append_many` one part with many drafts, `append_together` one part for each entry.
Requests that wait at the same time share one durable commit (`stores.group_commit`).

One commit (`Appender`) does these steps, always in this order:

1. lock the keys of all signers, so that no rotation can happen meanwhile;
2. begin the transaction and lock the chains;
3. check that the keys are made for this, and record them in the `keys` chain, if they seal here for the first time;
4. check each request, and seal its records: everything that can refuse it comes before its first insert;
5. insert its records;
6. update the heads, commit, and only then give every caller its result.

A refused request (a key exists, a head moved) fails its own caller only, and leaves nothing of any of its parts. A
failed commit fails every request in it: none of them was recorded, or the error is `OutcomeUnknown`. A store may repeat
steps 3 to 5 when another writer came first; this is why results are handed out in step 6.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from aver.capsule.aver_block import RESERVED_CHAINS, read_block
from aver.capsule.blobs import Blob
from aver.capsule.draft import PreparedDraft, prepare_draft
from aver.capsule.model import Capsule
from aver.capsule.sealed import HoldableSigner, Sealed, Signer, content_hash, hold_signer
from aver.clock import now
from aver.errors import AverError, BadInput, Exists, HeadMoved, IntegrityError, Refused
from aver.fast_dataclass import NamedTuple, dataclass
from aver.keys import LEDGER, KeyStore, PublicKey, Ring, RingEntry
from aver.ledger.head import Head
from aver.ledger.keys_chain import (
    KEYS_CHAIN,
    KeyEvent,
    build_key_draft,
    is_event_key,
    key_events,
    unrecorded_events,
)
from aver.ledger.stores.group_commit import GroupCommit, WriteRequest
from aver.ledger.stores.protocol import ChainRow, ExpectedWrites, RecordRow, Store, Transaction
from aver.log import debug
from aver.verdict import ChainJudge, Rules

AnySigner = Signer | HoldableSigner


@dataclass(frozen=True, slots=True)
class Entry:
    """One record that `Ledger.append_together` appends with others: a draft for the end of a chain.

    `key` is its idempotency key. `after` is the head that the caller has seen; it means the head before the call, also
    where an earlier entry of the call goes to the same chain. `blobs` are stored with the record.
    """

    chain: str
    draft: Capsule | Mapping[str, Any]
    key: str | None = None
    after: Head | None = None
    blobs: Sequence[Blob] = ()


class AppendPart(NamedTuple):
    """Drafts for the end of one chain. `after` is the chain's head before the request, if the caller has named it."""

    chain: str
    drafts: Sequence[PreparedDraft]
    after: Head | None = None


class AppendRequest(WriteRequest[list[Sealed]]):
    """Parts to append together: all of them or none. Several parts may have the same chain."""

    __slots__ = ("drafts", "parts", "refuse_existing", "signer")

    def __init__(self, parts: Sequence[AppendPart], signer: AnySigner, *, refuse_existing: bool) -> None:
        super().__init__()
        self.parts = parts
        self.drafts = parts[0].drafts if len(parts) == 1 else [draft for part in parts for draft in part.drafts]
        """The drafts of all parts, in order."""
        self.signer = signer
        self.refuse_existing = refuse_existing
        """Refuse the request if a draft's key was used before. Otherwise the existing record takes its place."""

    def __str__(self) -> str:
        """The chains of the parts, for debug lines."""
        return ", ".join(dict.fromkeys(part.chain for part in self.parts))


_NewRecord = tuple[Sealed, tuple[Any, ...]]
"""A sealed record and its columns, as `Transaction.add_records` takes them."""


class _SealedRequest(NamedTuple):
    """A request that nothing refuses, ready to be inserted."""

    results: list[Sealed]
    """One record for each draft: a new one, or the one that existed."""
    found: Mapping[str, ChainRow | None]
    """The head rows of its chains before it."""
    blobs: Mapping[str, Blob]
    new: Sequence[tuple[str, Sequence[_NewRecord]]]
    """The chain and the new records of each part that has any."""


_KnownKey = tuple[object, str]
"""(ring stamp, fingerprint) of a signer that the `keys` chain is known to have recorded."""


class Appender(GroupCommit[list[Sealed]]):
    """Appends for one tenant of one store. `submit` takes an `AppendRequest` and returns its records."""

    def __init__(self, store: Store, keys: KeyStore, tenant: str, ledger_signer: AnySigner | None = None) -> None:
        super().__init__(self._write_batch)
        self._store = store
        self._keys = keys
        self._tenant = tenant
        self._ledger_signer = ledger_signer
        """The signer that the caller gave for the whole ledger, if any. It speaks for the ledger."""
        self._recorded_keys: set[_KnownKey] = set()
        self._has_recorded_end = False
        """Whether the transaction that is open, or was open last, recorded the end of a key."""

    @contextmanager
    def transaction(
        self, signer: AnySigner, chains: Collection[str]
    ) -> Iterator[tuple[Transaction, Callable[[str, PreparedDraft], Sealed]]]:
        """Open one durable transaction to seal records and to write other rows of these chains with them.

        Yields the transaction and a function that appends a prepared draft to a chain within it.
        """
        expected = ExpectedWrites(self._tenant, frozenset({KEYS_CHAIN, *chains}))
        try:
            with hold_signer(signer) as locked, self._store.transaction(expected) as transaction:
                rows: dict[str, ChainRow] = {}
                check_purpose(self._keys.ring(), locked, KEYS_CHAIN)
                self._record_keys(transaction, locked, rows, keys_locked=True, given=signer)

                def append(chain: str, draft: PreparedDraft) -> Sealed:
                    request = AppendRequest([AppendPart(chain, [draft])], locked, refuse_existing=True)
                    sealed = self._seal_request(transaction, request, locked, rows)
                    self._insert_request(transaction, sealed, rows)
                    return sealed.results[0]

                yield transaction, append
                for row in rows.values():
                    transaction.update_head(row)
            self._remember_keys()
        except _SignerError as failed:
            raise failed.__cause__ or failed from None  # The caller knows the signer's own exception.

    def _write_batch(self, batch: Sequence[AppendRequest]) -> None:
        """Write a batch in one durable commit: the steps of the module's docstring."""
        with ExitStack() as key_locks:
            # 1. Keys before chains: every writer takes locks in this order, so two writers cannot wait in a circle.
            signers: dict[int, Signer] = {}
            for request in batch:
                try:
                    if id(request.signer) not in signers:
                        signers[id(request.signer)] = key_locks.enter_context(hold_signer(request.signer))
                except (AverError, OSError) as error:
                    debug("ledger", "chain %s: the signer cannot be used: %s", request, error)
                    request.failure = error
            todo = [(request, signers[id(request.signer)]) for request in batch if request.failure is None]
            if not todo:
                return
            # The stamp changes with the ring: what was learned about recorded keys is valid for one stamp only.
            stamp = self._keys.ring_stamp()
            # Tell the store what the batch will touch; the keys of all key events only if a signer may be new here.
            new = False
            for _, signer in todo:
                try:
                    new = new or (stamp, signer.fingerprint) not in self._recorded_keys
                except Exception:  # noqa: BLE001 - `_seal_batch` asks again, and fails this request alone
                    new = True
            expected = ExpectedWrites(
                self._tenant,
                frozenset([part.chain for request, _ in todo for part in request.parts]),
                todo[0][0].drafts if len(todo) == 1 else [draft for request, _ in todo for draft in request.drafts],
                [event.key for event in key_events(self._keys.ring())] if new else (),
            )
            # 2. to 5.
            try:
                seal = partial(self._seal_batch, todo=todo, stamp=stamp, expected=expected)
                results, recorded = self._store.write(seal, expected)
            except _KeysNotRecorded:
                # Chains are locked in one order for all writers, so `keys` cannot be added to a transaction late.
                debug(
                    "ledger",
                    "a key seals here for the first time; the batch is written again with the keys chain",
                )
                wider = replace(expected, chains=expected.chains | {KEYS_CHAIN})
                seal = partial(self._seal_batch, todo=todo, stamp=stamp, expected=wider)
                results, recorded = self._store.write(seal, wider)
            # 6. The transaction is durable now.
            self._remember_keys()
            for request, result in results:
                if isinstance(result, list):
                    request.result = result
                else:
                    request.failure = result
            if recorded:
                self._recorded_keys = recorded | {known for known in self._recorded_keys if known[0] == stamp}

    def _seal_batch(
        self,
        transaction: Transaction,
        todo: Sequence[tuple[AppendRequest, Signer]],
        stamp: object,
        expected: ExpectedWrites,
    ) -> tuple[list[tuple[AppendRequest, list[Sealed] | BaseException]], set[_KnownKey]]:
        """Seal and insert every request.

        Returns for each its records or its refusal, and the signers whose keys are recorded once this is durable.
        """
        results: list[tuple[AppendRequest, list[Sealed] | BaseException]] = []
        recorded: set[_KnownKey] = set()
        rows: dict[str, ChainRow] = {}
        for request, signer in todo:
            try:
                # 3. Record the keys first, so that no record comes before the key that signed it.
                try:
                    known = stamp, signer.fingerprint
                except Exception as error:
                    raise _SignerError from error
                is_new = known not in self._recorded_keys and known not in recorded
                for part in request.parts:
                    if is_new or part.chain in RESERVED_CHAINS:
                        check_purpose(self._keys.ring(), signer, part.chain)
                if is_new:
                    locked = KEYS_CHAIN in expected.chains
                    self._record_keys(transaction, signer, rows, keys_locked=locked, given=request.signer)
                    recorded.add(known)
                sealed = self._seal_request(transaction, request, signer, rows)
            except AverError as refusal:
                debug("ledger", "chain %s: nothing was appended: %s", request, refusal)
                results.append((request, refusal))
            except _SignerError as failed:
                results.append((request, failed.__cause__ or failed))
            else:
                # Outside the `try`: a request that fails halfway through its inserts must fail the whole commit.
                self._insert_request(transaction, sealed, rows)
                results.append((request, sealed.results))
        # 6. Once per chain, however many requests wrote to it.
        for row in rows.values():
            transaction.update_head(row)
        return results, recorded

    def _seal_request(
        self, transaction: Transaction, request: AppendRequest, signer: Signer, rows: Mapping[str, ChainRow]
    ) -> _SealedRequest:
        """4. Check a request and seal its records. Everything that can refuse it happens here; nothing is inserted.

        `rows` has the head rows that this transaction has already moved.
        """
        found = self._check_places(transaction, request.parts, rows)
        blobs = self._check_blobs(transaction, request.drafts)
        taken = transaction.taken_ids(self._tenant, [draft.id for draft in request.drafts])
        used = self._find_used_keys(transaction, request.drafts)
        if used and request.refuse_existing:
            first = next(draft.key for draft in request.drafts if draft.key in used)
            raise Exists(str(first), used[first])
        ends = {chain: (row.count, row.head) if row else (0, None) for chain, row in found.items()}
        results: list[Sealed] = []
        new: list[tuple[str, list[_NewRecord]]] = []
        for chain, drafts, _ in request.parts:
            identity = {"ledger": self._store.ledger_id, "tenant": self._tenant, "name": chain}
            count, head = ends[chain]
            added: list[_NewRecord] = []
            for draft in drafts:
                existing = used.get(draft.key)
                if existing is not None:
                    seal = (existing.canonical, existing.hash, existing.signature, existing.signature_pq)
                    stamp = (existing.signed_at, existing.signed_by)
                    results.append(Sealed(*seal, *stamp, chain=existing.chain, existed=True))
                    continue
                if draft.id in taken:
                    raise Refused("ID_TAKEN", f"another record has the id {draft.id}", advice=_NEW_ID_ADVICE)
                taken.add(draft.id)
                try:
                    sealed = draft.seal(signer, at=now(), sequence=count, previous_hash=head, chain=identity)
                except Exception as error:
                    raise _SignerError from error
                sealed.chain = chain
                count, head = count + 1, sealed.hash  # The next record of this request links to this one.
                results.append(sealed)
                added.append(
                    (sealed, (draft.id, draft.type, draft.block["kind"], draft.key, draft.session, sealed.signed_at))
                )
                if draft.key is not None:
                    used[draft.key] = sealed  # A repeated key within one request counts as used.
            ends[chain] = count, head
            if added:
                new.append((chain, added))
        return _SealedRequest(results, found, blobs, new)

    def _insert_request(self, transaction: Transaction, sealed: _SealedRequest, rows: dict[str, ChainRow]) -> None:
        """5. Insert the new records of a request and its blobs. The chains that it moved are noted in `rows`."""
        if sealed.new and sealed.blobs:
            transaction.add_blobs(self._tenant, sealed.blobs.items())
        # Part by part: the store's rows have the order in which the caller gave the drafts.
        for chain, records in sealed.new:
            if chain not in rows:
                rows[chain] = sealed.found[chain] or transaction.add_chain(self._tenant, chain)
            transaction.add_records(rows[chain], records)

    def _check_places(
        self, transaction: Transaction, parts: Sequence[AppendPart], rows: Mapping[str, ChainRow]
    ) -> dict[str, ChainRow | None]:
        """Raise a refusal if a part cannot be added to its chain. Returns the chains' head rows before the request."""
        found: dict[str, ChainRow | None] = {}
        for chain, drafts, after in parts:
            if chain not in found:
                found[chain] = rows.get(chain) or transaction.chain(self._tenant, chain)
            row = found[chain]
            if row is not None and row.frozen:
                raise Refused(
                    "FROZEN",
                    f"{chain} was imported and does not grow here",
                    advice=f"aver import --drop {chain} removes that import with all its chains",
                )
            end = (row.count, row.head) if row else (0, None)
            if after is not None and (after.count, after.hash) != end:
                raise HeadMoved(after, Head(self._store.ledger_id, self._tenant, chain, *end))
            for draft in drafts:
                if draft.key is not None and chain != KEYS_CHAIN and is_event_key(draft.key):
                    words = f"the key {draft.key!r} stands for a record of the chain {KEYS_CHAIN!r}"
                    raise BadInput(words, advice="give the record another key")
        return found

    def _check_blobs(self, transaction: Transaction, drafts: Sequence[PreparedDraft]) -> dict[str, Blob]:
        """The blobs of all drafts. Raises `BadInput` if a draft refers to one that is neither there nor stored.

        A blob that is stored with other bytes than those of its digest gets the right ones. Raises `IntegrityError`
        where the store does not allow that: the new record would refer to bytes that are not its own.
        """
        blobs = {blob.digest: blob for draft in drafts for blob in draft.blobs}
        # At every append, also of a blob that this process has compared before: the bytes may have changed since.
        for digest, is_intact in (transaction.compare_blobs(self._tenant, blobs) if blobs else {}).items():
            if not is_intact:
                words = f"the blob {digest} is stored with other bytes than those of its digest"
                if not transaction.restore_blob(self._tenant, blobs[digest]):
                    advice = "run: aver verify; restore the store from a backup"
                    raise IntegrityError("ARTIFACT_HASH_MISMATCH", words, advice=advice)
                debug("ledger", "%s: it is restored", words)
        for draft in drafts:
            for digest in draft.blob_digests:
                if digest not in blobs and not transaction.has_blob(self._tenant, digest):
                    words = f"the draft refers to the blob {digest}, which is not here"
                    raise BadInput(words, advice="pass it in blobs=")
        return blobs

    def _find_used_keys(self, transaction: Transaction, drafts: Sequence[PreparedDraft]) -> dict[str | None, Sealed]:
        """The records that have the keys of these drafts already, by key."""
        keys = [draft.key for draft in drafts if draft.key is not None]
        found = transaction.find_by_keys(self._tenant, keys) if keys else {}
        if not found:
            return {}
        # A column led to these records, and columns are not signed: verify each before a caller gets it.
        ring = self._keys.ring()
        return {key: verify_lookup(*record, "key", key, ring) for key, record in found.items()}

    def _record_keys(
        self,
        transaction: Transaction,
        signer: Signer,
        rows: dict[str, ChainRow],
        *,
        keys_locked: bool,
        given: AnySigner,
    ) -> None:
        """Append to the `keys` chain the events of our keys that it must record before `signer` seals here.

        Each event holds the heads of all other chains at this moment. Raises `_KeysNotRecorded` if there are events,
        but this transaction may not write to the `keys` chain. `given` is the signer as the caller gave it.
        """
        ring = self._keys.ring()
        own = ring.entry(signer.fingerprint)
        if own is None:
            # A signer whose key is not in our ring, such as one in another process. It may tell its public key.
            own = describe_signer(ring, signer, is_ledger=given is self._ledger_signer)
            events = [] if own is None else [KeyEvent(own, "key.create", f"key:{own.fingerprint}")]
        else:
            events = key_events(ring)
        recorded = transaction.find_by_keys(self._tenant, [event.key for event in events])
        for key, (chain, _) in recorded.items():
            # Else the ledger would never record that a key was retired.
            if chain != KEYS_CHAIN:
                words = f"a record of the chain {chain} has the key {key}, which stands for one of {KEYS_CHAIN!r}"
                raise IntegrityError("COLUMN_MISMATCH", words, advice="run: aver verify")
        events = unrecorded_events(events, own, recorded)
        if not events:
            return
        if not keys_locked:
            raise _KeysNotRecorded
        ledger = self._store.ledger_id
        others = [row for row in transaction.chains(self._tenant) if row.name != KEYS_CHAIN]
        heads = [Head(ledger, self._tenant, row.name, row.count, row.head) for row in others]
        for event in events:
            self._has_recorded_end = self._has_recorded_end or event.kind != "key.create"
            draft, blobs = build_key_draft(event, heads)
            prepared = prepare_draft(draft, key=event.key, blobs=blobs)
            request = AppendRequest([AppendPart(KEYS_CHAIN, [prepared])], signer, refuse_existing=True)
            self._insert_request(transaction, self._seal_request(transaction, request, signer, rows), rows)

    def _remember_keys(self) -> None:
        """Remember the `keys` chain on this machine, if the end of a key was recorded in it just now."""
        if not self._has_recorded_end:
            return
        self._has_recorded_end = False
        from aver.ledger.seen_heads import save_keys_head

        try:
            row = self._store.chain(self._tenant, KEYS_CHAIN)
            if row is not None:
                head = Head(self._store.ledger_id, self._tenant, KEYS_CHAIN, row.count, row.head)
                save_keys_head(self._keys.home, head, lambda place: self._store.hash_at(row, place))
        except AverError as error:  # The records are durable. Only the memory is missing.
            debug("ledger", "cannot remember the chain %s: %s", KEYS_CHAIN, error)


_NEW_ID_ADVICE = "leave the id out to get a new one; give a key to seal something only once"


def check_purpose(ring: Ring, signer: Signer, chain: str) -> None:
    """Raise `Refused` if the ring knows that the signer's key must not seal records of this chain.

    In `keys`, a key that may seal records may record itself: `unrecorded_events` gives it nothing else to record.
    """
    try:
        fingerprint = signer.fingerprint
    except Exception as error:
        raise _SignerError from error
    roles = [entry.role for key in ring.lookup(fingerprint) if (entry := ring.entry_of(key)) is not None]
    for role in roles:
        if (
            role.may_seal
            if chain not in RESERVED_CHAINS
            else role.may_attest or (chain == KEYS_CHAIN and role.may_seal)
        ):
            return
    if roles:
        raise Refused(
            "KEY_MISMATCH",
            f"{fingerprint} is a key of {roles[0]}; it must not seal records of the chain {chain}",
            advice="sign with the key of the ledger, or of an agent",
        )


def describe_signer(ring: Ring, signer: Signer, *, is_ledger: bool) -> RingEntry | None:
    """The entry by which the `keys` chain records a signer that is not in our ring; None if its key is not trusted.

    The key is trusted if it is known here, or if the whole ledger was opened with this signer. A record by any other
    signer would make the `keys` chain itself doubtful.
    """
    told, known = getattr(signer, "public", None), ring.lookup(signer.fingerprint)
    if isinstance(told, PublicKey) and told.fingerprint == signer.fingerprint and (is_ledger or told in known):
        public = told
    elif len(known) == 1:
        public = known[0]
    else:
        debug("ledger", "the key of the signer %s is not known here, so it is not recorded", signer.fingerprint)
        return None
    published = ring.entry_of(public)
    if published is not None:
        return replace(published, statement=None, retired_at=None)
    identity = LEDGER if is_ledger else f"agent:{public.fingerprint}"
    return RingEntry(identity, "seal", 0, public, now())


class _KeysNotRecorded(Exception):
    """A key seals here for the first time: begin the transaction again with the `keys` chain locked, too."""


class _SignerError(Exception):
    """Wraps an exception of a signer: it is not the store's failure, and fails its own request only."""


def verify_lookup(chain: str, row: RecordRow, column: str, value: str, ring: Ring) -> Sealed:
    """Return the record found by a column, if its seal is valid and its signed content has the same value.

    Columns are not signed: an attacker who can write to the store could point a key at another record. Raises
    `IntegrityError`.
    """
    sealed = row.sealed
    sealed.chain = chain
    judge = ChainJudge(Rules(ring), chain=chain, start=None)
    content = judge.judge(sealed)
    broken = next((finding for finding in judge.tally.findings if finding.status == "failed"), None)
    # The value of the column according to the signed bytes.
    signed: Any = None
    if column == "hash":
        signed = content_hash(sealed.canonical)
    elif content is not None:
        signed = content.get("id") if column == "id" else (read_block(content) or {}).get("key")
    if broken is not None or content is None or signed != value:
        code = "COLUMN_MISMATCH" if broken is None else broken.code
        words = f"it is stored under the {column} {value}, but says another" if broken is None else broken.words
        raise IntegrityError(
            code, f"chain {chain}, sequence {row.sequence}: {words}", evidence=sealed, advice="run: aver verify"
        )
    return sealed
