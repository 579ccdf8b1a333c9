"""Checking the blobs of a bundle: every blob that a record refers to is here, with the bytes of its digest."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from aver.capsule.blobs import blob_references
from aver.errors import BadInput
from aver.files.regular import open_inside, read_chunks
from aver.ledger.bundle.layout import BLOBS
from aver.verdict import Finding, Place, Tally

BLOBS_KEPT = 100_000
"""How many blobs are remembered as seen; beyond that, one that is referred to again is read again."""

OTHER_BYTES, OTHER_SIZE = -1, -2
"""Stand for the size of a blob whose bytes are not those of its digest, or whose size is not that of a reference."""


class BlobCheck:
    """Checks the blobs of one bundle, each once. `are_left_out`: the index says that the bundle has no blobs."""

    def __init__(self, directory: Path, *, are_left_out: bool) -> None:
        self._directory = directory
        self._are_left_out = are_left_out
        self.sizes: dict[str, int | None] = {}
        """The sizes of blobs by digest; None for one that is not here."""
        self._linked: dict[tuple[int, int], str] = {}
        """The digests of files with several names, by device and inode."""

    def check(self, content: Any, place: Place, tally: Tally) -> None:
        """Check every blob that a record refers to."""
        for digest, size in blob_references(content):
            if self._are_left_out:
                tally.skip("blobs", "the bundle was made without its blobs", matters=True)
                return
            tally.count_done("blobs")
            actual = self.sizes.get(digest, OTHER_SIZE)
            if actual == OTHER_SIZE:
                actual = self._measure(digest, size)
            if len(self.sizes) < BLOBS_KEPT:
                self.sizes[digest] = actual
            if actual is None:
                tally.add(Finding("blobs", "failed", "ARTIFACT_MISSING", f"the blob {digest} is not here", place))
            elif actual != size:
                words = f"the blob stored as {digest} has other bytes"
                tally.add(Finding("blobs", "failed", "ARTIFACT_HASH_MISMATCH", words, place))

    def _measure(self, digest: str, expected: int) -> int | None:
        """Return how many bytes a blob has; `OTHER_SIZE`, `OTHER_BYTES`, or None if there is none."""
        try:
            with open_inside(self._directory, BLOBS, digest) as file:
                status = os.fstat(file.fileno())
                # Without this, a file with a hole of terabytes would be read to its end.
                if status.st_size != expected:
                    return OTHER_SIZE
                # One large file under the names of many digests is read once: it has the bytes of one of them at most.
                inode = status.st_dev, status.st_ino
                if inode in self._linked:
                    return expected if self._linked[inode] == digest else OTHER_BYTES
                hashed, size = hashlib.sha256(), 0
                for chunk in read_chunks(file):
                    hashed.update(chunk)
                    size += len(chunk)
        except BadInput:
            return None
        if status.st_nlink > 1 and len(self._linked) < BLOBS_KEPT:
            self._linked[inode] = hashed.hexdigest()
        return size if hashed.hexdigest() == digest else OTHER_BYTES
