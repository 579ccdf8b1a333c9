"""A record as one line of a list. What cannot be read of a damaged record is said so, never raised."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aver.cli.output import Painted, Screen, clipped, one_line, short_time
from aver.errors import AverError
from aver.values import dataclass

if TYPE_CHECKING:
    from aver.capsule import Sealed

__all__ = ["Entry", "entry_of", "print_entry", "sort_of"]

CHAIN_WIDTH = 28
"""Columns for a chain's name where lines of several chains are mixed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a list shows of a record. `sequence` and all words are the record's own; `log` verifies nothing."""

    chain: str | None
    sequence: int | None
    at: str
    type: str
    kind: str
    status: str
    summary: str
    hash: str
    id: str
    signed_by: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def entry_of(record: Sealed) -> Entry:
    seal: dict[str, Any] = {
        "chain": record.chain,
        "at": record.signed_at,
        "hash": record.hash,
        "signed_by": record.signed_by,
    }
    try:
        content = record.to_dict()
        outcome, trigger = content["outcome"], content["trigger"]
        return Entry(
            **seal,
            sequence=record.sequence,
            type=record.type,
            kind=record.kind,
            status=str(outcome.get("status", "")),
            summary=str(outcome.get("summary") or trigger.get("request") or ""),
            id=record.id,
        )
    except (AverError, AttributeError, KeyError, TypeError, ValueError):
        words = "cannot be read; aver verify tells what is wrong"
        return Entry(**seal, sequence=None, type="?", kind="?", status="?", summary=words, id="")


def sort_of(record_type: str, kind: str) -> str:
    """Type and kind as one word; `record` is a kind that says nothing."""
    return record_type if kind == "record" else f"{record_type}/{kind}"


def print_entry(screen: Screen, entry: Entry, *, with_chain: bool) -> None:
    sequence = "?" if entry.sequence is None else str(entry.sequence)
    sort = one_line(sort_of(entry.type, entry.kind))
    chain = one_line(entry.chain or "")
    before = f"{clipped(chain, CHAIN_WIDTH):<{CHAIN_WIDTH}} " if with_chain else ""
    before += f"{sequence:>4}  "
    middle = f"{short_time(entry.at)}  {clipped(sort, 22):<12}  "
    summary = one_line(entry.summary)
    if screen.terminal:
        summary = clipped(summary, screen.width - len(before) - len(middle) - 2)
    screen.line(before, Painted(middle, "dim"), screen.mark(entry.status), " ", summary)
