"""`aver export` of a trace takes along what it rests on: the gate's decisions, and people's approvals."""

from __future__ import annotations

from pathlib import Path

from aver import Ledger, verify
from aver.gate.approvals import approve, enrol_approver, recent_requests
from aver.ledger.bundle import export_bundle
from support.approvals import SHOWN, somebody
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


def test_a_trace_takes_the_approvals_along_that_it_rests_on(ledger: Ledger, tmp_path: Path, aver: Aver) -> None:
    person = somebody("ann")
    enrol_approver(ledger, person)
    home = {"AVER_HOME": str(ledger.config.home)}
    work = tmp_path / "work"
    work.mkdir()
    with open_session(work, ledger=ledger) as session:
        session.audit_engine = None
        reach_claiming(session)
        challenge = session.critic.challenge(claim_count(session).id, "I count two")
        assert session.resolve(challenge.id) is None
        assert aver("export", session.chain, "--out", tmp_path / "before", **home).code == 0
        approve(ledger, next(iter(recent_requests(ledger))), person, shown=SHOWN)
        assert session.resolve(challenge.id) is not None
        session.executor.conclude("done")
        session.auditor.audit()
        chain = session.chain
    approvals = ["approvals.default.json", "approvers.default.json"]
    assert not (tmp_path / "before" / approvals[0]).exists()
    ran = aver("export", chain, "--out", tmp_path / "whole", **home)
    assert ran.code == 0
    assert "--no-approvals leaves them out" in ran.err
    assert all((tmp_path / "whole" / name).is_file() for name in approvals)
    keys = [*(entry.key for entry in ledger.keys.ring().entries), person.public]
    checks = {check.name: check.status for check in verify(tmp_path / "whole", keys=keys).checks}
    assert (checks["claims"], checks["approvals"]) == ("passed", "passed")
    ran = aver("export", chain, "--out", tmp_path / "bare", "--no-approvals", **home)
    assert ran.code == 0
    assert not any((tmp_path / "bare" / name).exists() for name in approvals)
