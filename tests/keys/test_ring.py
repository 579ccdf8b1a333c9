"""The ring's rules, its lookups, and what it does with a hostile file."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.errors import BadInput, NotFound, Refused
from aver.keys import PublicKey, Ring, RingEntry, SeedSigner, default_purpose, sign_statement
from aver.keys.public_key import check_identity, identity_from_slug, slug
from aver.keys.ring import RING_MAX, sign_rotation

T0, T1, T2 = (f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3))


def key(number: int, pq: bool = False) -> PublicKey:
    return SeedSigner(number.to_bytes(32, "big"), number.to_bytes(32, "big") if pq else None).public


def entry(identity: str, epoch: int, number: int, retired_at: str | None = None, pq: bool = False) -> RingEntry:
    return RingEntry(identity, default_purpose(identity), epoch, key(number, pq), T0, retired_at)


@pytest.fixture(scope="module")
def ring() -> Ring:
    old, new = entry("ledger", 0, 1, T1), entry("ledger", 1, 2, pq=True)
    signers = SeedSigner((1).to_bytes(32, "big")), SeedSigner((2).to_bytes(32, "big"))
    new = replace(new, statement=sign_statement("rotation", {"any": "content"}, signers))
    return (
        Ring((old, new, entry("agent:builder", 0, 3), entry("person:ann", 0, 4)))
        .with_known(key(5))
        .with_known(key(6, True))
    )


def test_active_entry_and_lookup(ring: Ring) -> None:
    active = ring.active("ledger")
    assert active is not None
    assert (active.epoch, active.status, active.algorithm) == (1, "active", "ed25519+ml-dsa-65")
    assert ring.active("agent:other") is None
    assert ring.lookup(key(1).fingerprint) == (key(1),)
    assert ring.lookup(key(2).fingerprint) == (key(2, True),)
    assert ring.lookup(key(5).fingerprint) == (key(5),)
    retired = ring.entry(key(1).fingerprint)
    assert retired is not None
    assert (retired.status, retired.retired_at) == ("retired", T1)
    assert ring.entry(key(5).fingerprint) is None
    assert [one.epoch for one in ring.entries_of("ledger")] == [0, 1]


@pytest.mark.parametrize("signed_by", ["", "0" * 16, "qp_key_", "qp_key_0000", "QP_KEY_0000", "*", "../key", "0" * 64])
def test_an_unknown_signer_is_nobody(ring: Ring, signed_by: str) -> None:
    assert ring.lookup(signed_by) == ()


def test_names_are_exact(ring: Ring) -> None:
    public = key(1).ed25519
    for spelled in (
        public,
        public[:15],
        public[:17],
        public[:16].upper(),
        "qp_key_" + public[:5],
        "qp_key_" + public[:3],
        public[:4],
    ):
        assert spelled == public[:16] or ring.lookup(spelled) == ()


def test_four_digits_name_every_key_that_has_them() -> None:
    """`qp_key_XXXX` is 16 bits: keys that share it all stay findable, and no key hides another."""
    by_short: dict[str, PublicKey] = {}
    number = 0
    while True:
        found = key(number)
        other = by_short.setdefault(found.ed25519[:4], found)
        if other != found:
            break
        number += 1
    own = Ring((RingEntry("ledger", "seal", 0, other, T0, T1), RingEntry("ledger", "seal", 1, found, T1)))
    short = f"qp_key_{found.ed25519[:4]}"
    assert own.lookup(short) == (other, found)
    assert Ring().with_known(other).with_known(found).lookup(short) == (other, found)
    assert own.lookup(other.fingerprint) == (other,)
    assert own.lookup(found.fingerprint) == (found,)


def test_one_active_epoch_per_identity(ring: Ring) -> None:
    with pytest.raises(BadInput, match="two active"):
        ring.with_entry(entry("ledger", 2, 9))
    rotated = ring.retire("ledger", T2).with_entry(entry("ledger", 2, 9))
    active = rotated.active("ledger")
    assert active is not None
    assert active.epoch == 2
    assert [one.status for one in rotated.entries_of("ledger")] == ["retired", "retired", "active"]
    with pytest.raises(BadInput, match="twice"):
        ring.retire("ledger", T2).with_entry(entry("ledger", 1, 9))
    with pytest.raises(NotFound, match="no active key"):
        ring.retire("ledger", T2).retire("ledger", T2)


def same_fingerprint(known: PublicKey) -> PublicKey:
    return PublicKey(known.ed25519[:16] + "f" * 48)


def test_a_taken_fingerprint_is_refused_for_our_own_keys(ring: Ring) -> None:
    own = key(1)
    tries = [
        lambda: ring.with_known(same_fingerprint(own)),
        lambda: ring.with_entry(RingEntry("agent:x", "seal", 0, same_fingerprint(own), T0)),
        lambda: ring.with_entry(RingEntry("agent:x", "seal", 0, own, T0)),
        lambda: ring.with_known(PublicKey(key(6).ed25519, key(7, True).ml_dsa_65)),
        lambda: ring.with_known(PublicKey(key(2).ed25519, key(7, True).ml_dsa_65)),
    ]
    for attempt in tries:
        with pytest.raises(Refused) as caught:
            attempt()
        assert caught.value.code == "FINGERPRINT_TAKEN"


def test_keys_of_others_may_share_a_fingerprint(ring: Ring) -> None:
    """Anyone can make a second key that begins like the first, so it must not keep out the genuine one."""
    known, second = key(5), same_fingerprint(key(5))
    both = ring.with_known(second)
    assert set(both.lookup(known.fingerprint)) == {known, second}
    assert Ring.from_dict(both.to_dict()) == both
    assert set(Ring.pin((known, second)).lookup(known.fingerprint)) == {known, second}
    assert both.without_known(second.ed25519) == ring
    with pytest.raises(BadInput, match="2 known keys") as caught:
        both.without_known(known.fingerprint)
    assert known.ed25519 in caught.value.advice
    assert both.without_known(known.ed25519).lookup(known.fingerprint) == (same_fingerprint(known),)


def test_a_published_entry_says_more_about_one_key_only(ring: Ring) -> None:
    retired = RingEntry("ledger", "seal", 0, key(8), T0, T1)
    knows = ring.with_known(retired)
    assert knows.entry_of(key(8)) == retired
    assert knows.entry(key(8).fingerprint) is None
    assert knows.retirement_times()[key(8).ed25519] == T1
    assert knows.active("ledger") == ring.active("ledger")
    # Neither a bare key nor a later export takes the retirement back.
    assert knows.with_known(key(8)) == knows
    again = knows.with_known(RingEntry("ledger", "seal", 0, key(8), T0))
    assert again.retirement_times()[key(8).ed25519] == T1
    assert again.without_known(key(8).fingerprint) == ring
    # Others cannot say anything about our own keys.
    assert ring.with_known(RingEntry("person:eve", "approve", 0, key(2), T0, T0)) == ring
    for one in (knows, Ring.pin((retired, key(5)))):
        assert Ring.from_dict(one.to_dict()) == one
        assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("later", ["another statement", "unsigned", "another rotation"])
def test_a_later_file_does_not_take_back_the_rotation_that_retired_a_key(later: str) -> None:
    """The thief of an old key sends an entry of the new one, which is trusted already, with another statement."""
    signers = [SeedSigner(number.to_bytes(32, "big")) for number in (1, 2, 3, 4)]
    old, new, *others = (entry("ledger", epoch, epoch + 1) for epoch in range(4))
    rotated = replace(new, statement=sign_rotation(old, new, *signers[:2]))
    forged = {
        "another statement": sign_statement("rotation", {"any": "content"}, signers[:1]),
        "unsigned": replace(sign_rotation(old, new, *signers[:2]), signatures=()),
        "another rotation": sign_rotation(*others, *signers[2:]),
    }[later]
    for ring in (
        Ring().with_known(key(1)).with_known(rotated).with_known(replace(new, statement=forged)),
        Ring.pin((key(1), rotated, replace(new, statement=forged))),
        # A statement that proves nothing about this key does not keep the right one away.
        Ring().with_known(key(1)).with_known(replace(new, statement=forged)).with_known(rotated),
    ):
        assert ring.retirement_times()[key(1).ed25519] == T0


def test_a_rotation_statement_retires_the_old_key_for_those_who_have_only_the_new_entry() -> None:
    old_signer, new_signer = SeedSigner(bytes([31]) * 32), SeedSigner(bytes([32]) * 32)
    old = RingEntry("ledger", "seal", 0, old_signer.public, T0)
    new = RingEntry("ledger", "seal", 1, new_signer.public, T1)
    statement = sign_rotation(old, new, old_signer, new_signer)
    assert Ring.pin((replace(new, statement=statement), old.key)).retirement_times() == {old.key.ed25519: T1}
    # A successor that names itself retires nobody.
    alone = sign_rotation(old, new, new_signer, new_signer)
    assert Ring.pin((replace(new, statement=alone), old.key)).retirement_times() == {}


def test_knowing_twice_changes_nothing_and_may_add_a_post_quantum_half(ring: Ring) -> None:
    assert ring.with_known(key(5)) == ring
    assert ring.with_known(key(6)) == ring
    assert ring.with_known(key(1)) == ring
    more = ring.with_known(key(5, True))
    assert more.lookup(key(5).fingerprint) == (key(5, True),)
    assert more.without_known(key(5).fingerprint).lookup(key(5).fingerprint) == ()
    with pytest.raises(NotFound):
        ring.without_known(key(1).fingerprint)


def test_a_pinned_ring_has_the_given_keys_and_is_closed(ring: Ring) -> None:
    pinned = Ring.pin((key(5), key(7)))
    assert pinned.closed
    assert not ring.closed
    assert pinned.lookup(key(5).fingerprint) == (key(5),)
    assert pinned.lookup(key(1).fingerprint) == ()
    assert pinned.active("ledger") is None


def test_a_ring_is_a_value(ring: Ring) -> None:
    with pytest.raises(AttributeError):
        ring.closed = True  # type: ignore[misc]
    with pytest.raises(TypeError):
        ring.known["x"] = key(9)  # type: ignore[index]
    given = {key(9).fingerprint: key(9)}
    mine = Ring(known=given)
    given.clear()
    assert mine.lookup(key(9).fingerprint) == (key(9),)
    assert pickle.loads(pickle.dumps(ring)) == ring


def test_round_trip(ring: Ring) -> None:
    for one in (ring, Ring(), Ring.pin((key(5), key(6, True)))):
        raw = json.dumps(one.to_dict()).encode()
        again = Ring.from_bytes(raw)
        assert again == one
        assert again.to_dict() == one.to_dict()


@pytest.mark.parametrize(
    "identity",
    ["ledger", "agent:a", "agent:A.b_c-9", "person:" + "x" * 64, "policy:0", "agent:-", "agent:_", "agent:a.0.key"],
)
def test_identities(identity: str) -> None:
    assert check_identity(identity) == identity
    assert identity_from_slug(slug(identity)) == identity
    assert "/" not in slug(identity)


@pytest.mark.parametrize(
    "identity",
    ["", "Ledger", "ledger:", "ledger:x", "agent", "agent:", "agent:.x", "agent:..", "agent:a/b", "agent:a b",
     "agent:a:b", "agent:ä", "agent:" + "x" * 65, "robot:x", "agent:x\n", "agent:\0", None, 5, ["ledger"]],
)  # fmt: skip
def test_what_is_not_an_identity(identity: Any) -> None:
    with pytest.raises(BadInput, match="identity"):
        check_identity(identity)


def test_slugs_differ_even_where_case_is_ignored() -> None:
    names = ["a", "A", "a-b", "a.0", "aB", "Ab", "AB", "ab", "-a", "_A"]
    identities = [f"{kind}:{name}" for kind in ("agent", "person", "policy") for name in names] + ["ledger"]
    assert len({slug(identity).casefold() for identity in identities}) == len(identities)
    for text in ("agent", "agent-", "agent-A", "agent-=", "agent-=1", "ledger-x", "agent-.x", "x", "", "agent-a=="):
        assert identity_from_slug(text) is None


def test_default_purposes() -> None:
    given = {"ledger": "seal", "agent:x": "seal", "person:x": "approve", "policy:x": "policy"}
    assert {identity: default_purpose(identity) for identity in given} == given


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("identity", "nobody"),
        ("identity", None),
        ("purpose", "sealing"),
        ("purpose", []),
        ("epoch", -1),
        ("epoch", 0.0),
        ("epoch", True),
        ("epoch", "0"),
        ("epoch", 10**9),
        ("algorithm", "ed448"),
        ("fingerprint", "0" * 16),
        ("fingerprint", None),
        ("public_key", "0" * 64 + "0"),
        ("public_key", "A" * 64),
        ("public_key", None),
        ("public_key_pq", None),
        ("public_key_pq", "00"),
        ("created_at", "yesterday"),
        ("created_at", "2026-13-01T00:00:00+00:00"),
        ("created_at", "2026-01-01T00:00:00Z"),
        ("created_at", "2026-01-01T00:00:00.123+00:00"),
        ("created_at", "٢٠٢٦-01-01T00:00:00+00:00"),
        ("created_at", None),
        ("retired_at", ""),
        ("retired_at", "2026-01-01"),
        ("status", "active"),
        ("status", "stolen"),
        ("statement", {}),
        ("statement", "signed"),
        ("surprise", 1),
    ],
)
def test_entries_that_are_not_as_we_write_them_are_refused(ring: Ring, name: str, value: Any) -> None:
    document = json.loads(json.dumps(ring.to_dict()))
    document["entries"][0][name] = value
    with pytest.raises(BadInput):
        Ring.from_dict(document)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.update(version=2),
        lambda d: d.update(version=True),
        lambda d: d.update(more=1),
        lambda d: d.update(closed=False),
        lambda d: d.update(known={}),
        lambda d: d.update(known={"0" * 16: {"public_key": key(5).ed25519, "public_key_pq": ""}}),
        lambda d: d.update(known={"\ud800": {}}),
        lambda d: d.update(entries={}),
        lambda d: d.update(entries=[None]),
        lambda d: d["entries"].append(d["entries"][0]),
        lambda d: d["entries"][0].update(retired_at=None, status="active"),
        lambda d: d["entries"][0].pop("statement"),
        lambda d: d.pop("entries"),
        lambda d: d.pop("version"),
    ],
)
def test_documents_that_break_a_rule_are_refused(ring: Ring, spoil: Any) -> None:
    document = json.loads(json.dumps(ring.to_dict()))
    spoil(document)
    with pytest.raises(BadInput):
        Ring.from_dict(document)


def test_a_key_named_twice_is_refused() -> None:
    raw = b'{"version": 1, "entries": [], "entries": []}'
    with pytest.raises(BadInput):
        Ring.from_bytes(raw)


@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"version": NaN, "entries": []}', b"[" * 100_000, b'{"a":' * 50_000,
     b'{"version": ' + b"9" * 10_000 + b', "entries": []}', b"\xef\xbb\xbf{}"],
)  # fmt: skip
def test_bytes_that_are_no_ring_are_refused(raw: bytes) -> None:
    with pytest.raises(BadInput):
        Ring.from_bytes(raw)


def test_a_huge_file_is_refused() -> None:
    with pytest.raises(BadInput, match=str(RING_MAX)):
        Ring.from_bytes(b" " * (RING_MAX + 1))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([T0, "0" * 16, "0" * 64]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        found += places(inner, (*path, step))
    return found


@pytest.mark.more
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_hostile_document_is_refused_or_read_exactly(data: st.DataObject) -> None:
    one = Ring((entry("ledger", 0, 1, T1), entry("ledger", 1, 2), entry("agent:x", 0, 3))).with_known(key(5))
    document = json.loads(json.dumps(one.to_dict()))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(document)))
        parent: Any = document
        for step in path[:-1]:
            parent = parent[step]
        if data.draw(st.booleans()):
            parent[path[-1]] = data.draw(json_values)
        else:
            del parent[path[-1]]
        if not places(document):
            break
    try:
        read = Ring.from_dict(document)
    except BadInput:
        return
    assert read.to_dict() == document


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_file_is_refused_or_read_exactly(data: st.DataObject) -> None:
    raw = bytearray(json.dumps(Ring((entry("ledger", 0, 1),)).to_dict()).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        read = Ring.from_bytes(bytes(raw))
    except BadInput:
        return
    assert read.to_dict() == json.loads(bytes(raw))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_a_ring(raw: bytes) -> None:
    try:
        Ring.from_bytes(raw)
    except BadInput:
        return
    assert json.loads(raw)["version"] == 1


@pytest.mark.parametrize("bad", ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, " " + "0" * 63, None, 5, bytes(32)])
def test_public_keys_are_lower_case_hex(bad: Any) -> None:
    with pytest.raises(BadInput):
        PublicKey(bad)
    with pytest.raises(BadInput):
        PublicKey("0" * 64, bad if bad != "" else "0")
