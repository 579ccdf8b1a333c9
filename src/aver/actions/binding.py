"""Holding an action of a run to the decision that it was done under.

An action is what was gated if

* its type is that of the gated action;
* its instruction is the gated action's description, where that has one;
* its input is the gated action's arguments, where that has some;
* the change that was made is the gated diff, where both are known. What a person was asked about without a diff is no
  approval of one;
* the files in its metadata (`files_affected`) are the gated action's, where both are known.

Where none of the last four can be compared, only its type ties the action to what was gated. Then no one can say that
policy was enforced.

The decision's record has the hashes of what was judged, also where secrets were masked or a long text moved into a
blob. A decision in the mode `observe` enforces nothing, even one that passes. A decision is good for one action. The
first action that names it is sealed under a key that the ledger gives out once, whatever the run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from aver.actions.action import AgentAction
from aver.actions.run_capsules import GateReference
from aver.errors import BadInput
from aver.gate.decision_record import RecordedDecision

_OF_PEOPLE = ("human_review", "human_approved")


def decision_use_key(gate_id: str) -> str:
    """Return the idempotency key of the one action that uses a decision."""
    return f"gate-use:{gate_id}"


class Comparison(NamedTuple):
    """How an action compares with the gated one."""

    mismatch: str | None
    """In what they differ; None where nothing tells them apart."""
    is_conclusive: bool
    """Whether there is anything by which to tell the action from another of its type."""


def compare_with_decision(action: AgentAction, mark: GateReference, decided: RecordedDecision) -> Comparison:
    """Compare an action with the one that was gated, by the rules in the module docstring."""
    gated = decided.action
    diffs = mark.diff_sha256, gated.get("diff_sha256")
    files = (action.metadata or {}).get("files_affected"), gated.get("files")
    are_diffs_known, are_files_known = None not in diffs, all(files)
    has_hash = decided.instruction_hash is not None or decided.input_hash is not None
    mismatch = None
    if (mark.gate_id, mark.digest) != (decided.gate_id, decided.digest):
        mismatch = "the decision it names is about something else"
    elif (action.gate_decision, mark.decision) != (decided.decision, decided.decision):
        mismatch = f"it says that the gate decided {action.gate_decision}; the gate's record says {decided.decision}"
    elif action.gate_score != decided.score:
        mismatch = "it says another score than the gate's record"
    elif action.action_type != gated.get("type"):
        mismatch = f"it is a {action.action_type}; the gated action is a {str(gated.get('type'))[:40]}"
    elif decided.decision in _OF_PEOPLE and diffs[0] is not None and diffs[1] is None:
        mismatch = "a change was made, and the person was shown none"
    elif are_diffs_known and diffs[0] != diffs[1]:
        mismatch = "the change that was made is not the one that was gated"
    elif decided.instruction_hash not in (None, action.instruction_hash):
        mismatch = "its instruction is not the one that was gated"
    elif decided.input_hash not in (None, action.input_hash):
        mismatch = "its input is not the one that was gated"
    elif are_files_known and files[0] != files[1]:
        mismatch = "the files that it says it affects are not those that were gated"
    return Comparison(mismatch, has_hash or are_diffs_known or are_files_known)


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
        compared = compare_with_decision(action, mark, decided)
        enforced = decided.enforces and is_first_use and compared.is_conclusive and compared.mismatch is None
    claimed = action.policy_verdict
    if claimed == "FULLY_VERIFIED" or (claimed == "POLICY_ENFORCED" and not enforced):
        raise BadInput(
            f"policy_verdict {claimed} is not borne out for {action.action_id}",
            advice="leave it out: it follows from the gate's decision",
        )
    return replace(action, policy_verdict="POLICY_ENFORCED") if enforced and claimed is None else action
