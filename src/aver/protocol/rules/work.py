"""Proposals, intents, executions and artifacts: order, bounds, and the part of the action guard that a trace shows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from aver.capsule.blobs import blob_references
from aver.capsule.json_document import time_field
from aver.protocol.bounds import is_risk_from, worst_risk
from aver.protocol.events import Event
from aver.protocol.rules.step import EventRefused, FoldStep
from aver.protocol.standings import (
    ARTIFACT_COMPLETED,
    ARTIFACT_FAILED,
    ARTIFACT_INPUT,
    ARTIFACT_RECORDED,
    ExecutionStanding,
    IntentStanding,
    ProposalStanding,
)
from aver.protocol.statements import digest_json

if TYPE_CHECKING:
    from aver.protocol.trace import ProtocolTrace


CLOCK_SLACK = timedelta(seconds=60)
"""By how much the times of two records may be off: two homes have two clocks, and a clock may be set. The session that
seals an event compares exactly."""


def judge_proposal_created(trace: ProtocolTrace, event: Event) -> FoldStep:
    if len(trace.proposals) >= trace.bounds.proposals:
        words = f"the trace has {len(trace.proposals)} proposals, as many as its bounds allow"
        raise EventRefused("STATE_VIOLATION", words)
    old = None
    if "revises" in event.refs:
        old = trace.find(trace.proposals, event.refs["revises"], "revises")
        if old.revised_by is not None:
            raise EventRefused("STATE_VIOLATION", "the proposal was revised before", place="revises")
    executable = trace.executable - (old is not None and old.is_executable(trace.critics))
    was_live = old is not None and old.standing(trace.critics) != "rejected"
    live = trace.live + 1 - was_live

    def apply() -> None:
        if old is not None:
            old.revised_by = event.id
        trace.proposals[event.id] = ProposalStanding(event.id, event.agent, event.payload, event.refs.get("revises"))
        trace.executable, trace.live = executable, live

    return FoldStep(trace.early_state(executable=executable, live=live), apply)


def judge_proposal_reviewed(trace: ProtocolTrace, event: Event) -> FoldStep:
    proposal = trace.find(trace.proposals, event.refs["proposal"], "proposal")
    if proposal.revised_by is not None:
        raise EventRefused("STATE_VIOLATION", "the proposal was revised", place="proposal")
    before = proposal.standing(trace.critics)
    reviews = {**proposal.reviews, event.agent: event.payload["verdict"]}
    after = ProposalStanding(proposal.id, "", {}, reviews=reviews).standing(trace.critics)
    good = ("approved", "conditional")
    executable = trace.executable + (after in good) - (before in good)
    live = trace.live + (after != "rejected") - (before != "rejected")

    def apply() -> None:
        proposal.reviews = reviews
        proposal.conditions[event.agent] = tuple(event.payload["conditions"])
        trace.executable, trace.live = executable, live

    return FoldStep(trace.early_state(executable=executable, live=live), apply)


# --- intents and executions


def judge_tool_intent_signed(trace: ProtocolTrace, event: Event) -> FoldStep:
    payload, proposal = event.payload, trace.find(trace.proposals, event.refs["proposal"], "proposal")
    if not proposal.is_executable(trace.critics):
        words = f"the proposal is {'revised' if proposal.revised_by else proposal.standing(trace.critics)}"
        raise EventRefused("STATE_VIOLATION", f"{words}: it may not be executed", place="proposal")
    # The critics have approved these tools and no others. A proposal that names none leaves the choice open.
    named = proposal.payload["required_tools"]
    if named and payload["tool"] not in named:
        words = f"the proposal names the tools {', '.join(named)[:200]}, and this is {payload['tool'][:80]}"
        advice = "propose the call with its tool, and have that reviewed"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="tool", advice=advice)
    if digest_json({"tool": payload["tool"], "arguments": payload["arguments"]}) != payload["input_sha256"]:
        raise EventRefused("EVIDENCE_INVALID", "it is not that of tool and arguments", place="input_sha256")
    risk = worst_risk(payload["risk"]["declared"], payload["risk"]["derived"])
    if payload["repeatable"] and is_risk_from(risk, "high"):
        raise EventRefused("STATE_VIOLATION", f"a call of {risk} risk is not repeatable", place="repeatable")
    attempt, retry_of = 1, event.refs.get("retry_of")
    last = trace.failed_calls.get((proposal.id, payload["input_sha256"]))
    if retry_of is None and last is not None:
        words = "the same call has failed before"
        raise EventRefused("STATE_VIOLATION", words, place="retry_of", advice=f"name the failed intent: {last}")
    if retry_of is not None:
        old = trace.find(trace.intents, retry_of, "retry_of")
        if old.end is None or old.code == "COMPLETED" or old.proposal != proposal.id:
            words = "only a call of the same proposal that has failed can be tried again"
            raise EventRefused("STATE_VIOLATION", words, place="retry_of")
        attempt = old.attempt + 1
        if attempt > trace.bounds.attempts:
            words = f"the call has failed {old.attempt} times, as often as the bounds allow"
            advice = "propose another way, or claim the failure"
            raise EventRefused("STATE_VIOLATION", words, place="retry_of", advice=advice)

    def apply() -> None:
        trace.intents[event.id] = IntentStanding(
            id=event.id,
            agent=event.agent,
            proposal=proposal.id,
            tool=payload["tool"],
            input_sha256=payload["input_sha256"],
            risk=risk,
            payload=payload,
            retry_of=retry_of,
            attempt=attempt,
        )
        trace.open_intents[event.id] = None
        for digest, _ in blob_references(payload["arguments"]):  # Long texts: they are input of the call, too.
            trace.add_artifact(digest, ARTIFACT_INPUT)

    return FoldStep("executing", apply)


def judge_intent_reviewed(trace: ProtocolTrace, event: Event) -> FoldStep:
    intent = trace.find(trace.intents, event.refs["intent"], "intent")
    if intent.start is not None or intent.end is not None:
        raise EventRefused("STATE_VIOLATION", "the call has begun: it is too late to review it", place="intent")
    verdict = event.payload["verdict"]
    others = len(trace.open_intents) - (intent.id in trace.open_intents)
    after = trace.state
    if verdict == "blocked" and trace.state == "executing" and trace.may_claim and not others:
        after = "claiming"

    def apply() -> None:
        intent.reviews[event.agent] = (verdict, event.id)
        if intent.standing(trace.critics) == "blocked":
            trace.open_intents.pop(intent.id, None)
        else:
            trace.open_intents[intent.id] = None

    return FoldStep(after, apply)


def needs_review(trace: ProtocolTrace, intent: IntentStanding, risk: str | None = None) -> bool:
    """Whether a critic must approve an intent before it starts. `risk` may make it worse."""
    return is_risk_from(worst_risk(intent.risk, risk), trace.bounds.review_from)


def find_approval(trace: ProtocolTrace, intent: IntentStanding) -> str | None:
    """Return the id of the latest review by which all critics approve an intent; None where they do not."""
    if intent.standing(trace.critics) != "approved":
        return None
    return [intent.reviews[agent][1] for agent in trace.critics][-1]


def judge_tool_execution_started(trace: ProtocolTrace, event: Event) -> FoldStep:
    intent = trace.find(trace.intents, event.refs["intent"], "intent")
    proposal = trace.proposals[intent.proposal]
    if intent.agent != event.agent:
        raise EventRefused("ROLE_POLICY_VIOLATION", f"it is an intent of {intent.agent}", place="intent")
    if intent.start is not None or intent.end is not None:
        raise EventRefused("STATE_VIOLATION", "the call has begun before; a retry is a new intent", place="intent")
    if not proposal.is_executable(trace.critics):
        raise EventRefused("STATE_VIOLATION", "its proposal may not be executed any more", place="intent")
    standing = intent.standing(trace.critics)
    if standing == "blocked":
        raise EventRefused("ROLE_POLICY_VIOLATION", "a critic blocks the intent", place="intent")
    if needs_review(trace, intent) and standing != "approved":
        words = f"a call of {intent.risk} risk needs the approval of every critic"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="review")
    review = event.refs.get("review")
    approvals = {found for verdict, found in intent.reviews.values() if verdict == "approved"}
    if review is not None and review not in approvals:
        raise EventRefused("ROLE_POLICY_VIOLATION", "it is no valid approval of this intent", place="review")
    if review is None and needs_review(trace, intent):
        raise EventRefused("ROLE_POLICY_VIOLATION", "the start must name the approval", place="review")
    if event.payload["input"]["blob"]["digest"] != intent.input_sha256:
        raise EventRefused("EVIDENCE_INVALID", "it is not the call that the intent has announced", place="input")
    time_field(event.payload["until"], "until")
    _check_budget(trace, event)
    limit = trace.bounds.tool_calls
    if limit is not None and len(trace.executions) >= limit:
        raise EventRefused("STATE_VIOLATION", f"the task allows {limit} calls, and they were made")

    def apply() -> None:
        intent.start = event.id
        trace.executions[event.id] = ExecutionStanding(
            id=event.id,
            intent=intent.id,
            agent=event.agent,
            decision=event.refs["decision"],
            until=event.payload["until"],
            payload=event.payload,
            is_approved=standing == "approved",
        )
        trace.running[event.id] = None
        for digest, _ in blob_references(event.payload["input"]):
            trace.add_artifact(digest, ARTIFACT_INPUT)

    return FoldStep(trace.state, apply)


def _check_budget(trace: ProtocolTrace, event: Event) -> None:
    """Raise if the time that the task allows had passed when the call was started."""
    budget = trace.bounds.time_budget
    if budget is None or not event.at:
        return
    spent = datetime.fromisoformat(event.at) - datetime.fromisoformat(trace.began)
    if spent > timedelta(seconds=budget) + CLOCK_SLACK:
        raise EventRefused("STATE_VIOLATION", f"the task allows {budget} seconds, and they had passed", place="at")


def _find_running(trace: ProtocolTrace, event: Event, intent: IntentStanding) -> ExecutionStanding:
    execution = trace.find(trace.executions, event.refs["start"], "start")
    if execution.intent != intent.id or execution.end is not None:
        raise EventRefused("STATE_VIOLATION", "the call has ended before, or is of another intent", place="start")
    return execution


def judge_tool_execution_completed(trace: ProtocolTrace, event: Event) -> FoldStep:
    intent = trace.find(trace.intents, event.refs["intent"], "intent")
    execution = _find_running(trace, event, intent)
    if execution.agent != event.agent:
        raise EventRefused("ROLE_POLICY_VIOLATION", f"{execution.agent} made the call", place="start")

    def apply() -> None:
        execution.exit_code = event.payload["exit_code"]
        trace.may_claim = True
        output = event.payload["output"]
        trace.cut.update(output[name]["blob"]["digest"] for name in event.payload["cut"] if name in output)
        _end(trace, event, intent, execution, "COMPLETED", ARTIFACT_COMPLETED)

    return FoldStep("claiming", apply)


def judge_tool_execution_failed(trace: ProtocolTrace, event: Event) -> FoldStep:
    intent = trace.find(trace.intents, event.refs["intent"], "intent")
    code = event.payload["code"]
    execution = None
    if "start" in event.refs:
        execution = _find_running(trace, event, intent)
        if code == "REFUSED":
            raise EventRefused("STATE_VIOLATION", "a call that was refused has no start", place="code")
        # Any executor may give up a call whose runner is gone; only its own executor knows how it ended.
        if execution.agent != event.agent and code != "OUTCOME_UNKNOWN":
            raise EventRefused("ROLE_POLICY_VIOLATION", f"{execution.agent} made the call", place="start")
        until = datetime.fromisoformat(execution.until) - CLOCK_SLACK
        if execution.agent != event.agent and event.at and datetime.fromisoformat(event.at) < until:
            words = f"{execution.agent} may still be making the call, until {execution.until}"
            raise EventRefused("STATE_VIOLATION", words, place="start")
    elif code != "REFUSED":
        raise EventRefused("STATE_VIOLATION", f"{code} is the end of a call that has started", place="code")
    elif intent.start is not None or intent.end is not None:
        raise EventRefused("STATE_VIOLATION", "the call was begun, or ended before", place="intent")
    elif intent.agent != event.agent:
        raise EventRefused("ROLE_POLICY_VIOLATION", f"it is an intent of {intent.agent}", place="intent")
    others = len(trace.open_intents) - (intent.id in trace.open_intents)
    runs = len(trace.running) - (execution is not None) > 0
    after = trace.state
    if trace.state == "executing":
        if intent.attempt >= trace.bounds.attempts or (trace.may_claim and not others):
            after = "claiming"
        else:
            after = trace.early_state(executable=trace.executable, live=trace.live, runs=runs)

    def apply() -> None:
        trace.failed_calls[intent.proposal, intent.input_sha256] = intent.id
        trace.may_claim = trace.may_claim or intent.attempt >= trace.bounds.attempts
        _end(trace, event, intent, execution, code, ARTIFACT_FAILED)

    return FoldStep(after, apply)


def _end(
    trace: ProtocolTrace, event: Event, intent: IntentStanding, execution: ExecutionStanding | None, code: str, how: int
) -> None:
    """Note the end of a call, and its outputs."""
    intent.end, intent.code = event.id, code
    trace.proposals[intent.proposal].ends += 1
    trace.open_intents.pop(intent.id, None)
    outputs = {name: digest for name, item in event.payload["output"].items() for digest, _ in blob_references(item)}
    if execution is not None:
        execution.end, execution.code, execution.outputs = event.id, code, outputs
        trace.running.pop(execution.id, None)
    for digest in outputs.values():
        trace.add_artifact(digest, how)
    # They waited for the end: what a call leaves is as good as the call.
    for digest in execution.recorded if execution is not None else ():
        _add_recorded(trace, digest, is_failed=how == ARTIFACT_FAILED)


def judge_artifact_recorded(trace: ProtocolTrace, event: Event) -> FoldStep:
    execution = None
    if "execution" in event.refs:
        execution = trace.find(trace.executions, event.refs["execution"], "execution")

    def apply() -> None:
        for digest, _ in blob_references(event.payload["blob"]):
            trace.recorded[digest] = event.payload["name"]
            if execution is not None:
                execution.recorded.append(digest)
            if execution is None or execution.end is not None:
                is_failed = execution is not None and execution.code != "COMPLETED"
                _add_recorded(trace, digest, is_failed=is_failed)

    return FoldStep(trace.state, apply)


def _add_recorded(trace: ProtocolTrace, digest: str, *, is_failed: bool) -> None:
    """Note an artifact that was recorded. Recording an input, or what a failed call left, makes it no evidence."""
    known = trace.artifacts.get(digest, 0)
    if is_failed:
        trace.add_artifact(digest, ARTIFACT_FAILED)
    elif known & (ARTIFACT_COMPLETED | ARTIFACT_RECORDED) or not known & (ARTIFACT_INPUT | ARTIFACT_FAILED):
        trace.add_artifact(digest, ARTIFACT_RECORDED)
