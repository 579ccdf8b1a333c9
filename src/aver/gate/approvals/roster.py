"""The roster: the people whose approvals count, with their public keys, from the chain `approvers.<tenant>`. No I/O.

The key ring cannot serve as roster, because every program of the same user can write that file. A person is therefore
*enrolled* by a record with a signed statement. The person's own key signs it, and from the second person on also an
approver who is already enrolled. Each change of the roster needs such a signature:

    key.create   statement `enrolment`    signed by the new key and, unless it is the first ever, by an approver
    key.rotate   statement `rotation`     signed by the old key and the new one, as `aver keys rotate` makes it
    key.retire   statement `withdrawal`   signed by an approver, of oneself or of another; one always remains

A passkey (`aver.keys.passkey`) is enrolled from a page. It is never the first key of a roster, and one approver whose
key is no passkey always remains: only such a key can be known to the people who verify. A passkey is *independent* if a
key under a passphrase or in ssh-agent endorsed it. Any program can make a passkey without a device, and could enrol it
with a key in a plain file.

A record that breaks these rules changes nothing, and is listed under `ignored`. The seal of a record alone proves
little: it is made with the ledger's key, which the agent may use as well. It is needed all the same: `sealer_problem`
and `ring_problem` say when a roster must not be believed at all.

`find_person` is the other side: it finds a person who can sign now, with the signer of their key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Literal, get_args

from aver.capsule.json_document import check_object, time_field
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.keys import (
    LEDGER,
    KeyStore,
    PublicKey,
    Ring,
    RingEntry,
    Statement,
    StatementSigner,
    check_statement,
    statement_bytes,
)
from aver.keys.passkey import EDDSA, Passkey, passkey_problem
from aver.keys.public_key import check_identity
from aver.keys.ring import ROTATION_PURPOSE as ROTATION
from aver.keys.ssh_agent import find_ssh_agent_signer

ENROLMENT = "enrolment"
WITHDRAWAL = "withdrawal"

APPROVE_PURPOSE = "approve"
"""The purpose of the keys with which people approve."""

Custody = Literal["passphrase", "ssh-agent", "file", "passkey"]
CUSTODIES: tuple[str, ...] = get_args(Custody)
"""How a private key is kept. Every program of the user can sign with a key in a plain `file`."""

PASSKEY_CUSTODY: Custody = "passkey"

VOUCHING_CUSTODIES = ("passphrase", "ssh-agent")
"""The custodies of keys that make a passkey independent by their endorsement."""

ApproverKey = PublicKey | Passkey

_UNREADABLE = (AverError, AttributeError, KeyError, IndexError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Approver:
    """A person, their public key, and how the private key is kept."""

    identity: str
    key: ApproverKey
    custody: Custody
    endorsers: tuple[Approver, ...] = field(default=(), compare=False, repr=False)
    """The approvers who endorsed a passkey. A request does not name them, so they are no part of the comparison."""

    @property
    def fingerprint(self) -> str:
        return self.key.fingerprint

    @property
    def is_independent(self) -> bool:
        """Whether no other program of the user can have made the signatures of this approver."""
        if self.custody == PASSKEY_CUSTODY:
            return any(endorser.custody in VOUCHING_CUSTODIES for endorser in self.endorsers)
        return self.custody != "file"

    def to_dict(self) -> dict[str, Any]:
        if isinstance(self.key, Passkey):
            return {"passkey": self.key.to_dict(), "custody": self.custody}
        return {"public_key": self.key.ed25519, "public_key_pq": self.key.ml_dsa_65, "custody": self.custody}


def approver_from_dict(identity: str, data: Any, where: str) -> Approver:
    """Read an approver that `to_dict` wrote. `public_key_pq` is optional."""
    # The custody and the form of the key go together, so a passkey is never taken for a key of another custody.
    is_passkey = isinstance(data, dict) and data.get("custody") == PASSKEY_CUSTODY
    required = frozenset({"passkey" if is_passkey else "public_key", "custody"})
    data = check_object(data, where, required, frozenset() if is_passkey else frozenset({"public_key_pq"}))
    if not check_identity(identity).startswith("person:"):
        raise BadInput(f"{where}: {identity} is not a person")
    if is_passkey:
        return Approver(identity, Passkey.read(data["passkey"], where), PASSKEY_CUSTODY)
    key = PublicKey.read(data["public_key"], data.get("public_key_pq", ""), where)
    custody: Custody = data["custody"]
    if custody not in CUSTODIES:
        raise BadInput(f"{where}.custody must be one of {', '.join(CUSTODIES)}")
    return Approver(identity, key, custody)


def whole_key(key: ApproverKey) -> str:
    """The whole public key in hex: 64 digits for Ed25519, also that of a passkey; 130 for a passkey with ES256."""
    return key.public_key if isinstance(key, Passkey) else key.ed25519


def find_ring_entry(ring: Ring, key: ApproverKey) -> RingEntry | None:
    """Return what the ring knows about a key. It has no passkeys, but may have the Ed25519 key of one as another's."""
    if isinstance(key, PublicKey):
        return ring.entry_of(key)
    return ring.entry_of(PublicKey(key.public_key)) if key.alg == EDDSA else None


@dataclass(frozen=True, slots=True)
class Roster:
    """The people who may approve now, and the keys that no longer count."""

    approvers: Mapping[str, Approver] = field(default_factory=dict)
    """Approvers by identity."""
    ended: Mapping[str, str] = field(default_factory=dict)
    """The times at which keys were replaced or withdrawn, by fingerprint."""
    keys: frozenset[tuple[str, ApproverKey]] = frozenset()
    """Every pair of identity and key that was ever on the roster."""
    anchor: Literal["ledger", "system"] = "ledger"
    """The source of the roster: a chain in the ledger, or a file that the agent's user cannot write."""
    ignored: tuple[str, ...] = ()
    """Records that tried to change the roster without the needed signatures."""

    @property
    def is_new(self) -> bool:
        """Whether no person was ever enrolled."""
        return not self.keys

    def has_had(self, key: ApproverKey) -> bool:
        """Whether a key was ever on the roster: a key never comes back, because it may have been stolen.

        One Ed25519 key has two fingerprints, as a key and as a passkey. It is one key all the same: otherwise one
        person could count as two.
        """
        return any(key.fingerprint == other.fingerprint or whole_key(key) == whole_key(other) for _, other in self.keys)

    def has_key_beside_passkeys(self, without: str) -> bool:
        """Whether somebody other than `without` is on the roster whose key is no passkey."""
        others = (approver for name, approver in self.approvers.items() if name != without)
        return any(approver.custody != PASSKEY_CUSTODY for approver in others)

    def with_approver(self, approver: Approver, at: str) -> Roster:
        before = self.approvers.get(approver.identity)
        ended = {**self.ended, before.fingerprint: at} if before else self.ended
        approvers = {**self.approvers, approver.identity: approver}
        return replace(self, approvers=approvers, ended=ended, keys=self.keys | {(approver.identity, approver.key)})

    def without_approver(self, identity: str, at: str) -> Roster:
        gone = self.approvers[identity]
        approvers = {name: approver for name, approver in self.approvers.items() if name != identity}
        return replace(self, approvers=approvers, ended={**self.ended, gone.fingerprint: at})

    def without_invalid_keys(self, ring: Ring) -> Roster:
        """Return the roster without the approvers whose keys no longer count, as the key ring knows."""
        roster = self
        for identity, approver in self.approvers.items():
            entry = find_ring_entry(ring, approver.key)
            words = _foreign_key_problem(approver, ring)
            at = "" if entry is None or entry.retired_at is None else entry.retired_at
            if words is None and not at:
                continue
            words = words or f"the key {approver.fingerprint} of {identity} was retired at {at}"
            roster = replace(roster.without_approver(identity, at), ignored=(*roster.ignored, words))
        return roster


def enrolment_content(approver: Approver, *, ledger: str, tenant: str, at: str) -> dict[str, Any]:
    """Return the content of an enrolment. It names the ledger, so it is invalid in another ledger."""
    return {"identity": approver.identity, **approver.to_dict(), "ledger": ledger, "tenant": tenant, "at": at}


def withdrawal_content(identity: str, fingerprint: str, *, ledger: str, tenant: str, at: str) -> dict[str, Any]:
    """Return the content of a withdrawal from the roster."""
    return {"identity": identity, "fingerprint": fingerprint, "ledger": ledger, "tenant": tenant, "at": at}


def apply_record(
    roster: Roster, record: Sealed, *, ledger: str, tenant: str, retired: Mapping[str, str] | None = None
) -> Roster:
    """Return the roster after one more record. An invalid record only adds to `ignored`.

    `retired` has the times at which keys were retired, by their 64 digits: see `Ring.retirement_times`. A key that was
    retired before the record was sealed endorses nothing.
    """
    try:
        ended = {key for key, at in (retired or {}).items() if at < record.signed_at}
        statement = Statement.from_dict(record.to_dict()["authority"]["chain"][0])
        kind = record.kind
        if kind == "key.create":
            return apply_enrolment(roster, statement, ledger, tenant, ended)
        if kind == "key.rotate":
            return _apply_rotation(roster, statement)
        if kind == "key.retire":
            return _apply_withdrawal(roster, statement, ledger, tenant, ended)
        words = f"it is of the kind {kind}"
    except _UNREADABLE as error:
        words = error.message if isinstance(error, AverError) else "it cannot be read"
    return replace(roster, ignored=(*roster.ignored, f"{_describe_position(record)}: {words}"))


def _describe_position(record: Sealed) -> str:
    try:
        return f"sequence {record.sequence}"
    except AverError:
        return "a record"


def apply_enrolment(roster: Roster, statement: Statement, ledger: str, tenant: str, ended: Collection[str]) -> Roster:
    """Return the roster after an enrolment. `ended` are the whole keys that endorse nothing. Raises BadInput."""
    content = _read_content(statement, ENROLMENT, ledger, tenant)
    names = ("passkey",) if content["custody"] == PASSKEY_CUSTODY else ("public_key", "public_key_pq")
    described = {name: content[name] for name in (*names, "custody")}
    approver = approver_from_dict(content["identity"], described, "enrolment")
    # The content is compared as a whole, so a signature never covers a field that Aver does not read.
    if content != enrolment_content(approver, ledger=ledger, tenant=tenant, at=content["at"]):
        raise BadInput("the enrolment says more than it should")
    approver.key.check_usable()
    if signature_problem(statement, approver.key) is not None:
        raise BadInput(f"the enrolment of {approver.identity} is not signed by the key itself")
    if approver.custody == PASSKEY_CUSTODY and not roster.has_key_beside_passkeys(approver.identity):
        raise BadInput("a passkey is enrolled only beside an approver whose key is no passkey")
    endorsers = find_endorsers(statement, roster.approvers.values(), {*ended, whole_key(approver.key)})
    # The first person needs no endorser: there is none.
    if not roster.is_new and not endorsers:
        raise BadInput(f"the enrolment of {approver.identity} is not signed by anyone who was on the roster")
    if roster.has_had(approver.key):
        raise BadInput(f"the key {approver.fingerprint} was on the roster before")
    return roster.with_approver(replace(approver, endorsers=endorsers), content["at"])


def _apply_rotation(roster: Roster, statement: Statement) -> Roster:
    content = statement.content
    before = roster.approvers[content["identity"]]
    old, new = _read_rotation_key(content["old"]), _read_rotation_key(content["new"])
    at = time_field(content["at"], "rotation.at")
    # The old key must be the current one: an older rotation must not bring back an older key.
    if statement.purpose != ROTATION or old != before.key:
        raise BadInput(f"the rotation is not of the key that is on the roster for {before.identity}")
    if roster.has_had(new):
        raise BadInput(f"the key {new.fingerprint} was on the roster before")
    if any(signature_problem(statement, key) is not None for key in (old, new)):
        raise BadInput(f"the rotation of {before.identity} is not signed by both keys")
    return roster.with_approver(Approver(before.identity, new, before.custody), at)


def _apply_withdrawal(roster: Roster, statement: Statement, ledger: str, tenant: str, ended: Collection[str]) -> Roster:
    content = _read_content(statement, WITHDRAWAL, ledger, tenant)
    gone = roster.approvers[content["identity"]]
    if gone.fingerprint != content["fingerprint"]:
        raise BadInput(f"the withdrawal is not of the key that is on the roster for {gone.identity}")
    if not find_endorsers(statement, roster.approvers.values(), ended):
        raise BadInput(f"the withdrawal of {gone.identity} is not signed by anyone on the roster")
    # Without an approver, no one could be endorsed any more.
    if len(roster.approvers) == 1:
        raise BadInput(f"{gone.identity} is the last approver")
    if not roster.has_key_beside_passkeys(gone.identity):
        raise BadInput(f"{gone.identity} is the last approver whose key is no passkey")
    return roster.without_approver(gone.identity, content["at"])


def _read_content(statement: Statement, purpose: str, ledger: str, tenant: str) -> dict[str, Any]:
    content = statement.content
    if statement.purpose != purpose:
        raise BadInput(f"its statement is of the purpose {statement.purpose}, not {purpose}")
    # Otherwise the enrolment of another ledger could be copied here.
    if (content["ledger"], content["tenant"]) != (ledger, tenant):
        raise BadInput("its statement was made for another ledger or tenant")
    time_field(content["at"], f"{purpose}.at")
    return content


def _read_rotation_key(data: Any) -> PublicKey:
    return PublicKey.read(data["public_key"], data["public_key_pq"], "rotation")


def signature_problem(statement: Statement, key: ApproverKey) -> str | None:
    """Return why a statement has no valid signature of this key; None if it has one."""
    if isinstance(key, PublicKey):
        results = check_statement(statement, Ring.pin((key,)))
        is_signed = any(result.by == key.fingerprint and result.outcome == "valid" for result in results)
        return None if is_signed else "it does not hold"
    message = statement_bytes(statement.purpose, statement.content)
    problem = "it is not there"
    for signature in statement.signatures:
        if signature.by == key.fingerprint and signature.passkey is not None:
            problem = passkey_problem(key, message, signature.passkey) or ""
            if not problem:
                return None
    return problem


def find_endorsers(statement: Statement, approvers: Iterable[Approver], but: Collection[str]) -> tuple[Approver, ...]:
    """Return the approvers who signed a statement with a key other than those in `but`, which has whole keys."""
    # Only keys that the statement names are tried: a roster may have many, and verifying takes time.
    named = {signature.by for signature in statement.signatures}
    return tuple(
        # Without their own endorsers: a long line of passkeys, each endorsed by the one before, must not nest.
        replace(approver, endorsers=())
        for approver in approvers
        if approver.fingerprint in named
        and whole_key(approver.key) not in but
        and signature_problem(statement, approver.key) is None
    )


def sealer_problem(record: Sealed, ring: Ring) -> str | None:
    """Return why the seal of a record does not entitle it to change the roster: another identity made it."""
    entry = ring.entry(record.signed_by)
    if entry is None or entry.identity == LEDGER:
        return None
    return f"{entry.identity} sealed it, and only the key of the ledger itself changes the roster"


def ring_problem(approver: Approver, ring: Ring) -> str | None:
    """Return why an approver contradicts the ring: it has keys of that person, and this is none of them; or it has this
    key, and not as one with which this person approves.

    Rotated keys are on the ring as well. The ring knows nothing of people whose keys are on other machines.
    """
    if (problem := _foreign_key_problem(approver, ring)) is not None:
        return problem
    epochs = ring.entries_of(approver.identity)
    if not epochs or any(entry.key == approver.key for entry in epochs):
        return None
    own = ", ".join(entry.fingerprint for entry in epochs)
    return f"it gives {approver.identity} the key {approver.fingerprint}; the key ring has {own} for this person"


def _foreign_key_problem(approver: Approver, ring: Ring) -> str | None:
    """Return whose key it is, and what for, if the ring has it as another one than an approver's."""
    entry = find_ring_entry(ring, approver.key)
    is_own = entry is not None and (entry.identity, entry.purpose) == (approver.identity, APPROVE_PURPOSE)
    # A key on the ring has a file or is in ssh-agent, so it is nobody's passkey.
    if entry is None or (is_own and isinstance(approver.key, PublicKey)):
        return None
    key = f"it gives {approver.identity} the key {approver.fingerprint}"
    return f"{key}, which the key ring has as that of {entry.identity} with the purpose {entry.purpose}"


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
        # Every other refusal is final.
        if refusal.code != "PASSPHRASE_NEEDED":
            raise
        return Person(identity, entry.key, "passphrase", keys.unlock(identity, ask()))
    try:
        return Person(identity, plain.public, "file", plain)
    except Unavailable:
        # The ring has the public key, but there is no private file: the key must be in ssh-agent.
        return Person(identity, entry.key, "ssh-agent", find_ssh_agent_signer(entry.key))
