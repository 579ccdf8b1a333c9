"""A person's confirmation of an act: the use of an approval, checked by the executor itself.

A request that needs a person's word is approved with `aver approvals`. The gateway records the use of that approval for
one act. The executor does not believe the gateway: it reads the record of the use, the request and the answers, checks
the people's signatures, and that the use is for this act of this request.
"""

from __future__ import annotations

from typing import NamedTuple

from aver.errors import AverError, Refused
from aver.gate.approvals.request_records import load_request, load_request_state
from aver.gate.approvals.vote import USE_KIND, read_vote
from aver.gate.own_records import OwnRecords
from aver.gateway.codes import REQUIRE_CONFIRM
from aver.gateway.request import BoundRequest
from aver.keys.statement import Statement
from aver.ledger import Ledger


class Confirmation(NamedTuple):
    """The approval of one act: the record of its use, the people, and their signed statements."""

    use_id: str
    approver: str
    statements: tuple[Statement, ...]


def check_confirmation(ledger: Ledger, use_id: str, request: BoundRequest, action_id: str) -> Confirmation:
    """Return the confirmation behind the record of a use. Raises `Refused` with `REQUIRE_CONFIRM` where it is none."""
    try:
        record = ledger.get(use_id)
        if record is None or record.kind != USE_KIND:
            raise _refuse("there is no such use of an approval")
        found = read_vote(OwnRecords(ledger).require(record))
        if found is None or found[1].use is None:
            raise _refuse("the record is no use of an approval")
        about, use = load_request(ledger, found[0]), found[1].use
        state = load_request_state(ledger, about)
        action = about.read_action(ledger.blob)
    except Refused:
        raise
    except AverError as error:
        raise _refuse(error.message) from error
    # The approvals that count now, by valid signatures: a use that nobody approved has none.
    if not state.approvals or use.number > state.uses or use.approvers != state.approvers:
        raise _refuse("nobody has approved it")
    if use.digest != about.digest or not state.covers(request.session) or use.session != request.session:
        raise _refuse("the approval is for another action or session")
    if use.call_id != action_id:
        raise _refuse("the approval was used for another act")
    if action.get("request_sha256") != request.sha256:
        raise _refuse("the approval is for another request")
    statements = tuple(vote.statement for vote in state.approvals if vote.statement is not None)
    return Confirmation(use_id, ", ".join(state.approvers), statements)


def _refuse(words: str) -> Refused:
    return Refused(REQUIRE_CONFIRM, f"a person must approve this act: {words}")
