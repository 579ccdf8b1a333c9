"""The auditor's report on a trace: a pure function of trace, artifacts and profile.

Two verifiers with the same records and blobs make the same bytes, today and in ten years. So a report has codes, places
and values. It has no sentences, no time of verifying, no duration, no local path and no random id:

    v             1
    trace, ledger, tenant    which trace
    head          {count, hash}: the records that the report is about
    profile       strict, default or lenient
    status        pass, pass-with-warnings or fail
    checks        [{name, status, count}] in the order of `REPORT_CHECKS`
    findings      [{check, status, code, sequence, event, subject, item}]; `status` is failed, warning or note
    first_broken  {sequence, event, code}: the first record that does not hold; null if all hold
    last_trusted  {sequence, event, hash}: the last record before it; null if there is none
    claims        [{id, sequence, agent, by, proposal, about, confidence, standing, evidence, challenges}]
    proposals     [{id, sequence, agent, standing, expected, conditions}]
    participants  [{agent, role, public_key, held, sequence}]
    executions    [{id, sequence, intent, proposal, agent, tool, risk, decision, code, exit_code, revision, clean,
                  input, outputs, rerun}]
    artifacts     [{sha256, size, sequence, state}]; `state` is here, missing or changed

Every item of evidence stands with its recomputed value: {…the item, holds, found, reason} (`aver.protocol.predicates`).

Once a record does not hold, nothing after it is trusted: the report is about the records before. The signatures of
participants count by the keys that the trace binds. Whether anyone trusts these keys is the verdict's matter.

The profile says what becomes of a weakness (`PROFILE_RULES`). Integrity, order, roles, gates and artifacts fail in all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.errors import BadInput, IntegrityError, NotFound
from aver.fast_dataclass import dataclass
from aver.keys.algorithms import verify_ed25519
from aver.protocol.events import OPERATOR
from aver.protocol.evidence import EvidenceJudge, EvidenceSource
from aver.protocol.judgement.trace_facts import FindingStatus, GateWord, ProducedArtifact, ReportFinding, TraceFacts
from aver.protocol.predicates import CheckResult, ParsedArtifacts
from aver.protocol.rules.work import needs_review
from aver.protocol.standings import ClaimStanding, ExecutionStanding, ProposalStanding
from aver.verdict.examiner import TRACE_CHECKS

REPORT_VERSION = 1

REPORT_CHECKS = tuple(check for check in TRACE_CHECKS if check != "report")
"""The checks of a report, in their order. A verdict has `report` before the last: there the report itself is judged."""

PROFILE_RULES: Mapping[str, Mapping[str, FindingStatus]] = {
    "disputed": {"strict": "failed", "default": "warning", "lenient": "warning"},
    "unchecked": {"strict": "failed", "default": "note", "lenient": "note"},
    "unproven": {"strict": "failed", "default": "failed", "lenient": "warning"},
    "unmet": {"strict": "failed", "default": "warning", "lenient": "warning"},
    "not_reproduced": {"strict": "failed", "default": "warning", "lenient": "warning"},
    "not_independent": {"strict": "warning", "default": "note", "lenient": "note"},
    "unknown_key": {"strict": "failed", "default": "warning", "lenient": "warning"},
}
"""By weakness and profile, the status of the finding."""

STRICTNESS = ("lenient", "default", "strict")
"""The profiles, from the mildest on. An audit may use a stricter one than the trace's own, never a milder one."""

_STATUS_BY_WORST = {"failed": "fail", "warning": "pass-with-warnings"}


@dataclass(frozen=True, slots=True)
class Report:
    """A report: its content, and the canonical bytes that the auditor signs the digest of."""

    content: Mapping[str, Any]
    data: bytes

    @property
    def status(self) -> str:
        return str(self.content["status"])

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def build_report(facts: TraceFacts) -> Report:
    """Make the report. Raises `NotFound` only if a decision that must be read is out of reach."""
    builder = _ReportBuilder(facts)
    content = builder.build()
    return Report(content, canonical_json(content))


def status_of(findings: Iterable[FindingStatus]) -> str:
    """The status that findings come to: the worst counts, and a note counts for nothing."""
    found = set(findings)
    return next((_STATUS_BY_WORST[worst] for worst in _STATUS_BY_WORST if worst in found), "pass")


def worst_audit_status(*statuses: str) -> str:
    """The worst of some statuses of an audit."""
    return max(statuses, key=("pass", "pass-with-warnings", "fail").index)


@dataclass(frozen=True, slots=True)
class _AuditedExecution:
    """An execution that has ended, as evidence sees it."""

    exit_code: int | None
    revision: str | None
    is_clean: bool
    outputs: tuple[str, ...]


class _ReportBuilder:
    """Goes through a trace once, and collects findings and lists."""

    def __init__(self, facts: TraceFacts) -> None:
        self._facts = facts
        self._trace = facts.trace
        self._findings: list[ReportFinding] = []
        self._counts = dict.fromkeys(REPORT_CHECKS, 0)
        self._states: dict[str, str] = {}
        """Whether each artifact is here, by digest."""
        self._executions: dict[str, _AuditedExecution] = {}
        self._by_proposal: dict[str, list[str]] = {}
        """The executions of each proposal that completed, in order."""
        self._relied_on: set[str] = set()
        self._parsed = ParsedArtifacts()

    def build(self) -> dict[str, Any]:
        facts, trace = self._facts, self._trace
        participants = self._list_participants()
        artifacts = self._list_artifacts()
        executions = self._list_executions()
        claims = [self._report_claim(claim) for claim in trace.claims.values()]
        self._relied_on = self._find_proposals_relied_on()
        proposals = [self._report_proposal(proposal) for proposal in trace.proposals.values()]
        self._counts["order"] = self._counts["roles"] = self._counts["append_only"] = len(facts.sequences)
        self._counts["attribution"] = len(claims)
        self._counts["intents"] = len(trace.intents)
        broken = facts.broken
        if broken is not None:
            self._findings.append(broken)
        self._findings.sort(key=_order_finding)
        place, last = facts.place, facts.last
        return {
            "v": REPORT_VERSION,
            "trace": trace.trace,
            "ledger": place.ledger,
            "tenant": place.tenant,
            "head": facts.head.to_dict(),
            "profile": facts.profile,
            "status": status_of(found.status for found in self._findings),
            "checks": [self._report_check(name) for name in REPORT_CHECKS],
            "findings": [found.to_dict() for found in self._findings],
            "first_broken": None
            if broken is None
            else {"sequence": broken.sequence, "event": broken.event, "code": broken.code},
            "last_trusted": None if last is None else {"sequence": last[0], "event": last[1], "hash": last[2]},
            "claims": claims,
            "proposals": proposals,
            "participants": participants,
            "executions": executions,
            "artifacts": artifacts,
        }

    def _report_check(self, name: str) -> dict[str, Any]:
        worst = {found.status for found in self._findings if found.check == name}
        status = next((each for each in ("failed", "warning") if each in worst), "passed")
        return {"name": name, "status": status, "count": self._counts[name]}

    def _add(
        self,
        check: str,
        status: FindingStatus,
        code: str,
        event: str,
        subject: str | None = None,
        item: int | None = None,
    ) -> None:
        sequence = self._facts.sequences.get(event)
        self._findings.append(ReportFinding(check, status, code, sequence, event, subject, item))

    def _weigh(self, weakness: str) -> FindingStatus:
        return PROFILE_RULES[weakness][self._facts.profile]

    # --- participants

    def _list_participants(self) -> list[dict[str, Any]]:
        found = []
        participants = self._trace.bound_keys.values()
        executors_here = any(each.role == "executor" and each.held == "here" for each in participants)
        for each in participants:
            self._counts["participants"] += 1
            if each.role in ("critic", "auditor") and each.held == "here" and executors_here:
                status = self._weigh("not_independent")
                self._add("participants", status, "NOT_INDEPENDENT", each.joined, each.agent)
            sequence = self._facts.sequences.get(each.joined)
            listed = {"agent": each.agent, "role": each.role, "public_key": each.key.ed25519, "held": each.held}
            found.append({**listed, "sequence": sequence})
        return found

    # --- artifacts

    def _list_artifacts(self) -> list[dict[str, Any]]:
        listed = []
        for digest, artifact in self._facts.produced.items():
            state = self._states[digest] = self._find_state(digest, artifact)
            if state != "here":
                code = "ARTIFACT_MISSING" if state == "missing" else "ARTIFACT_HASH_MISMATCH"
                finding = ReportFinding("executions", "failed", code, artifact.sequence, None, digest)
                self._findings.append(finding)
            listed.append({"sha256": digest, "size": artifact.size, "sequence": artifact.sequence, "state": state})
        return listed

    def _find_state(self, digest: str, artifact: ProducedArtifact) -> str:
        if self._facts.are_artifacts_intact:
            return "here"
        try:
            data = self._facts.blob(digest)
        except NotFound:
            return "missing"
        except (BadInput, IntegrityError):
            return "changed"
        return "here" if len(data) == artifact.size else "changed"

    # --- executions

    def _list_executions(self) -> list[dict[str, Any]]:
        reruns = {str(each.get("execution")): each for each in self._facts.rerun}
        return [self._report_execution(each, reruns.get(each.id)) for each in self._trace.executions.values()]

    def _report_execution(self, execution: ExecutionStanding, rerun: Mapping[str, Any] | None) -> dict[str, Any]:
        self._counts["executions"] += 1
        intent = self._trace.intents[execution.intent]
        workspace = execution.payload["workspace"]
        outputs = (*execution.outputs.values(), *execution.recorded)
        is_clean = workspace["revision"] is not None and workspace["change"] is None
        audited = _AuditedExecution(execution.exit_code, workspace["revision"], is_clean, outputs)
        if execution.end is not None:
            self._executions[execution.id] = audited
        if execution.code == "COMPLETED":
            self._by_proposal.setdefault(intent.proposal, []).append(execution.id)
        if execution.code == "OUTCOME_UNKNOWN":
            self._add("executions", "warning", "OUTCOME_UNKNOWN", str(execution.end), execution.id)
        word = self._check_gate(execution)
        if rerun is not None and rerun.get("same") is not True:
            # An auditor that could not repeat the call says so. That is no finding against the trace.
            status = "note" if "skipped" in rerun else self._weigh("not_reproduced")
            self._add("executions", status, "NOT_REPRODUCED", execution.id, execution.id)
        return {
            "id": execution.id,
            "sequence": self._facts.sequences.get(execution.id),
            "intent": execution.intent,
            "proposal": intent.proposal,
            "agent": execution.agent,
            "tool": intent.tool,
            "risk": {**intent.payload["risk"], "decided": None if word is None else word.risk},
            "decision": execution.decision,
            "code": execution.code,
            "exit_code": execution.exit_code,
            "revision": audited.revision,
            "clean": audited.is_clean,
            "input": execution.payload["input"]["blob"]["digest"],
            "outputs": dict(execution.outputs),
            "rerun": None if rerun is None else dict(rerun),
        }

    def _check_gate(self, execution: ExecutionStanding) -> GateWord | None:
        """Hold an execution to the decision that it names: about this very call, and allowing it."""
        word = self._facts.decision(execution.decision)
        intent = self._trace.intents[execution.intent]
        # The decision names the call, and a call starts once. So no decision allows two executions.
        if word is None or word.call_id != intent.id or not word.allows or not self._is_sealed(word, execution.agent):
            self._add("executions", "failed", "ROLE_POLICY_VIOLATION", execution.id, execution.decision)
        elif needs_review(self._trace, intent, word.risk) and not execution.is_approved:
            # The gate saw worse effects than the executor had said, and not every critic has approved these.
            self._add("intents", "failed", "ROLE_POLICY_VIOLATION", execution.id, intent.id)
        return word

    def _is_sealed(self, word: GateWord, agent: str) -> bool:
        """Whether the operator's gate has sealed a decision, or the gate of the executor who made the call."""
        sealer = self._trace.bound_keys.get(word.signed_by)
        if sealer is None or sealer.role == OPERATOR:
            return sealer is not None  # The caller has verified what the operator sealed.
        # An executor elsewhere has a gate of its own. One of the operator's home cannot decide for the operator's gate.
        is_own = sealer.agent == agent and sealer.held == "elsewhere"
        return is_own and verify_ed25519(sealer.key.ed25519_bytes, word.digest.encode(), word.signature)

    # --- claims and expectations

    def _find_execution(self, name: str, *, before: int, about: str) -> _AuditedExecution | None:
        """An execution that a claim can refer to: it has ended before the claim, and in the way that is claimed."""
        standing = self._trace.executions.get(name)
        if standing is None or standing.end is None or self._facts.sequences[standing.end] >= before:
            return None
        if standing.code != "COMPLETED" and about != "failure":
            return None
        return self._executions[name]

    def _is_evidence(self, digest: str, *, before: int, about: str) -> bool:
        artifact = self._facts.produced.get(digest)
        if artifact is None:
            return False
        since = [artifact.evidence_from, artifact.failure_from if about == "failure" else None]
        return any(each is not None and each < before for each in since)

    def _build_judge(self, event: str, about: str) -> EvidenceJudge:
        before = self._facts.sequences[event]

        def find_execution(name: str) -> _AuditedExecution | None:
            return self._find_execution(name, before=before, about=about)

        def is_evidence(digest: str) -> bool:
            return self._is_evidence(digest, before=before, about=about)

        return EvidenceJudge(self._build_source(find_execution, is_evidence))

    def _build_source(
        self, execution: Callable[[str], _AuditedExecution | None], is_evidence: Callable[[str], bool]
    ) -> EvidenceSource:
        is_cut = self._trace.cut.__contains__
        return EvidenceSource(self._facts.blob, execution, is_evidence, is_cut, self._parsed)

    def _report_claim(self, claim: ClaimStanding) -> dict[str, Any]:
        self._counts["claims"] += 1
        judge = self._build_judge(claim.worded_by, claim.about)
        results = [judge.judge(item) for item in claim.evidence]
        if claim.standing != "retracted":
            self._weigh_claim(claim, results)
        return {
            "id": claim.id,
            "sequence": self._facts.sequences.get(claim.id),
            "agent": claim.agent,
            "by": claim.worded_by,
            "proposal": claim.proposal,
            "about": claim.about,
            "confidence": claim.confidence,
            "standing": claim.standing,
            "evidence": [_show_item(*pair) for pair in zip(claim.evidence, results, strict=True)],
            "challenges": [self._report_challenge(each) for each in claim.challenges],
        }

    def _weigh_claim(self, claim: ClaimStanding, results: list[CheckResult]) -> None:
        """Add the findings about a claim that nobody has taken back."""
        event = claim.worded_by
        for place, result in enumerate(results):
            if result.reason in ("artifact_missing", "artifact_changed"):
                code = "ARTIFACT_MISSING" if result.reason == "artifact_missing" else "ARTIFACT_HASH_MISMATCH"
                self._add("claims", "failed", code, event, claim.id, place)
            elif not result.holds:
                self._add("claims", self._weigh("unproven"), "CLAIM_UNPROVEN", event, claim.id, place)
        if not any("check" in item for item in claim.evidence):
            self._add("claims", self._weigh("unchecked"), "CLAIM_UNPROVEN", event, claim.id)
        if claim.standing in ("disputed", "refuted"):
            self._add("claims", self._weigh("disputed"), "CLAIM_DISPUTED", event, claim.id)

    def _report_challenge(self, name: str) -> dict[str, Any]:
        challenge = self._trace.challenges[name]
        shown = []
        if challenge.evidence:  # Most have none.
            # A critic may use what a failed execution left behind: it does not claim a success.
            judge = self._build_judge(challenge.id, "failure")
            shown = [_show_item(item, judge.judge(item)) for item in challenge.evidence]
        return {
            "id": challenge.id,
            "sequence": self._facts.sequences.get(challenge.id),
            "agent": challenge.agent,
            "standing": challenge.standing,
            "evidence": shown,
        }

    def _find_proposals_relied_on(self) -> set[str]:
        """The proposals that claims name, and those whose calls gave the evidence of claims."""
        origins: dict[str, set[str]] = {}
        for execution in self._trace.executions.values():
            proposal = self._trace.intents[execution.intent].proposal
            for name in (execution.id, *execution.outputs.values(), *execution.recorded):
                origins.setdefault(name, set()).add(proposal)
        found: set[str] = set()
        for claim in self._trace.claims.values():
            if claim.standing != "retracted":
                found.add(claim.proposal)
                for item in claim.evidence:
                    given = origins.get(str(item.get("execution") or item.get("artifact")), set())
                    # Where calls of several proposals gave the same output, the claim says which one it rests on.
                    found |= given if claim.proposal not in given else set()
        return found

    def _report_proposal(self, proposal: ProposalStanding) -> dict[str, Any]:
        critics = self._trace.critics
        is_judged = proposal.id in self._relied_on or (proposal.revised_by is None and proposal.id in self._by_proposal)
        expected = list(self._judge_expectations(proposal, proposal.payload["expected_evidence"], is_judged=is_judged))
        conditions = []
        for critic in sorted(proposal.conditions):
            judged = self._judge_expectations(proposal, proposal.conditions[critic], is_judged=is_judged)
            conditions += [{"critic": critic, **each} for each in judged]
        return {
            "id": proposal.id,
            "sequence": self._facts.sequences.get(proposal.id),
            "agent": proposal.agent,
            "standing": proposal.standing(critics),
            "expected": expected,
            "conditions": conditions,
        }

    def _judge_expectations(
        self, proposal: ProposalStanding, items: Iterable[Any], *, is_judged: bool
    ) -> Iterator[dict[str, Any]]:
        """Judge expectations over the executions of their proposal. Of one that came to nothing, none is judged."""
        executions = [(name, self._executions[name]) for name in self._by_proposal.get(proposal.id, ())]
        judge = EvidenceJudge(self._build_source(lambda name: None, lambda digest: True))
        for place, item in enumerate(items):
            result = judge.judge_expectation(item, executions)
            if is_judged and not result.holds:
                self._add("claims", self._weigh("unmet"), "CLAIM_UNPROVEN", proposal.id, proposal.id, place)
            yield {**_show_item(item, result), "judged": is_judged}


def _show_item(item: Any, result: CheckResult) -> dict[str, Any]:
    shown = dict(item) if isinstance(item, Mapping) else {"item": item}
    return {**shown, **result.to_dict()}


def _order_finding(found: ReportFinding) -> tuple[Any, ...]:
    """By check, then by place. The rest makes the order of the same findings the same everywhere."""
    sequence = -1 if found.sequence is None else found.sequence
    item = -1 if found.item is None else found.item
    return (REPORT_CHECKS.index(found.check), sequence, found.code, str(found.subject), item, found.status)
