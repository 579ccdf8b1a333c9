"""Patches and SEARCH/REPLACE blocks, converted to unified diffs.

Models of the Codex family write patches in this form:

    *** Begin Patch
    *** Update File: http.py
    @@ def get():
    -    return go()
    +    return retry(go)
    *** End Patch

Such a patch has no line numbers, so the hunks of its diff have line 0 and only the number of lines. It does not have
the content of a deleted file. A text that is no patch gives None, never an error.

>>> patch = read_patch("*** Begin Patch\\n*** Add File: a.txt\\n+one\\n*** End Patch")
>>> patch.changes
(('wrote', 'a.txt'),)
>>> print(patch.diff, end="")
--- /dev/null
+++ b/a.txt
@@ -0,0 +1 @@
+one

Cline writes SEARCH/REPLACE blocks, in two forms:

    ------- SEARCH          <<<<<<< SEARCH
    the old text            the old text
    =======                 =======
    the new text            the new text
    +++++++ REPLACE         >>>>>>> REPLACE

A text may have several blocks. A line that looks like a mark, at a place where that mark cannot be, is part of the
text. Only the tool knows the line of a block in the file (`starts`). Without it the hunks are numbered as if the file
had only the blocks.

>>> print(diff_from_blocks("a.py", "------- SEARCH\\nold\\n=======\\nnew\\n+++++++ REPLACE\\n", starts=[12]), end="")
--- a/a.py
+++ b/a.py
@@ -12,1 +12,1 @@
-old
+new
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aver.diffs import diff_from_hunks, unified_diff
from aver.fast_dataclass import dataclass

BEGIN, END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_END_OF_FILE = "*** End of File"
_ENVIRONMENT = "*** Environment ID: "


@dataclass(frozen=True, slots=True)
class Patch:
    """The changes of one patch."""

    diff: str
    """One unified diff, file after file."""
    changes: tuple[tuple[str, str], ...]
    """Pairs of a change (`edited`, `wrote` or `deleted`) and a path."""


class _PatchFormatError(Exception):
    """The text is no valid patch."""


def read_patch(text: str) -> Patch | None:
    """Return the patch in a text, which may be a command that calls `apply_patch`; None if there is none."""
    return next((patch for lines in _find_envelopes(text) if (patch := _parse_patch(lines)) is not None), None)


def patch_from_changes(changes: Any, cwd: str = "") -> Patch | None:
    """Convert the changes that Codex reports, `{path: {type, content | unified_diff, move_path}}`; None if none.

    Paths below `cwd` become relative to it.
    """
    if not isinstance(changes, Mapping):
        return None
    diffs: list[str] = []
    done: list[tuple[str, str]] = []
    for path, change in sorted(changes.items()):
        if isinstance(change, Mapping):
            diff, of_file = _convert_change(_relative_path(path, cwd), change, cwd)
            diffs.append(diff)
            done += of_file
    return Patch("".join(diffs), tuple(done)) if done else None


def _find_envelopes(text: str) -> Iterator[list[str]]:
    """Yield the lines between the marks of a patch: up to the last end mark, and up to the first."""
    # A file in the patch may contain the end mark, so the last one comes first. A command may have two patches, and
    # then only the first end mark gives a valid patch.
    if BEGIN not in text:
        return
    lines = text.split("\n")
    marks = [line.strip() for line in lines]
    try:
        start = marks.index(BEGIN) + 1
        first = marks.index(END, start)
    except ValueError:
        return
    last = len(marks) - 1 - marks[::-1].index(END)
    for end in dict.fromkeys((last, first)):
        yield [line.removesuffix("\r") for line in lines[start:end]]


def _parse_patch(lines: list[str]) -> Patch | None:
    diffs: list[str] = []
    changes: list[tuple[str, str]] = []
    try:
        for header, body in _split_files(lines):
            diff, of_file = _parse_file(header, body)
            diffs.append(diff)
            changes += of_file
    except _PatchFormatError:
        return None
    return Patch("".join(diffs), tuple(changes)) if changes else None


def _split_files(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each file's header and the lines after it."""
    header, body = "", list[str]()
    for line in lines:
        if line.startswith((_ADD, _DELETE, _UPDATE)):
            if header:
                yield header, body
            header, body = line, []
        elif header:
            body.append(line)
        elif line.strip() and not line.startswith(_ENVIRONMENT):
            raise _PatchFormatError
    if header:
        yield header, body


def _parse_file(header: str, body: list[str]) -> tuple[str, list[tuple[str, str]]]:
    kind, path = header[: header.index(": ") + 2], header.partition(": ")[2].strip()
    if not path:
        raise _PatchFormatError
    if kind == _ADD:
        if not all(line.startswith("+") for line in body if line):
            raise _PatchFormatError
        content = "".join(f"{line[1:]}\n" for line in body if line)
        return unified_diff(path, None, content), [("wrote", path)]
    if kind == _DELETE:
        return _file_header(path, None), [("deleted", path)]
    target = path
    if body and body[0].startswith(_MOVE):
        target = body.pop(0).removeprefix(_MOVE).strip() or path
    return _file_header(path, target) + "".join(_convert_hunks(body)), _path_changes(path, target)


def _convert_hunks(body: list[str]) -> Iterator[str]:
    place, lines = "", list[str]()
    for line in body:
        if line == "@@" or line.startswith("@@ "):
            yield _format_hunk(place, lines)
            place, lines = line[3:].strip(), []
        elif line.startswith((" ", "+", "-")):
            lines.append(line)
        elif not line:
            lines.append(" ")  # Models omit the space of an empty context line, and Codex accepts that.
        elif line.strip() != _END_OF_FILE:
            raise _PatchFormatError
    yield _format_hunk(place, lines)


def _format_hunk(place: str, lines: list[str]) -> str:
    if not lines:
        return ""
    old = sum(not line.startswith("+") for line in lines)
    new = sum(not line.startswith("-") for line in lines)
    # The patch does not say at which line. `?` says so, and no program can apply the hunk at a wrong one.
    return "\n".join([f"@@ -?,{old} +?,{new} @@ {place}".rstrip(), *lines, ""])


def _convert_change(path: str, change: Mapping[str, Any], cwd: str) -> tuple[str, list[tuple[str, str]]]:
    kind, body = change.get("type"), change
    # Versions of 2025 wrote {"add": {...}}, later ones {"type": "add", ...}.
    for name in ("add", "delete", "update"):
        if isinstance(inner := change.get(name), Mapping):
            kind, body = name, inner
    content = body.get("content")
    content = content if isinstance(content, str) else ""
    if kind == "add":
        return unified_diff(path, None, content), [("wrote", path)]
    if kind == "delete":
        return unified_diff(path, content, None) or _file_header(path, None), [("deleted", path)]
    moved = body.get("move_path")
    target = _relative_path(moved, cwd) if isinstance(moved, str) and moved else path
    hunks = body.get("unified_diff")
    hunks = hunks if isinstance(hunks, str) else ""
    if hunks and not hunks.endswith("\n"):
        hunks += "\n"
    return (hunks if hunks.startswith("--- ") else _file_header(path, target) + hunks), _path_changes(path, target)


def _path_changes(path: str, target: str) -> list[tuple[str, str]]:
    return [("edited", path)] if target == path else [("deleted", path), ("wrote", target)]


def _file_header(old: str | None, new: str | None) -> str:
    start = "/dev/null" if old is None else f"a/{old.lstrip('/')}"
    end = "/dev/null" if new is None else f"b/{new.lstrip('/')}"
    return f"--- {start}\n+++ {end}\n"


def _relative_path(path: str, cwd: str) -> str:
    base = cwd.rstrip("/\\")
    inside = path[len(base) + 1 :] if base and path.startswith((f"{base}/", f"{base}\\")) else ""
    return inside or path


_matches_search = re.compile(r"(?:-{3,}|<{3,}) ?SEARCH>?\s*").fullmatch
_matches_middle = re.compile(r"={3,}\s*").fullmatch
_matches_replace = re.compile(r"(?:\+{3,}|>{3,}) ?REPLACE>?\s*").fullmatch
_match_hunk = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@").match


class SearchReplaceBlock(NamedTuple):
    """One block: the text to find, and its replacement."""

    search: str
    replace: str


def parse_blocks(text: str) -> list[SearchReplaceBlock]:
    """Return the blocks in a text, in order. A block without an end mark is left out."""
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
    """Return the unified diff of all blocks in a text; empty if there are none.

    `starts` has the line of each block in the original file, from 1.
    """
    hunks: list[dict[str, Any]] = []
    shift, follows = 0, 1
    for number, block in enumerate(parse_blocks(text)):
        given = starts[number] if number < len(starts) else None
        start = given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else follows
        for hunk in _block_hunks(path, block):
            # A block's hunks are numbered from its own first line. `shift` is the number of lines added before it.
            old, new = hunk["oldStart"] + start - 1, hunk["newStart"] + start - 1 + shift
            hunks.append({**hunk, "oldStart": old, "newStart": new})
        shift += _count_lines(block.replace) - _count_lines(block.search)
        follows = start + max(1, _count_lines(block.search))
    return diff_from_hunks(path, hunks)


def _block_hunks(path: str, block: SearchReplaceBlock) -> Iterable[dict[str, Any]]:
    """Yield the hunks of one block, numbered from its own first line."""
    hunk: dict[str, Any] | None = None
    for line in unified_diff(path, block.search, block.replace).split("\n")[2:-1]:
        if hunk is None or not hunk["left"]:
            if hunk is not None:
                yield hunk
            found = _match_hunk(line)
            numbers = [1 if number is None else int(number) for number in found.groups()] if found else [0, 0, 0, 0]
            names = ("oldStart", "oldLines", "newStart", "newLines")
            hunk = {**dict(zip(names, numbers, strict=True)), "left": numbers[1] + numbers[3], "lines": []}
        else:
            hunk["lines"].append(line)
            hunk["left"] -= 2 if line.startswith(" ") else 1
    if hunk is not None:
        yield hunk


def _count_lines(text: str) -> int:
    return 0 if not text else text.removesuffix("\n").count("\n") + 1


def _join_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
