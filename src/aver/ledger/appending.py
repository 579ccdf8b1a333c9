"""Appending: what happens between a prepared draft and a durable record.

Requests that wait at the same time are written in one commit (see `commit`). Within it, each request is sealed
and inserted after the other, in this order, always: the signers' keys are held still, the chains are locked, what
became of our keys is recorded, the request is checked, sealed, inserted. Everything that can refuse a request
happens before its first insertion, so that a refusal leaves nothing behind and harms no other request.

A store may ask for the same work again where another writer came first; so what became of each request is told to
its caller only once the transaction is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from typing import Any

from aver.capsule.block import block_of
from aver.capsule.prepared import Prepared, prepare
from aver.capsule.sealed import Sealed, content_hash
from aver.capsule.signing import HoldableSigner, Signer, holding
from aver.clock import now
from aver.errors import AverError, BadInput, Exists, HeadMoved, IntegrityError, Refused, Unavailable
from aver.keys import KeyStore, Ring
from aver.ledger.commit import GroupCommit, Request
from aver.ledger.head import Head
from aver.ledger.keychain import KEYS_CHAIN, KeyEvent, event_keys, key_draft, unrecorded
from aver.ledger.rows import ChainRow, Row
from aver.ledger.store import Expected, Store, Transaction
from aver.values import dataclass
from aver.verdict import ChainJudge, Rules

__all__ = ["AnySigner", "Append", "Appender", "genuine"]

AnySigner = Signer | HoldableSigner


class Append(Request[list[Sealed]]):
    """Drafts that go to the end of one chain together."""

    __slots__ = ("after", "chain", "drafts", "one", "signer")

    def __init__(
        self, chain: str, drafts: Sequence[Prepared], signer: AnySigner, after: Head | None, *, one: bool
    ) -> None:
        super().__init__()
        self.chain = chain
        self.drafts = drafts
        self.signer = signer
        self.after = after
        self.one = one
        """A single append: a key that was used before refuses it, instead of standing in its place."""


@dataclass(slots=True)
class _Outcome:
    """What became of a batch, to be told once it is durable."""

    results: list[tuple[Append, list[Sealed] | BaseException]] = field(default_factory=list)
    recorded: set[tuple[object, str]] = field(default_factory=set)
    """Signers of which it is now known that the `keys` chain has recorded them."""


class Appender:
    """Writes for one tenant of one store."""

    def __init__(self, store: Store, keys: KeyStore, tenant: str) -> None:
        self._store = store
        self._keys = keys
        self._tenant = tenant
        self._recorded_keys: set[tuple[object, str]] = set()
        self._commits: GroupCommit[Append] = GroupCommit(self._write)

    def submit(self, request: Append) -> list[Sealed]:
        """Return the request's records when they are durable."""
        self._commits.submit(request)
        if request.result is None:
            raise Unavailable("the record was not written")
        return request.result

    @contextmanager
    def together(
        self, signer: AnySigner, chains: Collection[str]
    ) -> Iterator[tuple[Transaction, Callable[[str, Prepared], Sealed]]]:
        """One durable transaction for records that are sealed now and for whatever else is written to these chains.

        Yields the transaction and a function that appends a prepared draft to a chain within it.
        """
        expected = Expected(self._tenant, frozenset({KEYS_CHAIN, *chains}))
        with holding(signer) as held, self._store.writing(expected) as transaction:
            rows: dict[str, ChainRow] = {}
            self._record_keys(transaction, held, rows, self._unrecorded(transaction, held))

            def append(chain: str, draft: Prepared) -> Sealed:
                return self._write_one(transaction, Append(chain, [draft], held, None, one=True), held, rows)[0]

            yield transaction, append
            for row in rows.values():
                transaction.advance(row)

    def _write(self, batch: Sequence[Append]) -> None:
        """Write a batch in one durable commit. Keys are held still first, then the chains are locked, always so."""
        with ExitStack() as holds:
            held: dict[int, Signer] = {}
            for request in batch:
                try:
                    if id(request.signer) not in held:
                        held[id(request.signer)] = holds.enter_context(holding(request.signer))
                except (AverError, OSError) as error:
                    request.refuse(error)
            todo = [(request, held[id(request.signer)]) for request in batch if request.failure is None]
            if not todo:
                return
            stamp = self._keys.ring_stamp()
            expected = self._expected(todo, stamp)
            try:
                outcome = self._store.write(
                    lambda transaction: self._seal(transaction, todo, stamp, expected), expected
                )
            except _KeysToRecord:
                wider = replace(expected, chains=expected.chains | {KEYS_CHAIN})
                outcome = self._store.write(lambda transaction: self._seal(transaction, todo, stamp, wider), wider)
            for request, result in outcome.results:
                if isinstance(result, list):
                    request.succeed(result)
                else:
                    request.refuse(result)
            if outcome.recorded:
                self._recorded_keys = outcome.recorded | {one for one in self._recorded_keys if one[0] == stamp}

    def _expected(self, todo: Sequence[tuple[Append, Signer]], stamp: object) -> Expected:
        known = {fingerprint for at, fingerprint in self._recorded_keys if at == stamp}
        new = any(_fingerprint_or_none(signer) not in known for _, signer in todo)
        return Expected(
            self._tenant,
            frozenset(request.chain for request, _ in todo),
            todo[0][0].drafts if len(todo) == 1 else [draft for request, _ in todo for draft in request.drafts],
            event_keys(self._keys.ring()) if new else (),
        )

    def _seal(
        self, transaction: Transaction, todo: Sequence[tuple[Append, Signer]], stamp: object, expected: Expected
    ) -> _Outcome:
        """Seal and insert every request, or learn why not."""
        outcome = _Outcome()
        rows: dict[str, ChainRow] = {}
        for request, signer in todo:
            try:
                known = stamp, _fingerprint(signer)
                if known not in self._recorded_keys and known not in outcome.recorded:
                    events = self._unrecorded(transaction, signer)
                    if events and KEYS_CHAIN not in expected.chains:
                        raise _KeysToRecord
                    self._record_keys(transaction, signer, rows, events)
                    outcome.recorded.add(known)
                outcome.results.append((request, self._write_one(transaction, request, signer, rows)))
            except AverError as refusal:
                outcome.results.append((request, refusal))
            except _SignerError as failed:
                outcome.results.append((request, failed.__cause__ or failed))
        for row in rows.values():
            transaction.advance(row)
        return outcome

    def _write_one(
        self, transaction: Transaction, request: Append, signer: Signer, chains: dict[str, ChainRow]
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
        used = self._used(transaction, keys) if keys else {}
        new: list[tuple[Sealed, tuple[Any, ...]]] = []
        for draft in request.drafts:
            before = used.get(draft.key)
            if before is not None:
                if request.one:
                    raise Exists(str(draft.key), before)
                results.append(_marked(before))
                continue
            if draft.id in taken:
                raise Refused("ID_TAKEN", f"a record with the id {draft.id} is already in the ledger", advice=_NEW_ID)
            taken.add(draft.id)
            sealed = _sealed(draft, signer, at=now(), sequence=count, previous_hash=head, chain=identity)
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

    def _unrecorded(self, transaction: Transaction, signer: Signer) -> list[KeyEvent]:
        """What the `keys` chain has yet to record before `signer` seals here."""
        ring = self._keys.ring()
        recorded = transaction.by_keys(self._tenant, event_keys(ring))
        return unrecorded(ring, signer.fingerprint, recorded.__contains__)

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
            draft, blobs = key_draft(event, heads)
            prepared = prepare(draft, key=event.key, blobs=blobs)
            self._write_one(transaction, Append(KEYS_CHAIN, [prepared], signer, None, one=True), signer, rows)

    def _used(self, transaction: Transaction, keys: Sequence[str]) -> dict[str | None, Sealed]:
        """The records that these idempotency keys stand for."""
        ring: Ring | None = None
        used: dict[str | None, Sealed] = {}
        for key, found in transaction.by_keys(self._tenant, keys).items():
            ring = ring or self._keys.ring()
            used[key] = genuine(*found, "key", key, ring)
        return used


_NEW_ID = "leave the id out to get a new one; give a key to seal something only once"


class _KeysToRecord(Exception):
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


def _sealed(draft: Prepared, signer: Signer, **place: Any) -> Sealed:
    try:
        return draft.seal(signer, **place)
    except Exception as error:
        raise _SignerError from error


def _marked(sealed: Sealed) -> Sealed:
    seal = (sealed.canonical, sealed.hash, sealed.signature, sealed.signature_pq, sealed.signed_at, sealed.signed_by)
    return Sealed(*seal, chain=sealed.chain, existed=True)


def genuine(chain: str, row: Row, column: str, value: str, ring: Ring) -> Sealed:
    """The record that a column led to, provided that it says the same and that its seal holds."""
    sealed = row.sealed
    sealed.chain = chain
    judge = ChainJudge(Rules(ring), chain=chain, start=None)
    content = judge.judge(sealed)
    broken = next((finding for finding in judge.tally.findings if finding.status == "failed"), None)
    if broken is not None or content is None or _said(sealed, content, column) != value:
        code = "COLUMN_MISMATCH" if broken is None else broken.code
        words = f"its {column} is not {value}, under which it is stored" if broken is None else broken.words
        raise IntegrityError(
            code, f"chain {chain}, sequence {row.sequence}: {words}", evidence=sealed, advice="run: aver verify"
        )
    return sealed


def _said(sealed: Sealed, content: dict[str, Any], column: str) -> Any:
    """What the signed bytes say of what a store searches by."""
    if column == "hash":
        return content_hash(sealed.canonical)
    return content.get("id") if column == "id" else (block_of(content) or {}).get("key")
