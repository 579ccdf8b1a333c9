"""The statement by which a key names its successor. No I/O.

It contains the identity, both public keys with their epochs, and the time. The old key signs it, so that no one else
can name a successor. The new key signs it, too, so that no one can name a key that he does not hold. The new ring entry
contains the statement.
"""

from __future__ import annotations

from typing import Any

from aver.keys.ring import Ring, RingEntry
from aver.keys.statement import SignatureOutcome, Statement, StatementSigner, check_statement, sign_statement

__all__ = ["ROTATION_PURPOSE", "check_rotation", "sign_rotation"]

ROTATION_PURPOSE = "rotation"


def sign_rotation(
    old: RingEntry, new: RingEntry, old_signer: StatementSigner, new_signer: StatementSigner
) -> Statement:
    """Build the rotation statement, signed by both keys."""
    return sign_statement(ROTATION_PURPOSE, _rotation_content(old, new), (old_signer, new_signer))


def check_rotation(old: RingEntry, new: RingEntry) -> SignatureOutcome:
    """Check the statement in `new` that makes it the successor of `old`."""
    statement = new.statement
    if statement is None:
        return "missing"
    if statement.purpose != ROTATION_PURPOSE or statement.content != _rotation_content(old, new):
        return "invalid"
    pair = (old.fingerprint, new.fingerprint)
    results = check_statement(statement, Ring.pin((old.key, new.key)), signers_required=pair)
    return "valid" if all(result.outcome == "valid" for result in results) else "invalid"


def _rotation_content(old: RingEntry, new: RingEntry) -> dict[str, Any]:
    return {"identity": new.identity, "at": new.created_at, "old": _describe_key(old), "new": _describe_key(new)}


def _describe_key(entry: RingEntry) -> dict[str, Any]:
    return {
        "epoch": entry.epoch,
        "purpose": entry.purpose,
        "fingerprint": entry.fingerprint,
        "public_key": entry.key.ed25519,
        "public_key_pq": entry.key.ml_dsa_65,
    }
