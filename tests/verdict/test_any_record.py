"""One record with any keys missing and any values of a wrong type: a finding at its place, and never an exception."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import orjson
import pytest

from aver.capsule.sealed import Sealed
from aver.keys import Ring
from aver.verdict import ChainJudge, Rules
from aver.verdict.chain import UNREADABLE_MAX

WHOLE: dict[str, Any] = {
    "id": "0",
    "type": "tool",
    "domain": "agents",
    "parent_id": None,
    "sequence": 0,
    "previous_hash": None,
    "trigger": {},
    "context": {},
    "reasoning": {},
    "authority": {},
    "execution": {},
    "outcome": {},
}
WRONG: tuple[Any, ...] = (None, True, -1, 2**63, 1.5, "x", [], [[]], {}, {"environment": []})


def judge(content: Any) -> tuple[str, str] | None:
    """Check and code of the finding at the record's place; None if there is none."""
    raw = orjson.dumps(content, option=orjson.OPT_SORT_KEYS) if not isinstance(content, bytes) else content
    chain = ChainJudge(Rules(Ring(), "content"), chain="x.y")
    chain.judge(Sealed(raw, "0" * 64, ""))
    tally = chain.finish()
    found = [one for one in tally.findings if one.status == "failed"]
    assert len(found) <= 1
    assert all(one.place.sequence == 0 for one in found)
    return (found[0].check, found[0].code) if found else None


@pytest.mark.more
def test_every_subset_of_missing_keys_with_each_other_key_of_a_wrong_type() -> None:
    for size in range(len(WHOLE) + 1):
        for missing in combinations(WHOLE, size):
            content = {name: value for name, value in WHOLE.items() if name not in missing}
            expected = ("schema", "SCHEMA_INVALID") if missing else ("content", "HASH_MISMATCH")
            assert judge(content) == expected, missing
            # Two wrong types are enough here: the next test has them all.
            for name in content:
                for wrong in (1.5, []):
                    assert judge({**content, name: wrong}) == ("schema", "SCHEMA_INVALID"), (missing, name, wrong)


@pytest.mark.sample(4)
@pytest.mark.parametrize("first", WHOLE)
def test_every_pair_of_keys_of_every_wrong_type(first: str) -> None:
    for second in WHOLE:
        for one in WRONG:
            for other in WRONG:
                found = judge({**WHOLE, first: one, second: other})
                assert found in (("schema", "SCHEMA_INVALID"), ("content", "HASH_MISMATCH")), (first, one, other)


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b'"x"', b"{", b"\xff", b"NaN", b"[" * 100_000, b"1e999", b"{}{}"])
def test_bytes_that_are_no_object(raw: bytes) -> None:
    assert judge(raw) == ("schema", "SCHEMA_INVALID")


def test_an_exception_in_the_judge_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a later rule forgets, the record fails at its place, and the next one is judged."""

    def breaks(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("aver.verdict.chain.content_hash", breaks)
    chain = ChainJudge(Rules(Ring(), "content"), chain="x.y")
    for _ in range(2):
        assert chain.judge(Sealed(orjson.dumps(WHOLE, option=orjson.OPT_SORT_KEYS), "0" * 64, "")) is None
    found = [(one.code, one.place.sequence) for one in chain.finish().findings]
    assert ("SCHEMA_INVALID", 0) in found
    assert ("SCHEMA_INVALID", 1) in found


def test_the_judge_says_when_reading_on_is_of_no_use() -> None:
    chain = ChainJudge(Rules(Ring(), "content"), chain="x.y")
    for _ in range(UNREADABLE_MAX):
        chain.judge(Sealed(b"{}", "", ""))
        assert not chain.stops_reading()
    chain.unreadable("no JSON")
    assert chain.stops_reading()
    last = chain.finish().findings[-1]
    assert (last.code, last.place.sequence) == ("NOT_READ", UNREADABLE_MAX + 1)
    assert "the rest was not read" in last.words
