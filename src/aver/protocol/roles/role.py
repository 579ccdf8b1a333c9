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

from collections.abc import Callable

from aver.protocol.view import Said, View

RoleFunction = Callable[[View], Said | None]


def stay_silent(_: View) -> None:
    """Say nothing: the role of a participant that speaks by itself."""
    return


def leave_audit_to_session(_: View) -> None:
    """Say nothing: the run itself audits for this auditor, once the final statement is signed."""
    return
