"""Checkpoints: a signed statement of all heads, to be kept where the ledger's owner cannot change it.

A checkpoint is a statement of purpose `checkpoint` over

    {v: 1, ledger, tenant, at, heads: {<chain>: {count, hash}}}

Whoever keeps one can later hold the ledger, or any copy of it, to what it was then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aver.capsule.signing import holding
from aver.clock import now
from aver.errors import BadInput, NotFound, Unavailable
from aver.keys import Ring, SeedSigner, Statement, check_statement, sign_statement
from aver.ledger.head import Head
from aver.ledger.keychain import KEYS_CHAIN, recorded_keys
from aver.ledger.memory import hold_to_heads
from aver.ledger.verify import intact
from aver.verdict import Finding, Tally

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = ["PURPOSE", "check_checkpoint", "make_checkpoint"]

PURPOSE = "checkpoint"
VERSION = 1


def make_checkpoint(ledger: Ledger) -> Statement:
    """State, under our signature, where every chain is now."""
    heads = {head.chain: {"count": head.count, "hash": head.hash} for head in ledger.heads()}
    content = {"v": VERSION, "ledger": ledger.id, "tenant": ledger.tenant, "at": now(), "heads": heads}
    with holding(ledger.signer()) as held:
        if not isinstance(held, SeedSigner):
            raise BadInput("this ledger's signer signs capsules only, not statements")
        return sign_statement(PURPOSE, content, (held,))


def check_checkpoint(ledger: Ledger, statement: Statement, ring: Ring, tally: Tally) -> None:
    """Hold the ledger to a checkpoint."""
    heads = _heads(statement)
    content = statement.content
    if (content["ledger"], content["tenant"]) != (ledger.id, ledger.tenant):
        words = f"the checkpoint is of ledger {content['ledger']}, tenant {content['tenant']}; this is another"
        tally.add(Finding("checkpoint", "failed", "CHAIN_IDENTITY", words))
        return
    outcomes = {result.by: result.outcome for result in check_statement(statement, ring)}
    if not outcomes:
        tally.add(Finding("checkpoint", "failed", "SIG_MISSING", "the checkpoint is not signed"))
        return
    for by, outcome in outcomes.items():
        if outcome == "invalid" or (outcome == "unknown" and ring.closed):
            words = f"the checkpoint's signature is not {by}'s"
            tally.add(Finding("checkpoint", "failed", "SIG_INVALID", words))
            return
        if outcome != "valid":
            words = f"the checkpoint was signed by {by}, whose key is not known here"
            tally.add(Finding("checkpoint", "not_checked", "UNKNOWN_SIGNER", words))
        elif not ring.closed and by not in _own_keys(ledger, ring):
            words = f"the checkpoint was signed by {by}, whose key is known but has never sealed in this ledger"
            tally.add(Finding("checkpoint", "warning", "UNKNOWN_SIGNER", words))
    grown = hold_to_heads(ledger, heads, tally, check="checkpoint", remembered=f"the checkpoint of {content['at']}")
    tally.notes["checkpoint"] = f"{len(heads)} chains held to the checkpoint of {content['at']}, {grown} grown since"


def _own_keys(ledger: Ledger, ring: Ring) -> set[str]:
    """Whose checkpoints speak for this ledger: keys of our ring, and those its `keys` chain has recorded."""
    own = {entry.fingerprint for entry in ring.entries}
    try:
        return own | recorded_keys(intact(ring, ledger.read(KEYS_CHAIN)))
    except (NotFound, Unavailable):
        return own


def _heads(statement: Statement) -> list[Head]:
    content = statement.content
    if statement.purpose != PURPOSE or content.get("v") != VERSION:
        raise BadInput("this statement is not a checkpoint")
    if not isinstance(content.get("heads"), dict) or not isinstance(content.get("at"), str):
        raise BadInput("the checkpoint does not list heads and its time")
    place = {"ledger": content.get("ledger"), "tenant": content.get("tenant")}
    heads = []
    for chain, head in content["heads"].items():
        if not isinstance(head, dict) or head.keys() != {"count", "hash"}:
            raise BadInput(f"the checkpoint's head of {chain} is not one")
        heads.append(Head.from_dict({**place, "chain": chain, **head}))
    return heads
