"""Text that somebody else chose, made fit for a person to judge by. Pure.

What a terminal would obey, what cannot be seen, and what changes the order or the look of what stands beside it is
written out as its code point, `<U+202E>`: control characters, format characters (all bidirectional controls, joiners
and zero-width ones), letters that run from right to left, blanks other than the space, fillers that look like
nothing, and marks piled upon marks. A tab is shown as spaces. All else, also in other scripts, stays: how much of
that there is, is counted, because letters that look alike are not the same.
"""

from __future__ import annotations

import unicodedata

from aver.fast_dataclass import dataclass

__all__ = ["UnusualCharacters", "count_unusual_characters", "escape_invisible"]

TAB = "    "

MARKS_MAX = 2
"""Marks upon one letter; written languages need no more, and a pile of them hides the lines above it."""

_MARKS = frozenset({"Mn", "Me"})
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_BLANK_CHARACTERS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Characters that count as letters or marks and show nothing: fillers, joiners, variation selectors."""


@dataclass(frozen=True, slots=True)
class UnusualCharacters:
    """What a text has in it that a reader should know of."""

    hidden: int = 0
    """Characters that are written out because they cannot be shown as they are."""
    foreign: int = 0
    """Characters shown as they are that are not ASCII, and may look like others."""


def escape_invisible(text: str) -> str:
    """The text on one line, every character of it visible and in its place."""
    if text.isascii() and text.isprintable():
        return text
    shown = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if character == "\t":
            shown.append(TAB)
        elif marks > MARKS_MAX or _needs_escape(character):
            shown.append(f"<U+{ord(character):04X}>")
        else:
            shown.append(character)
    return "".join(shown)


def count_unusual_characters(text: str) -> UnusualCharacters:
    """What `plain` would have to write out, and what it would leave that is not ASCII. Line feeds are neither."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return UnusualCharacters()
    hidden = foreign = marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if character in "\t\n":
            continue
        if marks > MARKS_MAX or _needs_escape(character):
            hidden += 1
        elif not character.isascii():
            foreign += 1
    return UnusualCharacters(hidden, foreign)


def _needs_escape(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    return (
        not character.isprintable()
        or character in _BLANK_CHARACTERS
        or unicodedata.bidirectional(character) in _RIGHT_TO_LEFT
    )
