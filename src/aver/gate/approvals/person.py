"""A person who signs: their identity, the signer of their key, and how that key is kept."""

from __future__ import annotations

from collections.abc import Callable

from aver.errors import NotFound, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.approvals.roster import Custody
from aver.keys import KeyStore, PublicKey, StatementSigner
from aver.keys.ssh_agent import find_ssh_agent_signer

__all__ = ["Person", "find_person"]


@dataclass(frozen=True, slots=True)
class Person:
    """A person who can sign now. `public` is the key that verifies the signatures."""

    identity: str
    public: PublicKey
    custody: Custody
    signer: StatementSigner


def find_person(keys: KeyStore, identity: str, ask: Callable[[], str]) -> Person:
    """Find the person with this identity. `ask` returns the passphrase, if the key needs one.

    A key without a file is looked up in ssh-agent. A key in a plain file works, and its votes record that.
    """
    entry = keys.ring().active(identity)
    if entry is None:
        raise NotFound(f"{identity} has no key here", advice=f"make one: aver keys new {identity}")
    try:
        plain = keys.signer(identity, create=False)
    except Refused as refusal:
        if refusal.code != "PASSPHRASE_NEEDED":
            raise
        return Person(identity, entry.key, "passphrase", keys.unlock(identity, ask()))
    try:
        return Person(identity, plain.public, "file", plain)
    except Unavailable:
        # The ring has the public key, but there is no private file: the key must be in ssh-agent.
        return Person(identity, entry.key, "ssh-agent", find_ssh_agent_signer(entry.key))
