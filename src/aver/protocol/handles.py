"""One handle for each role: the events of that role as methods.

A handle speaks for one agent whose key is in this home. Every method returns the sealed event, or raises
`EventRefused` where it may not be said now. Ids are those of events: `event.id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from aver.capsule.blobs import Blob
from aver.errors import BadInput
from aver.protocol.calls import BegunCall, begin_call, finish_call, mask_bytes, sign_intent
from aver.protocol.events import Event
from aver.protocol.rules.step import EventRefused
from aver.protocol.runner import ToolFailure, ToolResult, ToolRunner
from aver.protocol.statements import SeenHead, SignedReport, sign_report
from aver.protocol.tools.marked_processes import mark_processes

if TYPE_CHECKING:
    from aver.keys.statement import Statement
    from aver.protocol.runner import AuditEngine, AuditOutcome
    from aver.protocol.session import ProtocolSession
    from aver.protocol.statements import ContributionFile
    from aver.protocol.under_proposal import UnderProposal


class RoleHandle:
    """The base of the handles: who speaks, in which session.

    With `seen`, the number of events that the speaker has seen, nothing is said once another process has spoken for
    the agent.
    """

    def __init__(self, session: ProtocolSession, agent: str, *, seen: int | None = None) -> None:
        self.session = session
        self.agent = agent
        self._seen = seen

    def _say(self, event: str, payload: Mapping[str, Any], artifacts: Iterable[Blob] = (), **refs: str | None) -> Event:
        given = {name: value for name, value in refs.items() if value is not None}
        return self.session.seal_event(
            self.agent, event, payload, refs=given, artifacts=tuple(artifacts), seen=self._seen
        )

    def _revise_claim(
        self, claim: str, text: str, *, confidence: float, evidence: Iterable[Mapping[str, Any]]
    ) -> Event:
        payload = {"retracted": False, "text": text, "confidence": confidence, "evidence": list(evidence)}
        return self._say("claim_revised", payload, claim=claim)


class PlannerHandle(RoleHandle):
    """The planner: proposals, and revisions of claims."""

    def propose(
        self,
        objective: str,
        *,
        assumptions: Iterable[str] = (),
        required_tools: Iterable[str] = (),
        expected_evidence: Iterable[Mapping[str, Any]] = (),
        revises: str | None = None,
    ) -> Event:
        """Propose a way to the objective, or another wording of an earlier proposal."""
        payload = {
            "objective": objective,
            "assumptions": list(assumptions),
            "required_tools": list(required_tools),
            "expected_evidence": list(expected_evidence),
        }
        return self._say("proposal_created", payload, revises=revises)

    def revise(self, claim: str, text: str, *, confidence: float, evidence: Iterable[Mapping[str, Any]]) -> Event:
        """Word a claim anew."""
        return self._revise_claim(claim, text, confidence=confidence, evidence=evidence)


class CriticHandle(RoleHandle):
    """The critic: reviews, challenges and their withdrawal."""

    def review(
        self,
        subject: str,
        verdict: str,
        *,
        rationale: str,
        conditions: Iterable[Mapping[str, Any]] = (),
        risk: str | None = None,
    ) -> Event:
        """Review a proposal (`approved`, `conditional`, `rejected`) or an intent (`approved`, `blocked`)."""
        self.session.catch_up()
        if subject in self.session.fold.intents:
            if list(conditions) or risk is not None:
                raise BadInput("the review of an intent has no conditions and no risk")
            return self._say("intent_reviewed", {"verdict": verdict, "rationale": rationale}, intent=subject)
        payload = {"verdict": verdict, "rationale": rationale, "risk": risk, "conditions": list(conditions)}
        return self._say("proposal_reviewed", payload, proposal=subject)

    def challenge(self, claim: str, reason: str, *, evidence: Iterable[Mapping[str, Any]] = ()) -> Event:
        """Dispute a claim, with reasons or with predicates that speak against it."""
        return self._say("claim_challenged", {"reason": reason, "evidence": list(evidence)}, claim=claim)

    def withdraw(self, challenge: str, reason: str) -> Event:
        """Take back an own challenge."""
        payload = {"outcome": "withdrawn", "rationale": reason}
        return self._say("challenge_resolved", payload, challenge=challenge)


class ExecutorHandle(RoleHandle):
    """The executor: intents, calls, artifacts, claims and the final statement."""

    def intend(
        self,
        proposal: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        justification: str,
        risk: str | None = None,
        repeatable: bool = False,
        retry_of: str | None = None,
    ) -> Event:
        """Say which call comes next. `risk` can only raise the class that Aver derives."""
        call = self._runner().describe(tool, arguments)
        event = sign_intent(
            self.session,
            self.agent,
            proposal,
            tool,
            arguments,
            justification=justification,
            risk=risk,
            repeatable=repeatable,
            retry_of=retry_of,
            call=call,
            seen=self._seen,
        )
        self.session.keep_arguments(event.id, arguments)
        return event

    def run(self, intent: str) -> Event:
        """Have the gate judge an intent, make its call, and return the event of its end.

        Where the gate refuses, that is `tool_execution_failed` with the code `REFUSED`. Where a person must approve
        first and nobody waits, this raises `Refused` with `APPROVAL_PENDING`, and the intent can be run again.
        """
        begun = self.begin(intent)
        return begun if isinstance(begun, Event) else self.finish(begun)

    def begin(self, intent: str, *, wait: float | None = None) -> BegunCall | Event:
        """Have the gate judge an intent, and seal the start of its call: the first half of `run`.

        Returns the event of the end where the gate refuses. `wait` is for how many seconds a person is waited for;
        None: as long as the session and the bounds say. Raises what `run` raises.
        """
        runner, session = self._runner(), self.session
        with session.hold_fold() as fold:
            standing = fold.find(fold.intents, intent, "intent")
        arguments = session.find_arguments(standing)
        call = runner.describe(standing.tool, arguments)
        return begin_call(session, self.agent, intent, arguments, call, wait=wait)

    def finish(self, begun: BegunCall) -> Event:
        """Make a call that `begin` has started, and return the event of its end: the second half of `run`."""
        try:
            result = self._make_call(self._runner(), begun)
        except BaseException:
            begun.held.close()  # Nobody knows how it ended. Who resumes the trace may say so.
            raise
        return finish_call(self.session, self.agent, begun, result)

    def _make_call(self, runner: ToolRunner, begun: BegunCall) -> ToolResult | ToolFailure:
        bounds = self.session.fold.bounds
        try:
            with mark_processes(begun.start.id):
                return runner.run(
                    begun.intent.tool, begun.arguments, seconds=bounds.tool_seconds, output_max=bounds.output_max
                )
        except Exception as error:  # noqa: BLE001 - the call has begun, so its end must be sealed
            return ToolFailure("ERROR", f"the tool broke down: {type(error).__name__}: {error}"[:1000])

    def record(self, name: str, data: bytes, media: str, *, execution: str | None = None) -> Event:
        """Add an artifact to the trace. Secrets in a text are masked."""
        blob = Blob(mask_bytes(data), media)
        return self._say("artifact_recorded", {"name": name, "blob": blob.reference}, [blob], execution=execution)

    def claim(
        self,
        text: str,
        *,
        confidence: float,
        evidence: Iterable[Mapping[str, Any]],
        about: str = "success",
        proposal: str | None = None,
    ) -> Event:
        """Claim something, on evidence of this trace. Without `proposal`: that of the last call that ended."""
        payload = {"text": text, "confidence": confidence, "about": about, "evidence": list(evidence)}
        return self._say("claim_issued", payload, proposal=proposal or self._find_last_proposal())

    def revise(self, claim: str, text: str, *, confidence: float, evidence: Iterable[Mapping[str, Any]]) -> Event:
        """Word a claim anew."""
        return self._revise_claim(claim, text, confidence=confidence, evidence=evidence)

    def retract(self, claim: str, reason: str) -> Event:
        """Take a claim back. Challenges to it are moot then."""
        payload = {"retracted": True, "text": reason, "confidence": None, "evidence": []}
        return self._say("claim_revised", payload, claim=claim)

    def conclude(
        self, text: str, *, unmet: Iterable[str] = (), claims: Iterable[Mapping[str, str]] | None = None
    ) -> Event:
        """Sign the final statement: every claim with its standing, and what was not met.

        `claims` are those that the executor has seen. If one stands otherwise by now, the statement is refused. Without
        it, the statement lists them as they stand now.
        """
        if claims is None:
            with self.session.hold_fold() as fold:
                claims = fold.list_claims()
        payload = {"text": text, "claims": [dict(claim) for claim in claims], "unmet": list(unmet)}
        return self._say("final_statement_signed", payload)

    def under(self, proposal: str) -> UnderProposal:
        """Return a run for the adapters: every call that they gate and record is a call under this proposal."""
        from aver.protocol.under_proposal import UnderProposal

        return UnderProposal(self, proposal)

    def _runner(self) -> ToolRunner:
        if self.session.tools is None:
            raise BadInput("the session has no tools", advice="open it with tools=")
        return self.session.tools

    def _find_last_proposal(self) -> str:
        with self.session.hold_fold() as fold:
            for intent in reversed(fold.intents.values()):
                if intent.end is not None:
                    return intent.proposal
        raise EventRefused("STATE_VIOLATION", "no call of this trace has ended", place="proposal")


class AuditorHandle(RoleHandle):
    """The auditor: verification runs."""

    def audit(self, *, rerun: bool = False) -> AuditOutcome:
        """Verify the trace, seal the report, and close the chain. `rerun` repeats the repeatable calls.

        Returns what the audit found. The trace is `completed` or `failed` then.
        """
        session = self.session
        start = self._say("verification_run_started", {"profile": session.fold.profile})
        outcome, payload, report, statement = self._judge(SeenHead(start.sequence + 1, start.hash), rerun=rerun)
        session.seal_event(
            self.agent,
            "verification_run_completed",
            payload,
            refs={"start": start.id},
            artifacts=[report],
            statements=(statement,),
        )
        session.close_chain()
        return outcome

    def contribute(self) -> ContributionFile:
        """Sign the next event of an audit for the operator, who seals it elsewhere. Nothing is appended here.

        The first time, that is the start of the run. On a later copy of the trace, which has the start, it is its end,
        with the report. Raises `EventRefused` where no audit is due.
        """
        session = self.session
        with session.hold_fold() as fold:
            begun = [start for start, (_, auditor) in fold.runs.items() if auditor == self.agent]
            if not begun:
                return session.contribute(self.agent, "verification_run_started", {"profile": fold.profile})
            head = fold.head
            assert head is not None  # There is an event, the start.
            _, payload, report, statement = self._judge(head, rerun=False)
            refs = {"start": begun[-1]}
            name = "verification_run_completed"
            return session.contribute(self.agent, name, payload, refs=refs, artifacts=[report], more=(statement,))

    def _judge(self, head: SeenHead, *, rerun: bool) -> tuple[AuditOutcome, dict[str, Any], Blob, Statement]:
        """Judge the trace up to a head: what was found, the payload of the end, the report, and the signed word."""
        session = self.session
        engine = session.audit_engine or _load_audit_engine()
        outcome: AuditOutcome = engine(session, rerun=rerun)
        report = Blob(outcome.report, "application/json")
        said = SignedReport(session.place, head, session.fold.profile, outcome.status, report.digest)
        payload: dict[str, Any] = {
            "status": outcome.status,
            "report": report.reference,
            "head": head.to_dict(),
            "keys": {"known": list(outcome.known), "unknown": list(outcome.unknown)},
        }
        if outcome.rerun is not None:
            payload["rerun"] = outcome.rerun
        return outcome, payload, report, sign_report(session.find_statement_signer(self.agent), said)


def _load_audit_engine() -> AuditEngine:
    """Load the engine that judges a trace: most sessions audit nothing."""
    from importlib import import_module

    engine: AuditEngine = import_module("aver.protocol.judgement.audit").audit_trace
    return engine
