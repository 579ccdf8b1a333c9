"""Approvals: asking people about an action, their signed answers, and using an answer once.

`open_request` asks, `approve`, `deny` and `escalate` answer, `wait_for` waits, `consume` uses; `check_approvals` proves
afterwards that each of them was right. Who may answer is on a roster that only those on it can change (`roster`), or in
a file that the agent's user cannot write (`system`).

The names below are loaded when first used: most actions need nobody's approval.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aver.gate.approvals.checking import check_approvals
    from aver.gate.approvals.deciding import approve, consume, deny, escalate, expire, record_decision
    from aver.gate.approvals.display import GLANCE, WHOLE, Shown, describe
    from aver.gate.approvals.enrolment import InForce, enrol, enrolled, in_force, record_rotations, withdraw
    from aver.gate.approvals.history import standing_of, standings_of
    from aver.gate.approvals.opening import find_request, load_request, open_request, recent_requests
    from aver.gate.approvals.person import Person, find_person
    from aver.gate.approvals.request import Request
    from aver.gate.approvals.standing import Standing
    from aver.gate.approvals.waiting import Outcome, wait_for, wait_for_async

_HOMES = {
    "aver.gate.approvals.checking": ("check_approvals",),
    "aver.gate.approvals.deciding": (
        "approve",
        "consume",
        "deny",
        "escalate",
        "expire",
        "record_decision",
    ),
    "aver.gate.approvals.display": (
        "GLANCE",
        "WHOLE",
        "Shown",
        "describe",
    ),
    "aver.gate.approvals.enrolment": (
        "InForce",
        "enrol",
        "enrolled",
        "in_force",
        "record_rotations",
        "withdraw",
    ),
    "aver.gate.approvals.history": (
        "standing_of",
        "standings_of",
    ),
    "aver.gate.approvals.opening": (
        "find_request",
        "load_request",
        "open_request",
        "recent_requests",
    ),
    "aver.gate.approvals.person": (
        "Person",
        "find_person",
    ),
    "aver.gate.approvals.request": ("Request",),
    "aver.gate.approvals.standing": ("Standing",),
    "aver.gate.approvals.waiting": (
        "Outcome",
        "wait_for",
        "wait_for_async",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "GLANCE",
    "WHOLE",
    "InForce",
    "Outcome",
    "Person",
    "Request",
    "Shown",
    "Standing",
    "approve",
    "check_approvals",
    "consume",
    "deny",
    "describe",
    "enrol",
    "enrolled",
    "escalate",
    "expire",
    "find_person",
    "find_request",
    "in_force",
    "load_request",
    "open_request",
    "recent_requests",
    "record_decision",
    "record_rotations",
    "standing_of",
    "standings_of",
    "wait_for",
    "wait_for_async",
    "withdraw",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
