"""The runtime: recording, chaining, gating, and what a run may claim in the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import AgentAction, AgentRuntime, BadInput, Refused
from aver.actions.encodings import METADATA_INLINE, receipt_hash
from aver.actions.proofs.inclusion import inclusion_document
from aver.actions.run_state import load_run_from_path
from aver.gate.approvals import approve, recent_requests
from support.approvals import enrolled, somebody
from support.runs import DIFF, A, codes_of, record_actions

PLAIN = replace(A, gate_score=None, gate_decision=None, policy_verdict=None)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    opened = AgentRuntime(tmp_path / "run", workspace=tmp_path)
    yield opened
    opened.close()


def lines(run: AgentRuntime) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.output_dir / "actions.jsonl").read_text().splitlines()]


def test_actions_are_chained_and_written(run: AgentRuntime) -> None:
    receipts = record_actions(run, 4)
    written = lines(run)
    assert [line["receipt_hash"] for line in written] == receipts
    assert [line["parent_receipt_hash"] for line in written] == [None, *receipts[:-1]]
    assert [line["parent_action_id"] for line in written] == [None, *(line["action_id"] for line in written[:-1])]
    assert run.last_receipt_hash == receipts[-1]
    assert run.action_count == 4
    assert run.last_action == run.actions[-1]
    assert [action.action_id[:9] for action in run.actions] == ["act_0000_", "act_0001_", "act_0002_", "act_0003_"]


def test_each_action_is_a_capsule_in_the_runs_chain(run: AgentRuntime, ledger: aver.Ledger) -> None:
    record_actions(run, 3)
    records = list(ledger.read(run.chain))
    assert [record.kind for record in records] == ["run.open", "action", "action", "action"]
    assert run.chain == f"actions.{run.run_id}"
    content = records[2].to_dict()
    assert content["type"] == "tool"
    assert content["outcome"]["result"]["action"] == run.actions[1].to_dict()
    assert content["outcome"]["result"]["receipt_hash"] == receipt_hash(run.actions[1])
    assert content["context"]["session_id"] == run.run_id
    assert ledger.verify().status == "verified"


def test_auto_chain_fills_what_is_missing_and_refuses_what_is_wrong(run: AgentRuntime) -> None:
    first = run.record(PLAIN)
    run.record(replace(PLAIN, action_id="b"))
    assert run.actions[1].parent_receipt_hash == first
    last = run.last_receipt_hash
    assert last is not None
    run.record(replace(PLAIN, action_id="c", parent_action_id="b", parent_receipt_hash=last))
    for wrong in (
        {"parent_action_id": "b", "parent_receipt_hash": first},
        {"parent_action_id": "act_0001", "parent_receipt_hash": first},
        {"parent_action_id": "c"},
        {"parent_receipt_hash": run.last_receipt_hash},
    ):
        with pytest.raises(Refused) as refusal:
            run.record(replace(PLAIN, action_id="d", **wrong))
        assert refusal.value.code == "PARENT_WRONG"
    assert run.action_count == 3


def test_a_parent_before_the_first_action_is_refused(run: AgentRuntime) -> None:
    with pytest.raises(Refused):
        run.record(replace(PLAIN, parent_action_id="x", parent_receipt_hash="0" * 64))


def test_without_auto_chain_parents_must_be_given(tmp_path: Path) -> None:
    with AgentRuntime(tmp_path / "run", auto_chain=False) as run:
        first = run.record(PLAIN)
        with pytest.raises(Refused) as refusal:
            run.record(replace(PLAIN, action_id="b"))
        assert refusal.value.code == "PARENT_MISSING"
        run.record(replace(PLAIN, action_id="b", parent_action_id="act_0001", parent_receipt_hash=first))
        run.record_simple("command", "do", None, None)
        assert run.actions[2].parent_action_id == "b"


def test_an_id_is_used_once(run: AgentRuntime) -> None:
    run.record(PLAIN)
    with pytest.raises(Refused) as refusal:
        run.record(PLAIN)
    assert refusal.value.code == "DUPLICATE_ACTION"
    assert run.action_count == len(lines(run)) == 1


def test_metadata_are_masked_and_the_receipt_is_not_touched(run: AgentRuntime) -> None:
    secret = "ghp_" + "a1B2" * 9
    run.record_simple("command", "push", {"token": secret}, "ok", metadata={"description": f"use {secret}"})
    assert secret not in (run.output_dir / "actions.jsonl").read_text()
    action = run.last_action
    assert action is not None
    assert secret not in json.dumps(action.metadata)
    run.finalize()
    assert run.verify().status == "verified"


def test_large_metadata_lie_beside_the_capsule_and_are_bound(run: AgentRuntime) -> None:
    metadata = {"text": "x" * (3 * METADATA_INLINE), "n": 1}
    run.record_simple("command", "do", {}, {}, metadata=metadata)
    run.record_simple("command", "do", {}, {}, metadata={"blob": {"alg": "sha256"}})
    told = run.finalize()
    assert told["verdict"] == "verified"
    assert run.actions[0].metadata == metadata
    again = AgentRuntime(run.output_dir)
    assert again.actions == run.actions
    again.close()
    path = run.output_dir / "actions.jsonl"
    path.write_text(path.read_text().replace('"n":1,', '"n":2,', 1))
    assert run.verify().status == "failed"


def test_numbers_that_few_programs_write_alike(run: AgentRuntime) -> None:
    metadata = {"huge": 2**70, "tiny": 1e-7, "small": 2e-05, "big": 1e22, "minus": -0.0, "one": 1.0}
    run.record_simple("command", "do", {}, {}, metadata=metadata, gate_score=1e-7)
    assert run.finalize()["verdict"] == "qualified"
    assert aver.verify(run.output_dir / "run.cap").first_bad is None
    assert aver.verify(run.run_id).first_bad is None


def test_metadata_that_are_not_json_are_refused_before_anything_is_sealed(run: AgentRuntime) -> None:
    for bad in ({"a": b"x"}, {"a": float("nan")}, {"a": {1: 2}}, {"a": "\ud800"}):
        with pytest.raises(BadInput):
            run.record_simple("command", "do", {}, {}, metadata=bad)
    assert run.action_count == 0
    record_actions(run, 1)


# --- gates


def test_a_gated_action_is_bound_to_its_decision(run: AgentRuntime, ledger: aver.Ledger) -> None:
    answer = run.gate(DIFF, description="speed it up")
    assert answer["decision"] == "pass"
    assert answer["allows"] is True
    assert {"q", "uncertainty", "decision", "grid_idx", "reason"} <= answer.keys()
    run.record_simple("code_edit", "speed it up", {}, "done", gate_id=answer["gate_id"], diff_text=DIFF)
    action = run.last_action
    assert action is not None
    assert (action.gate_decision, action.gate_score) == ("pass", answer["q"])
    assert action.policy_verdict == "POLICY_ENFORCED"
    record = list(ledger.read(run.chain))[-1].to_dict()
    decision = ledger.get(answer["record"])
    assert decision is not None
    assert record["parent_id"] == decision.id
    assert record["outcome"]["result"]["gate"]["record"] == decision.hash
    told = run.finalize()
    assert (told["policy_verdict"], told["verdict"]) == ("FULLY_VERIFIED", "verified")


def test_decisions_survive_a_restart(run: AgentRuntime) -> None:
    answer = run.gate(DIFF, description="speed it up")
    again = AgentRuntime(run.output_dir)
    again.record_simple("code_edit", "speed it up", {}, "done", gate_id=answer["gate_id"])
    assert again.last_action is not None
    assert again.last_action.policy_verdict == "POLICY_ENFORCED"
    again.close()


def test_a_decision_that_is_not_there(run: AgentRuntime) -> None:
    with pytest.raises(aver.NotFound):
        run.record(PLAIN, gate_id="no-such-id")
    with pytest.raises(aver.NotFound):
        run.record(PLAIN, gate_id="\ud800")
    assert run.action_count == 0


def verdict_of(run: AgentRuntime) -> aver.Verdict:
    told = run.finalize()
    verdict = aver.verify(run.output_dir / "run.cap")
    assert told["verdict"] == verdict.status
    return verdict


def test_an_action_that_was_refused_and_done_is_named(run: AgentRuntime, aver_home: Path) -> None:
    answer = run.gate(action_type="file_write", files=[str(aver_home / "ledger.db")])
    assert answer["decision"] == "skip"
    run.record_simple("file_write", "do it all the same", {}, "done", gate_id=answer["gate_id"])
    assert run.last_action is not None
    assert run.last_action.policy_verdict is None
    verdict = verdict_of(run)
    assert codes_of(verdict) == {"ROLE_POLICY_VIOLATION"}
    assert verdict.first_bad is not None
    assert "act_0000" in verdict.first_bad.words


def test_an_action_that_was_refused_and_left_undone_is_fine(run: AgentRuntime, aver_home: Path) -> None:
    answer = run.gate(action_type="file_write", files=[str(aver_home / "ledger.db")])
    run.record_simple("file_write", "asked", {}, {"skipped": True}, success=False, gate_id=answer["gate_id"])
    verdict = verdict_of(run)
    assert verdict.status == "verified"
    told = json.loads((run.output_dir / "manifest.json").read_text())
    assert told["policy_verdict"] == "PROOF_ONLY"


def test_an_action_that_a_human_should_have_seen(run: AgentRuntime) -> None:
    answer = run.gate(action_type="shell_exec", tool="Bash", arguments={"command": "rm -rf /"})
    assert answer["decision"] == "human_review"
    run.record_simple("shell_exec", "clean", {"command": "rm -rf /"}, "done", gate_id=answer["gate_id"])
    assert codes_of(verdict_of(run)) == {"ROLE_POLICY_VIOLATION"}


def test_an_action_that_a_human_has_approved(tmp_path: Path, ledger: aver.Ledger) -> None:
    ada = somebody("ada")
    enrolled(ledger, ada)
    ledger.keys.trust(ada.public)
    run = AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
    deed = {"action_type": "shell_exec", "tool": "Bash", "arguments": {"command": "rm -r build"}}
    assert run.gate(**deed)["decision"] == "human_review"
    approve(ledger, next(iter(recent_requests(ledger))), ada, shown="rm -r build")
    answer = run.gate(**deed)
    assert answer["decision"] == "human_approved"
    run.record_simple("shell_exec", "clean up", deed["arguments"], "done", gate_id=answer["gate_id"])
    assert run.last_action is not None
    assert run.last_action.policy_verdict == "POLICY_ENFORCED"
    verdict = verdict_of(run)
    assert verdict.status == "verified", verdict.to_dict()
    assert "1 approved by a human" in verdict.check("gates").reason


OTHER_DEEDS: dict[str, dict[str, Any]] = {
    "type": {"action_type": "command"},
    "instruction": {"instruction": "something else"},
    "input": {"inputs": {"command": "rm -rf /"}},
    "diff": {"diff_text": DIFF.replace("fast", "evil")},
}


@pytest.mark.parametrize("deed", OTHER_DEEDS)
def test_an_action_that_is_not_what_was_gated_is_named(run: AgentRuntime, deed: str) -> None:
    """A decision about one thing does not cover another."""
    answer = run.gate(DIFF, description="speed it up", arguments={"path": "parse.py"})
    given = {
        "action_type": "code_edit",
        "instruction": "speed it up",
        "inputs": {"path": "parse.py"},
        "diff_text": DIFF,
    }
    given |= OTHER_DEEDS[deed]
    run.record_simple(**given, outputs="done", gate_id=answer["gate_id"])
    assert run.last_action is not None
    assert run.last_action.policy_verdict is None
    verdict = verdict_of(run)
    assert codes_of(verdict) == {"EVIDENCE_INVALID"}


def test_a_decision_about_nothing_in_particular_bears_nothing_out(run: AgentRuntime) -> None:
    gates = [run.gate(action_type="file_read", files=["notes.txt"])["gate_id"] for _ in range(2)]
    run.record_simple("file_read", "read anything", {"any": "thing"}, "out", gate_id=gates[0])
    named = {"files_affected": ["notes.txt"]}
    run.record_simple("file_read", "read the notes", {}, "out", metadata=named, gate_id=gates[1])
    assert [action.policy_verdict for action in run.actions] == [None, "POLICY_ENFORCED"]
    assert verdict_of(run).status == "verified"


def test_a_decision_about_one_file_does_not_cover_another(run: AgentRuntime) -> None:
    answer = run.gate(action_type="file_read", files=["notes.txt"], description="read it")
    other = {"files_affected": ["secrets.txt"]}
    run.record_simple("file_read", "read it", {}, "out", metadata=other, gate_id=answer["gate_id"])
    assert run.actions[0].policy_verdict is None
    assert codes_of(verdict_of(run)) == {"EVIDENCE_INVALID"}


def test_a_decision_is_good_once(run: AgentRuntime) -> None:
    answer = run.gate(DIFF, description="speed it up")
    for _ in range(2):
        run.record_simple("code_edit", "speed it up", {}, "done", gate_id=answer["gate_id"])
    assert [action.policy_verdict for action in run.actions] == ["POLICY_ENFORCED", None]
    assert codes_of(verdict_of(run)) == {"REPLAY"}


def test_a_decision_is_good_once_in_all_runs(tmp_path: Path, ledger: aver.Ledger) -> None:
    runs = [AgentRuntime(tmp_path / name, ledger=ledger, workspace=tmp_path) for name in ("one", "two")]
    answer = runs[0].gate(DIFF, description="speed it up")
    for run in runs:
        run.record_simple("code_edit", "speed it up", {}, "done", gate_id=answer["gate_id"])
    assert [run.actions[0].policy_verdict for run in runs] == ["POLICY_ENFORCED", None]
    told = [run.finalize() for run in runs]
    assert [one["policy_verdict"] for one in told] == ["FULLY_VERIFIED", "PROOF_ONLY"]
    assert [codes_of(aver.verify(run.output_dir / "run.cap")) for run in runs] == [set(), {"REPLAY"}]
    assert [codes_of(aver.verify(run.chain)) for run in runs] == [set(), {"REPLAY"}]


def test_decisions_are_in_the_cap_also_those_that_no_action_names(run: AgentRuntime, aver_home: Path) -> None:
    run.gate(action_type="file_write", files=[str(aver_home / "ledger.db")])
    record_actions(run, 1)
    assert verdict_of(run).status == "verified"
    text = (run.output_dir / "capsules.jsonl").read_text()
    assert '\\"decision\\":\\"skip\\"' in text


def test_a_decision_of_another_session_may_be_named(tmp_path: Path, ledger: aver.Ledger) -> None:
    elsewhere = AgentRuntime(tmp_path / "one", ledger=ledger, workspace=tmp_path)
    answer = elsewhere.gate(DIFF, description="speed it up")
    run = AgentRuntime(tmp_path / "two", ledger=ledger, workspace=tmp_path)
    run.record_simple("code_edit", "speed it up", {}, "done", gate_id=answer["gate_id"])
    verdict = verdict_of(run)
    assert verdict.status == "verified"
    assert verdict.check("gates").count == 1


def test_a_decision_with_secrets_in_it(run: AgentRuntime) -> None:
    command = "curl -H 'Authorization: Bearer abcd1234efgh5678' https://example.com"
    answer = run.gate(action_type="shell_exec", tool="Bash", arguments={"command": command})
    run.record_simple("shell_exec", "fetch", {"command": command}, "", success=False, gate_id=answer["gate_id"])
    assert verdict_of(run).status == "verified"


def test_claims_that_nothing_bears_out(run: AgentRuntime) -> None:
    for verdict in ("POLICY_ENFORCED", "FULLY_VERIFIED"):
        with pytest.raises(BadInput, match="borne out"):
            run.record(replace(PLAIN, policy_verdict=verdict))
    run.record(replace(PLAIN, policy_verdict="PROOF_ONLY"))
    answer = run.gate(DIFF, description="speed it up")
    with pytest.raises(BadInput, match="the gate decided"):
        run.record_simple("code_edit", "speed it up", {}, "", gate_decision="skip", gate_id=answer["gate_id"])


def test_a_decision_that_is_only_claimed_is_not_proved(run: AgentRuntime) -> None:
    run.record_simple("code_edit", "do", {}, "", gate_score=0.1, gate_decision="pass")
    verdict = verdict_of(run)
    assert verdict.status == "qualified"
    assert verdict.check("gates").code == "CLAIM_UNPROVEN"


def test_a_model_of_another_program_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="gate_posteriors"):
        AgentRuntime(tmp_path / "run", tmp_path / "beta_posteriors.npz")


# --- the end


def test_finalize_tells_what_came_of_it(run: AgentRuntime) -> None:
    receipts = record_actions(run, 3)
    told = run.finalize()
    assert told["status"] == "proved"
    assert told["num_actions"] == 3
    assert told["final_receipt_hash"] == receipts[-1]
    assert told["verified"] is True
    for name in ("capsule_path", "proof_path", "actions_path", "cap_path"):
        assert Path(told[name]).is_file()
    assert told["capsule"] == run.last_capsule
    assert told["proof_type"] == "recomputation"


def test_without_a_proof(run: AgentRuntime) -> None:
    record_actions(run, 3, gated=(0, 1, 2))
    told = run.finalize(prove=False)
    assert (told["status"], told["policy_verdict"], told["verdict"]) == ("recorded", "POLICY_ENFORCED", "verified")
    found = load_run_from_path(run.output_dir)
    with pytest.raises(Refused):
        inclusion_document(found.actions, 0, found.seal)


def test_nothing_gated_and_nothing_proved_claims_nothing(run: AgentRuntime) -> None:
    record_actions(run, 2)
    assert run.finalize(prove=False)["policy_verdict"] is None


def test_an_empty_run_is_not_sealed(run: AgentRuntime) -> None:
    assert run.finalize()["status"] == "empty"
    record_actions(run, 1)
    assert run.finalize()["status"] == "proved"


def test_a_sealed_run_takes_no_more(run: AgentRuntime) -> None:
    record_actions(run, 2)
    run.finalize()
    for more in (lambda: record_actions(run, 1), lambda: run.gate(description="more")):
        with pytest.raises(Refused) as refusal:
            more()
        assert refusal.value.code == "SEALED"
    again = AgentRuntime(run.output_dir)
    assert again.last_capsule == run.last_capsule
    again.close()


def test_a_runtime_that_was_closed_meanwhile_records_and_says_what_is_missing(
    tmp_path: Path, ledger: aver.Ledger
) -> None:
    """As a server does that lets go of a session while one of its calls is under way."""
    run = AgentRuntime(tmp_path / "run", ledger=ledger)
    record_actions(run, 1)
    run.close()
    record_actions(run, 1)
    assert run.trouble is not None
    assert len(lines(run)) == 1
    assert verdict_of(run).status == "verified"
    assert len(lines(run)) == 2


def test_the_context_manager_seals(tmp_path: Path) -> None:
    with AgentRuntime(tmp_path / "run") as run:
        record_actions(run, 2)
    assert aver.verify(tmp_path / "run").status == "verified"


def test_the_context_manager_seals_what_was_done_before_an_error(tmp_path: Path) -> None:
    def work() -> None:
        with AgentRuntime(tmp_path / "run") as run:
            record_actions(run, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert aver.verify(tmp_path / "run" / "run.cap").status == "verified"


def test_the_same_files_give_the_same_bytes(run: AgentRuntime) -> None:
    record_actions(run, 3)
    run.finalize()
    cap = (run.output_dir / "run.cap").read_bytes()
    (run.output_dir / "run.cap").unlink()
    (run.output_dir / "capsules.jsonl").unlink()
    AgentRuntime(run.output_dir).close()
    assert (run.output_dir / "run.cap").read_bytes() == cap


def test_a_directory_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "actions.jsonl").write_text('{"action_id": "x"}\n')
    with pytest.raises(BadInput, match="not a run of Aver"):
        AgentRuntime(tmp_path)
    (tmp_path / "actions.jsonl").unlink()
    for text in ("", "{}", "[]", '{"v":1}', '{"v":1,"run_id":"","chain":"x","ledger":"x","tenant":"x"}', "\xff"):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(BadInput):
            AgentRuntime(tmp_path)


def test_a_run_of_another_ledger(tmp_path: Path, ledger: aver.Ledger) -> None:
    AgentRuntime(tmp_path / "run", ledger=ledger).close()
    with pytest.raises(BadInput, match="another ledger"):
        AgentRuntime(tmp_path / "run", ledger=tmp_path / "other.db")
    with pytest.raises(BadInput, match="holds the run"):
        AgentRuntime(tmp_path / "run", ledger=ledger, run_id="run_other")


def test_any_run_id_has_a_chain(tmp_path: Path, ledger: aver.Ledger) -> None:
    run = AgentRuntime(tmp_path / "run", ledger=ledger, run_id="täglich / 1")
    record_actions(run, 1)
    assert run.finalize()["verdict"] == "verified"
    assert aver.verify(tmp_path / "run" / "run.cap").status == "verified"
    assert run.chain.startswith("actions.x-")


def test_post_quantum_signatures(tmp_path: Path) -> None:
    signer = aver.SeedSigner.generate(pq=True)
    with aver.open_ledger(signer=signer) as ledger:
        run = AgentRuntime(tmp_path / "run", ledger=ledger)
        record_actions(run, 2, gated=(1,))
        run.finalize()
        cap = (tmp_path / "run" / "run.cap").read_bytes()
        (tmp_path / "run" / "run.cap").unlink()
        AgentRuntime(tmp_path / "run", ledger=ledger).close()
        assert (tmp_path / "run" / "run.cap").read_bytes() == cap
    verdict = aver.verify(cap, keys=[signer.public], require_pq=True)
    assert verdict.status == "verified"
    assert verdict.check("signature_pq").status == "passed"


def test_the_api_takes_positions_as_the_protocol_lists_them() -> None:
    assert AgentAction("a", "action", *["0" * 64] * 3, None, None, None, None, None, True, 0, "2024-01-15T10:30:00Z")


def test_affected_files_with_a_large_number_are_verified(run: AgentRuntime) -> None:
    answer = run.gate(DIFF, description="x")
    metadata = {"files_affected": [{"inode": 2**70}]}
    run.record_simple("code_edit", "x", {}, "done", metadata=metadata, gate_id=answer["gate_id"], diff_text=DIFF)
    assert run.finalize(prove=False)["verdict"] == "verified"


def test_a_run_in_which_nothing_was_done_can_be_finalized_after_its_block(tmp_path: Path, aver_home: Path) -> None:
    with aver.AgentRuntime(tmp_path / "run") as run:
        pass
    assert run.finalize()["status"] == "empty"
    assert run.verify().status == "qualified"
