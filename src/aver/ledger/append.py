"""Group commit: appends that wait at the same time share one durable commit.

The first caller to come becomes the leader: it takes every request that is waiting, writes them in one
transaction, and wakes their callers. Requests that come meanwhile wait; the first of them leads next. A lone
caller therefore pays for nothing but its own commit, and there is no thread in the background.

A request that is refused (its key exists, its head moved) fails its own caller only. A commit that fails, fails
every request in it: none of them was recorded.

Appending: what happens between a prepared draft and a durable record.

Requests that wait at the same time are written in one commit (see `commit`). Within it, each request is sealed
and inserted after the other, in this order, always: the signers' keys are held still, the chains are locked, what
became of our keys is recorded, the request is checked, sealed, inserted. Everything that can refuse a request
happens before its first insertion, so that a refusal leaves nothing behind and harms no other request.

A store may ask for the same work again where another writer came first; so what became of each request is told to
its caller only once the transaction is durable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from typing import Any, Generic, TypeVar

from aver.capsule.aver_block import read_block
from aver.capsule.draft import PreparedDraft, prepare_draft
from aver.capsule.sealed import Sealed, content_hash
from aver.capsule.signing import HoldableSigner, Signer, hold_signer
from aver.clock import now
from aver.errors import AverError, BadInput, Exists, HeadMoved, IntegrityError, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.keys import KeyStore, Ring
from aver.ledger.head import Head
from aver.ledger.keys_chain import KEYS_CHAIN, KeyEvent, build_key_draft, event_keys, unrecorded_events
from aver.ledger.stores.forks import register_for_forks
from aver.ledger.stores.protocol import ExpectedWrites, Store, Transaction
from aver.ledger.stores.rows import ChainRow, RecordRow
from aver.verdict import ChainJudge, Rules

__all__ = ["GROUP_MAX", "AnySigner", "AppendRequest", "Appender", "GroupCommit", "WriteRequest", "verify_lookup"]


GROUP_MAX = 256
"""Most requests in one commit, so that the first of them does not wait for ever."""

Result = TypeVar("Result")


class WriteRequest(Generic[Result]):
    """Something to be written, and then its result or the reason why not."""

    __slots__ = ("_woken", "failure", "leads", "result")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.failure: BaseException | None = None
        self.leads = False
        self._woken = threading.Event()

    def succeed(self, result: Result) -> None:
        self.result = result

    def refuse(self, failure: BaseException) -> None:
        self.failure = failure

    def wake(self) -> None:
        self._woken.set()

    def wait(self) -> None:
        self._woken.wait()
        self._woken.clear()


AnyRequest = TypeVar("AnyRequest", bound="WriteRequest[Any]")


class GroupCommit(Generic[AnyRequest]):
    """`write` gets a batch, writes it durably and sets each request's result or refusal; or raises for all."""

    def __init__(self, write: Callable[[Sequence[AnyRequest]], None]) -> None:
        self._write = write
        self._reset()
        register_for_forks(self)

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self._waiting: list[AnyRequest] = []
        self._led = False

    def before_fork(self) -> None:
        self._guard.acquire()

    def after_fork_in_parent(self) -> None:
        self._guard.release()

    def after_fork_in_child(self) -> None:
        """Whoever waited or led is a thread of the parent."""
        self._reset()

    def submit(self, request: AnyRequest) -> None:
        """Return when the request was written; raise if it was not."""
        with self._guard:
            self._waiting.append(request)
            lead = not self._led
            self._led = True
        if not lead:
            request.wait()
            lead = request.leads
        if lead:
            self._commit_batch()
        if request.failure is not None:
            raise request.failure

    def _commit_batch(self) -> None:
        with self._guard:
            batch = self._waiting[:GROUP_MAX]
            del self._waiting[:GROUP_MAX]
        try:
            self._write(batch)
        except Exception as failure:  # noqa: BLE001 - every caller in the batch must hear of it
            for request in batch:
                request.refuse(failure)
        except BaseException:
            for request in batch:
                request.refuse(Unavailable("the commit was interrupted", advice="look the record up by its key"))
            raise
        finally:
            with self._guard:
                successor = self._waiting[0] if self._waiting else None
                self._led = successor is not None
            for request in batch:
                request.wake()
            if successor is not None:
                successor.leads = True
                successor.wake()


AnySigner = Signer | HoldableSigner


class AppendRequest(WriteRequest[list[Sealed]]):
    """Drafts that go to the end of one chain together."""

    __slots__ = ("after", "chain", "drafts", "one", "signer")

    def __init__(
        self, chain: str, drafts: Sequence[PreparedDraft], signer: AnySigner, after: Head | None, *, one: bool
    ) -> None:
        super().__init__()
        self.chain = chain
        self.drafts = drafts
        self.signer = signer
        self.after = after
        self.one = one
        """A single append: a key that was used before refuses it, instead of standing in its place."""


@dataclass(slots=True)
class _BatchResult:
    """What became of a batch, to be told once it is durable."""

    results: list[tuple[AppendRequest, list[Sealed] | BaseException]] = field(default_factory=list)
    recorded: set[tuple[object, str]] = field(default_factory=set)
    """Signers of which it is now known that the `keys` chain has recorded them."""


class Appender:
    """Writes for one tenant of one store."""

    def __init__(self, store: Store, keys: KeyStore, tenant: str) -> None:
        self._store = store
        self._keys = keys
        self._tenant = tenant
        self._recorded_keys: set[tuple[object, str]] = set()
        self._commits: GroupCommit[AppendRequest] = GroupCommit(self._write_batch)

    def submit(self, request: AppendRequest) -> list[Sealed]:
        """Return the request's records when they are durable."""
        self._commits.submit(request)
        if request.result is None:
            raise Unavailable("the record was not written")
        return request.result

    @contextmanager
    def transaction(
        self, signer: AnySigner, chains: Collection[str]
    ) -> Iterator[tuple[Transaction, Callable[[str, PreparedDraft], Sealed]]]:
        """One durable transaction for records that are sealed now and for whatever else is written to these chains.

        Yields the transaction and a function that appends a prepared draft to a chain within it.
        """
        expected = ExpectedWrites(self._tenant, frozenset({KEYS_CHAIN, *chains}))
        with hold_signer(signer) as held, self._store.transaction(expected) as transaction:
            rows: dict[str, ChainRow] = {}
            self._record_keys(transaction, held, rows, self._unrecorded_events(transaction, held))

            def append(chain: str, draft: PreparedDraft) -> Sealed:
                return self._write_request(
                    transaction, AppendRequest(chain, [draft], held, None, one=True), held, rows
                )[0]

            yield transaction, append
            for row in rows.values():
                transaction.update_head(row)

    def _write_batch(self, batch: Sequence[AppendRequest]) -> None:
        """Write a batch in one durable commit. Keys are held still first, then the chains are locked, always so."""
        with ExitStack() as holds:
            held: dict[int, Signer] = {}
            for request in batch:
                try:
                    if id(request.signer) not in held:
                        held[id(request.signer)] = holds.enter_context(hold_signer(request.signer))
                except (AverError, OSError) as error:
                    request.refuse(error)
            todo = [(request, held[id(request.signer)]) for request in batch if request.failure is None]
            if not todo:
                return
            stamp = self._keys.ring_stamp()
            expected = self._expected_writes(todo, stamp)
            try:
                outcome = self._store.write(
                    lambda transaction: self._seal_batch(transaction, todo, stamp, expected), expected
                )
            except _KeysNotRecorded:
                wider = replace(expected, chains=expected.chains | {KEYS_CHAIN})
                outcome = self._store.write(
                    lambda transaction: self._seal_batch(transaction, todo, stamp, wider), wider
                )
            for request, result in outcome.results:
                if isinstance(result, list):
                    request.succeed(result)
                else:
                    request.refuse(result)
            if outcome.recorded:
                self._recorded_keys = outcome.recorded | {one for one in self._recorded_keys if one[0] == stamp}

    def _expected_writes(self, todo: Sequence[tuple[AppendRequest, Signer]], stamp: object) -> ExpectedWrites:
        known = {fingerprint for at, fingerprint in self._recorded_keys if at == stamp}
        new = any(_fingerprint_or_none(signer) not in known for _, signer in todo)
        return ExpectedWrites(
            self._tenant,
            frozenset(request.chain for request, _ in todo),
            todo[0][0].drafts if len(todo) == 1 else [draft for request, _ in todo for draft in request.drafts],
            event_keys(self._keys.ring()) if new else (),
        )

    def _seal_batch(
        self,
        transaction: Transaction,
        todo: Sequence[tuple[AppendRequest, Signer]],
        stamp: object,
        expected: ExpectedWrites,
    ) -> _BatchResult:
        """Seal and insert every request, or learn why not."""
        outcome = _BatchResult()
        rows: dict[str, ChainRow] = {}
        for request, signer in todo:
            try:
                known = stamp, _fingerprint(signer)
                if known not in self._recorded_keys and known not in outcome.recorded:
                    events = self._unrecorded_events(transaction, signer)
                    if events and KEYS_CHAIN not in expected.chains:
                        raise _KeysNotRecorded
                    self._record_keys(transaction, signer, rows, events)
                    outcome.recorded.add(known)
                outcome.results.append((request, self._write_request(transaction, request, signer, rows)))
            except AverError as refusal:
                outcome.results.append((request, refusal))
            except _SignerError as failed:
                outcome.results.append((request, failed.__cause__ or failed))
        for row in rows.values():
            transaction.update_head(row)
        return outcome

    def _write_request(
        self, transaction: Transaction, request: AppendRequest, signer: Signer, chains: dict[str, ChainRow]
    ) -> list[Sealed]:
        """Seal and insert one request. Everything that can refuse it happens before the first insert."""
        row = chains.get(request.chain) or transaction.chain(self._tenant, request.chain)
        count, head, frozen = (row.count, row.head, row.frozen) if row else (0, None, False)
        if frozen:
            raise Refused("FROZEN", f"{request.chain} was imported and does not grow here")
        if request.after is not None and (request.after.count, request.after.hash) != (count, head):
            raise HeadMoved(request.after, Head(self._store.ledger_id, self._tenant, request.chain, count, head))
        blobs = {blob.digest: blob for draft in request.drafts for blob in draft.blobs}
        for digest in frozenset().union(*(draft.blob_digests for draft in request.drafts)):
            if digest not in blobs and not transaction.has_blob(self._tenant, digest):
                raise BadInput(f"the draft refers to the blob {digest}, which is not here", advice="pass it in blobs=")
        identity = {"ledger": self._store.ledger_id, "tenant": self._tenant, "name": request.chain}
        results: list[Sealed] = []
        taken = transaction.taken_ids(self._tenant, [draft.id for draft in request.drafts])
        keys = [draft.key for draft in request.drafts if draft.key is not None]
        used = self._find_used_keys(transaction, keys) if keys else {}
        new: list[tuple[Sealed, tuple[Any, ...]]] = []
        for draft in request.drafts:
            before = used.get(draft.key)
            if before is not None:
                if request.one:
                    raise Exists(str(draft.key), before)
                results.append(_mark_existing(before))
                continue
            if draft.id in taken:
                raise Refused(
                    "ID_TAKEN", f"a record with the id {draft.id} is already in the ledger", advice=_NEW_ID_ADVICE
                )
            taken.add(draft.id)
            sealed = _seal_draft(draft, signer, at=now(), sequence=count, previous_hash=head, chain=identity)
            sealed.chain = request.chain
            count, head = count + 1, sealed.hash
            results.append(sealed)
            new.append((sealed, (draft.id, draft.type, draft.kind, draft.key, draft.session, sealed.signed_at)))
            if draft.key is not None:
                used[draft.key] = sealed
        if new:
            if row is None:
                row = transaction.add_chain(self._tenant, request.chain)
            chains[request.chain] = row
            if blobs:
                transaction.add_blobs(self._tenant, blobs.items())
            transaction.add_records(row, new)
        return results

    def _unrecorded_events(self, transaction: Transaction, signer: Signer) -> list[KeyEvent]:
        """What the `keys` chain has yet to record before `signer` seals here."""
        ring = self._keys.ring()
        recorded = transaction.find_by_keys(self._tenant, event_keys(ring))
        return unrecorded_events(ring, signer.fingerprint, recorded.__contains__)

    def _record_keys(
        self, transaction: Transaction, signer: Signer, rows: dict[str, ChainRow], events: Sequence[KeyEvent]
    ) -> None:
        """Before a key of our ring seals here for the first time, what became of our keys goes into `keys`."""
        if not events:
            return
        ledger = self._store.ledger_id
        others = [row for row in transaction.chains(self._tenant) if row.name != KEYS_CHAIN]
        heads = [Head(ledger, self._tenant, row.name, row.count, row.head) for row in others]
        for event in events:
            draft, blobs = build_key_draft(event, heads)
            prepared = prepare_draft(draft, key=event.key, blobs=blobs)
            self._write_request(
                transaction, AppendRequest(KEYS_CHAIN, [prepared], signer, None, one=True), signer, rows
            )

    def _find_used_keys(self, transaction: Transaction, keys: Sequence[str]) -> dict[str | None, Sealed]:
        """The records that these idempotency keys stand for."""
        ring: Ring | None = None
        used: dict[str | None, Sealed] = {}
        for key, found in transaction.find_by_keys(self._tenant, keys).items():
            ring = ring or self._keys.ring()
            used[key] = verify_lookup(*found, "key", key, ring)
        return used


_NEW_ID_ADVICE = "leave the id out to get a new one; give a key to seal something only once"


class _KeysNotRecorded(Exception):
    """A key seals here for the first time: the transaction must begin again with the `keys` chain locked, too."""


class _SignerError(Exception):
    """What a signer raised; it is not the store's failure, and fails its own request only."""


def _fingerprint(signer: Signer) -> str:
    try:
        return signer.fingerprint
    except Exception as error:
        raise _SignerError from error


def _fingerprint_or_none(signer: Signer) -> str | None:
    try:
        return _fingerprint(signer)
    except _SignerError:
        return None  # Told to whoever asked for its signature.


def _seal_draft(draft: PreparedDraft, signer: Signer, **place: Any) -> Sealed:
    try:
        return draft.seal(signer, **place)
    except Exception as error:
        raise _SignerError from error


def _mark_existing(sealed: Sealed) -> Sealed:
    seal = (sealed.canonical, sealed.hash, sealed.signature, sealed.signature_pq, sealed.signed_at, sealed.signed_by)
    return Sealed(*seal, chain=sealed.chain, existed=True)


def verify_lookup(chain: str, row: RecordRow, column: str, value: str, ring: Ring) -> Sealed:
    """The record that a column led to, provided that it says the same and that its seal holds."""
    sealed = row.sealed
    sealed.chain = chain
    judge = ChainJudge(Rules(ring), chain=chain, start=None)
    content = judge.judge(sealed)
    broken = next((finding for finding in judge.tally.findings if finding.status == "failed"), None)
    if broken is not None or content is None or _signed_value(sealed, content, column) != value:
        code = "COLUMN_MISMATCH" if broken is None else broken.code
        words = f"its {column} is not {value}, under which it is stored" if broken is None else broken.words
        raise IntegrityError(
            code, f"chain {chain}, sequence {row.sequence}: {words}", evidence=sealed, advice="run: aver verify"
        )
    return sealed


def _signed_value(sealed: Sealed, content: dict[str, Any], column: str) -> Any:
    """What the signed bytes say of what a store searches by."""
    if column == "hash":
        return content_hash(sealed.canonical)
    return content.get("id") if column == "id" else (read_block(content) or {}).get("key")
