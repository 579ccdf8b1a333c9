"""The published vectors, byte for byte: both golden sets, the stored document, and the URIs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from aver import BadInput, Capsule, PublicKey, Ring, Sealed, canonical_bytes, parse_uri
from aver.capsule.sealed import content_hash
from aver.verdict import ChainJudge, Rules, conclude
from aver.verdict.record import read_record

GOLDEN = ("golden-12-key.json", "golden-13-key.json")
CORPUS = Path(__file__).parent / "corpus"
OWN_CASE = {
    "minimal": "capsule-minimal",
    "full": "capsule-full",
    "kill_switch": "capsule-kill",
    "tool_invocation": "capsule-tool-error",
    "chat_interaction": "capsule-chat-session",
    "workflow_hierarchy": "capsule-workflow-parent",
    "unicode_strings": "capsule-unicode",
    "fractional_timestamp": "capsule-microseconds",
    "empty_vs_null": "capsule-empty-and-null",
    "confidence_one": "capsule-confidence-int-1",
    "deep_nesting": "capsule-deep",
    "chain_genesis": "capsule-genesis",
    "chain_linked": "capsule-linked",
    "failure_with_error": "capsule-failure",
    "auth_escalated": "capsule-auth-escalated",
    "vault_secret": "capsule-vault",
}
"""Each golden capsule, and the case of our own corpus that shows the same: a plain clone has only the latter."""
OWN_BAD_URI = {
    "wrong_scheme": "http",
    "hash_too_short": "hash-63",
    "hash_too_long": "hash-65",
    "hash_uppercase": "hash-upper",
    "hash_non_hex": "hash-g",
    "unknown_hash_algorithm": "md5-prefix",
    "empty_uri": "empty",
    "scheme_only": "scheme-only",
    "invalid_uuid": "words-for-a-uuid",
    "fragment_traversal": "fragment-traversal",
    "negative_sequence": "sequence-minus-one",
}


def load(vectors: Path, name: str) -> Any:
    return json.loads((vectors / name).read_text("utf-8"))


def own_cases(name: str, part: str) -> set[str]:
    return {case["name"] for case in json.loads((CORPUS / name).read_text("utf-8"))[part]}


def test_our_own_corpus_has_a_case_for_each_of_theirs() -> None:
    """Runs without the published vectors, too."""
    assert set(OWN_CASE.values()) <= own_cases("canonical.json", "cases")
    assert set(OWN_BAD_URI.values()) <= own_cases("uri.json", "invalid")
    assert {"twelve-keys", "twelve-keys-with-spec-version-added"} <= own_cases("seals.json", "cases")


def test_no_published_case_is_without_one_of_ours(vectors: Path) -> None:
    for name in GOLDEN:
        assert {fixture["name"] for fixture in load(vectors, name)["fixtures"]} == set(OWN_CASE)
    assert {fixture["name"] for fixture in load(vectors, "uri.json")["invalid"]} == set(OWN_BAD_URI)
    ours = json.loads((CORPUS / "uri.json").read_text("utf-8"))["valid"]
    shapes = {shape(case["expected"]) for case in ours}
    assert {shape(fixture["expected"]) for fixture in load(vectors, "uri.json")["valid"]} <= shapes


def shape(uri: dict[str, Any]) -> tuple[object, ...]:
    """Which parts a URI has, and how deep its fragment goes."""
    fragment = (uri["fragment"] or "").split("/")
    return uri["reference_type"], uri["chain"] is None, uri["sequence"] == 0, len(fragment), fragment[-1].isdigit()


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes_and_hashes(vectors: Path, name: str) -> None:
    fixtures = load(vectors, name)["fixtures"]
    assert len(fixtures) == 16
    for fixture in fixtures:
        canonical = canonical_bytes(fixture["capsule_dict"])
        assert canonical.decode() == fixture["canonical_json"], fixture["name"]
        assert hashlib.sha3_256(canonical).hexdigest() == fixture["sha3_256_hash"], fixture["name"]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_capsules_load_and_round_trip(vectors: Path, name: str) -> None:
    for fixture in load(vectors, name)["fixtures"]:
        again = Capsule.from_dict(fixture["capsule_dict"]).to_dict()
        assert again == fixture["capsule_dict"], fixture["name"]
        assert canonical_bytes(again).decode() == fixture["canonical_json"], fixture["name"]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes_are_read_as_canonical(vectors: Path, name: str) -> None:
    for fixture in load(vectors, name)["fixtures"]:
        content, canonical, _ = read_record(fixture["canonical_json"].encode())
        assert content == fixture["capsule_dict"]
        assert canonical


def test_the_stored_document_verifies_as_stored(vectors: Path) -> None:
    vector = load(vectors, "stored-document.json")
    sealed = Sealed.from_sealed_json(json.dumps(vector["sealed_record"]))
    assert sealed == Sealed.from_sealed_dict(vector["sealed_record"])
    assert content_hash(sealed.canonical) == vector["sha3_256_hash"] == sealed.hash
    judge = ChainJudge(Rules(Ring.pin([PublicKey(vector["public_key_hex"])])), start=None)
    judge.judge(sealed)
    verdict = conclude("vector", judge.finish())
    assert verdict.status == "verified"
    assert not verdict.findings


def test_the_stored_document_is_not_what_a_model_writes_out_again(vectors: Path) -> None:
    """The model would add `spec_version`; hashing that instead of what is stored would be the defect."""
    vector = load(vectors, "stored-document.json")
    content = {**vector["stored_document"], "spec_version": "1.0"}
    assert content_hash(canonical_bytes(content)) == vector["model_sha3_256_hash"]
    tampered = {**vector["sealed_record"], "spec_version": "1.0"}
    judge = ChainJudge(Rules(Ring.pin([PublicKey(vector["public_key_hex"])])), start=None)
    judge.judge(Sealed.from_sealed_dict(tampered))
    assert [finding.code for finding in judge.finish().findings] == ["HASH_MISMATCH"]


def test_valid_uris(vectors: Path) -> None:
    for fixture in load(vectors, "uri.json")["valid"]:
        uri = parse_uri(fixture["uri"])
        assert uri.to_dict() == fixture["expected"], fixture["name"]
        assert str(uri) == fixture["uri"]


def test_invalid_uris(vectors: Path) -> None:
    for fixture in load(vectors, "uri.json")["invalid"]:
        with pytest.raises(BadInput):
            parse_uri(fixture["uri"])
