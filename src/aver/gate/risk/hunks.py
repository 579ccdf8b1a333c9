"""The bodies of hunks: as many lines as their header says, whatever those look like.

Counting is what tells content from headers: a removed line `-- x` is written `--- x`, which looks like the beginning
of a file. A body that has more or fewer lines of a side than announced is given out with an `Unclear` after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aver.gate.risk.change import Hunk, Unclear
from aver.gate.risk.lines import Lines

__all__ = ["PIECE", "read_hunk"]

PIECE = 4096
"""Lines of a hunk that are given out at once: what bounds the memory."""

_SIMPLE = re.compile(r"@@ -([0-9]{1,10})(?:,([0-9]{1,10}))? \+[0-9]{1,10}(?:,([0-9]{1,10}))? @@").match
_COMBINED = re.compile(r"(@{3,65})((?: -[0-9]{1,10}(?:,[0-9]{1,10})?){2,64}) \+[0-9]{1,10}(?:,([0-9]{1,10}))? \1").match
_OLD_COUNTS = re.compile(r" -[0-9]+(?:,([0-9]+))?").findall


def read_hunk(lines: Lines) -> Iterator[Hunk | Unclear] | None:
    """The hunk whose header is the next line; None, and nothing taken, if that is no header of one."""
    line = lines.rows[lines.at]
    if found := _SIMPLE(line):
        lines.at += 1
        return _body(lines, int(found[1]), _count(found[2]), _count(found[3]))
    if (found := _COMBINED(line)) and len(found[1]) == 1 + len(counts := _OLD_COUNTS(found[2])):
        lines.at += 1
        return _combined_body(lines, [_count(count) for count in counts], _count(found[3]))
    return None


def _count(text: str | None) -> int:
    """A count that is left out is one."""
    return int(text) if text else 1


def _body(lines: Lines, start: int, old: int, new: int) -> Iterator[Hunk | Unclear]:
    if old + new <= PIECE and lines.has(max(old, new, 1)):
        lines.has(old + new)
        rows = lines.rows[lines.at : lines.at + old + new]
        length = _plain_length(rows, old, new)
        if length is not None:
            lines.at += length
            return iter((Hunk(start, rows[:length]),))
    return _counted_body(lines, start, old, new)


def _plain_length(rows: list[str], old: int, new: int) -> int | None:
    """How many of these lines are the hunk's, if each is marked and the counts fit; None otherwise.

    The common case, by counting marks instead of going line by line.
    """
    marks = "".join([line[:1] or "?" for line in rows])
    length = max(old, new)
    while True:
        common = marks.count(" ", 0, length)
        wanted = old + new - common
        if wanted <= length:
            break
        length = wanted
    fits = marks.count("+", 0, length) + common == new and marks.count("-", 0, length) + common == old
    return length if fits and length == wanted <= len(rows) else None


def _counted_body(lines: Lines, start: int, old: int, new: int) -> Iterator[Hunk | Unclear]:
    number, fits = lines.number, True
    while fits and (old > 0 or new > 0):
        if not lines.has(1):
            fits = False
            break
        piece: list[str] = []
        notes, before = 0, old
        for line in lines.rows[lines.at : lines.at + PIECE]:
            mark = line[:1]
            if mark == "+":
                new -= 1
            elif mark == "-":
                old -= 1
            elif mark in (" ", "", "\r"):  # Some tools strip the space of an empty line.
                old -= 1
                new -= 1
                line = line if mark == " " else " " + line
            elif mark == "\\":
                notes += 1
                continue
            else:
                fits = False
                break
            piece.append(line)
            if old <= 0 >= new:
                break
        lines.at += notes + len(piece)
        if piece:
            yield Hunk(start, piece)
        start += before - old
    if not fits or old or new:
        yield Unclear(number, "a hunk has not as many lines as its header says")


def _combined_body(lines: Lines, olds: list[int], new: int) -> Iterator[Hunk | Unclear]:
    """A merge against each of its parents: one column of marks for each."""
    number, width, fits = lines.number, len(olds), True
    piece: list[str] = []
    while fits and (new > 0 or any(count > 0 for count in olds)):
        if not lines.has(1):
            fits = False
            break
        line = lines.rows[lines.at]
        marks = line[:width].replace("\r", "").ljust(width)
        if marks[0] != "\\":
            gone = "-" in marks
            fits = not marks.strip("-" if gone else "+").strip(" -" if gone else " +")
            if not fits:
                break
            there = "-" if gone else " "
            olds = [count - (mark == there) for count, mark in zip(olds, marks, strict=True)]
            new -= not gone
            piece.append(("-" if gone else "+" if "+" in marks else " ") + line[width:])
        lines.at += 1
        if len(piece) == PIECE:
            yield Hunk(0, piece)
            piece = []
    if piece:
        yield Hunk(0, piece)
    if not fits or new or any(olds):
        yield Unclear(number, "a hunk has not as many lines as its header says")
