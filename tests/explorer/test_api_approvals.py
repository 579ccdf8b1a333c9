"""Requests for approval on the API: where they are, answers with a passkey, and everything that is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aver import Ledger, clock
from aver.explorer import approval_places, guard
from aver.gate.approvals import ApprovalRequest, Person, approve, consume, deny, enrol_passkey
from aver.gate.approvals.request import add_seconds
from aver.keys import Statement
from support.approvals import SHOWN, enrolled, open_old_request, opened, somebody
from support.explorer_servers import API, Answer, ServedExplorer, serve
from support.passkeys import UP, SoftPasskey
from support.tamper import unguarded

PHONE = "ada-phone"


@pytest.fixture
def ada(ledger: Ledger) -> Person:
    person = somebody("ada")
    enrolled(ledger, person)
    return person


@pytest.fixture
def phone(ledger: Ledger, ada: Person) -> SoftPasskey:
    """A passkey on the roster."""
    made = SoftPasskey(PHONE)
    enrol_passkey(ledger, made.enrolment(ledger, ada))
    return made


@pytest.fixture
def served(ledger: Ledger, ada: Person) -> Iterator[ServedExplorer]:
    with serve(ledger) as running:
        yield running


def send(served: ServedExplorer, request: ApprovalRequest, statement: Statement, shown: str = SHOWN) -> Answer:
    document = {"statement": statement.to_dict(), "shown": shown, "comment": ""}
    return served.post(f"approvals/{request.id}", document)


def test_requests_are_listed_with_the_places_of_their_words(
    served: ServedExplorer, ledger: Ledger, ada: Person
) -> None:
    first, second, third = (opened(ledger, f"rm -rf build{number}", f"gate-{number}") for number in range(3))
    deny(ledger, first, ada, shown=SHOWN)
    approve(ledger, second, ada, shown=SHOWN)
    listed = served.get("approvals")
    assert [(found["id"], found["state"]) for found in listed["requests"]] == [
        (third.id, "pending"),
        (second.id, "approved"),
        (first.id, "denied"),
    ]
    denied = listed["requests"][2]
    (word,) = denied["words"]
    assert (denied["chain"], denied["sequence"]) == (first.chain, first.sequence)
    assert (word["word"], word["approver"]) == ("deny", "person:ada")
    record = next(ledger.read(word["chain"], word["sequence"], word["sequence"] + 1))
    assert record.kind == "approval.decision"
    assert [found["id"] for found in served.get("approvals?state=approved")["requests"]] == [second.id]
    found, page = [], served.get("approvals?limit=1")
    while True:
        found += [each["id"] for each in page["requests"]]
        if page["next"] is None:
            break
        page = served.get(f"approvals?limit=1&after={page['next']}")
    assert found == [third.id, second.id, first.id]


@pytest.mark.parametrize(("word", "state"), [("approve", "approved"), ("deny", "denied")])
def test_passkey_answers(served: ServedExplorer, ledger: Ledger, phone: SoftPasskey, word: str, state: str) -> None:
    request = opened(ledger)
    statement = phone.vote(request, word)
    answer = send(served, request, statement)
    assert answer.status == 200, answer.body
    assert answer.document["state"] == state
    assert served.get(f"approvals?state={state}")["requests"][0]["id"] == request.id
    # The same words once more, to the byte, and others of the same person.
    for again in (statement, phone.vote(request, word), phone.vote(request, "approve")):
        assert refused(send(served, request, again)) in ("DECIDED", "DENIED")
    assert len(served.get(f"approvals?state={state}")["requests"][0]["words"]) == 1
    assert ledger.verify().status != "failed"


def refused(answer: Answer) -> str:
    assert answer.status == 409, answer.body
    return str(answer.document["code"])


def test_answers_that_do_not_count_are_refused(served: ServedExplorer, ledger: Ledger, phone: SoftPasskey) -> None:
    request, other = opened(ledger), opened(ledger, "rm -rf dist", "gate-2")
    assert refused(send(served, request, phone.vote(other))) == "DIGEST_MISMATCH"
    assert refused(send(served, request, phone.vote(request), shown="another text")) == "STATEMENT_MISMATCH"
    assert refused(send(served, request, phone.vote(request, ledger="0" * 36))) == "STATEMENT_MISMATCH"
    # The same action was asked about twice: an answer to one request is none to the other.
    assert refused(send(served, request, phone.vote(opened(ledger, gate_id="gate-3")))) == "STATEMENT_MISMATCH"
    without_verification = phone.wrong_vote(request, flags=UP)
    foreign_origin = phone.wrong_vote(request, origin="https://evil.example")
    for statement in (without_verification, foreign_origin):
        assert refused(send(served, request, statement)) == "SIG_INVALID"
    assert refused(send(served, request, SoftPasskey("mallory").vote(request))) == "NOT_LISTED"
    assert all(found["words"] == [] for found in served.get("approvals")["requests"])


def test_expired_request_takes_no_answer(
    served: ServedExplorer, ledger: Ledger, phone: SoftPasskey, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = opened(ledger)
    statement = phone.vote(request)
    monkeypatch.setattr(clock, "now", lambda: add_seconds(request.expires, 1))
    assert refused(send(served, request, statement)) == "EXPIRED"
    assert served.get("approvals?state=expired")["requests"][0]["id"] == request.id


def test_forms_that_are_no_answer(served: ServedExplorer, ledger: Ledger, phone: SoftPasskey) -> None:
    request = opened(ledger)
    right: dict[str, Any] = {"statement": phone.vote(request).to_dict(), "shown": SHOWN, "comment": ""}
    path = f"approvals/{request.id}"
    for wrong in (
        *([], "x", {}, {**right, "more": 1}, {**right, "shown": 1}, {**right, "comment": None}),
        *({**right, "statement": "x"}, {**right, "statement": {}}, {**right, "shown": ""}),
        *({**right, "comment": "x" * 2001},),
    ):
        assert served.post(path, wrong).status == 400, wrong
    body = json.dumps(right).encode()
    headers = {"Content-Type": "application/json"}
    assert served.ask(API + path, "POST", body, headers={"Content-Type": "text/plain"}).status == 400
    assert served.ask(API + path, "POST", body[:-1], headers=headers).status == 400
    twice = body.replace(b'"comment"', b'"comment": "", "comment"')
    assert served.ask(API + path, "POST", twice, headers=headers).status == 400
    assert served.post("approvals/not-an-id", right).status == 400
    assert served.post(f"approvals/{'0' * 8}-0000-0000-0000-{'0' * 12}", right).status == 404
    assert served.ask(API + path, "POST", body, headers=headers, token=None).status == 401
    origin = {**headers, "Origin": "http://evil.example"}
    assert served.ask(API + path, "POST", body, headers=origin).status == 403
    assert len(served.get("approvals?state=pending")["requests"]) == 1


def test_long_text_that_was_shown_may_be_sent(served: ServedExplorer, ledger: Ledger, phone: SoftPasskey) -> None:
    request = opened(ledger)
    shown = "x" * (2 * guard.BODY_MAX)
    assert send(served, request, phone.vote(request, text=shown), shown).status == 200
    large = {"Content-Type": "application/json", "Content-Length": str(guard.APPROVAL_BODY_MAX + 1)}
    assert served.ask(f"{API}approvals/{request.id}", "POST", headers=large).status == 413


def test_passkey_is_enrolled_with_an_endorsement(served: ServedExplorer, ledger: Ledger, phone: SoftPasskey) -> None:
    tablet = SoftPasskey("ada-tablet")
    assert refused(served.post("approvers", {"statement": tablet.enrolment(ledger).to_dict()})) == "NOT_ENDORSED"
    mallory = SoftPasskey("mallory")
    forged = tablet.enrolment(ledger, mallory)
    assert refused(served.post("approvers", {"statement": forged.to_dict()})) == "NOT_ENDORSED"
    answer = served.post("approvers", {"statement": tablet.enrolment(ledger, phone).to_dict()})
    assert answer.status == 200, answer.body
    assert answer.document["identity"] == "person:ada-tablet"
    request = opened(ledger)
    assert send(served, request, tablet.vote(request)).status == 200
    assert refused(served.post("approvers", {"statement": tablet.enrolment(ledger, phone).to_dict()})) == "ENROLLED"
    for wrong in ({}, {"statement": {}}, {"statement": tablet.enrolment(ledger, phone).to_dict(), "x": 1}):
        assert served.post("approvers", wrong).status == 400


def test_enrolments_at_once_are_all_judged(served: ServedExplorer, ledger: Ledger, phone: SoftPasskey) -> None:
    """Each is recorded after the one before it; none is refused because another one came first."""
    statements = [SoftPasskey(f"person-{number}").enrolment(ledger, phone) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda one: served.post("approvers", {"statement": one.to_dict()}), statements))
    assert [answer.status for answer in answers] == [200] * 6, [answer.body for answer in answers]
    assert ledger.verify().status != "failed"


@pytest.mark.parametrize("at", ["", None, 5, [], "2026", "2026-99-99T00:00:00+00:00", "2026-05-01T00:00:00Z"])
def test_time_of_an_enrolment_must_be_one(served: ServedExplorer, ledger: Ledger, ada: Person, at: Any) -> None:
    statement = SoftPasskey("ada-tablet").enrolment(ledger, ada, at=at)
    assert served.post("approvers", {"statement": statement.to_dict()}).status == 400


def test_first_approver_is_not_enrolled_from_a_page(ledger: Ledger) -> None:
    with serve(ledger) as served:
        enrolment = SoftPasskey(PHONE).enrolment(ledger).to_dict()
        assert refused(served.post("approvers", {"statement": enrolment})) == "NO_APPROVERS"


def test_answer_that_is_sent_twice_at_once_counts_once(
    served: ServedExplorer, ledger: Ledger, phone: SoftPasskey
) -> None:
    request = opened(ledger)
    statement = phone.vote(request)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(served, request, statement), range(8)))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 7
    (listed,) = served.get("approvals")["requests"]
    assert [word["word"] for word in listed["words"]] == ["approve"]


# --- old requests


def set_clock_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it be three months later, for everything that reads or writes a time here."""
    later = add_seconds(clock.now(), 90 * 86_400)
    for place in ("aver.clock.now", "aver.capsule.model.now", "aver.capsule.sealed.now", "aver.ledger.append.now"):
        monkeypatch.setattr(place, lambda: later)


def ids_of(served: ServedExplorer, query: str) -> list[str]:
    """The ids on all pages of a query, in their order."""
    page = served.get(f"approvals?{query}")
    found = [each["id"] for each in page["requests"]]
    while page["next"] is not None:
        page = served.get(f"approvals?{query}&after={page['next']}")
        found += [each["id"] for each in page["requests"]]
    return found


def test_old_requests_are_listed_however_old(
    served: ServedExplorer, ledger: Ledger, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [opened(ledger, f"rm -rf build{number}", f"gate-{number}") for number in range(4)]
    deny(ledger, old[0], ada, shown=SHOWN)
    approve(ledger, old[1], ada, shown=SHOWN)
    consume(ledger, old[1], old[1].digest)
    set_clock_forward(monkeypatch)
    young = [opened(ledger, f"rm -rf dist{number}", f"gate-{number + 10}") for number in range(2)]
    assert ids_of(served, "state=denied") == [old[0].id]
    assert ids_of(served, "state=used") == [old[1].id]
    assert ids_of(served, "state=expired") == [old[3].id, old[2].id]
    assert ids_of(served, "state=pending") == [young[1].id, young[0].id]
    everything = [request.id for request in [*reversed(young), *reversed(old)]]
    assert ids_of(served, "limit=100") == everything
    assert ids_of(served, "limit=2") == everything
    for looked_at in (1, 2, 3):
        # A page may be empty before the end.
        monkeypatch.setattr(approval_places, "LOOKED_AT_MAX", looked_at)
        assert ids_of(served, "state=denied") == [old[0].id]
        assert ids_of(served, "state=expired&limit=1") == [old[3].id, old[2].id]
        assert ids_of(served, "limit=5") == everything


def test_states_of_old_requests_do_not_depend_on_what_came_later(
    served: ServedExplorer, ledger: Ledger, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records long after a request are not read for it, and those that are read are verified."""
    old = opened(ledger, "rm -rf build", "gate-1")
    deny(ledger, old, ada, shown=SHOWN)
    set_clock_forward(monkeypatch)
    young = [opened(ledger, f"rm -rf dist{number}", f"gate-{number + 10}") for number in range(3)]
    read = approval_places.RequestHistory(ledger, [old], until=add_seconds(old.expires, 1))
    assert read.head.count == young[0].sequence + 1
    assert read.find_state(old).state == "denied"
    whole = approval_places.RequestHistory(ledger, [old])
    assert (whole.find_state(old), whole.find_votes(old)) == (read.find_state(old), read.find_votes(old))
    change = "UPDATE records SET canonical = ? WHERE hash = ?"
    record = next(ledger.read(old.chain, old.sequence + 1))
    unguarded(ledger).execute(change, (record.canonical.replace(b"deny", b"pass"), record.hash))
    assert served.ask(f"{API}approvals?state=denied").status == 503


def test_forged_request_of_an_old_form_is_not_listed(served: ServedExplorer, ledger: Ledger, ada: Person) -> None:
    oldest = open_old_request(ledger, gate_id="gate-1")
    old = open_old_request(ledger, gate_id="gate-2", version=2)
    too_old = open_old_request(ledger, gate_id="gate-3")
    first = opened(ledger, gate_id="gate-4")
    forged = [open_old_request(ledger, gate_id=f"gate-{4 + version}", version=version) for version in (1, 2)]
    found = (oldest, old, too_old, first, *forged)
    assert [request.statement for request in found] == [1, 2, 1, 3, 1, 2]
    assert ids_of(served, "limit=100") == [first.id, old.id, oldest.id]
    assert ids_of(served, "limit=1") == [first.id, old.id, oldest.id]
