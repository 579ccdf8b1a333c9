r"""Looks for places in a text of code that reach out: a pure function from text to findings.

Aver asks this about lines that an agent adds to a file, and about files that a build, a test or a script would run.
`reach` lists the ways in which code *reaches out*, and `rules` finds them.

The ending of the file's name decides the language. Aver fails closed: a file of an unknown kind has a finding, and so
has one that is too long. Rules are regular expressions over the text, so they also find words in strings and comments.
This error makes Aver ask more often, not less. A rule is compiled only if one of its needles is in the text, because
most changes reach nowhere, and a hook lives for one call.

    >>> [str(found) for found in scan_code("import json\nimport subprocess\n", "tests/test_a.py")]
    ['line 2 starts a program (subprocess)']
    >>> scan_code("def test_a():\n    assert add(1, 2) == 3\n", "tests/test_a.py")
    ()

This is no sandbox. Code can call other code of the workspace, which reaches out already, and a text can be hidden in
ways that no list knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from aver.gate.effects.code_scan.language import CodeLanguage, find_language
from aver.gate.effects.code_scan.reach import WORD_MAX, Reach
from aver.gate.effects.code_scan.rules import RULES_BY_LANGUAGE, STRICT_JAVASCRIPT
from aver.lazy_pattern import lazy_pattern

TEXT_MAX = 512 * 1024
"""Characters of a text that Aver looks at. A longer text has a finding."""

LINE_MAX = 1000
"""Characters of a line. Nobody reads a longer one, and Aver looks at its beginning only."""

FINDINGS_MAX = 20
"""Findings that are listed for one text."""

SCANS_KEPT = 4
"""Texts whose findings a process keeps: those of the change that it decides about."""


def scan_code(text: str, path: str) -> tuple[Reach, ...]:
    """Return the places at which a text of the file `path` reaches out; none if it reaches nowhere."""
    return scan_text(text, find_language(path))


def scan_text(text: str, language: CodeLanguage) -> tuple[Reach, ...]:
    """Return the places at which a text reaches out. A shell script is not judged here: see `workspace_code`."""
    if language == "data" or not text.strip():
        return ()
    if language in ("unknown", "shell"):
        return (Reach("unreadable", 0, "a kind of file that Aver does not know"),)
    if len(text) > TEXT_MAX:
        return (Reach("unreadable", 0, f"more than {TEXT_MAX} characters"),)
    return _scan_code(text, language)


@lru_cache(maxsize=SCANS_KEPT)
def _scan_code(text: str, language: CodeLanguage) -> tuple[Reach, ...]:
    """Scan a text of a language that Aver knows, and that is not too long. A decision asks for the same one twice."""
    if "\0" in text:
        return (Reach("hidden", 0, "binary data"),)
    lines = _LINE_END.sub("\n", text).split("\n")
    if language == "prose":
        # Test runners can run interactive sessions in prose. All else in it is read by people alone.
        lines = [line if line.lstrip().startswith((">>>", "...")) else "" for line in lines]
        return _scan_lines(lines, "python")
    return _scan_lines(lines, language)


def _scan_lines(lines: list[str], language: CodeLanguage) -> tuple[Reach, ...]:
    found: dict[Reach, None] = {}
    text = "\n".join(lines)
    if language == "python" and (coded := _CODING.search(text)):
        found[Reach("hidden", 0, " ".join(coded[0].split())[:WORD_MAX])] = None
    comment, marks = _COMMENT_STARTS.get(language, ()), _MARKS_IN_COMMENTS.get(language, ())
    # Most changes have no comment and no long line: two searches are faster than looking at each line.
    if max(map(len, lines)) > LINE_MAX or any(start in text for start in comment):
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX:
                found[Reach("unreadable", number, f"{len(line)} characters in one line")] = None
                lines[number - 1] = line[:LINE_MAX]
            elif comment and line.lstrip().startswith(comment) and not any(mark in line for mark in marks):
                # A line that begins so is a comment, or text inside a string.
                lines[number - 1] = ""
        text = "\n".join(lines)
    if not text or text.isspace():
        return tuple(found)  # Mostly prose: every rule wants a character that is no blank.
    # Code repeats its words. A needle that is a word is sought in each word once, which takes half the time or less.
    words = " ".join(set(_WORD.findall(text)))
    for rule in RULES_BY_LANGUAGE[language]:
        place = words if rule.has_word_needles else text
        for needle in rule.needles:  # `any` would take twice as long, and there are some hundred needles.
            if needle in place:
                break
        else:
            continue
        for reach in rule.find_reaches(text):
            found[reach] = None
            if len(found) >= FINDINGS_MAX:
                return tuple(found)
    return tuple(found)


_WORD = lazy_pattern(r"\w+")
_LINE_END = lazy_pattern(r"\r\n?|[\u2028\u2029]")
"""Ends of lines besides a newline: a comment ends there in Python and JavaScript, and code follows."""

_CODING = lazy_pattern(
    r"^[ \t\f]{0,40}#[^\n]{0,400}?coding[:=][ \t]{0,40}"
    r"(?!(?:utf-?8|ascii|us-ascii|latin-?1|iso-8859-1)(?![\w.-]))[\w.-]",
    re.MULTILINE | re.IGNORECASE,
)
"""A file of Python that says how its letters are to be read: in `utf-7`, a comment may hold the end of its line."""

_MARKS_IN_COMMENTS: Mapping[str, tuple[str, ...]] = {
    "python": ("{",),
    "javascript": ("${",),
    "source": ("go:", "cgo", "{", "(", "\\", '"'),
}
"""Marks of a line that begins as a comment does, and may be code: a string runs what stands in brackets, Java reads
`\\u000a` as the end of the comment, tools of Go run or compile comments, and in Haskell `//` is an operator."""

_COMMENT_STARTS: Mapping[str, tuple[str, ...]] = {"python": ("#",), "javascript": ("//",), "source": ("//",)}


def scan_javascript_program(text: str) -> tuple[Reach, ...]:
    """Return the places at which a program of JavaScript reaches out, by rules that are stricter than for a change."""
    found = scan_text(text, "javascript")
    if found and found[0].line == 0:
        return found
    reaches = (reach for rule in STRICT_JAVASCRIPT for reach in rule.find_reaches(text))
    return tuple(dict.fromkeys((*found, *reaches)))[:FINDINGS_MAX]
