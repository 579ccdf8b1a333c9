"""A head: which chain, how many records, and the hash of the last one.

Appends, verification, meta entries, key rotations and checkpoints all use this one type. As JSON:

    {"ledger": "<id>", "tenant": "default", "chain": "demo.run", "count": 3, "hash": "<64 hex digits>"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.capsule.canonical import has_surrogate
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

_HEX64 = lazy_pattern(r"[0-9a-f]{64}")


COUNT_END = 2**63
"""Counts of records are below this: stores and reports count in 64 bits."""


@dataclass(frozen=True, slots=True)
class Head:
    """`hash` is None for a chain without records."""

    ledger: str
    tenant: str
    chain: str
    count: int
    hash: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "ledger": self.ledger,
            "tenant": self.tenant,
            "chain": self.chain,
            "count": self.count,
            "hash": self.hash,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Head:
        """Read a head from JSON of unknown origin. Raises `BadInput` unless it has exactly this form."""
        if not isinstance(data, Mapping) or data.keys() != {"ledger", "tenant", "chain", "count", "hash"}:
            raise BadInput("a head has exactly the keys ledger, tenant, chain, count and hash")
        if not all(isinstance(data[key], str) for key in ("ledger", "tenant", "chain")):
            raise BadInput("a head's ledger, tenant and chain are strings")
        if any(has_surrogate(data[key]) for key in ("ledger", "tenant", "chain")):
            raise BadInput("a head's ledger, tenant or chain has half a character, which no name has")
        count, digest = data["count"], data["hash"]
        if type(count) is not int or not 0 <= count < COUNT_END:
            raise BadInput("a head's count is a number of records")
        is_hash = type(digest) is str and _HEX64.fullmatch(digest) is not None
        if (count == 0) != (digest is None) or (digest is not None and not is_hash):
            raise BadInput("a head's hash is 64 lower-case hex digits, or null when there are no records")
        return cls(data["ledger"], data["tenant"], data["chain"], count, digest)
