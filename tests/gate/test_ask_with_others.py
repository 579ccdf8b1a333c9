"""Callers of `ask` who bring who decides, and records of their own: what is sealed, and what a verdict says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Capsule, Ledger
from aver.capsule.aver_block import of_kind
from aver.clock import new_id
from aver.errors import BadInput, Exists, HeadMoved, InvalidCapsule, Refused, Unavailable
from aver.gate.action import Action, Facts
from aver.gate.approvals import Person, approve, consume, load_request_state
from aver.gate.approvals.vote import vote_content
from aver.gate.ask import Answer, ask
from aver.gate.decide import Gate, build_refusal, decide
from aver.gate.decision import Decision
from aver.keys import sign_statement
from aver.ledger import Entry
from support.approvals import SHOWN, code_of, enrolled, somebody

CHAIN = "notes.s1"
REQUEST = "5" * 64


def action(command: str, place: Path, **more: Any) -> Action:
    given = {"tool": "Bash", "arguments": {"command": command}, "session": "s1", "workspace": str(place), **more}
    return Action(type="shell_exec", **given)


def note(text: str, record_id: str) -> Capsule:
    draft = Capsule(type="agent", outcome=aver.Outcome(result={"text": text}))
    return of_kind(draft, "record", {"decision": record_id})


def words_in(ledger: Ledger) -> list[str]:
    return [record.to_dict()["outcome"]["result"]["decision"] for record in ledger.read("gate.s1")]


def reseal(ledger: Ledger, content: dict[str, Any]) -> None:
    """Seal a forged decision with the ledger's own key."""
    block = {"kind": "gate.decision"}
    environment = {**content["context"]["environment"], "aver": block}
    context = {**content["context"], "environment": environment}
    draft = {**content, "id": new_id(), "context": context, "sequence": 0, "previous_hash": None}
    ledger.append("gate.s1", Capsule.from_dict(draft))


def checked(ledger: Ledger) -> tuple[str, str | None]:
    found = ledger.verify().check("decisions")
    return found.status, found.reason


@pytest.fixture
def ada(ledger: Ledger) -> Person:
    person = somebody("ada")
    enrolled(ledger, person)
    ledger.keys.trust(person.public)
    return person


# --- records beside the decision


def test_records_beside_are_sealed_in_one_commit_and_can_name_the_decision(ledger: Ledger, tmp_path: Path) -> None:
    def beside(decision: Decision, record_id: str) -> list[Entry]:
        return [Entry(CHAIN, note(decision.decision, record_id), key="note-1")]

    answer = ask(ledger, action("ls", tmp_path), beside=beside)
    (record,) = ledger.read(CHAIN)
    content = record.to_dict()
    assert content["context"]["environment"]["aver"]["refs"] == {"decision": answer.record.id}
    assert content["outcome"]["result"] == {"text": "pass"}
    assert ledger.verify().status == "verified"


def test_a_session_that_moved_on_is_decided_and_accompanied_again(ledger: Ledger, tmp_path: Path) -> None:
    calls: list[str] = []

    def beside(decision: Decision, record_id: str) -> list[Entry]:
        if not calls:
            ask(ledger, action("pwd", tmp_path))  # Another process is faster.
        calls.append(record_id)
        return [Entry(CHAIN, note("mine", record_id), after=ledger.head(CHAIN))]

    answer = ask(ledger, action("ls", tmp_path), beside=beside)
    assert len(calls) == 2
    assert answer.record.id == calls[-1]
    assert [record.to_dict()["context"]["environment"]["aver"]["refs"] for record in ledger.read(CHAIN)] == [
        {"decision": calls[-1]}
    ]
    assert checked(ledger) == ("passed", "2 checked")


def test_a_chain_of_the_caller_that_moved_on_is_retried_too(ledger: Ledger, tmp_path: Path) -> None:
    seen = ledger.head(CHAIN)
    calls: list[str] = []

    def beside(decision: Decision, record_id: str) -> list[Entry]:
        calls.append(record_id)
        if len(calls) == 1:
            ledger.append(CHAIN, note("another", record_id))
        return [Entry(CHAIN, note("mine", record_id), after=seen if len(calls) == 1 else ledger.head(CHAIN))]

    assert ask(ledger, action("ls", tmp_path), beside=beside).allows
    assert (len(calls), ledger.head(CHAIN).count, words_in(ledger)) == (2, 2, ["pass"])


@pytest.mark.more
def test_a_stale_head_for_ever_raises_and_seals_nothing(ledger: Ledger, tmp_path: Path) -> None:
    seen = ledger.head(CHAIN)
    ledger.append(CHAIN, note("another", new_id()))
    with pytest.raises(HeadMoved):
        ask(
            ledger, action("ls", tmp_path), beside=lambda decision, record: [Entry(CHAIN, note("", record), after=seen)]
        )
    assert ledger.head("gate.s1").count == 0


def test_a_key_of_the_caller_that_is_taken_raises_and_seals_nothing(ledger: Ledger, tmp_path: Path) -> None:
    ledger.append(CHAIN, note("another", new_id()), key="note-1")
    with pytest.raises(Exists) as taken:
        ask(
            ledger,
            action("ls", tmp_path),
            beside=lambda decision, record: [Entry(CHAIN, note("", record), key="note-1")],
        )
    assert taken.value.key == "note-1"
    assert ledger.head("gate.s1").count == 0


def test_a_decision_about_the_same_call_gets_another_id_and_its_own_records(ledger: Ledger, tmp_path: Path) -> None:
    def beside(decision: Decision, record_id: str) -> list[Entry]:
        return [Entry(CHAIN, note(decision.gate_id, record_id))]

    answers = [ask(ledger, action("ls", tmp_path, call_id="a_1"), beside=beside) for _ in range(2)]
    notes = [record.to_dict()["outcome"]["result"]["text"] for record in ledger.read(CHAIN)]
    assert notes == [answer.decision.gate_id for answer in answers]
    assert len(set(notes)) == 2


def test_a_record_of_the_caller_that_cannot_be_sealed_raises_and_seals_nothing(ledger: Ledger, tmp_path: Path) -> None:
    bad = Capsule(type="agent", outcome=aver.Outcome(status="no such status", result={}))
    with pytest.raises(InvalidCapsule):
        ask(ledger, action("ls", tmp_path), beside=lambda decision, record: [Entry(CHAIN, bad)])
    assert ledger.head("gate.s1").count == ledger.head(CHAIN).count == 0


def test_the_refusal_of_an_action_without_canonical_form_has_its_records(ledger: Ledger, tmp_path: Path) -> None:
    strange = action("ls", tmp_path, arguments={"command": "\ud800"})
    answer = ask(ledger, strange, beside=lambda decision, record: [Entry(CHAIN, note(decision.decision, record))])
    assert not answer.allows
    (record,) = ledger.read(CHAIN)
    assert record.to_dict()["context"]["environment"]["aver"]["refs"] == {"decision": answer.record.id}


# --- someone else decides


def test_the_given_decider_gets_what_the_gates_own_gets(ledger: Ledger, tmp_path: Path) -> None:
    asked: list[Any] = []

    def ask_others(given: Action, facts: Facts, gate: Gate, **more: Any) -> Decision:
        asked.append((given, facts, gate, more))
        return decide(given, facts, gate, **more)

    answer = ask(ledger, action("ls", tmp_path), decide=ask_others)
    ((given, facts, gate, more),) = asked
    assert (given.arguments, facts.labels, more["gate_id"]) == ({"command": "ls"}, frozenset(), answer.decision.gate_id)
    assert gate.bundle is not None
    assert more["effects"].classes == answer.decision.effects.classes  # type: ignore[union-attr]
    assert checked(ledger) == ("passed", "1 checked")


def refuse(words: str) -> Any:
    def ask_others(given: Action, facts: Facts, gate: Gate, *, gate_id: str = "", effects: Any = None) -> Decision:
        return build_refusal(given.digest, gate, gate_id, words)

    return ask_others


@pytest.mark.parametrize("command", ["ls", "rm -r build", "export API_TOKEN=abcdefgh12345678"])
def test_a_refusal_because_nobody_could_decide_is_sealed_and_honest(
    ledger: Ledger, tmp_path: Path, command: str
) -> None:
    answer = ask(ledger, action(command, tmp_path), decide=refuse("policy server 1 did not answer"))
    assert (answer.decision.decision, answer.reasons) == ("skip", ("policy server 1 did not answer",))
    assert ask(ledger, action("ls", tmp_path)).allows
    verdict = ledger.verify()
    assert verdict.status == "verified"
    assert verdict.check("decisions").reason == "1 made again, 1 not (1: it was refused without being judged)"


def test_after_an_outage_the_same_action_is_decided_as_usual(ledger: Ledger, tmp_path: Path) -> None:
    for _ in range(5):
        assert not ask(ledger, action("ls", tmp_path), decide=refuse("down")).allows
    assert ask(ledger, action("ls", tmp_path)).decision.decision == "pass"
    assert ledger.verify().status == "verified"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "pass"},
        {"decision": "human_approved"},
        {"decision": "human_review"},
        {"decision": "skipped"},
        {"session": {"labels": [], "changed": {}, "changed_files": [], "unseen": []}},
        {"score": 0.0},
        {"effects": ["read"]},
        {"policy": {"outcome": "allow", "rules": [], "bundle": "0" * 64, "reasons": [], "errors": []}},
        {"digest": "0" * 64},
    ],
    ids=str,
)
def test_nothing_else_passes_for_a_refusal_that_nobody_judged(
    ledger: Ledger, tmp_path: Path, changes: dict[str, Any]
) -> None:
    answer = ask(ledger, action("ls", tmp_path), decide=refuse("down"))
    content = answer.record.to_dict()
    content["outcome"]["result"].update(changes)
    reseal(ledger, content)
    verdict = ledger.verify()
    assert verdict.first_bad is not None
    assert (verdict.status, verdict.first_bad.check) == ("failed", "decisions")


def test_a_forged_refusal_cannot_take_a_label_off_the_session(ledger: Ledger, tmp_path: Path) -> None:
    assert not ask(ledger, action("cat .env", tmp_path)).allows
    facts = list(ledger.read("gate.s1"))[-1].to_dict()["outcome"]["result"]["session"]
    assert facts["labels"] == ["secret"]
    answer = ask(ledger, action("ls", tmp_path), decide=refuse("down"))
    content = answer.record.to_dict()
    content["outcome"]["result"]["session"] = {**facts, "labels": []}
    reseal(ledger, content)
    assert "has a session" in next(finding.words for finding in ledger.verify().findings)


def raise_error(error: Exception) -> Any:
    def ask_others(*given: Any, **more: Any) -> Decision:
        raise error

    return ask_others


def answer_for(**changes: Any) -> Any:
    def ask_others(given: Action, facts: Facts, gate: Gate, **more: Any) -> Decision:
        return replace(decide(given, facts, gate, **more), **changes)

    return ask_others


@pytest.mark.parametrize(
    ("decider", "words"),
    [
        (raise_error(Unavailable("policy server 0 is down")), "policy server 0 is down"),
        (raise_error(OSError("no route")), "OSError: no route"),
        (answer_for(gate_id="another"), "about another action"),
        (answer_for(digest="0" * 64), "about another action"),
        (answer_for(decision="human_approved"), "nobody has"),
    ],
    ids=range(5),
)
def test_a_decider_that_fails_or_answers_something_else_lets_nothing_through(
    ledger: Ledger, tmp_path: Path, decider: Any, words: str
) -> None:
    answer = ask(ledger, action("ls", tmp_path), decide=decider)
    assert answer.decision.decision == "skip"
    assert words in answer.reasons[0]
    assert ledger.verify().status == "verified"


def test_the_gateways_mode_is_to_enforce_whatever_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "observing"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[gate]\nmode = "observe"\n')
    with aver.open_ledger(home=home) as ledger:
        answer = ask(ledger, action("rm -r build", tmp_path, request_sha256=REQUEST))
        assert not answer.allows
        assert answer.record.to_dict()["outcome"]["result"]["mode"] == "enforce"
        assert "observe" not in (ledger.verify().check("decisions").reason or "")


# --- approvals of an action that carries out a request


def ask_act(ledger: Ledger, place: Path, action_id: str, **more: Any) -> Answer:
    given = action("rm -r build", place, call_id=action_id, request_sha256=more.pop("request_sha256", REQUEST))
    return ask(ledger, replace(given, **more), decide=answer_for())


def test_the_same_act_sent_later_meets_its_approval_once(ledger: Ledger, ada: Person, tmp_path: Path) -> None:
    first = ask_act(ledger, tmp_path, "a_first")
    assert first.request is not None
    approve(ledger, first.request, ada, shown=SHOWN)
    # The first act has expired meanwhile. The same request is sent again, as another act.
    second = ask_act(ledger, tmp_path, "a_second")
    assert (second.decision.decision, second.decision.digest) == ("human_approved", first.decision.digest)
    assert second.request is not None
    assert second.request.id == first.request.id
    assert second.approval is not None
    use = second.approval.to_dict()
    assert (use["outcome"]["result"]["call_id"], use["trigger"]["correlation_id"]) == ("a_second", "a_second")
    third = ask_act(ledger, tmp_path, "a_third")
    assert (third.decision.decision, third.approval) == ("human_review", None)
    assert third.request is not None
    assert third.request.id != first.request.id
    assert words_in(ledger) == ["human_review", "human_approved", "human_review"]
    verdict = ledger.verify()
    assert (verdict.status, verdict.check("approvals").status) == ("verified", "passed")


@pytest.mark.parametrize(
    "more", [{"request_sha256": "6" * 64}, {"request_sha256": ""}, {"session": "s2"}, {"caller": "eve"}], ids=str
)
def test_another_request_session_or_caller_does_not_meet_it(
    ledger: Ledger, ada: Person, tmp_path: Path, more: dict[str, str]
) -> None:
    first = ask_act(ledger, tmp_path, "a_first")
    assert first.request is not None
    approve(ledger, first.request, ada, shown=SHOWN)
    assert ask_act(ledger, tmp_path, "a_second", **more).decision.decision == "human_review"


@pytest.mark.parametrize("padding", [0, 20_000])
def test_an_act_is_approved_for_its_session_alone(ledger: Ledger, ada: Person, tmp_path: Path, padding: int) -> None:
    long = {"arguments": {"command": "rm -r build", "why": "x" * padding}}
    first = ask_act(ledger, tmp_path, "a_first", **long)
    assert first.request is not None
    assert (first.request.blob_digest("action") is not None) == bool(padding)
    with pytest.raises(Refused) as refusal:
        approve(ledger, first.request, ada, shown=SHOWN, scope="workspace")
    assert code_of(refusal) == "SCOPE_MISMATCH"
    state = approve(ledger, first.request, ada, shown=SHOWN, uses=2)
    assert (state.scope, state.uses) == ("session:s1", 2)


def test_a_workspace_scope_that_was_signed_elsewhere_counts_for_nothing(
    ledger: Ledger, ada: Person, tmp_path: Path
) -> None:
    first = ask_act(ledger, tmp_path, "a_first")
    request = first.request
    assert request is not None
    shown = aver.Blob(SHOWN.encode(), "text/plain; charset=utf-8")
    content = vote_content(request, "approve", ada.identity, shown.digest, scope="workspace")
    statement = sign_statement("approval", content, [ada.signer])
    result = {
        "v": 1,
        "request": request.id,
        "digest": request.digest,
        "decision": "approve",
        "approver": ada.identity,
        "custody": ada.custody,
        "level": 1,
        "comment": "",
        "shown": shown.reference,
    }
    authority = aver.Authority(type="human_approved", approver=ada.identity, chain=[statement.to_dict()])
    draft = Capsule(type="auth", authority=authority, outcome=aver.Outcome(status="success", result=result))
    ledger.append("approvals.default", of_kind(draft, "approval.decision"), blobs=[shown])
    assert load_request_state(ledger, request).state == "pending"
    assert ask_act(ledger, tmp_path, "a_second").decision.decision == "human_review"
    assert ledger.verify().check("approvals").status == "failed"


def test_a_caller_may_use_an_approval_itself_and_say_for_which_act(ledger: Ledger, ada: Person, tmp_path: Path) -> None:
    first = ask_act(ledger, tmp_path, "a_first")
    assert first.request is not None
    approve(ledger, first.request, ada, shown=SHOWN)
    used = consume(ledger, first.request, first.decision.digest, by="a_first", session="s1")
    assert used.to_dict()["outcome"]["result"]["call_id"] == "a_first"
    with pytest.raises(Refused) as refusal:
        consume(ledger, first.request, first.decision.digest, by="a_second", session="s1")
    assert code_of(refusal) == "REPLAY"


def test_the_records_of_an_approved_act_are_sealed_once(ledger: Ledger, ada: Person, tmp_path: Path) -> None:
    def beside(decision: Decision, record_id: str) -> list[Entry]:
        return [Entry(CHAIN, note(decision.decision, record_id))]

    act = action("rm -r build", tmp_path, request_sha256=REQUEST)
    first = ask(ledger, replace(act, call_id="a_1"), beside=beside)
    assert first.request is not None
    approve(ledger, first.request, ada, shown=SHOWN)
    ask(ledger, replace(act, call_id="a_2"), beside=beside)
    assert [record.to_dict()["outcome"]["result"]["text"] for record in ledger.read(CHAIN)] == [
        "human_review",
        "human_approved",
    ]


def test_an_approval_that_cannot_be_used_is_asked_for_anew(
    ledger: Ledger, ada: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another caller uses the approval between finding and using it."""
    first = ask_act(ledger, tmp_path, "a_first")
    assert first.request is not None
    approve(ledger, first.request, ada, shown=SHOWN)
    from aver.gate import approvals

    take_up = approvals.take_up_request

    def overtake(own: Ledger, request: Any, given: Action) -> None:
        take_up(own, request, given)
        monkeypatch.setattr(approvals, "take_up_request", take_up)
        consume(own, request, given.digest, by="a_faster", session="s1")

    monkeypatch.setattr(approvals, "take_up_request", overtake)
    second = ask_act(ledger, tmp_path, "a_second")
    assert (second.decision.decision, second.trouble) == ("human_review", "")
    assert second.request is not None
    assert second.request.id != first.request.id


def test_a_damaged_chain_of_approvals_does_not_keep_the_decision_from_being_sealed(
    ledger: Ledger, ada: Person, tmp_path: Path
) -> None:
    first = ask_act(ledger, tmp_path, "a_first")
    assert first.request is not None
    ledger.append(
        "approvals.default", of_kind(Capsule(type="auth", outcome=aver.Outcome(result={})), "approval.decision")
    )
    with pytest.raises(aver.AverError):
        ask_act(ledger, tmp_path, "a_second")
    assert words_in(ledger) == ["human_review", "human_review"]


def test_a_scope_that_is_none_is_bad_input(ledger: Ledger, ada: Person, tmp_path: Path) -> None:
    first = ask_act(ledger, tmp_path, "a_first")
    assert first.request is not None
    with pytest.raises(BadInput):
        approve(ledger, first.request, ada, shown=SHOWN, scope="session:s2")
