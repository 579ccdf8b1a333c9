"""Base64 that a browser does not read is none, whatever Python's own reader takes."""

from __future__ import annotations

import base64

import pytest

from aver.capsule.base64_text import decode_base64


def test_honest_texts() -> None:
    for size in range(7):
        text = base64.b64encode(bytes(size))
        assert decode_base64(text) == decode_base64(text.decode()) == bytes(size)


@pytest.mark.parametrize(
    "text", ["AAAA=", "AAAA==", "AAAA====", "AAA", "A===", "====", "AA==AAAA", "AA=A", "AAA\n", "AAA-", "AAAä"]
)
def test_texts_that_are_none(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(ValueError):
            decode_base64(given)
