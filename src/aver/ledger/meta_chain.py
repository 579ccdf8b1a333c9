"""The `meta` chain: a chain of heads, so that a verifier finds every chain that was cut or deleted.

An entry has one of these forms as its `outcome.result`. Closing a chain adds the entry of the public agent-capsule
tool:

    {kind: "conversation_seal", tool: <domain>, session_id: <id>, head_hash, capsule_count}

A sweep adds a `checkpoint` entry for all chains that changed since their last entry:

    {kind: "checkpoint", heads: {<chain>: {count, hash}}}

Importing a chain adds an entry that says so. Without it, no chain of the ledger may call itself imported:

    {kind: "chain_import", chain, origin, source, head_hash, capsule_count}

Dropping an import adds an entry with the heads of its chains. Without it, their absence is `CHAIN_MISSING`:

    {kind: "chain_drop", source, chains: {<chain>: {count, hash}}}

The latest entry of a chain counts. A chain that is longer than its entry has grown since, which is normal. The verifier
also uses earlier entries: a sweep that was made after a chain had been cut does not hide the cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from aver.capsule.aver_block import RESERVED_CHAINS, of_kind, split_chain_name
from aver.capsule.model import Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, Exists, IntegrityError, NotFound, StoreDamaged
from aver.ledger.head import Head
from aver.ledger.imports.history import DROP_KIND, IMPORT_KIND, ImportHistory, read_import_history
from aver.ledger.seen_heads import META_CHAIN, check_heads
from aver.ledger.stores.protocol import ChainRow
from aver.verdict import Tally

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

HEADS_MAX = 1_000_000
"""Most chains of a foreign meta chain that are compared. It limits memory, and is far above any honest ledger."""

HEADS_PER_ENTRY = 1000
"""Most chains in one `checkpoint` entry. A sweep over more chains makes several entries."""

DROPS_PER_ENTRY = 500
"""Most chains in one `chain.drop` entry. With the longest names, an entry is half as long as a capsule may be."""


def close_chain(ledger: Ledger, chain: str) -> Sealed:
    """Record the head of a chain. Closing it twice at the same head records it once.

    Raises `NotFound` if the chain has no records, `BadInput` for `meta` itself.
    """
    head = ledger.head(chain)
    if head.count == 0:
        raise NotFound(f"there is no chain {chain} to close")
    if chain == META_CHAIN:
        raise BadInput("the meta chain cannot be closed; checkpoints record its head")
    tool, session = split_chain_name(chain)
    result = {
        "kind": "conversation_seal",
        "tool": tool,
        "session_id": session,
        "head_hash": head.hash,
        "capsule_count": head.count,
    }
    draft = _build_entry(
        f"conversation sealed: {tool}/{session}",
        f"{tool}/{session}: {head.count} capsules, head {str(head.hash)[:12]}",
        result,
        {"tool": tool, "session_id": session},
    )
    # The key has the head's hash: closing again after the chain has grown is a new entry.
    try:
        return ledger.append_reserved(META_CHAIN, of_kind(draft, "chain.close"), key=f"close:{chain}:{head.hash}")
    except Exists as exists:
        return exists.record  # type: ignore[no-any-return]


def build_import_entry(chain: str, origin: str, source: str, count: int, head: str) -> Capsule:
    """Draft the entry for an imported chain. The caller seals it in the same transaction as the chain's records."""
    result = {
        "kind": "chain_import",
        "chain": chain,
        "origin": origin,
        "source": source,
        "head_hash": head,
        "capsule_count": count,
    }
    summary = f"imported {origin} as {chain}: {count} capsules, head {head[:12]}"
    return of_kind(_build_entry(f"chain imported: {origin}", summary, result, {}), IMPORT_KIND)


def build_drop_entries(source: str, heads: Mapping[str, tuple[int, str]]) -> Iterator[Capsule]:
    """Draft the entries for a dropped import. The caller seals them in the transaction that removes the chains."""
    names = sorted(heads)
    for start in range(0, len(names), DROPS_PER_ENTRY):
        part = names[start : start + DROPS_PER_ENTRY]
        chains = {name: {"count": heads[name][0], "hash": heads[name][1]} for name in part}
        result = {"kind": "chain_drop", "source": source, "chains": chains}
        summary = f"dropped {len(part)} chains that were imported from {source}"
        yield of_kind(_build_entry(f"import dropped: {source}", summary, result, {}), DROP_KIND)


def sweep(ledger: Ledger) -> list[Sealed]:
    """Record the heads of all chains that changed since they were last recorded.

    A chain that contradicts its last entry is not recorded anew. After all others are recorded, this raises an
    `IntegrityError` that names it.
    """
    history = read_import_history(ledger, ledger.keys.ring())
    recorded = {head.chain: head for head in read_meta_heads(ledger, history)}
    changed = [head for head in ledger.heads() if head.chain != META_CHAIN and recorded.get(head.chain) != head]
    # Compare first: to record a chain that was cut would make the cut look like the normal state.
    tally = Tally()
    before = [recorded[head.chain] for head in changed if head.chain in recorded]
    check_heads(ledger, before, tally, check="meta", remembered="the meta chain")
    good = [head for head in changed if head.chain not in tally.doubtful]
    sealed = []
    for start in range(0, len(good), HEADS_PER_ENTRY):
        part = good[start : start + HEADS_PER_ENTRY]
        heads = {head.chain: {"count": head.count, "hash": head.hash} for head in part}
        entry = _build_entry("record heads", f"heads of {len(part)} chains", {"kind": "checkpoint", "heads": heads}, {})
        sealed.append(ledger.append_reserved(META_CHAIN, of_kind(entry, "checkpoint"), key=None))
    if tally.findings:
        first = tally.findings[0]
        words = f"chain {first.place.chain} was not recorded again: {first.words}"
        raise IntegrityError(first.code, words, evidence=tuple(tally.findings), advice="run: aver verify meta")
    return sealed


def read_meta_heads(ledger: Ledger, history: ImportHistory | None = None) -> list[Head]:
    """The latest recorded head of every chain, from the signed content of the `meta` chain.

    Given the history of imports, the heads of dropped chains are left out.
    """
    latest: dict[str, Head] = {}
    try:
        records = ledger.read(META_CHAIN)
    except NotFound:
        return []
    for place, record in enumerate(records):
        if history is not None:
            forget_dropped(latest, history.drops_at.get(place, {}))
        try:
            collect_heads(record.to_dict(), latest, ledger=ledger.id, tenant=ledger.tenant)
        except AverError:
            continue  # The judge of the meta chain reports a damaged entry.
    return list(latest.values())


def forget_dropped(latest: dict[str, Head], dropped: Mapping[str, tuple[int, str]]) -> None:
    """Remove dropped chains from the heads that `meta` records, if their latest head is the one that was dropped."""
    for chain, head in dropped.items():
        if chain in latest and (latest[chain].count, latest[chain].hash) == head:
            del latest[chain]


def collect_heads(content: Any, latest: dict[str, Head], *, ledger: str, tenant: str) -> None:
    """Add the heads of one `meta` entry, Aver's or the public tool's, to `latest`. A malformed entry adds none."""
    try:
        for chain, count, digest in _parse_heads(content["outcome"]["result"]):
            head = {"ledger": ledger, "tenant": tenant, "chain": chain, "count": count, "hash": digest}
            latest[chain] = Head.from_dict(head)
    except (AverError, KeyError, TypeError, AttributeError):
        return


def find_external_chains(content: Any) -> Iterator[str]:
    """The chain of a public tool's entry, if that tool keeps it in a database outside its usual directory."""
    try:
        result = content["outcome"]["result"]
        database = PurePath(result["db"])
        tool, session = result["tool"], result["session_id"]
    except (KeyError, TypeError):
        return
    if not (isinstance(tool, str) and isinstance(session, str)):
        return
    if (database.parent.name, database.stem) != (tool, session):
        yield f"{tool}.{session}"


def check_meta(
    ledger: Ledger, tally: Tally, history: ImportHistory, *, start: int = 0, stop: int | None = None
) -> None:
    """Compare every chain with its entries in `meta`, or with the entries from `start` up to `stop`."""
    try:
        latest, broken = _read_recorded_heads(ledger, history, start, stop)
    except StoreDamaged as error:
        tally.skip("meta", f"the meta chain cannot be read: {error.message}", matters=True)
        return
    gone = f"; {history.dropped_chains} imported chains were dropped" if history.dropped_chains else ""
    if not latest:
        words = "no chain was closed or swept since" if start else "no chain was closed or swept yet"
        tally.skip("meta", words + gone, matters=False)
        return
    before = len(tally.findings)
    grown = check_heads(ledger, latest.values(), tally, check="meta", remembered="the meta chain")
    # Earlier entries add a finding only for chains that agree with their latest entry.
    named = {finding.place.chain for finding in tally.findings[before:]}
    unnamed = [head for chain, head in broken.items() if chain not in named]
    check_heads(ledger, unnamed, tally, check="meta", remembered="an earlier entry of the meta chain")
    note = f"{len(latest)} chains match their recorded heads ({grown} grown since"
    if start:
        note = f"{note}); entries before sequence {start} were compared earlier"
    else:
        outside = {head.chain for head in ledger.heads()} - latest.keys() - RESERVED_CHAINS
        note = f"{note}, {len(outside)} not recorded yet)"
    tally.notes["meta"] = note + gone


def _read_recorded_heads(
    ledger: Ledger, history: ImportHistory, start: int, stop: int | None
) -> tuple[dict[str, Head], dict[str, Head]]:
    """The latest recorded head of every chain, and the first earlier head that a chain contradicts.

    An attacker may cut a chain and wait for the next sweep to record the shorter chain. The entry before that sweep
    still shows the cut. In the same way, an entry about an import does not replace a head that was recorded before it:
    an import never takes the name of a chain that is here.
    """
    rows = {row.name: row for row in ledger.store.chains(ledger.tenant)}
    latest: dict[str, Head] = {}
    broken: dict[str, Head] = {}
    try:
        records = ledger.read(META_CHAIN, start, stop)
    except NotFound:
        return latest, broken
    for place, record in enumerate(records, start):
        forget_dropped(latest, history.drops_at.get(place, {}))
        recorded: dict[str, Head] = {}
        try:
            collect_heads(record.to_dict(), recorded, ledger=ledger.id, tenant=ledger.tenant)
        except AverError:
            continue  # The judge of the meta chain reports a damaged entry.
        for chain, head in recorded.items():
            earlier = latest.get(chain, head)
            row = rows.get(chain)
            if chain in latest and history.imports_at.get(place) == chain:
                broken.setdefault(chain, earlier)
            # One lookup per superseded entry; the first contradiction of a chain is enough.
            if earlier != head and chain not in broken and row is not None and _is_contradicted(ledger, row, earlier):
                broken[chain] = earlier
            latest[chain] = head
    return latest, broken


def _is_contradicted(ledger: Ledger, row: ChainRow, head: Head) -> bool:
    try:
        return head.count > 0 and ledger.store.hash_at(row, head.count - 1) != head.hash
    except StoreDamaged:
        return False  # The judge of the chain reports a record that cannot be read.


def _parse_heads(result: Any) -> Iterator[tuple[str, int, str]]:
    """(chain, count, hash) from an entry's result. Raises `KeyError` and others if it is malformed."""
    if result.get("kind") == "conversation_seal":
        tool, session = result["tool"], result["session_id"]
        if not (isinstance(tool, str) and isinstance(session, str)):
            return
        # A reserved chain such as `keys` has no session; `split_chain_name` gives its name for both.
        chain = tool if tool == session and tool in RESERVED_CHAINS else f"{tool}.{session}"
        yield chain, result["capsule_count"], result["head_hash"]
    elif result.get("kind") == "chain_import":
        yield result["chain"], result["capsule_count"], result["head_hash"]
    elif result.get("kind") == "checkpoint":
        for chain, head in result["heads"].items():
            yield chain, head["count"], head["hash"]


def _build_entry(request: str, summary: str, result: dict[str, Any], environment: dict[str, Any]) -> Capsule:
    return Capsule(
        type="system",
        domain=META_CHAIN,
        trigger=Trigger(type="system", source=META_CHAIN, request=request),
        context=Context(agent_id="aver", session_id=META_CHAIN, environment=environment),
        outcome=Outcome(status="success", summary=summary, result=result),
    )
