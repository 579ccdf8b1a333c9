"""Records that the holder of the ledger's key has forged: found in ledgers, bundles, imports and `.cap` files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Ledger
from aver.actions.encodings import encode_action
from aver.actions.run_capsules import build_action_capsule, read_sealed_action
from aver.capsule.aver_block import BLOCK_KEY
from aver.clock import new_id
from aver.gate.action import Action
from aver.gate.approvals import approve, recent_requests
from aver.gate.ask import ask as ask_gate
from aver.ledger import open_ledger as open_plain_ledger
from aver.ledger.bundle import export_bundle, import_bundle
from aver.verdict import Verdict
from aver.verdict.examiner import EXAMINED_DOMAINS
from support.approvals import copy_record, enrolled, somebody
from support.runs import record_actions

ADA = somebody("ada")

Place = tuple[str, int]
Forge = Callable[[Ledger, Path], Place]


def honest(home: Path, at: Path) -> Ledger:
    """A ledger with a decision, an approval and its use, and a sealed run whose actions were gated."""
    ledger = aver.open_ledger(home=home)
    enrolled(ledger, ADA)
    ledger.keys.trust(ADA.public)
    request = ask(ledger, at, "rm -r build").request
    approve(ledger, request, ADA, shown="rm -r build")
    assert ask(ledger, at, "rm -r build").allows
    with aver.AgentRuntime(at / "run", ledger=ledger, workspace=at, run_id="run_1") as run:
        record_actions(run, 3, gated=(1,))
    return ledger


def ask(ledger: Ledger, at: Path, command: str) -> Any:
    action = Action(type="shell_exec", tool="Bash", arguments={"command": command}, session="s1", workspace=str(at))
    return ask_gate(ledger, action)


def reseal(ledger: Ledger, record: aver.Sealed, change: Callable[[dict[str, Any]], None]) -> Place:
    """Append a changed copy of a record to its chain, sealed by the ledger's own key."""
    content = record.to_dict()
    content.update(id=new_id(), sequence=0, previous_hash=None)
    content["context"]["environment"][BLOCK_KEY] = {"kind": record.kind}
    change(content["outcome"]["result"])
    sealed = ledger.append(str(record.chain), aver.Capsule.from_dict(content))
    return str(sealed.chain), sealed.sequence


def forge_decision(ledger: Ledger, at: Path) -> Place:
    first = next(ledger.read("gate.s1"))
    assert first.to_dict()["outcome"]["result"]["decision"] == "human_review"
    return reseal(ledger, first, lambda result: result.update(decision="pass"))


def forge_approval(ledger: Ledger, at: Path) -> Place:
    """The use of an approval is sealed once more, for another time."""
    records = list(ledger.read("approvals.default"))
    used = next(one for one in records if one.kind == "approval.use")
    return reseal(ledger, used, lambda result: None)


def copy_vote(ledger: Ledger, at: Path) -> Place:
    """A request and a person's true vote on it, from another tenant."""
    with aver.open_ledger(home=ledger.config.home, tenant="staging") as staging:
        enrolled(staging, ADA)
        approve(staging, ask(staging, at, "rm -r dist").request, ADA, shown="rm -r dist")
        request, vote = staging.read("approvals.staging")
    shown = aver.Blob(b"rm -r dist", "text/plain; charset=utf-8")
    ledger.append("notes.a", aver.Capsule(type="tool"), blobs=[shown])
    copy_record(ledger, request)
    copied = copy_record(ledger, vote)
    return str(copied.chain), copied.sequence


def forge_action(ledger: Ledger, at: Path) -> Place:
    runtime = aver.AgentRuntime(at / "forged", ledger=ledger, workspace=at, run_id="run_2")
    record_actions(runtime, 2, gated=(1,))
    runtime.close()
    return forge_second_use(ledger, runtime)


def forge_second_use(ledger: Ledger, runtime: aver.AgentRuntime) -> Place:
    """Seal an action with a true receipt and parent, which claims the decision that the action before has used."""
    last = runtime.last_action
    assert last is not None
    receipt = runtime.last_receipt_hash
    forged = replace(last, action_id="act_forged", parent_action_id=last.action_id, parent_receipt_hash=receipt)
    mark = read_sealed_action(list(ledger.read(runtime.chain))[-1].to_dict()).gate
    draft, blobs = build_action_capsule(forged, encode_action(forged), run_id=runtime.run_id, gate=mark)
    sealed = ledger.append(runtime.chain, draft, blobs=blobs)
    return runtime.chain, sealed.sequence


FORGERIES: dict[str, tuple[Forge, str]] = {
    "decision": (forge_decision, "decisions"),
    "approval": (forge_approval, "approvals"),
    "vote of another tenant": (copy_vote, "approvals"),
    "action": (forge_action, "gates"),
}


def failed_checks(verdict: Verdict) -> set[str]:
    return {check.name for check in verdict.checks if check.status == "failed"}


def places(verdict: Verdict, check: str) -> set[tuple[str | None, int | None]]:
    """Where a check failed."""
    return {
        (one.place.chain, one.place.sequence)
        for one in verdict.findings
        if (one.check, one.status) == (check, "failed")
    }


@pytest.mark.more
def test_honest_records_hold_everywhere(tmp_path: Path) -> None:
    with honest(tmp_path / "home", tmp_path) as ledger:
        for verdict in (ledger.verify(), aver.verify(ledger)):
            assert verdict.status == "verified", verdict.to_dict()
            for check in ("decisions", "approvals", "receipts", "sealed", "gates"):
                assert verdict.check(check).status == "passed"
        export_bundle(ledger, tmp_path / "bundle")
        keys = [ledger.keys.ring().active("ledger").key, ADA.public]
    verdict = aver.verify(tmp_path / "bundle", keys=keys)
    for check in ("decisions", "approvals", "receipts", "sealed", "gates"):
        assert verdict.check(check).status == "passed", verdict.to_dict()
    with aver.open_ledger(home=tmp_path / "other") as other:
        for key in keys:
            other.keys.trust(key)
        import_bundle(other, tmp_path / "bundle")
        verdict = other.verify()
        assert "failed" not in {check.status for check in verdict.checks}, verdict.to_dict()
        assert verdict.check("decisions").count == 3
        assert verdict.check("approvals").status == "passed"


@pytest.mark.more
@pytest.mark.parametrize("what", FORGERIES)
def test_a_forgery_is_found_in_ledger_bundle_and_import(tmp_path: Path, what: str) -> None:
    forge, check = FORGERIES[what]
    with honest(tmp_path / "home", tmp_path) as ledger:
        chain, sequence = forge(ledger, tmp_path)
        export_bundle(ledger, tmp_path / "bundle")
        keys = [ledger.keys.ring().active("ledger").key, ADA.public]
        verdicts = [ledger.verify(), aver.verify(ledger), ledger.verify(chain), aver.verify(chain, ledger=ledger)]
    verdicts.append(aver.verify(tmp_path / "bundle", keys=keys))
    with aver.open_ledger(home=tmp_path / "careful") as careful:
        for key in keys:
            careful.keys.trust(key)
        with pytest.raises(aver.IntegrityError, match="nothing was imported"):
            import_bundle(careful, tmp_path / "bundle")
    with open_plain_ledger(home=tmp_path / "other") as other:  # Its import has no examiners.
        for key in keys:
            other.keys.trust(key)
        imported = {one.origin: one.name for one in import_bundle(other, tmp_path / "bundle").chains}
    verdicts.append(aver.verify(home=tmp_path / "other", ledger=tmp_path / "other" / "ledger.db"))
    for verdict in verdicts:
        assert verdict.status == "failed"
        assert check in failed_checks(verdict), verdict.to_dict()
        name = imported[chain] if verdict is verdicts[-1] else chain
        assert (name, sequence) in places(verdict, check)


def test_a_ledger_opened_without_examiners_says_what_it_did_not_check(tmp_path: Path) -> None:
    honest(tmp_path / "home", tmp_path).close()
    with open_plain_ledger(home=tmp_path / "home") as ledger:
        verdict = ledger.verify()
        assert verdict.status == "qualified"
        for check in ("decisions", "approvals", "receipts", "parents", "sealed", "gates", "proof"):
            assert verdict.check(check).status == "not_checked"
            assert "no examiner" in verdict.check(check).reason
        assert ledger.verify("keys").status == "verified"


def open_asking_run(home: Path, at: Path, approve_it: bool = True) -> tuple[Ledger, aver.AgentRuntime]:
    """An open run with a gated change, and a command that a person had to approve."""
    ledger = aver.open_ledger(home=home)
    enrolled(ledger, ADA)
    run = aver.AgentRuntime(at / "run", ledger=ledger, workspace=at, run_id="run_1")
    record_actions(run, 2, gated=(1,))
    gate_for_removal(run)
    if approve_it:
        request = list(recent_requests(ledger))[-1]
        approve(ledger, request, ADA, shown="rm -r build")
        answer = gate_for_removal(run)
        assert answer["decision"] == "human_approved"
        run.record_simple("shell_exec", "", {"command": "rm -r build"}, "done", gate_id=answer["gate_id"])
    return ledger, run


def gate_for_removal(run: aver.AgentRuntime) -> dict[str, Any]:
    return run.gate(action_type="shell_exec", tool="Bash", arguments={"command": "rm -r build"})


def forge_consistent_decision(ledger: Ledger, run: aver.AgentRuntime) -> Place:
    """The refused decision once more, now with rules that allow it: nothing but deciding again contradicts it."""
    records = list(ledger.read("gate.run_1"))
    asked = next(one for one in records if one.to_dict()["outcome"]["result"]["decision"] == "human_review")
    past = records[-1].to_dict()["outcome"]["result"]["session"]

    def allow(result: dict[str, Any]) -> None:
        result.update(decision="pass", facts={**result["facts"], **past}, session=past)
        result["policy"].update(outcome="allow", rules=[])

    return reseal(ledger, asked, allow)


def forge_approved_decision(ledger: Ledger, run: aver.AgentRuntime) -> Place:
    """The decision that a human has approved, once more: the approval was used only once."""
    approved = list(ledger.read("gate.run_1"))[-1]
    assert approved.to_dict()["outcome"]["result"]["decision"] == "human_approved"
    return reseal(ledger, approved, lambda result: result["facts"].update(result["session"]))


def forge_vote(ledger: Ledger, run: aver.AgentRuntime) -> Place:
    """A second request for the same action, and the person's earlier vote as the answer to it."""
    gate_for_removal(run)
    request = list(recent_requests(ledger))[-1]
    records = list(ledger.read("approvals.default"))
    vote = next(one for one in records if one.to_dict()["outcome"]["result"].get("decision") == "approve")
    return reseal(ledger, vote, lambda result: result.update(request=request.id))


CAP_FORGERIES: dict[str, tuple[Callable[[Ledger, aver.AgentRuntime], Place], str]] = {
    "decision": (forge_consistent_decision, "decisions"),
    "approved decision": (forge_approved_decision, "decisions"),
    "use of an approval": (lambda ledger, run: forge_approval(ledger, Path()), "approvals"),
    "vote": (forge_vote, "approvals"),
    "action": (forge_second_use, "gates"),
}


@pytest.mark.more
@pytest.mark.parametrize("what", CAP_FORGERIES)
def test_a_forgery_is_found_in_a_cap(tmp_path: Path, what: str) -> None:
    """The run is sealed after the forgery, so its files have it."""
    forge, check = CAP_FORGERIES[what]
    ledger, run = open_asking_run(tmp_path / "home", tmp_path)
    with ledger:
        place = forge(ledger, run)
        run.close()
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
        assert run.finalize()["verdict"] == "failed"
        run.close()
        keys = [ledger.keys.ring().active("ledger").key, ADA.public]
        ledger.keys.trust(ADA.public)
        verdicts = [aver.verify(ledger)]
    verdicts += [aver.verify(path, keys=keys) for path in (tmp_path / "run" / "run.cap", tmp_path / "run")]
    for verdict in verdicts:
        assert verdict.status == "failed"
        assert place in places(verdict, check), verdict.to_dict()


def test_an_approval_that_nobody_gave_is_found_in_a_cap(tmp_path: Path) -> None:
    """Nobody has approved anything, so the file has a request and no use of it."""
    ledger, run = open_asking_run(tmp_path / "home", tmp_path, approve_it=False)
    with ledger, run:
        asked = list(ledger.read("gate.run_1"))[-1]
        session = asked.to_dict()["outcome"]["result"]["session"]

        def approve_falsely(result: dict[str, Any]) -> None:
            result.update(decision="human_approved", facts={**result["facts"], **session, "approved": True})

        place = reseal(ledger, asked, approve_falsely)
        run.finalize()
        keys = [ledger.keys.ring().active("ledger").key, ADA.public]
    verdict = aver.verify(tmp_path / "run" / "run.cap", keys=keys)
    assert verdict.status == "failed"
    words = [one.words for one in verdict.findings if (one.place.chain, one.place.sequence) == place]
    assert any("no approval of it was used" in text for text in words), words


@pytest.mark.more
def test_a_cap_carries_what_its_decisions_rest_on(tmp_path: Path) -> None:
    """An honest run with an approval is verified offline, by the keys of the ledger and of the approver."""
    ledger, run = open_asking_run(tmp_path / "home", tmp_path)
    with ledger, run:
        ledger.keys.trust(ADA.public)
        assert run.finalize()["verdict"] == "verified"
        key = ledger.keys.ring().active("ledger").key
    for path in (tmp_path / "run" / "run.cap", tmp_path / "run"):
        verdict = aver.verify(path, keys=[key, ADA.public])
        assert verdict.status == "verified", verdict.to_dict()
        assert verdict.check("decisions").count == 3
        assert verdict.check("approvals").status == "passed"
        verdict = aver.verify(path, keys=[key])  # The approver's key is not among the given keys.
        assert (verdict.status, verdict.check("approvals").code) == ("qualified", "UNKNOWN_SIGNER")


@pytest.mark.more
@pytest.mark.parametrize("chain", ["gate.s1", "approvals.default", "approvers.default", "actions.run_1"])
def test_a_damaged_record_breaks_no_examiner(tmp_path: Path, chain: str) -> None:
    """Each record in turn becomes one without sections, or of other types: the verdict fails at its place."""
    with honest(tmp_path / "home", tmp_path) as ledger:
        count = ledger.head(chain).count
        path = ledger.store.path  # type: ignore[attr-defined]
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER records_stay_as_they_are")
    where = "chain = (SELECT chain FROM chains WHERE name = ?) AND sequence = ?"
    for sequence in range(count):
        (kept,) = connection.execute(f"SELECT canonical FROM records WHERE {where}", (chain, sequence)).fetchone()
        content = json.loads(kept)
        for damaged in (
            {**content, "id": 1, "trigger": None},
            {name: value for name, value in content.items() if name != "trigger"} | {"id": 1},
            {**content, "outcome": {**content["outcome"], "result": [1]}},
            {**content, "outcome": {}},
        ):
            raw = json.dumps(damaged, sort_keys=True, separators=(",", ":")).encode()
            connection.execute(f"UPDATE records SET canonical = ? WHERE {where}", (raw, chain, sequence))
            connection.commit()
            verdict = aver.verify(path, home=tmp_path / "home")
            assert verdict.status == "failed"
            assert verdict.first_bad is not None
            assert (verdict.first_bad.place.chain, verdict.first_bad.place.sequence) == (chain, sequence)
            assert verdict.first_bad.code in ("SCHEMA_INVALID", "HASH_MISMATCH")
            checks = EXAMINED_DOMAINS[chain.partition(".")[0]]
            # A check that did not see the record must not pass: it failed, or says what it left out.
            assert "passed" not in {verdict.check(check).status for check in checks}, verdict.to_dict()
        connection.execute(f"UPDATE records SET canonical = ? WHERE {where}", (kept, chain, sequence))
        connection.commit()
    connection.close()
