"""The signer of an identity in a key store: always the active key, never a retired one.

While it is held no rotation can take place, and its key is the ring's active one, looked up anew whenever
the ring's file has changed; so a process that lives across a rotation made elsewhere signs with the new key
from its next hold on, and what it signs is stamped with the key that signed it. Outside a hold, each call
holds for itself.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from aver.capsule.signing import Signature
from aver.keys.public_key import PublicKey
from aver.keys.signer import SeedSigner
from aver.keys.statement import StatementSignature

if TYPE_CHECKING:
    from aver.keys.files import Stamp
    from aver.keys.store import KeyStore

__all__ = ["StoreSigner"]


class StoreSigner:
    """Get one from `KeyStore.signer`. The key is made at the first use, if it is to be made at all."""

    def __init__(self, store: KeyStore, identity: str, *, create: bool, post_quantum: bool) -> None:
        self.identity = identity
        self._store = store
        self._create = create
        self._post_quantum = post_quantum
        self._loaded: tuple[Stamp | None, SeedSigner] | None = None

    def hold(self) -> AbstractContextManager[SeedSigner]:
        """Within the context the yielded signer's key is the active one and stays so. End it where it began."""
        return _Hold(self)

    @property
    def fingerprint(self) -> str:
        with self.hold() as signer:
            return signer.fingerprint

    @property
    def public(self) -> PublicKey:
        with self.hold() as signer:
            return signer.public

    def sign(self, digest: str) -> Signature:
        with self.hold() as signer:
            return signer.sign(digest)

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> StatementSignature:
        with self.hold() as signer:
            return signer.sign_statement(purpose, content)

    def _make_ready(self) -> None:
        if self._loaded is None and self._create:
            self._store.create_if_absent(self.identity, post_quantum=self._post_quantum)

    def _current(self) -> SeedSigner:
        """The active key. Called with the store's lock held."""
        now = self._store.ring_stamp()
        loaded = self._loaded
        if loaded is not None and loaded[0] == now:
            return loaded[1]
        signer = self._store.load_active(self.identity, loaded[1] if loaded else None)
        self._loaded = now, signer
        return signer

    def __repr__(self) -> str:
        return f"<StoreSigner {self.identity}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a signer may hold a private key and is not copied or pickled")


class _Hold:
    """A class and not a generator: this runs once per append."""

    __slots__ = ("_era", "_signer")

    def __init__(self, signer: StoreSigner) -> None:
        self._signer = signer
        self._era = -1

    def __enter__(self) -> SeedSigner:
        signer = self._signer
        if signer._loaded is None:
            signer._make_ready()
        store = signer._store
        store.lock.share(store.lock_timeout)
        self._era = store.lock.era
        try:
            return signer._current()
        except BaseException:
            store.lock.unshare(self._era)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signer._store.lock.unshare(self._era)
