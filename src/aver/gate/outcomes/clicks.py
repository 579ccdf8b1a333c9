"""A call that Aver asked about, and that was made after the client had asked its own person.

Where no approver is enrolled, Aver's `ask` becomes a question that the client shows to the person in front of it. That
person's click is no signed approval. It still means that somebody looked. So Aver seals it as `gate.outcome` in the
chain of the decision, with `outcome.result`:

    {v: 1, gate_id, outcome: "client: asked, then done", digest, session}

`session` is the session's state after it (`session_state.state_after_click`): the counting of changes begins anew, and
the files that the person was asked about are seen. An open request for approval of the same call is closed.

Only the agent's own module can say that the client asked a person (`hooks.contract.ParsedPayload.asked_person`). In
modes in which a client answers by itself, nobody has looked, and nothing is sealed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from aver import log
from aver.capsule.aver_block import of_kind
from aver.capsule.canonical import ascii_json
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError, Exists, HeadMoved
from aver.gate.call_decisions import ASKED_AND_DONE, DoneAction, bind, find_decisions
from aver.gate.decision_record import OUTCOME_KIND, RecordedDecision, decision_chain
from aver.gate.facts.session import read_session_state
from aver.gate.facts.session_state import state_after_click
from aver.ledger import Ledger

ATTEMPTS_MAX = 100
"""How often the state is read anew because another decision of the session was sealed first."""


def record_click(ledger: Ledger, call_id: str, arguments: Mapping[str, Any]) -> Sealed | None:
    """Seal that the person at the client let a call through which Aver had asked about.

    Returns None where Aver had not asked about it, where it was asked in vain, or where the click is sealed already.
    Raises `IntegrityError` where the session's past is damaged.
    """
    decided = _find_asked(ledger, call_id, arguments)
    if decided is None:
        return None
    chain = decision_chain(str(decided.action.get("session") or ""))
    for _ in range(ATTEMPTS_MAX):
        head = ledger.head(chain)
        state = state_after_click(read_session_state(ledger, head), decided.result)
        try:
            record = ledger.append(
                chain,
                build_outcome_draft(decided, ASKED_AND_DONE, state),
                key=f"{OUTCOME_KIND}:click:{decided.gate_id}",
                after=head,
            )
        except HeadMoved:
            continue
        except Exists:
            return None
        _close_request(ledger, decided)
        return record
    return None


def _find_asked(ledger: Ledger, call_id: str, arguments: Mapping[str, Any]) -> RecordedDecision | None:
    """Return the decision by which the hook answered `ask` about a call; None where the newest one is another."""
    found = find_decisions(ledger, call_id)
    decided = found[0] if found else None
    if len(found) > 1:
        # Some clients use an id again. The arguments tell the calls apart; where they do not, no click is counted.
        digest = hashlib.sha256(ascii_json(dict(arguments))).hexdigest() if arguments else None
        decided = bind(DoneAction(call_id=call_id, is_like=lambda decision: decision.has_input(digest)), found)
    # A call that Aver only observes is not held back, so nobody was asked.
    if decided is None or decided.decision != "human_review" or decided.result.get("mode", "enforce") != "enforce":
        return None
    return decided if decided.action.get("session") else None


def build_outcome_draft(decided: RecordedDecision, outcome: str, state: Mapping[str, Any]) -> Capsule:
    """Build the record of the end of a call that was asked about, with the session's state after it."""
    action = decided.action
    draft = Capsule(
        type="system",
        domain="gate",
        parent_id=decided.record_id,
        trigger=Trigger(
            type="system",
            source="aver",
            request=f"outcome of {decided.gate_id}",
            correlation_id=decided.call_id or None,
        ),
        context=Context(agent_id="aver", session_id=action["session"]),
        authority=Authority(type="policy", policy_reference=outcome),
        outcome=Outcome(
            status="success" if outcome == ASKED_AND_DONE else "blocked",
            summary=f"{outcome}: {action.get('type')} {action.get('tool')}".strip(),
            result={
                "v": 1,
                "gate_id": decided.gate_id,
                "outcome": outcome,
                "digest": decided.digest,
                "session": dict(state),
            },
        ),
    )
    return of_kind(draft, OUTCOME_KIND, decided.refs)


def _close_request(ledger: Ledger, decided: RecordedDecision) -> None:
    """Close the open request about the call. The click is sealed already, so a failure is only logged."""
    from aver.gate.approvals import recent_requests
    from aver.gate.approvals.cast_vote import close

    try:
        for request in list(recent_requests(ledger)):
            if request.digest == decided.digest and request.call_id in ("", decided.call_id):
                close(ledger, request, by=decided.call_id)
    except AverError as error:
        log.debug("gate", "the request about %s stays open: %s", decided.call_id, error)
