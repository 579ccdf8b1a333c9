"""Which decision a call was made under.

A call's id leads to its decisions by key (`gate_id_for`), without reading a chain. `find_decisions` reads them, `bind`
says which of them an action was done under, and `authorize_call` is the `authority` of the call's own record.

This module imports little, because the hook after a call needs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from aver.capsule.model import Authority
from aver.capsule.sealed import Sealed
from aver.fast_dataclass import NamedTuple
from aver.gate.decision_record import REFUSING_DECISIONS, RecordedDecision, decision_key

if TYPE_CHECKING:
    from aver.ledger import Ledger

CANDIDATES_MAX = 8
"""Newest decisions about one call id that `find_decisions` reads. Some clients use an id again."""


def gate_id_for(call_id: str, number: int) -> str:
    """Return the id of the decision with this number, from 0 on, about a call: a UUID made from both.

    The ledger stores a decision under the key `gate:<gate_id>`. So a call's id leads to its decisions by key, without
    reading a chain.
    """
    raw = bytearray(hashlib.sha256(f"aver gate\n{number}\n{call_id}".encode()).digest()[:16])
    raw[6] = raw[6] & 0x0F | 0x80  # Version 8: a UUID of one's own making.
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def next_gate_id(ledger: Ledger, call_id: str) -> str:
    """Return the first id for a decision about a call that is not taken."""
    return gate_id_for(call_id, _count_decisions(ledger, call_id))


def _count_decisions(ledger: Ledger, call_id: str) -> int:
    """Count the decisions about a call: numbers are taken without a gap, so doubling and halving finds the end."""
    # A client may ask about one call thousands of times. Reading every decision would take longer each time.
    low, high = -1, None  # `low` is taken, `high` is free, as soon as one is known.
    while high is None or high - low > 1:
        number = max(2 * low, low + 1) if high is None else (low + high) // 2
        if ledger.get(decision_key(gate_id_for(call_id, number))) is not None:
            low = number
        else:
            high = number
    return high


def find_decisions(ledger: Ledger, call_id: str) -> list[RecordedDecision]:
    """Return the newest decisions about a call, newest first, that this ledger's own ring has sealed.

    There is usually one. There are more where a person was waited for, where a hook ran twice, or where the client
    uses an id again. Raises `IntegrityError` where a record is damaged, or was sealed by another key.
    """
    records = find_decision_records(ledger, call_id)
    if not records:
        return []
    from aver.gate.own_records import OwnRecords  # Not above: a call without a decision needs none.

    own = OwnRecords(ledger)
    return [RecordedDecision.from_record(own.require(record)) for record in records]


def find_decision_records(ledger: Ledger, call_id: str) -> list[Sealed]:
    """Return the records of the newest decisions about a call, newest first, whoever sealed them: to show them."""
    count = _count_decisions(ledger, call_id) if call_id else 0
    records = (
        ledger.get(decision_key(gate_id_for(call_id, number)))
        for number in range(count - 1, max(count - CANDIDATES_MAX, 0) - 1, -1)
    )
    return [record for record in records if record is not None]


class DoneAction(NamedTuple):
    """The known facts about an action that was done. They serve to find its decision."""

    gate_id: str = ""
    """The decision that it names."""
    call_id: str = ""
    """The call that it is."""
    is_like: Callable[[RecordedDecision], bool] = lambda decision: True
    """Whether a decision can be about it, by what both say."""


def bind(action: DoneAction, decisions: Iterable[RecordedDecision]) -> RecordedDecision | None:
    """Return the decision that an action was done under; None where that cannot be told.

    1. An action that names a decision has that one, or none.
    2. An action whose call was decided about has the first of those decisions that it is like.
    3. Any other has the first decision without a call's id of its own that it is like.
    """
    known = list(decisions)
    # Rules 1 and 2 select candidates by id. An id alone is not enough: clients use ids again for other calls.
    if action.gate_id:
        known = [decision for decision in known if decision.gate_id == action.gate_id]
    elif action.call_id and (same_call := [decision for decision in known if decision.call_id == action.call_id]):
        known = same_call
    return next((decision for decision in known if action.is_like(decision)), None)


ASKED_AND_DONE = "client: asked, then done"
ASKED_AND_REFUSED = "client: asked, then refused"
SHOWED_SECRET = "the result showed a secret"  # noqa: S105 - words about one
STATE_OUTCOMES = (ASKED_AND_DONE, ASKED_AND_REFUSED, SHOWED_SECRET)
"""The words of `gate.outcome` records that have the session's state after them."""
OBSERVED_AND_DONE = "observed, not held back"


def authorize_call(decision: RecordedDecision, *, refused: bool = False, approved: bool = False) -> Authority:
    """Return the `authority` of a call's record, by the decision about the call.

    `refused`: the client reports that the call was not made. `approved`: the client itself reports that a person
    allowed it. Only then is a call that Aver left to the client's person `human_approved`.
    """
    if decision.is_observed and not decision.allows and not refused:
        # Nobody was asked, and no rule passed it.
        rules = " ".join(decision.rules)
        return Authority(type="policy", policy_reference=f"{OBSERVED_AND_DONE}: {rules}".strip(" :"))
    if decision.decision == "human_review":
        if refused:  # Also without a person at the client: it then refuses by itself.
            return Authority(type="policy", policy_reference=ASKED_AND_REFUSED)
        if approved:
            return Authority(type="human_approved", policy_reference="client")
        return Authority(type="policy", policy_reference=ASKED_AND_DONE)
    # The client did it all the same: it must not look as if a rule passed it.
    if decision.decision in REFUSING_DECISIONS and not refused:
        rules = " ".join(decision.rules)
        return Authority(type="policy", policy_reference=f"refused, then done: {rules}".strip(" :"))
    return Authority.from_dict(decision.authority)
