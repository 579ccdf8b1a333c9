"""Approvals: asking people about an action, recording their signed answers, and using an answer.

    open_request               asks people about an action
    approve, deny, escalate    record a person's answer
    wait_for_answer            waits for it
    consume                    uses an approval, as often as people allowed
    record_signed_vote         records an answer that was signed elsewhere, such as by a passkey on a page
    enrol_passkey              puts a passkey on the roster that an approver endorsed
    check_approvals            verifies all of these records afterwards

Approvers are on a roster that only people on it can change (`roster`), or in a file that the agent's user cannot write
(`rules.read_system_file`).

Python loads the names below at their first use, because most actions need no approval.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aver.gate.approvals.cast_vote import (
        approve,
        consume,
        deny,
        escalate,
        expire,
        record_signed_vote,
        record_vote,
    )
    from aver.gate.approvals.display import GLANCE_LINES, WHOLE_LINES, RequestDisplay, render_request
    from aver.gate.approvals.enrolment import (
        ApprovalSetup,
        enrol_approver,
        load_approval_setup,
        load_roster,
        record_rotations,
        withdraw_approver,
    )
    from aver.gate.approvals.passkey_enrolment import (
        endorse_passkey,
        enrol_passkey,
        read_enrolment_code,
        read_passkey,
    )
    from aver.gate.approvals.request import ApprovalRequest
    from aver.gate.approvals.request_records import (
        find_request,
        load_request,
        load_request_state,
        load_request_states,
        open_request,
        recent_requests,
        take_up_request,
    )
    from aver.gate.approvals.roster import Person, find_person
    from aver.gate.approvals.verify import check_approvals
    from aver.gate.approvals.vote import RequestState
    from aver.gate.approvals.wait import WaitOutcome, wait_for_answer, wait_for_answer_async

_NAMES_BY_MODULE = {
    "verify": "check_approvals",
    "cast_vote": "approve consume deny escalate expire record_signed_vote record_vote",
    "display": "GLANCE_LINES WHOLE_LINES RequestDisplay render_request",
    "enrolment": "ApprovalSetup enrol_approver load_roster load_approval_setup record_rotations withdraw_approver",
    "passkey_enrolment": "endorse_passkey enrol_passkey read_enrolment_code read_passkey",
    "request_records": """
        load_request_state load_request_states find_request load_request open_request recent_requests
        take_up_request
    """,
    "roster": "Person find_person",
    "request": "ApprovalRequest",
    "vote": "RequestState",
    "wait": "WaitOutcome wait_for_answer wait_for_answer_async",
}
_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}

__all__ = [
    "GLANCE_LINES",
    "WHOLE_LINES",
    "ApprovalRequest",
    "ApprovalSetup",
    "Person",
    "RequestDisplay",
    "RequestState",
    "WaitOutcome",
    "approve",
    "check_approvals",
    "consume",
    "deny",
    "endorse_passkey",
    "enrol_approver",
    "enrol_passkey",
    "escalate",
    "expire",
    "find_person",
    "find_request",
    "load_approval_setup",
    "load_request",
    "load_request_state",
    "load_request_states",
    "load_roster",
    "open_request",
    "read_enrolment_code",
    "read_passkey",
    "recent_requests",
    "record_rotations",
    "record_signed_vote",
    "record_vote",
    "render_request",
    "take_up_request",
    "wait_for_answer",
    "wait_for_answer_async",
    "withdraw_approver",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Kept as an attribute, so that Python asks only once.
    value = getattr(import_module(f"{__name__}.{_MODULE_BY_NAME[name]}"), name)
    globals()[name] = value
    return value
