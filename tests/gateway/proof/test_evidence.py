"""Shares: the known answer of the MAC, masks, joining, and the one form in which a share is read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.capsule.canonical import ascii_json
from aver.gateway.codes import load_proof_details
from aver.gateway.proof.evidence import (
    OUTPUTS,
    BadShare,
    PolicyBits,
    Share,
    build_share,
    compute_mac,
    compute_mask,
    is_valid_mac,
    join_shares,
    join_tags,
)
from aver.gateway.specs import find_evidence_error
from support.commit_evidence import ACTION, MAC_KEYS, MASK_KEY, PROGRAM, REQUEST, TS, CommitEvidence

KAT = {
    "v": 1,
    "kind": "commit",
    "server_id": 0,
    "kid": "0",
    "ts": 1700000000,
    "action_id": "a_kat",
    "program_id": "policy_unified_v1",
    "request_sha256": "900509000ce5fb542e2e1bc58ee8232af3abe260d955c40828acadab8b137b3d",
    "outputs": {"allow_pre": 1, "need_confirm": 0, "patch0": 0, "patch1": 0},
    "commit_tag_share_b64": "AQEBAQEBAQEBAQEBAQEBAQ==",
    "mac_b64": "iCaG+8lG28hKiG2NhTNl82cyOhuO5XM8eMGhOBSa0nY=",
}
"""The known answer of the public implementation. The key is 32 bytes 0x11."""


def test_the_known_answer() -> None:
    share = Share.parse(KAT)
    assert is_valid_mac(share, b"\x11" * 32)
    assert base64.b64encode(compute_mac(share, b"\x11" * 32)).decode() == KAT["mac_b64"]
    assert not is_valid_mac(share, b"\x12" * 32)
    assert share.to_dict() == KAT


def test_the_mac_is_what_a_stranger_computes() -> None:
    unsigned = {name: value for name, value in KAT.items() if name != "mac_b64"}
    written = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    assert base64.b64encode(hmac.new(b"\x11" * 32, written, "sha256").digest()).decode() == KAT["mac_b64"]


def test_the_digest_of_a_share_covers_its_mac() -> None:
    share = Share.parse(KAT)
    written = json.dumps(KAT, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    assert share.sha256 == hashlib.sha256(written).hexdigest()
    assert replace(share, mac=bytes(32)).sha256 != share.sha256


# --- masks and bits


def test_the_mask_is_the_lowest_bit_of_the_hmac() -> None:
    for name in OUTPUTS:
        message = f"{ACTION}\n{REQUEST.sha256}\n{PROGRAM}\n{name}".encode()
        number = int.from_bytes(hmac.new(MASK_KEY, message, "sha256").digest(), "big")
        ids = {"action_id": ACTION, "request_sha256": REQUEST.sha256, "program_id": PROGRAM}
        assert compute_mask(MASK_KEY, name=name, **ids) == number & 1


def test_masks_depend_on_everything_and_are_even() -> None:
    ids = {"action_id": "a", "request_sha256": "b", "program_id": "c", "name": "d"}
    for name in ids:
        masks = [compute_mask(MASK_KEY, **{**ids, name: str(number)}) for number in range(400)]
        assert 100 < sum(masks) < 300


ALL_BITS = [PolicyBits(a, c, p) for a, c, p in itertools.product((0, 1), (0, 1), range(4))]


def make_share(bits: PolicyBits, server_id: int, **changes: Any) -> Share:
    given: dict[str, Any] = {
        "server_id": server_id,
        "kid": "0",
        "key": MAC_KEYS[server_id],
        "mask_key": MASK_KEY,
        "ts": TS,
        "action_id": ACTION,
        "program_id": PROGRAM,
        "request_sha256": REQUEST.sha256,
        "tag_share": bytes(range(16)),
    }
    return build_share(bits, **{**given, **changes})


@pytest.mark.parametrize("bits", ALL_BITS)
def test_two_shares_give_the_decision(bits: PolicyBits) -> None:
    first, second = make_share(bits, 0), make_share(bits, 1)
    joined = join_shares(first, second)
    assert joined == bits.outputs
    assert PolicyBits.from_outputs(joined) == bits
    assert joined["patch0"] | joined["patch1"] << 1 == bits.patch_id
    assert find_evidence_error({"policy0": first.to_dict(), "policy1": second.to_dict()}) == ""


def test_the_share_of_server_0_does_not_depend_on_the_decision() -> None:
    assert len({make_share(bits, 0).sha256 for bits in ALL_BITS}) == 1
    assert len({make_share(bits, 1).sha256 for bits in ALL_BITS}) == len(ALL_BITS)


def test_the_tag_is_the_xor_of_both_tag_shares() -> None:
    first = make_share(ALL_BITS[0], 0, tag_share=bytes([0xF0]) * 16)
    second = make_share(ALL_BITS[0], 1, tag_share=bytes([0x0F]) * 16)
    assert base64.b64decode(join_tags(first, second)) == b"\xff" * 16


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"kid": ""}, "unknown_kid"),
        ({"ts": 1.5}, "bad_ts"),
        ({"action_id": ""}, "bad_action_id"),
        ({"request_sha256": "x"}, "bad_request_sha256"),
        ({"tag_share": b""}, "bad_commit_tag_b64"),
    ],
)
def test_a_server_signs_no_share_that_nobody_reads(changes: dict[str, Any], detail: str) -> None:
    with pytest.raises(BadShare) as caught:
        make_share(ALL_BITS[-1], 1, **changes)
    assert caught.value.detail == detail


# --- reading

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON | st.fixed_dictionaries({name: JSON | st.just(value) for name, value in KAT.items()}))
def test_any_document_is_a_share_or_has_a_detail(document: Any) -> None:
    try:
        share = Share.parse(document)
    except BadShare as error:
        detail = error.detail
    else:
        # In bytes: Python's `==` takes 1.0 and True for 1.
        assert ascii_json(share.to_dict()) == ascii_json(document)
        return
    assert detail in load_proof_details()


def test_each_mac_has_one_text() -> None:
    """32 bytes leave two bits of the last digit unused. Only one of the four texts is read."""
    text = KAT["mac_b64"]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    same = [f"{text[:-2]}{letter}=" for letter in letters]
    same = [other for other in same if base64.b64decode(other) == base64.b64decode(text)]
    assert len(same) == 4
    for other in same:
        if other == text:
            assert Share.parse({**KAT, "mac_b64": other}).mac == base64.b64decode(text)
        else:
            with pytest.raises(BadShare):
                Share.parse({**KAT, "mac_b64": other})


def test_the_error_names_the_share() -> None:
    commit = CommitEvidence().commit
    commit["policy1"]["ts"] = "now"
    with pytest.raises(BadShare, match=r"policy1\.ts must be a whole number"):
        Share.parse(commit["policy1"], "policy1")
