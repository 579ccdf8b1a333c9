"""A role: a view of the trace in, one event out, or nothing.

    def criticise(view):
        for proposal in view.open["reviews"]:
            payload = {"verdict": "approved", "rationale": "it only reads"}
            return Said(event="proposal_reviewed", payload=payload, refs={"proposal": proposal})
        return None

Every way to take part comes down to this function: Python functions, programs (`roles.role_process`), the roles that
Aver has (`roles.built_in`), and participants that speak by themselves, for whom it always returns None.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from aver.protocol.view import Said, View

RoleFunction = Callable[[View], Said | None]


def find_origin(error: BaseException) -> str:
    """Say where a role raised an error: ` (roles.py, line 12)`. It is a line of the role's own file."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # The first one is the caller of the role.
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def stay_silent(_: View) -> None:
    """Say nothing: the role of a participant that speaks by itself."""
    return


def leave_audit_to_session(_: View) -> None:
    """Say nothing: the run itself audits for this auditor, once the final statement is signed."""
    return
