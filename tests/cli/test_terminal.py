"""Text on its way to the terminal: escaped, cut and wrapped."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.cli.options import parse_time
from aver.cli.terminal import Screen, StyledText, clip, display_width, format_time
from aver.text import escape_unprintable, to_one_line


@given(st.text(alphabet=st.characters()))
def test_safe_text_is_printable_and_keeps_what_was_printable(text: str) -> None:
    assert escape_unprintable(text).isprintable()
    assert escape_unprintable(escape_unprintable(text)) == escape_unprintable(text)
    if text.isprintable():
        assert escape_unprintable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u00a0b", "a b"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("naïve ✓ 日本", "naïve ✓ 日本"),
    ],
)
def test_how_characters_are_escaped(text: str, shown: str) -> None:
    assert escape_unprintable(text) == shown


@given(st.text(), st.integers(2, 40))
def test_clipped_text_fits(text: str, width: int) -> None:
    line = to_one_line(text)
    assert "\n" not in line
    assert display_width(clip(line, width)) <= width


@given(st.text(max_size=400))
def test_filled_text_is_lines_with_their_indent_and_loses_no_word(text: str) -> None:
    stream = io.StringIO()
    Screen(stream).print_wrapped(text, indent="  | ")
    lines = stream.getvalue().splitlines()
    assert all(line.startswith("  |") and line.isprintable() for line in lines)
    assert all(display_width(line) <= 100 for line in lines)
    shown = "".join("".join(line[4:].split()) for line in lines)
    assert shown == "".join("".join(escape_unprintable(line.replace("\t", " ")).split()) for line in text.splitlines())


def test_a_line_is_one_line_whatever_is_in_it() -> None:
    stream = io.StringIO()
    Screen(stream).print_line("a\nb", StyledText("c\r\x1b[2K", "bad"))
    assert stream.getvalue() == "a\\x0abc\\x0d\\x1b[2K\n"


def test_columns_are_aligned_by_what_is_seen() -> None:
    stream = io.StringIO()
    Screen(stream).print_table([["日本", "1"], ["ab", "2"], [StyledText("x\ny", "good"), "3"]])
    assert stream.getvalue() == "日本  1\nab    2\nx y   3\n"


@pytest.mark.parametrize("text", ["", "x", "not a time at all really", None, 5])
def test_times_that_are_none_are_shown_as_they_are(text: object) -> None:
    assert format_time(text)


def test_times_are_read_as_utc() -> None:
    assert parse_time("2026-05-31") == "2026-05-31T00:00:00+00:00"
    assert parse_time("2026-05-31T09:00+02:00") == "2026-05-31T07:00:00+00:00"
    assert parse_time("2h") < parse_time("1h")


@pytest.mark.parametrize("character", ["a", "é", "日", "e\u0301"])
def test_very_long_text_is_wrapped_in_linear_time(character: str) -> None:
    """Quadratic, this would take hours."""
    stream = io.StringIO()
    Screen(stream).print_wrapped(character * 1_000_000, indent="")
    assert stream.getvalue().replace("\n", "") == character * 1_000_000
