"""Moments of a ledger: which chains it has, how long they are, and where they end, all read at once.

A moment has an id, which follows from its content. A client that reads the chains page by page, or that comes back to
the live stream, names the moment that it knows. So it gets pages of one state, and exactly the changes since then.
The server keeps the newest moments only; about an older one it says that it is gone.

    {"name": "claude-code.5d2e", "count": 12, "head": "<64 hex digits>", "frozen": false, "origin": null}
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from aver.ledger.stores.protocol import ChainRow

MOMENTS_KEPT = 64
"""Moments that the server remembers. A busy ledger has one a second."""

ROWS_KEPT = 1_000_000
"""Rows of all these moments together. Rows that did not change are shared, so each takes 8 bytes more."""

ID_DIGITS = 32


@dataclass(frozen=True, slots=True)
class ChainState:
    """A chain as its head row has it. Nothing here is verified: the page does that."""

    name: str
    count: int
    head: str | None
    frozen: bool
    origin: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "count": self.count,
            "head": self.head,
            "frozen": self.frozen,
            "origin": self.origin,
        }


@dataclass(frozen=True, slots=True)
class Moment:
    """All chains of a tenant at one time, in the order of the store. Two with the same id are the same."""

    id: str
    chains: tuple[ChainState, ...] = field(compare=False)
    by_name: Mapping[str, ChainState] = field(compare=False)

    @property
    def records(self) -> int:
        return sum(chain.count for chain in self.chains)


@dataclass(frozen=True, slots=True)
class Difference:
    """The chains that are new or have changed between two moments, and the names of those that are gone."""

    changed: tuple[ChainState, ...]
    gone: tuple[str, ...]


def compare_moments(before: Moment, after: Moment) -> Difference:
    """The differences from one moment to a later one."""
    changed = tuple(chain for chain in after.chains if before.by_name.get(chain.name) != chain)
    return Difference(changed, tuple(name for name in before.by_name if name not in after.by_name))


class Moments:
    """The newest moments of one ledger. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Moment] = OrderedDict()

    def add(self, rows: Iterable[ChainRow]) -> Moment:
        """Remember the state that was just read, and return it. The same state is the same moment."""
        with self._lock:
            last = next(reversed(self._kept.values()), None)
            known: Mapping[str, ChainState] = {} if last is None else last.by_name
            chains = tuple(_share(known, row) for row in rows)
            listed = orjson.dumps([chain.to_dict() for chain in chains])
            name = hashlib.sha256(listed).hexdigest()[:ID_DIGITS]
            moment = self._kept.pop(name, None) or Moment(name, chains, {chain.name: chain for chain in chains})
            self._kept[name] = moment
            self._forget()
            return moment

    def find(self, name: str) -> Moment | None:
        """The moment with this id; None if it is gone or never was."""
        with self._lock:
            return self._kept.get(name)

    def _forget(self) -> None:
        rows = sum(len(moment.chains) for moment in self._kept.values())
        # The newest one stays, and the one before it: a client is reading that one now.
        while len(self._kept) > 2 and (len(self._kept) > MOMENTS_KEPT or rows > ROWS_KEPT):
            _, gone = self._kept.popitem(last=False)
            rows -= len(gone.chains)


def _share(known: Mapping[str, ChainState], row: ChainRow) -> ChainState:
    state = ChainState(row.name, row.count, row.head, row.frozen, row.origin)
    before = known.get(row.name)
    return before if before == state else state
