"""Approvals: asking people about an action, their signed answers, and using an answer once.

`open_request` asks, `approve`, `deny` and `escalate` answer, `wait_for` waits, `consume` uses; `check_approvals` proves
afterwards that each of them was right. Who may answer is on a roster that only those on it can change (`roster`), or in
a file that the agent's user cannot write (`system`).
"""

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
