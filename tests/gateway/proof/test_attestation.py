"""Attestations: their content, who may sign them, and what nobody reads."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.capsule.canonical import canonical_json
from aver.errors import BadInput
from aver.gateway.proof.attestation import (
    REASON_MAX,
    REASONS_MAX,
    RULES_MAX,
    Attestation,
    BadAttestation,
    PolicyKeys,
    build_attestation,
    build_refusal_attestation,
    check_attestation,
    compute_facts_sha256,
    find_binding_problem,
    read_attestation,
    sign_attestation,
)
from aver.gateway.proof.evidence import PolicyBits, Share
from aver.keys import Ring, RingEntry, SeedSigner, verify_ed25519
from support.commit_evidence import ACTION, ALLOWED, FACTS, PROGRAM, REQUEST, SIGNERS, TS, CommitEvidence

SHARE = Share.parse(CommitEvidence().commit["policy0"])
ATTESTATION = build_attestation(SHARE, ALLOWED, facts_sha256=FACTS, rules=["a", "b"], reasons=["because"])
KEYS = [SIGNERS[0].public]


def refusal(**changes: Any) -> Attestation:
    given: dict[str, Any] = {
        "server_id": 0,
        "action_id": ACTION,
        "request_sha256": REQUEST.sha256,
        "program_id": PROGRAM,
        "facts_sha256": FACTS,
        "rules": ["forbid"],
        "reasons": ["no"],
        "ts": TS,
    }
    return build_refusal_attestation(**{**given, **changes})


def test_the_content() -> None:
    assert ATTESTATION.content == {
        "v": 1,
        "server_id": 0,
        "action_id": ACTION,
        "request_sha256": REQUEST.sha256,
        "program_id": PROGRAM,
        "share_sha256": SHARE.sha256,
        "allow_pre": 1,
        "need_confirm": 0,
        "patch_id": 0,
        "facts_sha256": FACTS,
        "rules": ["a", "b"],
        "reasons": ["because"],
        "ts": TS,
    }
    assert Attestation.parse(ATTESTATION.content) == ATTESTATION
    assert ATTESTATION.bits == ALLOWED


def test_the_content_of_a_refusal() -> None:
    assert refusal().content == {
        **ATTESTATION.content,
        "share_sha256": None,
        "allow_pre": 0,
        "rules": ["forbid"],
        "reasons": ["no"],
    }
    assert check_attestation(sign_attestation(refusal(), SIGNERS[0]), 0, KEYS) == refusal()


def test_the_signature_is_over_the_purpose_and_the_canonical_content() -> None:
    """How a stranger checks it, with nothing of Aver but the rule for Ed25519."""
    statement = sign_attestation(ATTESTATION, SIGNERS[0])
    message = b"aver/policy/v1\n" + canonical_json(ATTESTATION.content)
    assert verify_ed25519(bytes.fromhex(SIGNERS[0].public.ed25519), message, statement.signatures[0].ed25519)


def test_the_digest_of_the_facts() -> None:
    facts, state, fixes = {"b": 1, "a": "\u00e9"}, {"labels": []}, [1, 2]
    written = '{"facts":{"a":"\u00e9","b":1},"fixes":[1,2],"state":{"labels":[]}}'.encode()
    assert compute_facts_sha256(facts, state, fixes) == hashlib.sha256(written).hexdigest()


def test_a_server_can_be_believed_only_by_its_own_key() -> None:
    statement = sign_attestation(ATTESTATION, SIGNERS[0])
    assert check_attestation(statement, 0, KEYS) == ATTESTATION
    assert check_attestation(statement.to_dict(), 0, [SIGNERS[1].public, *KEYS]) == ATTESTATION
    for keys in ([], [SIGNERS[1].public]):
        with pytest.raises(BadAttestation, match="not signed by its key"):
            check_attestation(statement, 0, keys)
    with pytest.raises(BadAttestation, match="is by server 0"):
        check_attestation(statement, 1, KEYS)


def test_two_signatures_are_not_one() -> None:
    document = sign_attestation(ATTESTATION, SIGNERS[0]).to_dict()
    document["signatures"] *= 2
    with pytest.raises(BadAttestation, match="2 signatures"):
        check_attestation(document, 0, KEYS)


def test_a_part_that_nobody_checks_is_refused() -> None:
    """A key without a post-quantum half makes no such signature. Anyone could have added it."""
    document = sign_attestation(ATTESTATION, SIGNERS[0]).to_dict()
    document["signatures"][0]["ml_dsa_65"] = "00" * 3309
    with pytest.raises(BadAttestation, match="cannot make"):
        check_attestation(document, 0, KEYS)


def test_a_post_quantum_key_signs_with_both_halves() -> None:
    signer = SeedSigner(b"\1" * 32, b"\2" * 32)
    document = sign_attestation(ATTESTATION, signer).to_dict()
    assert check_attestation(document, 0, [signer.public]) == ATTESTATION
    document["signatures"][0]["ml_dsa_65"] = ""
    with pytest.raises(BadAttestation):
        check_attestation(document, 0, [signer.public])


def test_the_servers_must_have_different_keys() -> None:
    with pytest.raises(BadInput, match="a key in common"):
        PolicyKeys(tuple(KEYS), (SIGNERS[1].public, SIGNERS[0].public))


def test_the_keys_of_a_ring_are_found_by_identity_and_purpose() -> None:
    at = "2026-01-01T00:00:00+00:00"
    third = SeedSigner(b"\7" * 32).public
    entries = (
        RingEntry("policy:0", "policy", 0, SIGNERS[0].public, at, retired_at=at),
        RingEntry("policy:0", "policy", 1, third, at),
        RingEntry("policy:1", "seal", 0, SeedSigner(b"\x08" * 32).public, at),
        RingEntry("ledger", "seal", 0, SeedSigner(b"\x09" * 32).public, at),
    )
    published = RingEntry("policy:1", "policy", 0, SIGNERS[1].public, at)
    keys = PolicyKeys.from_ring(Ring(entries).with_known(published))
    assert keys == PolicyKeys((SIGNERS[0].public, third), (SIGNERS[1].public,))
    assert keys.of(0) == keys.server0
    assert keys.of(1) == keys.server1


def test_an_attestation_belongs_to_one_share() -> None:
    assert find_binding_problem(ATTESTATION, SHARE) == ""
    other = Share.parse(CommitEvidence().commit["policy1"])
    assert "server_id" in find_binding_problem(ATTESTATION, other)
    assert "another share" in find_binding_problem(ATTESTATION, Share.parse({**SHARE.to_dict(), "kid": "1"}))
    assert "another ts" in find_binding_problem(ATTESTATION, Share.parse({**SHARE.to_dict(), "ts": TS + 1}))


def test_long_reasons_are_cut_and_rules_are_not() -> None:
    made = build_attestation(
        SHARE, ALLOWED, facts_sha256=FACTS, rules=["r"] * RULES_MAX, reasons=["", "x" * 10_000, *["y"] * 100]
    )
    assert len(made.reasons) == REASONS_MAX
    assert len(made.reasons[0]) == REASON_MAX
    for rules in (["r"] * (RULES_MAX + 1), [""], ["x" * 300]):
        with pytest.raises(BadInput):
            build_attestation(SHARE, ALLOWED, facts_sha256=FACTS, rules=rules, reasons=[])


@pytest.mark.parametrize("bits", [PolicyBits(0, 0, 0), PolicyBits(0, 1, 0), PolicyBits(1, 0, 4), PolicyBits(2, 0, 0)])
def test_a_server_attests_no_decision_that_there_is_not(bits: PolicyBits) -> None:
    with pytest.raises(BadInput):
        build_attestation(SHARE, bits, facts_sha256=FACTS, rules=[], reasons=[])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CONTENT = st.fixed_dictionaries({name: JSON | st.just(value) for name, value in ATTESTATION.content.items()})


@given(JSON | CONTENT)
def test_any_content_is_read_back_or_refused(content: Any) -> None:
    try:
        attestation = Attestation.parse(content)
    except BadInput:
        return
    assert canonical_json(attestation.content) == canonical_json(content)


@given(JSON | st.builds(lambda content: {"v": 1, "purpose": "policy", "content": content, "signatures": []}, CONTENT))
def test_any_document_is_no_attestation(document: Any) -> None:
    with pytest.raises(BadAttestation):
        read_attestation(document, 0)
