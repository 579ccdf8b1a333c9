"""The evidence for one COMMIT: both shares, their attestations, the decision, and the use of an approval.

It comes from a decision that was made just now, or from the PREVIEW. The shares of a PREVIEW are not enough if they are
too old, or of another program (`needs_renewal`), or if a person had to approve meanwhile. Then both servers decide
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aver.gate.ask import Answer
from aver.gate.decide import Gate
from aver.gateway.act_records import Preview
from aver.gateway.acts.visit import Visit
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.policy_panel import PanelAnswer
from aver.gateway.policy_server import name_program
from aver.gateway.request import BoundRequest
from aver.keys.statement import Statement


class CommitEvidence(NamedTuple):
    """The evidence for one COMMIT, as the executor gets it."""

    commit: Mapping[str, Any] | None
    attestations: tuple[Statement, ...]
    decision_id: str
    approval_use: str = ""

    @classmethod
    def collect(cls, panel: PanelAnswer, answer: Answer, *, is_confirmed: bool) -> CommitEvidence | None:
        """Return the evidence of a decision; None where the servers refused, or a person has not approved yet.

        `is_confirmed`: the caller says that a person has confirmed it, and the settings believe that.
        """
        word = answer.decision.decision
        if panel.commit is None or not (answer.allows or (is_confirmed and word == "human_review")):
            return None
        use = "" if answer.approval is None else answer.approval.id
        return cls(panel.commit, panel.attestations, answer.record.id, use)

    @classmethod
    def from_preview(cls, preview: Preview) -> CommitEvidence:
        first, second = preview.shares or (None, None)
        return cls({"policy0": first, "policy1": second}, preview.attestations, preview.decision_id)

    def build_order(self, preview: Preview, request: BoundRequest, visit: Visit) -> CommitOrder:
        """Build the order of a COMMIT, as the executor gets it."""
        return CommitOrder(
            intent_id=request.intent_id,
            tx_id=preview.tx_id,
            action_id=preview.action_id,
            caller=request.caller,
            session=request.session,
            inputs=request.inputs,
            commit=self.commit,
            attestations=self.attestations,
            user_confirm=visit.user_confirm,
            approval=self.approval_use,
            decision=self.decision_id,
            external_principal=visit.principal,
            delegation_jti=visit.jti,
            ingress=visit.surroundings.ingress,
            mediation=visit.surroundings.mediation,
        )


def needs_renewal(preview: Preview, gate: Gate, *, now: float, mac_ttl: int) -> bool:
    """Whether the shares of a PREVIEW are too old, of another program than the gate has, or of a command or call."""
    if gate.bundle is None or preview.program_id != name_program(gate):
        return True
    # The code that a command runs may have changed since the PREVIEW. And a call that was asked for once may have been
    # made meanwhile by another PREVIEW, or the user has said something else, or the server has changed the tool.
    if preview.intent_id in ("RunCommand", "CallTool"):
        return True
    # In either direction: the clock may have been set back.
    return any(abs(now - share["ts"]) >= mac_ttl - 1 for share in preview.shares or ())
