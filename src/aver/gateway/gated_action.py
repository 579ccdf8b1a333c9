"""The action that the gate judges for a request: made here, and nowhere else.

The gateway makes it to gather the facts. A policy server makes it again from the request, and refuses a question about
any other action. So no share can be got for one request by asking about another. `aver.gate.effects.intents` says which
type, tool and files an intent has. `call_id` is the act's id, and `request_sha256` the hash of the request: an approval
of the action is one of this request.
"""

from __future__ import annotations

import os
from contextlib import suppress

from aver.diffs import unified_diff
from aver.files.workspace_files import FileLook
from aver.gate.action import Action
from aver.gate.effects.intents import build_intent_action
from aver.gate.effects.paths import build_path_roots, locate_path
from aver.gateway.request import BoundRequest

CHANGING_INTENTS = frozenset({"WriteWorkspaceFile", "DeleteWorkspaceFile"})
"""The intents whose effect depends on the present state of a file."""

SHOWN_REMOVAL_MAX = 256 * 1024
"""Characters of a file whose lines the diff of its removal shows. Nobody reads more, and a larger diff is refused."""


def build_action(request: BoundRequest, *, action_id: str, workspace: str, diff: str | None = None) -> Action:
    """Build the action of a request. `diff` is that of a file that is written or removed."""
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
    """Return the diff of a write or a removal, empty where nothing changes.

    None where a write must not be shown, or is of a file that is no text. None also where there is no file to remove.
    """
    relpath, is_there = request.inputs["relpath"], look.base.sha256 is not None
    text: str | None = None
    # The text of a guarded file must not get into a record, not even as the lines that a change removes.
    place = locate_path(os.path.join(workspace, relpath), None, build_path_roots(workspace, {})) if is_there else None
    if is_there and not (place and place.classes):
        with suppress(UnicodeDecodeError):
            text = look.data.decode()
    if request.intent_id == "DeleteWorkspaceFile":
        return _show_removal(relpath, look, text) if is_there else None
    if is_there and text is None:
        return None
    content = request.inputs["content"]
    # A write of the content that is there changes nothing, and the empty diff says so.
    return "" if text == content else unified_diff(relpath, text, content) or None


def _show_removal(relpath: str, look: FileLook, text: str | None) -> str:
    """Return the removal of a file as a diff, with the lines that go where they can be shown.

    The diff names the digest of the file. So an approval of the removal is one of this content, shown or not.
    """
    head = f"diff --git a/{relpath} b/{relpath}\ndeleted file mode 100644\nindex {look.base.sha256}..{'0' * 64}\n"
    lines = "" if text is None or len(text) > SHOWN_REMOVAL_MAX else unified_diff(relpath, text, None)
    return head + (lines or f"Binary files a/{relpath} and /dev/null differ\n")
