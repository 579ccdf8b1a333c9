"""A person rules on a dispute, out of band: through `aver.gate.approvals`, over the dispute's digest.

The request shows the claim as it is worded now, and the challenge. Approving lets the claim stand (`dismissed`);
denying upholds the challenge (`upheld`). The operator seals the ruling with the person's signed votes. A claim that
is worded anew is another dispute, so an old answer does not count for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aver.capsule.model import Authority
from aver.capsule.sealed import Sealed
from aver.errors import Refused
from aver.gate.action import Action
from aver.gate.decision import Decision, Thresholds
from aver.keys.statement import Statement
from aver.protocol.events import OPERATOR, Event
from aver.protocol.rules.claims import dispute_action
from aver.protocol.rules.step import EventRefused

if TYPE_CHECKING:
    from aver.gate.approvals import ApprovalRequest
    from aver.protocol.session import ProtocolSession


def resolve_challenge(session: ProtocolSession, challenge_id: str, wait: float) -> Event | None:
    """Ask a person about a dispute, or find the answer, and seal the ruling. None where nobody has answered yet.

    Raises `Refused` with `NO_APPROVERS` where nobody can be asked.
    """
    from aver.gate.approvals import consume, wait_for_answer

    session.catch_up()
    fold = session.fold
    challenge = fold.find(fold.challenges, challenge_id, "challenge")
    if challenge.standing != "open":
        raise EventRefused("STATE_VIOLATION", f"the challenge is {challenge.standing}", place="challenge")
    action = dispute_action(fold, challenge)
    request = _find_request(session, action) or _open_request(session, action)
    answer = wait_for_answer(session.ledger, request, wait)
    record: Sealed | None = None
    if answer.state == "approved":
        record = consume(session.ledger, request, action.digest, by=challenge.id, session=session.trace)
    elif answer.code == "REPLAY":
        # A session used the answer for this very dispute, and was killed before it could seal the ruling.
        record = _find_use(session, request, challenge.id)
    if record is not None:
        return _seal_ruling(session, challenge_id, "dismissed", record, answer.reason)
    if answer.code == "DENIED":
        record = _find_denial(session, request)
        if record is not None:
            return _seal_ruling(session, challenge_id, "upheld", record, answer.reason)
    return None


def resolve_answered(session: ProtocolSession) -> None:
    """Seal the rulings on disputes that people have answered since they were asked. Asks nobody.

    Does nothing where the operator's key is elsewhere.
    """
    from aver.gate.approvals import load_request_state
    from aver.protocol.records.membership import find_operator_signer

    disputed = [each for each in session.fold.challenges.values() if each.standing == "open"]
    if not disputed or find_operator_signer(session) is None:
        return
    for challenge in disputed:
        request = _find_request(session, dispute_action(session.fold, challenge))
        if request is not None and load_request_state(session.ledger, request).state != "pending":
            resolve_challenge(session, challenge.id, 0.0)


def _find_request(session: ProtocolSession, action: Action) -> ApprovalRequest | None:
    """Return the newest request about a dispute that has not expired; None if there is none."""
    from aver.gate.approvals import load_request_states, recent_requests

    same = [request for request in recent_requests(session.ledger) if request.digest == action.digest]
    states = load_request_states(session.ledger, same) if same else []
    good = [request for request, at in zip(same, states, strict=True) if at.state not in ("expired", "closed")]
    return good[-1] if good else None


def _open_request(session: ProtocolSession, action: Action) -> ApprovalRequest:
    from aver import clock
    from aver.gate.approvals import open_request

    asked = Decision(
        decision="human_review",
        digest=action.digest,
        score=None,
        interval=None,
        observations=0,
        policy=None,
        reasons=(action.description,),
        gate_id=clock.new_id(),
        thresholds=Thresholds(),
    )
    return open_request(session.ledger, action, asked, correlation=action.call_id)


def _find_use(session: ProtocolSession, request: ApprovalRequest, challenge: str) -> Sealed | None:
    from aver.gate.approvals.vote import USE_KIND
    from aver.gate.own_records import OwnRecords

    record = OwnRecords(session.ledger).get(f"{USE_KIND}:{request.id}:1")
    if record is None or record.content["outcome"]["result"]["call_id"] != challenge:
        raise Refused("REPLAY", "the answer was used for something else", advice="ask again when it has expired")
    return record


def _find_denial(session: ProtocolSession, request: ApprovalRequest) -> Sealed | None:
    """Return the record of a person's signed denial; None where Aver itself denied, and no person did."""
    from aver.gate.approvals.vote import VOTE_KIND
    from aver.gate.own_records import OwnRecords

    records = OwnRecords(session.ledger)
    found = (records.get(f"{VOTE_KIND}:deny:{request.id}:{approver}") for approver in request.approvers)
    return next((record for record in found if record is not None), None)


def _seal_ruling(session: ProtocolSession, challenge: str, outcome: str, record: Sealed, reason: str) -> Event:
    authority: dict[str, Any] = record.content["authority"]
    # A denial comes last. Approvals before it count for nothing.
    votes = authority["chain"] if outcome == "dismissed" else authority["chain"][-1:]
    return session.seal_event(
        OPERATOR,
        "challenge_resolved",
        {"outcome": outcome, "rationale": reason or outcome},
        refs={"challenge": challenge, "approval": record.id},
        statements=tuple(Statement.from_dict(item) for item in votes),
        authority=Authority(
            type=authority["type"], approver=authority["approver"], escalation_reason=authority["escalation_reason"]
        ),
    )
