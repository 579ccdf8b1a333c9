"""The PREVIEW of one act, from the request to its sealed record.

The PREVIEW is sealed in one durable commit with its decision. Where a person must approve, it comes after the decision,
because it names the request for approval. Where the caller asks for the COMMIT at once, and the executor in the same
process has made all its checks, the mark of the COMMIT is in that one commit, too:

    gate.decision, act.preview, act.commit       all of them, or none
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aver.capsule.model import Capsule
from aver.gate.ask import Answer
from aver.gate.decision import Decision
from aver.gate.decision_record import REFUSING_DECISIONS
from aver.gateway.act_records import Preview, Surroundings, act_chain, build_preview_draft
from aver.gateway.acts.commit_evidence import CommitEvidence
from aver.gateway.acts.shown_act import ShownAct
from aver.gateway.acts.visit import Visit
from aver.gateway.codes import POLICY_DENY, build_envelope
from aver.gateway.executor.executor import PreparedCommit
from aver.gateway.policy_panel import PanelAnswer
from aver.gateway.proof.patch import NOOP
from aver.gateway.request import BoundRequest
from aver.gateway.settings import GatewaySettings
from aver.ledger import Entry, Ledger

PREVIEW_ALLOWED = "it may happen; send tx_id to commit it"

PrepareCommit = Callable[[Preview, Capsule], PreparedCommit | None]
"""Makes the executor's checks of a COMMIT, with its PREVIEW and the draft of its decision; None if one fails."""


class Previewed(NamedTuple):
    """A PREVIEW that is sealed, and how the act goes on."""

    preview: Preview
    envelope: dict[str, Any]
    """The answer, if the act ends here."""
    evidence: CommitEvidence | None = None
    """The evidence for the COMMIT; None where nothing can be committed now."""
    commit: PreparedCommit | None = None
    """The COMMIT whose mark was sealed with the PREVIEW; None where that is left to the executor."""


def begin_preview(request: BoundRequest, shown: ShownAct, visit: Visit) -> Preview:
    """Return the PREVIEW of a request before anybody has decided: a refusal."""
    return Preview(
        reason_code=POLICY_DENY,
        intent_id=request.intent_id,
        caller=request.caller,
        session=request.session,
        inputs=request.inputs,
        context=request.context,
        action_id=shown.action.call_id,
        request_sha256=request.sha256,
        patch=NOOP.to_dict(),
        base=shown.base,
        delegation=visit.jti or "",
        delegations=() if visit.delegation is None else (visit.delegation.statement,),
        mediation=visit.surroundings.mediation,
    )


class PendingPreview:
    """The PREVIEW of one act while it is made: sealed beside its decision, or after it where a person is asked.

    With `prepare`, the COMMIT's mark is sealed beside both, if the rules alone let the act pass and `prepare`, which
    makes the executor's checks, does not return None.
    """

    def __init__(
        self,
        begun: Preview,
        surroundings: Surroundings,
        *,
        settings: GatewaySettings,
        now: Callable[[], float],
        prepare: PrepareCommit | None = None,
    ) -> None:
        self._begun = begun
        self._surroundings = surroundings
        self._settings = settings
        self._now = now
        self._prepare = prepare
        self._sealed: Preview | None = None
        self.commit: PreparedCommit | None = None
        """The COMMIT whose mark was sealed with the PREVIEW."""

    def build_entries(self, panel: PanelAnswer, decision: Decision, draft: Capsule) -> list[Entry]:
        """Return the entries for the commit of a decision: the PREVIEW, and the mark. It may be called several times.

        Only the entries of the last call are sealed. So each call begins anew, with records of its own.
        """
        self.withdraw()
        self._sealed = None
        # The request for approval does not exist yet, and its id belongs into the PREVIEW.
        if decision.decision == "human_review":
            return []
        self._sealed, entry = self._build(panel, decision, draft.id)
        # An approval is checked with the records of its use, by `execute`.
        if self._prepare is not None and decision.decision == "pass" and self._sealed.shares is not None:
            self.commit = self._prepare(self._sealed, draft)
        return [entry] if self.commit is None else [entry, self.commit.mark]

    def withdraw(self) -> None:
        """Give up the COMMIT whose mark is not in the ledger, because nothing of its durable commit was kept."""
        if self.commit is not None:
            self.commit.withdraw()
            self.commit = None

    def finish(self, ledger: Ledger, panel: PanelAnswer, answer: Answer) -> Preview:
        """Return the sealed PREVIEW. Where a person is asked, seal it now, with the id of the request."""
        if answer.decision.decision != "human_review":
            assert self._sealed is not None  # `ask` has sealed the decision together with it.
            return self._sealed
        preview, entry = self._build(panel, answer.decision, answer.record.id, answer)
        ledger.append(entry.chain, entry.draft, blobs=entry.blobs)
        return preview

    def _build(
        self, panel: PanelAnswer, decision: Decision, record_id: str, answer: Answer | None = None
    ) -> tuple[Preview, Entry]:
        asked = "" if answer is None or answer.request is None else answer.request.id
        expires = datetime.fromtimestamp(self._now() + self._settings.tx_ttl, UTC).isoformat()
        if decision.decision in REFUSING_DECISIONS and panel.shares is not None:
            # Both servers allowed it, and the gate could not seal or use their word.
            words = "; ".join(decision.shown_reasons)
            panel = PanelAnswer(reason_code=POLICY_DENY, detail=words, program_id=panel.program_id)
        code = "ALLOW" if decision.decision == "human_approved" else panel.reason_code
        shares = panel.shares
        preview = replace(
            self._begun,
            reason_code=code,
            detail=panel.detail,
            program_id=panel.program_id,
            allow_pre=panel.bits.allow_pre,
            need_confirm=panel.bits.need_confirm,
            patch=panel.patch.to_dict(),
            facts_sha256=panel.facts_sha256,
            shares=None if shares is None else (shares[0].to_dict(), shares[1].to_dict()),
            expires=expires if shares is not None else "",
            approval=asked,
            decision_id=record_id,
            attestations=panel.attestations,
        )
        draft, blobs = build_preview_draft(
            preview,
            self._surroundings,
            keeps_inputs=self._settings.inputs == "keep",
            reasons=decision.shown_reasons,
        )
        preview = replace(preview, record_id=draft.id)
        return preview, Entry(act_chain(preview.session), draft, blobs=tuple(blobs))


def answer_preview(preview: Preview, reasons: tuple[str, ...]) -> dict[str, Any]:
    """Return the envelope that answers with a PREVIEW."""
    data = {
        "tx_id": preview.tx_id,
        "action_id": preview.action_id,
        "request_sha256": preview.request_sha256,
        "allow_pre": preview.allow_pre,
        "need_confirm": preview.need_confirm,
        "patch": preview.patch,
        "expires": preview.expires or None,
        "reasons": list(reasons),
        "commit_evidence": None
        if preview.shares is None
        else {"policy0": preview.shares[0], "policy1": preview.shares[1]},
    }
    if preview.approval:
        data["approval"] = preview.approval
    words = "; ".join(reasons) or preview.detail
    return build_envelope(preview.reason_code, PREVIEW_ALLOWED if preview.reason_code == "ALLOW" else words, data=data)
