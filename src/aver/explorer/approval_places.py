"""Requests for approval, as the API gives them: where they are, and where the words about them are.

The page reads the records at these places and verifies them itself. The state is the server's own reading of the same
records; the page computes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, get_args

from aver import clock
from aver.gate.approvals import ApprovalRequest, RequestState, enrol_passkey, recent_requests, record_signed_vote
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request import add_seconds
from aver.gate.approvals.request_records import RequestHistory, approvals_chain, past_requests
from aver.gate.approvals.vote import StateWord, Vote
from aver.keys import Statement
from aver.ledger import Ledger

STATES: tuple[str, ...] = get_args(StateWord)

WAITING_MAX = 100
"""Requests that wait, of which the live stream lists the ids."""

LATE_SECONDS = 86_400
"""How long after the end of requests words about them are looked for. Aver takes no answer after the end, and no use;
it may note later that nobody answered, which changes no state."""

LOOKED_AT_MAX = 500
"""Requests whose states are computed for one answer. A state that few have would otherwise hold a thread for long."""


def approval_chains(tenant: str) -> tuple[str, str]:
    """The chains on which the state of requests depends."""
    return approvals_chain(tenant), approvers_chain(tenant)


def list_waiting(ledger: Ledger) -> list[ApprovalRequest]:
    """The requests that nobody has decided yet, newest first. Raises `IntegrityError` if they cannot be believed."""
    requests = list(recent_requests(ledger))
    if not requests:
        return []
    history = RequestHistory(ledger, requests)
    return [request for request in reversed(requests) if history.find_state(request).state == "pending"][:WAITING_MAX]


def list_places(
    ledger: Ledger, state: str | None, before: int | None, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """The requests in a state, newest first, from before a sequence number on, and before which one to go on.

    The number is None at the end. It may come with fewer requests than `limit`, or none: an answer looks at most at
    `LOOKED_AT_MAX`. Raises `IntegrityError` if these, or the records after them, cannot be believed.
    """
    most = min(limit, LOOKED_AT_MAX) if state is None else LOOKED_AT_MAX
    requests = list(islice(_select_requests(ledger, state, before), most + 1))
    if not requests:
        return [], None
    has_more = len(requests) > most
    # Words about requests that ended long ago stand near them. So an answer costs as much wherever they are.
    ended = add_seconds(max(request.expires for request in requests[:most]), LATE_SECONDS)
    history = RequestHistory(ledger, requests[:most], until=ended if ended < clock.now() else None)
    found: list[dict[str, Any]] = []
    for request in requests[:most]:
        current = history.find_state(request)
        if state is not None and current.state != state:
            continue
        if len(found) == limit:
            return found, found[-1]["sequence"]
        found.append(_describe_request(request, current, history.find_votes(request)))
    return found, requests[most - 1].sequence if has_more else None


def _select_requests(ledger: Ledger, state: str | None, before: int | None) -> Iterator[ApprovalRequest]:
    """The requests before a sequence number that may have a state, newest first."""
    if state != "pending":
        return past_requests(ledger, before=before)
    # A request that is older than these has expired.
    recent = reversed(list(recent_requests(ledger)))
    return (request for request in recent if before is None or request.sequence < before)


def _describe_request(request: ApprovalRequest, state: RequestState, votes: Sequence[Vote]) -> dict[str, Any]:
    return {
        "id": request.id,
        "chain": request.chain,
        "sequence": request.sequence,
        "state": state.state,
        "reason": state.reason,
        "level": state.level,
        "opened": request.opened,
        "expires": request.expires,
        "digest": request.digest,
        "words": [
            {"chain": request.chain, "sequence": vote.sequence, "word": vote.word, "approver": vote.approver}
            for vote in votes
        ],
    }


def answer_request(ledger: Ledger, request_id: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Record a person's signed answer. Raises `Refused`, with its code, if it does not count."""
    statement = Statement.from_dict(answer["statement"], "statement")
    state = record_signed_vote(ledger, request_id, statement, shown=answer["shown"], comment=answer["comment"])
    return {
        "id": request_id,
        "state": state.state,
        "reason": state.reason,
        "level": state.level,
        "approvers": list(state.approvers),
    }


def enrol_from_page(ledger: Ledger, enrolment: dict[str, Any]) -> dict[str, Any]:
    """Put a passkey on the roster that an approver has endorsed. Raises `Refused`, with its code, if none has."""
    statement = Statement.from_dict(enrolment["statement"], "statement")
    record = enrol_passkey(ledger, statement)
    return {"identity": statement.content["identity"], "chain": record.chain, "sequence": record.sequence}
