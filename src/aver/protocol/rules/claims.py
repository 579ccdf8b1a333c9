"""Claims, challenges and rulings: the evidence guard, and who may end a dispute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from aver.gate.action import Action
from aver.keys.statement import Statement
from aver.protocol.events import OPERATOR, Event
from aver.protocol.rules.check_words import describe_item, show_value
from aver.protocol.rules.step import EventRefused, FoldStep
from aver.protocol.standings import (
    ARTIFACT_COMPLETED,
    ARTIFACT_FAILED,
    ARTIFACT_INPUT,
    ARTIFACT_RECORDED,
    ChallengeStanding,
    ClaimStanding,
)
from aver.protocol.statements import APPROVAL_PURPOSE, digest_json, find_statements

if TYPE_CHECKING:
    from aver.protocol.trace import ProtocolTrace

DISPUTE_TOOL = "aver-protocol-dispute"
"""The tool of the action that stands for a dispute, where a person is asked to rule."""

ITEMS_SHOWN = 8
"""Items of evidence that a person is told of, from either side. `aver show` has all of them."""

_EVIDENCE_BY_ABOUT = {
    "success": ARTIFACT_COMPLETED | ARTIFACT_RECORDED,
    "failure": ARTIFACT_COMPLETED | ARTIFACT_RECORDED | ARTIFACT_FAILED,
}
"""How an artifact must have come into the trace to be evidence. Inputs do not count."""


def check_evidence(trace: ProtocolTrace, evidence: Iterable[Mapping[str, Any]], about: str, *, least: int) -> None:
    """Raise `EventRefused` unless evidence is of this trace, of the right kind, and enough: the evidence guard.

    Whether the bytes of an artifact are still there is not looked at. The audit finds out.
    """
    named = set()
    for index, item in enumerate(evidence):
        where = f"evidence[{index}]"
        execution = None
        if "execution" in item:
            execution = trace.find(trace.executions, item["execution"], f"{where}.execution")
            if execution.end is None:
                raise EventRefused("STATE_VIOLATION", "the call has not ended", place=f"{where}.execution")
            if about == "success" and execution.code != "COMPLETED":
                raise EventRefused("CLAIM_UNPROVEN", "the call did not complete", place=f"{where}.execution")
        digest = item.get("artifact")
        if digest is None:
            continue
        how = trace.artifacts.get(digest, 0)
        if how & ARTIFACT_INPUT:
            how &= ~ARTIFACT_RECORDED  # Whether it was recorded before it was used, or after: the executor chose it.
        if not how & _EVIDENCE_BY_ABOUT[about]:
            words = "it is no output of a call of this trace that has completed, and was not recorded in it"
            raise EventRefused("CLAIM_UNPROVEN", words, place=f"{where}.artifact")
        if execution is not None and digest not in (*execution.outputs.values(), *execution.recorded):
            words = "it is no output of that call, and was not recorded for it"
            raise EventRefused("CLAIM_UNPROVEN", words, place=f"{where}.artifact")
        named.add(digest)
    if len(named) < least:
        words = f"a claim names at least {least} artifact(s) of this trace; this one names {len(named)}"
        raise EventRefused("CLAIM_UNPROVEN", words, place="evidence")


def judge_claim_issued(trace: ProtocolTrace, event: Event) -> FoldStep:
    payload, proposal = event.payload, trace.find(trace.proposals, event.refs["proposal"], "proposal")
    if not proposal.ends:
        raise EventRefused("STATE_VIOLATION", "no call of this proposal has ended", place="proposal")
    check_evidence(trace, payload["evidence"], payload["about"], least=trace.bounds.evidence_min)
    _check_not_refuted(trace, payload["text"], payload["evidence"])

    def apply() -> None:
        trace.claims[event.id] = ClaimStanding(
            id=event.id,
            agent=event.agent,
            proposal=proposal.id,
            about=payload["about"],
            text=payload["text"],
            confidence=payload["confidence"],
            evidence=tuple(payload["evidence"]),
            worded_by=event.id,
            speaker=event.agent,
        )

    return FoldStep(trace.state, apply)


def _digest_words(text: str, evidence: Iterable[Mapping[str, Any]]) -> str:
    return digest_json({"text": text, "evidence": list(evidence)})


def _check_not_refuted(trace: ProtocolTrace, text: str, evidence: Iterable[Mapping[str, Any]]) -> None:
    """Raise for words and evidence against which a person has upheld a challenge. Saying them again changes nothing."""
    if trace.refuted and _digest_words(text, evidence) in trace.refuted:
        words = "a person has upheld a challenge to these very words, on this very evidence"
        raise EventRefused("STATE_VIOLATION", words, place="text", advice="word it anew, or bring other evidence")


def judge_claim_challenged(trace: ProtocolTrace, event: Event) -> FoldStep:
    payload, claim = event.payload, trace.find(trace.claims, event.refs["claim"], "claim")
    if claim.standing == "retracted":
        raise EventRefused("STATE_VIOLATION", "the claim was taken back", place="claim")
    check_evidence(trace, payload["evidence"], "failure", least=0)

    def apply() -> None:
        trace.challenges[event.id] = ChallengeStanding(
            event.id, claim.id, event.agent, payload["reason"], tuple(payload["evidence"])
        )
        claim.challenges.append(event.id)
        claim.open_challenges += 1
        claim.standing = "disputed"
        trace.disputes += 1

    return FoldStep(trace.state, apply)


def judge_claim_revised(trace: ProtocolTrace, event: Event) -> FoldStep:
    payload, claim = event.payload, trace.find(trace.claims, event.refs["claim"], "claim")
    if claim.standing == "retracted":
        raise EventRefused("STATE_VIOLATION", "the claim was taken back", place="claim")
    if not payload["retracted"]:
        check_evidence(trace, payload["evidence"], claim.about, least=trace.bounds.evidence_min)
        _check_not_refuted(trace, payload["text"], payload["evidence"])

    def apply() -> None:
        claim.worded_by = event.id
        if not payload["retracted"]:
            claim.text, claim.confidence, claim.speaker = payload["text"], payload["confidence"], event.agent
            claim.evidence = tuple(payload["evidence"])
            # A ruling was about the old words. An open challenge stays open until its critic withdraws it.
            claim.standing = "disputed" if claim.open_challenges else "issued"
            return
        claim.standing = "retracted"
        for challenge in map(trace.challenges.__getitem__, claim.challenges):
            if challenge.standing == "open":
                challenge.standing = "moot"
                trace.disputes -= 1
        claim.open_challenges = 0

    return FoldStep(trace.state, apply)


def dispute_action(trace: ProtocolTrace, challenge: ChallengeStanding) -> Action:
    """Return the action that a person rules on: letting the claim stand against a challenge.

    Its digest is the dispute's digest: it names the trace, the claim as it is worded now, and the challenge.
    """
    claim = trace.claims[challenge.claim]
    return Action(
        type="decision",
        tool=DISPUTE_TOOL,
        arguments={
            "trace": trace.trace,
            "claim": claim.id,
            "worded_by": claim.worded_by,
            "text": claim.text,
            "challenge": challenge.id,
            "reason": challenge.reason,
        },
        # The digest does not cover the description: the ids in the arguments name all that it tells.
        description=_describe_dispute(claim, challenge),
        caller=OPERATOR,
        session=trace.trace,
        call_id=challenge.id,
    )


def _describe_dispute(claim: ClaimStanding, challenge: ChallengeStanding) -> str:
    """Tell a person who claims, who challenges, on which evidence, and what an answer means."""
    said = []
    for agent, does, evidence in (
        (claim.speaker, f"claims it with confidence {show_value(claim.confidence)}", claim.evidence),
        (challenge.agent, "challenges it", challenge.evidence),
    ):
        items = "; ".join(describe_item(item) for item in evidence[:ITEMS_SHOWN])
        more = f"; and {len(evidence) - ITEMS_SHOWN} more" if len(evidence) > ITEMS_SHOWN else ""
        said.append(f"{agent} {does}, {f'on {items}{more}' if items else 'without evidence'}.")
    answers = "Approve to let the claim stand and dismiss the challenge; deny to uphold the challenge."
    return " ".join((*said, answers))


def judge_challenge_resolved(trace: ProtocolTrace, event: Event) -> FoldStep:
    challenge = trace.find(trace.challenges, event.refs["challenge"], "challenge")
    outcome = event.payload["outcome"]
    if challenge.standing != "open":
        raise EventRefused("STATE_VIOLATION", f"the challenge is {challenge.standing}", place="challenge")
    if event.role == OPERATOR:
        _check_ruling(trace, event, challenge, outcome)
    elif outcome != "withdrawn" or challenge.agent != event.agent or "approval" in event.refs or _find_votes(event):
        words = "a critic can withdraw its own challenge; a person rules on others"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="outcome")

    def apply() -> None:
        claim = trace.claims[challenge.claim]
        challenge.standing = outcome
        claim.open_challenges -= 1
        trace.disputes -= 1
        if outcome == "upheld":
            claim.standing = "refuted"
            trace.refuted.add(_digest_words(claim.text, claim.evidence))
        elif claim.standing != "refuted":
            claim.standing = "disputed" if claim.open_challenges else "settled"

    return FoldStep(trace.state, apply)


def _check_ruling(trace: ProtocolTrace, event: Event, challenge: ChallengeStanding, outcome: str) -> None:
    """Raise unless people's signed votes on this very dispute are beside a ruling.

    Who may vote, and how many must, is recorded with the request: the approvals' own check judges that.
    """
    word = {"dismissed": "approve", "upheld": "deny"}.get(outcome)
    votes = _find_votes(event)
    digest = dispute_action(trace, challenge).digest
    if word is None or "approval" not in event.refs or not votes or len(votes) != len(event.statements):
        raise EventRefused("ROLE_POLICY_VIOLATION", "a ruling needs the signed vote of a person", place="approval")
    for vote in votes:
        told = (vote.content.get("digest"), vote.content.get("decision"), vote.content.get("ledger"))
        if told != (digest, word, trace.place.ledger) or not vote.signatures:
            raise EventRefused("EVIDENCE_INVALID", "a vote is not about this dispute", place="authority.chain")


def _find_votes(event: Event) -> list[Statement]:
    return find_statements(event.statements, APPROVAL_PURPOSE)
