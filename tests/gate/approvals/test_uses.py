"""Where and how often an approval is good: scope and uses, in the gate and in the verdict."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Capsule, Ledger
from aver.agents.registry import provide_known_agents
from aver.capsule.aver_block import of_kind
from aver.errors import BadInput, Refused
from aver.gate.action import Action
from aver.gate.approvals import ApprovalRequest, Person, approve, consume, deny, load_request_state, recent_requests
from aver.gate.ask import Answer, ask
from support.approvals import SHOWN, code_of, enrolled, opened, somebody, with_settings

provide_known_agents()


@pytest.fixture
def known(ledger: Ledger, ada: Person) -> Person:
    """Ada, whose key the verdict knows, too."""
    ledger.keys.trust(ada.public)
    return ada


def ask_to_delete(ledger: Ledger, place: Path, words: str = "clean", session: str = "s1", **more: Any) -> Answer:
    arguments = {"command": "rm -r build", "description": words, **more}
    return ask(
        ledger,
        Action(
            type="shell_exec",
            tool="Bash",
            arguments=arguments,
            session=session,
            workspace=str(place),
            caller="claude-code",
        ),
    )


def request_of(answer: Answer) -> ApprovalRequest:
    assert answer.request is not None
    return answer.request


def uses_in(ledger: Ledger) -> list[dict[str, Any]]:
    records = ledger.read("approvals.default")
    return [record.to_dict()["outcome"]["result"] for record in records if record.kind == "approval.use"]


def test_a_reworded_retry_meets_its_approval(ledger: Ledger, known: Person, tmp_path: Path) -> None:
    request = request_of(ask_to_delete(ledger, tmp_path, "clean"))
    assert request_of(ask_to_delete(ledger, tmp_path, "Remove the build directory")).id == request.id
    approve(ledger, request, known, shown=SHOWN)
    retry = ask_to_delete(ledger, tmp_path, "Delete build output")
    assert retry.decision.decision == "human_approved"
    assert retry.reasons[0] == "approved by person:ada"
    assert retry.record.to_dict()["outcome"]["result"]["left_out"] == ["description"]
    assert [(use["number"], use["call_id"]) for use in uses_in(ledger)] == [(1, retry.call_id)]
    again = ask_to_delete(ledger, tmp_path, "Delete build output")
    assert not again.allows
    assert request_of(again).id != request.id
    assert aver.verify(ledger).status == "verified"


def test_another_command_does_not_meet_it(ledger: Ledger, known: Person, tmp_path: Path) -> None:
    approve(ledger, request_of(ask_to_delete(ledger, tmp_path)), known, shown=SHOWN)
    assert not ask_to_delete(ledger, tmp_path, command="rm -r src").allows
    assert not ask_to_delete(ledger, tmp_path, timeout=5).allows
    assert not ask_to_delete(ledger, tmp_path / "elsewhere").allows


def test_another_session_meets_it_only_with_the_scope_workspace(ledger: Ledger, known: Person, tmp_path: Path) -> None:
    first = request_of(ask_to_delete(ledger, tmp_path))
    approve(ledger, first, known, shown=SHOWN)
    other = ask_to_delete(ledger, tmp_path, session="s2")
    assert not other.allows
    approve(ledger, request_of(other), known, shown=SHOWN, scope="workspace", uses=3)
    third = ask_to_delete(ledger, tmp_path, session="s3")
    assert third.allows
    assert request_of(third).id == request_of(other).id
    assert len(list(recent_requests(ledger))) == 2
    assert [ask_to_delete(ledger, tmp_path, session=f"s{number}").allows for number in (4, 5, 6)] == [True, True, False]
    assert [(use["number"], use["uses"], use["session"]) for use in uses_in(ledger)] == [
        (1, 3, "s3"),
        (2, 3, "s4"),
        (3, 3, "s5"),
    ]
    assert load_request_state(ledger, request_of(other)).state == "used"
    assert aver.verify(ledger).status == "verified"


@pytest.mark.more
def test_a_denial_ends_what_is_left(ledger: Ledger, known: Person, tmp_path: Path) -> None:
    request = request_of(ask_to_delete(ledger, tmp_path))
    approve(ledger, request, known, shown=SHOWN, uses=3)
    assert ask_to_delete(ledger, tmp_path).allows
    deny(ledger, request, known, shown=SHOWN)
    assert not ask_to_delete(ledger, tmp_path).allows
    assert load_request_state(ledger, request).state == "denied"
    assert aver.verify(ledger).status == "verified"


def test_of_several_approvals_the_narrowest_counts(aver_home: Path, tmp_path: Path) -> None:
    people = [somebody(name) for name in ("ada", "ben")]
    with with_settings(aver_home, "[approvals]\nquorum = 2\n") as ledger:
        enrolled(ledger, *people)
        request = request_of(ask_to_delete(ledger, tmp_path))
        approve(ledger, request, people[0], shown=SHOWN, scope="workspace", uses=5)
        state = approve(ledger, request, people[1], shown=SHOWN, uses=2)
        assert (state.scope, state.uses) == ("session:s1", 2)
        assert not ask_to_delete(ledger, tmp_path, session="s2").allows
        assert [ask_to_delete(ledger, tmp_path).allows for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(("scope", "uses"), [("everywhere", 1), ("session:s2", 1), ("", 101), ("", -1)])
def test_no_other_scope_and_no_more_uses(ledger: Ledger, ada: Person, scope: str, uses: int) -> None:
    with pytest.raises(BadInput):
        approve(ledger, opened(ledger), ada, shown=SHOWN, scope=scope, uses=uses)


def _use_often(home: Path, request: str, results: Any) -> None:
    from aver.gate.approvals import load_request

    with aver.open_ledger(home=home) as ledger:
        found = load_request(ledger, request)
        for _ in range(4):
            try:
                consume(ledger, found, found.digest)
                results.put(1)
            except Refused:
                results.put(0)


@pytest.mark.more
def test_no_race_makes_one_use_more(aver_home: Path, ledger: Ledger, ada: Person) -> None:
    request = opened(ledger)
    approve(ledger, request, ada, shown=SHOWN, uses=5)
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    workers = [spawn.Process(target=_use_often, args=(aver_home, request.id, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    granted = sum(results.get(timeout=120) for _ in range(12))
    for worker in workers:
        worker.join()
    assert granted == 5
    assert [use["number"] for use in uses_in(ledger)] == [1, 2, 3, 4, 5]


# --- uses that are not right, sealed with the ledger's own key


def write_use(ledger: Ledger, request: ApprovalRequest, /, **changes: Any) -> None:
    state = load_request_state(ledger, request)
    result = {
        "v": 1,
        "request": request.id,
        "digest": request.digest,
        "number": state.used + 1,
        "uses": state.uses or 1,
        "scope": state.scope or request.scope,
        "session": request.scope.removeprefix("session:"),
        "call_id": "",
        "approvers": list(state.approvers) or ["person:ada"],
        "level": 1,
        **changes,
    }
    draft = Capsule(type="auth", outcome=aver.Outcome(status="success", result=result))
    ledger.append("approvals.default", of_kind(draft, "approval.use"))


def findings(ledger: Ledger) -> list[tuple[str, int | None]]:
    verdict = ledger.verify()
    return [(found.code, found.place.sequence) for found in verdict.findings if found.check == "approvals"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"digest": "0" * 64}, "EVIDENCE_INVALID"),
        ({"session": "s2"}, "EVIDENCE_INVALID"),
        ({"number": 2}, "EVIDENCE_INVALID"),
        ({"uses": 3}, "EVIDENCE_INVALID"),
        ({"scope": "workspace"}, "EVIDENCE_INVALID"),
        ({"approvers": ["person:eve"]}, "EVIDENCE_INVALID"),
        ({"request": "0" * 36}, "STATE_VIOLATION"),
        ({"number": "1"}, "SCHEMA_INVALID"),
        ({"also": 1}, "SCHEMA_INVALID"),
    ],
    ids=str,
)
def test_a_use_that_is_not_covered(ledger: Ledger, known: Person, changes: dict[str, Any], code: str) -> None:
    request = opened(ledger)
    approve(ledger, request, known, shown=SHOWN)
    write_use(ledger, request, **changes)
    assert findings(ledger) == [(code, 2)]


def test_a_use_without_an_approval_and_one_too_many(ledger: Ledger, known: Person) -> None:
    request = opened(ledger)
    write_use(ledger, request)
    assert findings(ledger) == [("EVIDENCE_INVALID", 1)]
    other = opened(ledger, gate_id="g2")
    approve(ledger, other, known, shown=SHOWN, uses=2)
    for _ in range(2):
        consume(ledger, other, other.digest)
    write_use(ledger, other, number=3, uses=2)
    assert findings(ledger)[1:] == [("REPLAY", 6)]


def test_a_decision_names_the_use_that_was_its_own(ledger: Ledger, known: Person, tmp_path: Path) -> None:
    request = request_of(ask_to_delete(ledger, tmp_path))
    approve(ledger, request, known, shown=SHOWN, uses=3)
    honest = ask_to_delete(ledger, tmp_path)
    spare = consume(ledger, request, request.digest, by="another call", session="s1")
    content = honest.record.to_dict()
    content.update(id=aver.clock.new_id(), sequence=0, previous_hash=None)
    content["context"]["environment"]["aver"] = {"kind": "gate.decision", "refs": {"approval": spare.id}}
    ledger.append("gate.s1", Capsule.from_dict(content))
    found = [finding.words for finding in ledger.verify().findings if finding.check == "decisions"]
    assert found == ["it says that a human approved this, and the approval was used for another call"]


def test_an_old_use_of_a_new_request_is_named(ledger: Ledger, known: Person) -> None:
    request = opened(ledger)
    approve(ledger, request, known, shown=SHOWN)
    result = {"v": 1, "request": request.id, "digest": request.digest, "decision": "used", "approver": None}
    result |= {"custody": None, "level": 1, "comment": "", "shown": None}
    draft = Capsule(type="auth", outcome=aver.Outcome(status="success", result=result))
    ledger.append("approvals.default", of_kind(draft, "approval.decision"))
    assert findings(ledger) == [("STATE_VIOLATION", 2)]
    with pytest.raises(Refused) as refusal:
        consume(ledger, request, request.digest)
    assert code_of(refusal) == "REPLAY"
