"""Reading JSON from outside: strict, the same in every chunking, bounded."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import Capsule, Sealed, SeedSigner, canonical_bytes, seal
from aver.capsule.canonical import DEPTH_MAX, canonical_json
from aver.capsule.json_reader import (
    ELEMENT_MAX,
    TOKENS_MAX,
    DuplicateKey,
    Unreadable,
    canonical_forms,
    read_element_texts,
    read_elements,
    read_json,
)
from aver.capsule.sealed import SEAL_KEYS, content_hash
from aver.verdict.record import read_record
from support.many_cases import first_now
from support.strategies import capsules, chunked, foreign_contents, json_objects, json_values

cuts = st.lists(st.integers(0, 10_000), max_size=30)
layouts = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"sort_keys": True}])


@given(json_values, layouts)
def test_reading_agrees_with_the_standard_library(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    assert same(read_json(text), json.loads(text))
    assert same(read_json(text.encode()), json.loads(text))


def same(left: Any, right: Any) -> bool:
    """Equal in value and in kind: 1, 1.0 and True are three things."""
    return repr(left) == repr(right)


@given(st.lists(json_values, max_size=6), layouts, cuts)
def test_elements_are_the_same_in_every_chunking(values: list[Any], layout: dict[str, Any], places: list[int]) -> None:
    data = json.dumps(values, **layout).encode()
    found = list(read_elements(chunked(data, places)))
    assert same([value for _, value in found], json.loads(data))
    assert same([json.loads(text) for text, _ in found], json.loads(data))


@given(st.lists(json_values, max_size=4), json_objects, layouts, cuts, st.randoms())
def test_elements_under_a_key(
    values: list[Any], others: dict[str, Any], layout: Any, places: list[int], random: Any
) -> None:
    others.pop("capsules", None)
    members = [*others.items(), ("capsules", values)]
    random.shuffle(members)
    data = json.dumps(dict(members), **layout).encode()
    *found, last = read_elements(chunked(data, places), key="capsules")
    assert same([value for _, value in found], json.loads(data)["capsules"])
    assert last == ("", {key: value for key, value in json.loads(data).items() if key != "capsules"})


def test_single_bytes_as_chunks() -> None:
    data = json.dumps([1, -2.5e-7, "é😀\n", {"a": [True, None]}, 10**30]).encode()
    assert [value for _, value in read_elements(data[i : i + 1] for i in range(len(data)))] == json.loads(data)


@given(st.lists(json_values, min_size=1, max_size=4), st.data())
def test_a_cut_stream_is_never_taken_for_a_whole_one(values: list[Any], data: Any) -> None:
    whole = json.dumps(values).encode()
    place = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Unreadable):
        list(read_elements([whole[:place]]))


@pytest.mark.parametrize("after", [b"x", b"]", b",", b"[]", b"1", b"\x00", b"\xff"])
def test_nothing_may_follow(after: bytes) -> None:
    with pytest.raises(Unreadable):
        list(read_elements([b"[1,2]", b" ", after]))
    with pytest.raises(Unreadable):
        read_json(b"[1,2] " + after)


@pytest.mark.parametrize(
    "text",
    ["[1,]", "[,1]", "[1 2]", "{}", "1", "", " ", "[NaN]", "[Infinity]", "[1e999]", '[{"a":1,"a":2}]', "[01]", "['x']"],
)
def test_bad_arrays(text: str) -> None:
    with pytest.raises(Unreadable):
        list(read_elements([text.encode()]))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[1],"a":[2]}',
        '{"x":1,"x":2,"a":[]}',
        '{"b":[]}',
        "{}",
        '{"a":1}',
        "{1:[]}",
        '{"a":[]',
        '{"a" [1]}',
        '{"a":[],}',
        "[]",
    ],
)
def test_bad_objects_with_an_array(text: str) -> None:
    with pytest.raises(Unreadable):
        list(read_elements([text.encode()], key="a"))


def test_duplicate_keys_are_their_own_error() -> None:
    for text in ('{"a":1,"a":1}', '[[{"x":{"k":1,"k":2}}]]', '{"a":1,"\\u0061":2}'):
        with pytest.raises(DuplicateKey):
            read_json(text)
    with pytest.raises(DuplicateKey):
        list(read_elements([b'{"a":[],"a":[]}'], key="a"))


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_depth_is_bounded_and_the_bound_is_exact(opening: str) -> None:
    width = opening.count("[") + opening.count("{")
    closing = "".join({"[": "]", "{": "}"}[c] for c in reversed(opening) if c in "[{")
    levels = DEPTH_MAX // width
    assert read_json(opening * levels + "1" + closing * levels) is not None
    with pytest.raises(Unreadable):
        read_json(opening * (levels + 1) + "1" + closing * (levels + 1))
    for many in (1_000, 200_000):
        with pytest.raises(Unreadable):
            read_json(opening * many + "1" + closing * many)
        with pytest.raises(Unreadable):
            list(read_elements([b"[", (opening * many).encode()]))


def test_brackets_in_strings_do_not_count() -> None:
    text = json.dumps(["[" * 1000, '"[{\\' * 300])
    assert read_json(text) == json.loads(text)


def test_an_element_is_bounded_before_it_is_held_whole() -> None:
    """An endless string: refused after about the limit, however much more would come."""
    taken = 0

    def endless() -> Any:
        nonlocal taken
        yield b'["'
        while True:
            taken += 1 << 20
            yield b"x" * (1 << 20)

    with pytest.raises(Unreadable):
        list(read_elements(endless()))
    assert taken < 6 * ELEMENT_MAX


@pytest.mark.long
def test_a_long_array_is_read_in_bounded_memory() -> None:
    def chunks() -> Any:
        yield b"["
        for index in range(60_000):
            yield b'%s{"n":%d,"text":"0123456789012345678901234567890123456789"}' % (b"," if index else b"", index)
        yield b"]"

    tracemalloc.start()
    total = sum(value["n"] for _, value in read_elements(chunks()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 60_000 * 59_999 // 2
    assert peak < 4 * 1024 * 1024


@pytest.mark.more
@given(foreign_contents(), layouts)
def test_the_first_form_is_the_document_itself(content: dict[str, Any], layout: dict[str, Any]) -> None:
    forms = list(canonical_forms(json.dumps(content, **layout)))
    assert forms[0] == canonical_json(content)
    assert canonical_bytes(content) in forms
    assert len(forms) == len(set(forms)) <= 4


@pytest.mark.more
@given(foreign_contents())
def test_forms_leave_out_what_they_are_told_to(content: dict[str, Any]) -> None:
    sealed = {**content, "hash": "h", "signature": "s", "signature_pq": "", "signed_at": None, "signed_by": "x"}
    assert next(canonical_forms(json.dumps(sealed), without=SEAL_KEYS)) == canonical_json(content)


def test_numbers_as_written_are_a_form() -> None:
    text = '{"reasoning":{"confidence":1,"options":[{"feasibility":0}]},"m":[1e-7,1E5,-0,1.50,100000000000000000000]}'
    forms = set(canonical_forms(text))
    assert (
        b'{"m":[1e-7,1E5,-0,1.50,100000000000000000000],"reasoning":{"confidence":1.0,"options":[{"feasibility":0.0}]}}'
        in forms
    )
    assert (
        b'{"m":[1e-7,1E5,-0,1.50,100000000000000000000],"reasoning":{"confidence":1,"options":[{"feasibility":0}]}}'
        in forms
    )
    assert (
        b'{"m":[1e-07,100000.0,0,1.5,100000000000000000000],"reasoning":{"confidence":1.0,"options":[{"feasibility":0.0}]}}'
        in forms
    )


@pytest.mark.more
@given(capsules() | foreign_contents(), layouts)
def test_a_sealed_document_is_found_by_its_hash_whatever_its_layout(capsule: Any, layout: dict[str, Any]) -> None:
    content = capsule if isinstance(capsule, dict) else capsule.to_dict()
    sealed = seal(content, SIGNER, unchecked=True)
    text = json.dumps({**content, **{key: getattr(sealed, key) for key in SEAL_KEYS}}, **layout)
    assert Sealed.from_sealed_json(text) == sealed


SIGNER = SeedSigner(bytes(32))


@pytest.mark.more
@given(capsules() | foreign_contents(), layouts)
def test_a_record_reads_the_same_fast_and_strictly(capsule: Any, layout: dict[str, Any]) -> None:
    content = capsule if isinstance(capsule, dict) else capsule.to_dict()
    for data in (canonical_bytes(content), canonical_json(content), json.dumps(content, **layout).encode()):
        found, canonical, _ = read_record(data)
        assert same(found, read_json(data))
        assert canonical == (data == canonical_bytes(read_json(data)))


@pytest.mark.parametrize("capsule", [Capsule(type="tool")])
def test_a_duplicate_key_is_found_wherever_it_is_injected(capsule: Capsule) -> None:
    """After every `{`: the same key again, which a lenient reader would swallow."""
    canonical = canonical_bytes(capsule.to_dict())
    tried = 0
    for place in range(len(canonical)):
        if canonical[place : place + 2] == b'{"':
            key = canonical[place + 1 : canonical.index(b'"', place + 2) + 1]
            with pytest.raises(DuplicateKey):
                read_record(canonical[: place + 1] + key + b":0," + canonical[place + 1 :])
            tried += 1
    assert tried == 7


def test_the_hash_decides_between_forms_and_nothing_else() -> None:
    sealed = seal(Capsule(type="tool", reasoning={"confidence": 1}), SIGNER)
    text = json.dumps(sealed.to_sealed_dict()).replace('"confidence": 1.0', '"confidence": 1')
    found = Sealed.from_sealed_json(text)
    assert content_hash(found.canonical) == sealed.hash
    wrong = Sealed.from_sealed_json(text.replace(sealed.hash, "0" * 64))
    assert content_hash(wrong.canonical) != wrong.hash


# --- memory, however short the values are written


CROWDED = "{" + ",".join(f'"{index}":0' for index in range(TOKENS_MAX // 2 + 1)) + "}"
MANY_BESIDE = ",".join(f'"{name}":[{",".join("0" * (TOKENS_MAX // 4))}]' for name in "abcde")

CROWDED_READINGS: list[Callable[[], Any]] = [
    lambda: read_json("[" + ",".join(["[]"] * (TOKENS_MAX // 2 + 1)) + "]"),
    lambda: list(canonical_forms(CROWDED)),
    lambda: Sealed.from_sealed_json(CROWDED),
    lambda: Sealed(CROWDED.encode(), "ab", "").to_dict(),
    lambda: read_record(CROWDED.encode()),
    lambda: list(read_elements([b"[", CROWDED.encode(), b"]"])),
    lambda: list(read_element_texts([b"[", CROWDED.encode(), b"]"])),
    lambda: list(read_elements([f'{{"a":{CROWDED},"capsules":[]}}'.encode()], key="capsules")),
    lambda: list(read_elements([f'{{{MANY_BESIDE},"capsules":[]}}'.encode()], key="capsules")),
]


@pytest.mark.more
@pytest.mark.parametrize("reading", first_now(CROWDED_READINGS, 2))
def test_very_many_values_are_refused_wherever_they_are_read(reading: Callable[[], Any]) -> None:
    with pytest.raises(Unreadable, match="values"):
        reading()


@pytest.mark.more
def test_very_many_values_are_refused_before_they_are_built() -> None:
    text = "[" + ",".join(["{}"] * (ELEMENT_MAX // 3 - 1)) + "]"
    tracemalloc.start()
    with pytest.raises(Unreadable, match="values"):
        read_json(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1024 * 1024


@pytest.mark.more
def test_the_bound_on_values_is_exact_and_strings_do_not_count() -> None:
    """Files of others stand in records as long strings, full of commas."""
    most = "[" + ",".join("0" * TOKENS_MAX) + "]"
    assert len(read_json(most)) == TOKENS_MAX
    with pytest.raises(Unreadable, match="values"):
        read_json(most[:-1] + ",0]")
    long = json.dumps({"file": 'a,b:[{"\\",' * 1_000_000})
    assert read_json(long) == json.loads(long)
    assert [json.loads(text) for text in read_element_texts([b"[", long.encode(), b"]"])] == [json.loads(long)]
    assert next(canonical_forms(long)) == canonical_json(json.loads(long))


def test_a_size_is_counted_in_bytes() -> None:
    text = json.dumps(["\N{GRINNING FACE}" * (ELEMENT_MAX // 4)], ensure_ascii=False)
    for reading in (lambda: read_json(text), lambda: list(read_elements([b"[", text.encode(), b"]"]))):
        with pytest.raises(Unreadable, match="larger"):
            reading()


@pytest.mark.parametrize("quotes", ['\\"' * 400_000, '[,"' + '\\"' * 400_000, '"' * 400_001])
def test_broken_strings_are_refused_in_linear_time(quotes: str) -> None:
    text = "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1) + ",:" * TOKENS_MAX
    for broken in (quotes, quotes + text):
        with pytest.raises(Unreadable):
            read_json(broken)
        with pytest.raises(Unreadable):
            list(read_elements([b"[", broken.encode()]))


def test_the_first_repeated_key_is_named_even_among_very_many() -> None:
    """Quadratic, this would take hours."""
    members = ",".join(f'"{index}":0' for index in range(300_000))
    with pytest.raises(DuplicateKey, match="'299999'"):
        read_json(f'{{{members},"299999":1}}')


# --- numbers


@pytest.mark.parametrize(
    ("signed", "written", "found"),
    [
        (1e16, "10000000000000001.0", False),
        (1e16, "10000000000000001e0", False),
        (0.3, "0.30000000000000001", False),
        (0.0, "1e-400", False),
        (0.0, "1e-99999999999999999999", False),
        (1e16, "10000000000000000.0", True),
        (1e16, "1E16", True),
        (0.3, "0.300", True),
        (1e-7, "1e-7", True),
        (0, "-0", True),
    ],
)
def test_a_number_is_never_read_for_one_of_another_value(signed: float, written: str, found: bool) -> None:
    """Who reads the file must not see what nobody signed."""
    sealed = seal(Capsule(type="tool", outcome={"metrics": {"amount": signed}}), SIGNER, unchecked=True)
    text = json.dumps(sealed.to_sealed_dict())
    changed = text.replace(f'"amount": {json.dumps(signed)}', f'"amount": {written}')
    assert changed != text
    assert (Sealed.from_sealed_json(changed) == sealed) is found


def test_a_score_is_not_rounded_to_the_signed_one() -> None:
    content = Capsule(type="tool").to_dict()
    content["reasoning"]["confidence"] = float(2**53)
    sealed = seal(content, SIGNER, unchecked=True)
    text = json.dumps(sealed.to_sealed_dict())
    for written, found in ((2**53, True), (2**53 + 1, False)):
        changed = text.replace("9007199254740992.0", str(written))
        assert (Sealed.from_sealed_json(changed) == sealed) is found
        assert (Sealed.from_sealed_dict(json.loads(changed)) == sealed) is found


def test_a_sequence_is_one_that_can_be_counted_with() -> None:
    canonical = canonical_bytes(Capsule(type="tool").to_dict())
    for sequence, taken in ((2**63 - 1, True), (2**63, False), (int("9" * 4300), False), (-1, False)):
        changed = canonical.replace(b'"sequence":0', b'"sequence":%d' % sequence)
        if taken:
            assert read_record(changed)[0]["sequence"] == sequence
        else:
            with pytest.raises(Unreadable, match="sequence"):
                read_record(changed)
