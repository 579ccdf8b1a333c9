"""Loads the approval rules and the roster, and changes the roster: enrol, rotate, withdraw.

Aver reads the roster from the chain `approvers.<tenant>` at each use, and verifies the whole chain, which has few
records. They count only if the key of the identity `ledger` sealed them (`aver.gate.own_records`). Where the key ring
has keys of a person, the roster must have one of them; a key of another identity is no person's. A key that the ring
calls retired neither approves nor endorses, also before the roster shows that. If there is a system file, it replaces
both rules and roster (see `rules`).
"""

from __future__ import annotations

from typing import Any

from aver import clock
from aver.capsule.aver_block import chain_name, of_kind
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import HeadMoved, IntegrityError, NotFound, Refused
from aver.fast_dataclass import dataclass
from aver.gate.approvals.roster import (
    ENROLMENT,
    WITHDRAWAL,
    Approver,
    Person,
    Roster,
    apply_record,
    enrolment_content,
    ring_problem,
    sealer_problem,
    withdrawal_content,
)
from aver.gate.approvals.rules import SYSTEM_FILE, ApprovalRules, read_approval_rules, read_system_file
from aver.gate.own_records import OwnRecords
from aver.keys import LEDGER, Ring, RingEntry, Statement, check_rotation, sign_statement
from aver.ledger import Head, Ledger

APPROVERS_DOMAIN = "approvers"

ROTATIONS_MAX = 100
"""Rotations that one call records, including failed attempts. The next call records the rest."""


@dataclass(frozen=True, slots=True)
class ApprovalSetup:
    """The current rules and roster."""

    rules: ApprovalRules
    roster: Roster


def approvers_chain(tenant: str) -> str:
    return chain_name(APPROVERS_DOMAIN, tenant)


def load_approval_setup(ledger: Ledger) -> ApprovalSetup:
    """Load the current rules, and the roster without the people whose keys the ring calls retired."""
    # The system file comes first: a user cannot outvote it with `config.toml` or the ledger.
    fixed = read_system_file()
    if fixed is not None:
        rules, roster = fixed
    else:
        rules = read_approval_rules(ledger.config.approvals, "config.toml: approvals")
        roster = load_roster(ledger)
    return ApprovalSetup(rules, roster.without_invalid_keys(ledger.keys.ring()))


def load_roster(ledger: Ledger) -> Roster:
    """Load the roster from the ledger. Raises IntegrityError if its chain is not intact: then no approval counts.

    It also has the people whose keys the ring calls retired, who approve nothing: see `load_approval_setup`.
    """
    head = ledger.head(approvers_chain(ledger.tenant))
    records = list(OwnRecords(ledger).read(head))
    ring = ledger.keys.ring()
    retired = ring.retirement_times()
    roster = Roster()
    changes: dict[str, Sealed] = {}
    for record in records:
        if (problem := sealer_problem(record, ring)) is not None:
            raise _build_mismatch(record, problem)
        before = roster.approvers
        roster = apply_record(roster, record, ledger=ledger.id, tenant=ledger.tenant, retired=retired)
        changes |= {name: record for name, approver in roster.approvers.items() if before.get(name) != approver}
    # Only the roster as it is now is compared: a person who was withdrawn may have come back with a key on this ring.
    for name, approver in roster.approvers.items():
        if (problem := ring_problem(approver, ring)) is not None:
            raise _build_mismatch(changes[name], problem)
    return roster


def _build_mismatch(record: Sealed, problem: str) -> IntegrityError:
    words = f"chain {record.chain}, sequence {record.sequence}: {problem}"
    return IntegrityError("KEY_MISMATCH", words, evidence=record, advice="run: aver verify")


def enrol_approver(ledger: Ledger, newcomer: Person, endorser: Person | None = None) -> Sealed:
    """Put a person on the roster. All but the first need an endorser who is on it."""
    head, roster = load_changeable_roster(ledger)
    approver = Approver(newcomer.identity, newcomer.public, newcomer.custody)
    listed = roster.approvers.get(approver.identity)
    if listed is not None and listed.key == approver.key:
        raise Refused("ENROLLED", f"{approver.identity} is on the roster already")
    # A record that contradicts the ring would make the whole roster unusable.
    if (problem := ring_problem(approver, ledger.keys.ring())) is not None:
        raise Refused("KEY_MISMATCH", f"{approver.identity} was not enrolled: {problem}")
    # `apply_record` checks the same rules again at every reading. Checking here gives a better error.
    if not roster.is_new:
        check_endorser(roster, endorser, approver.identity)
    content = enrolment_content(approver, ledger=ledger.id, tenant=ledger.tenant, at=clock.now())
    people = [newcomer] if endorser is None else [newcomer, endorser]
    statement = sign_statement(ENROLMENT, content, [person.signer for person in people])
    did = f"{approver.identity} may approve with the key {approver.fingerprint} ({approver.custody})"
    return append_change(ledger, "key.create", statement, did, head)


def withdraw_approver(ledger: Ledger, identity: str, by: Person) -> Sealed:
    """Take a person off the roster. Any approver may do so; the last approver stays."""
    head, roster = load_changeable_roster(ledger)
    gone = roster.approvers.get(identity)
    if gone is None:
        raise NotFound(f"{identity} is not on the roster", advice="aver approvals approvers lists it")
    if len(roster.approvers) == 1:
        raise Refused("LAST_APPROVER", f"{identity} is the last approver", advice="enrol another first")
    if not roster.has_key_beside_passkeys(identity):
        words = f"{identity} is the last approver whose key is no passkey"
        raise Refused("LAST_APPROVER", words, advice="enrol another at a terminal first")
    check_endorser(roster, by, identity)
    content = withdrawal_content(identity, gone.fingerprint, ledger=ledger.id, tenant=ledger.tenant, at=clock.now())
    statement = sign_statement(WITHDRAWAL, content, [by.signer])
    did = f"{identity} may no longer approve with the key {gone.fingerprint}"
    return append_change(ledger, "key.retire", statement, did, head)


def record_rotations(ledger: Ledger) -> int:
    """Record the key rotations of approvers on the roster. Returns how many were recorded.

    The old and the new key have signed each rotation, so it needs no endorser.
    """
    recorded = 0
    # With a system file, the roster in the ledger counts for nothing: it must not stand in the way either.
    if read_system_file() is not None:
        return recorded
    for _ in range(ROTATIONS_MAX):
        # The head is read first. If a record comes in between, the append fails and the loop reads again.
        head = ledger.head(approvers_chain(ledger.tenant))
        ring = ledger.keys.ring()
        # The next rotation that the roster does not have, with the statement that proves it.
        successors = (_find_successor(ring, key.fingerprint) for key in load_roster(ledger).approvers.values())
        successor = next((entry for entry in successors if entry is not None and entry.statement is not None), None)
        if successor is None or successor.statement is None:
            break
        did = f"{successor.identity} approves with the key {successor.fingerprint} now"
        try:
            append_change(ledger, "key.rotate", successor.statement, did, head)
            recorded += 1
        except HeadMoved:
            continue  # another process wrote to the chain, perhaps this rotation
    return recorded


def _find_successor(ring: Ring, fingerprint: str) -> RingEntry | None:
    """Return the ring entry of the key that replaced the key with this fingerprint."""
    old = ring.entry(fingerprint)
    if old is None:
        return None
    # Each rotation leads to the next epoch; a later one is found in the next round.
    later = (entry for entry in ring.entries_of(old.identity) if entry.epoch == old.epoch + 1)
    return next((entry for entry in later if check_rotation(old, entry) == "valid"), None)


def load_changeable_roster(ledger: Ledger) -> tuple[Head, Roster]:
    """Return the head of the roster's chain, and the roster. A change must be appended right after that head."""
    if read_system_file() is not None:
        raise Refused(
            "SYSTEM_ROSTER", f"{SYSTEM_FILE} says who may approve here", advice="the owner of that file can change it"
        )
    # A rotated key must be on the roster before it can endorse anyone.
    record_rotations(ledger)
    return ledger.head(approvers_chain(ledger.tenant)), load_roster(ledger)


def check_endorser(roster: Roster, endorser: Person | None, identity: str) -> None:
    """Refuse a person who cannot endorse: somebody not on the roster, or on it with another key."""
    on_it = ", ".join(roster.approvers)
    advice = f"one of these must sign, too: {on_it} (--by person:NAME)"
    if endorser is None:
        raise Refused("NOT_ENDORSED", f"{identity} needs the signature of an enrolled approver", advice=advice)
    listed = roster.approvers.get(endorser.identity)
    if listed is None or listed.key != endorser.public:
        raise Refused("NOT_ENDORSED", f"{endorser.identity} is not on the roster with this key", advice=advice)


def append_change(ledger: Ledger, kind: str, statement: Statement, did: str, after: Head) -> Sealed:
    """Record a signed change of the roster right after the head `after`, sealed with the ledger's own key."""
    content = statement.content
    result: dict[str, Any] = {"identity": content["identity"], "at": content["at"]}
    draft = Capsule(
        type="auth",
        domain=APPROVERS_DOMAIN,
        trigger=Trigger(source=content["identity"], request="say who may approve", user_id=content["identity"]),
        context=Context(agent_id="aver"),
        authority=Authority(type="human_approved", approver=content["identity"], chain=[statement.to_dict()]),
        outcome=Outcome(status="success", summary=did, result=result),
    )
    # Not `ledger.signer()`, which may be an agent's.
    signer = ledger.keys.signer(LEDGER, post_quantum=ledger.config.post_quantum)
    return ledger.append(after.chain, of_kind(draft, kind), signer=signer, after=after)
