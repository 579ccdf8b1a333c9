"""Checkpoints: signed statements of heads, to be kept where the ledger's owner cannot change them.

A checkpoint is a statement with the purpose `checkpoint` over

    {v: 1, ledger, tenant, at, heads: {<chain>: {count, hash}}}

It lists every chain. A checkpoint that continues a history (see `checkpoint_files`) lists only the chains that changed,
and has `since`, the time of the checkpoint before it. The keeper of a checkpoint can later compare the ledger, a bundle
of it, or any copy with it. Given several checkpoints, Aver compares with each of them.

The `head.json` of a bundle is such a statement, too (see `bundle.head_file`). It also has `part`: where that is true,
it lists only the exported chains, and no ledger is compared with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aver.capsule.json_document import order_keys
from aver.capsule.sealed import hold_signer
from aver.clock import now
from aver.errors import BadInput, NotFound, StoreDamaged
from aver.fast_dataclass import dataclass
from aver.keys import Ring, SeedSigner, Statement, check_statement, sign_statement
from aver.ledger.head import Head
from aver.ledger.imports.history import ImportHistory, read_import_history
from aver.ledger.key_history import KeyHistory, read_history, retirements_by_time
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.ledger.seen_heads import META_CHAIN, HeadChecker
from aver.verdict import Finding, Place, Rules, Tally, Verdict, conclude, worst_status

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

PURPOSE = "checkpoint"
VERSION = 1
CHECK = "checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A statement read as a checkpoint. `where` names its file and line in messages."""

    statement: Statement
    at: str
    ledger: str
    tenant: str
    heads: tuple[Head, ...]
    since: str | None = None
    where: str = "the checkpoint"
    part: bool = False
    """Whether it lists only some chains of the ledger: those of a bundle (see `bundle.head_file`)."""

    @classmethod
    def from_statement(cls, statement: Statement, where: str = "the checkpoint") -> Checkpoint:
        """Read a statement. Raises `BadInput` if it has another purpose or a form that Aver does not write."""
        content = statement.content
        if statement.purpose != PURPOSE or content.get("v") != VERSION:
            raise BadInput(f"{where} is a statement, but not a checkpoint", advice="aver checkpoint makes one")
        at, since, heads = content.get("at"), content.get("since"), content.get("heads")
        if not isinstance(heads, dict) or not isinstance(at, str) or not (since is None or isinstance(since, str)):
            raise BadInput(f"{where} does not list heads and its time")
        ledger, tenant = content.get("ledger"), content.get("tenant")
        if not isinstance(ledger, str) or not isinstance(tenant, str):
            raise BadInput(f"{where} does not name a ledger and a tenant")
        listed = []
        for chain, head in heads.items():
            if not isinstance(head, dict) or head.keys() != {"count", "hash"}:
                raise BadInput(f"{where}: its head of {ascii(chain)[:80]} is not valid")
            listed.append(Head.from_dict({"ledger": ledger, "tenant": tenant, "chain": chain, **head}))
        # Anything but a plain false counts as a part: a part proves less.
        return cls(statement, at, ledger, tenant, tuple(listed), since, where, content.get("part", False) is not False)


def order_checkpoint(statement: Statement) -> dict[str, Any]:
    """A checkpoint as JSON, its keys in the order in which Aver writes them; chains by their names."""
    content = order_keys(statement.content, ("v", "ledger", "tenant", "at", "heads", "part", "since"))
    content["heads"] = order_heads(content["heads"], sorted(content["heads"]))
    return {**statement.to_dict(), "content": content}


def order_heads(heads: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The heads in a statement, in the order of `names`."""
    return {name: order_keys(head, ("count", "hash")) for name, head in order_keys(heads, names).items()}


def make_checkpoint(ledger: Ledger, heads: Iterable[Head] | None = None, *, since: str | None = None) -> Statement:
    """Sign a checkpoint of all chains; or only of `heads`, after an earlier checkpoint made at `since`."""
    content = _list_heads(ledger, ledger.heads() if heads is None else heads)
    if since is not None:
        content["since"] = since
    return _sign_content(ledger, content)


def make_bundle_head(ledger: Ledger, heads: Iterable[Head], *, part: bool) -> Statement:
    """Sign the heads of the chains that a bundle contains. `part` says that the ledger has other chains."""
    return _sign_content(ledger, {**_list_heads(ledger, heads), "part": part})


def _list_heads(ledger: Ledger, heads: Iterable[Head]) -> dict[str, Any]:
    listed = {head.chain: {"count": head.count, "hash": head.hash} for head in heads}
    return {"v": VERSION, "ledger": ledger.id, "tenant": ledger.tenant, "at": now(), "heads": listed}


def _sign_content(ledger: Ledger, content: dict[str, Any]) -> Statement:
    # Locked while it signs, like for an append: a rotation must not happen in between.
    with hold_signer(ledger.attesting_signer()) as signer:
        if not isinstance(signer, SeedSigner):
            raise BadInput("this ledger's signer signs capsules only, not statements")
        return sign_statement(PURPOSE, content, (signer,))


def extend_with_checkpoints(verdict: Verdict, ledger: Ledger, checkpoints: Sequence[Checkpoint], ring: Ring) -> Verdict:
    """A verdict on a whole ledger, extended by a comparison with checkpoints."""
    tally = Tally(records=verdict.records, earlier=verdict.earlier)
    check_ledger_checkpoints(ledger, checkpoints, ring, tally)
    return extend_verdict(verdict, tally)


def extend_verdict(verdict: Verdict, tally: Tally) -> Verdict:
    """A verdict with the check `checkpoint`, from a tally, added."""
    added = conclude(verdict.subject, tally, level=verdict.level, expected=(CHECK,))
    return replace(
        verdict,
        status=worst_status((verdict.status, added.status)),
        checks=(*verdict.checks, *added.checks),
        findings=(*verdict.findings, *added.findings),
        first_bad=verdict.first_bad or added.first_bad,
    )


def check_ledger_checkpoints(ledger: Ledger, checkpoints: Sequence[Checkpoint], ring: Ring, tally: Tally) -> None:
    """Compare a ledger with each of these checkpoints."""
    try:
        imports = read_import_history(ledger, ring)
    except StoreDamaged:
        imports = ImportHistory()  # The verdict on the ledger reports that its meta chain cannot be read.
    checker = HeadChecker.for_ledger(ledger, tally, check=CHECK, excuse=imports.has_dropped)
    try:
        identity = {"ledger": ledger.id, "tenant": ledger.tenant}
        history = read_history(ring, ledger.read(KEYS_CHAIN), ledger.blob, identity)
    except (NotFound, StoreDamaged):
        history = KeyHistory(retirements_by_time(ring))
    # The keys whose checkpoints speak for this ledger: our ring, and the keys that its intact `keys` chain records.
    own = None if ring.closed else {*(entry.key.ed25519 for entry in ring.entries), *history.roles}
    of = ledger.id, ledger.tenant
    check_against_checkpoints(checker, checkpoints, ring, tally, of=of, own_keys=own, history=history)


def check_against_checkpoints(
    checker: HeadChecker,
    checkpoints: Sequence[Checkpoint],
    ring: Ring,
    tally: Tally,
    *,
    of: tuple[str, str],
    own_keys: Collection[str] | None,
    history: KeyHistory | None = None,
) -> None:
    """Compare the chains of a ledger and tenant (`of`) with checkpoints, newest first.

    `own_keys` are the keys that may speak for this ledger, by their 64 digits; another known key gives a warning. None
    allows all. `history` is that of the ledger's keys.
    """
    check_missing_links(checkpoints, tally)
    compared: set[Head] = set()
    chains: set[str] = set()
    grown = used = 0
    for checkpoint in sorted(checkpoints, key=lambda checkpoint: checkpoint.at, reverse=True):
        if (checkpoint.ledger, checkpoint.tenant) != of:
            words = f"{checkpoint.where} is of ledger {checkpoint.ledger}, tenant {checkpoint.tenant}; this is another"
            tally.add(Finding(CHECK, "failed", "CHAIN_IDENTITY", words))
        elif check_signatures(checkpoint, ring, tally, own_keys=own_keys, history=history):
            used += 1
            words = f"the checkpoint of {checkpoint.at}"
            # One that lists only changes has `meta` as well, if a chain in it was imported since the one before.
            entries = next((head.count for head in checkpoint.heads if head.chain == META_CHAIN), 0)
            # A chain counts as grown by its newest head only; older heads of it are compared, but not counted.
            grown += checker.check([head for head in checkpoint.heads if head.chain not in chains], words, entries)
            older = [head for head in checkpoint.heads if head.chain in chains and head not in compared]
            checker.check(older, words, entries)
            chains.update(head.chain for head in checkpoint.heads)
            compared.update(checkpoint.heads)
    if used:
        newest = max(checkpoint.at for checkpoint in checkpoints if (checkpoint.ledger, checkpoint.tenant) == of)
        which = f"the checkpoint of {newest}" if used == 1 else f"{used} checkpoints, the newest of {newest}"
        tally.notes[CHECK] = f"{len(chains)} chains match {which} ({grown} grown since)"


def select_checkpoints(checkpoints: Sequence[Checkpoint], ledger: str, tenant: str) -> list[Checkpoint]:
    """Leave out checkpoints of the ledger's other tenants. If all are of others, keep all, so that the check fails."""
    own = [checkpoint for checkpoint in checkpoints if checkpoint.tenant == tenant or checkpoint.ledger != ledger]
    return own or list(checkpoints)


def check_missing_links(checkpoints: Sequence[Checkpoint], tally: Tally) -> None:
    """Report every checkpoint that lists only changes and whose predecessor is not here."""
    here = {(checkpoint.ledger, checkpoint.tenant, checkpoint.at) for checkpoint in checkpoints}
    for later in checkpoints:
        if later.since is not None and (later.ledger, later.tenant, later.since) not in here:
            words = f"the checkpoint of {later.since}, which the one of {later.at} continues, is not here"
            tally.skip(CHECK, words, matters=True)


def check_signatures(
    checkpoint: Checkpoint,
    ring: Ring,
    tally: Tally,
    *,
    own_keys: Collection[str] | None = None,
    check: str = CHECK,
    history: KeyHistory | None = None,
) -> bool:
    """Check every signature of a checkpoint. Returns False if its heads must not be used.

    Findings are added under the name `check`. An unknown signer is reported, but the heads are still compared: a
    difference is worth knowing.
    """
    where, place = checkpoint.where, Place(source=checkpoint.where)
    results = check_statement(checkpoint.statement, ring)

    def fail(code: str, words: str) -> bool:
        tally.add(Finding(check, "failed", code, words, place))
        return False

    if not results:
        return fail("SIG_MISSING", f"{where} is not signed")
    history = history or KeyHistory(retirements_by_time(ring))
    rules = history.rules(Rules(ring))
    for result in results:
        by, key = result.by, result.key
        if result.outcome == "invalid":
            return fail("SIG_INVALID", f"the signature of {where} was not made by {by}")
        if key is None:
            words = f"{where} was signed by {by}, whose key is not known here"
            tally.add(Finding(check, "not_checked", "UNKNOWN_SIGNER", words, place))
            continue
        role, retirement = rules.role_of(key), rules.retired.get(key.ed25519)
        if role is not None and not role.may_attest:
            return fail("KEY_MISMATCH", f"{where} was signed by {by}, a key of {role}; only the ledger's key may")
        at = None if retirement is None else retirement.retired_at
        if at is not None and checkpoint.at > at:
            # The thief of an old key could otherwise sign new checkpoints.
            words = f"{where} says it was made at {checkpoint.at}; {by}, who signed it, was retired at {at}"
            return fail("KEY_RETIRED", words)
        if own_keys is not None and key.ed25519 not in own_keys:
            words = f"{where} was signed by {by}, whose key is known but has never sealed in this ledger"
            tally.add(Finding(check, "warning", "UNKNOWN_SIGNER", words, place))
    return True
