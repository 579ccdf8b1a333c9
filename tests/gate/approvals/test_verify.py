"""Proving approvals afterwards: an honest history has no findings, and each wrong record has the right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Blob, Capsule, Ledger, Ring, Sealed
from aver import clock as time
from aver.capsule.aver_block import BLOCK_KEY, of_kind
from aver.capsule.model import Authority
from aver.capsule.model import Outcome as Result
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    approve,
    check_approvals,
    consume,
    deny,
    enrol_approver,
    escalate,
    expire,
    open_request,
    withdraw_approver,
)
from aver.gate.approvals.request import add_seconds, build_request_content, read_request
from aver.gate.approvals.roster import Approver
from aver.gate.approvals.rules import ApprovalLevel
from aver.gate.approvals.vote import APPROVAL_PURPOSE, vote_content
from aver.keys import RingEntry, Statement, load_seed_signer, sign_statement
from aver.keys.ring import sign_rotation
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.ledger import open_ledger as open_plain_ledger
from aver.verdict import Tally
from support.approvals import (
    SHOWN,
    action,
    asking,
    enrolled,
    opened,
    seals_hold,
    somebody,
    with_settings,
    write_enrolment,
)
from support.forged_records import cut, forge

Found = list[tuple[str, str, int | None]]


def ring_of(*people: Person, **retired: str) -> Ring:
    """The ring of an auditor who knows these people, some of whose keys have ended."""
    entries = (
        RingEntry(
            one.identity,
            "approve",
            0,
            one.public,
            "2026-01-01T00:00:00+00:00",
            retired.get(one.identity.removeprefix("person:")),
        )
        for one in people
    )
    return Ring(tuple(entries))


def checked(ledger: Ledger, ring: Ring) -> Tally:
    enrolments = ledger.read("approvers.default")
    return check_approvals(
        ledger.read("approvals.default"), ring, ledger=ledger.id, tenant="default", enrolments=enrolments
    )


def found(tally: Tally) -> Found:
    return [(one.status, one.code, one.place.sequence) for one in tally.findings]


def statement_of(request: ApprovalRequest, person: Person, word: str = "approve", **changed: Any) -> Statement:
    content = vote_content(request, word, person.identity, Blob(SHOWN.encode()).digest)
    return sign_statement(APPROVAL_PURPOSE, {**content, **changed}, [person.signer])


def write(ledger: Ledger, about: ApprovalRequest, word: str, statement: Statement | None, **changed: Any) -> Sealed:
    """A decision as the ledger's key can seal it, whether or not it is one."""
    blob = Blob(SHOWN.encode(), "text/plain")
    result = {
        "v": 1,
        "request": about.id,
        "digest": about.digest,
        "decision": word,
        "approver": statement.content["approver"] if statement else None,
        "custody": "passphrase" if statement else None,
        "level": 1,
        "comment": "",
        "shown": blob.reference if statement else None,
        **changed,
    }
    chain = [statement.to_dict()] if statement else []
    authority = Authority(approver=result["approver"], chain=chain)
    draft = Capsule(type="auth", authority=authority, outcome=Result(status="success", result=result))
    return ledger.append(about.chain, of_kind(draft, "approval.decision"), blobs=[blob])


# --- what is right


def test_an_honest_history_has_nothing_to_find(aver_home: Path, clock: Any) -> None:
    settings = """[approvals]
approvers = ["person:ada", "person:ben"]
quorum = 2
[[approvals.levels]]
approvers = ["person:eve"]
after = 600
"""
    with with_settings(aver_home, settings) as ledger:
        ada, ben, eve = people = [somebody(name) for name in ("ada", "ben", "eve")]
        enrolled(ledger, *people)
        for number, words in enumerate((("approve", "approve", "used"), ("approve", "deny"), ("escalate", "eve"), ())):
            request = opened(ledger, gate_id=f"g{number}")
            for word, person in zip(words, (ada, ben, ada), strict=False):
                if word == "used":
                    consume(ledger, request, request.digest)
                elif word == "eve":
                    approve(ledger, request, eve, shown=SHOWN)
                    consume(ledger, request, request.digest)
                else:
                    {"approve": approve, "deny": deny, "escalate": escalate}[word](ledger, request, person, shown=SHOWN)
            if not words:
                clock.forward(3601)
                expire(ledger, request)
        withdraw_approver(ledger, "person:ben", ada)
        late = opened(ledger, gate_id="late")
        clock.forward(601)
        approve(ledger, late, eve, shown=SHOWN)
        consume(ledger, late, late.digest)
        tally = checked(ledger, ring_of(*people))
        assert found(tally) == []
        assert tally.done == {"approvals": 4 + 5 + 3 + 2 + 3 + 1 + 2}
        assert seals_hold(ledger)


def test_what_lies_in_blobs_is_held_to_its_digest_too(ledger: Ledger, ada: Person) -> None:
    about = action(diff="+x\n" * 20_000, arguments={"content": "y" * 100_000})
    open_request(ledger, about, asking(about))
    assert found(checked(ledger, ring_of(ada))) == []


# --- keys that are not known, or no longer good


@pytest.fixture
def used(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> ApprovalRequest:
    approve(ledger, request_, ada, shown=SHOWN)
    consume(ledger, request_, request_.digest)
    return request_


def test_a_key_that_is_not_known_is_not_checked(ledger: Ledger, used: ApprovalRequest) -> None:
    assert found(checked(ledger, Ring())) == [("not_checked", "UNKNOWN_SIGNER", 1)]


def test_where_keys_were_given_every_other_is_unknown(ledger: Ledger, ada: Person, used: ApprovalRequest) -> None:
    assert found(checked(ledger, Ring.pin([somebody("x").public]))) == [("not_checked", "UNKNOWN_SIGNER", 1)]
    assert found(checked(ledger, Ring.pin([ada.public]))) == []


def test_a_key_of_somebody_else(ledger: Ledger, ada: Person, used: ApprovalRequest) -> None:
    other = replace(ada, identity="person:mallory")
    # At the enrolment, which is record 0 of the roster, and at the vote.
    expected = [("failed", "ROLE_POLICY_VIOLATION", 0), ("failed", "ROLE_POLICY_VIOLATION", 1)]
    assert found(checked(ledger, ring_of(other))) == expected


def test_a_key_that_had_ended(ledger: Ledger, ada: Person, used: ApprovalRequest) -> None:
    assert found(checked(ledger, ring_of(ada, ada="2026-01-02T00:00:00+00:00"))) == [("failed", "KEY_RETIRED", 1)]
    assert found(checked(ledger, ring_of(ada, ada="2999-01-01T00:00:00+00:00"))) == []


def test_a_word_after_its_key_was_withdrawn(ledger: Ledger, ada: Person, clock: Any) -> None:
    ben = somebody("ben")
    enrol_approver(ledger, ben, ada)
    request = opened(ledger)
    clock.forward(1)
    withdraw_approver(ledger, "person:ben", ada)
    clock.forward(1)
    write(ledger, request, "approve", statement_of(request, ben))
    assert found(checked(ledger, ring_of(ada, ben))) == [("failed", "KEY_RETIRED", 1)]


def test_a_key_in_a_plain_file_is_a_warning(ledger: Ledger) -> None:
    ada = somebody("ada", custody="file")
    enrolled(ledger, ada)
    request = opened(ledger)
    approve(ledger, request, ada, shown=SHOWN)
    assert found(checked(ledger, ring_of(ada))) == [("warning", "NOT_INDEPENDENT", 1)]


# --- words that do not count

Forge = Callable[[Ledger, ApprovalRequest, Person], Any]
FORGED: dict[str, tuple[Forge, Found]] = {
    "by nobody": (
        lambda ledger, request, ada: write(ledger, request, "approve", None),
        [("failed", "SCHEMA_INVALID", 1)],
    ),
    "by somebody who is not listed": (
        lambda ledger, request, ada: write(ledger, request, "approve", statement_of(request, somebody("eve"))),
        [("failed", "ROLE_POLICY_VIOLATION", 1)],
    ),
    "by another key": (
        lambda ledger, request, ada: write(
            ledger, request, "approve", statement_of(request, replace(somebody("x"), identity="person:ada"))
        ),
        [("failed", "SIG_INVALID", 1)],
    ),
    "for another action": (
        lambda ledger, request, ada: write(ledger, request, "approve", statement_of(request, ada, digest="0" * 64)),
        [("failed", "EVIDENCE_INVALID", 1)],
    ),
    "for another end": (
        lambda ledger, request, ada: write(ledger, request, "approve", statement_of(request, ada, expires="2999")),
        [("failed", "EVIDENCE_INVALID", 1)],
    ),
    "of something else that was shown": (
        lambda ledger, request, ada: write(ledger, request, "approve", statement_of(request, ada, shown="0" * 64)),
        [("failed", "EVIDENCE_INVALID", 1)],
    ),
    "a denial told as an approval": (
        lambda ledger, request, ada: write(ledger, request, "approve", statement_of(request, ada, "deny")),
        [("failed", "EVIDENCE_INVALID", 1)],
    ),
    "an approval told as a denial": (
        lambda ledger, request, ada: write(ledger, request, "deny", statement_of(request, ada)),
        [("failed", "EVIDENCE_INVALID", 1)],
    ),
    "twice": (
        lambda ledger, request, ada: [
            write(ledger, request, "approve", statement_of(request, ada)),
            write(ledger, request, "approve", statement_of(request, ada)),
        ],
        [("failed", "REPLAY", 2)],
    ),
    "after a denial": (
        lambda ledger, request, ada: [
            deny(ledger, request, ada, shown=SHOWN),
            write(ledger, request, "approve", statement_of(request, ada)),
        ],
        [("failed", "STATE_VIOLATION", 2)],
    ),
    "after its end": (
        lambda ledger, request, ada: [
            expire(ledger, request),
            write(ledger, request, "approve", statement_of(request, ada)),
        ],
        [("failed", "STATE_VIOLATION", 2)],
    ),
    "passed on to nobody": (
        lambda ledger, request, ada: write(ledger, request, "escalate", statement_of(request, ada, "escalate")),
        [("failed", "STATE_VIOLATION", 1)],
    ),
    "used without an approval": (
        lambda ledger, request, ada: write(ledger, request, "used", None),
        [("failed", "EVIDENCE_INVALID", 1)],
    ),
    "used after a denial": (
        lambda ledger, request, ada: [
            write(ledger, request, "approve", statement_of(request, ada)),
            deny(ledger, request, ada, shown=SHOWN),
            write(ledger, request, "used", None),
        ],
        [("failed", "EVIDENCE_INVALID", 3)],
    ),
    "used twice": (
        lambda ledger, request, ada: [
            approve(ledger, request, ada, shown=SHOWN),
            consume(ledger, request, request.digest),
            write(ledger, request, "used", None),
        ],
        [("failed", "REPLAY", 3)],
    ),
    "about a request that is not there": (
        lambda ledger, request, ada: write(ledger, request, "used", None, request="0" * 36),
        [("failed", "STATE_VIOLATION", 1)],
    ),
    "what cannot be read": (
        lambda ledger, request, ada: write(ledger, request, "used", None, level="high"),
        [("failed", "SCHEMA_INVALID", 1)],
    ),
    "with more in it": (
        lambda ledger, request, ada: write(ledger, request, "used", None, also=1),
        [("failed", "SCHEMA_INVALID", 1)],
    ),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", FORGED)
def test_a_decision_that_is_not_right(name: str, ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    forge, expected = FORGED[name]
    forge(ledger, request_, ada)
    assert found(checked(ledger, ring_of(ada))) == expected
    assert seals_hold(ledger)  # Sealed it is, by the ledger's own key.


def test_too_late_and_too_early(ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any) -> None:
    clock.forward(3601)
    write(ledger, request_, "approve", statement_of(request_, ada))
    clock.forward(-7200)
    write(ledger, request_, "approve", statement_of(request_, ada))
    expected = [("failed", "STATE_VIOLATION", 1), ("failed", "STATE_VIOLATION", 2)]
    assert found(checked(ledger, ring_of(ada))) == expected


def test_used_after_its_end(ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    clock.forward(3601)
    write(ledger, request_, "used", None)
    assert found(checked(ledger, ring_of(ada))) == [("failed", "EVIDENCE_INVALID", 2)]


def test_a_statement_that_stands_in_two_requests(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    """The second request was made to fit it."""
    given = statement_of(request_, ada)
    write(ledger, request_, "approve", given)
    consume(ledger, request_, request_.digest)
    draft = Capsule(type="auth", outcome=Result(status="pending", result=dict(request_.content)))
    copy = replace(request_, id=ledger.append(request_.chain, of_kind(draft, "approval.request")).id)
    write(ledger, copy, "approve", given)
    write(ledger, copy, "used", None)
    expected = [("failed", "EVIDENCE_INVALID", 4), ("failed", "EVIDENCE_INVALID", 5)]
    assert found(checked(ledger, ring_of(ada))) == expected


# --- requests and enrolments that are not right


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"action": {"type": "shell_exec", "tool": "ls"}}, "EVIDENCE_INVALID"),
        ({"action": 7}, "EVIDENCE_INVALID"),
        ({"diff": "+harmless\n"}, "EVIDENCE_INVALID"),
        ({"diff": {"blob": {"alg": "sha256", "digest": "0" * 64, "size": 1, "media": "x"}}}, "EVIDENCE_INVALID"),
        ({"expires": 7}, "SCHEMA_INVALID"),
        ({"levels": None}, "SCHEMA_INVALID"),
    ],
    ids=str,
)
def test_a_request_that_is_not_right(
    change: dict[str, Any], code: str, ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    blob = Blob(b"x")
    content = {**request_.content, **change}
    if "diff" in change and isinstance(change["diff"], dict):
        content["diff"] = blob.reference
    draft = Capsule(type="auth", outcome=Result(status="pending", result=content))
    ledger.append(request_.chain, of_kind(draft, "approval.request"), blobs=[blob])
    assert found(checked(ledger, ring_of(ada))) == [("failed", code, 1)]


def test_a_request_that_counts_a_key_nobody_enrolled(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    eve = somebody("eve")
    own = {"public_key": eve.public.ed25519, "public_key_pq": "", "custody": "passphrase"}
    content = {**request_.content, "approvers": {"person:ada": own}}
    draft = Capsule(type="auth", outcome=Result(status="pending", result=content))
    record = ledger.append(request_.chain, of_kind(draft, "approval.request"))
    forged = read_request(record, ledger=ledger.id, tenant=ledger.tenant)
    write(ledger, forged, "approve", statement_of(forged, replace(eve, identity="person:ada")))
    expected = [("failed", "ROLE_POLICY_VIOLATION", 1), ("not_checked", "UNKNOWN_SIGNER", 2)]
    assert found(checked(ledger, ring_of(ada))) == expected


def test_an_enrolment_that_had_no_right(ledger: Ledger, ada: Person) -> None:
    ledger.append("approvers.default", of_kind(Capsule(type="auth"), "key.create"))
    tally = check_approvals(
        (), ring_of(ada), ledger=ledger.id, tenant="default", enrolments=ledger.read("approvers.default")
    )
    assert found(tally) == [("failed", "ROLE_POLICY_VIOLATION", 1)]


def test_other_records_of_the_chain_are_left_alone(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    ledger.append(request_.chain, Capsule(type="tool"))
    tally = checked(ledger, ring_of(ada))
    assert (found(tally), tally.done) == ([], {"approvals": 2})


def test_words_that_somebody_else_chose_are_made_harmless(
    ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    eve = replace(somebody("eve"), identity="person:\x1b[2J\u202e" + "x" * 5000)
    write(ledger, request_, "approve", statement_of(request_, eve))
    (finding,) = checked(ledger, ring_of(ada)).findings
    assert finding.words.isprintable()
    assert len(finding.words) < 500


# --- what only an auditor can be told wrong


def lay_out(ledger: Ledger, person: Person, anchor: str) -> None:
    """A request that counts on a person, and a vote of theirs, as anybody with the ledger's key can write them."""
    about = action()
    write_enrolment(ledger, person)
    approvers = {person.identity: Approver(person.identity, person.public, "passphrase")}
    content, _ = build_request_content(
        about,
        asking(about),
        expires=add_seconds(time.now(), 3600),
        levels=(ApprovalLevel((person.identity,)),),
        approvers=approvers,
        anchor=anchor,
    )
    draft = Capsule(type="auth", outcome=Result(status="pending", result=content))
    record = ledger.append("approvals.default", of_kind(draft, "approval.request"))
    request = read_request(record, ledger=ledger.id, tenant=ledger.tenant)
    write(ledger, request, "approve", statement_of(request, person))


@pytest.mark.sample(8)
@pytest.mark.parametrize("anchor", ["ledger", "system"])
@pytest.mark.parametrize("knows", ["the bare key", "the export"])
@pytest.mark.parametrize("thing", ["ledger", "bundle", "import"])
def test_the_key_of_the_ledger_is_no_persons_for_an_auditor(
    ledger: Ledger, tmp_path: Path, anchor: str, knows: str, thing: str
) -> None:
    """The agent may use the ledger's key. An auditor who knows this key must not take it for that of a person."""
    ledger.append("notes.a", Capsule(type="tool"))
    signer = load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key")
    lay_out(ledger, Person("person:ceo", signer.public, "passphrase", signer), anchor)
    entry = ledger.keys.ring().active("ledger")
    assert entry is not None
    key = entry if knows == "the export" else entry.key
    place: Any = ledger.store.path
    if thing != "ledger":
        place = tmp_path / "bundle"
        export_bundle(ledger, place)
    if thing == "import":
        # What is imported must verify, so it is stored without the examiners that would refuse it.
        with open_plain_ledger(home=tmp_path / "other") as other:
            other.keys.trust(key)
            import_bundle(other, place)
            place = other.store.path
        verdict = aver.verify(place, home=tmp_path / "other")
    else:
        verdict = aver.verify(place, keys=[key], home=tmp_path / "auditor")
    assert verdict.status == "failed"
    assert "ROLE_POLICY_VIOLATION" in {one.code for one in verdict.findings if one.check == "approvals"}


def test_a_key_that_seals_the_vote_is_no_persons(ledger: Ledger) -> None:
    """Without a keys chain, as in a `.cap` file, nothing says what a bare key is for."""
    ledger.append("notes.a", Capsule(type="tool"))
    signer = load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key")
    lay_out(ledger, Person("person:ceo", signer.public, "passphrase", signer), "system")
    expected = [("failed", "ROLE_POLICY_VIOLATION", 0), ("failed", "ROLE_POLICY_VIOLATION", 1)]
    assert found(checked(ledger, Ring.pin([signer.public]))) == expected


ACCOUNTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "action": lambda content: content["outcome"]["result"].update(digest="0" * 64),
    "approver": lambda content: content["authority"].update(approver="person:ceo"),
    "more statements": lambda content: content["authority"]["chain"].insert(0, {"purpose": "approval"}),
    "changed statement": lambda content: content["authority"]["chain"][0]["content"].update(approver="person:ceo"),
    "no statement": lambda content: content["authority"]["chain"].clear(),
}


@pytest.mark.parametrize("word", ["approve", "used"])
@pytest.mark.parametrize("name", ACCOUNTS)
def test_a_record_that_names_others_than_those_who_signed(
    name: str, word: str, ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    """The ledger's key seals an answer or a use that tells a reader of other people, or of another action."""
    approve(ledger, request_, ada, shown=SHOWN)
    consume(ledger, request_, request_.digest)
    number = 1 if word == "approve" else 2
    record = next(ledger.read("approvals.default", number, number + 1))
    assert found(checked(ledger, ring_of(ada))) == []
    cut(ledger, "approvals.default", record.sequence)
    content = record.to_dict()
    ACCOUNTS[name](content)
    signer = load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key")
    content.update(sequence=0, previous_hash=None)
    content["context"]["environment"][BLOCK_KEY] = {"kind": record.kind}
    forge(ledger, "approvals.default", signer, at=record.signed_at, draft=Capsule.from_dict(content))
    tally = checked(ledger, ring_of(ada))
    assert [one.place.sequence for one in tally.findings if one.status == "failed"] == [number]


def test_a_vote_of_an_ended_key_after_a_record_of_later_is_found(ledger: Ledger, ada: Person) -> None:
    """Whoever holds the ledger's key and a withdrawn key dates the vote back. The records before it tell."""
    ben = somebody("ben")
    enrol_approver(ledger, ben, ada)
    early = opened(ledger, "ls", "gate-early")
    statement = statement_of(early, ben)
    before = time.now()
    withdraw_approver(ledger, "person:ben", ada)
    opened(ledger, "ls -l", "gate-late")
    signer = load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key")
    written = write(ledger, early, "approve", statement).to_dict()
    cut(ledger, "approvals.default", 2)
    written.update(sequence=0, previous_hash=None)
    written["context"]["environment"][BLOCK_KEY] = {"kind": "approval.decision"}
    forge(ledger, "approvals.default", signer, at=before, draft=Capsule.from_dict(written))
    assert found(checked(ledger, ring_of(ada, ben))) == [("failed", "KEY_RETIRED", 2)]


@pytest.mark.parametrize("by", ["export", "rotation statement"])
def test_a_persons_key_stays_retired_for_an_auditor(ledger: Ledger, ada: Person, by: str) -> None:
    """The auditor has the export of a person's key, or of its successor. The roster does not show the end."""
    request = opened(ledger)
    now = time.now()
    approve(ledger, request, ada, shown=SHOWN)
    entry = RingEntry(ada.identity, "approve", 0, ada.public, "2026-01-01T00:00:00+00:00", now)
    keys: list[Any] = [entry]
    if by == "rotation statement":
        newer = somebody("ada")
        new = RingEntry(ada.identity, "approve", 1, newer.public, now)
        new = replace(new, statement=sign_rotation(entry, new, ada.signer, newer.signer))
        keys = [ada.public, new]
    assert found(checked(ledger, Ring.pin(keys))) == [("failed", "KEY_RETIRED", 1)]


def test_a_request_does_not_hide_that_a_key_is_in_a_plain_file(ledger: Ledger) -> None:
    """The agent can sign with such a key. It writes a request and a vote that say that the key has a passphrase."""
    ada = somebody("ada", "file")
    enrol_approver(ledger, ada)
    request = opened(ledger)
    pinned = {"person:ada": Approver("person:ada", ada.public, "passphrase").to_dict()}
    draft = Capsule(type="auth", outcome=Result(status="pending", result={**request.content, "approvers": pinned}))
    record = ledger.append(request.chain, of_kind(draft, "approval.request"))
    forged = read_request(record, ledger=ledger.id, tenant=ledger.tenant)
    write(ledger, forged, "approve", statement_of(forged, ada))
    assert found(checked(ledger, ring_of(ada))) == [("warning", "NOT_INDEPENDENT", 2)]
