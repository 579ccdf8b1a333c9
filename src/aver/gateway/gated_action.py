"""The action that the gate judges for a request: made here, and nowhere else.

The gateway makes it to gather the facts. A policy server makes it again from the request, and refuses a question about
any other action. So no share can be got for one request by asking about another. `aver.gate.effects.intents` says which
type, tool and files an intent has. `call_id` is the act's id, and `request_sha256` the hash of the request: an approval
of the action is one of this request.
"""

from __future__ import annotations

import os

from aver.diffs import unified_diff
from aver.files.workspace_files import FileLook
from aver.gate.action import Action
from aver.gate.effects.findings import build_path_roots, locate_path
from aver.gate.effects.intents import build_intent_action
from aver.gateway.request import BoundRequest

CHANGING_INTENTS = frozenset({"WriteWorkspaceFile", "DeleteWorkspaceFile"})
"""The intents whose effect depends on the present state of a file."""


def build_action(request: BoundRequest, *, action_id: str, workspace: str, diff: str | None = None) -> Action:
    """Build the action of a request. `diff` is that of a file that is written."""
    return build_intent_action(
        request.intent_id,
        request.inputs,
        request_sha256=request.sha256,
        caller=request.caller,
        session=request.session,
        workspace=workspace,
        on_behalf_of=request.external_principal or "",
        call_id=action_id,
        diff=diff,
    )


def build_change(request: BoundRequest, workspace: str, look: FileLook) -> str | None:
    """Return the diff of a write, empty where nothing changes; None where the file must not be shown or is no text."""
    if request.intent_id != "WriteWorkspaceFile":
        return None
    relpath = request.inputs["relpath"]
    # The text of a guarded file must not get into a record, not even as the lines that a change removes.
    if (
        look.base.sha256 is not None
        and locate_path(os.path.join(workspace, relpath), None, build_path_roots(workspace, {})).classes
    ):
        return None
    try:
        before = None if look.base.sha256 is None else look.data.decode()
    except UnicodeDecodeError:
        return None
    content = request.inputs["content"]
    # A write of the content that is there changes nothing, and the empty diff says so.
    return "" if before == content else unified_diff(relpath, before, content) or None
