"""A vote is good once: in one ledger and tenant, for one request and session. Old statements are not taken up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Action, Blob, IntegrityError, Ledger, Refused, Sealed
from aver.gate.approvals import (
    approve,
    consume,
    deny,
    load_request,
    load_request_state,
    open_request,
    recent_requests,
    record_vote,
    wait_for_answer,
)
from aver.gate.approvals.vote import APPROVAL_PURPOSE, vote_content
from aver.keys import Statement, sign_statement
from aver.verdict import Verdict
from support.approvals import SHOWN, action, asking, code_of, copy_record, enrolled, open_old_request, opened, somebody

ADA = somebody("ada")
COMMAND = "rm -r build"


@pytest.fixture
def ledger(aver_home: Path) -> Iterator[Ledger]:
    with aver.open_ledger() as own:
        own.keys.trust(ADA.public)
        yield own


def command_in(at: Path, session: str = "s1") -> Action:
    given = {"type": "shell_exec", "tool": "Bash", "arguments": {"command": COMMAND}}
    return Action(session=session, workspace=str(at), **given)


def ask(ledger: Ledger, at: Path, session: str = "s1") -> aver.Answer:
    return aver.ask(ledger, command_in(at, session))


def places(verdict: Verdict, check: str = "approvals") -> list[tuple[str | None, int | None, str]]:
    return [
        (one.place.chain, one.place.sequence, one.code)
        for one in verdict.findings
        if (one.check, one.status) == (check, "failed")
    ]


def records_of(ledger: Ledger) -> list[Sealed]:
    return list(ledger.read(f"approvals.{ledger.tenant}"))


# --- the same vote elsewhere


def approved_in(ledger: Ledger, at: Path) -> tuple[Sealed, Sealed]:
    """The records of a request and of the vote on it."""
    request = ask(ledger, at).request
    assert request is not None
    approve(ledger, request, ADA, shown=SHOWN)
    first, vote = records_of(ledger)
    return first, vote


def test_a_request_and_its_vote_copied_to_another_tenant_allow_nothing(aver_home: Path, tmp_path: Path) -> None:
    with aver.open_ledger(tenant="staging") as staging:
        staging.keys.trust(ADA.public)
        enrolled(staging, ADA)
        request, vote = approved_in(staging, tmp_path)
        blobs = [Blob(SHOWN.encode(), "text/plain; charset=utf-8")]
        assert ask(staging, tmp_path).allows
        assert staging.verify().status == "verified"
    with aver.open_ledger(tenant="prod") as prod:
        enrolled(prod, ADA)
        copy_record(prod, request)
        prod.append("notes.a", aver.Capsule(type="tool"), blobs=blobs)
        copy_record(prod, vote)
        answer = ask(prod, tmp_path)
        assert (answer.allows, answer.decision.decision) == (False, "human_review")
        [copied] = [one for one in recent_requests(prod) if one.id == request.id]
        [(_, problem)] = load_request_state(prod, copied).uncounted
        assert (problem.code, problem.words) == (
            "STATEMENT_MISMATCH",
            "it was signed for another tenant and another shown_sha256",
        )
        with pytest.raises(Refused) as refusal:
            consume(prod, copied, copied.digest)
        assert code_of(refusal) == "NOT_APPROVED"
        assert places(prod.verify()) == [("approvals.prod", 1, "EVIDENCE_INVALID")]


def test_a_request_and_its_vote_copied_to_another_ledger_allow_nothing(ledger: Ledger, tmp_path: Path) -> None:
    enrolled(ledger, ADA)
    request, vote = approved_in(ledger, tmp_path)
    with aver.open_ledger(home=tmp_path / "other") as other:
        enrolled(other, ADA)
        copy_record(other, request)
        blob = Blob(SHOWN.encode(), "text/plain; charset=utf-8")
        other.append("notes.a", aver.Capsule(type="tool"), blobs=[blob])
        copy_record(other, vote)
        assert not ask(other, tmp_path).allows
        assert places(other.verify()) == [("approvals.default", 1, "EVIDENCE_INVALID")]


def test_a_vote_for_another_request_of_the_same_action_does_not_count(ledger: Ledger, tmp_path: Path) -> None:
    enrolled(ledger, ADA)
    about = action()
    first = open_request(ledger, about, asking(about, "g1"))
    approve(ledger, first, ADA, shown=SHOWN)
    consume(ledger, first, first.digest)
    second = open_request(ledger, about, asking(about, "g2"))
    copy_record(ledger, records_of(ledger)[1], id=aver.clock.new_id(), request=second.id)
    assert load_request_state(ledger, second).uncounted[0][1].code == "STATEMENT_MISMATCH"
    assert not wait_for_answer(ledger, second, 0).allows


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "change",
    [
        {"v": 1},
        {"v": 2},
        {"v": 3.0},
        {"v": 4},
        {"shown_sha256": "0" * 64},
        {"ledger": "00000000-0000-4000-8000-000000000000"},
        {"tenant": "prod"},
        {"request": "00000000-0000-4000-8000-000000000000"},
        {"scope": "session:s2"},
        {"scope": "everywhere"},
        {"scope": ["workspace"]},
        {"uses": 0},
        {"uses": 101},
        {"uses": 2.0},
        {"uses": True},
        {"more": 1},
    ],
    ids=str,
)
def test_every_field_of_the_statement_counts(change: dict[str, Any], ledger: Ledger) -> None:
    enrolled(ledger, ADA)
    request = opened(ledger)
    content = vote_content(request, "approve", ADA.identity, Blob(SHOWN.encode()).digest)
    statement = sign_statement(APPROVAL_PURPOSE, {**content, **change}, [ADA.signer])
    with pytest.raises(Refused) as refusal:
        record_vote(ledger, request, statement, shown=SHOWN, custody="passphrase")
    assert code_of(refusal) == "STATEMENT_MISMATCH"
    missing = {name: value for name, value in content.items() if name not in change or "more" in change}
    if missing != content:
        statement = sign_statement(APPROVAL_PURPOSE, missing, [ADA.signer])
        with pytest.raises(Refused):
            record_vote(ledger, request, statement, shown=SHOWN, custody="passphrase")


def test_the_session_is_that_of_the_action(ledger: Ledger, tmp_path: Path) -> None:
    enrolled(ledger, ADA)
    request = ask(ledger, tmp_path).request
    assert request is not None
    assert (request.statement, request.scope, request.uses) == (3, "session:s1", 1)
    approve(ledger, request, ADA, shown=SHOWN)
    assert not ask(ledger, tmp_path, "s2").allows
    assert ask(ledger, tmp_path).allows
    assert not ask(ledger, tmp_path).allows


def test_a_request_that_names_another_session_than_its_action_is_not_shown(ledger: Ledger, tmp_path: Path) -> None:
    enrolled(ledger, ADA)
    asked = ask(ledger, tmp_path).request
    assert asked is not None
    record = records_of(ledger)[0]
    forged = copy_record(ledger, record, id=aver.clock.new_id(), scope="session:s2")
    request = next(one for one in recent_requests(ledger) if one.sequence == forged.sequence)
    with pytest.raises(IntegrityError, match="not of the session of its action"):
        request.read_action(ledger.blob)
    assert ("approvals.default", 1, "EVIDENCE_INVALID") in places(ledger.verify())


# --- decisions that claim an approval


def reseal_decision(ledger: Ledger, record: Sealed, session: str, change: Callable[[dict[str, Any]], None]) -> Sealed:
    content = record.to_dict()
    refs = content["context"]["environment"]["aver"].get("refs")
    content.update(id=aver.clock.new_id(), sequence=0, previous_hash=None)
    content["context"]["environment"]["aver"] = {"kind": record.kind, **({"refs": refs} if refs else {})}
    change(content["outcome"]["result"])
    return ledger.append(f"gate.{session}", aver.Capsule.from_dict(content))


def test_one_use_allows_one_decision(ledger: Ledger, tmp_path: Path) -> None:
    enrolled(ledger, ADA)
    approved_in(ledger, tmp_path)
    record = ask(ledger, tmp_path).record
    assert ledger.verify().check("decisions").status == "passed"
    again = reseal_decision(ledger, record, "s1", lambda result: result["facts"].update(result["session"]))
    assert ("gate.s1", again.sequence, "EVIDENCE_INVALID") in places(ledger.verify(), "decisions")


# --- statements of the earlier version


def test_an_old_request_is_still_answered_used_and_proved(ledger: Ledger) -> None:
    enrolled(ledger, ADA)
    request = open_old_request(ledger)
    assert load_request(ledger, request.id) == request
    approve(ledger, request, ADA, shown=SHOWN)
    statement = Statement.from_dict(records_of(ledger)[1].to_dict()["authority"]["chain"][0])
    assert statement.content.keys() == {"digest", "decision", "approver", "expires", "shown"}
    assert wait_for_answer(ledger, request, 0).allows
    consume(ledger, request, request.digest)
    with pytest.raises(Refused) as refusal:
        consume(ledger, request, request.digest)
    assert code_of(refusal) == "REPLAY"
    verdict = ledger.verify()
    assert (verdict.status, verdict.check("approvals").status) == ("qualified", "warning")
    assert [one.code for one in verdict.findings] == ["UNBOUND_STATEMENT"]


def test_an_old_request_is_denied_without_a_remark(ledger: Ledger) -> None:
    enrolled(ledger, ADA)
    request = open_old_request(ledger)
    deny(ledger, request, ADA, shown=SHOWN)
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_request_is_never_taken_up(version: int, ledger: Ledger, tmp_path: Path) -> None:
    """Its vote may have been copied here, or does not cover all that was shown. Whoever asks gets a new request."""
    enrolled(ledger, ADA)
    request = open_old_request(ledger, version=version, about=command_in(tmp_path))
    assert [one.id for one in recent_requests(ledger)] == [request.id]
    assert request.statement == version
    approve(ledger, request, ADA, shown=SHOWN)
    answer = ask(ledger, tmp_path)
    assert not answer.allows
    assert answer.request is not None
    assert answer.request.id != request.id


def test_a_request_that_was_put_there_in_advance_is_not_resumed(ledger: Ledger) -> None:
    enrolled(ledger, ADA)
    open_old_request(ledger, gate_id="g1", key=f"approval.request:g1:{action().digest}")
    with pytest.raises(Refused) as refusal:
        opened(ledger, gate_id="g1")
    assert code_of(refusal) == "REQUEST_CHANGED"


def test_no_request_goes_back_to_the_earlier_version(ledger: Ledger) -> None:
    enrolled(ledger, ADA)
    opened(ledger, gate_id="g1")
    old = open_old_request(ledger, gate_id="g2")
    assert old.id not in {request.id for request in recent_requests(ledger)}
    with pytest.raises(IntegrityError, match="earlier version") as refusal:
        load_request(ledger, old.id)
    assert code_of(refusal) == "STATE_VIOLATION"
    assert places(ledger.verify()) == [("approvals.default", 1, "STATE_VIOLATION")]


@pytest.mark.parametrize("wanted", [1, 3])
def test_a_statement_has_the_version_that_the_request_wants(wanted: int, ledger: Ledger) -> None:
    enrolled(ledger, ADA)
    old = open_old_request(ledger, gate_id="g1")
    new = opened(ledger, gate_id="g2")
    request, other = (old, new) if wanted == 1 else (new, old)
    content = vote_content(other, "approve", ADA.identity, Blob(SHOWN.encode()).digest)
    content.update(expires=request.expires, digest=request.digest, **({"request": request.id} if wanted == 1 else {}))
    statement = sign_statement(APPROVAL_PURPOSE, content, [ADA.signer])
    with pytest.raises(Refused, match=f"not of version {wanted}") as refusal:
        record_vote(ledger, request, statement, shown=SHOWN, custody="passphrase")
    assert code_of(refusal) == "STATEMENT_MISMATCH"
