"""Ways past the gate that somebody tried: a session's past that is washed clean, approvals and records that are forged,
links beyond what is followed. Each was let through once."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Ledger
from aver.clock import new_id
from aver.gate.action import Action
from aver.gate.approvals import approve
from aver.gate.ask import Answer, ask
from aver.gate.decision_record import decision_chain
from aver.gate.facts.session import LOOK_BACK
from aver.gate.outcomes.reports import record_outcome
from support.approvals import enrolled, somebody

SECRET = {"type": "file_read", "tool": "Read", "files": (".env",)}
HARMLESS = {"type": "file_read", "tool": "Read", "files": ("src/a.py",)}
CARRIES_AWAY = {"type": "shell_exec", "tool": "Bash", "arguments": {"command": "pytest -q"}}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    (place / "src").mkdir(parents=True)
    return place


@pytest.fixture
def asked(ledger: Ledger, workspace: Path) -> Any:
    def ask_about(action: dict[str, Any], **more: Any) -> Answer:
        return ask(ledger, Action(**{"session": "s1", "workspace": str(workspace), **action, **more}))

    return ask_about


def is_marked(answer: Answer) -> bool:
    """Whether the session was known to have seen a secret."""
    return answer.decision.policy is not None and "egress-after-secret" in answer.decision.policy.rules


# --- a past that is washed clean


@pytest.mark.parametrize("arguments", [{"x": float("nan")}, {"x": "\ud800"}, {"x": {1, 2}}], ids=range(3))
def test_an_action_that_cannot_be_judged_does_not_wash_the_session(
    ledger: Ledger, asked: Any, arguments: dict[str, Any]
) -> None:
    asked(SECRET)
    asked(HARMLESS, arguments=arguments)
    assert is_marked(asked(CARRIES_AWAY))
    assert ledger.verify().status == "verified"


def test_records_of_other_kinds_do_not_wash_the_session(ledger: Ledger, asked: Any) -> None:
    earlier = [asked(HARMLESS) for _ in range(LOOK_BACK // 2)]
    asked(SECRET)
    for answer in earlier:
        record_outcome(ledger, answer.decision.gate_id, "failed")
    for _ in range(LOOK_BACK):
        ledger.append("gate.s1", aver.Capsule(type="tool"))
    assert is_marked(asked(CARRIES_AWAY))


@pytest.mark.parametrize("name", ["default", "x-" + "0" * 32, "a/b"])
def test_no_session_can_take_the_chain_of_another(asked: Any, name: str) -> None:
    chain = decision_chain(name)
    asked(SECRET, session=name)
    for other in ("", "default", chain.partition(".")[2]):
        if other != name:
            assert decision_chain(other) != chain
            asked(HARMLESS, session=other)
    assert is_marked(asked(CARRIES_AWAY, session=name))


def test_actions_side_by_side_do_not_wash_the_session(ledger: Ledger, asked: Any) -> None:
    """What was decided while another decision was being made counts for it, and for what comes after both."""
    failed: list[BaseException] = []

    def ask_safely(action: dict[str, Any]) -> None:
        try:
            asked(action)
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=ask_safely, args=(action,)) for action in [HARMLESS] * 3 + [SECRET] + [HARMLESS] * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    results = [record.to_dict()["outcome"]["result"] for record in ledger.read("gate.s1")]
    before: list[str] = []
    for result in results:
        assert result["facts"]["labels"] == before
        before = result["session"]["labels"]
    assert before == ["secret"]


def test_a_secret_seen_while_a_human_was_asked_needs_a_new_answer(ledger: Ledger, asked: Any) -> None:
    ada = somebody("ada")
    enrolled(ledger, ada)
    request = asked(CARRIES_AWAY, arguments={"command": "make deploy"}).request
    asked(SECRET)
    approve(ledger, request, ada, shown="make deploy")
    answer = asked(CARRIES_AWAY, arguments={"command": "make deploy"})
    assert answer.decision.decision == "human_review"
    assert answer.record.to_dict()["outcome"]["result"]["facts"]["labels"] == ["secret"]
    assert is_marked(asked(CARRIES_AWAY))


# --- records that are forged


def resealed(ledger: Ledger, answer: Answer, **changes: Any) -> None:
    """Seal, with the ledger's own key, a decision like the given one that says something else."""
    content = answer.record.to_dict()
    content["id"] = new_id()
    content["context"]["environment"]["aver"] = {"kind": "gate.decision"}
    content["outcome"]["result"].update(changes)
    ledger.append(answer.record.chain, aver.Capsule.from_dict(content))


def test_a_decision_that_forgets_its_sessions_past_is_found(ledger: Ledger, asked: Any) -> None:
    clean = asked(HARMLESS)
    asked(SECRET)
    assert ledger.verify().status == "verified"
    resealed(ledger, clean)  # As it was decided; only not here.
    verdict = ledger.verify()
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    assert (verdict.first_bad.check, str(verdict.first_bad.place)) == ("decisions", "chain gate.s1, sequence 2")


def test_a_decision_that_forgets_its_past_is_found_by_whoever_goes_on_from_there(ledger: Ledger, asked: Any) -> None:
    clean = asked(HARMLESS)
    asked(SECRET)
    assert ledger.verify(since="last").status == "verified"
    resealed(ledger, clean)
    assert ledger.verify(since="last").status == "failed"


def test_a_session_cannot_be_in_the_chain_of_another(ledger: Ledger, asked: Any) -> None:
    clean = asked(HARMLESS, session="s2").record.to_dict()
    asked(SECRET)
    clean["id"] = new_id()
    clean["context"]["environment"]["aver"] = {"kind": "gate.decision"}
    ledger.append("gate.s1", aver.Capsule.from_dict(clean))
    assert ledger.verify().status == "failed"


def test_masks_that_are_not_there_excuse_nothing(ledger: Ledger, asked: Any) -> None:
    answer = asked(CARRIES_AWAY, arguments={"command": "rm -r build"})
    policy = {**answer.record.to_dict()["outcome"]["result"]["policy"], "outcome": "allow", "rules": ["harmless"]}
    resealed(ledger, answer, decision="pass", policy=policy, masked={"rules": 1, "count": 1})
    assert ledger.verify().status == "failed"


def test_what_is_masked_excuses_no_other_answer_in_silence(ledger: Ledger, asked: Any) -> None:
    answer = asked(CARRIES_AWAY, arguments={"command": "export API_TOKEN='abcdefgh12345678'; rm -r build"})
    assert ledger.verify().status == "verified"
    policy = {**answer.record.to_dict()["outcome"]["result"]["policy"], "outcome": "allow", "rules": ["harmless"]}
    resealed(ledger, answer, decision="pass", policy=policy)
    assert ledger.verify().status == "qualified"


def test_a_mask_in_a_text_that_was_moved_is_a_mask(ledger: Ledger, asked: Any) -> None:
    asked({"type": "tool_call", "tool": "Task", "arguments": {"prompt": "x " * 20_000 + "password=hunter22hunter"}})
    assert ledger.verify().status == "verified"


# --- links


def test_every_path_is_followed_however_many_there_are(workspace: Path, asked: Any) -> None:
    os.symlink("/proc/1/status", workspace / "src" / "last.txt")
    files = tuple(f"src/{number}.txt" for number in range(200))
    assert asked({"type": "file_read", "tool": "Read", "files": files}).allows
    assert not asked({"type": "file_read", "tool": "Read", "files": (*files, "src/last.txt")}).allows


@pytest.mark.parametrize("leads_to", ["/proc/1/status", ".env", "credentials.json"])
def test_a_pattern_is_judged_by_what_it_matches(workspace: Path, asked: Any, leads_to: str) -> None:
    command = {"type": "shell_exec", "tool": "Bash", "arguments": {"command": "cat src/*"}}
    (workspace / "src" / "a.txt").write_text("x")
    assert asked(command).allows
    if leads_to == "credentials.json":
        (workspace / "src" / leads_to).write_text("{}")
    else:
        os.symlink(leads_to if leads_to.startswith("/") else workspace / leads_to, workspace / "src" / "b.txt")
    assert not asked(command).allows


def test_a_path_that_no_system_can_open_is_refused_and_sealed(ledger: Ledger, asked: Any) -> None:
    answer = asked(HARMLESS, files=("\ud800.py",))
    assert answer.decision.decision == "skip"
    assert ledger.head("gate.s1").count == 1


def test_a_pattern_that_would_take_long_to_look_up_is_not_believed(workspace: Path, asked: Any) -> None:
    assert not asked({"type": "shell_exec", "tool": "Bash", "arguments": {"command": f"cat {'*/' * 30}x"}}).allows


# --- what no record can hold


@pytest.mark.parametrize(
    "action",
    [
        {"type": "file_read", "tool": "Read", "arguments": {f"k{number}": "x" * 20 for number in range(20_000)}},
        {"type": "file_read", "tool": "Read", "files": tuple("x" * 200 + str(number) for number in range(5000))},
    ],
    ids=["arguments", "files"],
)
def test_an_action_too_large_for_a_record_is_refused_and_sealed(
    ledger: Ledger, asked: Any, action: dict[str, Any]
) -> None:
    asked(SECRET)
    answer = asked(action)
    assert answer.decision.decision == "skip"
    assert ledger.head("gate.s1").count == 2
    assert ledger.verify().status == "verified"
    assert is_marked(asked(CARRIES_AWAY))
