"""The tools `read_file`, `write_file` and `delete_file`: single files of the workspace.

    read_file    {"path": "src/app.py"}                        output `content`
    write_file   {"path": "src/app.py", "content": "..."}      output `result`
    delete_file  {"path": "src/app.py"}                        output `result`

A path is relative to the workspace, and no step of it follows a link (`files.workspace_files`). The gate sees a write
as the change that it makes. Between that look and the write, nobody else may change the file: the write then fails.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from aver.capsule.blobs import TEXT_MEDIA
from aver.capsule.canonical import canonical_bytes
from aver.diffs import unified_diff
from aver.errors import BadInput, Refused
from aver.files.workspace_files import FileBase, FileLook, WorkspaceFiles, digest_file, split_relpath
from aver.gate.effects.paths import build_path_roots, locate_path
from aver.protocol.runner import BYTES, JSON, CallDescription, ToolFailure, ToolResult
from aver.protocol.tools.tool import Tool, ToolOrder, fail_tool, read_arguments


class _ReadFile:
    def describe(self, order: ToolOrder) -> CallDescription:
        return CallDescription(type="file_read", files=(_read_path(order, {}),))

    def find_places(self, order: ToolOrder) -> frozenset[str]:
        return frozenset()

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        path = _read_path(order, {})
        look = WorkspaceFiles(order.workspace).look(path)
        if look.base.sha256 is None:
            return fail_tool("ERROR", f"there is no file {path}")
        cut = ("content",) if len(look.data) > order.limits.output_max else ()
        data = look.data[: order.limits.output_max]
        return ToolResult(0, {"content": (data, _guess_media(data))}, cut)


class _WriteFile:
    """Remembers the state of the file that the gate was last asked about, so that only that change is made."""

    def __init__(self) -> None:
        self._bases: dict[tuple[str, str, str], FileBase] = {}

    def describe(self, order: ToolOrder) -> CallDescription:
        path = _read_path(order, {"content": str})
        look = WorkspaceFiles(order.workspace).look(path)
        content = order.arguments["content"]
        self._bases[order.workspace, path, content] = look.base
        return CallDescription(
            type="code_edit",
            files=(path,),
            arguments={"path": path, "content": content},
            diff=_show_change(order.workspace, path, look, content),
        )

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        path, content = _read_path(order, {"content": str}), order.arguments["content"]
        data = content.encode("utf-8", "surrogatepass")
        base = self._bases.pop((order.workspace, path, content), None)
        if base is None:
            return fail_tool("ERROR", f"nobody asked about this change of {path} first")
        WorkspaceFiles(order.workspace).write(path, data, base)
        return _confirm({"path": path, "size": len(data), "sha256": digest_file(data)})


class _DeleteFile:
    def describe(self, order: ToolOrder) -> CallDescription:
        return CallDescription(type="file_delete", files=(_read_path(order, {}),))

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        path = _read_path(order, {})
        files = WorkspaceFiles(order.workspace)
        look = files.look(path)
        if look.base.sha256 is None:
            return fail_tool("ERROR", f"there is no file {path}")
        files.delete(path, look.base)
        return _confirm({"path": path, "sha256": look.base.sha256})


def file_tools() -> dict[str, Tool]:
    """Return the three tools by their names."""
    return {"read_file": _ReadFile(), "write_file": _WriteFile(), "delete_file": _DeleteFile()}


def _read_path(order: ToolOrder, more: Mapping[str, type]) -> str:
    path: str = read_arguments(order, {"path": str, **more}, {})["path"]
    try:
        split_relpath(path)
    except Refused as error:
        raise BadInput(error.message) from error
    return path


def _show_change(workspace: str, path: str, look: FileLook, content: str) -> str | None:
    """Return the change as a diff; None where the old text must not be shown, is no text, or does not change."""
    # The text of a guarded file must not get into a record, not even as the lines that a change removes.
    if (
        look.base.sha256 is not None
        and locate_path(os.path.join(workspace, path), None, build_path_roots(workspace, {})).classes
    ):
        return None
    try:
        before = None if look.base.sha256 is None else look.data.decode()
    except UnicodeDecodeError:
        return None
    return unified_diff(path, before, content) or None


def _guess_media(data: bytes) -> str:
    try:
        data.decode()
    except UnicodeDecodeError:
        return BYTES
    return TEXT_MEDIA


def _confirm(result: Mapping[str, Any]) -> ToolResult:
    return ToolResult(0, {"result": (canonical_bytes(dict(result)), JSON)})
