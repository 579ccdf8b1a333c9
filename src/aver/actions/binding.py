"""Holding an action of a run to the decision that it was done under.

An action is what was gated if

* its type is that of the gated action;
* its instruction is the gated action's description, where that has one;
* its input is the gated action's arguments, where that has some;
* the change that was made is the gated diff, where both are known;
* the files in its metadata (`files_affected`) are the gated action's, where both are known.

Where none of the last four can be compared, only its type ties the action to what was gated. Then no one can say that
policy was enforced.

The decision's record has the hashes of what was judged, also where secrets were masked or a long text moved into a
blob. A decision is good for one action. The first action that names it is sealed under a key that the ledger gives out
once, whatever the run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aver.actions.action import AgentAction, text_hash
from aver.actions.run_capsules import GateReference
from aver.errors import BadInput
from aver.gate.decision_record import RecordedDecision


def decision_use_key(gate_id: str) -> str:
    """Return the idempotency key of the one action that uses a decision."""
    return f"gate-use:{gate_id}"


def build_gate_reference(decided: RecordedDecision, diff_text: str | None) -> GateReference:
    """Return what an action's capsule says of the decision that it was done under."""
    diff = None if diff_text is None else text_hash(diff_text)
    return GateReference(decided.gate_id, decided.record, decided.digest, decided.decision, diff)


def find_mismatch(action: AgentAction, mark: GateReference, decided: RecordedDecision) -> str | None:
    """Say in what an action differs from the one that was gated; None where nothing tells them apart."""
    gated = decided.action
    if (mark.gate_id, mark.digest) != (decided.gate_id, decided.digest):
        return "the decision it names is about something else"
    if (action.gate_decision, mark.decision) != (decided.decision, decided.decision):
        return f"it says that the gate decided {action.gate_decision}; the gate's record says {decided.decision}"
    if action.gate_score != decided.score:
        return "it says another score than the gate's record"
    if action.action_type != gated.get("type"):
        return f"it is a {action.action_type}; the gated action is a {str(gated.get('type'))[:40]}"
    diff = gated.get("diff_sha256")
    if mark.diff_sha256 is not None and diff is not None and mark.diff_sha256 != diff:
        return "the change that was made is not the one that was gated"
    if decided.instruction_hash not in (None, action.instruction_hash):
        return "its instruction is not the one that was gated"
    if decided.input_hash not in (None, action.input_hash):
        return "its input is not the one that was gated"
    files = _claimed_and_gated_files(action, decided)
    if files is not None and files[0] != files[1]:
        return "the files that it says it affects are not those that were gated"
    return None


def can_compare(action: AgentAction, mark: GateReference, decided: RecordedDecision) -> bool:
    """Whether there is anything by which to tell the action from another of its type."""
    if decided.instruction_hash is not None or decided.input_hash is not None:
        return True
    is_shown = None not in (mark.diff_sha256, decided.action.get("diff_sha256"))
    return is_shown or _claimed_and_gated_files(action, decided) is not None


def _claimed_and_gated_files(action: AgentAction, decided: RecordedDecision) -> tuple[Any, Any] | None:
    """Return the files that an action says it affects, and those that were gated; None where either says nothing."""
    claimed, gated = (action.metadata or {}).get("files_affected"), decided.action.get("files")
    return (claimed, gated) if claimed and gated else None


def apply_decision(
    action: AgentAction, mark: GateReference | None, decided: RecordedDecision | None, *, is_first_use: bool
) -> AgentAction:
    """Return the action with the gate's decision, and with the policy verdict that follows from it.

    Raises `BadInput` where the action names another decision, or claims a verdict that does not follow.
    """
    enforced = False
    if mark is not None and decided is not None:
        if action.gate_decision not in (None, decided.decision) or action.gate_score not in (None, decided.score):
            words = f"the gate decided {decided.decision}, not {action.gate_decision}, or with another score"
            raise BadInput(words, advice="leave gate_decision and gate_score out: Aver takes them from gate_id")
        action = replace(action, gate_decision=decided.decision, gate_score=decided.score)
        is_same = can_compare(action, mark, decided) and find_mismatch(action, mark, decided) is None
        enforced = decided.allows and is_first_use and is_same
    claimed = action.policy_verdict
    if claimed == "FULLY_VERIFIED" or (claimed == "POLICY_ENFORCED" and not enforced):
        raise BadInput(
            f"policy_verdict {claimed} is not borne out for {action.action_id}",
            advice="leave it out: it follows from the gate's decision",
        )
    return replace(action, policy_verdict="POLICY_ENFORCED") if enforced and claimed is None else action
