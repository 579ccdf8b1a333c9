"""`verify` on capsules outside a ledger: one, an array, one a line; in memory or in a file."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver import Blob, PublicKey, Sealed, SeedSigner, seal
from aver.check import resolve, verify, verify_with_key
from aver.errors import BadInput
from aver.ledger.foreign import capsule_files
from support.loose_capsules import KEY, SIGNER, as_json, bad, chain_of, draft, write

# --- one capsule, one key


FORMS: list[Callable[[Sealed], Any]] = [
    lambda sealed: sealed,
    lambda sealed: sealed.to_sealed_dict(),
    lambda sealed: json.dumps(sealed.to_sealed_dict()),
    lambda sealed: json.dumps(sealed.to_sealed_dict(), indent=4, ensure_ascii=False).encode(),
]


@pytest.mark.parametrize("form", FORMS)
def test_one_capsule_with_its_key(form: Callable[[Sealed], Any]) -> None:
    (sealed,) = chain_of(1)
    thing = form(sealed)
    for key in (KEY, SIGNER.public):
        verdict = verify_with_key(thing, key)
        assert (verdict.status, verdict.records) == ("verified", 1)
        assert verdict.check("links").status == "not_checked"
        assert verdict.check("genesis").status == "passed"
    wrong = verify_with_key(thing, SeedSigner(b"w" * 32).public)
    assert (wrong.status, bad(wrong)) == ("failed", ("SIG_INVALID", 0))
    assert verify(thing, keys=[KEY]).status == "verified"
    unknown = verify(thing)
    assert unknown.status == "qualified"
    assert unknown.check("signature").code == "UNKNOWN_SIGNER"


def test_a_required_post_quantum_signature() -> None:
    (plain,) = chain_of(1)
    assert bad(verify_with_key(plain, KEY, require_pq=True)) == ("SIG_MISSING", 0)
    hybrid = SeedSigner(b"a" * 32, b"b" * 32)
    sealed = seal(draft(), hybrid)
    assert verify_with_key(sealed, hybrid.public, require_pq=True).status == "verified"
    assert bad(verify_with_key(sealed, PublicKey(hybrid.public.ed25519), require_pq=True))[0] == "SIG_INVALID"
    sealed.signature_pq = ""
    assert bad(verify_with_key(sealed, hybrid.public, require_pq=True)) == ("SIG_MISSING", 0)


@pytest.mark.parametrize("key", ["", "00", "zz" * 32, KEY.upper()])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(BadInput):
        verify_with_key(chain_of(1)[0], key)


@pytest.mark.parametrize("thing", ["", "no json", b"\x00", 7, None])
def test_what_is_no_capsule_at_all(thing: Any) -> None:
    try:
        verdict = verify_with_key(thing, KEY)
    except BadInput:
        return
    assert verdict.status == "empty"


def test_a_key_inside_the_capsule_proves_nothing() -> None:
    forged = seal(draft(), SeedSigner(b"e" * 32)).to_sealed_dict()
    forged["signed_by"] = SIGNER.fingerprint
    assert bad(verify_with_key(forged, KEY)) == ("SIG_INVALID", 0)
    assert (
        bad(verify_with_key({**forged, "public_key": SeedSigner(b"e" * 32).public.ed25519}, KEY))[0] == "HASH_MISMATCH"
    )


def test_an_unsealed_capsule_says_so() -> None:
    verdict = verify(draft().to_dict())
    assert verdict.first_bad is not None
    assert verdict.first_bad.words == "it is not sealed: it has no hash"


@pytest.mark.parametrize("change", [{"signature": 7}, {"hash": []}, {"signed_by": "\ud800"}, {"signed_by": "\x1b[2J"},
                                    {"signed_by": "x" * 100_000}, {"reasoning": float("nan")}])  # fmt: skip
def test_a_seal_that_is_none(change: dict[str, Any]) -> None:
    verdict = verify(chain_of(1)[0].to_sealed_dict() | change, keys=[KEY])
    assert bad(verdict)[0] == "SCHEMA_INVALID"
    json.dumps(verdict.to_dict()).encode()


def test_every_single_change_of_a_capsule_is_found() -> None:
    document = chain_of(1)[0].to_sealed_dict()
    text = json.dumps(document)
    for at in range(1, len(text), 7):
        changed = text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :]
        verdict = verify(changed, keys=[KEY])
        if verdict.status != "failed":
            same = json.loads(changed)
            differing = {key for key in document if same.get(key) != document[key]}
            assert differing <= {"signed_at", "signed_by"}, (
                changed
            )  # not authenticated in a record without Aver's block


# --- several capsules


HOW = ["array", "indented array", "lines"]


@pytest.mark.parametrize("how", HOW)
def test_a_file_of_capsules_is_a_chain(tmp_path: Path, how: str) -> None:
    path = write(tmp_path / "chain.json", as_json(chain_of(5)), how)
    for thing in (path, str(path), path.read_text(), path.read_bytes()):
        verdict = verify(thing, keys=[KEY])
        assert (verdict.status, verdict.records, verdict.chains) == ("verified", 5, 1)
        assert verdict.check("links").count == 5
        assert verdict.check("meta").status == "not_checked"


def test_a_list_in_memory_is_a_chain() -> None:
    records = chain_of(3)
    assert verify(records, keys=[KEY]).status == "verified"
    assert verify(as_json(records), keys=[KEY]).status == "verified"
    assert verify([records[0], records[1].to_sealed_dict()], keys=[KEY]).status == "verified"
    assert bad(verify([records[0], records[2]], keys=[KEY])) == ("SEQUENCE_GAP", 1)
    assert bad(verify([records[0], 7], keys=[KEY])) == ("SCHEMA_INVALID", 1)


@pytest.mark.parametrize("how", HOW)
def test_a_part_of_a_chain_is_said_to_be_one(tmp_path: Path, how: str) -> None:
    verdict = verify(write(tmp_path / "part.json", as_json(chain_of(3, start=4)), how), keys=[KEY])
    assert verdict.status == "qualified"
    assert verdict.check("genesis").reason == "begins at sequence 4: the records before it are not here"
    lone = verify(write(tmp_path / "one.json", as_json(chain_of(1, start=4)), how), keys=[KEY])
    assert lone.status == "verified"


TAMPERED: list[tuple[str, Callable[[list[dict[str, Any]]], Any], tuple[str, int | None]]] = [
    ("content", lambda c: c[2].update(domain="other"), ("HASH_MISMATCH", 2)),
    ("key added", lambda c: c[2].update(extra=1), ("HASH_MISMATCH", 2)),
    ("hash", lambda c: c[2].update(hash="0" * 64), ("HASH_MISMATCH", 2)),
    ("signature", lambda c: c[2].update(signature=c[1]["signature"]), ("SIG_INVALID", 2)),
    ("unsigned", lambda c: c[2].pop("signature"), ("SIG_MISSING", 2)),
    ("dropped", lambda c: c.pop(2), ("SEQUENCE_GAP", 2)),
    ("repeated", lambda c: c.insert(2, c[1]), ("SEQUENCE_GAP", 2)),
    ("swapped", lambda c: c.insert(1, c.pop(2)), ("SEQUENCE_GAP", 1)),
    ("not a capsule", lambda c: c.__setitem__(2, {"a": 1}), ("SCHEMA_INVALID", 2)),
    ("not an object", lambda c: c.__setitem__(2, [1]), ("SCHEMA_INVALID", 2)),
    ("null", lambda c: c.__setitem__(2, None), ("SCHEMA_INVALID", 2)),
    ("resigned by another", lambda c: c.__setitem__(
        2, seal({**chain_of(3)[2].to_dict(), "domain": "x"}, SeedSigner(b"e" * 32)).to_sealed_dict()),
     ("CHAIN_BREAK", 2)),
]  # fmt: skip


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("what", "tamper", "expected"), TAMPERED, ids=[case[0] for case in TAMPERED])
def test_each_tampering_is_named_at_its_place(
    tmp_path: Path,
    how: str,
    what: str,
    tamper: Callable[[list[dict[str, Any]]], Any],
    expected: tuple[str, int | None],
) -> None:
    records = as_json(chain_of(5))
    tamper(records)
    assert bad(verify(write(tmp_path / "chain.json", records, how), keys=[KEY])) == expected


def test_after_a_bad_line_the_rest_is_judged(tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in as_json(chain_of(4))]
    lines[1] = '{"torn": '
    path = tmp_path / "chain.jsonl"
    path.write_text("\n\n" + "\n".join(lines) + "\n")
    verdict = verify(path, keys=[KEY])
    assert verdict.records == 4
    assert verdict.check("schema").count == 1
    assert verdict.first_bad is not None
    assert verdict.first_bad.words.startswith("line 4: not valid JSON")
    lines[0], lines[1] = '{"torn": ', lines[2]
    path.write_text("\n".join(lines))
    assert verify(path, keys=[KEY]).records == 4


def test_a_key_that_stands_twice_is_ambiguous() -> None:
    text = json.dumps(chain_of(1)[0].to_sealed_dict())
    twice = '{"domain": "evil", ' + text[1:]
    assert bad(verify(twice, keys=[KEY]))[0] == "DUPLICATE_KEY"
    assert bad(verify(f"[{twice}]", keys=[KEY]))[0] == "DUPLICATE_KEY"
    assert bad(verify(f"{twice}\n{text}\n", keys=[KEY]))[0] == "DUPLICATE_KEY"


@pytest.mark.parametrize("text", ["[]", " [ ] ", "", "\n\n", "  "])
def test_nothing_is_empty_not_valid(tmp_path: Path, text: str) -> None:
    path = tmp_path / "nothing.json"
    path.write_text(text)
    assert verify(path).status == "empty"


@pytest.mark.parametrize("text", ["{", "[", "{}", '{"a": 1}', "[1, 2]", "[" * 100_000, '{"a":' * 100_000, "[{}]x",
                                  '{"a": ' + "9" * 5000 + "}", "[NaN]", '{"a": "\\ud800"}', "\ufeff{}"])  # fmt: skip
def test_hostile_text_fails(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(text)
    assert verify(path).status == "failed"


def test_a_binary_file_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0 not JSON")
    with pytest.raises(BadInput, match=r"photo\.jpg is nothing that Aver can verify"):
        verify(path)
    with pytest.raises(BadInput):
        verify(b"\xff\xd8\xff")
    with pytest.raises(BadInput):
        verify(7)


def test_a_pipe_does_not_hang_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="not a regular file"):
        verify(tmp_path / "pipe")


def test_one_long_line_is_refused_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capsule_files, "LINE_MAX", 10_000)
    good = [json.dumps(record) for record in as_json(chain_of(2))]
    path = tmp_path / "long.jsonl"
    path.write_text(f'{good[0]}\n{{"a": "{"x" * 40_000}"}}\n{good[1]}\n')
    verdict = verify(path, keys=[KEY])
    assert verdict.records == 3
    assert bad(verdict) == ("SCHEMA_INVALID", 1)
    assert "line 2: larger than 10000 bytes" in verdict.first_bad.words  # type: ignore[union-attr]


@pytest.mark.more
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    records = [json.dumps(record) for record in as_json(chain_of(20))]

    def peak(times: int, how: str) -> int:
        path = tmp_path / f"{how}-{times}"
        body = records * times
        path.write_text("[" + ",".join(body) + "]" if how == "array" else "\n".join(body))
        tracemalloc.start()
        try:
            verify(path, keys=[KEY], level="structural")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    for how in ("array", "lines"):
        peak(2, how)
        assert peak(100, how) < peak(10, how) + 2_000_000  # the larger file is 4 MB longer


def test_blobs_are_not_with_a_lone_capsule() -> None:
    blob = Blob(b"x" * 100)
    sealed = seal(draft(outcome={"result": blob.reference}), SIGNER)
    verdict = verify(sealed, keys=[KEY])
    assert verdict.status == "verified"
    assert verdict.check("blobs").reason == "the large values that it refers to are not here"


@settings(max_examples=80)
@given(data=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: "{" + text) | st.text(max_size=99))
def test_no_bytes_bring_it_down(data: bytes | str) -> None:
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    try:
        verdict = verify(data)
    except BadInput:
        return
    assert verdict.status in ("failed", "empty")


@settings(max_examples=60)
@given(at=st.integers(0), noise=st.binary(min_size=1, max_size=4), how=st.sampled_from(["array", "lines"]))
def test_no_flipped_byte_passes_for_other_content(
    tmp_path_factory: pytest.TempPathFactory, at: int, noise: bytes, how: str
) -> None:
    records = chain_of(3)
    path = write(tmp_path_factory.mktemp("flip") / "chain", as_json(records), how)
    raw = bytearray(path.read_bytes())
    at %= len(raw)
    raw[at : at + len(noise)] = noise
    path.write_bytes(bytes(raw))
    try:
        verdict = verify(path, keys=[KEY])
    except BadInput:
        return
    if verdict.status != "failed":
        kept = [record.canonical for record in resolve(path).read()]
        assert kept == [record.canonical for record in records][: len(kept)]


def test_the_published_signed_document_verifies_as_it_is_stored(vectors: Path) -> None:
    """Sealed before `spec_version` was in the hash; a re-serialised model has another hash."""
    vector = json.loads((vectors / "stored-document.json").read_text())
    for thing in (vector["sealed_record"], json.dumps(vector["sealed_record"], indent=1)):
        verdict = verify_with_key(thing, vector["public_key_hex"])
        assert (verdict.status, verdict.records) == ("verified", 1)
    with_version = {**vector["sealed_record"], "spec_version": "1.0"}
    assert bad(verify_with_key(with_version, vector["public_key_hex"])) == ("HASH_MISMATCH", 0)


@pytest.mark.parametrize(
    "thing",
    [Sealed(b"{}", None, None), Sealed("{}", "a", "b"), Sealed(b"\xff", "a", "b")],  # type: ignore[arg-type]
)
def test_a_sealed_that_holds_no_seal_fails(thing: Sealed) -> None:
    assert bad(verify(thing))[0] == "SCHEMA_INVALID"


def test_a_bad_element_does_not_keep_the_next_from_being_read(tmp_path: Path) -> None:
    one, two = map(json.dumps, as_json(chain_of(2)))
    verdict = verify(f'[{one},{{"a":1,"a":2}},{two}]', keys=[KEY])
    assert verdict.records == 3
    assert bad(verdict)[0] == "DUPLICATE_KEY"
