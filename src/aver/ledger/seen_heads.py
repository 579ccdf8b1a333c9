"""Compare chains with remembered heads, to find cut, deleted and rolled-back chains.

A chain without its last records is still a valid chain. Only a remembered length shows the loss. Aver compares five
memories in the same way:

* the `meta` chain of the ledger itself;
* signed checkpoints that were kept elsewhere (`checkpoint`);
* `AVER_HOME/seen.json`, a list of the newest `meta` head of every ledger that this machine has verified;
* `AVER_HOME/seen_keys.json`, a list of the `keys` heads at which this machine recorded the end of a key. Without it,
  somebody could cut the `keys` chain and sign with an old key: the ledger would record the rotation anew, with later
  heads;
* the heads of all chains that this machine has verified (`verified_heads`).

A head of an import that was dropped is excused: see `imports.history`.

A chain that is longer than remembered has grown, which is normal. A shorter chain is `TRUNCATED`, a chain that is gone
is `CHAIN_MISSING`, and another record at the remembered place is `ROLLBACK`. The finding has both heads as proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from aver.capsule.json_reader import read_json
from aver.errors import AverError, BadInput, NotFound, StoreDamaged, Unavailable
from aver.files.atomic import replace_file
from aver.files.regular import open_file
from aver.ledger.head import Head
from aver.log import debug
from aver.verdict import Finding, Place, Tally

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

META_CHAIN = "meta"
SEEN_FILE = "seen.json"
SEEN_KEYS_FILE = "seen_keys.json"

SEEN_BYTES = 8 * 1024 * 1024
"""Largest `seen.json` that is read: more than `SEEN_MAX` heads need."""

SEEN_MAX = 10_000
"""Most ledgers and tenants in `seen.json`. The ones verified longest ago are dropped first."""

FEW_CHAINS = 16
"""Up to this many chains, looking up each is cheaper than reading the head rows of a large ledger."""

_LEDGER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


HashAt = Callable[[str, int], str | None]
"""Returns the hash of the record at a sequence number of a chain; None if there is none."""

Excuse = Callable[[Head, int | None], bool]
"""Returns whether a remembered head need not be here any more. It gets the number of entries of `meta` at that time."""


def excuse_none(head: Head, entries: int | None) -> bool:
    return False


class HeadChecker:
    """Compares the present chains with remembered heads. It reports at most one finding for a chain."""

    def __init__(
        self, heads: Mapping[str, Head], hash_at: HashAt, tally: Tally, *, check: str, excuse: Excuse = excuse_none
    ) -> None:
        self._heads = heads
        self._hash_at = hash_at
        self._tally = tally
        self._check = check
        self._excuse = excuse
        self._failed: set[str] = set()

    @classmethod
    def for_ledger(
        cls,
        ledger: Ledger,
        tally: Tally,
        *,
        check: str,
        excuse: Excuse = excuse_none,
        chains: Collection[str] | None = None,
    ) -> HeadChecker:
        """A checker for all chains of the ledger, or for `chains`, which are looked up one by one if they are few."""
        if chains is None or len(chains) > FEW_CHAINS:
            found = ledger.store.chains(ledger.tenant)
        else:
            found = [row for name in chains if (row := ledger.store.chain(ledger.tenant, name)) is not None]
        rows = {row.name: row for row in found}
        heads = {name: Head(ledger.id, ledger.tenant, name, row.count, row.head) for name, row in rows.items()}
        return cls(
            heads, lambda chain, place: ledger.store.hash_at(rows[chain], place), tally, check=check, excuse=excuse
        )

    def check(self, heads: Iterable[Head], remembered: str, entries: int | None = None) -> int:
        """Compare the chains with heads that `remembered` (a name for messages) has. Returns how many have grown.

        `entries` is the number of entries that `meta` had then, if that is known.
        """
        grown = 0
        for head in heads:
            if head.chain in self._failed or self._excuse(head, entries):
                continue
            actual = self._heads.get(head.chain)
            try:
                actual_hash = None if actual is None else self._hash_at(head.chain, head.count - 1)
            except StoreDamaged as error:
                words = f"the remembered record of {head.chain} cannot be read: {error.message}"
                self._tally.skip(self._check, words, matters=True)
                continue
            result = Tally()
            grown += check_head(head, actual, actual_hash, result, check=self._check, remembered=remembered)
            self._tally.merge(result)
            if result.findings:
                self._failed.add(head.chain)
        return grown


def check_heads(
    ledger: Ledger, heads: Iterable[Head], tally: Tally, *, check: str, remembered: str, excuse: Excuse = excuse_none
) -> int:
    """Compare the ledger's chains with remembered heads. Returns how many of them have grown since."""
    heads = list(heads)
    chains = {head.chain for head in heads}
    return HeadChecker.for_ledger(ledger, tally, check=check, excuse=excuse, chains=chains).check(heads, remembered)


def check_head(
    head: Head, actual: Head | None, actual_hash: str | None, tally: Tally, *, check: str, remembered: str
) -> bool:
    """Compare one chain with a remembered head. `actual_hash` is the chain's hash at the head's place.

    Adds a finding where they differ. Returns whether the chain has grown since.
    """
    tally.count_done(check)
    if head.count == 0:
        return False
    if actual is None:
        words = f"{remembered} has this chain with {head.count} records; it is not here"
        tally.add(Finding(check, "failed", "CHAIN_MISSING", words, Place(head.chain), head.to_dict()))
        return False
    proof = {"remembered": head.to_dict(), "actual": actual.to_dict()}
    if actual.count < head.count:
        words = f"{remembered} has {head.count} records of this chain; {actual.count} are here"
        tally.add(Finding(check, "failed", "TRUNCATED", words, Place(head.chain, actual.count), proof))
    elif actual_hash != head.hash:
        words = f"{remembered} has another record at this place"
        tally.add(Finding(check, "failed", "ROLLBACK", words, Place(head.chain, head.count - 1), proof))
    return actual.count > head.count and actual_hash == head.hash


SeenHead = Head | Literal["stored"] | None
"""The newest head of `meta` that this machine has verified: as read earlier, or to be read now (`stored`)."""


def read_seen_head(ledger: Ledger) -> Head | None:
    """The newest head of `meta` that this machine has verified. Raises `BadInput` or `Unavailable`."""
    return _read_seen_heads(_seen_path(ledger)).get(_ledger_and_tenant(ledger))


def check_seen_head(ledger: Ledger, tally: Tally, seen: SeenHead = "stored") -> None:
    """Compare the `meta` chain with the newest head of it that this machine has verified."""
    try:
        head = read_seen_head(ledger) if seen == "stored" else seen
    except (BadInput, Unavailable) as error:
        tally.skip("rollback", str(error), matters=True)
        return
    if head is None:
        tally.skip("rollback", "this ledger's meta chain was not verified here before", matters=False)
        return
    before = len(tally.findings)
    check_heads(ledger, [head], tally, check="rollback", remembered="the last verification on this machine")
    for index, finding in enumerate(tally.findings[before:], before):
        # A meta chain never shrinks or forks in honest use. Any difference means an older or another copy.
        tally.findings[index] = Finding(
            finding.check, finding.status, "ROLLBACK", finding.words, finding.place, finding.proof
        )


def save_seen_head(ledger: Ledger, head: Head) -> None:
    """Save a verified head of the `meta` chain in `seen.json`, if `AVER_HOME` exists.

    A parallel verification may have saved a longer head meanwhile; the longer one is kept.
    """
    _save_head(_seen_path(ledger), head)


def read_keys_head(home: Path, ledger_id: str, tenant: str) -> Head | None:
    """The head of `keys` at which this machine recorded the end of a key. Raises `BadInput` or `Unavailable`."""
    return _read_seen_heads(home / SEEN_KEYS_FILE).get((ledger_id, tenant))


def check_keys_head(ledger: Ledger, tally: Tally) -> None:
    """Compare the `keys` chain with its head when this machine recorded the end of a key."""
    try:
        head = read_keys_head(ledger.keys.home, ledger.id, ledger.tenant)
    except (BadInput, Unavailable) as error:
        tally.skip("keys", f"{SEEN_KEYS_FILE} cannot be read: {error}", matters=True)
        return
    if head is not None:
        check_heads(ledger, [head], tally, check="keys", remembered="this machine, which recorded the end of a key,")


def save_keys_head(home: Path, head: Head, hash_at: Callable[[int], str | None]) -> None:
    """Save the head of `keys` after the end of a key was recorded. `hash_at` gives the hash of a record of that chain.

    If the chain does not have the record that was remembered, it was cut, and the memory stays what it is.
    """
    try:
        before = read_keys_head(home, head.ledger, head.tenant)
    except (BadInput, Unavailable):
        return  # Reported by the next verification.
    if before is None or hash_at(before.count - 1) == before.hash:
        _save_head(home / SEEN_KEYS_FILE, head)


def _save_head(path: Path, head: Head) -> None:
    # The id comes from the ledger's file; one of a strange form must not get into our file.
    if head.count == 0 or not path.parent.is_dir() or not _LEDGER_ID(head.ledger):
        return
    try:
        seen, of = _read_seen_heads(path), (head.ledger, head.tenant)
        before = seen.get(of)
        if before is not None and before.count >= head.count:
            return
        # Remove and add, so that the newest entry is the last one and survives the cut below.
        seen.pop(of, None)
        seen[of] = head
        listed = [kept.to_dict() for kept in seen.values()][-SEEN_MAX:]
        replace_file(path, orjson.dumps(listed, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except (AverError, TypeError) as error:  # orjson refuses a name with half a surrogate pair by a TypeError.
        # The verdict is not affected. The next verification reports that it had nothing to compare with.
        debug("ledger", "cannot save the head of %s in %s: %s", head.chain, path, error)


def seen_tenants(ledger: Ledger) -> list[str]:
    """The tenants of this ledger whose `meta` chains were verified here, also if they are no longer in it."""
    try:
        return sorted(tenant for name, tenant in _read_seen_heads(_seen_path(ledger)) if name == ledger.id)
    except AverError:
        return []  # `check_seen_head` reports that the file cannot be read.


def _ledger_and_tenant(ledger: Ledger) -> tuple[str, str]:
    return ledger.id, ledger.tenant


def _seen_path(ledger: Ledger) -> Path:
    return ledger.config.home / SEEN_FILE


def _read_seen_heads(path: Path) -> dict[tuple[str, str], Head]:
    try:
        with open_file(path) as file:
            raw = file.read(SEEN_BYTES + 1)
    except NotFound:
        return {}
    if len(raw) > SEEN_BYTES:
        raise BadInput(f"{path} is larger than {SEEN_BYTES} bytes", advice="remove it; verifying creates it again")
    listed: Any = read_json(raw)
    if not isinstance(listed, list):
        raise BadInput(f"{path} must contain a list of heads")
    heads = [Head.from_dict(item) for item in listed]
    return {(head.ledger, head.tenant): head for head in heads}
