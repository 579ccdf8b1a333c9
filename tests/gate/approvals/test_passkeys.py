"""Approvals by passkey: enrolled, endorsed, answered, verified; and each attack on them is refused and found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

import aver
from aver import Ledger, Refused, Ring
from aver import clock as time
from aver.errors import BadInput
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    approve,
    check_approvals,
    consume,
    deny,
    endorse_passkey,
    enrol_approver,
    enrol_passkey,
    expire,
    load_request_state,
    load_roster,
    read_enrolment_code,
    record_signed_vote,
    withdraw_approver,
)
from aver.gate.approvals.enrolment import append_change, approvers_chain
from aver.gate.approvals.request import add_seconds
from aver.gate.approvals.roster import WITHDRAWAL, withdrawal_content
from aver.gate.approvals.rules import approvals_to_toml, read_approval_rules, read_system_file
from aver.gate.approvals.vote import APPROVAL_PURPOSE
from aver.keys import Statement, encode_statement, load_seed_signer, sign_statement
from aver.keys.passkey import P256_ORDER, decode_base64url, encode_base64url
from aver.ledger.bundle import export_bundle, import_bundle
from aver.verdict import Finding
from support.approvals import SHOWN, code_of, opened, seals_hold, somebody
from support.passkeys import UP, UV, SoftPasskey, with_signature, write_vote

Found = list[tuple[str, str, int | None]]


def found(ledger: Ledger, ring: Ring) -> Found:
    return [(one.status, one.code, one.place.sequence) for one in examined(ledger, ring)]


def examined(ledger: Ledger, ring: Ring) -> list[Finding]:
    has_requests = ledger.head("approvals.default").count
    tally = check_approvals(
        ledger.read("approvals.default") if has_requests else (),
        ring,
        ledger=ledger.id,
        tenant="default",
        enrolments=ledger.read("approvers.default"),
    )
    return tally.findings


@pytest.fixture
def phone(ledger: Ledger, ada: Person) -> SoftPasskey:
    """A passkey that ada has endorsed at a terminal."""
    device = SoftPasskey("ada-phone")
    endorse_passkey(ledger, device.enrolment(ledger), ada)
    return device


@pytest.fixture
def asked(ledger: Ledger, phone: SoftPasskey) -> ApprovalRequest:
    """A request that pins the passkey."""
    return opened(ledger)


# --- what is right


@pytest.mark.parametrize("alg", ["ES256", "EdDSA"])
def test_endorsed_passkey_approves(ledger: Ledger, ada: Person, alg: str) -> None:
    device = SoftPasskey("ada-phone", alg)
    statement = read_enrolment_code(encode_statement(device.enrolment(ledger)))
    endorse_passkey(ledger, statement, ada)
    approver = load_roster(ledger).approvers["person:ada-phone"]
    assert (approver.custody, approver.is_independent) == ("passkey", True)
    request = opened(ledger)
    assert request.approvers["person:ada-phone"].to_dict() == {
        "passkey": device.passkey.to_dict(),
        "custody": "passkey",
    }
    state = record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN, comment="as agreed")
    assert (state.state, state.approvers, state.escalation) == ("approved", ("person:ada-phone",), None)
    consume(ledger, request, request.digest)
    record = next(ledger.read(request.chain, 1, 2)).to_dict()
    assert record["authority"]["type"] == "human_approved"
    assert record["outcome"]["result"]["custody"] == "passkey"
    # The passkey is known by the key that endorsed it.
    assert found(ledger, Ring.pin([ada.public])) == []
    assert found(ledger, Ring()) == [("not_checked", "UNKNOWN_SIGNER", 1)]
    assert found(ledger, Ring.pin([somebody("x").public])) == [("not_checked", "UNKNOWN_SIGNER", 1)]


def test_unknown_passkey_names_the_key_of_its_endorser(ledger: Ledger, ada: Person, phone: SoftPasskey) -> None:
    """Nobody can pin a passkey. A passkey that another one endorsed is known by the key at the end of the line."""
    laptop = SoftPasskey("ada-laptop")
    enrol_passkey(ledger, laptop.enrolment(ledger, phone))
    for device in (phone, laptop):
        request = opened(ledger, gate_id=device.approver.identity)
        record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN)
    helps = f"is not known here: give the key {ada.public.fingerprint} of person:ada, who endorsed it"
    for ring in (Ring(), Ring.pin([somebody("x").public])):
        words = [finding.words for finding in examined(ledger, ring) if "passkey" in finding.words]
        assert words[:2] == [
            f"the passkey {one.fingerprint} of {one.approver.identity} {helps}" for one in (phone, laptop)
        ]


def test_passkey_denies_and_passes_on(ledger: Ledger, phone: SoftPasskey, asked: ApprovalRequest) -> None:
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, asked.id, phone.vote(asked, "escalate"), shown=SHOWN)
    assert code_of(refusal) == "NO_LEVEL"
    state = record_signed_vote(ledger, asked.id, phone.vote(asked, "deny"), shown=SHOWN)
    assert state.state == "denied"


@pytest.mark.parametrize("thing", ["ledger", "bundle", "import"])
def test_verdict_is_the_same_on_everything(
    ledger: Ledger, ada: Person, phone: SoftPasskey, asked: ApprovalRequest, tmp_path: Path, thing: str
) -> None:
    record_signed_vote(ledger, asked.id, phone.vote(asked), shown=SHOWN)
    consume(ledger, asked, asked.digest)
    active = ledger.keys.ring().active("ledger")
    assert active is not None
    place: Any = ledger.store.path
    if thing != "ledger":
        export_bundle(ledger, tmp_path / "bundle")
        place = tmp_path / "bundle"
    if thing == "import":
        with aver.open_ledger(home=tmp_path / "other") as other:
            for key in (active, ada.public):
                other.keys.trust(key)
            import_bundle(other, place)
            place = other.store.path
        verdict = aver.verify(place, home=tmp_path / "other")
    else:
        verdict = aver.verify(place, keys=[active, ada.public], home=tmp_path / "auditor")
    assert verdict.check("approvals").status == "passed", verdict.to_dict()


# --- independence


def test_passkey_that_another_passkey_endorsed_is_escalated(ledger: Ledger, ada: Person, phone: SoftPasskey) -> None:
    laptop = SoftPasskey("ada-laptop")
    enrol_passkey(ledger, laptop.enrolment(ledger, phone))
    assert not load_roster(ledger).approvers["person:ada-laptop"].is_independent
    request = opened(ledger)
    state = record_signed_vote(ledger, request.id, laptop.vote(request), shown=SHOWN)
    assert state.state == "approved"
    assert "not independent" in str(state.escalation)
    record = next(ledger.read(request.chain, 1, 2)).to_dict()
    assert record["authority"]["type"] == "escalated"
    assert "not independent" in record["authority"]["escalation_reason"]
    assert found(ledger, Ring.pin([ada.public])) == [("warning", "NOT_INDEPENDENT", 1)]


def test_passkey_that_a_key_in_a_plain_file_endorsed_is_escalated(ledger: Ledger) -> None:
    """Every program of the user can sign with such a key, and make a passkey of its own."""
    mallory = somebody("mallory", custody="file")
    enrol_approver(ledger, mallory)
    device = SoftPasskey("robot")
    endorse_passkey(ledger, device.enrolment(ledger), mallory)
    request = opened(ledger)
    state = record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN)
    assert "not independent" in str(state.escalation)
    assert found(ledger, Ring.pin([mallory.public])) == [("warning", "NOT_INDEPENDENT", 1)]


def test_one_good_endorser_is_enough(ledger: Ledger, ada: Person, phone: SoftPasskey) -> None:
    laptop = SoftPasskey("ada-laptop")
    enrol_passkey(ledger, laptop.enrolment(ledger, phone, ada))
    assert load_roster(ledger).approvers["person:ada-laptop"].is_independent


# --- enrolments that are refused, and do not count where somebody writes them all the same


def first_ever(ledger: Ledger) -> None:
    enrol_passkey(ledger, SoftPasskey("eve").enrolment(ledger))


def test_first_approver_is_never_a_passkey(ledger: Ledger) -> None:
    with pytest.raises(Refused) as refusal:
        first_ever(ledger)
    assert code_of(refusal) == "NO_APPROVERS"
    head = ledger.head(approvers_chain("default"))
    append_change(ledger, "key.create", SoftPasskey("eve").enrolment(ledger), "mine", head)
    assert load_roster(ledger).approvers == {}
    assert found(ledger, Ring()) == [("failed", "ROLE_POLICY_VIOLATION", 0)]


def no_endorser(ledger: Ledger, ada: Person, eve: SoftPasskey) -> Statement:
    return eve.enrolment(ledger)


def changed_after_endorsement(ledger: Ledger, ada: Person, eve: SoftPasskey) -> Statement:
    """Ada endorsed another passkey. Eve puts her own key under the signature."""
    honest = SoftPasskey("ada-phone").enrolment(ledger, ada)
    own = eve.enrolment(ledger)
    return replace(own, signatures=(*own.signatures, honest.signatures[1]))


ENROLMENTS: dict[str, tuple[Callable[[Ledger, Person, SoftPasskey], Statement], str]] = {
    "by nobody": (no_endorser, "NOT_ENDORSED"),
    "by itself": (lambda ledger, ada, eve: eve.enrolment(ledger, eve), "NOT_ENDORSED"),
    "by a stranger": (lambda ledger, ada, eve: eve.enrolment(ledger, somebody("ada")), "NOT_ENDORSED"),
    "by a passkey that is not enrolled": (
        lambda ledger, ada, eve: eve.enrolment(ledger, SoftPasskey("other")),
        "NOT_ENDORSED",
    ),
    "with an endorsement of another": (changed_after_endorsement, "NOT_ENDORSED"),
    "not signed by the passkey": (
        lambda ledger, ada, eve: sign_statement("enrolment", eve.enrolment(ledger).content, [ada.signer]),
        "SIG_INVALID",
    ),
    "signed by another passkey": (
        lambda ledger, ada, eve: sign_statement(
            "enrolment", eve.enrolment(ledger).content, [SoftPasskey("other"), ada.signer]
        ),
        "SIG_INVALID",
    ),
    "for another ledger": (
        lambda ledger, ada, eve: eve.enrolment(ledger, ada, ledger="0" * 32),
        "STATEMENT_MISMATCH",
    ),
    "for another tenant": (lambda ledger, ada, eve: eve.enrolment(ledger, ada, tenant="acme"), "STATEMENT_MISMATCH"),
    "with more in it": (lambda ledger, ada, eve: eve.enrolment(ledger, ada, also=1), "STATEMENT_MISMATCH"),
    "with a second key": (
        lambda ledger, ada, eve: eve.enrolment(ledger, ada, public_key=ada.public.ed25519, public_key_pq=""),
        "STATEMENT_MISMATCH",
    ),
}


@pytest.mark.parametrize("name", ENROLMENTS)
def test_enrolment_that_does_not_count(name: str, ledger: Ledger, ada: Person) -> None:
    build, code = ENROLMENTS[name]
    statement = build(ledger, ada, SoftPasskey("eve"))
    with pytest.raises(Refused) as refusal:
        enrol_passkey(ledger, statement)
    assert code_of(refusal) == code
    append_change(ledger, "key.create", statement, "mine", ledger.head(approvers_chain("default")))
    assert load_roster(ledger).approvers.keys() == {"person:ada"}
    assert found(ledger, Ring.pin([ada.public])) == [("failed", "ROLE_POLICY_VIOLATION", 1)]
    assert seals_hold(ledger)


def test_enrolment_is_endorsed_while_it_is_fresh(ledger: Ledger, ada: Person, clock: Any) -> None:
    statement = SoftPasskey("ada-phone").enrolment(ledger, ada)
    clock.forward(3601)
    with pytest.raises(Refused) as refusal:
        enrol_passkey(ledger, statement)
    assert code_of(refusal) == "EXPIRED"
    clock.forward(-3601 - 301)
    with pytest.raises(Refused) as refusal:
        endorse_passkey(ledger, statement, ada)
    assert code_of(refusal) == "EXPIRED"


def test_key_of_another_custody_is_not_enrolled_from_a_page(ledger: Ledger, ada: Person) -> None:
    ben = somebody("ben")
    content = {"identity": "person:ben", "public_key": ben.public.ed25519, "public_key_pq": "", "custody": "passphrase"}
    given = {**content, "ledger": ledger.id, "tenant": ledger.tenant, "at": time.now()}
    for custody in ("passphrase", "passkey"):
        statement = sign_statement("enrolment", {**given, "custody": custody}, [ben.signer, ada.signer])
        with pytest.raises(BadInput):
            enrol_passkey(ledger, statement)


@pytest.mark.parametrize("code", ["", "A", "e30", "bm90aGluZw", "x" * 20_000, "ey J9"])
def test_code_that_holds_no_enrolment(code: str) -> None:
    with pytest.raises(BadInput, match="code"):
        read_enrolment_code(code)


def test_passkey_is_enrolled_once(ledger: Ledger, ada: Person, phone: SoftPasskey) -> None:
    again = SoftPasskey("ada-phone")
    again.identity = "person:ada-laptop"
    for device in (SoftPasskey("ada-phone"), again):
        with pytest.raises(Refused) as refusal:
            enrol_passkey(ledger, device.enrolment(ledger, ada))
        assert code_of(refusal) == "ENROLLED"
    withdraw_approver(ledger, "person:ada-phone", ada)
    with pytest.raises(Refused) as refusal:  # It may have been withdrawn because the device was stolen.
        enrol_passkey(ledger, SoftPasskey("ada-phone").enrolment(ledger, ada))
    assert code_of(refusal) == "ENROLLED"


def test_person_with_a_key_on_this_ring_gets_no_passkey_under_that_name(ledger: Ledger) -> None:
    """Otherwise whoever writes the roster could give ada's name to a passkey of their own."""
    ada = somebody("ada")
    ledger.keys.register("person:ada", ada.public)
    enrol_approver(ledger, ada)
    enrol_approver(ledger, somebody("ben"), ada)
    with pytest.raises(Refused) as refusal:
        enrol_passkey(ledger, SoftPasskey("ada").enrolment(ledger, ada))
    assert code_of(refusal) == "KEY_MISMATCH"
    assert "name of its own" in refusal.value.advice


def test_key_of_the_ledger_is_no_passkey(ledger: Ledger, ada: Person) -> None:
    """The agent may use the ledger's key. It is Ed25519, as an EdDSA passkey is."""
    from aver.keys.passkey import Passkey

    signer = load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key")
    device = SoftPasskey("robot", "EdDSA")
    device._secret = signer._secret
    device.passkey = Passkey("EdDSA", signer.public.ed25519, "localhost", "AAAA")
    with pytest.raises(Refused) as refusal:
        enrol_passkey(ledger, device.enrolment(ledger, ada))
    assert code_of(refusal) == "KEY_MISMATCH"
    statement = device.enrolment(ledger, ada)
    append_change(ledger, "key.create", statement, "mine", ledger.head(approvers_chain("default")))
    expected = [("failed", "ROLE_POLICY_VIOLATION", 1)]
    assert found(ledger, Ring.pin([signer.public, ada.public])) == expected
    assert ledger.verify().check("approvals").status == "failed"


# --- who remains


def test_last_key_at_a_terminal_stays(ledger: Ledger, ada: Person, phone: SoftPasskey) -> None:
    """Nobody could endorse independently any more, and no verifier could know a key."""
    with pytest.raises(Refused) as refusal:
        withdraw_approver(ledger, "person:ada", ada)
    assert code_of(refusal) == "LAST_APPROVER"
    content = withdrawal_content(
        "person:ada", ada.public.fingerprint, ledger=ledger.id, tenant=ledger.tenant, at=time.now()
    )
    statement = sign_statement(WITHDRAWAL, content, [phone])
    append_change(ledger, "key.retire", statement, "gone", ledger.head(approvers_chain("default")))
    assert load_roster(ledger).approvers.keys() == {"person:ada", "person:ada-phone"}
    assert found(ledger, Ring.pin([ada.public])) == [("failed", "ROLE_POLICY_VIOLATION", 2)]


def test_passkey_takes_the_place_of_no_last_key(ledger: Ledger, ada: Person) -> None:
    device = SoftPasskey("ada")
    with pytest.raises(Refused, match="beside an approver"):
        enrol_passkey(ledger, device.enrolment(ledger, ada))
    enrol_approver(ledger, somebody("ben"), ada)
    enrol_passkey(ledger, device.enrolment(ledger, ada))
    assert load_roster(ledger).approvers["person:ada"].custody == "passkey"


def test_retired_passkey_approves_nothing(
    ledger: Ledger, ada: Person, phone: SoftPasskey, asked: ApprovalRequest, clock: Any
) -> None:
    clock.forward(1)
    withdraw_approver(ledger, "person:ada-phone", ada)
    clock.forward(1)
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, asked.id, phone.vote(asked), shown=SHOWN)
    assert code_of(refusal) == "KEY_RETIRED"
    write_vote(ledger, asked, phone.vote(asked))
    assert load_request_state(ledger, asked).state == "pending"
    assert found(ledger, Ring.pin([ada.public])) == [("failed", "KEY_RETIRED", 1)]


def test_passkey_withdraws_another(ledger: Ledger, ada: Person, phone: SoftPasskey) -> None:
    """The rules take it, though no command makes it: a page could."""
    laptop = SoftPasskey("ada-laptop")
    enrol_passkey(ledger, laptop.enrolment(ledger, ada))
    content = withdrawal_content(
        laptop.identity, laptop.fingerprint, ledger=ledger.id, tenant=ledger.tenant, at=time.now()
    )
    statement = sign_statement(WITHDRAWAL, content, [phone])
    append_change(ledger, "key.retire", statement, "gone", ledger.head(approvers_chain("default")))
    assert load_roster(ledger).approvers.keys() == {"person:ada", "person:ada-phone"}
    assert found(ledger, Ring.pin([ada.public])) == []


# --- votes that are refused, and found where somebody writes them all the same


def with_high_s(statement: Statement) -> Statement:
    (signature,) = statement.signatures
    assert signature.passkey is not None
    r, s = decode_dss_signature(decode_base64url(signature.passkey.signature))
    return with_signature(statement, signature=encode_base64url(encode_dss_signature(r, P256_ORDER - s)))


def by_another(phone: SoftPasskey, request: ApprovalRequest, other: SoftPasskey, **signature: Any) -> Statement:
    """A vote in the name of the phone's person that another passkey signed."""
    content = phone.vote_content(request)
    signed = other.sign_statement(APPROVAL_PURPOSE, content)
    return Statement(APPROVAL_PURPOSE, content, (replace(signed, **signature),))


def with_padding(statement: Statement) -> Statement:
    (signature,) = statement.signatures
    assert signature.passkey is not None
    return with_signature(statement, signature=signature.passkey.signature + "A")


Attack = Callable[[SoftPasskey, ApprovalRequest], Statement]
VOTES: dict[str, tuple[Attack, str, str]] = {
    "for another digest": (
        lambda phone, request: phone.vote(request, digest="0" * 64),
        "DIGEST_MISMATCH",
        "EVIDENCE_INVALID",
    ),
    "for another request": (
        lambda phone, request: phone.vote(request, request="0" * 36),
        "STATEMENT_MISMATCH",
        "EVIDENCE_INVALID",
    ),
    "for another ledger": (
        lambda phone, request: phone.vote(request, ledger="0" * 32),
        "STATEMENT_MISMATCH",
        "EVIDENCE_INVALID",
    ),
    "for another end": (
        lambda phone, request: phone.vote(request, expires=add_seconds(request.expires, 60)),
        "STATEMENT_MISMATCH",
        "EVIDENCE_INVALID",
    ),
    "of another text": (
        lambda phone, request: phone.vote(request, text="another\n"),
        "STATEMENT_MISMATCH",
        "EVIDENCE_INVALID",
    ),
    "by a page of another origin": (
        lambda phone, request: phone.wrong_vote(request, origin="https://evil.example"),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "by a passkey of another site": (
        lambda phone, request: by_another(
            phone, request, SoftPasskey("ada-phone", rp_id="evil.example"), by=phone.fingerprint
        ),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "for another site": (
        lambda phone, request: phone.wrong_vote(request, rp_id="evil.example"),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "without a verified person": (
        lambda phone, request: phone.wrong_vote(request, flags=UP),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "without a person": (
        lambda phone, request: phone.wrong_vote(request, flags=UV),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "inside another page": (
        lambda phone, request: phone.wrong_vote(request, crossOrigin=True),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "with a repeated key": (
        lambda phone, request: phone.wrong_vote(request, text='{"type":"webauthn.get","type":"webauthn.get"}'),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "with a high S": (lambda phone, request: with_high_s(phone.vote(request)), "SIG_INVALID", "SIG_INVALID"),
    "with a signature that is not canonical": (
        lambda phone, request: with_padding(phone.vote(request)),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "with another algorithm": (
        lambda phone, request: by_another(phone, request, SoftPasskey("ada-phone", "EdDSA"), by=phone.fingerprint),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "by another passkey": (
        lambda phone, request: by_another(phone, request, SoftPasskey("eve")),
        "UNKNOWN_KEY",
        "SIG_INVALID",
    ),
    "by the key of another approver": (
        lambda phone, request: by_another(phone, request, SoftPasskey("eve"), by=phone.fingerprint),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "by an ordinary signature in its name": (
        lambda phone, request: Statement(
            APPROVAL_PURPOSE,
            phone.vote_content(request),
            (
                replace(
                    somebody("eve").signer.sign_statement(APPROVAL_PURPOSE, phone.vote_content(request)),
                    by=phone.fingerprint,
                ),
            ),
        ),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "for a text with a registration": (
        lambda phone, request: phone.wrong_vote(request, type="webauthn.create"),
        "SIG_INVALID",
        "SIG_INVALID",
    ),
    "signed twice": (
        lambda phone, request: replace(phone.vote(request), signatures=phone.vote(request).signatures * 2),
        "UNKNOWN_KEY",
        "SIG_INVALID",
    ),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", VOTES)
def test_vote_that_does_not_count(
    name: str, ledger: Ledger, ada: Person, phone: SoftPasskey, asked: ApprovalRequest
) -> None:
    attack, code, finding = VOTES[name]
    statement = attack(phone, asked)
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, asked.id, statement, shown=SHOWN)
    assert code_of(refusal) == code
    write_vote(ledger, asked, statement)
    assert load_request_state(ledger, asked).state == "pending"
    assert found(ledger, Ring.pin([ada.public])) == [("failed", finding, 1)]
    assert seals_hold(ledger)


def test_vote_of_somebody_who_is_not_asked(ledger: Ledger, phone: SoftPasskey, asked: ApprovalRequest) -> None:
    for approver in ("person:eve", None, ["person:ada-phone"]):
        with pytest.raises(Refused) as refusal:
            record_signed_vote(ledger, asked.id, phone.vote(asked, approver=approver), shown=SHOWN)
        assert code_of(refusal) == "NOT_LISTED"


def test_text_that_was_swapped(ledger: Ledger, phone: SoftPasskey, asked: ApprovalRequest) -> None:
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, asked.id, phone.vote(asked), shown="a harmless thing\n")
    assert code_of(refusal) == "STATEMENT_MISMATCH"


def test_vote_that_is_sent_twice(ledger: Ledger, ada: Person, phone: SoftPasskey, asked: ApprovalRequest) -> None:
    vote = phone.vote(asked)
    record_signed_vote(ledger, asked.id, vote, shown=SHOWN)
    for statement in (vote, phone.vote(asked)):
        with pytest.raises(Refused) as refusal:
            record_signed_vote(ledger, asked.id, statement, shown=SHOWN)
        assert code_of(refusal) == "DECIDED"
    write_vote(ledger, asked, vote)
    assert found(ledger, Ring.pin([ada.public])) == [("failed", "REPLAY", 2)]


def test_vote_that_is_replayed_in_a_request_like_it(
    ledger: Ledger, ada: Person, phone: SoftPasskey, asked: ApprovalRequest
) -> None:
    vote = phone.vote(asked)
    record_signed_vote(ledger, asked.id, vote, shown=SHOWN)
    consume(ledger, asked, asked.digest)
    with pytest.raises(Refused) as refusal:
        consume(ledger, asked, asked.digest)
    assert code_of(refusal) == "REPLAY"
    again = opened(ledger, gate_id="gate-2")
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, again.id, vote, shown=SHOWN)
    assert code_of(refusal) == "STATEMENT_MISMATCH"
    write_vote(ledger, again, vote)
    assert found(ledger, Ring.pin([ada.public])) == [("failed", "EVIDENCE_INVALID", 4)]


def test_vote_that_comes_too_late(
    ledger: Ledger, ada: Person, phone: SoftPasskey, asked: ApprovalRequest, clock: Any
) -> None:
    vote = phone.vote(asked)
    clock.forward(3601)
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, asked.id, vote, shown=SHOWN)
    assert code_of(refusal) == "EXPIRED"
    write_vote(ledger, asked, vote)
    expire(ledger, asked)
    assert found(ledger, Ring.pin([ada.public])) == [("failed", "STATE_VIOLATION", 2)]


def test_vote_after_a_denial(ledger: Ledger, ada: Person, phone: SoftPasskey, asked: ApprovalRequest) -> None:
    deny(ledger, asked, ada, shown=SHOWN)
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, asked.id, phone.vote(asked), shown=SHOWN)
    assert code_of(refusal) == "DENIED"


def test_passkey_that_was_enrolled_after_the_request(ledger: Ledger, ada: Person) -> None:
    request = opened(ledger)
    device = SoftPasskey("ada-phone")
    endorse_passkey(ledger, device.enrolment(ledger), ada)
    with pytest.raises(Refused) as refusal:
        record_signed_vote(ledger, request.id, device.vote(request), shown=SHOWN)
    assert code_of(refusal) == "NOT_LISTED"


def test_quorum_of_a_key_and_a_passkey(ledger: Ledger, aver_home: Path, ada: Person, phone: SoftPasskey) -> None:
    ledger.close()
    (aver_home / "config.toml").write_text("[approvals]\nquorum = 2\n")
    with aver.open_ledger(home=aver_home) as again:
        request = opened(again)
        approve(again, request, ada, shown=SHOWN)
        state = record_signed_vote(again, request.id, phone.vote(request), shown=SHOWN)
        assert (state.state, state.approvers) == ("approved", ("person:ada", "person:ada-phone"))
        consume(again, request, request.digest)
        assert found(again, Ring.pin([ada.public])) == []


# --- the system file


def test_system_file_can_have_a_passkey_that_is_not_independent(
    ledger: Ledger, ada: Person, phone: SoftPasskey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no enrolment that somebody endorsed. So its approvals are recorded as escalated."""
    rules = read_approval_rules({}, "here")
    path = tmp_path / "approvals.toml"
    path.write_text(approvals_to_toml(rules, load_roster(ledger)))
    monkeypatch.setattr("aver.gate.approvals.rules._check_not_writable", lambda *given: None)
    read = read_system_file(path)
    assert read is not None
    assert read[1].approvers == load_roster(ledger).approvers
    assert not read[1].approvers["person:ada-phone"].is_independent
