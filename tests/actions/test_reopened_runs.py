"""The same program started again, runs without an action, and runs after their end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import aver
from aver import AgentRuntime, Refused
from support.runs import record_actions

SNIPPET = """
import aver
with aver.AgentRuntime("runs/first", agent="helper") as run:
    run.record_simple("observation", "look", {}, "nothing")
"""


def test_a_program_that_is_started_twice_makes_two_runs(tmp_path: Path, aver_home: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", SNIPPET], cwd=tmp_path, check=True)
    runs = sorted((tmp_path / "runs").iterdir())
    assert [run.name for run in runs] == ["first", "first-2"]
    assert [aver.verify(run).status for run in runs] == ["verified", "verified"]
    with aver.open_ledger() as ledger:
        assert len([chain for chain in ledger.chains() if chain.startswith("actions.")]) == 2


@pytest.mark.parametrize("way", ["gate", "record", "with"])
def test_a_new_run_begins_with_the_first_work(tmp_path: Path, way: str) -> None:
    with AgentRuntime(tmp_path / "run") as first:
        record_actions(first, 1)
    again = AgentRuntime(tmp_path / "run")
    assert (again.run_id, again.action_count) == (first.run_id, 1)
    if way == "gate":
        again.gate(description="look", action_type="file_read", files=["a.py"])
    elif way == "record":
        record_actions(again, 1)
    else:
        again.__enter__()
    assert again.output_dir == tmp_path / "run-2"
    assert again.run_id != first.run_id
    again.close()


def test_a_run_that_a_crash_left_open_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        with AgentRuntime(tmp_path / "run") as run:
            record_actions(run, 1)
    left = AgentRuntime(tmp_path / "run")
    record_actions(left, 1)
    left.close()
    with AgentRuntime(tmp_path / "run") as run:
        assert (run.run_id, run.output_dir.name, run.action_count) == (left.run_id, "run-3", 1)
    (tmp_path / "run-4").write_text("no run")  # What is in the way is told before anything is done.
    with pytest.raises(aver.Unavailable, match="run-4"), AgentRuntime(tmp_path / "run"):
        raise AssertionError("this must not be reached")


def test_a_run_that_is_named_is_never_left(tmp_path: Path) -> None:
    with AgentRuntime(tmp_path / "run", run_id="one") as run:
        record_actions(run, 1)
    again = AgentRuntime(tmp_path / "run", run_id="one")
    with pytest.raises(Refused, match="sealed"):
        again.gate(description="look")
    with pytest.raises(Refused, match="sealed"):
        record_actions(again, 1)
    assert [chain for chain in again._ledger.chains() if chain.startswith("gate.")] == []
    again.close()


def test_a_run_is_finalized_again(tmp_path: Path) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 2)
    told = run.finalize()
    assert run.finalize() == told
    run.close()
    assert run.finalize() == told
    begun_anew = AgentRuntime(tmp_path / "run")
    assert begun_anew.finalize() == told
    begun_anew.close()
    assert begun_anew.verify().status == "verified"


def test_a_run_without_a_proof_stays_one(tmp_path: Path) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 1)
    assert run.finalize(prove=False)["status"] == "recorded"
    assert run.finalize()["status"] == "recorded"
    run.close()


def test_a_run_in_which_all_was_refused_is_sealed(tmp_path: Path) -> None:
    with AgentRuntime(tmp_path / "run", agent="helper") as run:
        assert run.gate(action_type="tool_call", tool="refund", arguments={"order": 17})["allows"] is False
    assert run.last_capsule is not None
    assert run.last_capsule["outcome"]["result"] | {"statement": None, "head": None, "gates": None} == {
        "v": 1,
        "run_id": run.run_id,
        "protocol_version": "0.4.0",
        "head": None,
        "num_actions": 0,
        "final_receipt_hash": None,
        "policy_verdict": None,
        "statement": None,
        "gates": None,
    }
    for thing in (tmp_path / "run", tmp_path / "run" / "run.cap", run.chain):
        verdict = aver.verify(thing)
        assert verdict.status == "verified", verdict.to_dict()
    assert aver.verify(tmp_path / "run").check("decisions").count == 1
    assert run.verify().status == "verified"


def test_a_refusal_that_is_cut_off_is_found(tmp_path: Path) -> None:
    """Without actions, the seal still counts the gate's records."""
    with AgentRuntime(tmp_path / "run") as run:
        for _ in range(2):
            run.gate(action_type="tool_call", tool="refund", arguments={"order": 17})
    capsules = tmp_path / "run" / "capsules.jsonl"
    lines = capsules.read_bytes().splitlines(keepends=True)
    capsules.write_bytes(b"".join(lines[:-1]))
    verdict = aver.verify(tmp_path / "run")
    assert verdict.status == "failed"
    assert "TRUNCATED" in {finding.code for finding in verdict.findings}


def test_a_run_in_which_nothing_was_asked_or_done_is_not_sealed(tmp_path: Path) -> None:
    with AgentRuntime(tmp_path / "run") as run:
        pass
    assert run.last_capsule is None
    assert run.verify().status == "qualified"
