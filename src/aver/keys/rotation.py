"""The statement by which a key hands over to its successor. No I/O.

It names the identity and both public keys whole, with their epochs, and the time; it is signed by the old
key (so nobody else can appoint a successor) and by the new one (so nobody can appoint a key he does not
hold). The new ring entry carries it.
"""

from __future__ import annotations

from typing import Any

from aver.keys.ring import Ring, RingEntry
from aver.keys.statement import Outcome, Statement, StatementSigner, check_statement, sign_statement

__all__ = ["PURPOSE", "check_rotation", "rotation_statement"]

PURPOSE = "rotation"


def rotation_statement(
    old: RingEntry, new: RingEntry, old_signer: StatementSigner, new_signer: StatementSigner
) -> Statement:
    return sign_statement(PURPOSE, _content(old, new), (old_signer, new_signer))


def check_rotation(old: RingEntry, new: RingEntry) -> Outcome:
    """Whether `new` carries a statement that makes it the successor of `old`."""
    statement = new.statement
    if statement is None:
        return "missing"
    if statement.purpose != PURPOSE or statement.content != _content(old, new):
        return "invalid"
    pair = (old.fingerprint, new.fingerprint)
    results = check_statement(statement, Ring.pinned((old.key, new.key)), signers_required=pair)
    return "valid" if all(result.outcome == "valid" for result in results) else "invalid"


def _content(old: RingEntry, new: RingEntry) -> dict[str, Any]:
    return {"identity": new.identity, "at": new.created_at, "old": _side(old), "new": _side(new)}


def _side(entry: RingEntry) -> dict[str, Any]:
    return {
        "epoch": entry.epoch,
        "purpose": entry.purpose,
        "fingerprint": entry.fingerprint,
        "public_key": entry.key.ed25519,
        "public_key_pq": entry.key.ml_dsa_65,
    }
