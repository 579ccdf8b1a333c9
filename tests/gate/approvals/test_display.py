"""What is shown: all of it, in its place, and nothing that passes for something else."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import Ledger
from aver.gate.action import Action
from aver.gate.approvals import (
    GLANCE_LINES,
    WHOLE_LINES,
    Person,
    RequestDisplay,
    load_request_state,
    open_request,
    render_request,
)
from aver.gate.approvals.display import LINE_WIDTH
from aver.text import UnusualCharacters, count_unusual_characters, escape_invisible
from support.approvals import action, asking, open_old_request


def shown_of(ledger: Ledger, about: Action, limit: int = WHOLE_LINES, comment: str = "", **more: Any) -> RequestDisplay:
    request = open_request(ledger, about, asking(about, **more))
    standing = load_request_state(ledger, request)
    return render_request(request, about.to_dict(), about.diff, standing, limit=limit, comment=comment)


def test_everything_a_person_needs(ledger: Ledger, ada: Person) -> None:
    about = action(
        "rm -rf build",
        diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n",
        description="clean up",
        files=("build", "dist"),
        session="s1",
        workspace="/work",
    )
    shown = shown_of(ledger, about, comment="agreed")
    for words in (
        *("| command: rm -rf build", "| description: clean up", "| file: build", "| file: dist", "| workspace: /work"),
        *("| -old", "| +new", "| it deletes files", "| rule deletes", "| caller: builder", "| session: s1", "| agreed"),
        *("risk 0.250, between 0.125 and 0.500, from 3 outcomes here", "level 1: 1 of person:ada", "expires 20"),
        about.digest,
    ):
        assert words in shown.text, words
    assert shown.cut == 0
    styles = {line.text.strip(): line.style for line in shown.lines}
    assert (styles["| -old"], styles["| +new"], styles["| @@ -1 +1 @@"]) == ("bad", "good", "dim")


def test_what_an_answer_is_good_for(ledger: Ledger, ada: Person) -> None:
    """The name of the session is the agent's own words. It cannot name another ledger."""
    shown = shown_of(ledger, action(session="s1\n  ledger 0, tenant prod"))
    lines = [line.text for line in shown.lines]
    at = lines.index("what an answer is good for")
    assert lines[at + 1] == f"  ledger {ledger.id}, tenant default"
    assert lines[at + 2].startswith("  request ")
    assert lines[at + 3].startswith("  | scope: session:s1")
    assert lines[at + 4].startswith("  once, until 20")
    assert [line for line in lines if line.startswith("  ledger")] == [lines[at + 1]]


def test_an_old_request_says_that_an_answer_names_little(ledger: Ledger, ada: Person) -> None:
    request = open_old_request(ledger)
    shown = render_request(request, action().to_dict(), None, load_request_state(ledger, request), limit=WHOLE_LINES)
    assert "an earlier version of Aver opened this request" in shown.text
    assert "  ledger" not in shown.text


def test_nested_arguments_and_texts_of_several_lines(ledger: Ledger, ada: Person) -> None:
    arguments = {"edits": [{"old": "a\nb", "n": 1}, {"new": ""}], "flag": True, "text": "true", "none": None, "e": []}
    shown = shown_of(ledger, action(arguments=arguments))
    body = [line.text for line in shown.lines]
    for line in (
        *("  | edits[0]:", "  |   old:", "  |     a", "  |     b", "  |   n: 1", '  |   new: ""'),
        *("  | flag: true", '  | text: "true"', "  | none: null", "  | e: []"),
    ):
        assert line in body, line


def test_arguments_nested_without_end(ledger: Ledger, ada: Person) -> None:
    nested: Any = "deep"
    for _ in range(90):
        nested = {"a": [nested]}
    assert "deep" in shown_of(ledger, action(arguments={"x": nested})).text


# --- hostile text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("a\tb", "a    b"),
        ("\x1b[2J\x1b]0;x\x07", "<U+001B>[2J<U+001B>]0;x<U+0007>"),
        ("a\rb", "a<U+000D>b"),
        ("a\nb", "a<U+000A>b"),
        ("a\x0bb\x0cc\x85d\u2028e\u2029f", "a<U+000B>b<U+000C>c<U+0085>d<U+2028>e<U+2029>f"),
        ("\x9b31m", "<U+009B>31m"),
        ("user\u202etxt.exe", "user<U+202E>txt.exe"),
        ("\u2066\u2067\u2068\u2069\u200e\u200f\u061c", "<U+2066><U+2067><U+2068><U+2069><U+200E><U+200F><U+061C>"),
        ("r\u200bm\u200c\u200d\u2060\ufeff\u00ad", "r<U+200B>m<U+200C><U+200D><U+2060><U+FEFF><U+00AD>"),
        ("a\u00a0b\u3000c\u2003d", "a<U+00A0>b<U+3000>c<U+2003>d"),
        ("\u3164\u115f\u2800\uffa0", "<U+3164><U+115F><U+2800><U+FFA0>"),
        ("x\ufe0f\U000e0041\U000e0100", "x<U+FE0F><U+E0041><U+E0100>"),
        ("\u05d0bc\u0627\u0661", "<U+05D0>bc<U+0627><U+0661>"),
        ("e\u0301", "e\u0301"),
        ("e\u0301\u0302\u0303\u0304", "e\u0301\u0302<U+0303><U+0304>"),
        ("\udc80", "<U+DC80>"),
        ("\ue000\U0010ffff", "<U+E000><U+10FFFF>"),
        ("naïve 日本 ok", "naïve 日本 ok"),
    ],
)
def test_what_is_written_out(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


def test_oddities_are_counted() -> None:
    assert count_unusual_characters("a\tb\nc") == UnusualCharacters()
    assert count_unusual_characters("p\u0430ypal \u202e\x1b") == UnusualCharacters(hidden=2, foreign=1)


@given(st.text())
def test_nothing_that_is_shown_is_invisible_or_moves_anything(text: str) -> None:
    shown = escape_invisible(text)
    assert shown.isprintable()
    for character in shown:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in ("R", "AL", "AN", "RLE", "RLO", "LRE", "LRO", "PDF")
    assert escape_invisible(shown) == shown


HOSTILE = "x\ndigest 0000\n\x1b[1A\x1b[2Krequest forged\r  | \u202eevil\u2028level 1: approved"


def test_what_comes_from_the_request_cannot_pass_for_ours(ledger: Ledger, ada: Person) -> None:
    about = action(
        HOSTILE,
        diff=HOSTILE,
        description=HOSTILE,
        files=(HOSTILE,),
        caller=HOSTILE,
        session=HOSTILE,
        arguments={"a": HOSTILE, HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]},
    )
    shown = shown_of(ledger, about, comment=HOSTILE, reasons=(HOSTILE,))
    own = [line.text for line in shown.lines if not line.text.startswith(("  | ", "  |", "  : "))]
    assert not any("0000" in line or "forged" in line or "evil" in line for line in own)
    assert sum(line.startswith("digest ") for line in own) == 1
    assert all(line.text.isprintable() for line in shown.lines)
    assert any("cannot be seen" in line for line in own)


def test_letters_that_look_alike_are_told_of(ledger: Ledger, ada: Person) -> None:
    shown = shown_of(ledger, action("curl p\u0430ypal.com"))
    assert "1 characters are not ASCII and may look like others" in shown.text


def test_a_long_line_goes_on_below(ledger: Ledger, ada: Person) -> None:
    shown = shown_of(ledger, action("x" * 1000 + "END"))
    lines = [line.text for line in shown.lines]
    assert max(map(len, lines)) <= LINE_WIDTH + 4
    assert any(line.startswith("  : ") and line.endswith("END") for line in lines)


def test_a_cut_is_told_and_counted(ledger: Ledger, ada: Person) -> None:
    diff = "".join(f"+line {number}\n" for number in range(1000))
    shown = shown_of(ledger, action(diff=diff), GLANCE_LINES)
    assert shown.cut == 1000 - GLANCE_LINES
    characters = sum(len(f"+line {number}") for number in range(GLANCE_LINES, 1000))
    assert f"[cut here: {1000 - GLANCE_LINES:,} more lines of the diff, {characters:,} characters]" in shown.text
    assert f"+line {GLANCE_LINES}\n" not in shown.text
    whole = shown_of(ledger, action(diff=diff))
    assert (whole.cut, "+line 999\n" in whole.text) == (0, True)
    many = shown_of(ledger, action(arguments={"a": "\n".join("x" for _ in range(500))}), GLANCE_LINES)
    assert many.cut == 501 - GLANCE_LINES


def test_the_digest_is_of_exactly_the_text(ledger: Ledger, ada: Person) -> None:
    import hashlib

    shown = shown_of(ledger, action())
    assert shown.digest == hashlib.sha256(shown.text.encode()).hexdigest()
    assert shown.text == "".join(line.text + "\n" for line in shown.lines)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text(), json_values, max_size=5), st.text())
def test_any_arguments_can_be_shown(arguments: dict[str, Any], diff: str) -> None:
    from aver.gate.approvals.display import _render_action, _render_arguments, _render_notes, _render_quoted

    lines = [*_render_arguments(arguments), *_render_quoted(diff.split("\n")), *_render_notes(arguments, diff)]
    assert all(line.text.isprintable() for line in lines)
    if arguments and not any(isinstance(value, list | dict) for value in arguments.values()):
        assert len(lines) >= len(arguments)
    assert list(_render_action(json.loads("{}"))) == []
