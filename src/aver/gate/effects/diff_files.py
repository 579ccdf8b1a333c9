"""The files of a diff: which files it writes and deletes, and where it does not show enough to judge it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from aver.gate.risk.diff import read_diff
from aver.gate.risk.diff_model import FileChange, UnclearLines


class DiffFile(NamedTuple):
    """A changed file, by its name in the diff."""

    path: str
    effect: Literal["write", "delete"]


class DiffProblem(NamedTuple):
    """A part of a diff that does not fit, or is missing: a code of `findings.UNCLEAR` and the reason."""

    code: str
    why: str


def read_diff_files(diff: str) -> Iterator[DiffFile | DiffProblem]:
    """Yield the files and problems of a diff in order."""
    empty: FileChange | None = None  # a file that needs lines, and has none so far
    for part in read_diff(diff):
        if isinstance(part, UnclearLines):
            yield DiffProblem("syntax", f"line {part.number} of the diff does not fit: {part.why}")
            continue
        if not isinstance(part, FileChange):
            empty = None
            continue
        yield from _report_empty_change(empty)
        # A file that keeps its name, mode and kind changes only by lines.
        is_kept = part.old is not None and part.old == part.new and part.old_mode == part.new_mode
        empty = part if is_kept and not part.binary else None
        if part.old is not None and part.old != part.new:
            yield DiffFile(part.old, "delete")
        if part.new is not None:
            yield DiffFile(part.new, "write")
    yield from _report_empty_change(empty)


def _report_empty_change(file: FileChange | None) -> Iterator[DiffProblem]:
    if file is not None:
        yield DiffProblem("unknown-target", f"the diff names {file.path[:80]!r} and shows no change of it")
