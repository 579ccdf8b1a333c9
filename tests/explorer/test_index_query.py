"""The language of a search: what is a word, a phrase and a condition, and that nothing of it becomes syntax."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput
from aver.explorer.index.cursor import read_cursor, write_cursor
from aver.explorer.index.database import FTS_COLUMNS
from aver.explorer.index.query import QUERY_MAX, TERMS_MAX, parse_query


@pytest.mark.parametrize(
    ("text", "fts"),
    [
        ("half up", 'text : "half" AND text : "up"'),
        ('"half up"', 'text : "half up"'),
        ("roun*", 'text : "roun"*'),
        ('"half u"*', 'text : "half u"*'),
        ('open "to the end', 'text : "open" AND text : "to the end"'),
        ("path:src/app.py", 'paths : ("src/app.py")'),
        ('path:"my file.py" path:src/*', 'paths : ("my file.py" OR "src/"*)'),
        ("https://example.com/x", 'text : "https://example.com/x"'),
        ("NEAR(a b) OR -c", 'text : "NEAR(a" AND text : "b)" AND text : "OR" AND text : "-c"'),
        ("a-> -> b", 'text : "a->" AND text : "b"'),
        ("text:x {paths}:y ^z", 'text : "text:x" AND text : "{paths}:y" AND text : "^z"'),
        ("tool:Bash", None),
    ],
)
def test_words_become_quoted_strings(text: str, fts: str | None) -> None:
    assert parse_query(text).to_fts() == fts


def test_conditions() -> None:
    query = parse_query("tool:Bash kind:Gate kind:call outcome:denied since:2026-05-31 since:2026-06-01T09:00+02:00")
    assert (query.tools, query.kinds, query.outcomes) == (("bash",), ("gate", "call"), ("blocked",))
    assert query.since == "2026-06-01T07:00:00+00:00"
    assert query.terms == query.paths == ()


def test_what_has_no_word_is_ignored_and_said() -> None:
    assert parse_query("half -> ...").ignored == ("->", "...")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no word"),
        ("-> ...", "no word"),
        ("x" * (QUERY_MAX + 1), "at most 1000 characters"),
        ("a " * (TERMS_MAX + 1), "at most 32 words"),
        ("half\0up", "characters that no text has"),
        ("half\ud800", "characters that no text has"),
        ("since:yesterday", "'yesterday' is not a time"),
        ("since:9999999w", "is not a time"),
    ],
)
def test_a_wrong_query_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        parse_query(text)


@given(st.text(max_size=60))
def test_no_query_is_an_error_of_sqlite(text: str) -> None:
    try:
        expression = parse_query(text).to_fts()
    except BadInput:
        return
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({FTS_COLUMNS})")
    if expression is not None:
        assert connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,)).fetchall() == []


def test_a_cursor_belongs_to_its_question() -> None:
    cursor = write_cursor(["search", "g1", {"words": ["a"]}], [7])
    assert read_cursor(cursor, ["search", "g1", {"words": ["a"]}], (int,)) == [7]
    for question in (["search", "g2", {"words": ["a"]}], ["search", "g1", {"words": ["b"]}]):
        with pytest.raises(BadInput, match="does not belong to this list"):
            read_cursor(cursor, question, (int,))


@pytest.mark.parametrize("text", ["", "x", "é", "e30", "A" * 3000, "bnVsbA", "eyJ2IjoxfQ", "=", "!!!!"])
def test_a_cursor_that_is_none(text: str) -> None:
    with pytest.raises(BadInput, match="does not belong to this list"):
        read_cursor(text, ["search"], (int,))


@pytest.mark.parametrize("place", [[True], ["7"], [2**63], [-(2**63) - 1], [7, 8], [], [None]])
def test_a_cursor_with_another_place(place: list[object]) -> None:
    with pytest.raises(BadInput, match="does not belong to this list"):
        read_cursor(write_cursor(["search"], place), ["search"], (int,))
