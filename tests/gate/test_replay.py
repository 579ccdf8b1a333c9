"""What a verdict on a ledger says of the gate's own records: decisions are made again, approvals held to their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Ledger
from aver.clock import new_id
from aver.gate.action import Action
from aver.gate.approvals import approve
from aver.gate.ask import ask
from aver.gate.decision_record import seal_decision
from support.approvals import enrolled, somebody


@pytest.fixture
def asked(ledger: Ledger, tmp_path: Path) -> Any:
    def ask_about(command: str) -> Any:
        action = Action(
            type="shell_exec", tool="Bash", arguments={"command": command}, session="s1", workspace=str(tmp_path)
        )
        return ask(ledger, action)

    return ask_about


def status(ledger: Ledger, check: str) -> str:
    return ledger.verify().check(check).status


def test_honest_decisions_and_approvals_hold(ledger: Ledger, asked: Any) -> None:
    ada = somebody("ada")
    enrolled(ledger, ada)
    ledger.keys.trust(ada.public)
    asked("ls")
    first = asked("rm -r build")
    approve(ledger, first.request, ada, shown="rm -r build")
    assert asked("rm -r build").allows
    verdict = ledger.verify()
    assert verdict.check("decisions").status == "passed"
    assert verdict.check("approvals").status == "passed"
    assert verdict.status == "verified"
    assert aver.verify(ledger).status == "verified"
    assert ledger.verify("gate.s1").check("decisions").status == "passed"


@pytest.mark.parametrize("name", ["token", "passwd", "secret.py"])
def test_links_and_scripts_whose_names_sound_secret_are_no_secrets(
    ledger: Ledger, asked: Any, tmp_path: Path, name: str
) -> None:
    (tmp_path / "real").write_text("print(1)\n")
    (tmp_path / name).symlink_to("real")
    asked(f"cat {name}")
    facts = asked(f"python3 {name}").record.to_dict()["outcome"]["result"]["facts"]
    assert facts["links"] == {str(tmp_path / name): str(tmp_path / "real")}
    verdict = ledger.verify()
    assert (verdict.status, verdict.check("decisions").status) == ("verified", "passed")


def test_an_approval_whose_persons_key_is_not_known_is_not_called_checked(ledger: Ledger, asked: Any) -> None:
    ada = somebody("ada")
    enrolled(ledger, ada)
    approve(ledger, asked("rm -r build").request, ada, shown="rm -r build")
    assert ledger.verify().status == "qualified"
    assert status(ledger, "approvals") == "not_checked"


def forged(ledger: Ledger, answer: Any, **changes: Any) -> None:
    """Seal, with the ledger's own key, a decision like the given one that says something else."""
    content = answer.record.to_dict()
    content["outcome"]["result"].update(changes)
    reseal(ledger, content)


def reseal(ledger: Ledger, content: dict[str, Any]) -> None:
    content["id"] = new_id()
    content["context"]["environment"]["aver"] = {"kind": "gate.decision"}
    ledger.append("gate.s1", aver.Capsule.from_dict(content))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "pass"},
        {"decision": "human_approved"},
        {"score": 0.0},
        {"policy": None},
        {"session": {"labels": [], "changed": {}, "changed_files": ["x"]}},
        {"digest": "0" * 64},
        {"thresholds": {"pass_below": 1.0, "skip_above": None}, "decision": "pass"},
    ],
    ids=range(7),
)
def test_a_decision_that_was_never_made_fails_although_it_is_sealed(
    ledger: Ledger, asked: Any, changes: dict[str, Any]
) -> None:
    answer = asked("rm -r build")
    assert ledger.verify().status == "verified"
    forged(ledger, answer, **changes)
    verdict = ledger.verify()
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    assert (verdict.first_bad.check, verdict.first_bad.code) == ("decisions", "EVIDENCE_INVALID")
    assert str(verdict.first_bad.place) == "chain gate.s1, sequence 1"


@pytest.mark.parametrize("result", [None, 3, [], {}, {"masked": {"count": 0}}, {"masked": 1}])
def test_a_decision_that_is_none_is_told_of(ledger: Ledger, asked: Any, result: Any) -> None:
    answer = asked("ls")
    content = answer.record.to_dict()
    content["outcome"]["result"] = result
    reseal(ledger, content)
    assert status(ledger, "decisions") == "failed"


def test_what_nobody_can_make_again_is_counted(ledger: Ledger, asked: Any) -> None:
    asked("ls")
    asked("export API_TOKEN=abcdefgh12345678")
    check = ledger.verify().check("decisions")
    assert (check.status, check.reason) == ("passed", "1 made again, 1 not (1: secrets were masked in it)")


def test_a_masked_decision_must_still_fit_what_policy_said(ledger: Ledger, asked: Any) -> None:
    forged(ledger, asked("export API_TOKEN=abcdefgh12345678; rm -r build"), decision="pass")
    assert status(ledger, "decisions") == "failed"


def test_a_human_who_never_approved_is_missed(ledger: Ledger, asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate's own code, told that a human approved: made again it comes out the same, and still fails."""
    from dataclasses import replace

    from aver.gate.ask import load_gate
    from aver.gate.decide import decide
    from aver.gate.facts.surroundings import gather_facts

    answer = asked("rm -r build")
    action = Action(
        type="shell_exec",
        tool="Bash",
        arguments={"command": "rm -r build"},
        session="s1",
        workspace=answer.record.to_dict()["outcome"]["result"]["action"]["workspace"],
    )
    gate = load_gate(ledger.config, action.workspace)
    facts = replace(gather_facts(ledger, action, gate, {}).facts, approved=True)
    seal_decision(ledger, action, facts, gate, decide(action, facts, gate))
    verdict = ledger.verify()
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    assert "no approval of it was used" in verdict.first_bad.words


def test_a_ledger_without_a_gate_has_no_such_checks(ledger: Ledger) -> None:
    ledger.append("a.b", aver.Capsule(type="tool"))
    assert {check.name for check in ledger.verify().checks}.isdisjoint({"decisions", "approvals"})


@pytest.mark.parametrize("size", [100, 20_000, 400_000])
def test_long_arguments_are_judged_again_as_they_were(ledger: Ledger, tmp_path: Path, size: int) -> None:
    arguments = {"file_path": "a.txt", "content": "é" * size, "edits": [{"new": "y" * size}]}
    action = Action(type="file_write", tool="Write", arguments=arguments, session="s1", workspace=str(tmp_path))
    ask(ledger, action)
    verdict = ledger.verify()
    assert (verdict.status, verdict.check("decisions").status) == ("verified", "passed")


def test_an_argument_that_looks_like_a_blob_is_one_argument_like_any_other(ledger: Ledger, tmp_path: Path) -> None:
    blob = aver.Blob(b"abc", "text/plain; charset=utf-8")
    draft = aver.Capsule(type="tool", outcome=aver.Outcome(result=blob.reference))
    ledger.append("notes.a", draft, blobs=[blob])
    reference = blob.reference
    action = Action(type="tool_call", tool="x", arguments={"a": {"x": reference}}, workspace=str(tmp_path))
    ask(ledger, action)
    assert status(ledger, "decisions") == "passed"
