"""Reading the records of a bundle: the interface that examiners use, over a bundle's files.

Chains are streamed from their files. Finding a record by its hash needs an index; it is made when first asked for, of
decisions only, with the records themselves in a temporary file. So memory grows with the number of decisions, not with
their size.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound, Unavailable
from aver.files.regular import open_inside
from aver.ledger.bundle.layout import BLOBS, read_chain_file
from aver.ledger.head import Head

BLOB_READ_MAX = 64 * 1024 * 1024
"""Bytes of a blob that is read into memory. Rules, risk states and diffs are far smaller."""

INDEXED_MAX = 200_000
"""Decisions that can be found by their hashes, at some 200 bytes of memory each."""

INDEXED_DOMAIN = "gate"


class BundleChanged(BadInput):
    """The files of a bundle are not those that were verified a moment ago."""


class RecordsDigest:
    """A digest over records in their order, with their seals. It shows whether a file was changed between readings."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, record: Sealed) -> None:
        seal = record.hash, record.signature, record.signature_pq, record.signed_at, record.signed_by
        for part in (record.canonical, *(text.encode("utf-8", "surrogatepass") for text in seal)):
            # Each part with its length: else the end of one could pass as the beginning of the next.
            self._hash.update(b"%d:" % len(part))
            self._hash.update(part)

    def finish(self) -> bytes:
        return self._hash.digest()


class BundleReader:
    """Reads the chains of a bundle that were judged. `heads`, `files` and `digests` are by the chains' ids.

    A chain whose records are no longer those of its digest raises `BundleChanged` at its end.
    """

    def __init__(
        self, directory: Path, heads: Mapping[str, Head], files: Mapping[str, str], digests: Mapping[str, bytes]
    ) -> None:
        self._directory = directory
        self._heads = heads
        self._files = files
        self._digests = digests
        self._index: dict[bytes, tuple[int, str]] | None = None
        self._spool: IO[bytes] | None = None

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> Iterator[Sealed]:
        if stop is not None and stop >= self.head(chain).count:
            stop = None  # To the end of the file, where its digest is compared.
        return islice(self._read_all(chain), start, stop)

    def _read_all(self, chain: str) -> Iterator[Sealed]:
        name = self._files.get(chain)
        if name is None:
            raise NotFound(f"the chain {chain} is not in the bundle")
        digest = RecordsDigest()
        with open_inside(self._directory, name) as file:
            for item in read_chain_file(file):
                if isinstance(item, Sealed):
                    digest.add(item)
                    item.chain = chain
                    yield item
        if self._digests.get(chain, digest.finish()) != digest.finish():
            raise BundleChanged(f"the chain {chain} changed while the bundle was read")

    def get(self, reference: str) -> Sealed | None:
        """The decision with this hash."""
        if self._index is None:
            self._index = self._build_index()
        found = self._index.get(reference.encode())
        if found is None or self._spool is None:
            return None
        offset, chain = found
        self._spool.seek(offset)
        # Unpickling is safe here: this process wrote the file, which has no name that others could open.
        return Sealed(*pickle.load(self._spool), chain=chain)

    def _build_index(self) -> dict[bytes, tuple[int, str]]:
        index: dict[bytes, tuple[int, str]] = {}
        try:
            spool = self._spool = TemporaryFile()  # noqa: SIM115 - closed with the reader
            for chain in self._files:
                for record in self._read_all(chain) if INDEXED_DOMAIN in chain.split(".") else ():
                    if len(index) >= INDEXED_MAX:
                        return index
                    index[record.hash.encode()] = spool.tell(), chain
                    seal = record.signature, record.signature_pq, record.signed_at, record.signed_by
                    pickle.dump((record.canonical, record.hash, *seal), spool)
        except OSError as error:
            raise Unavailable(f"cannot index the bundle: {error.strerror}", advice="free space in TMPDIR") from error
        return index

    def blob(self, digest: str) -> bytes:
        return read_blob(self._directory, digest)

    def head(self, chain: str) -> Head:
        head = self._heads.get(chain)
        if head is None:
            raise NotFound(f"the chain {chain} is not in the bundle")
        return head

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()


def read_blob(directory: Path, digest: str) -> bytes:
    """The bytes of a blob in a bundle; `BadInput` if they are not those of its digest."""
    with open_inside(directory, BLOBS, digest) as file:
        data = file.read(BLOB_READ_MAX + 1)
    if len(data) > BLOB_READ_MAX:
        raise NotFound(f"the blob {digest} is larger than {BLOB_READ_MAX} bytes, and was not read")
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadInput(f"the blob stored as {digest} has other bytes")
    return data
