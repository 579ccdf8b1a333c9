"""How much of a ledger is indexed. Every answer of the index says it."""

from __future__ import annotations

from typing import Any

from aver.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """How far the index is. A list or search covers only what it has read."""

    records: int
    """Records that were read into the index."""
    of_records: int
    """Records of the ledger, by its head rows."""
    sessions: int = 0
    """Sessions whose figures are as new as their records. Figures of a long session are counted now and then."""
    of_sessions: int = 0
    cut: int = 0
    """Records with more text than is searched."""
    unreadable: tuple[str, ...] = ()
    """Chains that could not be read to their end; `aver verify` says why."""
    note: str = ""
    """Why the index did not go on, if it did not: another process writes it, or the caller stopped it."""

    @property
    def is_complete(self) -> bool:
        return self.records >= self.of_records and self.sessions >= self.of_sessions and not self.unreadable

    def to_dict(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "of_records": self.of_records,
            "sessions": self.sessions,
            "of_sessions": self.of_sessions,
            "cut": self.cut,
            "unreadable": list(self.unreadable),
            "complete": self.is_complete,
            "note": self.note,
        }
