"""Remembered heads: what makes cutting, deleting and rolling back visible.

A chain that lost its tail is still a perfect chain. Only someone who remembers how long it was can tell. Three
memories are compared in the same way: the `meta` chain, a signed checkpoint that was kept elsewhere, and
`seen.json`, where this machine notes the newest meta head it has verified.

A chain that is longer than remembered has grown, which is normal. One that is shorter is `TRUNCATED`, one that is
gone `CHAIN_MISSING`, and one with another record at the remembered place `ROLLBACK`, with both heads as proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aver.capsule.reading import read_json
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.home import replace_file
from aver.ledger.head import Head
from aver.ledger.outside import open_file
from aver.verdict import Finding, Place, Tally

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = ["META_CHAIN", "check_seen", "hold_to_head", "hold_to_heads", "remember"]

META_CHAIN = "meta"
SEEN_FILE = "seen.json"

SEEN_BYTES = 8 * 1024 * 1024
"""More than `SEEN_MAX` heads take."""

SEEN_MAX = 10_000
"""Ledgers and tenants remembered; beyond that, those that were verified longest ago are forgotten."""

_LEDGER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def hold_to_heads(ledger: Ledger, heads: Iterable[Head], tally: Tally, *, check: str, remembered: str) -> int:
    """Hold the ledger's chains to remembered heads. Returns how many of them have grown since."""
    rows = {row.name: row for row in ledger.store.chains(ledger.tenant)}
    grown = 0
    for head in heads:
        row = rows.get(head.chain)
        actual = None if row is None else Head(ledger.id, ledger.tenant, row.name, row.count, row.head)
        try:
            there = None if row is None else ledger.store.hash_at(row, head.count - 1)
        except Unavailable as error:
            tally.skip(check, f"the remembered record of {head.chain} cannot be read: {error.message}", matters=True)
            continue
        grown += hold_to_head(head, actual, there, tally, check=check, remembered=remembered)
    return grown


def hold_to_head(
    head: Head, actual: Head | None, there: str | None, tally: Tally, *, check: str, remembered: str
) -> bool:
    """Hold one chain to a remembered head; `there` is the hash it has at that place. Tells whether it has grown."""
    tally.did(check)
    if head.count == 0:
        return False
    if actual is None:
        words = f"{remembered} knows this chain with {head.count} records; it is not here"
        tally.add(Finding(check, "failed", "CHAIN_MISSING", words, Place(head.chain), head.to_dict()))
        return False
    proof = {"remembered": head.to_dict(), "actual": actual.to_dict()}
    if actual.count < head.count:
        words = f"{remembered} knows {head.count} records; {actual.count} are here"
        tally.add(Finding(check, "failed", "TRUNCATED", words, Place(head.chain, actual.count), proof))
    elif there != head.hash:
        words = f"{remembered} knows another record at this place"
        tally.add(Finding(check, "failed", "ROLLBACK", words, Place(head.chain, head.count - 1), proof))
    return actual.count > head.count and there == head.hash


def check_seen(ledger: Ledger, tally: Tally) -> None:
    """Hold the `meta` chain to the newest head of it that was verified here."""
    try:
        head = _read_seen(_seen_path(ledger)).get(_name(ledger))
    except (BadInput, Unavailable) as error:
        tally.skip("rollback", str(error), matters=True)
        return
    if head is None:
        tally.skip("rollback", "this ledger's meta chain was not verified here before", matters=False)
        return
    before = len(tally.findings)
    hold_to_heads(ledger, [head], tally, check="rollback", remembered="the last verification on this machine")
    for index, finding in enumerate(tally.findings[before:], before):
        # A meta chain never shrinks or forks in honest use: whatever differs is an older or another copy.
        tally.findings[index] = Finding(
            finding.check, finding.status, "ROLLBACK", finding.words, finding.place, finding.proof
        )


def remember(ledger: Ledger) -> None:
    """Note the head of the `meta` chain, if there is one and there is a home to note it in."""
    path = _seen_path(ledger)
    head = ledger.head(META_CHAIN)
    if head.count == 0 or not path.parent.is_dir() or not _LEDGER_ID(head.ledger):
        return
    try:
        seen = _read_seen(path)
        if seen.get(_name(ledger)) == head:
            return
        seen.pop(_name(ledger), None)
        seen[_name(ledger)] = head
        listed = [kept.to_dict() for kept in seen.values()][-SEEN_MAX:]
        replace_file(path, orjson.dumps(listed, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except AverError:
        return  # The verdict stands; what could not be noted is not checked next time, and said to be so.


def _name(ledger: Ledger) -> tuple[str, str]:
    return ledger.id, ledger.tenant


def _seen_path(ledger: Ledger) -> Path:
    return ledger.config.home / SEEN_FILE


def _read_seen(path: Path) -> dict[tuple[str, str], Head]:
    try:
        with open_file(path) as file:
            raw = file.read(SEEN_BYTES + 1)
    except NotFound:
        return {}
    if len(raw) > SEEN_BYTES:
        raise BadInput(f"{path} is larger than {SEEN_BYTES} bytes", advice="remove it; verifying begins it anew")
    listed: Any = read_json(raw)
    if not isinstance(listed, list):
        raise BadInput(f"{path} must hold a list of heads")
    heads = [Head.from_dict(item) for item in listed]
    return {(head.ledger, head.tenant): head for head in heads}
