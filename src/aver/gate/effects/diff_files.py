"""What a diff shows: which files it writes and deletes, and where it does not show enough to be judged by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from aver.gate.risk.diff import read_diff
from aver.gate.risk.diff_model import FileChange, UnclearLines

__all__ = ["DiffFile", "DiffProblem", "read_diff_files"]


class DiffFile(NamedTuple):
    """A file that is changed, by its name in the diff."""

    path: str
    effect: Literal["write", "delete"]


class DiffProblem(NamedTuple):
    """Something that does not fit, or is missing: a code of `commands.model.UNCLEAR`, and why in words."""

    code: str
    words: str


def read_diff_files(diff: str) -> Iterator[DiffFile | DiffProblem]:
    """All of it, in order. Time and memory are those of reading the diff."""
    silent: FileChange | None = None
    """A file of which no line has come yet."""
    for part in read_diff(diff):
        if isinstance(part, UnclearLines):
            yield DiffProblem("syntax", f"line {part.number} of the diff does not fit: {part.why}")
            continue
        if not isinstance(part, FileChange):
            silent = None
            continue
        yield from _report_empty_change(silent)
        silent = part if _needs_lines(part) else None
        if part.old is not None and part.old != part.new:
            yield DiffFile(part.old, "delete")
        if part.new is not None:
            yield DiffFile(part.new, "write")
    yield from _report_empty_change(silent)


def _needs_lines(file: FileChange) -> bool:
    """Whether a change of a file is none unless lines of it follow."""
    is_kept = file.old is not None and file.old == file.new and file.old_mode == file.new_mode
    return is_kept and not file.binary


def _report_empty_change(file: FileChange | None) -> Iterator[DiffProblem]:
    if file is not None:
        yield DiffProblem("unknown-target", f"the diff names {file.path[:80]!r} and shows no change of it")
