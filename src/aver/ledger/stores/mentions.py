"""Which blobs nobody needs after chains were removed.

A blob is kept if any other record has its digest anywhere in its bytes, whatever the digest means there. So a blob may
be kept in vain, but none is lost that a record refers to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_REFERENCE = re.compile(rb'"digest"\s*:\s*"([0-9a-f]{64})"')
_ANYWHERE = re.compile(rb"(?=([0-9a-f]{64}))")
"""A lookahead finds a digest at every place, also inside a longer run of hex digits."""


def find_references(records: Iterable[bytes]) -> set[str]:
    """The digests of the blobs that records refer to."""
    return {match[1].decode() for canonical in records for match in _REFERENCE.finditer(canonical)}


def leave_unmentioned(digests: set[str], records: Iterable[bytes]) -> set[str]:
    """The digests that none of these records mentions. Reads no further when none is left."""
    left = {digest.encode() for digest in digests}
    for canonical in records if left else ():
        for match in _ANYWHERE.finditer(canonical):
            left.discard(match[1])
        if not left:
            break
    return {digest.decode() for digest in left}
