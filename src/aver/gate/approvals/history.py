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
from aver.gate.approvals.decided import Decided, read_decided
from aver.gate.approvals.enrolment import in_force
from aver.gate.approvals.opening import counted
from aver.gate.approvals.request import Request
from aver.gate.approvals.standing import Standing, standing
from aver.gate.evidence import judged
from aver.ledger import Head, Ledger

__all__ = ["History", "standing_of", "standings_of"]


class History:
    """All that was said about some requests of one chain, up to `head`."""

    def __init__(self, ledger: Ledger, requests: Sequence[Request]) -> None:
        self.head: Head = ledger.head(requests[0].chain)
        self._first = min(request.sequence for request in requests)
        records = _read(ledger, self.head, self._first)
        for request in requests:
            _hold_to_place(request, records, self._first)
        judged(ledger, self.head.chain, self._first, records)
        # From each record on, the newest time in the chain: a clock that was set back afterwards revives nothing.
        times = accumulate((record.signed_at for record in reversed(records)), max)
        self._newest = list(times)[::-1]
        self._said: dict[str, list[Decided]] = {}
        for about, decided in filter(None, map(_understood, records)):
            self._said.setdefault(about, []).append(decided)
        self.in_force = in_force(ledger)

    def standing(self, request: Request, more: Iterable[Decided] = ()) -> Standing:
        """Where a request stands now, or would stand if more were said."""
        said = [*self._said.get(request.id, ()), *more]
        newest = self._newest[request.sequence - self._first]
        return standing(request, said, counted(request, self.in_force), now=clock.now(), newest=newest)


def standing_of(ledger: Ledger, request: Request) -> Standing:
    """Where a request stands now."""
    return History(ledger, [request]).standing(request)


def standings_of(ledger: Ledger, requests: Sequence[Request]) -> list[Standing]:
    """The same for several, in their order, with one reading of the chain."""
    if not requests:
        return []
    history = History(ledger, requests)
    return [history.standing(request) for request in requests]


def _read(ledger: Ledger, head: Head, first: int) -> list[Sealed]:
    try:
        return list(ledger.read(head.chain, first, head.count))
    except NotFound:
        return []


def _hold_to_place(request: Request, records: Sequence[Sealed], first: int) -> None:
    at = request.sequence - first
    if at >= len(records) or records[at].hash != request.hash:
        words = f"the request {request.id} is no longer where it was opened: {request.chain}, {request.sequence}"
        raise IntegrityError("ROLLBACK", words, evidence=request.hash, advice="run: aver verify")


def _understood(record: Sealed) -> tuple[str, Decided] | None:
    """What a record says. One that cannot be understood may have been a denial, so nothing is decided past it."""
    try:
        return read_decided(record)
    except BadInput as error:
        words = f"chain {record.chain}, sequence {record.sequence}: {error.message}"
        raise IntegrityError("EVIDENCE_INVALID", words, evidence=record, advice="run: aver verify") from error
