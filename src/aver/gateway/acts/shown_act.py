"""The action of a request, as the rules and people see it, with the file that it changes as it is now.

A change is shown as a diff against that state, and the PREVIEW keeps the digest of the state. So the executor can tell
whether the file is still the one that was shown.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aver.errors import Refused
from aver.files.workspace_files import WorkspaceFiles
from aver.gate.action import Action
from aver.gate.effects.large_action import TEXT_MAX, bound_action
from aver.gateway.act_records import ACTION_PREFIX
from aver.gateway.codes import BAD_REQUEST
from aver.gateway.effect_settings import SkillSettings
from aver.gateway.gated_action import CHANGING_INTENTS, build_action, build_change
from aver.gateway.request import BoundRequest

ACTION_ID_BYTES = 12
"""Random bytes of an act's id: 16 characters in base64url."""


class ShownAct(NamedTuple):
    """The action of a request, and the state of the file that it changes: {sha256}, or None where it changes none."""

    action: Action
    base: Mapping[str, Any] | None


def show_act(request: BoundRequest, action_id: str, *, workspace: str, home: Path, skills: SkillSettings) -> ShownAct:
    """Return the action that is judged, and the file that it changes as it is now. Raises `Refused`."""
    base, diff = None, None
    if request.intent_id == "CommitSkillInstall":
        from aver.gateway.skills.admission import admit_package  # Skills are installed seldom.
        from aver.gateway.skills.skill_store import SkillStore

        admit_package(SkillStore(home, skills), request.inputs["skill_digest"], skills.ioc_domains)
    if request.intent_id in CHANGING_INTENTS:
        look = WorkspaceFiles(workspace).look(request.inputs["relpath"])
        base, diff = {"sha256": look.base.sha256}, build_change(request, workspace, look)
    action = build_action(request, action_id=action_id, workspace=workspace, diff=diff)
    # The gate would cut it. Then nobody could hold the decision to the request.
    if bound_action(action) is not action:
        words = f"inputs, or the change that they make, have more than {TEXT_MAX} characters, which nobody can judge"
        raise Refused(BAD_REQUEST, words, advice="split the act")
    return ShownAct(action, base)


def new_action_id() -> str:
    """Return a new id of an act: `a_` and 16 characters."""
    return ACTION_PREFIX + secrets.token_urlsafe(ACTION_ID_BYTES)
