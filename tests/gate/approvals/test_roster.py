"""The roster: only those on it change it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aver import Capsule, IntegrityError, Ledger, Refused, open_ledger
from aver.capsule.aver_block import of_kind
from aver.capsule.model import Authority
from aver.gate.approvals import Person, enrol_approver, record_rotations, withdraw_approver
from aver.gate.approvals import load_roster as roster_of
from aver.gate.approvals.roster import ENROLMENT, WITHDRAWAL, Approver, enrolment_content, withdrawal_content
from aver.keys import Statement, sign_statement
from support.approvals import code_of, enrolled, somebody

CHAIN = "approvers.default"
PASSPHRASE = "correct horse battery"


def forged(ledger: Ledger, kind: str, statement: Statement) -> None:
    """A record as whoever holds the ledger's key can write one."""
    draft = Capsule(type="auth", authority=Authority(type="human_approved", chain=[statement.to_dict()]))
    ledger.append(CHAIN, of_kind(draft, kind))


def enrolment_of(where: Ledger, person: Person, *signers: Person, **changed: str) -> Statement:
    approver = Approver(person.identity, person.public, person.custody)
    content = enrolment_content(approver, ledger=where.id, tenant="default", at=T)
    return sign_statement(ENROLMENT, {**content, **changed}, [one.signer for one in signers])


def test_the_first_needs_nobody_and_the_second_somebody(ledger: Ledger) -> None:
    ada, ben = somebody("ada"), somebody("ben")
    enrol_approver(ledger, ada)
    with pytest.raises(Refused) as refusal:
        enrol_approver(ledger, ben)
    assert code_of(refusal) == "NOT_ENDORSED"
    assert "person:ada" in refusal.value.advice
    enrol_approver(ledger, ben, ada)
    roster = roster_of(ledger)
    assert list(roster.approvers) == ["person:ada", "person:ben"]
    assert roster.approvers["person:ben"].key == ben.public
    assert roster.ignored == ()
    assert ledger.verify().status == "verified"


def test_nobody_is_endorsed_by_a_stranger_or_by_themselves(ledger: Ledger, ada: Person) -> None:
    eve, mallory = somebody("eve"), somebody("mallory")
    false_ada = replace(mallory, identity="person:ada")
    for endorser in (mallory, eve, false_ada):
        with pytest.raises(Refused) as refusal:
            enrol_approver(ledger, eve, endorser)
        assert code_of(refusal) == "NOT_ENDORSED"


def test_twice_is_refused(ledger: Ledger, ada: Person) -> None:
    with pytest.raises(Refused) as refusal:
        enrol_approver(ledger, ada, ada)
    assert code_of(refusal) == "ENROLLED"


@pytest.mark.parametrize("case", ["alone", "endorsed by a stranger", "not by itself", "of another ledger", "as ada"])
def test_a_forged_enrolment_changes_nothing(case: str, ledger: Ledger, ada: Person) -> None:
    eve, mallory = somebody("eve"), somebody("mallory")
    statement = {
        "alone": lambda: enrolment_of(ledger, eve, eve),
        "endorsed by a stranger": lambda: enrolment_of(ledger, eve, eve, mallory),
        "not by itself": lambda: enrolment_of(ledger, eve, ada),
        "of another ledger": lambda: enrolment_of(ledger, eve, eve, ada, ledger="another"),
        "as ada": lambda: enrolment_of(ledger, replace(eve, identity="person:ada"), eve),
    }[case]()
    forged(ledger, "key.create", statement)
    roster = roster_of(ledger)
    assert {name: one.key for name, one in roster.approvers.items()} == {"person:ada": ada.public}
    assert len(roster.ignored) == 1


@pytest.mark.parametrize("kind", ["key.create", "key.rotate", "key.retire", "record"])
def test_a_record_without_a_statement_changes_nothing(kind: str, ledger: Ledger, ada: Person) -> None:
    ledger.append(CHAIN, of_kind(Capsule(type="auth"), kind))
    roster = roster_of(ledger)
    assert list(roster.approvers) == ["person:ada"]
    assert len(roster.ignored) == 1


def test_a_statement_of_another_purpose_is_no_enrolment(ledger: Ledger, ada: Person) -> None:
    eve = somebody("eve")
    content = enrolment_of(ledger, eve, eve, ada).content
    forged(ledger, "key.create", sign_statement("approval", content, [eve.signer, ada.signer]))
    assert list(roster_of(ledger).approvers) == ["person:ada"]


def test_a_key_is_one_persons(ledger: Ledger, ada: Person) -> None:
    forged(ledger, "key.create", enrolment_of(ledger, replace(ada, identity="person:ada2"), ada, ada))
    assert list(roster_of(ledger).approvers) == ["person:ada"]


def test_withdrawing(ledger: Ledger) -> None:
    ada, ben = somebody("ada"), somebody("ben")
    enrolled(ledger, ada, ben)
    withdraw_approver(ledger, "person:ben", ada)
    roster = roster_of(ledger)
    assert list(roster.approvers) == ["person:ada"]
    assert list(roster.ended) == [ben.public.fingerprint]
    with pytest.raises(Refused) as refusal:
        withdraw_approver(ledger, "person:ada", ada)
    assert code_of(refusal) == "LAST_APPROVER"
    with pytest.raises(Refused) as refusal:
        enrol_approver(ledger, somebody("eve"), ben)
    assert code_of(refusal) == "NOT_ENDORSED"


def test_nobody_but_an_approver_withdraws_anybody(ledger: Ledger) -> None:
    """Otherwise the agent would empty the roster, and be the first one on the next."""
    ada, ben, mallory = somebody("ada"), somebody("ben"), somebody("mallory")
    enrolled(ledger, ada, ben)
    content = withdrawal_content("person:ben", ben.public.fingerprint, ledger=ledger.id, tenant="default", at=T)
    forged(ledger, "key.retire", sign_statement(WITHDRAWAL, content, [mallory.signer]))
    forged(ledger, "key.retire", sign_statement(WITHDRAWAL, content, []))
    assert list(roster_of(ledger).approvers) == ["person:ada", "person:ben"]


def test_a_forged_withdrawal_of_the_last_changes_nothing(ledger: Ledger, ada: Person) -> None:
    content = withdrawal_content("person:ada", ada.public.fingerprint, ledger=ledger.id, tenant="default", at=T)
    forged(ledger, "key.retire", sign_statement(WITHDRAWAL, content, [ada.signer]))
    assert list(roster_of(ledger).approvers) == ["person:ada"]


def test_after_all_have_gone_nobody_is_the_first_again(ledger: Ledger) -> None:
    ada, ben = somebody("ada"), somebody("ben")
    enrolled(ledger, ada, ben)
    withdraw_approver(ledger, "person:ada", ada)
    forged(ledger, "key.create", enrolment_of(ledger, somebody("eve"), somebody("eve")))
    assert list(roster_of(ledger).approvers) == ["person:ben"]


@pytest.mark.more
def test_a_rotation_is_followed_by_its_own_proof(ledger: Ledger) -> None:
    ledger.keys.create("person:ada", passphrase=PASSPHRASE)
    old = ledger.keys.unlock("person:ada", PASSPHRASE)
    enrol_approver(ledger, Person("person:ada", old.public, "passphrase", old))
    new = ledger.keys.rotate("person:ada", passphrase=PASSPHRASE).new
    assert record_rotations(ledger) == 1
    assert record_rotations(ledger) == 0
    roster = roster_of(ledger)
    assert roster.approvers["person:ada"] == Approver("person:ada", new.key, "passphrase")
    assert list(roster.ended) == [old.fingerprint]
    assert ledger.verify().status == "verified"


def test_a_rotation_that_the_old_key_did_not_sign_changes_nothing(ledger: Ledger, ada: Person) -> None:
    eve = somebody("eve")

    def side(person: Person, epoch: int) -> dict[str, object]:
        public = {"public_key": person.public.ed25519, "public_key_pq": ""}
        return {"epoch": epoch, "purpose": "approve", "fingerprint": person.public.fingerprint, **public}

    content = {"identity": "person:ada", "at": T, "old": side(ada, 0), "new": side(eve, 1)}
    forged(ledger, "key.rotate", sign_statement("rotation", content, [eve.signer]))
    forged(ledger, "key.rotate", sign_statement("rotation", content, [eve.signer, eve.signer]))
    assert roster_of(ledger).approvers["person:ada"].key == ada.public


def test_a_roster_that_is_not_intact_lets_nobody_approve(ledger: Ledger, aver_home: Path, ada: Person) -> None:
    import sqlite3

    ledger.close()
    with sqlite3.connect(aver_home / "ledger.db") as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE records SET canonical = replace(canonical, 'person:ada', 'person:eve')")
    connection.close()
    with open_ledger() as again, pytest.raises(IntegrityError) as refusal:
        roster_of(again)
    assert code_of(refusal) == "HASH_MISMATCH"


def test_each_tenant_has_a_roster_of_its_own(ledger: Ledger, ada: Person) -> None:
    with open_ledger(tenant="blue") as blue:
        assert roster_of(blue).is_new
        statement = enrolment_of(ledger, ada, ada)
        draft = Capsule(type="auth", authority=Authority(chain=[statement.to_dict()]))
        blue.append("approvers.blue", of_kind(draft, "key.create"))
        assert roster_of(blue).approvers == {}


T = "2026-01-01T00:00:00+00:00"
