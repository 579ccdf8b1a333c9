"""Statements: domain separation, tampering, hybrid keys, hostile documents."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput
from aver.keys import (
    PublicKey,
    Ring,
    SeedSigner,
    Statement,
    StatementSignature,
    check_statement,
    sign_statement,
    statement_bytes,
    verify_ed25519,
)
from aver.keys.statement import SIGNATURES_MAX, STATEMENT_MAX

CONTENT: dict[str, Any] = {"digest": "ab" * 32, "decision": "approve", "shown": ["rm -r build", 3, None, True]}

ALICE = SeedSigner(b"a" * 32)
BOB = SeedSigner(b"b" * 32)
HYBRID = SeedSigner(b"h" * 32, b"q" * 32)


def ring_of(*signers: SeedSigner) -> Ring:
    ring = Ring()
    for signer in signers:
        ring = ring.with_known(signer.public)
    return ring


def outcomes(statement: Statement, ring: Ring, **options: Any) -> list[tuple[str, str]]:
    return [(result.by, result.outcome) for result in check_statement(statement, ring, **options)]


def test_the_bytes_are_a_header_and_canonical_json() -> None:
    assert statement_bytes("approval", {"b": 1, "a": "é"}) == 'aver/approval/v1\n{"a":"é","b":1}'.encode()


def test_signed_by_several() -> None:
    statement = sign_statement("approval", CONTENT, (ALICE, BOB, HYBRID))
    everyone = ring_of(ALICE, BOB, HYBRID)
    assert outcomes(statement, everyone) == [(s.fingerprint, "valid") for s in (ALICE, BOB, HYBRID)]
    assert outcomes(statement, ring_of(BOB)) == [
        (ALICE.fingerprint, "unknown"),
        (BOB.fingerprint, "valid"),
        (HYBRID.fingerprint, "unknown"),
    ]


def test_a_key_that_was_not_given_is_unknown_and_never_invalid() -> None:
    statement = sign_statement("approval", CONTENT, (ALICE, BOB))
    pinned = Ring.pin((BOB.public,))
    assert outcomes(statement, pinned) == [(ALICE.fingerprint, "unknown"), (BOB.fingerprint, "valid")]


def test_a_required_signer_who_is_missing_is_named() -> None:
    statement = sign_statement("approval", CONTENT, (ALICE,))
    required = [ALICE.fingerprint, BOB.fingerprint]
    assert outcomes(statement, ring_of(ALICE, BOB), signers_required=required) == [
        (ALICE.fingerprint, "valid"),
        (BOB.fingerprint, "missing"),
    ]
    unsigned = Statement("approval", CONTENT)
    assert outcomes(unsigned, ring_of(ALICE), signers_required=[ALICE.fingerprint]) == [(ALICE.fingerprint, "missing")]


@pytest.mark.parametrize("purpose", ["rotation", "delegation", "approval2", "approva", "a", "cap-head"])
def test_one_purpose_never_passes_for_another(purpose: str) -> None:
    statement = replace(sign_statement("approval", CONTENT, (ALICE,)), purpose=purpose)
    assert outcomes(statement, ring_of(ALICE)) == [(ALICE.fingerprint, "invalid")]


@pytest.mark.parametrize(
    "purpose", ["", "Approval", "approval/v1\n{}", "a\n", "a/b", "ä", "a" * 33, "-a", "1a", "aver/approval/v1", "a b"]
)
def test_a_purpose_cannot_reach_into_the_header(purpose: str) -> None:
    with pytest.raises(BadInput, match="purpose"):
        ALICE.sign_statement(purpose, CONTENT)
    with pytest.raises(BadInput):
        Statement.from_dict({"v": 1, "purpose": purpose, "content": {}, "signatures": []})


def test_a_statement_signature_is_never_a_capsule_signature() -> None:
    """Whatever the content, the signed bytes are no digest; and a signer signs nothing but digests and statements."""
    digest = hashlib.sha3_256(b"capsule").hexdigest()
    statement = sign_statement("seal", {"digest": digest}, (ALICE,))
    public = ALICE.public.ed25519_bytes
    assert not verify_ed25519(public, digest.encode(), statement.signatures[0].ed25519)
    assert not verify_ed25519(public, statement_bytes("seal", {"digest": digest}), ALICE.sign(digest).ed25519)
    capsule = StatementSignature(ALICE.fingerprint, ALICE.sign(digest).ed25519)
    forged = Statement("seal", {"digest": digest}, (capsule,))
    assert outcomes(forged, ring_of(ALICE)) == [(ALICE.fingerprint, "invalid")]
    with pytest.raises(BadInput, match="digest"):
        ALICE.sign(statement_bytes("seal", {"digest": digest}).decode())


@given(
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=32),
    st.dictionaries(st.text(), st.integers()),
)
def test_statement_bytes_are_never_a_digest(purpose: str, content: dict[str, int]) -> None:
    try:
        signed = statement_bytes(purpose, content)
    except BadInput:
        return
    assert signed.startswith(b"aver/")
    assert signed.count(b"\n", 0, signed.index(b"{")) == 1


def test_every_change_of_the_content_is_found() -> None:
    signed = sign_statement("approval", CONTENT, (ALICE,))
    changes: list[dict[str, Any]] = [
        {**CONTENT, "decision": "deny"},
        {**CONTENT, "digest": "ab" * 31 + "ac"},
        {**CONTENT, "extra": None},
        {key: value for key, value in CONTENT.items() if key != "shown"},
        {**CONTENT, "shown": CONTENT["shown"][::-1]},
        {**CONTENT, "shown": ["rm -r build", 3, None, 1]},
        {**CONTENT, "shown": ["rm -r build", 3.0, None, True]},
        {**CONTENT, "shown": ["rm -r build", "3", None, True]},
        {},
    ]
    for content in changes:
        assert outcomes(replace(signed, content=content), ring_of(ALICE)) == [(ALICE.fingerprint, "invalid")], content


def test_every_flipped_bit_of_a_signature_is_found() -> None:
    signed = sign_statement("approval", CONTENT, (ALICE,))
    signature = bytes.fromhex(signed.signatures[0].ed25519)
    for bit in range(len(signature) * 8):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        forged = replace(signed, signatures=(StatementSignature(ALICE.fingerprint, flipped.hex()),))
        assert outcomes(forged, ring_of(ALICE)) == [(ALICE.fingerprint, "invalid")]


def test_a_signature_under_another_name_is_invalid() -> None:
    signed = sign_statement("approval", CONTENT, (ALICE,))
    renamed = replace(signed, signatures=(replace(signed.signatures[0], by=BOB.fingerprint),))
    assert outcomes(renamed, ring_of(ALICE, BOB)) == [(BOB.fingerprint, "invalid")]


def test_a_hybrid_key_cannot_be_stripped_to_one_half() -> None:
    signed = sign_statement("approval", CONTENT, (HYBRID,))
    ring = ring_of(HYBRID)
    assert outcomes(signed, ring) == [(HYBRID.fingerprint, "valid")]
    stripped = replace(signed, signatures=(replace(signed.signatures[0], ml_dsa_65=""),))
    assert outcomes(stripped, ring) == [(HYBRID.fingerprint, "invalid")]
    other = SeedSigner(b"h" * 32, b"x" * 32).sign_statement("approval", CONTENT)
    assert outcomes(replace(signed, signatures=(other,)), ring) == [(HYBRID.fingerprint, "invalid")]
    only_classic = Ring().with_known(PublicKey(HYBRID.public.ed25519))
    assert outcomes(signed, only_classic) == [(HYBRID.fingerprint, "valid")]


@pytest.mark.parametrize(
    "content",
    [{"x": float("nan")}, {"x": b""}, {1: 2}, {"x": "\ud800"}, {"x": {1}}, [], "text", None, 5],
)
def test_contents_without_canonical_form_are_not_signed(content: Any) -> None:
    with pytest.raises(BadInput):
        ALICE.sign_statement("approval", content)


def test_sizes_are_bounded() -> None:
    with pytest.raises(BadInput, match=str(STATEMENT_MAX)):
        ALICE.sign_statement("approval", {"x": "a" * STATEMENT_MAX})
    with pytest.raises(BadInput, match=str(SIGNATURES_MAX)):
        sign_statement("approval", {}, [ALICE] * (SIGNATURES_MAX + 1))
    one = ALICE.sign_statement("approval", {}).to_dict()
    document = {"v": 1, "purpose": "approval", "content": {}, "signatures": [one] * (SIGNATURES_MAX + 1)}
    with pytest.raises(BadInput, match=str(SIGNATURES_MAX)):
        Statement.from_dict(document)


def test_round_trip_through_json() -> None:
    signed = sign_statement("approval", CONTENT, (ALICE, HYBRID))
    again = Statement.from_dict(json.loads(json.dumps(signed.to_dict())))
    assert again == signed
    assert {outcome for _, outcome in outcomes(again, ring_of(ALICE, HYBRID))} == {"valid"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("v",), 2),
        (("v",), True),
        (("v",), "1"),
        (("purpose",), None),
        (("content",), []),
        (("content",), {"x": float("inf")}),
        (("signatures",), {}),
        (("signatures",), [None]),
        (("signatures", 0, "by"), "A" * 16),
        (("signatures", 0, "by"), "qp_key_abcd"),
        (("signatures", 0, "by"), 7),
        (("signatures", 0, "ed25519"), "AB" * 64),
        (("signatures", 0, "ed25519"), "ab" * 63),
        (("signatures", 0, "ed25519"), ""),
        (("signatures", 0, "ml_dsa_65"), "ab"),
        (("signatures", 0, "ml_dsa_65"), None),
        (("signatures", 0, "more"), 1),
        (("more",), 1),
    ],
)
def test_documents_of_another_shape_are_refused(path: tuple[Any, ...], value: Any) -> None:
    document = copy.deepcopy(sign_statement("approval", CONTENT, (ALICE,)).to_dict())
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(BadInput):
        Statement.from_dict(document)


@pytest.mark.parametrize("missing", ["v", "purpose", "content", "signatures"])
def test_documents_that_lack_something_are_refused(missing: str) -> None:
    document = sign_statement("approval", CONTENT, (ALICE,)).to_dict()
    del document[missing]
    with pytest.raises(BadInput, match=missing):
        Statement.from_dict(document)
