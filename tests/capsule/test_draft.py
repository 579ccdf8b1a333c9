"""Drafts: what sealing writes is canonical, in bounds, and says what the draft said."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import Blob, Capsule, InvalidCapsule, NotCanonical, SeedSigner, canonical_bytes
from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import CAPSULE_MAX, INLINE_MAX, blob_references, referenced_digests
from aver.capsule.canonical import DEPTH_MAX
from aver.capsule.draft import prepare_draft
from aver.capsule.json_reader import read_json
from aver.capsule.sealed import content_hash
from aver.errors import BadInput
from aver.keys import verify_ed25519
from aver.verdict.record import read_record
from support.reference_writer import write
from support.strategies import capsules

SIGNER = SeedSigner(bytes(range(32)))
AT = "2026-01-01T00:00:00+00:00"
PLACE = {"ledger": "l", "tenant": "t", "name": "demo.é"}


def sealed(draft: Any, sequence: int = 0, previous: str | None = None, **options: Any) -> Any:
    return prepare_draft(draft, **options).seal(SIGNER, at=AT, sequence=sequence, previous_hash=previous, chain=PLACE)


@pytest.mark.more
@given(capsules(), st.integers(0, 3), st.none() | st.text("abc ü😀", min_size=1, max_size=8))
def test_the_bytes_are_those_of_the_canonical_writer(capsule: Capsule, sequence: int, key: str | None) -> None:
    record = sealed(capsule, sequence, None if sequence == 0 else "0" * 64, key=key)
    content = read_json(record.canonical)
    assert record.canonical == canonical_bytes(content) == write(content)
    assert record.hash == content_hash(record.canonical)
    assert verify_ed25519(SIGNER.public.ed25519_bytes, record.hash.encode(), record.signature)


@pytest.mark.more
@given(capsules(), st.integers(0, 1))
def test_the_content_is_the_draft_with_its_place(capsule: Capsule, sequence: int) -> None:
    content = read_json(sealed(capsule, sequence, None if sequence == 0 else "0" * 64, key="k").canonical)
    block = content["context"]["environment"].pop("aver")
    expected = {**capsule.to_dict(), "sequence": sequence, "previous_hash": None if sequence == 0 else "0" * 64}
    assert content == orjson_free(expected)
    assert block.pop("kind") in {"call", "turn", "record"}
    assert block == {"v": 1, "at": AT, "by": SIGNER.fingerprint, "key": "k", **({} if sequence else {"chain": PLACE})}


def orjson_free(content: dict[str, Any]) -> Any:
    """The content as any reader gets it: tuples as arrays, −0.0 scores as 0.0, integer scores as floats."""
    return read_json(canonical_bytes(content).replace(b'"confidence":-0.0', b'"confidence":0.0'))


BIG = "é" * INLINE_MAX


def test_a_large_string_in_a_free_place_becomes_a_blob() -> None:
    prepared = prepare_draft(Capsule(type="tool", outcome={"result": {"text": BIG, "small": "x"}}))
    content = read_json(prepared.seal(SIGNER, at=AT, sequence=0, previous_hash=None, chain=PLACE).canonical)
    digest = hashlib.sha256(BIG.encode()).hexdigest()
    assert content["outcome"]["result"]["text"]["blob"]["digest"] == digest
    assert content["outcome"]["result"]["text"]["blob"]["size"] == len(BIG.encode())
    assert content["outcome"]["result"]["small"] == "x"
    assert [blob.data for blob in prepared.blobs] == [BIG.encode()]
    assert prepared.blob_digests == {digest}


@pytest.mark.parametrize(
    ("draft", "path"),
    [
        (Capsule(type="tool", trigger={"request": BIG}), "trigger.request"),
        (Capsule(type="tool", reasoning={"analysis": BIG}), "reasoning.analysis"),
        (Capsule(type="tool", outcome={"side_effects": ["x", BIG]}), "outcome.side_effects[1]"),
        (Capsule(type="tool", domain=BIG), "domain"),
        (Capsule(type="tool", context={"agent_id": BIG}), "context.agent_id"),
        (Capsule(type="tool", context={"session_id": BIG}), "context.session_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_large_string_where_cps_wants_a_string_is_cut_and_kept_whole_beside(draft: Capsule, path: str) -> None:
    prepared = prepare_draft(draft)
    content = read_json(prepared.seal(SIGNER, at=AT, sequence=0, previous_hash=None, chain=PLACE).canonical)
    whole = content["context"]["environment"]["aver"]["whole"]
    assert whole[path]["blob"]["digest"] == hashlib.sha256(BIG.encode()).hexdigest()
    assert [blob.data for blob in prepared.blobs] == [BIG.encode()]
    assert longest_string(content) <= INLINE_MAX


def longest_string(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, dict):
        return max(map(longest_string, (*value, *value.values())), default=0)
    return max(map(longest_string, value), default=0) if isinstance(value, list) else 0


HUGE = "x" * (2 * CAPSULE_MAX)
OVERSIZED = {
    "many small values": Capsule(type="tool", outcome={"result": ["x" * 1000] * 300}),
    "a key": Capsule(type="tool", outcome={"result": {HUGE: 1}}),
    "a key of the environment": Capsule(type="tool", context={"environment": {HUGE: 1}}),
    "a reference": of_kind(Capsule(type="tool"), "call", {"x": HUGE}),
    "a name of a reference": of_kind(Capsule(type="tool"), "call", {HUGE: "x"}),
    "numbers": Capsule(type="tool", outcome={"result": [10**100] * 3000}),
}


@pytest.mark.parametrize("name", OVERSIZED)
def test_no_record_grows_beyond_its_bound(name: str) -> None:
    """Refused, or made small: wherever the bytes stand, none may get past the limit."""
    refused: InvalidCapsule | None = None
    try:
        record = sealed(OVERSIZED[name])
    except InvalidCapsule as error:
        refused = error
    assert refused.category == "invalid_value" if refused else len(record.canonical) <= CAPSULE_MAX + 4096


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_blobs_and_references_agree(request: int, result: int, environment: int) -> None:
    draft = Capsule(
        type="tool",
        trigger={"request": "r" * (request * 1000)},
        context={"environment": {"e": "e" * (environment * 1000)}},
        execution={"tool_calls": [{"tool": "t", "result": "o" * (result * 1000)}]},
    )
    prepared = prepare_draft(draft)
    content = read_json(prepared.seal(SIGNER, at=AT, sequence=0, previous_hash=None, chain=PLACE).canonical)
    assert {(blob.digest, len(blob.data)) for blob in prepared.blobs} == set(blob_references(content))
    assert longest_string(content) <= INLINE_MAX


_WHOLE = Blob(b"x").reference
_LIKE_REFERENCES = [
    _WHOLE,
    Blob(b"y", 'a "quoted" \\ type').reference,
    {"blob": {**_WHOLE["blob"], "aaa": 1}},
    {"blob": {**_WHOLE["blob"], "size": -1}},
    {"blob": {**_WHOLE["blob"], "size": True}},
    {"blob": {**_WHOLE["blob"], "size": 1.0}},
    {"blob": {**_WHOLE["blob"], "alg": "sha512"}},
    {"blob": {**_WHOLE["blob"], "digest": "0" * 63}},
    {"blob": {**_WHOLE["blob"], "digest": _WHOLE}},
    {"blob": {**_WHOLE["blob"], "media": {"blob": 1}}},
    {"blob": _WHOLE},
    {**_WHOLE, "zzz": 1},
    {**_WHOLE, "aaa": _WHOLE},
    {'x"blob': _WHOLE["blob"]},
    orjson.dumps(_WHOLE).decode(),
    {orjson.dumps(_WHOLE).decode(): "{"},
]
"""References, and values that look like one."""


@given(st.lists(st.sampled_from(_LIKE_REFERENCES), max_size=4))
def test_references_are_found_in_the_bytes_as_in_the_content(values: list[Any]) -> None:
    content = {"result": values, "environment": {str(place): value for place, value in enumerate(values)}}
    walked = frozenset(digest for digest, _ in blob_references(content))
    assert referenced_digests(content, [canonical_bytes(content)]) == walked
    assert referenced_digests(content, [canonical_bytes(value) for value in content.values()]) == walked


def test_a_blob_is_named_by_its_digest() -> None:
    blob = Blob(b"abc", "text/plain")
    assert blob.reference == {
        "blob": {"alg": "sha256", "digest": hashlib.sha256(b"abc").hexdigest(), "size": 3, "media": "text/plain"}
    }


REFUSED: dict[str, tuple[Any, str, str]] = {
    "a sequence": (Capsule(type="tool", sequence=1, previous_hash="0" * 64), "chain_violation", "sequence"),
    "a link": (Capsule(type="tool", previous_hash="0" * 64), "chain_violation", "sequence"),
    "no type": ({}, "missing_field", "type"),
    "an unknown key": ({"type": "tool", "colour": 1}, "invalid_value", "colour"),
    "extra": ({"type": "tool", "extra": {}}, "invalid_value", "extra"),
    "a seal": ({"type": "tool", "hash": "0" * 64}, "invalid_value", "hash"),
    "not an object": ([1], "wrong_type", ""),
    "another spec": (Capsule(type="tool", spec_version="2.0"), "invalid_value", "spec_version"),
    "no spec": (Capsule(type="tool", spec_version=None), "missing_field", "spec_version"),
    "its own time": (
        Capsule(type="tool", context={"environment": {"aver": {"at": AT}}}),
        "invalid_value",
        "context.environment.aver.at",
    ),
    "its own signer": (
        Capsule(type="tool", context={"environment": {"aver": {"by": "x"}}}),
        "invalid_value",
        "context.environment.aver.by",
    ),
    "its own key": (
        Capsule(type="tool", context={"environment": {"aver": {"key": "x"}}}),
        "invalid_value",
        "context.environment.aver.key",
    ),
    "its own chain": (
        Capsule(type="tool", context={"environment": {"aver": {"chain": PLACE}}}),
        "invalid_value",
        "context.environment.aver.chain",
    ),
    "its own whole": (
        Capsule(type="tool", context={"environment": {"aver": {"whole": {}}}}),
        "invalid_value",
        "context.environment.aver.whole",
    ),
    "a block that is none": (
        Capsule(type="tool", context={"environment": {"aver": 1}}),
        "wrong_type",
        "context.environment.aver",
    ),
    "an unknown kind": (of_kind(Capsule(type="tool"), "banana"), "invalid_value", "context.environment.aver.kind"),
    "refs that are none": (
        Capsule(type="tool", context={"environment": {"aver": {"refs": {"a": 1}}}}),
        "wrong_type",
        "context.environment.aver.refs",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_draft_is_refused_for(name: str) -> None:
    draft, category, field = REFUSED[name]
    with pytest.raises(InvalidCapsule) as caught:
        prepare_draft(draft)
    assert (caught.value.category, caught.value.field) == (category, field)


@pytest.mark.parametrize("key", ["", "\n", "a\x00b", "x" * 513, "\ud800", "\u200b"])
def test_a_key_is_printable_and_short(key: str) -> None:
    with pytest.raises(BadInput):
        prepare_draft(Capsule(type="tool"), key=key)


NOT_JSON = [float("nan"), b"x", {1}, {1: 2}, "\ud800", orjson.Fragment(b"{"), 1j]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    ("draft", "path"),
    [
        (lambda v: {"context": {"environment": {"x": v}}}, "context.environment.x"),
        (lambda v: {"authority": {"chain": [{"x": v}]}}, "authority.chain[0].x"),
        (lambda v: {"outcome": {"result": v}}, "outcome.result"),
        (lambda v: {"outcome": {"metrics": {"x": v}}}, "outcome.metrics.x"),
        (lambda v: {"execution": {"resources_used": {"x": v}}}, "execution.resources_used.x"),
        (lambda v: {"execution": {"tool_calls": [{"arguments": {"x": v}}]}}, "execution.tool_calls[0].arguments.x"),
        (lambda v: {"execution": {"tool_calls": [{"result": [v]}]}}, "execution.tool_calls[0].result[0]"),
        (
            lambda v: {"reasoning": {"options": [{"selected": True, "estimated_impact": {"x": v}}]}},
            "reasoning.options[0].estimated_impact.x",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_without_canonical_form_is_refused_with_its_full_place(draft: Any, path: str, value: Any) -> None:
    with pytest.raises(NotCanonical) as caught:
        prepare_draft({"type": "tool", **draft(value)})
    assert caught.value.path == path


@pytest.mark.parametrize("place", ["domain", "source", "agent_id", "session_id", "summary", "side_effects", "refs"])
def test_a_lone_surrogate_is_refused_in_any_string(place: str) -> None:
    drafts: dict[str, Any] = {
        "domain": {"domain": "\ud800"},
        "source": {"trigger": {"source": "\ud800"}},
        "agent_id": {"context": {"agent_id": "\ud800"}},
        "session_id": {"context": {"session_id": "\ud800"}},
        "summary": {"outcome": {"summary": "\ud800"}},
        "side_effects": {"outcome": {"side_effects": ["\ud800"]}},
        "refs": {"context": {"environment": {"aver": {"refs": {"a": "\ud800"}}}}},
    }
    with pytest.raises(NotCanonical):
        prepare_draft({"type": "tool", **drafts[place]})
    big = {"outcome": {"metrics": {"filler": "y" * 2 * INLINE_MAX}}}
    draft = {"type": "tool", **drafts[place]}
    draft["outcome"] = {**draft.get("outcome", {}), **big["outcome"]}
    with pytest.raises(NotCanonical):
        prepare_draft(draft)


@pytest.mark.parametrize("score", [5e-05, 1e-9, 2, -1, float("nan"), float("inf"), True, "1", None])
def test_scores_are_numbers_from_0_to_1_without_exponents(score: Any) -> None:
    with pytest.raises(InvalidCapsule) as caught:
        prepare_draft({"type": "tool", "reasoning": {"confidence": score}})
    assert caught.value.field == "reasoning.confidence"


def test_minus_zero_becomes_zero() -> None:
    draft = {"type": "tool", "reasoning": {"confidence": -0.0, "options": [{"selected": True, "feasibility": -0.0}]}}
    assert b"-0.0" not in sealed(draft).canonical


def test_minus_zero_becomes_zero_in_a_tuple_of_options() -> None:
    draft = {"type": "tool", "reasoning": {"options": ({"selected": True, "feasibility": -0.0},)}}
    assert b"-0.0" not in sealed(draft).canonical


def nested(levels: int, leaf: Any) -> Any:
    value = leaf
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("leaf", [1, 1e-9], ids=["fast", "exact"])
@pytest.mark.parametrize(
    "draft",
    [
        lambda v: {"outcome": {"result": v}},
        lambda v: {"outcome": {"metrics": {"x": v}}},
        lambda v: {"authority": {"chain": [{"x": v}]}},
        lambda v: {"context": {"environment": {"x": v}}},
        lambda v: {"execution": {"tool_calls": [{"arguments": {"x": v}}]}},
        lambda v: {"reasoning": {"options": [{"selected": True, "estimated_impact": {"x": v}}]}},
    ],
    ids=["result", "metrics", "authority", "environment", "arguments", "impact"],
)
def test_what_was_written_can_be_read_however_deep(draft: Any, leaf: Any) -> None:
    """At the edge of the allowed depth a draft is refused, or else every reader can read the record."""
    written = 0
    for levels in range(DEPTH_MAX - 8, DEPTH_MAX + 8):
        try:
            record = sealed({"type": "tool", **draft(nested(levels, leaf))})
        except NotCanonical:
            continue
        written += 1
        assert read_json(record.canonical) == read_record(record.canonical)[0]
        assert read_record(record.canonical)[1]
    assert 0 < written < 16


def test_a_block_with_keys_of_several_types_is_refused() -> None:
    with pytest.raises(InvalidCapsule):
        prepare_draft({"type": "tool", "context": {"environment": {"aver": {1: 1, "x": 2}}}})


@pytest.mark.parametrize("innermost", [[], {}, [1], {"a": 1}], ids=repr)
def test_what_may_be_written_is_not_too_deep_to_be_read(innermost: Any) -> None:
    taken = []
    for depth in range(190, 205):
        value = innermost
        for _ in range(depth - 1):
            value = [value]
        try:
            sealed = prepare_draft(Capsule(type="tool", outcome={"result": value})).seal(
                SeedSigner(bytes(32)), at="2026-01-01T00:00:00+00:00", sequence=0, previous_hash=None, chain={}
            )
        except NotCanonical:
            continue
        taken.append(depth)
        assert read_json(sealed.canonical) == sealed.to_dict()
    assert taken == list(range(190, 199))
