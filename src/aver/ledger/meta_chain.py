"""The `meta` chain: a chain of heads, so that a verifier finds every chain that was cut or deleted.

An entry has one of these forms as its `outcome.result`. Closing a chain adds the entry of the public agent-capsule
tool:

    {kind: "conversation_seal", tool: <domain>, session_id: <id>, head_hash, capsule_count}

A sweep adds a `checkpoint` entry for all chains that changed since their last entry:

    {kind: "checkpoint", heads: {<chain>: {count, hash}}}

Importing a chain adds an entry that says so. Without it, no chain of the ledger may call itself imported:

    {kind: "chain_import", chain, origin, head_hash, capsule_count}

The latest entry of a chain counts. A chain that is longer than its entry has grown since, which is normal. The verifier
also uses earlier entries: a sweep that was made after a chain had been cut does not hide the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from aver.capsule.aver_block import RESERVED_CHAINS, of_kind, split_chain_name
from aver.capsule.model import Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, Exists, IntegrityError, NotFound, Unavailable
from aver.ledger.head import Head
from aver.ledger.seen_heads import META_CHAIN, check_heads
from aver.ledger.stores.protocol import ChainRow
from aver.verdict import Tally

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

HEADS_MAX = 1_000_000
"""Most chains of a foreign meta chain that are compared. It limits memory, and is far above any honest ledger."""

HEADS_PER_ENTRY = 1000
"""Most chains in one `checkpoint` entry. A sweep over more chains makes several entries."""


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


def build_import_entry(chain: str, origin: str, count: int, head: str) -> Capsule:
    """Draft the entry for an imported chain. The caller seals it in the same transaction as the chain's records."""
    result = {"kind": "chain_import", "chain": chain, "origin": origin, "head_hash": head, "capsule_count": count}
    summary = f"imported {origin} as {chain}: {count} capsules, head {head[:12]}"
    return of_kind(_build_entry(f"chain imported: {origin}", summary, result, {}), "chain.import")


def read_imports(records: Iterable[Sealed]) -> dict[str, str]:
    """The imported chains according to entries of `meta`: {name here: name where they came from}."""
    found = {}
    for record in records:
        try:
            result = record.to_dict()["outcome"]["result"]
            if record.kind == "chain.import" and result["kind"] == "chain_import":
                found[str(result["chain"])] = str(result["origin"])
        except (AverError, KeyError, TypeError, AttributeError):
            continue
    return found


def sweep(ledger: Ledger) -> list[Sealed]:
    """Record the heads of all chains that changed since they were last recorded.

    A chain that contradicts its last entry is not recorded anew. After all others are recorded, this raises an
    `IntegrityError` that names it.
    """
    recorded = {head.chain: head for head in read_meta_heads(ledger)}
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


def read_meta_heads(ledger: Ledger) -> list[Head]:
    """The latest recorded head of every chain, from the signed content of the `meta` chain."""
    latest: dict[str, Head] = {}
    try:
        records = ledger.read(META_CHAIN)
    except NotFound:
        return []
    for record in records:
        try:
            collect_heads(record.to_dict(), latest, ledger=ledger.id, tenant=ledger.tenant)
        except AverError:
            continue  # The judge of the meta chain reports a damaged entry.
    return list(latest.values())


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
    if (database.parent.name, database.stem) != (tool, session):
        yield f"{tool}.{session}"


def check_meta(ledger: Ledger, tally: Tally, *, start: int = 0, stop: int | None = None) -> None:
    """Compare every chain with its entries in `meta`, or with the entries from `start` up to `stop`."""
    try:
        latest, broken = _read_recorded_heads(ledger, start, stop)
    except Unavailable as error:
        tally.skip("meta", f"the meta chain cannot be read: {error.message}", matters=True)
        return
    if not latest:
        words = "no chain was closed or swept since" if start else "no chain was closed or swept yet"
        tally.skip("meta", words, matters=False)
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
    tally.notes["meta"] = note


def _read_recorded_heads(ledger: Ledger, start: int, stop: int | None) -> tuple[dict[str, Head], dict[str, Head]]:
    """The latest recorded head of every chain, and the first earlier head that a chain contradicts.

    An attacker may cut a chain and wait for the next sweep to record the shorter chain. The entry before that sweep
    still shows the cut.
    """
    rows = {row.name: row for row in ledger.store.chains(ledger.tenant)}
    latest: dict[str, Head] = {}
    broken: dict[str, Head] = {}
    try:
        records = ledger.read(META_CHAIN, start, stop)
    except NotFound:
        return latest, broken
    for record in records:
        recorded: dict[str, Head] = {}
        try:
            collect_heads(record.to_dict(), recorded, ledger=ledger.id, tenant=ledger.tenant)
        except AverError:
            continue  # The judge of the meta chain reports a damaged entry.
        for chain, head in recorded.items():
            earlier = latest.get(chain, head)
            row = rows.get(chain)
            # One lookup per superseded entry; the first contradiction of a chain is enough.
            if earlier != head and chain not in broken and row is not None and _is_contradicted(ledger, row, earlier):
                broken[chain] = earlier
            latest[chain] = head
    return latest, broken


def _is_contradicted(ledger: Ledger, row: ChainRow, head: Head) -> bool:
    try:
        return head.count > 0 and ledger.store.hash_at(row, head.count - 1) != head.hash
    except Unavailable:
        return False  # The judge of the chain reports a record that cannot be read.


def _parse_heads(result: Any) -> Iterator[tuple[str, int, str]]:
    """(chain, count, hash) from an entry's result. Raises `KeyError` and others if it is malformed."""
    if result.get("kind") == "conversation_seal":
        tool, session = result["tool"], result["session_id"]
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
