"""Reads and verifies the votes on requests from their chain, and computes the states of the requests.

One pass serves any number of requests. It starts at the first of them and ends at a head that is read before. A caller
that writes because of the result appends right after that head. If the chain has moved, the append fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from aver import clock
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, NotFound
from aver.gate.approvals.enrolment import load_approval_setup
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.approvals.request_records import valid_approvers
from aver.gate.approvals.state import RequestState, compute_state
from aver.gate.approvals.vote import Vote, read_vote
from aver.gate.verified_records import require_valid_records
from aver.ledger import Head, Ledger

__all__ = ["RequestHistory", "load_request_state", "load_request_states"]


class RequestHistory:
    """All votes on some requests of one chain, up to `head`."""

    def __init__(self, ledger: Ledger, requests: Sequence[ApprovalRequest]) -> None:
        self.head: Head = ledger.head(requests[0].chain)
        self._first = min(request.sequence for request in requests)
        records = _read_records(ledger, self.head, self._first)
        for request in requests:
            _check_position(request, records, self._first)
        require_valid_records(ledger, self.head.chain, self._first, records)
        # For each record, the newest time from there on. Setting the clock back later does not reopen a request.
        times = accumulate((record.signed_at for record in reversed(records)), max)
        self._newest = list(times)[::-1]
        self._votes: dict[str, list[Vote]] = {}
        for about, vote in filter(None, map(_read_vote_strictly, records)):
            self._votes.setdefault(about, []).append(vote)
        self.setup = load_approval_setup(ledger)

    def find_state(self, request: ApprovalRequest, more: Iterable[Vote] = ()) -> RequestState:
        """Return the state of a request now, or after `more` votes."""
        votes = [*self._votes.get(request.id, ()), *more]
        newest = self._newest[request.sequence - self._first]
        return compute_state(request, votes, valid_approvers(request, self.setup), now=clock.now(), newest=newest)


def load_request_state(ledger: Ledger, request: ApprovalRequest) -> RequestState:
    """Load the state of a request."""
    return RequestHistory(ledger, [request]).find_state(request)


def load_request_states(ledger: Ledger, requests: Sequence[ApprovalRequest]) -> list[RequestState]:
    """Load the states of several requests, in their order, with one pass over the chain."""
    if not requests:
        return []
    history = RequestHistory(ledger, requests)
    return [history.find_state(request) for request in requests]


def _read_records(ledger: Ledger, head: Head, first: int) -> list[Sealed]:
    try:
        return list(ledger.read(head.chain, first, head.count))
    except NotFound:
        return []


def _check_position(request: ApprovalRequest, records: Sequence[Sealed], first: int) -> None:
    at = request.sequence - first
    if at >= len(records) or records[at].hash != request.hash:
        words = f"the request {request.id} is no longer where it was opened: {request.chain}, {request.sequence}"
        raise IntegrityError("ROLLBACK", words, evidence=request.hash, advice="run: aver verify")


def _read_vote_strictly(record: Sealed) -> tuple[str, Vote] | None:
    """Read the vote in a record. Raises IntegrityError for an unreadable vote, because it may be a denial."""
    try:
        return read_vote(record)
    except BadInput as error:
        words = f"chain {record.chain}, sequence {record.sequence}: {error.message}"
        raise IntegrityError("EVIDENCE_INVALID", words, evidence=record, advice="run: aver verify") from error
