"""Which chains were imported and which imports were dropped again, as signed entries of the `meta` chain say.

An imported chain is frozen, so it has one head from its import to its drop. Every memory of a ledger (`meta` itself,
earlier verifications, checkpoints, rotations) may still have that head after the drop. It is then excused, and no other
head is. A checkpoint or rotation that is older than the entry about the import had the chain before: then it was made
here, and nothing excuses it. An entry about a drop counts only under these rules:

1. its content and signature hold, and no retired key made it; in a ledger that is not our own, the key may be unknown;
2. an earlier entry says that this very chain was imported with this very head, and no other drop came in between;
3. the ledger's own key made it, or else the key that had imported the chain, or a later key of the same line.

So nobody can use it to hide a chain that the ledger made itself, and another party whose key is known here can at most
drop its own imports. A chain that was imported again after its drop is compared again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import TYPE_CHECKING

from aver.capsule.sealed import Sealed
from aver.errors import AverError, NotFound
from aver.fast_dataclass import dataclass
from aver.keys import LEDGER, Ring
from aver.ledger.head import Head
from aver.ledger.key_history import follows, only_valid, read_history, replaced_keys
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.ledger.seen_heads import META_CHAIN

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger
    from aver.verdict import Retirement

IMPORT_KIND = "chain.import"
DROP_KIND = "chain.drop"


@dataclass(frozen=True, slots=True)
class ImportEntry:
    """The content of an entry of `meta` about an imported chain."""

    origin: str
    count: int
    hash: str
    signed_by: str
    source: str | None = None
    """The text whose digits are in the chain's name. Entries of older versions have none."""


class ImportHistory:
    """Imports and drops in the order of their entries. The caller adds only entries whose content and seal hold.

    `ring` has the keys that are known here; `replaced` the key that each key of the ledger replaced, by 64 digits.
    """

    def __init__(self, ring: Ring | None = None, replaced: Mapping[str, str] | None = None) -> None:
        self._ring = ring or Ring()
        self._replaced = replaced or {}
        self.imported: dict[str, ImportEntry] = {}
        """The chains that are imported after the newest entry, by their names here."""
        self.imports_at: dict[int, str] = {}
        """The chain of each entry about an import, by the entry's place in `meta`."""
        self.drops_at: dict[int, dict[str, tuple[int, str]]] = {}
        """Counts and hashes of the chains that each entry about a drop removed, by the entry's place."""
        self._dropped: dict[str, set[tuple[int, str]]] = {}
        self._places: dict[tuple[str, int, str], int] = {}
        """The place of the first entry that says that a chain was imported with a head."""

    def add(self, record: Sealed) -> dict[str, tuple[int, str]]:
        """Take up an entry. Returns the heads of the chains that it drops; an entry of another form drops none."""
        dropped: dict[str, tuple[int, str]] = {}
        try:
            kind, place, result = record.kind, record.sequence, record.to_dict()["outcome"]["result"]
            if kind == IMPORT_KIND and result["kind"] == "chain_import":
                chain, source = str(result["chain"]), result.get("source")
                self.imported[chain] = ImportEntry(
                    str(result["origin"]),
                    int(result["capsule_count"]),
                    str(result["head_hash"]),
                    record.signed_by,
                    source if isinstance(source, str) else None,
                )
                self.imports_at[place] = chain
                entry = self.imported[chain]
                self._places.setdefault((chain, entry.count, entry.hash), place)
            elif kind == DROP_KIND and result["kind"] == "chain_drop":
                for name, head in result["chains"].items():
                    known = self.imported.get(name)
                    if known is None or (head["count"], head["hash"]) != (known.count, known.hash):  # Rule 2.
                        continue
                    if self._may_drop(record.signed_by, known.signed_by):  # Rule 3.
                        dropped[name] = known.count, known.hash
        except (AverError, KeyError, TypeError, ValueError, AttributeError):
            return {}
        for name, place_of_head in dropped.items():
            del self.imported[name]
            self._dropped.setdefault(name, set()).add(place_of_head)
        if dropped:
            self.drops_at[place] = dropped
        return dropped

    def _may_drop(self, key: str, importer: str) -> bool:
        """Whether a key is the ledger's own, or the importer's, or came after the importer's by rotations.

        Where one of the two is unknown, nothing tells, unless the importer's is our own. The caller must then report
        the drop as not checked.
        """
        entry = self._ring.entry(key)
        if entry is not None and entry.identity == LEDGER:
            return True
        dropping, importing = ({each.ed25519 for each in self._ring.lookup(name)} for name in (key, importer))
        if not dropping or not importing:
            return self._ring.entry(importer) is None
        return any(follows(at, each, self._replaced) for at in importing for each in dropping)

    def has_dropped(self, head: Head, entries: int | None = None) -> bool:
        """Whether this head is that of an import that was dropped and not made again.

        `entries` is the number of entries in `meta` when the head was noted, if that is known. A chain and the entry
        about its import come together: a chain that was here before that entry was none.
        """
        if entries is not None and self._places.get((head.chain, head.count, str(head.hash)), 0) >= entries:
            return False
        now = self.imported.get(head.chain)
        is_here = now is not None and (now.count, now.hash) == (head.count, head.hash)
        return not is_here and (head.count, head.hash) in self._dropped.get(head.chain, ())

    @property
    def dropped_chains(self) -> int:
        """How many chains were dropped and are not here again."""
        return len(self._dropped.keys() - self.imported.keys())


def read_import_history(ledger: Ledger, ring: Ring, retired: Mapping[str, Retirement] | None = None) -> ImportHistory:
    """Read the history of a ledger's imports. Without `retired`, the `keys` chain says which keys are retired."""
    # The column `kind` is not signed. Without its entry, an import or a drop counts as not made, and the verdict fails.
    if next(ledger.find(chain=META_CHAIN, kind=IMPORT_KIND, limit=1), None) is None:
        return ImportHistory(ring)

    def read_keys() -> Iterator[Sealed]:
        try:
            yield from ledger.read(KEYS_CHAIN)
        except NotFound:
            return

    if retired is None:
        retired = read_history(ring, read_keys(), ledger.blob).retired
    history = ImportHistory(ring, replaced_keys(read_keys()))
    # In a ledger where our own ring has sealed, all keys that may write these entries are known.
    signers = {record.signed_by for record in read_keys()}
    is_foreign = not ring.entries or (bool(signers) and not any(map(ring.entry, signers)))
    entries = [
        only_valid(ring, ledger.find(chain=META_CHAIN, kind=kind), META_CHAIN, retired, also_unknown=is_foreign)
        for kind in (IMPORT_KIND, DROP_KIND)
    ]
    for record in merge(*entries, key=lambda record: record.sequence):
        history.add(record)
    return history
