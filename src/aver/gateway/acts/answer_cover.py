"""Covering the secrets in the answer to an act: the agent gets handles in their place (`aver.gateway.handles`)."""

from __future__ import annotations

import os
from typing import Any

from aver.gate.effects.paths import build_path_roots, locate_path
from aver.gateway.handles import DECLASSIFY, HandleStore
from aver.gateway.request import BoundRequest

SHOWN_AS_THEY_ARE = frozenset({DECLASSIFY, "CommitSkillInstall", "FinalizeOutput"})
"""Intents whose answers have no handles: they give out a value or a token on purpose, or what the agent wrote."""

ANSWER_IDS = frozenset({"tx_id", "action_id", "request_sha256", "sha256", "size"})
"""Values of an answer that are no content."""


def cover_answer(
    envelope: dict[str, Any], request: BoundRequest, handles: HandleStore, workspace: str
) -> dict[str, Any]:
    """Return an answer with handles in the place of secrets. The values that were asked for by name stay."""
    data = envelope.get("data")
    if request.intent_id in SHOWN_AS_THEY_ARE or not isinstance(data, dict):
        return envelope
    whose = {"session": request.session, "caller": request.caller, "label": request.intent_id}
    if request.intent_id == "ReadWorkspaceFile" and isinstance(data.get("content"), str):
        path = os.path.join(workspace, request.inputs["relpath"])
        if "secret" in locate_path(path, None, build_path_roots(workspace, {})).classes:
            return {**envelope, "data": _leave_digest_out({**data, "content": handles.hold(data["content"], **whose)})}
    # Ids and digests have no secrets, and must not be taken for one. A summary may repeat the words of a server.
    kept = {name: value for name, value in data.items() if name in ANSWER_IDS}
    rest = {name: value for name, value in data.items() if name not in ANSWER_IDS}
    told = handles.cover({"summary": envelope["summary"], "data": rest}, **whose)
    if told["data"] != rest:
        kept = _leave_digest_out(kept)
    return {**envelope, "summary": told["summary"], "data": {**kept, **told["data"]}}


def _leave_digest_out(data: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the digest of a content that has a secret: by it, one can try short secrets out."""
    return {name: value for name, value in data.items() if name != "sha256"}
