"""The ledger: named append-only chains of sealed records, for one tenant, in one store.

    with open_ledger() as ledger:
        sealed = ledger.append("demo.first-run", Capsule(type="tool", ...))
        verdict = ledger.verify()

`append` returns only when the record is durable, or raises. Any number of threads, tasks and processes may call it at
once. A `Ledger` reads and writes the records of its own tenant only. Reading returns what is stored, intact or not;
`verify` finds damage.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from aver.capsule.aver_block import IMPORT_DOMAIN, RESERVED_CHAINS, check_chain_name, check_tenant, is_tenant_name
from aver.capsule.blobs import Blob
from aver.capsule.canonical import has_surrogate
from aver.capsule.draft import PreparedDraft, prepare_draft
from aver.capsule.model import Capsule
from aver.capsule.sealed import Sealed
from aver.capsule.uri import parse_uri
from aver.config import Config, ensure_home, load_config
from aver.errors import BadInput, IntegrityError, NotFound
from aver.keys import LEDGER, KeyLike, KeyStore, Ring, StoreSigner
from aver.lazy_pattern import lazy_pattern
from aver.ledger.append import AnySigner, Appender, AppendPart, AppendRequest, Entry, verify_lookup
from aver.ledger.head import Head
from aver.ledger.stores.protocol import ChainRow, LookupColumn, RecordRow, Search, Store, Transaction
from aver.ledger.stores.urls import is_on_server, open_store, path_from_url

if TYPE_CHECKING:
    from aver.verdict import Examiner, Level, Verdict

SLICE = 1000
"""How many records are read in one short transaction."""

FIRST_PAGE = 64
"""How many records `find_newest` reads first. Each further page is twice as long, up to `SLICE`."""

SLICE_BYTES = 16 * 1024 * 1024
"""Bytes after which a transaction reads no further: all that it has read is in memory at once."""

ROWS_MAX = 2**63 - 1
"""The largest row or sequence number that a store can keep."""

_IMPORT_PREFIX = f"{IMPORT_DOMAIN}."

_HEX64 = lazy_pattern(r"[0-9a-f]{64}")
_UUID = lazy_pattern(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Ledger:
    """Open one with `open_ledger`."""

    are_blobs_left_out = False
    """Whether large values are not here on purpose: only in a bundle that was made without them."""

    def __init__(
        self,
        store: Store,
        keys: KeyStore,
        *,
        tenant: str,
        signer: AnySigner | None,
        config: Config,
        examiners: Sequence[Examiner] = (),
    ) -> None:
        self.store = store
        self.keys = keys
        self.tenant = check_tenant(tenant)
        self.config = config
        self.examiners = tuple(examiners)
        """The rooms' own checks on their records, which `verify` adds to its own."""
        self._signer = signer
        self._appender = Appender(store, keys, self.tenant, signer)

    @property
    def id(self) -> str:
        """The ledger's random id, which it gets when it is created."""
        return self.store.ledger_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    # --- writing

    def append(
        self,
        chain: str,
        draft: Capsule | Mapping[str, Any],
        *,
        signer: AnySigner | None = None,
        key: str | None = None,
        after: Head | None = None,
        blobs: Sequence[Blob] = (),
    ) -> Sealed:
        """Seal a draft at the end of a chain, and return when it is durable.

        `key` is an idempotency key, unique in the tenant. If it was used before, this raises `Exists` with that record.
        `after` is the head that the caller has seen. If the chain has moved on, this raises `HeadMoved`.
        """
        return self.append_together([Entry(chain, draft, key, after, blobs)], signer=signer)[0]

    def append_many(
        self,
        chain: str,
        drafts: Iterable[Capsule | Mapping[str, Any]],
        *,
        signer: AnySigner | None = None,
        keys: Sequence[str | None] | None = None,
        after: Head | None = None,
        blobs: Sequence[Blob] = (),
    ) -> list[Sealed]:
        """Seal drafts at the end of a chain in one durable commit: all of them or none.

        For a key that was used before, the result has the existing record, with `existed` set.
        """
        self._check_place(chain, after)
        drafts = list(drafts)
        if keys is not None and len(keys) != len(drafts):
            raise BadInput(f"{len(drafts)} drafts were given with {len(keys)} keys")
        prepared = [
            prepare_draft(draft, key=key, blobs=blobs if index == 0 else ())
            for index, (draft, key) in enumerate(zip(drafts, keys or [None] * len(drafts), strict=True))
        ]
        if not prepared:
            return []
        request = AppendRequest([AppendPart(chain, prepared, after)], signer or self.signer(), refuse_existing=False)
        return self._appender.submit(request)

    def append_together(self, entries: Sequence[Entry], *, signer: AnySigner | None = None) -> list[Sealed]:
        """Seal entries at the ends of their chains in one durable commit: all of them or none.

        The records are sealed in the order of the entries. They may refer to each other by id, and to each other's
        blobs. An entry that would be refused alone refuses the call, by the same error: `Exists`, `HeadMoved` and so
        on. A key that occurs twice in the call is `BadInput`.
        `after` of an entry is the head of its chain before the call, also in the second entry for a chain.
        """
        parts: list[AppendPart] = []
        # All slow work that can fail comes first, before this request waits for its turn to be written.
        for entry in entries:
            self._check_place(entry.chain, entry.after)
            prepared = prepare_draft(entry.draft, key=entry.key, blobs=entry.blobs)
            parts.append(AppendPart(entry.chain, [prepared], entry.after))
        keys = [draft.key for part in parts for draft in part.drafts if draft.key is not None]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise BadInput(f"two entries of one call have the key {twice!r}", advice="give each record its own key")
        if not parts:
            return []
        request = AppendRequest(parts, signer or self.signer(), refuse_existing=True)
        return self._appender.submit(request)

    def append_reserved(self, chain: str, draft: Capsule, *, key: str | None, after: Head | None = None) -> Sealed:
        """Append to `meta` or `keys`, which only the ledger itself may write."""
        signer = self.attesting_signer()
        part = AppendPart(chain, [prepare_draft(draft, key=key)], after)
        request = AppendRequest([part], signer, refuse_existing=True)
        return self._appender.submit(request)[0]

    def close_chain(self, chain: str) -> Sealed:
        """Record in `meta` where a chain ends now, so that `verify` finds it cut or deleted later."""
        from aver.ledger.meta_chain import close_chain

        return close_chain(self, check_chain_name(chain))

    def sweep(self) -> list[Sealed]:
        """Record in `meta` the heads of all chains that changed since they were last recorded. Call it now and then."""
        from aver.ledger.meta_chain import sweep

        return sweep(self)

    def transaction(
        self, *chains: str
    ) -> AbstractContextManager[tuple[Transaction, Callable[[str, PreparedDraft], Sealed]]]:
        """Open one durable transaction: the ledger's signer seals in it, and the caller may write to `chains`."""
        return self._appender.transaction(self.attesting_signer(), chains)

    def record_keys(self) -> None:
        """Record new and ended keys in the `keys` chain. Appending does this, too."""
        with self.transaction():
            pass  # Every transaction begins with this step.

    def signer(self) -> AnySigner:
        """The signer of every append that names no other; made at the first call."""
        if self._signer is None:
            self._signer = self.keys.signer("ledger", post_quantum=self.config.post_quantum)
        return self._signer

    def attesting_signer(self) -> AnySigner:
        """The signer that speaks for the ledger: for `meta`, `keys` and checkpoints.

        It is the signer of the appends, unless our ring says that its key belongs to an agent: then the ledger's key.
        """
        signer = self.signer()
        ring = self.keys.ring()
        if isinstance(signer, StoreSigner):
            entry = ring.active(signer.identity)
        else:
            entry = ring.entry(signer.fingerprint) if hasattr(signer, "fingerprint") else None
        if entry is None or entry.role.may_attest:
            return signer
        return self.keys.signer(LEDGER, post_quantum=self.config.post_quantum)

    def _check_place(self, chain: str, after: Head | None) -> None:
        """Raise `BadInput` unless a caller may append to `chain`, and `after` is a head of this chain."""
        if check_chain_name(chain) in RESERVED_CHAINS:
            raise BadInput(f"the chain {chain!r} is written by the ledger itself")
        if chain.startswith(_IMPORT_PREFIX):
            raise BadInput(f"{chain!r}: chains that begin with {_IMPORT_PREFIX!r} are imports", advice="name another")
        if after is not None and (after.ledger, after.tenant, after.chain) != (self.id, self.tenant, chain):
            raise BadInput(f"after= is the head of {after.chain!r} in another ledger or chain, not of {chain!r} here")

    # --- reading

    def head(self, chain: str) -> Head:
        """The head of a chain; for a chain without records, count 0 and no hash."""
        row = self.store.chain(self.tenant, check_chain_name(chain))
        return self._head_from_row(row) if row else Head(self.id, self.tenant, chain, 0, None)

    def heads(self) -> list[Head]:
        return [self._head_from_row(row) for row in self.store.chains(self.tenant)]

    def chains(self) -> list[str]:
        return [row.name for row in self.store.chains(self.tenant)]

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        """The records of a chain in order, as stored, from `start` up to `stop` or the present head.

        Raises `NotFound` if there is no such chain.
        """
        row = self.store.chain(self.tenant, check_chain_name(chain))
        if row is None:
            raise NotFound(f"there is no chain {chain} in this ledger", advice="aver log lists the chains")
        bound = row.count if stop is None else min(stop, row.count)
        return self._read_range(row, max(start, 0), bound)

    def _read_range(self, row: ChainRow, start: int, stop: int) -> Iterator[Sealed]:
        while start < stop:
            end = min(start + SLICE, stop)
            batch, size = [], 0
            with self.store.read_rows(row, start, end) as rows:
                for stored in rows:
                    batch.append(stored.sealed)
                    size += len(stored.sealed.canonical)
                    if size > SLICE_BYTES:
                        end = int(stored.sequence) + 1
                        break
            for sealed in batch:
                sealed.chain = row.name
            yield from batch
            # A forged head row may claim any number of records: skip a gap in one query, not slice by slice.
            found = end if batch else self.store.next_sequence(row, end)
            start = stop if found is None else found

    def get(self, reference: str) -> Sealed | None:
        """Find a record by hash, id, `capsule://` URI or idempotency key; None if there is none.

        Raises `IntegrityError` if a record that was found by hash, id or key does not verify. A URI that names a place,
        such as `capsule://demo.run/3`, returns the record as it is stored.
        """
        if reference.startswith("capsule://"):
            return self._get_by_uri(reference)
        found = self.look_up(reference)
        return None if found is None else verify_lookup(*found, self.keys.ring())

    def look_up(self, reference: str) -> tuple[str, RecordRow, LookupColumn, str] | None:
        """Find a record by hash, id or idempotency key, and do not verify it: the caller must.

        Returns its chain, its row, and the column and value that led to it. Columns are not signed.
        """
        wanted: list[LookupColumn] = ["hash"] if _HEX64.fullmatch(reference) else []
        if not wanted and not has_surrogate(reference):
            wanted = ["id", "key"] if _UUID.fullmatch(reference) else ["key"]
        for column in wanted:
            found = self.store.find_first(self.tenant, column, reference)
            if found is not None:
                return *found, column, reference
        return None

    def _get_by_uri(self, reference: str) -> Sealed | None:
        uri = parse_uri(reference)
        if uri.sequence is not None:
            row = self.store.chain(self.tenant, str(uri.chain))
            at = uri.sequence
            return None if row is None or at >= ROWS_MAX else next(self._read_range(row, at, at + 1), None)
        column: LookupColumn = "id" if uri.hash is None else "hash"
        value = str(uri.hash or uri.id)
        found = self.store.find_first(self.tenant, column, value)
        sealed = None if found is None else verify_lookup(*found, column, value, self.keys.ring())
        # A URI that also names a chain means no record of another chain.
        return sealed if sealed is not None and uri.chain in (None, sealed.chain) else None

    def find(
        self,
        *,
        chain: str | None = None,
        type: str | None = None,  # noqa: A002 - the specification's name
        kind: str | None = None,
        session: str | None = None,
        since: str | None = None,
        until: str | None = None,
        start: int = 0,
        stop: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Sealed]:
        """Records that match, oldest first. `since` and `until` are compared with the time of sealing.

        Records of imported chains are among them, unless `chain` names another; `Sealed.chain` tells.
        `start` and `stop` are sequence numbers in a record's own chain; use them with `chain`.
        """
        names = (chain, type, kind, session, since, until)
        if start > ROWS_MAX or any(has_surrogate(name) for name in names if name is not None):
            return  # No stored record can match.
        search = Search(*names, start=max(start, 0) or None, stop=None if stop is None else min(stop, ROWS_MAX))
        newest = 0
        remaining = limit
        while remaining is None or remaining > 0:
            most = SLICE if remaining is None else min(SLICE, remaining)
            page = self.store.read_page(self.tenant, search, newer_than=newest, limit=most)
            for _, name, row in page:
                row.sealed.chain = name
                yield row.sealed
            if len(page) < most:
                return
            remaining = None if remaining is None else remaining - len(page)
            newest, _, last = page[-1]
            if chain is not None:
                # Go on by the index of the chain, not by row numbers.
                if builtins.type(last.sequence) is not int:
                    return  # Such rows come last in their chain; the verifier reports them.
                newest, search = 0, replace(search, start=last.sequence + 1)

    def find_newest(
        self,
        *,
        chain: str | None = None,
        type: str | None = None,  # noqa: A002 - the specification's name
        kind: str | None = None,
        session: str | None = None,
        since: str | None = None,
        until: str | None = None,
        kind_group: str | None = None,
        stop: int | None = None,
        limit: int | None = None,
        first_page: int = FIRST_PAGE,
    ) -> Iterator[Sealed]:
        """Records that match, newest first. Reads from the end of the ledger, and no further than the caller does.

        `kind_group` matches all kinds that begin with this word and a dot, such as `audit`. `stop` is the sequence
        number before which they are, in a record's own chain; use it with `chain`. `first_page` is how many matching
        records are read first: a caller who needs few should say so, because the search goes on until then.
        """
        names = (chain, type, kind, session, since, until)
        if any(has_surrogate(name) for name in names if name is not None):
            return  # No stored record can match.
        search = Search(*names, kind_group=kind_group, stop=None if stop is None else min(stop, ROWS_MAX))
        oldest, remaining = ROWS_MAX, limit
        most = first_page
        while remaining is None or remaining > 0:
            most = most if remaining is None else min(most, remaining)
            page = self.store.read_newest(self.tenant, search, older_than=oldest, limit=most)
            for _, name, row in page:
                row.sealed.chain = name
                yield row.sealed
            if len(page) < most:
                return
            remaining = None if remaining is None else remaining - len(page)
            oldest, _, last = page[-1]
            if chain is not None:
                if builtins.type(last.sequence) is not int:
                    return
                oldest, search = ROWS_MAX, replace(search, stop=last.sequence)
            most = min(SLICE, 2 * most)

    def find_newer(self, row: int, *, session: str, since: str, limit: int) -> list[tuple[int, Sealed]]:
        """The next records of a session after a row of the store, oldest first, each with its row: for those who read
        on. Rows are the store's own numbers: after a copy to another store they are others. Imports are left out."""
        if has_surrogate(session):
            return []
        search = Search(session=session, since=since, is_own=True)
        if row == 0:
            # Older records cannot match. So the cost of a session's first look does not grow with the ledger.
            row = self.store.newest_row_before(self.tenant, since)
        page = self.store.read_page(self.tenant, search, newer_than=min(row, ROWS_MAX), limit=limit)
        for _, name, found in page:
            found.sealed.chain = name
        return [(number, found.sealed) for number, _, found in page]

    def blob(self, digest: str) -> bytes:
        """The bytes of a blob, checked against the digest. Raises `NotFound` or `IntegrityError`."""
        found = self.store.blob(self.tenant, digest) if _HEX64.fullmatch(digest) else None
        if found is None:
            raise NotFound(f"there is no blob {digest} in this ledger")
        if found.digest != digest:
            raise IntegrityError("ARTIFACT_HASH_MISMATCH", f"the blob stored as {digest} has the digest {found.digest}")
        return found.data

    def ring(self, keys: Iterable[KeyLike] = ()) -> Ring:
        """The keys to verify with: exactly the given keys, or else our ring and the known keys."""
        pinned = Ring.pin(keys)
        return pinned if pinned.known else self.keys.ring()

    def verify(
        self,
        chain: str | None = None,
        *,
        level: Level = "signature",
        since: Head | Literal["last"] | None = None,
        keys: Iterable[KeyLike] = (),
        require_pq: bool = False,
        examiners: Sequence[Examiner] | None = None,
    ) -> Verdict:
        """Verify one chain, or all chains of the tenant.

        With `since`, read only the records after a head that the caller trusts, or (`"last"`) after the records that
        were verified on this machine before.
        `examiners` are those of the ledger, unless others are given.
        """
        from aver.ledger.verify import verify_ledger

        return verify_ledger(
            self,
            chain,
            level=level,
            since=since,
            ring=self.ring(keys),
            require_pq=require_pq,
            examiners=self.examiners if examiners is None else examiners,
        )

    def _head_from_row(self, row: ChainRow) -> Head:
        return Head(self.id, self.tenant, row.name, row.count, row.head)


def open_ledger(
    url: str | Path | None = None,
    *,
    tenant: str | None = None,
    signer: AnySigner | None = None,
    create: bool = True,
    home: Path | None = None,
    examiners: Sequence[Examiner] = (),
) -> Ledger:
    """Open the ledger at `url` (default: `AVER_LEDGER`, the settings, or `AVER_HOME/ledger.db`).

    Creates the ledger if there is none, unless `create` is False. `signer` signs the records; the default is the key
    of the identity `ledger` in `AVER_HOME`, which is created at the first append.
    `aver.open_ledger` gives the `examiners` of all rooms.
    """
    config = load_config(home=home, ledger=None if url is None else str(url), tenant=tenant)
    return open_configured_ledger(config, signer=signer, create=create, examiners=examiners)


def open_configured_ledger(
    config: Config, *, signer: AnySigner | None = None, create: bool = True, examiners: Sequence[Examiner] = ()
) -> Ledger:
    """Open the ledger that settings name. For callers that have read the settings already."""
    if create and not is_on_server(config.ledger) and path_from_url(config.ledger).parent == config.home:
        ensure_home(config.home)
    try:
        store = open_store(config.ledger, create=create, timeout=config.lock_timeout)
    except BadInput as error:
        path = Path(config.ledger)
        if path.suffix == ".cap" or (path / "index.json").is_file():
            words = f"{path} is a bundle or a .cap file, and can only be read"
            advice = "aver log, show and sessions read it, aver verify verifies it, aver import stores its chains"
            raise BadInput(words, advice=advice) from error
        raise
    keys = KeyStore(config.home, lock_timeout=config.lock_timeout)
    return Ledger(store, keys, tenant=config.tenant, signer=signer, config=config, examiners=examiners)


def list_tenants(url: str | Path | None = None, *, home: Path | None = None) -> list[str]:
    """The tenants of a ledger, for the person who runs it. A tenant must not see this list."""
    config = load_config(home=home, ledger=None if url is None else str(url))
    store = open_store(config.ledger, create=False, timeout=config.lock_timeout)
    try:
        return [name for name in store.tenants() if is_tenant_name(name)]
    finally:
        store.close()
