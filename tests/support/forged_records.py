"""Records that someone with a key of his own, and with write access to the ledger's file, puts behind its back."""

from __future__ import annotations

from typing import Any

from aver import Capsule, Ledger, Sealed, SeedSigner
from aver.capsule.draft import prepare_draft
from aver.verdict.record import column_values
from support.tamper import unguarded


def forge(ledger: Ledger, chain: str, signer: SeedSigner, *, at: str, draft: Any = None) -> Sealed:
    """Append a record to a chain, with every link and column as it should be."""
    attacker = unguarded(ledger)
    head = ledger.head(chain)
    identity = {"ledger": ledger.id, "tenant": ledger.tenant, "name": chain}
    sealed = prepare_draft(draft or Capsule(type="tool")).seal(
        signer, at=at, sequence=head.count, previous_hash=head.hash, chain=identity
    )
    content = sealed.to_dict()
    columns = column_values(content, content["context"]["environment"]["aver"])
    chosen = "SELECT chain FROM chains WHERE name = ? AND tenant = ?"
    if attacker.execute(chosen, (chain, ledger.tenant)).fetchone() is None:
        attacker.execute("INSERT INTO chains (tenant, name) VALUES (?, ?)", (ledger.tenant, chain))
    (number,) = attacker.execute(chosen, (chain, ledger.tenant)).fetchone()
    attacker.execute(
        "INSERT INTO records (chain, sequence, tenant, id, type, kind, key, session, at, canonical, hash, signature,"
        " signature_pq, signed_at, signed_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(number, head.count, ledger.tenant),
            *columns,
            *(sealed.canonical, sealed.hash, sealed.signature, sealed.signature_pq, at, signer.fingerprint),
        ),
    )
    attacker.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (head.count + 1, sealed.hash, number))
    attacker.close()
    return sealed


def cut(ledger: Ledger, chain: str, count: int) -> None:
    """Leave only the first records of a chain; with 0, not even its head row."""
    attacker = unguarded(ledger)
    (number,) = attacker.execute("SELECT chain FROM chains WHERE name = ?", (chain,)).fetchone()
    attacker.execute("DELETE FROM records WHERE chain = ? AND sequence >= ?", (number, count))
    if count:
        head = attacker.execute(
            "SELECT hash FROM records WHERE chain = ? AND sequence = ?", (number, count - 1)
        ).fetchone()
        attacker.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (count, head[0], number))
    else:
        attacker.execute("DELETE FROM chains WHERE chain = ?", (number,))
    attacker.close()
