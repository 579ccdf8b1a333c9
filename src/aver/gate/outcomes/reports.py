"""Reporting that an action which the gate let through has failed.

    record_outcome(ledger, gate_id, "tests_failed")

The outcome is sealed once, as `gate.outcome`, in the chain of the decision. The workspace's risk model learns from it,
with the same features that were scored. Only failures are reported here. That nothing went wrong is learned later from
the repository's history (`risk.learn`), and never from the agent that acted.
"""

from __future__ import annotations

from aver.capsule.aver_block import of_kind
from aver.capsule.model import Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Exists, NotFound, Refused
from aver.gate.decision_record import DECISION_KIND, OUTCOME_KIND, RecordedDecision, decision_chain
from aver.gate.risk.estimate import ActionOutcome as Word
from aver.gate.risk.estimate import learn_outcome
from aver.gate.risk.state import update_state
from aver.ledger import Ledger

FAILURES: tuple[Word, ...] = ("failed", "tests_failed", "reverted", "repaired")


def find_decision(ledger: Ledger, gate_id: str) -> RecordedDecision:
    """Return the decision of an id; its record is verified on the way.

    Raises `NotFound` where there is none, and `BadInput` where its record is not one of a decision.
    """
    record = ledger.get(f"gate:{gate_id}")
    if record is None or record.kind != DECISION_KIND:
        raise NotFound(f"there is no decision {ascii(gate_id)[:80]} in this ledger", advice="aver log gate.SESSION")
    found = RecordedDecision.from_record(record)
    if found.gate_id != gate_id:
        raise BadInput(f"the record of the decision {gate_id} cannot be understood", advice="run: aver verify")
    return found


def record_outcome(ledger: Ledger, gate_id: str, outcome: Word) -> Sealed:
    """Seal that an action failed, and learn from it. A decision has one outcome at most.

    Raises `Refused` where the gate had refused the action, had not scored it, or where its outcome is recorded already.
    """
    if outcome not in FAILURES:
        raise BadInput(f"{outcome!r} is not an outcome that is reported", advice=f"use one of {', '.join(FAILURES)}")
    decided = find_decision(ledger, gate_id)
    action, features = decided.action, decided.result["features"]
    if not decided.allows and decided.decision != "human_review":
        raise Refused("NOT_ALLOWED", f"the gate refused this: {decided.decision}; nothing can have come of it")
    if not features:
        raise Refused("NOT_SCORED", "the decision has no features, so nothing can be learned from its outcome")
    draft = Capsule(
        type="system",
        domain="gate",
        parent_id=decided.record_id,
        trigger=Trigger(
            type="system", source="aver", request=f"outcome of {gate_id}", correlation_id=decided.call_id or None
        ),
        context=Context(agent_id="aver", session_id=action["session"] or None),
        outcome=Outcome(
            status="failure",
            summary=f"{outcome}: {action['type']} {action['tool']}".strip(),
            result={"v": 1, "gate_id": gate_id, "outcome": outcome, "digest": decided.digest, "features": features},
        ),
    )
    try:
        sealed = ledger.append(
            decision_chain(action["session"]),
            of_kind(draft, OUTCOME_KIND, decided.refs),
            key=f"{OUTCOME_KIND}:{gate_id}",
        )
    except Exists as exists:
        raise Refused("ALREADY_KNOWN", f"the outcome of {gate_id} is recorded already") from exists
    # Learn only after sealing: the key of the record makes sure that one outcome is learned once.
    workspace = action["workspace"] or "."
    update_state(workspace, lambda state: learn_outcome(state, features, outcome), ledger.config.home)
    return sealed
