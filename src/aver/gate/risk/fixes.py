"""What counts as a bug fix, and how many there were lately to which file.

A commit is one if its subject says so, it touches source files, and it changes at most 60 lines of them. Fixes of docs
or tests alone are none, and neither are those of typing errors, style and the like.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from aver.gate.risk.change import FileChange, Hunk, Part
from aver.gate.risk.features import code_lines
from aver.gate.risk.sources import comment_style, is_source

__all__ = ["DAY", "FIX_LINES_MAX", "WINDOW", "FixTimes", "FixWatch", "says_fix"]

DAY = 86_400
WINDOW = 180 * DAY
"""Seconds for which a fix counts: to what it repairs, and to the files it touches."""

FIX_LINES_MAX = 60
"""Changed lines of a fix. In larger ones too much else is changed to tell what was repaired."""

_FIX = (
    r"\b(?:fix(?:e[sd]|ing)?|(?:hot|bug)[- ]?fix(?:es|ed)?|bugs?|regressions?|crash(?:es|ed|ing)?|deadlocks?|broken)\b"
)
_COSMETIC = (
    r"\b(?:typos?|spelling|grammar|whitespaces?|lint(?:er|ing|s)?|flake8|pylint|mypy|ruff|clippy|eslint|isort)\b"
    r"|\bfix(?:e[sd]|ing)?:?\s+(?:\w+\s+)?"
    r"(?:docs?|docstrings?|documentation|comments?|readme|changelog|tests?|ci|format(?:ting)?|style|indent(?:ation)?"
    r"|imports?\s+order|copyright|licen[cs]e|links?|warnings?|annotations?|type\s+hints?)\b"
)
"""Both are compiled when a history is read, which takes long anyway; a decision reads none."""


def says_fix(subject: str) -> bool:
    """Whether a commit's subject says that it repairs a bug."""
    is_fix, is_cosmetic = (re.search(pattern, subject, re.IGNORECASE) for pattern in (_FIX, _COSMETIC))
    return is_fix is not None and is_cosmetic is None


class FixWatch:
    """Looks at a change as it passes by, and tells afterwards whether it was small enough, and what it took away."""

    def __init__(self) -> None:
        self._style_path: str | None = None
        self._old: str | None = None
        self._lines = 0
        self._files: dict[str, None] = {}
        self.removed: dict[str, list[int]] = {}
        """By old path: the numbers of the lines of code that were removed."""

    def passing(self, parts: Iterable[Part]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, FileChange):
                self._file(part)
            elif isinstance(part, Hunk):
                self._hunk(part)
            yield part

    @property
    def files(self) -> tuple[str, ...]:
        """The source files that were fixed; none if too much was changed for a fix."""
        return tuple(self._files) if self._lines <= FIX_LINES_MAX else ()

    def _file(self, file: FileChange) -> None:
        sources = [path for path in (file.new, file.old) if path is not None and is_source(path)]
        self._style_path = sources[0] if sources else None
        self._old = file.old
        if self._lines <= FIX_LINES_MAX:
            self._files.update(dict.fromkeys(sources))

    def _hunk(self, hunk: Hunk) -> None:
        if self._style_path is None:
            return
        self._lines += sum(line[0] != " " for line in hunk.lines)
        if self._lines <= FIX_LINES_MAX and self._old is not None and hunk.old_start:
            style = comment_style(self._style_path)
            numbers = [number for number, line in hunk.removed_at() if code_lines([line], style)]
            if numbers:
                self.removed.setdefault(self._old, []).extend(numbers)


@dataclass(slots=True)
class FixTimes:
    """When each file was fixed. Grows as a history is read; asking about a time sees only what was before it."""

    times: dict[str, list[int]] = field(default_factory=dict)

    def add(self, paths: Iterable[str], time: int) -> None:
        for path in paths:
            known = self.times.setdefault(path, [])
            known.insert(bisect_left(known, time), time)

    def count(self, paths: Collection[str], now: int) -> int:
        """Fixes in the 180 days before `now`, summed over the files."""
        total = 0
        for path in paths:
            known = self.times.get(path)
            if known:
                total += bisect_left(known, now) - bisect_left(known, now - WINDOW)
        return total
