"""A place at which code reaches out, and a rule that finds such places.

Code *reaches out* if it does one of these things:

    process       starts another program
    network       opens a connection
    environment   reads the environment, where secrets are
    decoding      decodes data, which may be code
    code          runs code that it builds or loads
    native        calls native code
    reflection    finds a function by a name that it computes
    files         names files outside of the workspace, or overwrites files by name
    hidden        hides its text: escapes for plain letters, long texts without a blank, binary data
    unreadable    is of a kind that Aver cannot look into, or too long
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

WORD_MAX = 40
"""Characters of a text that a finding quotes."""

ReachKind = Literal[
    "process",
    "network",
    "environment",
    "decoding",
    "code",
    "native",
    "reflection",
    "files",
    "hidden",
    "unreadable",
]

REACHES: Mapping[str, str] = {
    "process": "starts a program",
    "network": "opens a connection",
    "environment": "reads the environment",
    "decoding": "decodes data",
    "code": "runs code that it builds or loads",
    "native": "calls native code",
    "reflection": "finds a function by a computed name",
    "files": "reaches files outside, or overwrites files",
    "hidden": "hides what it does",
    "unreadable": "cannot be looked into",
}
"""The kinds, as a reason says them."""

DISGUISES = frozenset({"decoding", "code", "hidden"})
"""Kinds by which a change may be more than its lines show. Such a change is never of low risk."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One place at which a text reaches out."""

    kind: ReachKind
    line: int
    """The number of the line in the text, from 1; 0 if it is about the whole text."""
    word: str
    """The words that show it."""

    def __str__(self) -> str:
        place = f"line {self.line} " if self.line else ""
        return f"{place}{REACHES[self.kind]} ({self.word})"


@dataclass(frozen=True, slots=True)
class ReachRule:
    """A pattern, and texts of which at least one is in everything that it matches."""

    kind: ReachKind
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    has_word_needles: bool
    """Every needle consists of letters, so no needle reaches from one word of a text into the next."""

    def find_reaches(self, text: str) -> Iterator[Reach]:
        line, at = 1, 0
        for match in self.pattern.finditer(text):
            # Count on from the last match, so that the text is gone through once.
            line, at = line + text.count("\n", at, match.start()), match.start()
            # Data may be a secret: a finding shows where it begins, and no more.
            shown, length = " ".join(match[0].split()), 12 if self.kind == "hidden" else WORD_MAX
            yield Reach(self.kind, line, shown if len(shown) <= length else shown[: length - 1] + "…")


def build_rule(kind: ReachKind, needles: str, pattern: str) -> ReachRule:
    """Build a rule. Needles are separated by blanks. Without any, the pattern is tried on every text."""
    listed = tuple(needles.split()) or ("",)
    are_words = all(needle.isascii() and needle.isidentifier() for needle in listed)
    return ReachRule(kind, listed, lazy_pattern(pattern, re.MULTILINE), are_words)
