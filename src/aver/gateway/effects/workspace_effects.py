"""The effects on files of the workspace: read, write and delete.

Each is carried out in the workspace that the decision was about. A write puts exactly the text that was shown into the
file, or nothing: if the file has changed since the PREVIEW, the effect is refused as `WORKSPACE_CHANGED`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from aver.errors import Refused
from aver.files.workspace_files import FileBase, WorkspaceFiles, digest_file
from aver.gateway.effects.shown_bytes import show_bytes
from aver.gateway.executor.executor import ActEffect, EffectDone, EffectOrder
from aver.gateway.handles import HandleStore


class WorkspaceEffects:
    """The three effects in one workspace."""

    def __init__(self, workspace: str, handles: HandleStore | None = None) -> None:
        """`handles`: those of the gateway, whose values go back into files; None where the gateway runs apart."""
        self._workspace = os.path.realpath(workspace)
        self._handles = handles

    @property
    def by_intent(self) -> dict[str, ActEffect]:
        """The effects by intent, as an executor takes them."""
        return {"ReadWorkspaceFile": self.read, "WriteWorkspaceFile": self.write, "DeleteWorkspaceFile": self.delete}

    def read(self, order: EffectOrder) -> EffectDone:
        """Read a file. A file that is no text comes in base64. The record has its digest, not its content."""
        relpath = order.inputs["relpath"]
        look = self._files(order).look(relpath)
        if look.base.sha256 is None:
            raise Refused("EFFECT_FAILED", f"there is no file {relpath}")
        found: dict[str, Any] = {"relpath": relpath, "size": len(look.data), "sha256": look.base.sha256}
        return EffectDone(f"read {relpath}", {**found, **show_bytes(look.data)}, recorded=found)

    def write(self, order: EffectOrder) -> EffectDone:
        """Write a file, if it is as it was when the change was shown."""
        relpath, shown, request = order.inputs["relpath"], order.inputs["content"], order.request
        content = shown
        if self._handles is not None:
            content = self._handles.restore(shown, session=request.session, caller=request.caller)
        data = content.encode("utf-8", "surrogatepass")
        self._files(order).write(relpath, data, _shown_base(order))
        told = {"relpath": relpath, "size": len(data)}
        recorded = {**told, "sha256": digest_file(data)}
        # The caller gets no digest of a secret that went back: by it, one can try short secrets out.
        return EffectDone(f"wrote {relpath}", recorded if content == shown else told, recorded=recorded)

    def delete(self, order: EffectOrder) -> EffectDone:
        """Delete a file, if it is as it was at the PREVIEW."""
        relpath, base = order.inputs["relpath"], _shown_base(order)
        if base.sha256 is None:
            raise Refused("EFFECT_FAILED", f"there was no file {relpath} to delete")
        self._files(order).delete(relpath, base)
        return EffectDone(f"deleted {relpath}", {"relpath": relpath, "sha256": base.sha256})

    def _files(self, order: EffectOrder) -> WorkspaceFiles:
        if os.path.realpath(order.workspace) != self._workspace:
            raise Refused(
                "WORKSPACE_PATH_BLOCKED",
                "the decision was about another workspace than that of this executor",
                advice="start gateway and executor with the same --workspace",
            )
        return WorkspaceFiles(self._workspace)


def _shown_base(order: EffectOrder) -> FileBase:
    """Return the state of the file at the PREVIEW. The PREVIEW is sealed, so nobody can change it meanwhile."""
    base: Mapping[str, Any] | None = order.preview.base
    if base is None or base.keys() != {"sha256"}:
        raise Refused("WORKSPACE_CHANGED", "the PREVIEW does not say in which state it saw the file")
    return FileBase(base["sha256"])
