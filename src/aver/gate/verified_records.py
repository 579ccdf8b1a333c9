"""Verifying the records that a decision rests on."""

from __future__ import annotations

from aver.capsule.sealed import Sealed
from aver.errors import IntegrityError
from aver.ledger import Ledger
from aver.verdict import ChainJudge, Rules

__all__ = ["require_valid_records"]


def require_valid_records(ledger: Ledger, chain: str, start: int, records: list[Sealed]) -> list[Sealed]:
    """Return the records if each has its hash, its signature, its place and its link. Raises `IntegrityError` if not.

    `start` is the number of the first record in its chain.
    """
    identity = {"name": chain, "ledger": ledger.id, "tenant": ledger.tenant}
    judge = ChainJudge(Rules(ledger.keys.ring()), chain=chain, start=start, identity=identity, needs_block=True)
    for record in records:
        judge.judge(record)
    broken = next((finding for finding in judge.finish().findings if finding.status == "failed"), None)
    if broken is not None:
        raise IntegrityError(broken.code, f"{broken.place}: {broken.words}", evidence=broken, advice="run: aver verify")
    return records
