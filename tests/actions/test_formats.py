"""`verify` on runs: directories, `.cap` files, lines alone, runs in a ledger, and proofs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import AgentRuntime, BadInput, Refused
from aver.actions.encodings import action_line, receipt_hash
from aver.actions.proofs.inclusion import find_action_index, inclusion_document
from aver.actions.run_state import load_run_from_ledger, load_run_from_path
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.config import load_config
from support.runs import A, SealedRun, codes_of, make_sealed_run, packed, record_actions


@pytest.fixture
def copy(sealed_run: SealedRun, tmp_path: Path) -> Path:
    """A copy of the sealed run's directory, without the ledger."""
    return Path(shutil.copytree(sealed_run.path, tmp_path / "copy"))


@pytest.mark.more
def test_a_sealed_run_needs_nothing_but_a_key(sealed_run: SealedRun, copy: Path, tmp_path: Path) -> None:
    for thing in (copy, copy / "run.cap", copy / "actions.jsonl", sealed_run.cap):
        verdict = aver.verify(thing, keys=[sealed_run.key], home=tmp_path / "nobody")
        assert verdict.status == "verified", (thing, verdict.to_dict())
        assert verdict.check("proof").count == 12
        assert verdict.check("gates").count == 3
    assert not (tmp_path / "nobody").exists()


@pytest.mark.parametrize("level", ["structural", "content"])
def test_lower_levels_are_qualified(sealed_run: SealedRun, level: Any) -> None:
    verdict = aver.verify(sealed_run.cap, keys=[sealed_run.key], level=level)
    assert verdict.status == "qualified"
    assert verdict.check("signature").status == "not_checked"


def test_required_post_quantum_signatures(sealed_run: SealedRun) -> None:
    assert aver.verify(sealed_run.cap, keys=[sealed_run.key], require_pq=True).status == "failed"


@pytest.mark.parametrize("name", ["manifest.json", "head.json", "proof.json", "commitments.json", "capsules.jsonl"])
def test_a_directory_without_one_of_its_files(copy: Path, sealed_run: SealedRun, name: str) -> None:
    (copy / name).unlink()
    assert aver.verify(copy, keys=[sealed_run.key]).status == "failed"


def test_a_directory_without_all_that_is_sealed(copy: Path, sealed_run: SealedRun) -> None:
    """Then it is a run that may not have been sealed yet, and only its ledger could tell."""
    for path in copy.iterdir():
        if path.name not in ("run.json", "actions.jsonl"):
            path.unlink()
    alone = aver.verify(copy, keys=[sealed_run.key])
    assert alone.status == "qualified"
    assert "was not named" in alone.check("sealed").reason
    ledger = sealed_run.home / "ledger.db"
    with_ledger = aver.verify(copy, home=sealed_run.home, ledger=ledger)
    assert with_ledger.status == "verified"
    path = copy / "actions.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert "TRUNCATED" in codes_of(aver.verify(copy, home=sealed_run.home, ledger=ledger))


def test_links_in_a_directory_are_not_followed(copy: Path, sealed_run: SealedRun) -> None:
    (copy / "proof.json").unlink()
    (copy / "proof.json").symlink_to(sealed_run.path / "proof.json")
    assert aver.verify(copy, keys=[sealed_run.key]).status == "failed"


@pytest.mark.parametrize("name", ["actions.jsonl", "run.json"])
def test_a_sealed_directory_without_its_other_files(copy: Path, sealed_run: SealedRun, name: str) -> None:
    (copy / name).unlink()
    expected = "verified" if name == "run.json" else "failed"
    assert aver.verify(copy, keys=[sealed_run.key]).status == expected


RUN_FILES = {
    "another chain": {"chain": "notes.today"},
    "no chain": {"chain": "../../etc"},
    "another run": {"run_id": "run_other", "chain": "actions.run_other"},
    "another tenant": {"tenant": "../x"},
    "another ledger": {"ledger": "x"},
    "numbers": {"ledger": 7},
}


@pytest.mark.parametrize("change", RUN_FILES, ids=lambda change: change.replace(" ", "-"))
def test_a_run_file_that_lies(tmp_path: Path, change: str) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 2)
    run.close()
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **RUN_FILES[change]}))
    verdict = aver.verify(tmp_path / "run", ledger=load_config().ledger)
    assert verdict.status == ("qualified" if change in ("another ledger", "another tenant") else "failed")


def test_an_unsealed_directory_without_its_lines(tmp_path: Path) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 2)
    run.close()
    (tmp_path / "run" / "actions.jsonl").unlink()
    (tmp_path / "run" / "actions.jsonl").mkdir()
    with pytest.raises(BadInput):
        aver.verify(tmp_path / "run")


def test_a_run_by_its_name(sealed_run: SealedRun) -> None:
    for name in (sealed_run.run_id, sealed_run.chain, sealed_run.run_id[:20]):
        verdict = aver.verify(name, home=sealed_run.home)
        assert verdict.status == "verified", verdict.to_dict()
        assert verdict.check("receipts").count == 12
        assert verdict.check("gates").count == 3


def test_a_run_that_is_not_sealed_yet(tmp_path: Path) -> None:
    run = AgentRuntime(tmp_path / "run", workspace=tmp_path)
    record_actions(run, 3, gated=(1,))
    for thing in (tmp_path / "run", tmp_path / "run" / "actions.jsonl", run.run_id):
        verdict = aver.verify(thing, ledger=load_config().ledger)
        assert verdict.status == "qualified"
        assert "not sealed" in verdict.check("sealed").reason
        assert verdict.check("gates").status == "passed"
    path = tmp_path / "run" / "actions.jsonl"
    path.write_text(path.read_text().replace("step 1", "step 7"))
    assert aver.verify(tmp_path / "run", ledger=load_config().ledger).status == "failed"
    assert aver.verify(tmp_path / "run").status == "qualified"  # Metadata are bound by the capsules alone.
    assert run.verify().status == "failed"
    run.close()
    whole = aver.verify()
    assert whole.status == "verified"
    assert "1 runs are not sealed yet" in whole.check("sealed").reason


def test_a_chain_that_only_looks_like_a_run(ledger: aver.Ledger) -> None:
    ledger.append("actions.fake", aver.Capsule(type="tool"))
    verdict = aver.verify("actions.fake", ledger=ledger)
    assert codes_of(verdict) == {"CHAIN_IDENTITY"}


def test_records_that_were_put_into_a_run_by_hand(tmp_path: Path, ledger: aver.Ledger) -> None:
    run = AgentRuntime(tmp_path / "run", ledger=ledger)
    record_actions(run, 2)
    ledger.append(run.chain, aver.Capsule(type="tool"))
    assert codes_of(aver.verify(run.chain, ledger=ledger)) == {"STATE_VIOLATION"}
    with pytest.raises(aver.IntegrityError):
        record_actions(run, 1)


def test_a_seal_that_claims_too_much(tmp_path: Path, ledger: aver.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sealed by whoever holds the key: what it says is still held to what is there."""
    from dataclasses import replace as changed

    from aver.actions import finalize
    from aver.actions.run_capsules import RunSeal, build_seal_capsule

    for change in (
        {"policy_verdict": "FULLY_VERIFIED"},
        {"num_actions": 3},
        {"final_receipt_hash": "0" * 64},
        {"run_id": "another"},
        {"gates": aver.Head(ledger.id, ledger.tenant, "gate.x", 1, "0" * 64)},
    ):
        run = AgentRuntime(tmp_path / next(iter(change)), ledger=ledger)
        record_actions(run, 2)

        def build_changed(seal: RunSeal, agent: str, change: dict[str, Any] = change) -> aver.Capsule:
            return build_seal_capsule(changed(seal, **change), agent)

        monkeypatch.setattr(finalize, "build_seal_capsule", build_changed)
        finalize.seal_run(ledger, run._run, agent="", prove=True)
        assert aver.verify(run.chain, ledger=ledger).status == "failed", change
        run.close()


def test_lines_alone(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(action_line(A) + b"\n")
    verdict = aver.verify(path)
    assert (verdict.status, verdict.records) == ("qualified", 1)
    assert aver.verify(path.read_bytes()).status == "qualified"
    path.write_bytes(path.read_bytes().replace(b'"success":true', b'"success":false', 1))
    assert codes_of(aver.verify(path)) == {"RECEIPT_MISMATCH"}
    empty = tmp_path / "actions.jsonl"
    empty.write_bytes(b"")
    assert aver.verify(empty).status == "empty"
    empty.write_bytes(b"\n\n")
    assert aver.verify(empty).status == "empty"
    empty.write_bytes(b"\x00\xff garbage\n")
    assert aver.verify(empty).status == "failed"


def test_a_line_without_end(tmp_path: Path) -> None:
    path = tmp_path / "actions.jsonl"
    with path.open("wb") as file:
        file.write(action_line(A) + b"\n" + b'{"action_id":"')
        file.truncate(40 * 2**20)
    verdict = aver.verify(path)
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    assert "action 1" in str(verdict.first_bad.place)


def test_an_archive_is_told_by_its_bytes_too(sealed_run: SealedRun, tmp_path: Path) -> None:
    path = tmp_path / "evidence"
    path.write_bytes(sealed_run.cap)
    assert aver.verify(path, keys=[sealed_run.key]).status == "verified"


# --- proofs of one action


def test_each_action_has_a_proof(sealed_run: SealedRun, tmp_path: Path) -> None:
    found = load_run_from_path(sealed_run.path / "run.cap")
    with aver.open_ledger(home=sealed_run.home, create=False) as ledger:
        assert load_run_from_ledger(ledger, sealed_run.chain) == found == load_run_from_path(sealed_run.path)
    for index in range(12):
        document = inclusion_document(found.actions, index, found.seal)
        path = tmp_path / f"{index}.json"
        path.write_text(json.dumps(document))
        verdict = aver.verify(path, keys=[sealed_run.key])
        assert verdict.status == "verified", verdict.to_dict()
        others = "".join(a.action_id for at, a in enumerate(found.actions) if at not in (index, index - 1))
        assert not any(name in path.read_text() for name in others.split("act_") if name)


@pytest.fixture(scope="module")
def proof(sealed_run: SealedRun) -> dict[str, Any]:
    found = load_run_from_path(sealed_run.path)
    return inclusion_document(found.actions, 4, found.seal)


PROOF_CHANGES: dict[str, dict[str, Any]] = {
    "another place": {"index": 5},
    "a place that is none": {"index": 10**30},
    "a negative place": {"index": -1},
    "no place": {"index": "4"},
    "another receipt": {"receipt_hash": "0" * 64},
    "no path": {"path": []},
    "a path that is none": {"path": "x"},
    "steps that are none": {"path": [1, 2]},
    "another version": {"v": 2},
    "a version that only equals ours": {"v": True},
    "another sort": {"proof_type": "zk"},
    "one key more": {"note": "trust me"},
    "no seal": {"seal": None},
    "a statement that is none": {"statement": {}},
    "an action that is none": {"action": {}},
}


@pytest.mark.parametrize("change", PROOF_CHANGES, ids=lambda change: change.replace(" ", "-"))
def test_a_changed_proof_fails(sealed_run: SealedRun, proof: dict[str, Any], change: str) -> None:
    verdict = aver.verify(json.dumps({**proof, **PROOF_CHANGES[change]}), keys=[sealed_run.key])
    assert verdict.status == "failed"


def test_every_field_of_the_action_in_a_proof_is_bound(sealed_run: SealedRun, proof: dict[str, Any]) -> None:
    for field, value in proof["action"].items():
        other = {"x": 1} if field == "metadata" else not value if isinstance(value, bool) else None
        if field in ("action_id", "parent_action_id"):
            other = "act_x"
        elif field.endswith("_hash"):
            other = "0" * 64
        elif field == "action_type":
            other = "unknown"
        elif field == "duration_ms":
            other = 7
        elif field == "timestamp":
            other = "2020-01-01T00:00:00Z"
        elif field in ("gate_decision", "policy_verdict", "gate_score"):
            other = {"gate_decision": "skip", "policy_verdict": "PROOF_ONLY", "gate_score": 0.5}[field]
        changed = {**proof, "action": {**proof["action"], field: other}}
        assert aver.verify(json.dumps(changed), keys=[sealed_run.key]).status == "failed", field


def test_a_proof_needs_a_seal_that_vouches_for_it(sealed_run: SealedRun, proof: dict[str, Any], tmp_path: Path) -> None:
    other = make_sealed_run(tmp_path / "other")
    found = load_run_from_path(other.path)
    foreign = inclusion_document(found.actions, 4, found.seal)
    for mixed in ({**proof, "seal": foreign["seal"]}, {**proof, "statement": foreign["statement"]}):
        assert aver.verify(json.dumps(mixed), keys=[sealed_run.key]).status == "failed"
    verdict = aver.verify(json.dumps(foreign), keys=[sealed_run.key])
    assert (verdict.status, verdict.integrity) == ("qualified", "unsigned")
    for field, value in proof["seal"].items():
        seal = {**proof["seal"], field: ("1" if value[:1] != "1" else "2") + value[1:]}
        assert aver.verify(json.dumps({**proof, "seal": seal}), keys=[sealed_run.key]).status == "failed", field
    assert aver.verify(json.dumps(proof)).status == "qualified"


def test_positions(sealed_run: SealedRun) -> None:
    actions = load_run_from_path(sealed_run.path).actions
    for wanted in (actions[3].action_id, receipt_hash(actions[3]), "3"):
        assert find_action_index(actions, wanted) == 3
    for wanted in ("12", "-1", "", "act", "x" * 100, "٣", "9" * 5000):
        with pytest.raises(aver.NotFound):
            find_action_index(actions, wanted)


def test_a_run_that_is_not_sealed_has_no_proof(tmp_path: Path) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 2)
    with pytest.raises(Refused) as refusal:
        inclusion_document(run.actions, 0, None)
    assert refusal.value.code == "NOT_SEALED"
    with pytest.raises(aver.NotFound):
        load_run_from_path(tmp_path / "run")
    run.close()


def test_actions_that_the_seal_does_not_vouch_for(sealed_run: SealedRun) -> None:
    found = load_run_from_path(sealed_run.path)
    with pytest.raises(BadInput):
        inclusion_document(found.actions[:-1], 0, found.seal)


@pytest.mark.parametrize("outcome", [{}, {"result": None}, {"result": {}}, {"result": {"statement": 5}}])
def test_a_seal_that_says_nothing_is_no_proof(sealed_run: SealedRun, outcome: dict[str, Any]) -> None:
    found = load_run_from_path(sealed_run.path)
    assert found.seal is not None
    content = {**found.seal.to_dict(), "outcome": outcome}
    empty = Sealed(json.dumps(content).encode(), *(getattr(found.seal, key) for key in SEAL_KEYS))
    with pytest.raises(BadInput):
        inclusion_document(found.actions, 0, empty)


def test_packed_again_is_the_same(sealed_run: SealedRun) -> None:
    assert packed(sealed_run.members) == sealed_run.cap
