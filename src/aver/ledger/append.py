"""Appending: the way from a prepared draft to a durable record.

Group commit (`GroupCommit`): appends that wait at the same time share one durable commit. The first caller becomes
the leader. It takes every waiting request, writes them in one transaction and wakes their callers. Later requests
wait; the first of them leads the next commit. So a lone caller pays only for its own commit, and there is no
background thread.

One commit (`Appender`) does these steps, always in this order:

1. lock the keys of all signers, so that no rotation can happen meanwhile;
2. begin the transaction and lock the chains;
3. check that the keys are made for this, and record them in the `keys` chain, if they seal here for the first time;
4. check each request: everything that can refuse it comes before its first insert;
5. seal and insert its records;
6. update the heads, commit, and only then give every caller its result.

A refused request (its key exists, its head moved) fails its own caller only and leaves nothing behind. A failed
commit fails every request in it: none of them was recorded, or the error is `OutcomeUnknown`. A store may repeat steps
3 to 5 when another writer came first; this is why results are handed out in step 6.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from aver.capsule.aver_block import RESERVED_CHAINS, read_block
from aver.capsule.draft import PreparedDraft, prepare_draft
from aver.capsule.sealed import HoldableSigner, Sealed, Signer, content_hash, hold_signer
from aver.clock import now
from aver.errors import AverError, BadInput, Exists, HeadMoved, IntegrityError, OutcomeUnknown, Refused, Unavailable
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
from aver.ledger.stores.forks import register_for_forks
from aver.ledger.stores.protocol import ChainRow, ExpectedWrites, RecordRow, Store, Transaction
from aver.log import debug
from aver.verdict import ChainJudge, Rules

GROUP_MAX = 256
"""Most requests in one commit. A limit, so that the first request does not wait for ever."""

SIGNALS_MAX = 100
"""Signals in a row during which a caller still tries to wake the others."""

Result = TypeVar("Result")


class WakeUp:
    """Lets one thread wait until another calls `set`.

    It is one lock, whose methods a signal cannot interrupt halfway. `threading.Event` is written in Python: if a signal
    raises an exception inside it, its inner lock may stay taken for ever.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self) -> None:
        """Return after `set` was called. Only one thread may wait, and only once."""
        self._lock.acquire()

    def set(self) -> None:
        """Wake the thread that waits. It may be called any number of times."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # It was set before.


class WriteRequest(Generic[Result]):
    """A request to write something. The leader of its batch sets `result` or `failure`, and then wakes the caller."""

    __slots__ = ("failure", "result", "woken")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.failure: BaseException | None = None
        self.woken = WakeUp()


class GroupCommit(Generic[Result]):
    """`write` gets a batch, writes it durably and sets each request's result or failure; or raises for all."""

    def __init__(self, write: Callable[[Sequence[Any]], None]) -> None:
        self._write = write
        self._reset()
        register_for_forks(self)

    def _reset(self) -> None:
        self._guard = threading.Lock()  # Guards the two below; never taken while writing.
        self._waiting: list[WriteRequest[Result]] = []
        self._leader: WriteRequest[Result] | None = None

    def before_fork(self) -> None:
        self._guard.acquire()

    def after_fork_in_parent(self) -> None:
        self._guard.release()

    def after_fork_in_child(self) -> None:
        self._reset()  # All waiting and leading threads belong to the parent.

    def submit(self, request: WriteRequest[Result]) -> Result:
        """Return the request's result when it is durable. Raises its failure if it was not written.

        A signal may raise an exception at any line here. The request then leaves the queue, the other callers learn
        what is known about theirs, and the next of them leads.
        """
        batch: list[WriteRequest[Result]] = []
        try:
            with self._guard:
                self._waiting.append(request)
                self._leader = self._leader or request
            if self._leader is not request:
                # A leader wakes us either because our request is written, or to make us the next leader.
                request.woken.wait()
            if self._leader is request:
                self._commit_batch(batch)
        finally:
            interrupt: BaseException | None = None
            for _ in range(SIGNALS_MAX):
                try:
                    self._hand_on(request, batch)
                    break
                except BaseException as signal:  # noqa: BLE001 - raised again below
                    interrupt = signal
            if interrupt is not None:
                raise interrupt
        if request.failure is not None:
            raise request.failure
        if request.result is None:
            raise Unavailable("the record was not written")
        return request.result

    def _commit_batch(self, batch: list[WriteRequest[Result]]) -> None:
        """Lead: move all waiting requests into `batch` and write them in one commit."""
        with self._guard:
            batch += self._waiting[:GROUP_MAX]
            del self._waiting[:GROUP_MAX]
        try:
            self._write(batch)
        except AverError as failure:
            debug("ledger", "a commit of %d requests failed: %s", len(batch), failure)
            for request in batch:
                request.failure = failure

    def _hand_on(self, request: WriteRequest[Result], batch: list[WriteRequest[Result]]) -> None:
        """Leave the queue, make the next request the leader if this one led, and wake the callers of its batch.

        It may be called again after a signal has ended it.
        """
        # Under the guard: a request that comes now must find either a leader or none, never a gap.
        with self._guard:
            if request in self._waiting:
                self._waiting.remove(request)
            if self._leader is request:
                self._leader = self._waiting[0] if self._waiting else None
            leader = self._leader
        for each in batch:
            if each.result is None and each.failure is None:
                # A signal or a defect has ended the commit. This thread gets its exception, the others learn of it.
                each.failure = OutcomeUnknown("the commit was interrupted")
            each.woken.set()
        # The successor leads on its own thread: this caller returns now, and no caller leads for ever.
        if leader is not None:
            leader.woken.set()


AnySigner = Signer | HoldableSigner


class AppendRequest(WriteRequest[list[Sealed]]):
    """Drafts to append to one chain together."""

    __slots__ = ("after", "chain", "drafts", "refuse_existing", "signer")

    def __init__(
        self,
        chain: str,
        drafts: Sequence[PreparedDraft],
        signer: AnySigner,
        after: Head | None,
        *,
        refuse_existing: bool,
    ) -> None:
        super().__init__()
        self.chain = chain
        self.drafts = drafts
        self.signer = signer
        self.after = after
        self.refuse_existing = refuse_existing
        """Refuse the request if a draft's key was used before. Otherwise the existing record takes its place."""


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
                    request = AppendRequest(chain, [draft], locked, None, refuse_existing=True)
                    return self._write_request(transaction, request, locked, rows)[0]

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
                    debug("ledger", "chain %s: the signer cannot be used: %s", request.chain, error)
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
                frozenset([request.chain for request, _ in todo]),
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
                if is_new or request.chain in RESERVED_CHAINS:
                    check_purpose(self._keys.ring(), signer, request.chain)
                if is_new:
                    locked = KEYS_CHAIN in expected.chains
                    self._record_keys(transaction, signer, rows, keys_locked=locked, given=request.signer)
                    recorded.add(known)
                results.append((request, self._write_request(transaction, request, signer, rows)))
            except AverError as refusal:
                debug("ledger", "chain %s: nothing was appended: %s", request.chain, refusal)
                results.append((request, refusal))
            except _SignerError as failed:
                results.append((request, failed.__cause__ or failed))
        # 6. Once per chain, however many requests wrote to it.
        for row in rows.values():
            transaction.update_head(row)
        return results, recorded

    def _write_request(
        self, transaction: Transaction, request: AppendRequest, signer: Signer, chains: dict[str, ChainRow]
    ) -> list[Sealed]:
        """Seal and insert one request. Everything that can refuse it happens before the first insert."""
        # 4. Check the request. `chains` has the head rows that this transaction has already moved.
        row = chains.get(request.chain) or transaction.chain(self._tenant, request.chain)
        count, head, frozen = (row.count, row.head, row.frozen) if row else (0, None, False)
        if frozen:
            raise Refused(
                "FROZEN",
                f"{request.chain} was imported and does not grow here",
                advice=f"aver import --drop {request.chain} removes that import with all its chains",
            )
        if request.after is not None and (request.after.count, request.after.hash) != (count, head):
            raise HeadMoved(request.after, Head(self._store.ledger_id, self._tenant, request.chain, count, head))
        blobs = {blob.digest: blob for draft in request.drafts for blob in draft.blobs}
        # Every blob that a draft refers to must come with the request or be stored already.
        for draft in request.drafts:
            for digest in draft.blob_digests:
                if digest not in blobs and not transaction.has_blob(self._tenant, digest):
                    words = f"the draft refers to the blob {digest}, which is not here"
                    raise BadInput(words, advice="pass it in blobs=")
        identity = {"ledger": self._store.ledger_id, "tenant": self._tenant, "name": request.chain}
        results: list[Sealed] = []
        taken = transaction.taken_ids(self._tenant, [draft.id for draft in request.drafts])
        keys = [draft.key for draft in request.drafts if draft.key is not None]
        if request.chain != KEYS_CHAIN and (reserved := next(filter(is_event_key, keys), None)) is not None:
            words = f"the key {reserved!r} stands for a record of the chain {KEYS_CHAIN!r}"
            raise BadInput(words, advice="give the record another key")
        used: dict[str | None, Sealed] = {}
        if keys and (found := transaction.find_by_keys(self._tenant, keys)):
            # A column led to these records, and columns are not signed: verify each before a caller gets it.
            ring = self._keys.ring()
            used = {key: verify_lookup(*record, "key", key, ring) for key, record in found.items()}
        new: list[tuple[Sealed, tuple[Any, ...]]] = []
        for draft in request.drafts:
            existing = used.get(draft.key)
            if existing is not None:
                if request.refuse_existing:
                    raise Exists(str(draft.key), existing)
                seal = (existing.canonical, existing.hash, existing.signature, existing.signature_pq)
                stamp = (existing.signed_at, existing.signed_by)
                results.append(Sealed(*seal, *stamp, chain=existing.chain, existed=True))
                continue
            if draft.id in taken:
                raise Refused(
                    "ID_TAKEN", f"a record with the id {draft.id} is already in the ledger", advice=_NEW_ID_ADVICE
                )
            taken.add(draft.id)
            # 5. Seal. A signer may still fail here, but nothing of this request has been inserted yet.
            try:
                sealed = draft.seal(signer, at=now(), sequence=count, previous_hash=head, chain=identity)
            except Exception as error:
                raise _SignerError from error
            sealed.chain = request.chain
            count, head = count + 1, sealed.hash  # The next record of this request links to this one.
            results.append(sealed)
            new.append(
                (sealed, (draft.id, draft.type, draft.block["kind"], draft.key, draft.session, sealed.signed_at))
            )
            if draft.key is not None:
                used[draft.key] = sealed  # A repeated key within one request counts as used.
        if new:
            if row is None:
                row = transaction.add_chain(self._tenant, request.chain)
            chains[request.chain] = row
            if blobs:
                transaction.add_blobs(self._tenant, blobs.items())
            transaction.add_records(row, new)
        return results

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
            request = AppendRequest(KEYS_CHAIN, [prepared], signer, None, refuse_existing=True)
            self._write_request(transaction, request, signer, rows)

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
