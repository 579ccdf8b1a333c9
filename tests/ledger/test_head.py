"""Heads as documents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import BadInput, Head
from aver.ledger.head import COUNT_END
from support.strategies import hex64, json_values, texts

GOOD: dict[str, Any] = {"ledger": "l", "tenant": "t", "chain": "c", "count": 1, "hash": "0" * 64}


@given(texts, texts, texts, st.integers(1, COUNT_END - 1), hex64)
def test_round_trip(ledger: str, tenant: str, chain: str, count: int, digest: str) -> None:
    head = Head(ledger, tenant, chain, count, digest)
    assert Head.from_dict(head.to_dict()) == head


@pytest.mark.parametrize(
    "change",
    [
        *({"count": value} for value in (0, -1, COUNT_END, True, 1.0, "1", None)),
        *({"hash": value} for value in (None, "", "0" * 63, "0" * 65, "G" * 64, "A" * 64, 1, b"0" * 64)),
        *({key: value} for key in ("ledger", "tenant", "chain") for value in (None, 1, ["x"])),
        {"extra": 1},
    ],
    ids=str,
)
def test_what_is_no_head(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Head.from_dict({**GOOD, **change})


@pytest.mark.parametrize("missing", GOOD)
def test_missing_keys(missing: str) -> None:
    with pytest.raises(BadInput):
        Head.from_dict({key: value for key, value in GOOD.items() if key != missing})


def test_an_empty_chain_has_no_hash() -> None:
    assert Head.from_dict({**GOOD, "count": 0, "hash": None}) == Head("l", "t", "c", 0, None)
    with pytest.raises(BadInput):
        Head.from_dict({**GOOD, "count": 0})


@given(json_values)
def test_any_json_is_a_head_or_refused(value: Any) -> None:
    try:
        assert Head.from_dict(value).to_dict() == value
    except BadInput:
        pass
