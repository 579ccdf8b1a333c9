"""Checkpoints: a signed statement of heads, to be kept where the ledger's owner cannot change it.

A checkpoint is a statement of purpose `checkpoint` over

    {v: 1, ledger, tenant, at, heads: {<chain>: {count, hash}}}

with every chain; or, where it continues a history of checkpoints (see `history`), over those that changed, and with
`since`, the time of the checkpoint before it. Whoever keeps one can later hold the ledger, a bundle of it, or any
copy, to what it was then. Of several, each is checker to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aver.capsule.signing import hold_signer
from aver.clock import now
from aver.errors import BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.keys import Ring, SeedSigner, Statement, check_statement, sign_statement
from aver.ledger.head import Head
from aver.ledger.keys_chain import KEYS_CHAIN, recorded_keys
from aver.ledger.seen_heads import HeadChecker
from aver.ledger.verify import only_valid
from aver.verdict import Finding, Place, Tally, Verdict, conclude, worst_status

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = [
    "CHECK",
    "PURPOSE",
    "Checkpoint",
    "check_against_checkpoints",
    "check_ledger_checkpoints",
    "check_missing_links",
    "check_signatures",
    "extend_verdict",
    "extend_with_checkpoints",
    "make_checkpoint",
    "select_checkpoints",
]

PURPOSE = "checkpoint"
VERSION = 1
CHECK = "checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A statement that says what a checkpoint says. `where` is the file it came from, and the line in it."""

    statement: Statement
    at: str
    ledger: str
    tenant: str
    heads: tuple[Head, ...]
    since: str | None = None
    where: str = "the checkpoint"

    @classmethod
    def from_statement(cls, statement: Statement, where: str = "the checkpoint") -> Checkpoint:
        """`BadInput` where it is a statement of another sort, or not one that Aver makes."""
        content = statement.content
        if statement.purpose != PURPOSE or content.get("v") != VERSION:
            raise BadInput(f"{where} is a statement, but not a checkpoint", advice="aver checkpoint makes one")
        at, since, heads = content.get("at"), content.get("since"), content.get("heads")
        if not isinstance(heads, dict) or not isinstance(at, str) or not (since is None or isinstance(since, str)):
            raise BadInput(f"{where} does not list heads and its time")
        ledger, tenant = content.get("ledger"), content.get("tenant")
        if not isinstance(ledger, str) or not isinstance(tenant, str):
            raise BadInput(f"{where} does not name a ledger and a tenant")
        listed = tuple(_parse_heads(heads, {"ledger": ledger, "tenant": tenant}, where))
        return cls(statement, at, ledger, tenant, listed, since, where)


def _parse_heads(listed: dict[str, Any], place: dict[str, str], where: str) -> Iterable[Head]:
    for chain, head in listed.items():
        if not isinstance(head, dict) or head.keys() != {"count", "hash"}:
            raise BadInput(f"{where}: its head of {ascii(chain)[:80]} is not one")
        yield Head.from_dict({**place, "chain": chain, **head})


def make_checkpoint(ledger: Ledger, heads: Iterable[Head] | None = None, *, since: str | None = None) -> Statement:
    """State, under our signature, where every chain is now; or, after an earlier checkpoint, where these are."""
    listed = {
        head.chain: {"count": head.count, "hash": head.hash} for head in (ledger.heads() if heads is None else heads)
    }
    content = {"v": VERSION, "ledger": ledger.id, "tenant": ledger.tenant, "at": now(), "heads": listed}
    if since is not None:
        content["since"] = since
    with hold_signer(ledger.signer()) as checker:
        if not isinstance(checker, SeedSigner):
            raise BadInput("this ledger's signer signs capsules only, not statements")
        return sign_statement(PURPOSE, content, (checker,))


def extend_with_checkpoints(verdict: Verdict, ledger: Ledger, checkpoints: Sequence[Checkpoint], ring: Ring) -> Verdict:
    """A verdict on a whole ledger, with what checkpoints add to it."""
    tally = Tally(records=verdict.records, earlier=verdict.earlier)
    check_ledger_checkpoints(ledger, checkpoints, ring, tally)
    return extend_verdict(verdict, tally)


def extend_verdict(verdict: Verdict, tally: Tally) -> Verdict:
    """A verdict with the check `checkpoint` added."""
    added = conclude(verdict.subject, tally, level=verdict.level, expected=(CHECK,))
    return replace(
        verdict,
        status=worst_status((verdict.status, added.status)),
        checks=(*verdict.checks, *added.checks),
        findings=(*verdict.findings, *added.findings),
        first_bad=verdict.first_bad or added.first_bad,
    )


def check_ledger_checkpoints(ledger: Ledger, checkpoints: Sequence[Checkpoint], ring: Ring, tally: Tally) -> None:
    """Hold a ledger to checkpoints, to each of them."""
    checker = HeadChecker.for_ledger(ledger, tally, check=CHECK)
    own = None if ring.closed else _own_keys(ledger, ring)
    check_against_checkpoints(checker, checkpoints, ring, tally, of=(ledger.id, ledger.tenant), own_keys=own)


def check_against_checkpoints(
    checker: HeadChecker,
    checkpoints: Sequence[Checkpoint],
    ring: Ring,
    tally: Tally,
    *,
    of: tuple[str, str],
    own_keys: Collection[str] | None,
) -> None:
    """Hold the chains of a ledger and tenant to checkpoints, newest first. `own_keys`: whose word counts there."""
    check_missing_links(checkpoints, tally)
    compared: set[Head] = set()
    chains: set[str] = set()
    grown = used = 0
    for one in sorted(checkpoints, key=lambda checkpoint: checkpoint.at, reverse=True):
        if (one.ledger, one.tenant) != of:
            words = f"{one.where} is of ledger {one.ledger}, tenant {one.tenant}; this is another"
            tally.add(Finding(CHECK, "failed", "CHAIN_IDENTITY", words))
        elif check_signatures(one, ring, tally, own_keys=own_keys):
            used += 1
            words = f"the checkpoint of {one.at}"
            grown += checker.check([head for head in one.heads if head.chain not in chains], words)
            checker.check([head for head in one.heads if head.chain in chains and head not in compared], words)
            chains.update(head.chain for head in one.heads)
            compared.update(one.heads)
    if used:
        newest = max(one.at for one in checkpoints if (one.ledger, one.tenant) == of)
        which = f"the checkpoint of {newest}" if used == 1 else f"{used} checkpoints, the newest of {newest}"
        tally.notes[CHECK] = f"{len(chains)} chains checker to {which}, {grown} grown since"


def select_checkpoints(checkpoints: Sequence[Checkpoint], ledger: str, tenant: str) -> list[Checkpoint]:
    """Those that are not about another tenant of the ledger; where all are, all, so that this can be told."""
    own = [one for one in checkpoints if one.tenant == tenant or one.ledger != ledger]
    return own or list(checkpoints)


def check_missing_links(checkpoints: Sequence[Checkpoint], tally: Tally) -> None:
    """A checkpoint that lists only what changed is not all there is to know without the one before it."""
    here = {(one.ledger, one.tenant, one.at) for one in checkpoints}
    for one in checkpoints:
        if one.since is not None and (one.ledger, one.tenant, one.since) not in here:
            words = f"the checkpoint of {one.since}, which the one of {one.at} continues, is not here"
            tally.skip(CHECK, words, matters=True)


def check_signatures(
    checkpoint: Checkpoint, ring: Ring, tally: Tally, *, own_keys: Collection[str] | None = None
) -> bool:
    """Check who signed a checkpoint. False if it is nobody's word; unknown is said, and its heads still compared."""
    outcomes = {result.by: result.outcome for result in check_statement(checkpoint.statement, ring)}
    where, place = checkpoint.where, Place(source=checkpoint.where)
    if not outcomes:
        tally.add(Finding(CHECK, "failed", "SIG_MISSING", f"{where} is not signed", place))
        return False
    for by, outcome in outcomes.items():
        if outcome == "invalid" or (outcome == "unknown" and ring.closed):
            words = f"the signature of {where} is not {by}'s"
            tally.add(Finding(CHECK, "failed", "SIG_INVALID", words, place))
            return False
        if outcome != "valid":
            words = f"{where} was signed by {by}, whose key is not known here"
            tally.add(Finding(CHECK, "not_checked", "UNKNOWN_SIGNER", words, place))
        elif (
            (entry := ring.entry(by)) is not None and entry.retired_at is not None and checkpoint.at > entry.retired_at
        ):
            words = (
                f"{where} says it was made at {checkpoint.at}; {by}, who signed it, was retired at {entry.retired_at}"
            )
            tally.add(Finding(CHECK, "failed", "KEY_RETIRED", words, place))
            return False
        elif own_keys is not None and by not in own_keys:
            words = f"{where} was signed by {by}, whose key is known but has never sealed in this ledger"
            tally.add(Finding(CHECK, "warning", "UNKNOWN_SIGNER", words, place))
    return True


def _own_keys(ledger: Ledger, ring: Ring) -> set[str]:
    """Whose checkpoints speak for this ledger: keys of our ring, and those its `keys` chain has recorded."""
    own = {entry.fingerprint for entry in ring.entries}
    try:
        return own | recorded_keys(only_valid(ring, ledger.read(KEYS_CHAIN)))
    except (NotFound, Unavailable):
        return own
