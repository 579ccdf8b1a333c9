"""Edits written as SEARCH/REPLACE blocks, as unified diffs.

    ------- SEARCH          <<<<<<< SEARCH
    what stood there        what stood there
    =======                 =======
    what stands there now   what stands there now
    +++++++ REPLACE         >>>>>>> REPLACE

Both forms are read, and more than one block in a text. A line that looks like a mark belongs to the text where that
mark cannot stand. Where the edit begins in the file is known only if the tool says so; otherwise hunks are numbered as
if the blocks were all that the file holds.

>>> print(as_diff("a.py", "------- SEARCH\\nold\\n=======\\nnew\\n+++++++ REPLACE\\n", starts=[12]), end="")
--- a/a.py
+++ b/a.py
@@ -12,1 +12,1 @@
-old
+new
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from aver.ingest.diffs import diff_from_hunks, unified_diff

__all__ = ["SearchReplaceBlock", "diff_from_blocks", "parse_blocks"]

_matches_search = re.compile(r"(?:-{3,}|<{3,}) ?SEARCH>?\s*").fullmatch
_matches_middle = re.compile(r"={3,}\s*").fullmatch
_matches_replace = re.compile(r"(?:\+{3,}|>{3,}) ?REPLACE>?\s*").fullmatch
_match_hunk = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@").match


class SearchReplaceBlock(NamedTuple):
    """One block: the text to find, and its replacement."""

    search: str
    replace: str


def parse_blocks(text: str) -> list[SearchReplaceBlock]:
    """The blocks in a text, in order. One that has no end was cut off, and is left out."""
    blocks: list[SearchReplaceBlock] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in text.split("\n"):
        if search is None:
            if _matches_search(line):
                search = []
        elif replace is None:
            if _matches_middle(line):
                replace = []
            else:
                search.append(line)
        elif _matches_replace(line):
            blocks.append(SearchReplaceBlock(_join_lines(search), _join_lines(replace)))
            search = replace = None
        else:
            replace.append(line)
    return blocks


def diff_from_blocks(path: str, text: str, starts: Sequence[Any] = ()) -> str:
    """The unified diff of all blocks in a text; empty where there are none. `starts` are the lines of the original
    file, from 1, at which each was found."""
    hunks: list[dict[str, Any]] = []
    shift, follows = 0, 1
    for number, block in enumerate(parse_blocks(text)):
        told = starts[number] if number < len(starts) else None
        start = told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else follows
        for hunk in _block_hunks(path, block):
            hunks.append(_shift_hunk(hunk, start - 1, shift))
        shift += _count_lines(block.replace) - _count_lines(block.search)
        follows = start + max(1, _count_lines(block.search))
    return diff_from_hunks(path, hunks)


def _block_hunks(path: str, block: SearchReplaceBlock) -> Iterable[dict[str, Any]]:
    """The hunks of one block, numbered from its own first line."""
    hunk: dict[str, Any] | None = None
    for line in unified_diff(path, block.search, block.replace).split("\n")[2:-1]:
        if hunk is None or not hunk["left"]:
            if hunk is not None:
                yield hunk
            hunk = _parse_hunk_header(line)
        else:
            hunk["lines"].append(line)
            hunk["left"] -= 2 if line.startswith(" ") else 1
    if hunk is not None:
        yield hunk


def _parse_hunk_header(header: str) -> dict[str, Any]:
    found = _match_hunk(header)
    numbers = [1 if number is None else int(number) for number in found.groups()] if found else [0, 0, 0, 0]
    names = ("oldStart", "oldLines", "newStart", "newLines")
    return {**dict(zip(names, numbers, strict=True)), "left": numbers[1] + numbers[3], "lines": []}


def _shift_hunk(hunk: dict[str, Any], by: int, shift: int) -> dict[str, Any]:
    return {**hunk, "oldStart": hunk["oldStart"] + by, "newStart": hunk["newStart"] + by + shift}


def _count_lines(text: str) -> int:
    return 0 if not text else text.removesuffix("\n").count("\n") + 1


def _join_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
