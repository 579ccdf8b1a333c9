"""Patches as models of the Codex family write them, and as Codex keeps them, made unified diffs.

    *** Begin Patch
    *** Update File: http.py
    @@ def get():
    -    return go()
    +    return retry(go)
    *** End Patch

Such a patch says what to change and not at which line: its hunks say line 0, and how many lines they hold. A deleted
file's content is not in it. Nothing here raises for what a text says: what is no patch is None.

>>> patch = read_patch("*** Begin Patch\\n*** Add File: a.txt\\n+one\\n*** End Patch")
>>> patch.changes
(('wrote', 'a.txt'),)
>>> print(patch.diff, end="")
--- /dev/null
+++ b/a.txt
@@ -0,0 +1 @@
+one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aver.fast_dataclass import dataclass
from aver.ingest.diffs import unified_diff

__all__ = ["Patch", "patch_from_changes", "read_patch"]

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
    """The text breaks the form."""


def read_patch(text: str) -> Patch | None:
    """The patch in a text, which may be a command that feeds it to `apply_patch`; None where there is none."""
    return next((patch for lines in _find_envelopes(text) if (patch := _parse_patch(lines)) is not None), None)


def patch_from_changes(changes: Any, cwd: str = "") -> Patch | None:
    """Convert the changes that Codex reports, `{path: {type, content | unified_diff, move_path}}`; paths below `cwd`
    become relative to it. Returns None if it reports none."""
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
    """The lines between the marks: to the last end, as a file may hold the mark too; else to the first, as a command
    may hold two patches."""
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
        return _added_file_diff(path, body), [("wrote", path)]
    if kind == _DELETE:
        return _file_header(path, None), [("deleted", path)]
    target = path
    if body and body[0].startswith(_MOVE):
        target = body.pop(0).removeprefix(_MOVE).strip() or path
    return _file_header(path, target) + "".join(_convert_hunks(body)), _path_changes(path, target)


def _added_file_diff(path: str, body: list[str]) -> str:
    if not all(line.startswith("+") for line in body if line):
        raise _PatchFormatError
    return unified_diff(path, None, "".join(f"{line[1:]}\n" for line in body if line)) or _file_header(None, path)


def _convert_hunks(body: list[str]) -> Iterator[str]:
    place, lines = "", list[str]()
    for line in body:
        if line == "@@" or line.startswith("@@ "):
            yield _format_hunk(place, lines)
            place, lines = line[3:].strip(), []
        elif line.startswith((" ", "+", "-")):
            lines.append(line)
        elif not line:
            lines.append(" ")  # Models leave the space of an empty line of context out, and Codex takes that.
        elif line.strip() != _END_OF_FILE:
            raise _PatchFormatError
    yield _format_hunk(place, lines)


def _format_hunk(place: str, lines: list[str]) -> str:
    if not lines:
        return ""
    old = sum(not line.startswith("+") for line in lines)
    new = sum(not line.startswith("-") for line in lines)
    return "\n".join([f"@@ -0,{old} +0,{new} @@ {place}".rstrip(), *lines, ""])


def _convert_change(path: str, change: Mapping[str, Any], cwd: str) -> tuple[str, list[tuple[str, str]]]:
    kind, body = change.get("type"), change
    # Versions of 2025 wrote {"add": {...}}, later ones {"type": "add", ...}.
    for name in ("add", "delete", "update"):
        if isinstance(inner := change.get(name), Mapping):
            kind, body = name, inner
    content = body.get("content")
    content = content if isinstance(content, str) else ""
    if kind == "add":
        return unified_diff(path, None, content) or _file_header(None, path), [("wrote", path)]
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
