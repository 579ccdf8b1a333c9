"""A lazy pattern does what a compiled one does, and compiles nothing before its first use."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from aver.lazy_pattern import lazy_pattern


def test_it_answers_as_the_compiled_pattern_does() -> None:
    compiled, lazy = re.compile("([a-c])(x?)", re.IGNORECASE), lazy_pattern("([a-c])(x?)", re.IGNORECASE)
    for text in ("", "Ax", "aXbq", "q"):
        assert [found.span(2) for found in lazy.finditer(text)] == [found.span(2) for found in compiled.finditer(text)]
        assert lazy.sub("-", text) == compiled.sub("-", text)
        assert (lazy.fullmatch(text) is None) == (compiled.fullmatch(text) is None)
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)


def test_it_reads_bytes() -> None:
    assert lazy_pattern(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_it_compiles_at_its_first_use() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.match("")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_works(again: object) -> None:
    lazy = lazy_pattern("a+")
    for _ in range(2):
        assert again(lazy).findall("aab") == ["aa"]  # type: ignore[operator]
        lazy.match("a")
