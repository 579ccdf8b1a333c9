"""`aver export` of a trace takes the gate's decisions about it along."""

from __future__ import annotations

from pathlib import Path

from aver import Ledger
from aver.ledger.bundle import export_bundle
from support.aver_command import Aver
from support.protocol_sessions import claim_count, open_session, reach_claiming


def test_the_export_of_a_trace_is_judged_whole(ledger: Ledger, tmp_path: Path, aver: Aver) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with open_session(work, ledger=ledger) as session:
        session.audit_engine = None
        reach_claiming(session)
        claim_count(session)
        session.executor.conclude("done")
        session.auditor.audit()
        chain, decisions = session.chain, f"gate.{session.trace}"
    home = {"AVER_HOME": str(ledger.config.home)}
    ran = aver("export", chain, "--out", tmp_path / "bundle", **home)
    assert ran.code == 0, ran
    assert (tmp_path / "bundle" / f"{decisions}.json").is_file()
    ran = aver("verify", tmp_path / "bundle", "--json", **home)
    assert (ran.code, ran.json["status"]) == (0, "verified"), ran.json["checks"]
    assert next(check["status"] for check in ran.json["checks"] if check["name"] == "report") == "passed"
    export_bundle(ledger, tmp_path / "bare", chains=[chain])
    assert not (tmp_path / "bare" / f"{decisions}.json").exists()
