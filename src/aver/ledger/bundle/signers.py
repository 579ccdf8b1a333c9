"""The keys that a verifier of exported chains needs: of those who sealed, and of those who signed statements in them.

A record is sealed by one key, which the bundle's index names. In approvals, enrolments, delegations, acts and traces,
others have signed too: people who voted, policy servers, and participants elsewhere whose events the operator sealed.
Their statements stand in `authority.chain`. A verifier with a list of keys (`--key`) needs all of these, and no others.
"""

from __future__ import annotations

from pathlib import Path

from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.keys.public_key import LEDGER
from aver.keys.ring import Ring
from aver.keys.statement import Statement
from aver.ledger.bundle.layout import read_index
from aver.ledger.ledger import Ledger

_SIGNED_DOMAINS = frozenset({"approvals", "approvers", "delegations", "gateway", "protocol"})
"""The domains whose records carry statements of others."""


@dataclass(frozen=True, slots=True)
class NeededKeys:
    """The keys that a verifier needs."""

    names: tuple[str, ...]
    """Identities of this home, and known keys by their 64 digits: the names that `aver keys export` takes."""
    unknown: tuple[str, ...]
    """Signers whose keys this home cannot export, such as `agent:dora (3f0c9a1b2d4e5f60)`."""


def find_needed_keys(ledger: Ledger, bundle: Path) -> NeededKeys:
    """Find the keys that a bundle needs which was exported from a ledger just now."""
    ring = ledger.keys.ring()
    owners: dict[str, str] = {}
    for claim in read_index(bundle).chains:
        owners |= {by: owners.get(by, "") for by in claim.signed_by or () if by}
        if (claim.origin or claim.id).partition(".")[0] in _SIGNED_DOMAINS:
            for record in ledger.read(claim.id):
                for by, owner in _list_statement_signers(record):
                    owners[by] = owners.get(by) or owner
    names: dict[str, None] = {LEDGER: None}
    unknown = []
    for by, owner in owners.items():
        found = _name_keys(ring, by)
        names |= dict.fromkeys(found)
        if not found:
            unknown.append(f"{owner} ({by})" if owner else by)
    return NeededKeys(tuple(names), tuple(unknown))


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


def _name_keys(ring: Ring, fingerprint: str) -> list[str]:
    own = ring.entry(fingerprint)
    return [own.identity] if own is not None else [key.ed25519 for key in ring.lookup(fingerprint)]
