"""SEARCH/REPLACE blocks become unified diffs that apply, whichever marks they have."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.diffs import count_changed_lines
from aver.ingest.patches import SearchReplaceBlock, diff_from_blocks, parse_blocks

DASHES = ("------- SEARCH", "=======", "+++++++ REPLACE")
ANGLES = ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE")


def block(search: str, replace: str, marks: tuple[str, str, str] = DASHES) -> str:
    return f"{marks[0]}\n{search}{marks[1]}\n{replace}{marks[2]}\n"


@pytest.mark.parametrize("marks", [DASHES, ANGLES, ("------- SEARCH>", "=======", "+++++++ REPLACE>")])
def test_both_forms_are_read(marks: tuple[str, str, str]) -> None:
    text = "I change it:\n" + block("old\n", "new\nnewer\n", marks) + "and\n" + block("gone\n", "", marks)
    assert parse_blocks(text) == [SearchReplaceBlock("old\n", "new\nnewer\n"), SearchReplaceBlock("gone\n", "")]
    diff = diff_from_blocks("src/p.py", text, starts=[12, 40])
    assert diff == ("--- a/src/p.py\n+++ b/src/p.py\n@@ -12,1 +12,2 @@\n-old\n+new\n+newer\n@@ -40,1 +40,0 @@\n-gone\n")
    assert count_changed_lines(diff) == (2, 2)


def test_lines_that_stay_are_not_counted() -> None:
    """The public adapter counted lines that begin with a sign, and so none."""
    diff = diff_from_blocks("p.py", block("def f():\n    return 1\n", "def f():\n    return 2\n"))
    assert diff == "--- a/p.py\n+++ b/p.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2\n"


def test_a_new_file_is_a_block_that_looks_for_nothing() -> None:
    assert diff_from_blocks("p.py", block("", "a\nb\n")) == "--- a/p.py\n+++ b/p.py\n@@ -0,0 +1,2 @@\n+a\n+b\n"


@pytest.mark.parametrize(
    "text", ["", "nothing", "------- SEARCH\nold\n", "------- SEARCH\nold\n=======\nnew\n", "=======\n"]
)
def test_what_has_no_end_is_no_edit(text: str) -> None:
    assert parse_blocks(text) == []
    assert diff_from_blocks("p.py", text) == ""


def test_marks_inside_a_text_belong_to_it() -> None:
    inner = "+++++++ REPLACE\n------- SEARCH\n"
    (found,) = parse_blocks(block(inner, "=======\n<<<<<<< SEARCH\n"))
    assert found == SearchReplaceBlock(inner, "=======\n<<<<<<< SEARCH\n")


def test_starts_that_make_no_sense_are_not_used() -> None:
    text = block("a\n", "b\n")
    assert (
        diff_from_blocks("p", text, starts=["x"])
        == diff_from_blocks("p", text, starts=[-3])
        == diff_from_blocks("p", text, [True])
        == diff_from_blocks("p", text)
    )


LINES = st.lists(st.sampled_from(["a", "b", "c", "", " x", "-y", "+z", "@@ -1 +1 @@"]), max_size=8)


@given(LINES, LINES, st.integers(1, 50))
def test_the_diff_holds_both_texts(old: list[str], new: list[str], start: int) -> None:
    search, replace = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    diff = diff_from_blocks("p", block(search, replace), starts=[start])
    body = diff.split("\n")[2:-1] if diff else []
    removed, added = count_changed_lines(diff)[1], count_changed_lines(diff)[0]
    expected = list(difflib.unified_diff(old, new, lineterm="", n=3))
    assert (removed, added) == (
        sum(line.startswith("-") for line in expected[2:]),
        sum(line.startswith("+") for line in expected[2:]),
    )
    assert bool(body) == (search != replace)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    blocks = parse_blocks(text)
    assert blocks or diff_from_blocks("p", text) == ""
