"""The checklist of CPS 6, one test an item, through the public names alone."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path

import nacl.signing
import pytest

import aver

SIGNER = aver.SeedSigner(bytes(range(32)))

FIELDS = {
    aver.Trigger: "type source timestamp request correlation_id user_id",
    aver.Context: "agent_id session_id environment",
    aver.Reasoning: "analysis options options_considered selected_option reasoning confidence model prompt_hash",
    aver.Option: "id description pros cons estimated_impact feasibility risks selected rejection_reason",
    aver.Authority: "type approver policy_reference chain escalation_reason",
    aver.Execution: "tool_calls duration_ms resources_used",
    aver.ToolCall: "tool arguments result success duration_ms error",
    aver.Outcome: "status result summary error side_effects metrics",
}
TOP = (
    "id type domain parent_id sequence previous_hash spec_version trigger context reasoning authority execution outcome"
)


def capsule() -> aver.Capsule:
    return aver.Capsule(
        type="tool",
        reasoning=aver.Reasoning(options=[aver.Option(id="a", description="go", selected=True)], confidence=1),
        execution=aver.Execution(tool_calls=[aver.ToolCall(tool="shell", arguments={"b": 1, "a": "é"})]),
    )


def test_the_model_has_all_six_sections_and_all_fields() -> None:
    for section, names in FIELDS.items():
        assert {field.name for field in fields(section)} - {"extra"} == set(names.split()), section


def test_to_dict_gives_every_key_of_the_specification() -> None:
    content = capsule().to_dict()
    assert list(content) == TOP.split()
    for section, names in FIELDS.items():
        part = {
            "Option": lambda: content["reasoning"]["options"][0],
            "ToolCall": lambda: content["execution"]["tool_calls"][0],
        }
        found = part.get(section.__name__, lambda section=section: content[section.__name__.lower()])()
        assert set(found) == set(names.split()), section


def test_canonicalize() -> None:
    content = capsule().to_dict()
    expected = json.dumps(
        {**content, "reasoning": {**content["reasoning"], "confidence": 1.0}},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    assert aver.canonical_bytes(content) == expected.encode()


def test_compute_hash() -> None:
    sealed = aver.seal(capsule(), SIGNER)
    assert sealed.hash == hashlib.sha3_256(sealed.canonical).hexdigest()
    assert sealed.canonical == aver.canonical_bytes(sealed.to_dict())


def test_seal_signs_the_hex_digest_with_ed25519() -> None:
    sealed = aver.seal(capsule(), SIGNER)
    nacl.signing.VerifyKey(SIGNER.public.ed25519_bytes).verify(sealed.hash.encode(), bytes.fromhex(sealed.signature))
    assert sealed.signed_by == SIGNER.public.ed25519[:16]


def test_verify_recomputes_the_hash_and_checks_the_signature() -> None:
    sealed = aver.seal(capsule(), SIGNER)
    assert aver.verify_with_key(sealed, SIGNER.public).status == "verified"
    changed = {**sealed.to_sealed_dict(), "domain": "changed"}
    assert aver.verify_with_key(changed, SIGNER.public).first_bad.code == "HASH_MISMATCH"
    other = aver.SeedSigner(bytes(32)).public
    assert aver.verify_with_key(sealed, other).first_bad.code == "SIG_INVALID"


def test_from_dict_reads_what_to_dict_wrote() -> None:
    original = capsule()
    assert aver.Capsule.from_dict(original.to_dict()) == original
    assert aver.Capsule.from_dict(json.loads(json.dumps(original.to_dict()))).to_dict() == original.to_dict()


@pytest.mark.parametrize("name", ["golden-12-key.json", "golden-13-key.json"])
def test_all_golden_vectors_pass(vectors: Path, name: str) -> None:
    for fixture in json.loads((vectors / name).read_text("utf-8"))["fixtures"]:
        canonical = aver.canonical_bytes(fixture["capsule_dict"])
        assert (canonical.decode(), hashlib.sha3_256(canonical).hexdigest()) == (
            fixture["canonical_json"],
            fixture["sha3_256_hash"],
        )


def test_chain_verification_checks_sequence_and_linkage() -> None:
    with aver.open_ledger() as ledger:
        records = [ledger.append("demo.chain", capsule()) for _ in range(3)]
        assert ledger.verify().status == "verified"
    assert [record.sequence for record in records] == [0, 1, 2]
    assert [record.previous_hash for record in records] == [None, records[0].hash, records[1].hash]
