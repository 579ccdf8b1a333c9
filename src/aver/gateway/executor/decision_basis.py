"""The gate's decision about an act, as far as a COMMIT is compared with it.

The executor reads it from the decision's record. Where decision, PREVIEW and mark are sealed in one commit, it reads
the draft: that has the very values which the record will have, masked as the record is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aver.capsule.aver_block import BLOCK_KEY
from aver.capsule.model import Capsule
from aver.gate.decision_record import ALLOWING_DECISIONS, RecordedDecision
from aver.gateway.act_records import CommitBasis
from aver.gateway.proof.patch import NOOP, SanitizePatch, parse_patch
from aver.gateway.request import BoundRequest
from aver.gateway.settings import Confirm


class DecisionBasis(NamedTuple):
    """The gate's decision about an act, as far as a COMMIT is compared with it: as sealed, or as it will be."""

    call_id: str
    decision: str
    request_sha256: str
    workspace: str
    approval: str
    """The id of the record by which a person's approval was used; empty where there is none."""
    patch: str
    """The patch that the rules want, as they write it; empty where they want none."""
    rules: tuple[str, ...]

    @classmethod
    def from_record(cls, found: RecordedDecision) -> DecisionBasis:
        """Read a decision that is sealed."""
        return cls._read(found.call_id, found.decision, found.result, found.approval, found.rules)

    @classmethod
    def from_draft(cls, draft: Capsule) -> DecisionBasis:
        """Read a decision that is about to be sealed: its draft has the very values that the record will have."""
        result, refs = draft.outcome.result, draft.context.environment[BLOCK_KEY].get("refs") or {}
        rules = tuple((result["policy"] or {}).get("rules") or ())
        return cls._read(result["call_id"], result["decision"], result, str(refs.get("approval") or ""), rules)

    @classmethod
    def _read(
        cls, call_id: str, decision: str, result: Mapping[str, Any], approval: str, rules: tuple[str, ...]
    ) -> DecisionBasis:
        action = result["action"]
        return cls(
            call_id=call_id,
            decision=decision,
            request_sha256=str(action.get("request_sha256") or ""),
            workspace=str(action.get("workspace", "")),
            approval=approval,
            patch=str((result.get("policy") or {}).get("patch") or ""),
            rules=rules,
        )


def find_decision_problem(
    decision: DecisionBasis, basis: CommitBasis, request: BoundRequest, patch: SanitizePatch, *, confirm: Confirm
) -> str:
    """Say why a COMMIT does not follow from the gate's decision. A verifier compares the same later."""
    if decision.call_id != basis.preview.action_id or decision.request_sha256 != request.sha256:
        return "the gate's decision is about another act"
    if decision.decision not in ALLOWING_DECISIONS and not (confirm == "flag" and decision.decision == "human_review"):
        return f"the gate's decision is {decision.decision}"
    if decision.approval != basis.approval_use:
        return "the gate's decision is by another approval"
    # Shares say which patch it is, and not its parameter. The rules may have changed since the PREVIEW.
    if patch != (parse_patch(decision.patch) if decision.patch else NOOP):
        return "the rules want another patch than the PREVIEW has shown"
    if any(tuple(each.content["rules"]) != decision.rules for each in basis.attestations):
        return "a policy server attests other rules than the gate's decision has"
    return ""
