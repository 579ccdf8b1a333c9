"""The keys that a ledger's records use: of those who sealed, and of those who signed statements in them.

A record is sealed by one key. In approvals, enrolments, delegations, acts and traces, others have signed too: people
who voted, policy servers, and participants elsewhere whose events the operator sealed. Their statements stand in
`authority.chain`. A verifier of the records needs the keys of all of these.

Only keys of this home are found: its own, of each identity every epoch, so that a verifier honours rotations and
retirements; and those that it knows. A key that came with a record and was never confirmed here is named as unknown:
nobody can vouch for it to others.
"""

from __future__ import annotations

from collections.abc import Iterable

from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.keys.public_key import LEDGER, PublicKey
from aver.keys.ring import RingEntry
from aver.keys.statement import Statement
from aver.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class UsedKeys:
    """The keys that records use, as far as this home has them. The ledger's own come first."""

    keys: tuple[RingEntry | PublicKey, ...]
    unknown: tuple[str, ...]
    """Signers whose keys this home does not have, such as `agent:dora (3f0c9a1b2d4e5f60)`."""

    @property
    def owners(self) -> tuple[str, ...]:
        """The identities of the keys; of a bare key the fingerprint."""
        return tuple(
            dict.fromkeys(key.identity if isinstance(key, RingEntry) else key.fingerprint for key in self.keys)
        )

    def describe_unknown(self) -> str:
        """Say which signers' keys could not be exported."""
        words = f"these keys sign here, and you do not know them: {', '.join(self.unknown)}"
        return f"{words}; a verifier must get them from their owners"


def find_used_keys(ledger: Ledger, chains: Iterable[str] | None = None) -> UsedKeys:
    """Find the keys that the records of these chains use, or those of all chains of the tenant."""
    ring = ledger.keys.ring()
    owners: dict[str, str] = {}
    for chain in ledger.chains() if chains is None else chains:
        for record in ledger.read(chain):
            owners.setdefault(record.signed_by, "")
            for by, owner in _list_statement_signers(record):
                owners[by] = owners.get(by) or owner
    used: dict[str, RingEntry | PublicKey] = {entry.key.ed25519: entry for entry in ring.entries_of(LEDGER)}
    unknown = []
    for by, owner in owners.items():
        own = ring.entry(by)
        found = ring.lookup(by) if own is None else [entry.key for entry in ring.entries_of(own.identity)]
        used |= {key.ed25519: ring.entry_of(key) or key for key in found}
        if not found:
            unknown.append(f"{owner} ({by})" if owner else by)
    return UsedKeys(tuple(used.values()), tuple(unknown))


def _list_statement_signers(record: Sealed) -> list[tuple[str, str]]:
    """The fingerprints that signed the statements of a record, each with the name that the statement gives its signer.

    Passkeys are left out: a list of keys has none, and their enrolments name them.
    """
    if b'"signatures":' not in record.canonical:
        return []
    found = []
    try:
        for data in record.content["authority"]["chain"]:
            statement = Statement.from_dict(data)
            content = statement.content
            owner = str(content.get("agent") or content.get("approver") or "")
            for each in statement.signatures:
                if each.passkey is None:
                    found.append((each.by, owner if len(statement.signatures) == 1 else ""))
    except (AverError, KeyError, TypeError):
        return found  # A record that does not hold: its verdict says so.
    return found
