"""Keys that the ring calls retired, or another identity's: they approve nothing and endorse nobody."""

from __future__ import annotations

import pytest

from aver import Capsule, IntegrityError, Ledger, Refused, SeedSigner, clock, open_ledger
from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import Blob
from aver.capsule.model import Authority
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    approve,
    consume,
    enrol_approver,
    load_approval_setup,
    load_roster,
    record_rotations,
    wait_for_answer,
)
from aver.gate.approvals.cast_vote import record_vote
from aver.gate.approvals.roster import ENROLMENT, Approver, enrolment_content
from aver.gate.approvals.vote import APPROVAL_PURPOSE, vote_content
from aver.keys import load_seed_signer, sign_statement
from support.approvals import SHOWN, code_of, enrolled, opened, somebody, write_enrolment
from support.forged_records import cut, forge

PASSPHRASE = "correct horse battery"


def person_on_the_ring(ledger: Ledger, name: str) -> Person:
    identity = f"person:{name}"
    ledger.keys.create(identity, passphrase=PASSPHRASE)
    signer = ledger.keys.unlock(identity, PASSPHRASE)
    return Person(identity, signer.public, "passphrase", signer)


@pytest.fixture
def ada(ledger: Ledger) -> Person:
    """An approver whose key is on the ring, and whose private key somebody has copied."""
    person = person_on_the_ring(ledger, "ada")
    enrolled(ledger, person)
    return person


def answer_with(ledger: Ledger, request: ApprovalRequest, thief: Person) -> None:
    """Record an approval that was signed outside of Aver."""
    content = vote_content(request, "approve", thief.identity, Blob(SHOWN.encode(), "").digest)
    statement = sign_statement(APPROVAL_PURPOSE, content, [thief.signer])
    record_vote(ledger, request, statement, shown=SHOWN, custody="passphrase")


def end_key(ledger: Ledger, how: str) -> None:
    if how == "retired":
        ledger.keys.retire("person:ada")
        return
    ledger.keys.rotate("person:ada", passphrase=PASSPHRASE)
    if how == "rotation cut":
        record_rotations(ledger)
        cut(ledger, "approvers.default", 1)


@pytest.mark.more
@pytest.mark.parametrize("how", ["retired", "rotated", "rotation cut"])
def test_an_ended_key_answers_no_open_request(ledger: Ledger, ada: Person, how: str) -> None:
    request = opened(ledger)
    end_key(ledger, how)
    with pytest.raises(Refused) as refusal:
        answer_with(ledger, request, ada)
    assert code_of(refusal) == "KEY_RETIRED"
    assert wait_for_answer(ledger, request, 0).state == "timeout"
    assert ledger.verify().status != "failed"


def test_an_answer_counts_no_longer_once_its_key_has_ended(ledger: Ledger, ada: Person) -> None:
    request = opened(ledger)
    approve(ledger, request, ada, shown=SHOWN)
    ledger.keys.retire("person:ada")
    with pytest.raises(Refused) as refusal:
        consume(ledger, request, request.digest)
    assert code_of(refusal) == "NOT_APPROVED"


def test_no_request_counts_on_a_person_whose_key_was_retired(ledger: Ledger, ada: Person) -> None:
    ben = somebody("ben")
    enrol_approver(ledger, ben, ada)
    ledger.keys.retire("person:ada")
    assert list(opened(ledger).approvers) == ["person:ben"]
    setup = load_approval_setup(ledger)
    assert list(setup.roster.approvers) == ["person:ben"]
    assert "was retired at" in setup.roster.ignored[-1]


def test_only_retired_keys_are_no_approvers(ledger: Ledger, ada: Person) -> None:
    ledger.keys.retire("person:ada")
    with pytest.raises(Refused) as refusal:
        opened(ledger)
    assert code_of(refusal) == "NO_APPROVERS"


def test_a_retired_key_endorses_nobody(ledger: Ledger, ada: Person) -> None:
    ledger.keys.retire("person:ada")
    mallory = somebody("mallory")
    write_enrolment(ledger, mallory, ada)
    assert "person:mallory" not in load_roster(ledger).approvers
    assert {one.code for one in ledger.verify().findings} == {"ROLE_POLICY_VIOLATION"}


def test_an_endorsement_from_before_the_retirement_stays_good(ledger: Ledger, ada: Person) -> None:
    ben = somebody("ben")
    write_enrolment(ledger, ben, ada)
    ledger.keys.retire("person:ada")
    assert "person:ben" in load_approval_setup(ledger).roster.approvers
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize("identity", ["ledger", "agent:bob", "policy:rules"])
def test_a_key_of_another_identity_is_no_person(ledger: Ledger, identity: str) -> None:
    if identity == "ledger":
        ledger.keys.create_if_absent(identity, post_quantum=False)
    else:
        ledger.keys.create(identity)
    signer: SeedSigner = load_seed_signer(ledger.keys.home / "keys" / f"{identity.replace(':', '-')}.0.key")
    mallory = Person("person:mallory", signer.public, "passphrase", signer)
    with pytest.raises(Refused) as refusal:
        enrol_approver(ledger, mallory)
    assert code_of(refusal) == "KEY_MISMATCH"
    write_enrolment(ledger, mallory)
    with pytest.raises(IntegrityError) as damage:
        load_roster(ledger)
    assert code_of(damage) == "KEY_MISMATCH"
    assert {one.code for one in ledger.verify().findings} == {"KEY_MISMATCH"}


def test_a_persons_key_for_sealing_approves_nothing(ledger: Ledger) -> None:
    ledger.keys.create("person:ada", purpose="seal", passphrase=PASSPHRASE)
    signer = ledger.keys.unlock("person:ada", PASSPHRASE)
    with pytest.raises(Refused) as refusal:
        enrol_approver(ledger, Person("person:ada", signer.public, "passphrase", signer))
    assert code_of(refusal) == "KEY_MISMATCH"


def test_a_key_that_the_ring_contradicts_is_not_written_to_the_roster(ledger: Ledger, ada: Person) -> None:
    with pytest.raises(Refused) as refusal:
        enrol_approver(ledger, somebody("ada"), ada)
    assert code_of(refusal) == "KEY_MISMATCH"
    assert list(load_roster(ledger).approvers) == ["person:ada"]


# --- old keys of the ledger


def forge_enrolment(ledger: Ledger, signer: SeedSigner, at: str) -> None:
    """Enrol a stranger as the first approver, sealed by an old key of the ledger at a time when it was good."""
    mallory = somebody("mallory")
    approver = Approver(mallory.identity, mallory.public, "passphrase")
    content = enrolment_content(approver, ledger=ledger.id, tenant=ledger.tenant, at=at)
    statement = sign_statement(ENROLMENT, content, [mallory.signer])
    draft = Capsule(type="auth", authority=Authority(type="human_approved", chain=[statement.to_dict()]))
    forge(ledger, "approvers.default", signer, at=at, draft=of_kind(draft, "key.create"))


def rotate_stolen_key(ledger: Ledger) -> tuple[SeedSigner, str]:
    """Rotate the ledger's key, which somebody has copied. Returns the old key, and a time at which it was good."""
    ledger.append("ci.a", Capsule(type="tool"))
    old, early = load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key"), clock.now()
    ledger.keys.rotate("ledger")
    ledger.append("ci.a", Capsule(type="tool"))
    return old, early


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("is_recorded_anew", [False, True])
def test_an_old_key_of_the_ledger_enrols_nobody_after_the_keys_chain_was_cut(
    ledger: Ledger, kept: int, is_recorded_anew: bool
) -> None:
    old, early = rotate_stolen_key(ledger)
    cut(ledger, "keys", kept)
    forge_enrolment(ledger, old, early)
    with open_ledger() as again:
        if is_recorded_anew:
            again.append("ci.a", Capsule(type="tool"))
        for read in (load_roster, opened):
            with pytest.raises(IntegrityError) as damage:
                read(again)
            assert code_of(damage) == "ROLLBACK"


def test_an_old_key_of_the_ledger_replaces_no_approver(ledger: Ledger) -> None:
    """The record is in a place where the old key was good, but it is another one than at the rotation."""
    enrolled(ledger, somebody("ada"))
    old, early = rotate_stolen_key(ledger)
    assert "person:ada" in load_roster(ledger).approvers
    cut(ledger, "approvers.default", 0)
    forge_enrolment(ledger, old, early)
    with pytest.raises(IntegrityError) as damage:
        load_roster(ledger)
    assert code_of(damage) == "ROLLBACK"
