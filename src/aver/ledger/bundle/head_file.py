"""The signed heads of a bundle, `head.json`: which chains were exported, and where each of them ended.

The index of a bundle is not signed, and a chain without its last records is still a valid chain. So an exporter who
has the ledger's key adds a statement with the purpose `checkpoint` over exactly

    {v: 1, ledger, tenant, part, heads: {<chain>: {count, hash}}, at}

`heads` lists exactly the exported chains, with `keys` and, if it was exported, `meta`. `part` is true if the ledger has
other chains. For example, `codex.two` was dropped from a bundle: `head.json` still lists it, and the verifier reports
`CHAIN_MISSING`.

The verifier compares in this order:

1. the statement has this form, and names the ledger and tenant of the bundle;
2. its signature is that of a key with the identity `ledger` (or the purpose `checkpoint`), which had not been retired
   at these heads;
3. every chain that it lists is here, with this number of records and this last hash;
4. no other chain is here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from aver.capsule.json_document import read_exactly
from aver.capsule.json_reader import ELEMENT_MAX
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_inside
from aver.keys import Ring, Statement, check_statement
from aver.ledger.bundle.layout import HEAD
from aver.ledger.checkpoint import Checkpoint, check_signatures, order_checkpoint
from aver.ledger.head import Head
from aver.ledger.key_history import KeyHistory, retirements_by_time
from aver.ledger.seen_heads import check_head
from aver.verdict import Finding, Place, Retirement, Tally

CHECK = "head"

RECORDED_MAX = 10_000
"""Most keys of a bundle's `keys` chain that are noted. It is far above any honest ledger."""

_CONTENT_KEYS = frozenset({"v", "ledger", "tenant", "part", "heads", "at"})
_WHERE = Place(source=HEAD)


@dataclass(frozen=True, slots=True)
class RecordedKey:
    """A key that the `keys` chain records."""

    public_key: str
    public_key_pq: str


def read_recorded_keys(records: Iterable[Sealed]) -> dict[str, RecordedKey]:
    """The keys that came into use by these records of a `keys` chain, by fingerprint. The first record counts."""
    found: dict[str, RecordedKey] = {}
    for record in records:
        try:
            result = record.to_dict()["outcome"]["result"] if record.kind in ("key.create", "key.rotate") else {}
            values = [result[name] for name in ("public_key", "public_key_pq")]
            fingerprint = result["fingerprint"]
        except (AverError, AttributeError, KeyError, TypeError):
            continue  # Not the record of a new key, or damaged, which is reported where the chain is judged.
        if len(found) < RECORDED_MAX and all(isinstance(value, str) for value in (fingerprint, *values)):
            found.setdefault(fingerprint, RecordedKey(*values))
    return found


def dump_head(statement: Statement) -> bytes:
    """The bytes of `head.json`."""
    return orjson.dumps(order_checkpoint(statement), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_head(directory: Path) -> Checkpoint | None:
    """Read the `head.json` of a bundle; None if there is none. Raises `BadInput` if it is not of the form above."""
    try:
        with open_inside(directory, HEAD) as file:
            raw = file.read(ELEMENT_MAX + 1)
    except NotFound:
        return None
    return read_exactly(raw, HEAD, _read_content, lambda found: dump_head(found.statement))


def _read_content(data: Any) -> Checkpoint:
    found = Checkpoint.from_statement(Statement.from_dict(data, HEAD), HEAD)
    content = found.statement.content
    if content.keys() != _CONTENT_KEYS or not isinstance(content["part"], bool):
        raise BadInput(f"{HEAD} does not state exactly {', '.join(sorted(_CONTENT_KEYS))}")
    return found


def check_bundle_head(
    head: Checkpoint,
    heads: Mapping[str, Head],
    tally: Tally,
    *,
    of: tuple[str | None, str | None],
    ring: Ring | None,
    history: KeyHistory,
    only: Collection[str] | None = None,
) -> None:
    """Compare the chains of a bundle, by their ids, with its `head.json`. The numbers are those of the module's text.

    `of` is the bundle's ledger and tenant, `history` that of its keys. Without a `ring` no signature is checked. With
    `only`, no other chain was judged, and no other is compared.
    """
    tally.count_done(CHECK)
    if (head.ledger, head.tenant) != of:  # 1.
        words = f"{HEAD} is of ledger {ascii(head.ledger)[:80]}, tenant {ascii(head.tenant)[:80]}; this is another"
        tally.add(Finding(CHECK, "failed", "CHAIN_IDENTITY", words, _WHERE))
        return
    if ring is not None and not check_signers(head, ring, tally, check=CHECK, history=history):  # 2.
        return
    listed = {one.chain: one for one in head.heads}
    for chain, stated in listed.items():  # 3.
        if only is not None and chain not in only:
            continue
        actual = heads.get(chain)
        # The chain's last hash is the only one at hand. A longer chain has another one, and is reported below.
        last = None if actual is None else actual.hash
        if actual is not None and actual.count > stated.count:
            words = f"{HEAD} states {stated.count} records of this chain; {actual.count} are here"
            proof = {"stated": stated.to_dict(), "actual": actual.to_dict()}
            tally.add(Finding(CHECK, "failed", "HEAD_MISMATCH", words, Place(chain, stated.count), proof))
        else:
            check_head(stated, actual, last, tally, check=CHECK, remembered=HEAD)
    for chain in heads:  # 4.
        if chain not in listed:
            words = f"{HEAD} does not list this chain: it was added after the export"
            tally.add(Finding(CHECK, "failed", "HEAD_MISMATCH", words, Place(chain)))
    which = "a part of the ledger" if head.part else "the whole ledger"
    tally.notes[CHECK] = f"{len(listed)} chains, {which}, as signed at {head.at}"


def check_signers(
    stated: Checkpoint, ring: Ring, tally: Tally, *, check: str, history: KeyHistory | None = None
) -> bool:
    """Check who signed a statement about the chains of a bundle. Returns False if its heads must not be used.

    `history` is that of the bundle's keys. Without it, the bundle records no key.
    """
    history = history or KeyHistory(retirements_by_time(ring))
    if not check_signatures(stated, ring, tally, check=check, history=history):
        return False
    where, place = stated.where, Place(source=stated.where)
    for result in check_statement(stated.statement, ring):
        key = result.key
        if key is None:
            continue
        if key.ed25519 not in history.roles:
            words = f"{where} was signed by {key.fingerprint}, which the keys chain of the bundle does not record"
            tally.add(Finding(check, "warning", "UNKNOWN_SIGNER", words, place))
        limits = history.retired.get(key.ed25519, Retirement()).limits
        # Its time may be false. But it names records that were sealed after the key had ended.
        if limits is not None and any(head.count > limits.get(head.chain, 0) for head in stated.heads):
            words = f"{where} was signed by {key.fingerprint}, and has records from after that key was retired"
            tally.add(Finding(check, "failed", "KEY_RETIRED", words, place))
    return True
