"""Hostile bytes to every parser of the ground floor: one of Aver's errors or a failed verdict, nothing else.

Each property runs on arbitrary bytes and on honest documents that were damaged a little, which get much further.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver import AverError, Capsule, Head, PublicKey, Ring, Sealed, SeedSigner, parse_uri, seal, validate
from aver.capsule.json_reader import canonical_forms, read_elements, read_json
from aver.config import load_config
from aver.verdict import ChainJudge, Retirement, Rules, Tally, conclude
from aver.verdict.record import read_record
from support.strategies import foreign_contents, json_values

SIGNER = SeedSigner(bytes(32), bytes(32))
SEALED = seal(
    Capsule(
        type="tool",
        context={"environment": {"aver": {"v": 1, "kind": "call", "at": "x", "by": SIGNER.fingerprint, "chain": {}}}},
        reasoning={"confidence": 1, "options": [{"selected": True, "feasibility": 1}]},
        outcome={"metrics": {"tiny": 1e-9, "huge": 2**70, "text": "é\n😀"}},
    ),
    SIGNER,
)
DOCUMENT = json.dumps(SEALED.to_sealed_dict()).encode()

edits = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 4), st.binary(min_size=0, max_size=6)), min_size=1, max_size=6
)
SNIPPETS = [
    b'"',
    b"{",
    b"[",
    b"}",
    b"]",
    b",",
    b":",
    b"\\",
    b"\\ud800",
    b"NaN",
    b"1e999",
    b"null",
    b"\x00",
    b"\xff",
    b"-0",
]
SNIPPETS += [b"1" * 30, b"[" * 300, b'{"a":' * 300, b'"type":"x",', b"0.00001", b"1e-7", b"\xed\xa0\x80", b"true"]
snippets = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 8), st.sampled_from(SNIPPETS)), min_size=1, max_size=4
)


def damaged(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, length, instead in changes:
        place %= len(data) + 1
        data = data[:place] + instead + data[place + length :]
    return data


def hostile(honest: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(
        st.binary(max_size=200),
        json_values.map(lambda value: json.dumps(value).encode()),
        edits.map(lambda changes: damaged(honest, changes)),
        snippets.map(lambda changes: damaged(honest, changes)),
    )


def refuses_or_returns(work: Any, *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except AverError as error:
        said = str(error)
    assert said
    return None


RINGS = [Ring(), Ring.pin(()), Ring.pin([SIGNER.public]), Ring(known={SIGNER.fingerprint: SIGNER.public})]


def check_parsers(data: bytes) -> None:
    value = refuses_or_returns(read_json, data)
    assert value is None or value == json.loads(data)
    refuses_or_returns(read_record, data)
    refuses_or_returns(lambda: list(canonical_forms(data)))
    refuses_or_returns(lambda: list(read_elements([data])))
    refuses_or_returns(lambda: list(read_elements([data[:7], data[7:]], key="capsules")))
    text = data.decode("utf-8", "surrogateescape")
    refuses_or_returns(read_json, text)
    refuses_or_returns(parse_uri, text[:3000])
    refuses_or_returns(parse_uri, f"capsule://{text[:100]}")
    for source in (data, text):
        sealed = refuses_or_returns(Sealed.from_sealed_json, source)
        if sealed is not None:
            check_judge(sealed)
            for read in (
                lambda s=sealed: s.capsule,
                lambda s=sealed: s.kind,
                lambda s=sealed: s.sequence,
                sealed.to_sealed_dict,
            ):
                refuses_or_returns(read)
            refuses_or_returns(lambda s=sealed: Sealed.from_sealed_dict(s.to_sealed_dict()))
            refuses_or_returns(lambda s=sealed: validate(s.to_dict()))


def check_judge(record: Sealed) -> None:
    """A verdict, always; never `verified` unless the seal is ours and whole."""
    for ring in RINGS:
        for level in ("structural", "content", "signature"):
            retired = {SIGNER.public.ed25519: Retirement("2020", {"demo.x": 5})}
            judge = ChainJudge(
                Rules(ring, level, require_pq=level == "content", retired=retired),  # type: ignore[arg-type]
                chain="demo.x",
                start=None if level == "content" else 0,
                identity={"ledger": "l"},
            )
            judge.judge(record, ("id", "type", None, None, None, None))
            judge.judge(record)
            verdict = conclude("fuzz", judge.finish())
            assert verdict.status in ("verified", "qualified", "failed")
            assert orjson.dumps(verdict.to_dict())
            tally = Tally()
            tally.merge(judge.tally)
            if record.canonical != SEALED.canonical:
                assert verdict.status != "verified"


@pytest.mark.more
@given(hostile(DOCUMENT))
@settings(max_examples=1_000)
def test_parsers(data: bytes) -> None:
    check_parsers(data)


@pytest.mark.long
@given(hostile(DOCUMENT))
@settings(max_examples=20_000)
def test_parsers_for_long(data: bytes) -> None:
    check_parsers(data)


seals = st.one_of(
    st.text(max_size=20),
    st.text(alphabet="\x1b\ud800\x00é", max_size=5),
    st.just(SEALED.signature),
    st.just(SEALED.hash),
    st.just(SIGNER.fingerprint),
)


@pytest.mark.more
@given(hostile(SEALED.canonical), st.tuples(seals, seals, seals, seals, seals))
@settings(max_examples=600)
def test_the_judge_on_any_record(canonical: bytes, seal_values: tuple[str, ...]) -> None:
    check_judge(Sealed(canonical, *seal_values))


@pytest.mark.long
@given(hostile(SEALED.canonical), st.tuples(seals, seals, seals, seals, seals))
@settings(max_examples=10_000)
def test_the_judge_on_any_record_for_long(canonical: bytes, seal_values: tuple[str, ...]) -> None:
    check_judge(Sealed(canonical, *seal_values))


@pytest.mark.more
@given(foreign_contents())
def test_the_judge_on_any_foreign_document(content: dict[str, Any]) -> None:
    check_judge(seal(content, SIGNER, unchecked=True))


@given(json_values)
def test_heads(value: Any) -> None:
    head = refuses_or_returns(Head.from_dict, value)
    assert head is None or head.to_dict() == value


@given(st.text(max_size=80))
def test_public_keys(text: str) -> None:
    key = refuses_or_returns(PublicKey, text)
    assert (key is None) is (re.fullmatch("[0-9a-f]{64}", text) is None)


SETTINGS = b'ledger = "sqlite:///x"\ntenant = "t"\npost_quantum = true\nlock_timeout = 1.5\n'
toml_values = st.sampled_from(
    [
        "true",
        "1",
        "-1",
        "1e400",
        "nan",
        "inf",
        "0",
        "86400",
        '"x"',
        "[]",
        "{}",
        "1979-05-27",
        "1979-05-27T07:32:00Z",
        "0x10",
        "9" * 400,
        '"\\u0000"',
        "'''x'''",
        "[1, [2]]",
    ]
)
toml_lines = st.lists(
    st.tuples(
        st.sampled_from(["ledger", "tenant", "post_quantum", "lock_timeout", "x", "a.b", "[t]", '"k"']), toml_values
    ),
    max_size=4,
).map(lambda lines: "\n".join(f"{name} = {value}" for name, value in lines).encode())


@pytest.mark.more
@given(st.one_of(st.binary(max_size=100), edits.map(lambda changes: damaged(SETTINGS, changes)), toml_lines))
@settings(max_examples=300)
def test_settings(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "config.toml").write_bytes(data)
    config = refuses_or_returns(lambda: load_config(home=tmp_path))
    if config is not None:
        assert type(config.ledger) is str
        assert type(config.tenant) is str
        assert type(config.post_quantum) is bool
        assert 0 < config.lock_timeout < 86_400


@pytest.mark.parametrize("data", [b"x" * 300_000, b"[" * 100_000, b"a=" + b"[" * 5_000, b"\xff\xfe", b"a.b.c." * 5_000])
def test_settings_that_would_cost_too_much(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "config.toml").write_bytes(data)
    with pytest.raises(AverError):
        load_config(home=tmp_path)
