"""Aver's own planner, executor and critic. They use no model: everything they say follows from the trace.

Planner: proposes each item of work once. It proposes nothing in place of what a critic rejects; that is for people.

Executor: signs the intent of each proposal that may be executed, tries a failed call again as often as the bounds
allow, claims what each call shows, corrects a claim that a challenge shows to be wrong, and signs the final statement
when nothing is left to do. A call that never succeeded becomes a claim of failure, with the reason as its artifact.

Critic: approves what is exactly the work that it expects, and rejects or blocks everything else. It recomputes the
evidence of every claim. It challenges a claim that does not hold, with the value that it found, and withdraws the
challenge when the revised claim holds.

The session itself runs the intents that may run, and the auditor's audit (`roles.protocol_run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aver.capsule.blobs import TEXT_MEDIA, Blob
from aver.protocol.evidence import EvidenceJudge, EvidenceSource
from aver.protocol.predicates import REASONS, CheckResult
from aver.protocol.roles.project_checks import CheckOutcome
from aver.protocol.roles.role import RoleFunction, leave_audit_to_session
from aver.protocol.roles.work_items import BlobReader, EndedCall, WorkItem, find_work
from aver.protocol.view import Said, View

CONFIDENCE = 0.99
"""Of a claim that was read from a report. The last hundredth is for a report that lies."""

FAILURE_NAME = "failure.txt"


def build_role(role: str, use: str, *, workspace: str, options: Mapping[str, Any], blob: BlobReader) -> RoleFunction:
    """Return a built-in role. `blob` reads an artifact; None where it is not there."""
    if role == "auditor":
        return leave_audit_to_session
    work = find_work(use, workspace, options)
    makers: Mapping[str, Callable[[list[WorkItem], BlobReader], RoleFunction]] = {
        "planner": lambda work, _: lambda view: plan(view, work),
        "executor": BuiltInExecutor,
        "critic": lambda work, blob: lambda view: criticise(view, work, blob),
    }
    return makers[role](work, blob)


# --- planner


def plan(view: View, work: list[WorkItem]) -> Said | None:
    """Propose the next item that was not proposed yet."""
    if "proposal_created" not in view.may_say:
        return None
    proposed = {proposal["objective"] for proposal in view.proposals}
    for item in work:
        if item.objective not in proposed:
            payload = {
                "objective": item.objective,
                "assumptions": [],
                "required_tools": [item.tool],
                "expected_evidence": [dict(each) for each in item.expected],
            }
            return Said(event="proposal_created", payload=payload)
    return None


# --- executor


class BuiltInExecutor:
    """The executor. It remembers the artifacts that it recorded, because a view does not list them."""

    def __init__(self, work: list[WorkItem], blob: BlobReader) -> None:
        self._work = {item.objective: item for item in work}
        self._blob = blob
        self._recorded: set[str] = set()

    def __call__(self, view: View) -> Said | None:
        """Say the next event of the executor."""
        if "tool_intent_signed" not in view.may_say:
            return None
        known = [
            (proposal, self._work[proposal["objective"]])
            for proposal in view.proposals
            if proposal["executable"] and proposal["objective"] in self._work
        ]
        for proposal, item in known:
            if (said := _intend(view, proposal, item)) is not None:
                return said
        if view.state != "claiming" or _is_waiting(view):
            return None
        for proposal, item in known:
            if (said := self._claim_next(view, proposal, item)) is not None:
                return said
        if (said := _revise_next(view, known, self._blob)) is not None:
            return said
        if view.claims and not view.open["disputes"]:
            return Said(event="final_statement_signed", payload={"text": _sum_up(view)})
        return None

    def _claim_next(self, view: View, proposal: Mapping[str, Any], item: WorkItem) -> Said | None:
        """Make the next claim about a proposal. Claims come in a fixed order, so their number says which is next."""
        made = sum(claim["proposal"] == proposal["id"] for claim in view.claims)
        outcomes = _read_outcomes(view, proposal, item, self._blob)
        refs = {"proposal": proposal["id"]}
        if outcomes:
            if made >= len(outcomes):
                return None
            return Said(event="claim_issued", payload=_build_claim(outcomes[made], "success"), refs=refs)
        if made:
            return None
        # A call that never completed may have no output at all. So the reason itself becomes the artifact.
        words = _describe_failure(view, proposal)
        record = Blob(words.encode(), TEXT_MEDIA)
        if record.digest not in self._recorded:
            self._recorded.add(record.digest)
            payload = {"name": FAILURE_NAME, "blob": record.reference}
            return Said(event="artifact_recorded", payload=payload, artifacts=(record,))
        outcome = CheckOutcome(words.splitlines()[0], ({"artifact": record.digest},), is_good=False)
        return Said(event="claim_issued", payload=_build_claim(outcome, "failure"), refs=refs)


def _intend(view: View, proposal: Mapping[str, Any], item: WorkItem) -> Said | None:
    """Sign an intent: the first one, or one more after a failure, as long as the bounds allow."""
    tried = [intent for intent in view.intents if intent["proposal"] == proposal["id"]]
    if any(intent["standing"] != "ended" or intent["code"] == "COMPLETED" for intent in tried):
        return None
    if len(tried) >= view.bounds["attempts"]:
        return None
    payload = {
        "tool": item.tool,
        "arguments": dict(item.arguments),
        "justification": item.justification,
        "repeatable": None,  # If the effects of the call allow it.
    }
    refs = {"proposal": proposal["id"]}
    if tried:
        refs["retry_of"] = tried[-1]["id"]
    return Said(event="tool_intent_signed", payload=payload, refs=refs)


def _is_waiting(view: View) -> bool:
    """Whether something may still be reviewed or run: then nothing is claimed yet."""
    is_open = any(intent["standing"] != "ended" for intent in view.intents)
    is_unreviewed = any(proposal["standing"] == "open" and not proposal["revised_by"] for proposal in view.proposals)
    return is_open or is_unreviewed


def _read_outcomes(view: View, proposal: Mapping[str, Any], item: WorkItem, blob: BlobReader) -> list[CheckOutcome]:
    """Return the claims about the call of a proposal that completed; none where none did."""
    intents = {intent["id"] for intent in view.intents if intent["proposal"] == proposal["id"]}
    for execution in view.executions:
        if execution["intent"] in intents and execution["code"] == "COMPLETED":
            call = EndedCall(execution["id"], execution["exit_code"], execution["output"])
            return item.read_claims(call, blob)
    return []


def _describe_failure(view: View, proposal: Mapping[str, Any]) -> str:
    tried = [intent for intent in view.intents if intent["proposal"] == proposal["id"]]
    codes = ", ".join(intent["code"] for intent in tried)
    return f"{proposal['objective']} did not complete\nattempts: {codes or 'none'}\n"


def _build_claim(outcome: CheckOutcome, about: str) -> dict[str, Any]:
    evidence = [dict(item) for item in outcome.evidence]
    return {"text": outcome.text, "confidence": CONFIDENCE, "about": about, "evidence": evidence}


def _revise_next(view: View, known: list[tuple[Mapping[str, Any], WorkItem]], blob: BlobReader) -> Said | None:
    """Correct a disputed claim that is not what the outputs show."""
    disputed = {challenge["claim"] for challenge in view.challenges if challenge["standing"] == "open"}
    for proposal, item in known:
        claims = [claim for claim in view.claims if claim["proposal"] == proposal["id"]]
        outcomes = _read_outcomes(view, proposal, item, blob)
        for claim, outcome in zip(claims, outcomes, strict=False):
            evidence = [dict(each) for each in outcome.evidence]
            if claim["id"] in disputed and (claim["text"], claim["evidence"]) != (outcome.text, evidence):
                payload = {"retracted": False, "text": outcome.text, "confidence": CONFIDENCE, "evidence": evidence}
                return Said(event="claim_revised", payload=payload, refs={"claim": claim["id"]})
    return None


def _sum_up(view: View) -> str:
    standing = [claim for claim in view.claims if claim["standing"] != "retracted"]
    return "; ".join(claim["text"] for claim in standing) or "no claim stands"


# --- critic


def criticise(view: View, work: list[WorkItem], blob: BlobReader) -> Said | None:
    """Say the next event of the critic."""
    by_objective = {item.objective: item for item in work}
    if "proposal_reviewed" not in view.may_say:
        return None
    for proposal in view.proposals:
        if proposal["id"] in view.open["reviews"]:
            return _review_proposal(proposal, by_objective.get(proposal["objective"]))
    for intent in view.intents:
        if intent["id"] in view.open["intent_reviews"]:
            is_known = any((intent["tool"], intent["arguments"]) == (item.tool, dict(item.arguments)) for item in work)
            payload = {
                "verdict": "approved" if is_known else "blocked",
                "rationale": "it is one of the expected calls" if is_known else "it is none of the expected calls",
            }
            return Said(event="intent_reviewed", payload=payload, refs={"intent": intent["id"]})
    if "claim_challenged" not in view.may_say:
        return None
    return _challenge_next(view, blob)


def _review_proposal(proposal: Mapping[str, Any], item: WorkItem | None) -> Said:
    refs = {"proposal": proposal["id"]}
    if item is None or proposal["required_tools"] != [item.tool]:
        payload: dict[str, Any] = {"verdict": "rejected", "rationale": "it is none of the expected proposals"}
        return Said(event="proposal_reviewed", payload={**payload, "risk": None, "conditions": []}, refs=refs)
    payload = {
        "verdict": "conditional" if item.conditions else "approved",
        "rationale": "it is the expected proposal, and the gate judges its call",
        "risk": None,
        "conditions": [dict(condition) for condition in item.conditions],
    }
    return Said(event="proposal_reviewed", payload=payload, refs=refs)


def _challenge_next(view: View, blob: BlobReader) -> Said | None:
    """Challenge a claim whose evidence does not hold, or withdraw an own challenge to one whose evidence holds now."""
    for claim in view.claims:
        if claim["standing"] == "retracted":
            continue
        own = [
            challenge
            for challenge in view.challenges
            if (challenge["claim"], challenge["agent"], challenge["standing"]) == (claim["id"], view.agent, "open")
        ]
        broken = _find_broken(view, claim, blob)
        if broken is None and own:
            payload = {"outcome": "withdrawn", "rationale": "the evidence holds now"}
            return Said(event="challenge_resolved", payload=payload, refs={"challenge": own[0]["id"]})
        if broken is not None and not own:
            return _challenge(claim, *broken)
    return None


def _challenge(claim: Mapping[str, Any], item: Mapping[str, Any], result: CheckResult) -> Said:
    reason = f"the evidence does not hold: {REASONS.get(result.reason, result.reason)}; found {result.found!r}"[:1000]
    counter = _build_counter(item, result)
    payload = {"reason": reason, "evidence": [counter] if counter is not None else []}
    return Said(event="claim_challenged", payload=payload, refs={"claim": claim["id"]})


def _build_counter(item: Mapping[str, Any], result: CheckResult) -> dict[str, Any] | None:
    """Return a check that holds and contradicts the item; None where a single value does not say it."""
    check = item.get("check", {})
    counter: dict[str, Any] | None = None
    if "exit_code" in check and isinstance(result.found, int):
        counter = {"exit_code": ["==", result.found]}
    elif "tests" in check and isinstance(result.found, Mapping):
        counts = {name: ["==", count] for name, count in result.found.items() if isinstance(count, int)}
        counter = {"tests": {"format": check["tests"]["format"], "counts": counts}} if counts else None
    elif "text" in check and "contains" in check["text"]:
        counter = {"text": {"lacks": check["text"]["contains"]}}
    return None if counter is None else {**{name: item[name] for name in item if name != "check"}, "check": counter}


class _SeenExecution:
    """An execution as a view shows it. A view has no workspace: checks of git are left to the audit."""

    revision = None
    is_clean = False

    def __init__(self, execution: Mapping[str, Any]) -> None:
        self.exit_code: int | None = execution["exit_code"]
        self.outputs: list[str] = list(execution["output"].values())


def _find_broken(
    view: View, claim: Mapping[str, Any], blob: BlobReader
) -> tuple[Mapping[str, Any], CheckResult] | None:
    """Return the first item of a claim's evidence that does not hold, with what was found; None if all hold."""
    ended = {each["id"]: _SeenExecution(each) for each in view.executions if each["code"]}

    def read(digest: str) -> bytes:
        from aver.errors import NotFound

        data = blob(digest)
        if data is None:
            raise NotFound(f"there is no artifact {digest}")
        return data

    # The evidence guard has held the claim to artifacts of this trace already.
    judge = EvidenceJudge(EvidenceSource(read, ended.get, lambda _: True))
    items: Iterable[Mapping[str, Any]] = claim["evidence"]
    for item in items:
        if "git" in item.get("check", {}):
            continue
        result = judge.judge(dict(item))
        if not result.holds:
            return item, result
    return None
