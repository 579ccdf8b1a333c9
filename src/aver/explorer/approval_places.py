"""Requests for approval, as the API gives them: where they are, and where the words about them are.

The page reads the records at these places and verifies them itself. The state is the server's own reading of the same
records; the page computes it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from aver.gate.approvals import ApprovalRequest, RequestState, enrol_passkey, recent_requests, record_signed_vote
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request_records import RequestHistory, approvals_chain
from aver.gate.approvals.vote import StateWord, Vote
from aver.keys import Statement
from aver.ledger import Ledger

STATES: tuple[str, ...] = get_args(StateWord)

WAITING_MAX = 100
"""Requests that wait, of which the live stream lists the ids."""


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


def list_places(ledger: Ledger, state: str | None, before: int | None, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """The recent requests in a state, newest first, from before a sequence number on, and whether there are more."""
    requests = list(recent_requests(ledger))
    if not requests:
        return [], False
    history = RequestHistory(ledger, requests)
    found: list[dict[str, Any]] = []
    for request in reversed(requests):
        if before is not None and request.sequence >= before:
            continue
        current = history.find_state(request)
        if state is not None and current.state != state:
            continue
        if len(found) == limit:
            return found, True
        found.append(_describe_request(request, current, history.find_votes(request)))
    return found, False


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
