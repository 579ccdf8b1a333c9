"""What was said about requests, read from their chain and verified on the way, and where that leaves them.

One reading serves any number of requests. It begins at the first of them and ends at a head that is taken first, so
that whoever writes on the strength of it can write right after that head, or not at all.
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
    """All that was said about some requests of one chain, up to `head`."""

    def __init__(self, ledger: Ledger, requests: Sequence[ApprovalRequest]) -> None:
        self.head: Head = ledger.head(requests[0].chain)
        self._first = min(request.sequence for request in requests)
        records = _read_records(ledger, self.head, self._first)
        for request in requests:
            _check_position(request, records, self._first)
        require_valid_records(ledger, self.head.chain, self._first, records)
        # From each record on, the newest time in the chain: a clock that was set back afterwards revives nothing.
        times = accumulate((record.signed_at for record in reversed(records)), max)
        self._newest = list(times)[::-1]
        self._said: dict[str, list[Vote]] = {}
        for about, decided in filter(None, map(_read_vote_strictly, records)):
            self._said.setdefault(about, []).append(decided)
        self.in_force = load_approval_setup(ledger)

    def standing(self, request: ApprovalRequest, more: Iterable[Vote] = ()) -> RequestState:
        """Where a request stands now, or would stand if more were said."""
        said = [*self._said.get(request.id, ()), *more]
        newest = self._newest[request.sequence - self._first]
        return compute_state(request, said, valid_approvers(request, self.in_force), now=clock.now(), newest=newest)


def load_request_state(ledger: Ledger, request: ApprovalRequest) -> RequestState:
    """Where a request stands now."""
    return RequestHistory(ledger, [request]).standing(request)


def load_request_states(ledger: Ledger, requests: Sequence[ApprovalRequest]) -> list[RequestState]:
    """The same for several, in their order, with one reading of the chain."""
    if not requests:
        return []
    history = RequestHistory(ledger, requests)
    return [history.standing(request) for request in requests]


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
    """What a record says. One that cannot be understood may have been a denial, so nothing is decided past it."""
    try:
        return read_vote(record)
    except BadInput as error:
        words = f"chain {record.chain}, sequence {record.sequence}: {error.message}"
        raise IntegrityError("EVIDENCE_INVALID", words, evidence=record, advice="run: aver verify") from error
