"""Unified diffs from texts, hunks and insertions, and the number of lines that they add and remove.

>>> change = unified_diff("sum.py", "a\\nb\\n", "a\\nc\\n")
>>> count_changed_lines(change)
(1, 1)
>>> format_line_counts(change)
'(+1/-1)'
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aver.lazy_pattern import lazy_pattern

LINES_MAX = 20_000
"""The longest text, in lines, that is compared line by line. A longer one counts as replaced whole, to save time."""

PAIRS_MAX = 200_000
"""Most pairs of equal lines that are compared, which takes some seconds at worst. A text with many repeated lines
could otherwise take hours. A line that makes up more than a hundredth of a text is neither compared nor counted."""

CONTEXT = 3

_HUNK_HEADER = lazy_pattern(r"@@ -(?:[0-9]{1,9}|\?)(?:,([0-9]{1,9}))? \+(?:[0-9]{1,9}|\?)(?:,([0-9]{1,9}))? @@")


def unified_diff(path: str, before: str | None, after: str | None) -> str:
    """Return the diff between two texts, empty if they are equal. None means that there was, or is, no file."""
    old, new = _split_lines(before), _split_lines(after)
    start = "/dev/null" if before is None else f"a/{path.lstrip('/')}"
    end = "/dev/null" if after is None else f"b/{path.lstrip('/')}"
    if before is None and after == "":
        return _join_lines([f"--- {start}", f"+++ {end}"])  # No line says that there is a new file: its names do.
    if max(len(old), len(new)) <= LINES_MAX and _count_equal_pairs(old, new) <= PAIRS_MAX:
        return _join_lines(difflib.unified_diff(old, new, start, end, n=CONTEXT, lineterm=""))
    removed, added = (f"-{line}" for line in old), (f"+{line}" for line in new)
    return _join_lines([f"--- {start}", f"+++ {end}", _hunk_header(1, len(old), 1, len(new)), *removed, *added])


def diff_from_insertion(path: str, line: int, text: str) -> str:
    """Return the diff of a text that is inserted before a line of a file."""
    added = [f"+{inserted}" for inserted in text.split("\n")]
    hunk = {"oldStart": line - 1, "oldLines": 0, "newStart": line, "newLines": len(added), "lines": added}
    return diff_from_hunks(path, [hunk])


def diff_from_hunks(path: str, hunks: Iterable[Any], *, new_file: bool = False) -> str:
    """Return the diff of hunks `{oldStart, oldLines, newStart, newLines, lines}`, as Claude Code writes them."""
    start = "/dev/null" if new_file else f"a/{path.lstrip('/')}"
    lines = [f"--- {start}", f"+++ b/{path.lstrip('/')}"]
    for hunk in hunks:
        body = hunk.get("lines") if isinstance(hunk, Mapping) else None
        if not isinstance(body, list):
            continue
        texts = [line for line in body if isinstance(line, str)]
        numbers = (hunk.get(name) for name in ("oldStart", "oldLines", "newStart", "newLines"))
        lines += [_hunk_header(*(number if isinstance(number, int) else 0 for number in numbers)), *texts]
    return _join_lines(lines) if len(lines) > 2 else ""


def count_changed_lines(diff: str) -> tuple[int, int]:
    """Count the lines that a unified diff adds and removes."""
    # The hunk header says how many lines belong to a hunk. So a removed line `-- x` counts, and the header `--- a/x`
    # does not.
    added = removed = old = new = 0
    for line in diff.split("\n"):
        if old <= 0 and new <= 0:
            if header := _HUNK_HEADER.match(line):
                old, new = (1 if count is None else int(count) for count in header.groups())
        elif line.startswith("+"):
            added, new = added + 1, new - 1
        elif line.startswith("-"):
            removed, old = removed + 1, old - 1
        elif not line.startswith("\\"):
            old, new = old - 1, new - 1
    return added, removed


def classify_diff_lines(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a diff with their kind: `added`, `removed`, `place` (a hunk header), `file` or `same`.

    Inside a hunk only the first character decides. Outside, and in diffs without hunk headers, the form of the line
    decides.
    """
    old = new = 0
    for line in diff.removesuffix("\n").split("\n"):
        inside = old > 0 or new > 0
        sort = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
        if not inside and (header := _HUNK_HEADER.match(line)):
            old, new = (1 if count is None else int(count) for count in header.groups())
        elif not inside and line.startswith(("--- ", "+++ ", "diff ", "index ")):
            sort = "file"
        elif inside:
            sort = "same" if sort == "place" else sort
            old -= sort in ("removed", "same") and not line.startswith("\\")
            new -= sort in ("added", "same") and not line.startswith("\\")
        yield sort, line


def format_line_counts(diff: str) -> str:
    added, removed = count_changed_lines(diff)
    return f"(+{added}/-{removed})"


def _count_equal_pairs(old: list[str], new: list[str]) -> int:
    """Count the pairs of equal lines that `difflib` compares."""
    # `difflib` skips a line that makes up more than 1 % of a text with 200 lines or more.
    counts = Counter(new)
    popular = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    return sum(count for line in old if (count := counts[line]) <= popular)


def _hunk_header(old_start: int, old_lines: int, new_start: int, new_lines: int) -> str:
    return f"@@ -{old_start},{old_lines} +{new_start},{new_lines} @@"


def _split_lines(text: str | None) -> list[str]:
    return [] if not text else text.removesuffix("\n").split("\n")


def _join_lines(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return f"{text}\n" if text else ""
