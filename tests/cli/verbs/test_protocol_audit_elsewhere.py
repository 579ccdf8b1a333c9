"""An auditor in another home audits an exported trace, and brings its signed report back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aver import Ledger
from aver.capsule.json_document import dump_document
from support.aver_command import Aver
from support.protocol_sessions import TASK, claim_count, open_session, reach_claiming


@pytest.fixture
def trace(ledger: Ledger, tmp_path: Path, aver: Aver) -> str:
    """A trace that waits for its auditor, `agent:dora`, whose key is in the home `doras`."""
    (tmp_path / "work").mkdir()
    home, doras = {"AVER_HOME": str(ledger.config.home)}, {"AVER_HOME": str(tmp_path / "doras")}
    parts = {"agent:planner": "planner", "agent:critic": "critic", "agent:executor": "executor"}
    with open_session(tmp_path / "work", ledger=ledger, task=TASK, participants=parts, trace="t1") as session:
        assert aver("keys", "export", "ledger", *parts, "--out", tmp_path / "keys.json", **home).code == 0
        assert aver("keys", "trust", tmp_path / "keys.json", **doras).code == 0
        assert aver("export", session.chain, "--out", tmp_path / "bundle0", **home).code == 0
        joined = ("protocol", "join", "t1", "--ledger", tmp_path / "bundle0", "--role", "auditor", "--as", "agent:dora")
        assert aver(*joined, "--out", tmp_path / "join.json", **doras).code == 0
        session.accept(json.loads((tmp_path / "join.json").read_text()))
        reach_claiming(session)
        claim_count(session)
        session.executor.conclude("done")
        return session.trace


@pytest.mark.more
def test_an_auditor_elsewhere_signs_the_report_for_the_operator(
    ledger: Ledger, trace: str, tmp_path: Path, aver: Aver
) -> None:
    home, doras = {"AVER_HOME": str(ledger.config.home)}, {"AVER_HOME": str(tmp_path / "doras")}
    for number, event in ((1, "verification_run_started"), (2, "verification_run_completed")):
        bundle, signed = tmp_path / f"bundle{number}", tmp_path / f"signed{number}.json"
        assert aver("export", f"protocol.{trace}", "--out", bundle, **home).code == 0
        ran = aver("protocol", "audit", bundle, "--contribute", signed, **doras)
        assert ran.code == 0, ran
        assert event in ran.out
        ran = aver("protocol", "accept", signed, **home)
        assert ran.code == 0, ran
    verdict = ledger.verify(f"protocol.{trace}")
    assert verdict.status != "failed", verdict.findings
    assert next(check.status for check in verdict.checks if check.name == "report") == "passed"
    assert "meta" in ledger.chains()
    with open_session(tmp_path / "work", ledger=ledger, trace=trace) as session:
        assert session.state == "completed"
        assert session.events[-1].agent == "agent:dora"
    # A second end is refused, and so is the first one once more.
    assert aver("protocol", "accept", tmp_path / "signed2.json", **home).code != 0


@pytest.mark.more
def test_a_report_that_the_operator_changes_is_not_the_auditors(
    ledger: Ledger, trace: str, tmp_path: Path, aver: Aver
) -> None:
    home, doras = {"AVER_HOME": str(ledger.config.home)}, {"AVER_HOME": str(tmp_path / "doras")}
    for number in (1, 2):
        assert aver("export", f"protocol.{trace}", "--out", tmp_path / f"bundle{number}", **home).code == 0
        signed = tmp_path / f"signed{number}.json"
        assert aver("protocol", "audit", tmp_path / f"bundle{number}", "--contribute", signed, **doras).code == 0
        if number == 1:
            assert aver("protocol", "accept", signed, **home).code == 0
    document = json.loads(signed.read_text())
    document["payload"]["status"] = "fail"
    signed.write_bytes(dump_document(document))
    ran = aver("protocol", "accept", signed, **home)
    assert ran.code == 5, ran


@pytest.mark.more
def test_only_an_auditor_of_the_trace_signs_and_only_one_event(
    ledger: Ledger, trace: str, tmp_path: Path, aver: Aver
) -> None:
    home = {"AVER_HOME": str(ledger.config.home)}
    assert aver("export", f"protocol.{trace}", "--out", tmp_path / "bundle", **home).code == 0
    out = tmp_path / "signed.json"
    assert aver("protocol", "audit", tmp_path / "bundle", "--contribute", out, **home).code == 2
    assert not out.exists()
    ran = aver("protocol", "audit", tmp_path / "bundle", "--contribute", out, "--rerun", **home)
    assert ran.code == 2
    # Without --contribute, a bundle is only judged.
    ran = aver("protocol", "audit", tmp_path / "bundle", "--json", **home)
    assert (ran.code, ran.json["signed"], ran.json["state"]) == (0, False, "auditing")
