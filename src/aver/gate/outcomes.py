"""What became of an action that the gate let through, when somebody finds out: it failed.

    record_outcome(ledger, gate_id, "tests_failed")

The outcome is sealed as `gate.outcome` beside the decision, once, and the workspace's risk learns from it: from the
very features that were scored. Only failures are taken here. That nothing went wrong is told by the repository's
history after its time (`risk.learn`), and never by whoever acted.
"""

from __future__ import annotations

from typing import Any

from aver.capsule.aver_block import of_kind
from aver.capsule.model import Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Exists, NotFound, Refused
from aver.gate.decision_record import DECISION_KIND, decision_chain
from aver.gate.risk.estimate import ActionOutcome as Word
from aver.gate.risk.estimate import learn_outcome
from aver.gate.risk.model import RiskState
from aver.gate.risk.state import update_state
from aver.ledger import Ledger

__all__ = ["FAILURES", "OUTCOME_KIND", "find_decision", "record_outcome"]

OUTCOME_KIND = "gate.outcome"
FAILURES: tuple[Word, ...] = ("failed", "tests_failed", "reverted", "repaired")


def find_decision(ledger: Ledger, gate_id: str) -> dict[str, Any]:
    """The result of a decision's record; it is held to its seal on the way."""
    record = ledger.get(f"gate:{gate_id}")
    if record is None or record.kind != DECISION_KIND:
        raise NotFound(f"there is no decision {ascii(gate_id)[:80]} in this ledger", advice="aver log gate.SESSION")
    result = record.to_dict()["outcome"]["result"]
    if not isinstance(result, dict) or result.get("gate_id") != gate_id:
        raise BadInput(f"the record of the decision {gate_id} cannot be understood", advice="run: aver verify")
    return result


def record_outcome(ledger: Ledger, gate_id: str, outcome: Word) -> Sealed:
    """Seal that an action failed, and learn from it. Of one decision there is one outcome."""
    if outcome not in FAILURES:
        raise BadInput(f"{outcome!r} is not an outcome that is reported", advice=f"use one of {', '.join(FAILURES)}")
    result = find_decision(ledger, gate_id)
    action, features = result["action"], result["features"]
    if result["decision"] not in ("pass", "human_approved", "human_review"):
        raise Refused("NOT_ALLOWED", f"the gate refused this: {result['decision']}; nothing can have come of it")
    if not features:
        raise Refused("NOT_SCORED", "the decision has no features, so nothing can be learned from its outcome")
    draft = Capsule(
        type="system",
        domain="gate",
        trigger=Trigger(type="system", source="aver", request=f"outcome of {gate_id}"),
        context=Context(agent_id="aver", session_id=action["session"] or None),
        outcome=Outcome(
            status="failure",
            summary=f"{outcome}: {action['type']} {action['tool']}".strip(),
            result={"v": 1, "gate_id": gate_id, "outcome": outcome, "digest": result["digest"], "features": features},
        ),
    )
    try:
        sealed = ledger.append(
            decision_chain(action["session"]), of_kind(draft, OUTCOME_KIND), key=f"{OUTCOME_KIND}:{gate_id}"
        )
    except Exists as exists:
        raise Refused("ALREADY_KNOWN", f"the outcome of {gate_id} is recorded already") from exists

    def learned(state: RiskState) -> RiskState:
        return learn_outcome(state, features, outcome)

    update_state(action["workspace"] or ".", learned, ledger.config.home)
    return sealed
