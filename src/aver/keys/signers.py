"""Signers: one with its seeds in memory, and one that uses the active key of an identity in a key store.

`SeedSigner` signs only two things: the hex digest of a capsule, and statements whose bytes it builds itself. It never
shows its seeds, and cannot be pickled or copied.

`StoreSigner` always signs with the active key, never with a retired one. While a caller holds it, no rotation can take
place. At each hold it looks whether the ring's file has changed. So a long-lived process signs with the new key from
its next hold on, after another process has rotated the key. Outside a hold, each call holds by itself.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from aver.capsule.sealed import Signature
from aver.errors import BadInput
from aver.keys import algorithms
from aver.keys.public_key import PublicKey
from aver.keys.statement import StatementSignature, statement_bytes
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey

    from aver.keys.private_files import Stamp
    from aver.keys.store import KeyStore

_DIGEST = lazy_pattern(r"[0-9a-f]{64}")


class SeedSigner:
    """Signs with the Ed25519 key of a 32-byte seed, and also with ML-DSA-65 if there is a second seed."""

    __slots__ = ("_pq", "_secret", "fingerprint", "public")

    fingerprint: str
    public: PublicKey

    def __init__(self, seed: bytes, pq_seed: bytes | None = None) -> None:
        public, self._secret = algorithms.ed25519_from_seed(seed)
        pq_public = b""
        self._pq: MLDSA65PrivateKey | None = None
        if pq_seed is not None:
            pq_public, self._pq = algorithms.ml_dsa_65_from_seed(pq_seed)
        self.public = PublicKey(public.hex(), pq_public.hex())
        self.fingerprint = self.public.fingerprint

    @classmethod
    def generate(cls, *, pq: bool = False) -> SeedSigner:
        """A signer with new random seeds, which are not stored anywhere."""
        return cls(os.urandom(algorithms.SEED_BYTES), os.urandom(algorithms.SEED_BYTES) if pq else None)

    def sign(self, digest: str) -> Signature:
        """Sign the 64 ASCII characters of a capsule's digest. `BadInput` for anything else."""
        if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
            raise BadInput(
                "a signer signs only capsule digests: 64 lower-case hex digits",
                advice="sign other things as statements",
            )
        message = digest.encode("ascii")
        return Signature(
            algorithms.sign_ed25519(self._secret, message), "" if self._pq is None else self._pq.sign(message).hex()
        )

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> StatementSignature:
        """Build the bytes of a statement and sign them."""
        message = statement_bytes(purpose, content)
        ml_dsa_65 = "" if self._pq is None else self._pq.sign(message).hex()
        return StatementSignature(self.fingerprint, algorithms.sign_ed25519(self._secret, message), ml_dsa_65)

    def __repr__(self) -> str:
        return f"<SeedSigner {self.fingerprint} {self.public.algorithm}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a signer holds a private key and is not copied or pickled")


class StoreSigner:
    """The signer of an identity; `KeyStore.signer` returns one. With `create`, the first use makes a missing key."""

    def __init__(self, store: KeyStore, identity: str, *, create: bool, post_quantum: bool) -> None:
        self.identity = identity
        self._store = store
        self._create = create
        self._post_quantum = post_quantum
        self._loaded: tuple[Stamp | None, SeedSigner] | None = None

    def hold(self) -> AbstractContextManager[SeedSigner]:
        """Give a signer whose key is the active one, and stays so. The context must end in the thread that began it."""
        return _SignerHold(self)

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

    def __repr__(self) -> str:
        return f"<StoreSigner {self.identity}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a signer may hold a private key and is not copied or pickled")


class _SignerHold:
    """The context of `StoreSigner.hold`. A class, because a generator is slower, and every append holds once."""

    __slots__ = ("_era", "_signer")

    def __init__(self, signer: StoreSigner) -> None:
        self._signer = signer
        self._era = -1

    def __enter__(self) -> SeedSigner:
        signer = self._signer
        store, loaded = signer._store, signer._loaded
        if loaded is None and signer._create:
            # Before the lock is taken for signing: creating a key takes it exclusively.
            store.create_if_absent(signer.identity, post_quantum=signer._post_quantum)
        store.lock.share(store.lock_timeout)
        self._era = store.lock.era
        try:
            # Under the lock, so that the key which is active now stays so until the context ends.
            stamp = store.ring_stamp()
            if loaded is not None and loaded[0] == stamp:
                return loaded[1]
            current = store.load_active(signer.identity, loaded[1] if loaded else None)
            signer._loaded = stamp, current
            return current
        except BaseException:
            store.lock.unshare(self._era)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signer._store.lock.unshare(self._era)
