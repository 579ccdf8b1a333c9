"""The requests in a ledger: opening one, finding one, and loading the states that their votes lead to.

A request pins its approvers and their keys when it is opened. The process that waits keeps these pins in memory, so
nothing written to disk later makes another key count. Opening the same action again with the same gate id returns the
first request, if it pins what would be pinned now. Aver refuses a different record, which someone may have put there in
advance.

Only requests count that this ledger's own ring has sealed (`aver.gate.own_records`). A new request wants a statement of
version 3. A request of an earlier version of Aver wants version 1, which can be copied, or 2, which does not cover all
that a person is shown. A person may still answer it, and a process that opened it may use the answer. `aver.ask` never
takes it up: it opens a new one. A request that wants an earlier version than one before it is a forgery, and counts for
nothing.

`RequestHistory` reads and verifies the votes on any number of requests in one pass over their chain. The pass starts at
the first request and ends at a head that was read before. A caller that writes because of the result appends right
after that head. If the chain has moved, the append fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate

from aver import clock
from aver.capsule.aver_block import chain_name, of_kind
from aver.capsule.masking.mask import mask
from aver.capsule.model import Authority, Capsule, Context, Outcome, Reasoning, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Exists, IntegrityError, NotFound, Refused
from aver.gate.action import Action, Facts
from aver.gate.action_text import summarise_action
from aver.gate.approvals.enrolment import ApprovalSetup, load_approval_setup, record_rotations
from aver.gate.approvals.request import (
    DOWNGRADED,
    REQUEST_KIND,
    STATEMENT_VERSION,
    ApprovalRequest,
    add_seconds,
    build_request_content,
    read_request,
    session_scope,
)
from aver.gate.approvals.roster import Approver
from aver.gate.approvals.rules import EXPIRES_MAX, ApprovalLevel
from aver.gate.approvals.vote import RequestState, Vote, compute_state, read_vote
from aver.gate.decision import Decision
from aver.gate.facts.approved_code import describe_code
from aver.gate.own_records import OwnRecords
from aver.ledger import Head, Ledger

APPROVALS_DOMAIN = "approvals"

PREFIX_MIN = 4
"""Characters of a request's id that a person must give."""


def approvals_chain(tenant: str) -> str:
    return chain_name(APPROVALS_DOMAIN, tenant)


def open_request(
    ledger: Ledger,
    action: Action,
    decision: Decision,
    *,
    now: Facts | None = None,
    parent: Sealed | None = None,
    correlation: str | None = None,
) -> ApprovalRequest:
    """Open a request about an action. `parent` is the record of the gate's decision, and `now` has its facts.

    Raises Refused with `NO_APPROVERS` if too few approvers are enrolled.
    """
    digest = action.digest
    if decision.digest != digest:
        raise Refused("DIGEST_MISMATCH", "the decision is about another action than the one to be approved")
    # A key that was rotated a moment ago must be the one that is pinned.
    record_rotations(ledger)
    setup = load_approval_setup(ledger)
    levels, approvers = _select_approvers(setup)
    opened = clock.now()
    content, blobs = build_request_content(
        action,
        decision,
        expires=add_seconds(opened, setup.rules.expires),
        levels=levels,
        approvers=approvers,
        anchor=setup.roster.anchor,
    )
    content["reasons"] += [] if now is None else describe_code(now)
    summary = str(mask(summarise_action(action.to_dict())).value)
    draft = Capsule(
        type="auth",
        domain=APPROVALS_DOMAIN,
        parent_id=parent.id if parent else None,
        trigger=Trigger(
            type="agent",
            source=action.caller,
            timestamp=opened,
            request=summary,
            correlation_id=correlation,
            user_id=action.on_behalf_of or None,
        ),
        context=Context(agent_id=action.caller, session_id=action.session or None),
        reasoning=Reasoning(analysis="\n".join(decision.reasons)),
        authority=Authority(type="policy", policy_reference=next(iter(content["rules"]), None)),
        outcome=Outcome(status="pending", result=content, summary=f"asks for approval: {summary}"),
    )
    refs = {"decision": parent.id} if parent else None
    chain = approvals_chain(ledger.tenant)
    # One request for each decision and action. A second attempt finds the first request under this key.
    key = f"{REQUEST_KIND}:{decision.gate_id}:{digest}"
    try:
        record = ledger.append(chain, of_kind(draft, REQUEST_KIND, refs), key=key, blobs=blobs)
    except Exists as exists:
        return _resume_request(ledger, exists.record, action, decision.gate_id, setup)
    request = read_request(record, ledger=ledger.id, tenant=ledger.tenant)
    from aver.gate.approvals.notification import notify  # Not above: it masks, and most requests are read, not opened.

    # Only after the request is in the ledger: the command may look it up at once.
    notify(request, setup.rules.notify, summary)
    return request


def _select_approvers(setup: ApprovalSetup) -> tuple[tuple[ApprovalLevel, ...], dict[str, Approver]]:
    """Return the levels with their enrolled approvers, and the approvers by identity. Raises Refused if too few."""
    levels = _enrolled_levels(setup)
    if not any(len(level.approvers) >= level.quorum for level in levels):
        listed = sum(len(level.approvers) for level in levels)
        few = (
            f"the {listed} enrolled approvers are too few for any level's quorum"
            if listed
            else "no approver is enrolled"
        )
        raise Refused(
            "NO_APPROVERS",
            f"a person must approve this, and {few}",
            advice="enrol an approver: aver keys new person:NAME, then aver approvals enrol person:NAME",
        )
    roster = setup.roster.approvers
    return levels, {name: roster[name] for level in levels for name in level.approvers}


def _enrolled_levels(setup: ApprovalSetup) -> tuple[ApprovalLevel, ...]:
    roster = setup.roster.approvers
    return tuple(
        ApprovalLevel(tuple(name for name in level.approvers or roster if name in roster), level.quorum, level.after)
        for level in setup.rules.levels
    )


def _resume_request(
    ledger: Ledger, record: Sealed, action: Action, gate_id: str, setup: ApprovalSetup
) -> ApprovalRequest:
    """Return the request that is there under this gate id. Raises Refused unless a new one would be the same."""
    request = read_request(OwnRecords(ledger).require(record), ledger=ledger.id, tenant=ledger.tenant)
    if (request.gate_id, request.scope) != (gate_id, session_scope(action.session)):
        raise _changed_error(request)
    _require_same_pins(request, action, setup, ledger.tenant)
    return request


def take_up_request(ledger: Ledger, request: ApprovalRequest, action: Action) -> None:
    """Make sure that an open or approved request serves for this action. Raises Refused unless a new one would pin
    the same approvers. The caller checks that the action is inside the scope of the approval.
    """
    record_rotations(ledger)
    _require_same_pins(request, action, load_approval_setup(ledger), ledger.tenant)


def _require_same_pins(request: ApprovalRequest, action: Action, setup: ApprovalSetup, tenant: str) -> None:
    # A request that was put there in advance might name other approvers, never expire, or want a statement that can be
    # copied from elsewhere.
    levels, approvers = _select_approvers(setup)
    found = (request.chain, request.digest, request.levels, request.statement)
    same = found == (approvals_chain(tenant), action.digest, levels, STATEMENT_VERSION)
    if not same or request.approvers != approvers or request.expires > add_seconds(request.opened, EXPIRES_MAX):
        raise _changed_error(request)


def _changed_error(request: ApprovalRequest) -> Refused:
    return Refused(
        "REQUEST_CHANGED",
        f"the request {request.id} that is there for this action names other approvers, or is not about it",
        advice="ask again under a new gate id",
    )


def valid_approvers(request: ApprovalRequest, setup: ApprovalSetup) -> Mapping[str, Approver]:
    """Return the pinned approvers of a request who are still on the roster with the same key, and their endorsers.

    If a system file sets the levels, the request must have the same levels.
    """
    roster = setup.roster
    if roster.anchor == "system" and request.levels != _enrolled_levels(setup):
        return {}
    return {
        identity: replace(approver, endorsers=now.endorsers)
        for identity, approver in request.approvers.items()
        if (now := roster.approvers.get(identity)) is not None and now.key == approver.key
    }


# --- finding


def load_request(ledger: Ledger, request_id: str) -> ApprovalRequest:
    """Load a request by id, to show it or to vote on it. A process that waits uses `open_request`."""
    record = ledger.get(request_id)
    if record is None or record.chain != approvals_chain(ledger.tenant):
        raise NotFound(f"there is no request {request_id} in this ledger", advice="aver approvals list")
    # A record that was changed on disk must not be shown to anyone.
    request = read_request(OwnRecords(ledger).require(record), ledger=ledger.id, tenant=ledger.tenant)
    earlier = () if request.statement == STATEMENT_VERSION else _read_requests(ledger, stop=request.sequence)
    if any(other.statement > request.statement for other in earlier):
        raise IntegrityError(
            "STATE_VIOLATION",
            f"chain {record.chain}, sequence {record.sequence}: {DOWNGRADED}",
            evidence=record,
            advice="run: aver verify",
        )
    return request


def find_request(ledger: Ledger, beginning: str) -> ApprovalRequest:
    """Find the only recent request whose id begins with this text."""
    if re.fullmatch(r"[0-9a-f-]{4,36}", beginning) is None:
        raise BadInput(
            f"{ascii(beginning)[:80]} is not the id of a request", advice=f"give {PREFIX_MIN} or more of its characters"
        )
    # A whole id needs no search, and may be of an old request.
    if len(beginning) == 36:
        return load_request(ledger, beginning)
    found = {request.id for request in recent_requests(ledger) if request.id.startswith(beginning)}
    if not found:
        raise NotFound(f"no request of the last days begins with {beginning}", advice="aver approvals list --all")
    if len(found) > 1:
        raise BadInput(f"{len(found)} requests begin with {beginning}", advice="be more specific: give more of the id")
    return load_request(ledger, found.pop())


def recent_requests(ledger: Ledger) -> Iterator[ApprovalRequest]:
    """Yield every request that may still be open, oldest first. Skips those that `aver verify` reports as forged."""
    wanted = 0
    # An older request has expired.
    for request in _read_requests(ledger, since=add_seconds(clock.now(), -EXPIRES_MAX)):
        if request.statement < wanted:
            continue
        wanted = request.statement
        yield request


def past_requests(ledger: Ledger, *, before: int | None = None) -> Iterator[ApprovalRequest]:
    """Yield every request before a sequence number, newest first, however old. Skips those that are forged.

    Reads no further than the caller does. A caller who needs only those that may be open takes `recent_requests`.
    """
    chain = approvals_chain(ledger.tenant)
    later: dict[int, int] = {}
    """The sequence number of the first request that wants a later version, by version."""
    for record in ledger.find_newest(chain=chain, kind=REQUEST_KIND, stop=before):
        try:
            request = read_request(record, ledger=ledger.id, tenant=ledger.tenant)
        except (BadInput, IntegrityError):
            continue
        version = request.statement
        if version < STATEMENT_VERSION:
            if version not in later:
                later[version] = next(
                    (one.sequence for one in _read_requests(ledger) if one.statement > version), request.sequence
                )
            if later[version] < request.sequence:
                continue
        yield request


def _read_requests(ledger: Ledger, *, since: str | None = None, stop: int | None = None) -> Iterator[ApprovalRequest]:
    """Yield the readable requests. They are not verified here: `RequestHistory` and `load_request` do that."""
    chain = approvals_chain(ledger.tenant)
    for record in ledger.find(chain=chain, kind=REQUEST_KIND, since=since, stop=stop):
        try:
            yield read_request(record, ledger=ledger.id, tenant=ledger.tenant)
        except (BadInput, IntegrityError):
            continue


class RequestHistory:
    """All votes on some requests of one chain, up to `head`.

    With `until`, the history ends at the first record that was sealed then or later. That serves a reader of requests
    that had ended before, and no caller that writes.
    """

    def __init__(self, ledger: Ledger, requests: Sequence[ApprovalRequest], *, until: str | None = None) -> None:
        # The head is read first. Later records are not part of this history.
        self.head: Head = ledger.head(requests[0].chain)
        self._first = min(request.sequence for request in requests)
        if until is not None:
            self.head = _find_head_at(ledger, self.head, self._first, until)
        records = list(OwnRecords(ledger).read(self.head, self._first))
        for request in requests:
            # A request that is gone, or is another record now, means that the ledger was set back.
            at = request.sequence - self._first
            if at >= len(records) or records[at].hash != request.hash:
                place = f"{request.chain}, {request.sequence}"
                words = f"the request {request.id} is no longer where it was opened: {place}"
                raise IntegrityError("ROLLBACK", words, evidence=request.hash, advice="run: aver verify")
        # For each record, the newest time from there on. Setting the clock back later does not reopen a request.
        times = accumulate((record.signed_at for record in reversed(records)), max)
        self._newest = list(times)[::-1]
        self._votes: dict[str, list[Vote]] = {}
        for record in records:
            try:
                found = read_vote(record)
            except BadInput as error:
                # An unreadable vote may be a denial, so no state can be computed without it.
                words = f"chain {record.chain}, sequence {record.sequence}: {error.message}"
                raise IntegrityError("EVIDENCE_INVALID", words, evidence=record, advice="run: aver verify") from error
            if found is not None:
                about, vote = found
                self._votes.setdefault(about, []).append(vote)
        self.setup = load_approval_setup(ledger)

    def find_state(self, request: ApprovalRequest, more: Iterable[Vote] = ()) -> RequestState:
        """Return the state of a request now, or after `more` votes."""
        votes = [*self._votes.get(request.id, ()), *more]
        newest = self._newest[request.sequence - self._first]
        return compute_state(request, votes, valid_approvers(request, self.setup), now=clock.now(), newest=newest)

    def find_votes(self, request: ApprovalRequest) -> Sequence[Vote]:
        """Return all votes on a request and uses of it, in the order of the chain, whether they count or not."""
        return self._votes.get(request.id, ())


def _find_head_at(ledger: Ledger, head: Head, start: int, time: str) -> Head:
    """The head that a chain had with its first record from a time on; the given one if there is no such record."""
    for record in ledger.find(chain=head.chain, since=time, start=start, stop=head.count, limit=1):
        with suppress(BadInput):  # It cannot be read: who reads on to the given head finds it.
            return replace(head, count=record.sequence + 1, hash=record.hash)
    return head


def load_request_state(ledger: Ledger, request: ApprovalRequest) -> RequestState:
    """Load the state of a request."""
    return RequestHistory(ledger, [request]).find_state(request)


def load_request_states(ledger: Ledger, requests: Sequence[ApprovalRequest]) -> list[RequestState]:
    """Load the states of several requests, in their order, with one pass over the chain."""
    if not requests:
        return []
    history = RequestHistory(ledger, requests)
    return [history.find_state(request) for request in requests]
