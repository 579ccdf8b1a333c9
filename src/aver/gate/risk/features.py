"""The five inputs of the model, measured on a diff.

    added         lines of code added: neither blank nor comment
    removed       lines removed
    branches      branch words on the added lines of code: if elif for while except catch case switch select && ||
    indentation   the deepest of them, in columns: a tab is 4, and 60 the most
    fixes         bug fixes to the touched files in the 180 days before, summed over the files

All of source files only (see `sources`). Three more say how much of the change those five speak for:

    files         source files touched
    unmeasured    other files on which nothing was measured: configuration, vendored, binary, links, unknown
    unclear       stretches that could not be read, or not be judged by their lines

Whether a line is a comment is told by that line alone. To follow comments over lines would let one line (an opening
mark inside a string) make all that follow it vanish. So text inside a block counts as code unless it looks like a
comment itself: that errs on the side of asking.

    >>> found = measured_diff("--- a/x.py\\n+++ b/x.py\\n@@ -1 +1,3 @@\\n-y\\n+# why\\n+if x:\\n+    y()\\n")
    >>> found.features.to_dict()
    {'added': 2, 'removed': 1, 'branches': 1, 'indentation': 4, 'fixes': 0, 'files': 1, 'unmeasured': 0, 'unclear': 0}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields

from aver.gate.risk.change import FileChange, Hunk, Part
from aver.gate.risk.diff import read_diff
from aver.gate.risk.sources import CommentStyle, comment_style, kind_of
from aver.values import dataclass

__all__ = ["COUNT_MAX", "Features", "Measured", "code_lines", "measured", "measured_diff"]

INDENTATION_MAX = 60
TAB = 4

LINE_MAX = 1000
"""Characters of a line of code. What is longer holds more than a line's worth, and lines are what is counted."""

FILES_MAX = 10_000
"""Files of a change that are measured. One of more is unclear, whatever they hold."""

PENDING_MAX = 4096
"""Lines that are measured at once."""

COUNT_MAX = 10**9
"""No honest change has more of anything."""


@dataclass(frozen=True, slots=True)
class Features:
    """What is scored, and what is learned from when the outcome is known: the very same numbers."""

    added: int = 0
    removed: int = 0
    branches: int = 0
    indentation: int = 0
    fixes: int = 0
    files: int = 0
    unmeasured: int = 0
    unclear: int = 0

    def to_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def from_dict(cls, values: Mapping[str, float]) -> Features:
        """From numbers that may come from outside: each is brought within its bounds."""
        return cls(**{name: _bounded(values.get(name, 0)) for name in _NAMES})

    def plus(self, other: Features) -> Features:
        """Both changes as one. `fixes` belong to the files of both together, and are not known here."""
        sums = {name: min(getattr(self, name) + getattr(other, name), COUNT_MAX) for name in _NAMES}
        return Features(**{**sums, "indentation": max(self.indentation, other.indentation), "fixes": 0})


_NAMES = tuple(field.name for field in fields(Features))


@dataclass(frozen=True, slots=True)
class Measured:
    """A change's features without `fixes`, and the source files it touches, by all the names they have in it."""

    features: Features
    sources: tuple[str, ...]

    def plus(self, other: Measured) -> Measured:
        """Both changes as one."""
        return Measured(self.features.plus(other.features), tuple(dict.fromkeys((*self.sources, *other.sources))))


def measured_diff(diff: str, *, workspace: str = "") -> Measured:
    """Measure a change that is given as a diff."""
    return measured(read_diff(diff), workspace=workspace)


def measured(parts: Iterable[Part], *, workspace: str = "") -> Measured:
    """Measure a change. Absolute paths are taken to be inside `workspace` only if they are."""
    tally = _Tally(workspace)
    files = 0
    for part in parts:
        if isinstance(part, Hunk):
            tally.hunk(part)
        elif isinstance(part, FileChange):
            files += 1
            if files > FILES_MAX:
                tally.unclear += 1
                break
            tally.file(part)
        else:
            tally.unclear += 1
    return tally.result()


class _Tally:
    def __init__(self, workspace: str) -> None:
        self._inside = workspace.rstrip("/") + "/" if workspace else ""
        self._style: CommentStyle | None = None
        """Of the file at hand; None if it is no source."""
        self._pending: dict[CommentStyle, list[str]] = {}
        """Added lines that are still to be measured: many at once cost less than a few each time."""
        self._sources: dict[str, None] = {}
        self.added = self.removed = self.branches = self.indentation = 0
        self.files = self.unmeasured = self.unclear = 0

    def file(self, file: FileChange) -> None:
        paths = [path.removeprefix(self._inside) for path in dict.fromkeys((file.old, file.new)) if path is not None]
        kinds = {kind_of(path) for path in paths}
        self._style = None
        if "source" in kinds:
            self.files += 1
            self._style = comment_style(next(path for path in paths if kind_of(path) == "source"))
            self._sources.update(dict.fromkeys(paths))
        if not kinds <= {"source", "test", "docs"} or _is_no_text(file, kinds):
            self.unmeasured += 1

    def hunk(self, hunk: Hunk) -> None:
        if self._style is not None:
            added = hunk.added()
            self.removed += len(hunk.removed()) if len(added) < len(hunk.lines) else 0
            pending = self._pending.setdefault(self._style, [])
            pending += added
            if len(pending) > PENDING_MAX:
                self._measure(self._style)

    def _measure(self, style: CommentStyle) -> None:
        code = code_lines(self._pending.pop(style), style)
        text = "\n".join(code)
        if len(text) > LINE_MAX and max(map(len, code)) > LINE_MAX:
            text = "\n".join([line[:LINE_MAX] for line in code])
            self.unclear += 1
        self.added += len(code)
        self.branches += sum([len(find(text)) for find in _BRANCHES])
        self.indentation = max(self.indentation, _deepest(code))

    def result(self) -> Measured:
        for style in tuple(self._pending):
            self._measure(style)
        features = Features(
            added=self.added,
            removed=self.removed,
            branches=self.branches,
            indentation=self.indentation,
            files=self.files,
            unmeasured=self.unmeasured,
            unclear=self.unclear,
        )
        return Measured(features, tuple(self._sources))


_BRANCH_WORDS = ("if", "elif", "for", "while", "except", "catch", "case", "switch", "select")
_BRANCHES = [
    # A pattern that begins with letters is searched for several times as fast as one that begins with `\b`.
    *(re.compile(rf"{word}(?<!\w{word})(?!\w)").findall for word in _BRANCH_WORDS),
    re.compile("&&").findall,
    re.compile(r"\|\|").findall,
]
_OTHER_ENDS = re.compile("[\n\r\u2028\u2029]").split
"""What ends a line in Python or JavaScript besides a newline. Otherwise a whole program could be one line of a diff."""

_COMMENTS: Mapping[CommentStyle, tuple[str, re.Pattern[str]]] = {
    "hash": ("#", re.compile("#")),
    # After a star, what ends like code may be code: `* p = f();`. What follows the end of a comment is none.
    "slash": ("/*", re.compile(r"//|/\*(?!.*\*/.)|\*(?:/|\s.*[^;{}(),])?$")),
    "dash": ("-", re.compile("--")),
    "semicolon": (";", re.compile(";")),
    "percent": ("%", re.compile("%")),
    "markup": ("<", re.compile(r"<!--(?!.*-->.)")),
    "hash and slash": ("#/*", re.compile(r"#(?!\[)|//|/\*(?!.*\*/.)|\*(?:/|\s.*[^;{}(),])?$")),
}
"""By style: the characters that a comment begins with, and how it goes on. On a line without its outer white space."""


def code_lines(lines: list[str], style: CommentStyle) -> list[str]:
    """Those that are neither blank nor comment."""
    text = "".join(lines)
    if "\r" in text or not text.isascii():
        lines = [part for line in lines for part in _OTHER_ENDS(line)]
    firsts, comment = _COMMENTS[style]
    is_comment = comment.match
    return [line for line in lines if (bare := line.strip()) and (bare[0] not in firsts or not is_comment(bare))]


def _deepest(code: list[str]) -> int:
    """The deepest indentation, in columns. The same few return on many lines, so each is looked at once."""
    deepest = 0
    for space in {line[: len(line) - len(line.lstrip(" \t"))] for line in code}:
        deepest = max(deepest, len(space) + (TAB - 1) * space.count("\t"))
    return min(deepest, INDENTATION_MAX)


def _is_no_text(file: FileChange, kinds: Collection[str]) -> bool:
    """Whether the change is one that lines do not show. Pictures and the like in docs and tests are as good as text."""
    if file.binary:
        return not {"test", "docs"}.issuperset(kinds)
    if not {file.new_mode, file.old_mode} <= _MODES_OF_TEXT:
        return True
    return file.new_mode == "100755" != file.old_mode


_MODES_OF_TEXT = frozenset(("", "100644", "100755"))
"""Others are of links, of other repositories, or give more rights."""


def _bounded(value: float) -> int:
    if not isinstance(value, int | float) or value != value:
        return COUNT_MAX
    return int(max(0, min(value, COUNT_MAX)))
