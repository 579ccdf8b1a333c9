"""`aver export` of a trace takes along what it rests on: the gate's decisions, and people's approvals."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from aver import Ledger, verify
from aver.gate.approvals import approve, enrol_approver, recent_requests
from aver.ledger.bundle import export_bundle
from support.approvals import SHOWN, somebody
from support.aver_command import Aver
from support.protocol_sessions import DIGEST, claim_count, open_session, reach_claiming
from support.tamper import changed, unguarded


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


def read_key_file(path: Path) -> dict[str, str | None]:
    """The keys in a file, each with its owner where the file names one."""
    return {key["public_key"]: key.get("identity") for key in json.loads(path.read_text())["keys"]}


def test_the_file_beside_a_bundle_has_every_key_that_it_needs(ledger: Ledger, tmp_path: Path, aver: Aver) -> None:
    """A person has ruled in the trace. Without her key, an honest bundle is only qualified."""
    home, stranger = {"AVER_HOME": str(ledger.config.home)}, {"AVER_HOME": str(tmp_path / "stranger")}
    ada = somebody("ada")
    ledger.keys.register("person:ada", ada.public)
    ledger.keys.create("agent:unrelated")
    enrol_approver(ledger, ada)
    (tmp_path / "work").mkdir()
    with open_session(tmp_path / "work", ledger=ledger) as session:
        session.audit_engine = None
        reach_claiming(session)
        challenge = session.critic.challenge(claim_count(session).id, "I count two")
        assert session.resolve(challenge.id) is None
        approve(ledger, next(iter(recent_requests(ledger))), ada, shown=SHOWN)
        assert session.resolve(challenge.id) is not None
        session.executor.conclude("done")
        session.auditor.audit()
    ran = aver("export", session.chain, "--out", tmp_path / "bundle", **home)
    owners = read_key_file(tmp_path / "bundle.keys.json").values()
    assert "person:ada" in owners
    assert "agent:unrelated" not in owners
    ran = aver("verify", tmp_path / "bundle", "--key", tmp_path / "bundle.keys.json", "--json", **stranger)
    assert (ran.code, ran.json["findings"]) == (0, [])
    # With the ledger's key alone, the verifier reads which keys are unknown, and nothing fails.
    assert aver("keys", "export", "ledger", "--out", tmp_path / "keys.json", **home).code == 0
    ran = aver("verify", tmp_path / "bundle", "--key", tmp_path / "keys.json", **stranger)
    ring = ledger.keys.ring()
    active = [ring.active(name) for name in ("agent:planner", "agent:executor", "agent:critic", "agent:auditor")]
    assert ran.code == 0
    assert ran.out.startswith("! unsigned, qualified: ")
    assert all(entry is not None and entry.fingerprint in ran.out for entry in active), ran.out
    assert f"{ada.public.fingerprint} of person:ada" in ran.out
    assert "forged or damaged" not in ran.out


def test_an_export_names_the_keys_that_this_home_does_not_know(ledger: Ledger, tmp_path: Path, aver: Aver) -> None:
    from aver import clock
    from aver.keys import SeedSigner
    from aver.protocol.statements import Join, sign_join

    home = {"AVER_HOME": str(ledger.config.home)}
    (tmp_path / "work").mkdir()
    carol = SeedSigner(b"a critic in another organisation")
    with open_session(tmp_path / "work", ledger=ledger) as session:
        fold = session.fold
        join = Join(session.place, fold.task_sha256, fold.profile, "critic", "agent:carol", carol.public, clock.now())
        session.accept(sign_join(carol, join))
    ran = aver("export", session.chain, "--out", tmp_path / "bundle", **home)
    assert f"agent:carol ({carol.fingerprint})" in ran.err
    ledger.keys.trust(carol.public)
    ran = aver("export", session.chain, "--out", tmp_path / "bundle2", **home)
    assert carol.public.ed25519 in read_key_file(tmp_path / "bundle2.keys.json")
    assert "agent:carol" not in ran.err


def test_a_failed_audit_is_told_from_tampering(ledger: Ledger, tmp_path: Path, aver: Aver) -> None:
    """An agent that lied and was caught fails the verdict. The words say that the records hold."""
    home = {"AVER_HOME": str(ledger.config.home)}
    (tmp_path / "work").mkdir()
    with open_session(tmp_path / "work", ledger=ledger) as session:
        session.audit_engine = None
        reach_claiming(session)
        evidence = [{"artifact": DIGEST, "check": {"text": {"contains": "nobody printed this"}}}]
        session.executor.claim("four tests pass", confidence=0.9, evidence=evidence)
        session.executor.conclude("done")
        assert session.auditor.audit().status == "fail"
    ran = aver("verify", **home)
    assert ran.code == 1
    assert "The records hold" in ran.out
    assert f"The audit of {session.chain} failed" in " ".join(ran.out.split())
    failed = [found for found in aver("verify", "--json", **home).json["findings"] if found["status"] == "failed"]
    assert [found["proof"]["audit"] for found in failed] == ["fail"]
    tampered = "UPDATE records SET signature = replace(signature, 'a', 'b') WHERE sequence = 3"
    with closing(unguarded(ledger)) as attacker, changed(attacker, (tampered, ())):
        ran = aver("verify", **home)
    assert ran.code == 1
    assert "The records hold" not in ran.out
