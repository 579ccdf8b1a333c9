"""What Cursor's tools did to files: the unified diff of a call, from whatever its version of Cursor keeps.

In this order: a patch as models of the Codex family write it; a diff that stands in the result or the arguments, whole
or in chunks; the file before and after, which newer versions keep under names of their own; old and new strings; the
contents of a file that was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aver.ingest.diffs import diff_from_hunks, unified_diff
from aver.ingest.patches import Patch, read_patch

__all__ = ["CONTENT_PREFIX", "EDIT_TOOLS", "PATH_KEYS", "build_diff", "find_content_keys", "find_patch", "find_path"]

CONTENT_PREFIX = "composer.content."
"""How the keys begin under which newer versions keep files before and after an edit."""

EDIT_TOOLS = frozenset(
    {
        *("edit_file", "edit_file_v2", "edit", "search_replace", "strreplace", "multiedit", "multi_edit", "reapply"),
        *("write", "write_file", "create_file", "apply_patch", "edit_notebook", "notebook_edit"),
    }
)
PATH_KEYS = (
    *("relativeWorkspacePath", "relative_workspace_path", "target_file", "targetFile", "file_path", "filePath", "path"),
    *("target_notebook", "fileName", "uri", "targetDirectory", "target_directory"),
)
_DIFF_KEYS = ("diff", "patch", "unifiedDiff", "diffString")
_OLD_TEXT_KEYS = ("old_string", "oldString", "old_str", "oldText")
_NEW_TEXT_KEYS = ("new_string", "newString", "new_str", "newText")
_WHOLE_FILE_KEYS = ("contents", "content", "file_text", "streamingContent", "code_edit")
_CREATE_TOOLS = ("create_file",)


def find_path(*where: Any) -> str:
    """The path that a call names; empty where it names none."""
    for values in where:
        for name in PATH_KEYS:
            value = values.get(name) if isinstance(values, Mapping) else None
            if isinstance(value, Mapping):
                value = value.get("fsPath") or value.get("path")
            if isinstance(value, str) and value:
                return value.removeprefix("file://")
    return ""


def find_content_keys(result: Any) -> dict[str, str]:
    """Under which keys the file before and after an edit is kept."""
    if not isinstance(result, Mapping):
        return {}
    named = {"before": result.get("beforeContentId"), "after": result.get("afterContentId")}
    return {when: key for when, key in named.items() if isinstance(key, str) and key.startswith(CONTENT_PREFIX)}


def build_diff(
    name: str, arguments: Mapping[str, Any], result: Any, contents: Mapping[str, str], path: str
) -> str | None:
    """The diff of a call; None where nothing tells what changed. `contents` are the files before and after, as far as
    they are known, by key."""
    ids = find_content_keys(result)
    after = contents.get(ids.get("after", ""))
    if patch := find_patch(arguments):
        return patch.diff
    if told := next(_find_diffs(path, result, arguments), None):
        return told
    if after is not None and ("before" not in ids or ids["before"] in contents):
        return unified_diff(path, contents.get(ids.get("before", "")), after)
    if pairs := list(_list_replacements(arguments)):
        return "".join(unified_diff(path, old, new) for old, new in pairs)
    for key in _WHOLE_FILE_KEYS:
        if isinstance(text := arguments.get(key), str) and text:
            return unified_diff(path, None if name.lower() in _CREATE_TOOLS else "", text)
    return None


def find_patch(arguments: Mapping[str, Any]) -> Patch | None:
    """The patch that a call was given; None where it was given none."""
    texts = (arguments.get(name) for name in ("patch", "input", "raw", "diff"))
    return next((patch for text in texts if isinstance(text, str) and (patch := read_patch(text))), None)


def _find_diffs(path: str, *where: Any) -> Iterator[str]:
    for values in where:
        for name in _DIFF_KEYS:
            told = values.get(name) if isinstance(values, Mapping) else None
            chunks = told.get("chunks") if isinstance(told, Mapping) else None
            if isinstance(chunks, list):
                diff = diff_from_hunks(path, filter(None, map(_hunk_from_chunk, chunks)))
            elif isinstance(told, str):
                diff = _complete_diff(path, told)
            else:
                continue
            if diff:
                yield diff


def _complete_diff(path: str, text: str) -> str:
    """A diff with the names of files and the headers of hunks, whatever the tool left out."""
    if "@@ -" in text:
        named = text if text.startswith(("--- ", "diff ", "Index: ")) else f"--- a/{path}\n+++ b/{path}\n{text}"
        return named if named.endswith("\n") else f"{named}\n"
    hunk = _hunk_from_chunk({"diffString": text})
    return diff_from_hunks(path, [hunk]) if hunk else ""


def _hunk_from_chunk(chunk: Any) -> dict[str, Any] | None:
    """A chunk as a hunk. How many lines it has is counted: what tools say of that does not always fit."""
    text = chunk.get("diffString") if isinstance(chunk, Mapping) else None
    if not isinstance(text, str):
        return None
    lines = [line for line in text.removesuffix("\n").split("\n") if not line.startswith(("--- ", "+++ ", "@@"))]
    lines = [line if line.startswith(("+", "-", " ", "\\")) else f" {line}" for line in lines]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    if not added and not removed:
        return None
    same = sum(line.startswith(" ") for line in lines)
    return {
        "oldStart": _line_number(chunk.get("oldStart")),
        "oldLines": removed + same,
        "newStart": _line_number(chunk.get("newStart")),
        "newLines": added + same,
        "lines": lines,
    }


def _line_number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else 1


def _list_replacements(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if isinstance(edit, Mapping):
            old = next((value for name in _OLD_TEXT_KEYS if isinstance(value := edit.get(name), str)), None)
            new = next((value for name in _NEW_TEXT_KEYS if isinstance(value := edit.get(name), str)), None)
            if old is not None and new is not None:
                yield old, new
