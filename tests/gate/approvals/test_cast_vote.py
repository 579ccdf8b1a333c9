"""Deciding: what counts, what is refused and with which code, and that everything is once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver import BadInput, Ledger, Refused
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    approve,
    consume,
    deny,
    enrol_approver,
    escalate,
    expire,
    load_request_state,
    load_request_states,
    record_vote,
    withdraw_approver,
)
from aver.gate.approvals.vote import APPROVAL_PURPOSE, vote_content
from aver.keys import sign_statement
from support.approvals import SHOWN, code_of, enrolled, opened, seals_hold, somebody, with_settings


def refused(work: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(Refused) as refusal:
        work(*arguments, **named)
    return code_of(refusal)


# --- one person


def test_an_approval_is_signed_recorded_and_used_once(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    assert load_request_state(ledger, request_).state == "pending"
    assert refused(consume, ledger, request_, request_.digest) == "NOT_APPROVED"
    after = approve(ledger, request_, ada, shown=SHOWN)
    assert (after.state, after.approvers, after.escalation) == ("approved", ("person:ada",), None)

    record = list(ledger.read(request_.chain))[-1]
    content = record.to_dict()
    assert (record.kind, content["parent_id"]) == ("approval.decision", request_.id)
    authority = content["authority"]
    assert (authority["type"], authority["approver"]) == ("human_approved", "person:ada")
    assert authority["escalation_reason"] is None
    statement = authority["chain"][0]
    assert statement["purpose"] == "approval"
    shown = content["outcome"]["result"]["shown"]["blob"]["digest"]
    assert statement["content"] == {
        "v": 3,
        "ledger": ledger.id,
        "tenant": "default",
        "request": request_.id,
        "digest": request_.digest,
        "shown_sha256": request_.shown_sha256,
        "decision": "approve",
        "approver": "person:ada",
        "expires": request_.expires,
        "shown": shown,
        "scope": "session:",
        "uses": 1,
    }
    assert ledger.blob(shown) == SHOWN.encode()

    used = consume(ledger, request_, request_.digest).to_dict()
    assert used["authority"] == authority
    assert used["outcome"]["result"] == {
        "v": 1,
        "request": request_.id,
        "digest": request_.digest,
        "number": 1,
        "uses": 1,
        "scope": "session:",
        "session": "",
        "call_id": "",
        "approvers": ["person:ada"],
        "level": 1,
    }
    assert refused(consume, ledger, request_, request_.digest) == "REPLAY"
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "REPLAY"
    assert refused(deny, ledger, request_, ada, shown=SHOWN) == "REPLAY"
    assert seals_hold(ledger)


def test_an_approval_is_for_one_digest(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    assert refused(consume, ledger, request_, opened(ledger, "rm -rf /").digest) == "DIGEST_MISMATCH"
    assert refused(consume, ledger, opened(ledger, "rm -rf /"), request_.digest) == "DIGEST_MISMATCH"


def test_denied_is_denied(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    after = deny(ledger, request_, ada, shown=SHOWN, comment="not on a Friday")
    assert (after.state, after.reason) == ("denied", "person:ada denied it: not on a Friday")
    content = list(ledger.read(request_.chain))[-1].to_dict()
    assert content["outcome"]["status"] == "blocked"
    assert content["authority"]["type"] == "escalated"
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "DENIED"
    assert refused(consume, ledger, request_, request_.digest) == "DENIED"


def test_who_approved_may_still_deny_until_it_is_used(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    assert deny(ledger, request_, ada, shown=SHOWN).state == "denied"
    assert refused(consume, ledger, request_, request_.digest) == "DENIED"


def test_approving_twice_is_refused(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "DECIDED"


def test_nobody_decides_what_was_not_shown(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    for shown in ("", " \n"):
        with pytest.raises(BadInput):
            approve(ledger, request_, ada, shown=shown)
    with pytest.raises(BadInput, match="characters"):
        deny(ledger, request_, ada, shown=SHOWN, comment="x" * 5000)


# --- those whose word does not count


def test_strangers_and_false_keys(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    mallory = somebody("mallory")
    assert refused(approve, ledger, request_, mallory, shown=SHOWN) == "NOT_LISTED"
    assert refused(deny, ledger, request_, mallory, shown=SHOWN) == "NOT_LISTED"
    false_ada = replace(mallory, identity="person:ada")
    assert refused(approve, ledger, request_, false_ada, shown=SHOWN) == "UNKNOWN_KEY"
    assert ledger.head(request_.chain).count == 1


def test_somebody_enrolled_after_the_request_does_not_decide_it(
    ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    ben = somebody("ben")
    enrol_approver(ledger, ben, ada)
    assert refused(approve, ledger, request_, ben, shown=SHOWN) == "NOT_LISTED"


def test_a_key_that_was_withdrawn_does_not_decide(ledger: Ledger) -> None:
    ada, ben = somebody("ada"), somebody("ben")
    enrolled(ledger, ada, ben)
    request = opened(ledger)
    withdraw_approver(ledger, "person:ben", ada)
    assert refused(approve, ledger, request, ben, shown=SHOWN) == "KEY_RETIRED"


def test_an_approval_by_a_key_that_is_withdrawn_before_it_is_used_is_void(ledger: Ledger) -> None:
    ada, ben = somebody("ada"), somebody("ben")
    enrolled(ledger, ada, ben)
    request = opened(ledger)
    approve(ledger, request, ben, shown=SHOWN)
    withdraw_approver(ledger, "person:ben", ada)
    assert refused(consume, ledger, request, request.digest) == "NOT_APPROVED"


def signed(request: ApprovalRequest, person: Person, purpose: str = APPROVAL_PURPOSE, **changed: Any) -> Any:
    import hashlib

    shown = hashlib.sha256(SHOWN.encode()).hexdigest()
    content = {**vote_content(request, "approve", person.identity, shown), **changed}
    return sign_statement(purpose, content, [person.signer])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"digest": "0" * 64}, "DIGEST_MISMATCH"),
        ({"expires": "2999-01-01T00:00:00+00:00"}, "STATEMENT_MISMATCH"),
        ({"shown": "0" * 64}, "STATEMENT_MISMATCH"),
        ({"more": 1}, "STATEMENT_MISMATCH"),
        ({"approver": "person:ben"}, "NOT_LISTED"),
        ({"purpose": "rotation"}, "STATEMENT_MISMATCH"),
    ],
    ids=str,
)
def test_a_statement_about_something_else(
    changed: dict[str, Any], code: str, ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    statement = signed(request_, ada, **changed)
    assert refused(record_vote, ledger, request_, statement, shown=SHOWN, custody="passphrase") == code


def test_a_statement_with_no_or_another_signature(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    statement = signed(request_, ada)
    [signature] = statement.signatures
    flipped = replace(signature, ed25519=f"{int(signature.ed25519[:2], 16) ^ 1:02x}{signature.ed25519[2:]}")
    for signatures, code in (
        ((), "UNKNOWN_KEY"),
        ((flipped,), "SIG_INVALID"),
        (statement.signatures * 2, "UNKNOWN_KEY"),
    ):
        bad = replace(statement, signatures=signatures)
        assert refused(record_vote, ledger, request_, bad, shown=SHOWN, custody="passphrase") == code


def test_a_statement_that_was_signed_elsewhere_counts(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    """As from a browser: only the statement arrives."""
    after = record_vote(ledger, request_, signed(request_, ada), shown=SHOWN, custody="passphrase")
    assert after.state == "approved"


@pytest.mark.parametrize("word", ["used", "expired", "yes", None, 7])
def test_a_person_says_only_what_a_person_can_say(
    word: Any, ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    with pytest.raises(BadInput):
        record_vote(ledger, request_, signed(request_, ada, decision=word), shown=SHOWN, custody="passphrase")


def test_an_approval_of_the_same_action_in_an_earlier_request_does_not_fit(ledger: Ledger, ada: Person) -> None:
    first, second = opened(ledger, gate_id="g1"), opened(ledger, gate_id="g2")
    assert first.digest == second.digest
    statement = signed(first, ada)
    record_vote(ledger, first, statement, shown=SHOWN, custody="passphrase")
    with pytest.raises(Refused) as refusal:
        record_vote(ledger, second, statement, shown=SHOWN, custody="passphrase")
    assert code_of(refusal) == "STATEMENT_MISMATCH"


# --- several people


@pytest.fixture
def two_of_three(aver_home: Path) -> Iterator[tuple[Ledger, list[Person], ApprovalRequest]]:
    with with_settings(aver_home, "[approvals]\nquorum = 2\n") as ledger:
        people = [somebody(name) for name in ("ada", "ben", "cy")]
        enrolled(ledger, *people)
        yield ledger, people, opened(ledger)


def test_a_quorum_needs_different_people(two_of_three: tuple[Ledger, list[Person], ApprovalRequest]) -> None:
    ledger, (ada, ben, cy), request = two_of_three
    after = approve(ledger, request, ada, shown=SHOWN)
    assert (after.state, after.reason) == ("pending", "1 of 2 have approved on level 1")
    assert refused(approve, ledger, request, ada, shown=SHOWN) == "ALREADY_DECIDED"
    assert refused(consume, ledger, request, request.digest) == "NOT_APPROVED"
    after = approve(ledger, request, ben, shown=SHOWN)
    assert (after.state, after.approvers) == ("approved", ("person:ada", "person:ben"))
    assert refused(approve, ledger, request, cy, shown=SHOWN) == "DECIDED"
    used = consume(ledger, request, request.digest).to_dict()
    assert used["authority"]["approver"] == "person:ada, person:ben"
    assert [one["content"]["approver"] for one in used["authority"]["chain"]] == ["person:ada", "person:ben"]


def test_one_denial_beats_a_quorum(two_of_three: tuple[Ledger, list[Person], ApprovalRequest]) -> None:
    ledger, (ada, ben, cy), request = two_of_three
    approve(ledger, request, ada, shown=SHOWN)
    approve(ledger, request, ben, shown=SHOWN)
    assert deny(ledger, request, cy, shown=SHOWN).state == "denied"
    assert refused(consume, ledger, request, request.digest) == "DENIED"


# --- levels

LEVELS = """[approvals]
approvers = ["person:ada", "person:ben"]
[[approvals.levels]]
approvers = ["person:eve"]
after = 600
"""


@pytest.fixture
def two_levels(aver_home: Path) -> Iterator[tuple[Ledger, dict[str, Person], ApprovalRequest]]:
    with with_settings(aver_home, LEVELS) as ledger:
        people = {name: somebody(name) for name in ("ada", "ben", "eve")}
        enrolled(ledger, *people.values())
        yield ledger, people, opened(ledger)


def test_the_second_level_waits_for_its_turn(two_levels: tuple[Ledger, dict[str, Person], ApprovalRequest]) -> None:
    ledger, people, request = two_levels
    assert refused(approve, ledger, request, people["eve"], shown=SHOWN) == "NOT_YET"
    assert refused(escalate, ledger, request, people["eve"], shown=SHOWN) == "NOT_YET"
    assert approve(ledger, request, people["ben"], shown=SHOWN).state == "approved"


def test_anybody_listed_may_deny_at_any_time(two_levels: tuple[Ledger, dict[str, Person], ApprovalRequest]) -> None:
    ledger, people, request = two_levels
    assert deny(ledger, request, people["eve"], shown=SHOWN).state == "denied"


def test_passing_it_on(two_levels: tuple[Ledger, dict[str, Person], ApprovalRequest]) -> None:
    ledger, people, request = two_levels
    after = escalate(ledger, request, people["ada"], shown=SHOWN, comment="beyond me")
    assert (after.state, after.level) == ("pending", 2)
    assert refused(approve, ledger, request, people["ben"], shown=SHOWN) == "PASSED_ON"
    after = approve(ledger, request, people["eve"], shown=SHOWN)
    assert (after.state, after.level) == ("approved", 2)
    authority = consume(ledger, request, request.digest).to_dict()["authority"]
    assert (authority["type"], authority["approver"]) == ("escalated", "person:eve")
    assert authority["escalation_reason"] == "person:ada passed it on: beyond me"


def test_passing_it_on_undoes_an_approval_of_the_first_level(
    two_levels: tuple[Ledger, dict[str, Person], ApprovalRequest],
) -> None:
    ledger, people, request = two_levels
    approve(ledger, request, people["ada"], shown=SHOWN)
    assert escalate(ledger, request, people["ben"], shown=SHOWN).state == "pending"
    assert refused(consume, ledger, request, request.digest) == "NOT_APPROVED"


def test_there_is_nobody_above_the_last_level(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    assert refused(escalate, ledger, request_, ada, shown=SHOWN) == "NO_LEVEL"


def test_after_its_time_the_second_level_decides_and_says_why(
    two_levels: tuple[Ledger, dict[str, Person], ApprovalRequest], clock: Any
) -> None:
    ledger, people, request = two_levels
    clock.forward(601)
    assert load_request_state(ledger, request).level == 2
    after = approve(ledger, request, people["eve"], shown=SHOWN)
    assert (after.state, after.level) == ("approved", 2)
    assert after.escalation == "level 1 did not decide within 600 seconds"


def test_after_its_time_the_first_level_may_still_decide(
    two_levels: tuple[Ledger, dict[str, Person], ApprovalRequest], clock: Any
) -> None:
    ledger, people, request = two_levels
    clock.forward(601)
    after = approve(ledger, request, people["ada"], shown=SHOWN)
    assert (after.state, after.level, after.escalation) == ("approved", 1, None)


# --- independence


def test_a_key_in_a_plain_file_is_not_independent(ledger: Ledger) -> None:
    ada = somebody("ada", custody="file")
    enrolled(ledger, ada)
    request = opened(ledger)
    after = approve(ledger, request, ada, shown=SHOWN)
    assert after.state == "approved"
    authority = consume(ledger, request, request.digest).to_dict()["authority"]
    assert authority["type"] == "escalated"
    assert "not independent" in authority["escalation_reason"]


def test_nor_is_one_that_was_moved_into_a_plain_file(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    after = approve(ledger, request_, replace(ada, custody="file"), shown=SHOWN)
    assert after.escalation is not None
    assert "not independent" in after.escalation


# --- the end


def test_expired_once_is_expired_for_ever(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    expire(ledger, request_)
    expire(ledger, request_)
    assert load_request_state(ledger, request_).state == "expired"
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "EXPIRED"
    assert ledger.head(request_.chain).count == 2
    content = list(ledger.read(request_.chain))[-1].to_dict()
    assert content["outcome"]["status"] == "blocked"
    assert content["authority"]["type"] == "policy"


@pytest.mark.parametrize("work", ["approve", "deny", "consume"])
def test_whoever_finds_it_expired_records_that(
    work: str, ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any
) -> None:
    clock.forward(3601)
    if work == "consume":
        assert refused(consume, ledger, request_, request_.digest) == "EXPIRED"
    else:
        answer = approve if work == "approve" else deny
        assert refused(answer, ledger, request_, ada, shown=SHOWN) == "EXPIRED"
    clock.forward(-3600)
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "EXPIRED"
    last = list(ledger.read(request_.chain))[-1].to_dict()
    assert last["outcome"]["result"]["decision"] == "expired"


def test_looking_records_nothing(ledger: Ledger, request_: ApprovalRequest, clock: Any) -> None:
    clock.forward(3601)
    assert load_request_state(ledger, request_).state == "expired"
    assert ledger.head(request_.chain).count == 1


def test_many_requests_are_looked_at_in_one_reading(ledger: Ledger, ada: Person) -> None:
    requests = [opened(ledger, gate_id=f"g{number}") for number in range(4)]
    approve(ledger, requests[1], ada, shown=SHOWN)
    deny(ledger, requests[2], ada, shown=SHOWN)
    expire(ledger, requests[3])
    found = load_request_states(ledger, requests)
    assert [one.state for one in found] == ["pending", "approved", "denied", "expired"]
    assert found == [load_request_state(ledger, request) for request in requests]
    assert load_request_states(ledger, []) == []


def test_an_approval_that_is_not_used_in_time_is_void(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any
) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    clock.forward(3601)
    assert refused(consume, ledger, request_, request_.digest) == "EXPIRED"


# --- clocks that jump


def test_setting_the_clock_back_revives_nothing_that_is_recorded(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any
) -> None:
    clock.forward(3601)
    expire(ledger, request_)
    clock.forward(-3600)
    assert load_request_state(ledger, request_).state == "expired"
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "EXPIRED"


def test_nor_what_the_ledger_has_seen_the_end_of(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any
) -> None:
    """Nobody recorded that it expired; another record is later than its end, and that is enough."""
    clock.forward(3601)
    opened(ledger, "ls")
    clock.forward(-3600)
    assert load_request_state(ledger, request_).state == "expired"
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "EXPIRED"


def test_a_word_from_before_the_question_does_not_count(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any
) -> None:
    clock.forward(-7200)
    assert refused(approve, ledger, request_, ada, shown=SHOWN) == "CLOCK_BACKWARDS"


def test_once_the_clock_is_right_again_new_requests_are_not_harmed(ledger: Ledger, ada: Person, clock: Any) -> None:
    clock.forward(86_400 * 365)
    opened(ledger, "ls")
    clock.forward(-86_400 * 365)
    request = opened(ledger, "make")
    assert approve(ledger, request, ada, shown=SHOWN).state == "approved"
