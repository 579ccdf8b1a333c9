"""Traces of the protocol in memory: participants with keys of their own, and events sealed without a ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from aver import clock
from aver.capsule.blobs import Blob
from aver.capsule.canonical import canonical_json
from aver.capsule.sealed import Sealed, seal
from aver.keys import SeedSigner
from aver.keys.statement import Statement
from aver.protocol.bounds import Bounds
from aver.protocol.events import FORMS, OPERATOR, Event, build_event_draft, trace_chain
from aver.protocol.statements import Join, SeenHead, SignedReport, TracePlace, digest_json, sign_join, sign_report
from aver.protocol.trace import ProtocolTrace

ROLES = ("planner", "executor", "critic", "auditor")
TASK = {"objective": "count the tests"}
AGENTS = {f"agent:{role}": role for role in ROLES}


def signer_of(name: str) -> SeedSigner:
    """The same key for the same name, every time."""
    return SeedSigner(name.encode().ljust(32, b".")[:32])


class TraceInMemory:
    """A trace that is folded event by event, as a session would, with keys that are made of the agents' names."""

    def __init__(
        self,
        trace: str = "t1",
        *,
        ledger: str = "ledger-1",
        agents: Mapping[str, str] = AGENTS,
        profile: str = "default",
        bounds: Bounds | None = None,
        elsewhere: Collection[str] = (),
    ) -> None:
        self.elsewhere = elsewhere
        self.place = TracePlace(ledger, "default", trace_chain(trace))
        self.agents = dict(agents)
        self.signers = {agent: signer_of(f"{trace}:{agent}") for agent in (OPERATOR, *agents)}
        self.fold = ProtocolTrace(self.place, trace)
        self.records: list[Sealed] = []
        self.events: list[Event] = []
        payload = {
            "v": 1,
            "task": TASK,
            "task_sha256": digest_json(TASK),
            "profile": profile,
            "bounds": (bounds or Bounds()).to_dict(),
            "participants": [self.participant(agent) for agent in agents],
        }
        joins = tuple(self.join(agent, role, profile=profile) for agent, role in agents.items())
        self.initial = self.draft(OPERATOR, "session_initialized", payload, statements=joins)

    def participant(self, agent: str, role: str | None = None) -> dict[str, Any]:
        key = self.signers[agent].public
        return {
            "agent": agent,
            "role": role or self.agents[agent],
            "public_key": key.ed25519,
            "public_key_pq": key.ml_dsa_65,
            "held": "elsewhere" if agent in self.elsewhere else "here",
        }

    def join(self, agent: str, role: str, *, profile: str = "default", signer: SeedSigner | None = None) -> Statement:
        signer = signer or self.signers[agent]
        join = Join(self.place, digest_json(TASK), profile, role, agent, signer.public, "2026-01-05T09:00:00+00:00")
        return sign_join(signer, join)

    def draft(
        self,
        agent: str,
        name: str,
        payload: Mapping[str, Any],
        refs: Mapping[str, str] | None = None,
        *,
        statements: tuple[Statement, ...] = (),
        role: str | None = None,
    ) -> Event:
        """An event that was not sealed yet."""
        found = OPERATOR if agent == OPERATOR else self.agents.get(agent, FORMS[name].roles[0])
        return Event(
            id=clock.new_id(),
            trace=self.fold.trace,
            name=name,
            role=role or found,
            agent=agent,
            payload=payload,
            refs=refs or {},
            statements=statements,
        )

    def seal(self, event: Event, *, after: str | None = None, by: SeedSigner | None = None) -> Event:
        """The event with a place, a hash and a signer. Nothing is admitted."""
        signer = by or self.signers[event.agent]
        previous = self.records[-1].hash if self.records else None
        event = event._replace(signer=signer.fingerprint, before=self.fold.state)
        event = event._replace(after=after or self.fold.next_state(event))
        draft = build_event_draft(event).to_dict()
        draft["sequence"], draft["previous_hash"] = len(self.records), previous
        at = clock.now()
        draft["context"]["environment"]["aver"] |= {"v": 1, "at": at, "by": signer.fingerprint}
        record = seal(draft, signer)
        self.records.append(record)
        return event._replace(
            sequence=len(self.records) - 1,
            hash=record.hash,
            previous=previous or "",
            at=at,
            signer=signer.fingerprint,
        )

    def admit(self, event: Event) -> Event:
        sealed = self.seal(event)
        self.fold.admit(sealed)
        if sealed.sequence == 0:
            self.fold.set_operator_key(self.signers[OPERATOR].public, sealed)
        self.events.append(sealed)
        return sealed

    def begin(self) -> Event:
        return self.admit(self.initial)

    def say(self, agent: str, name: str, payload: Mapping[str, Any], **refs: str) -> Event:
        return self.admit(self.draft(agent, name, {"v": 1, **payload}, refs))

    # --- the usual events

    def propose(self, objective: str = "run them", **refs: str) -> Event:
        payload = {"objective": objective, "assumptions": [], "required_tools": [], "expected_evidence": []}
        return self.say("agent:planner", "proposal_created", payload, **refs)

    def review(self, proposal: str, verdict: str = "approved", *, by: str = "agent:critic") -> Event:
        conditions = [{"check": {"exit_code": ["==", 0]}}] if verdict == "conditional" else []
        payload = {"verdict": verdict, "rationale": "because", "risk": None, "conditions": conditions}
        return self.say(by, "proposal_reviewed", payload, proposal=proposal)

    def intend(self, proposal: str, *, risk: str = "low", arguments: Any = None, **refs: str) -> Event:
        call = {"tool": "pytest", "arguments": arguments or {}}
        payload = {
            **call,
            "input_sha256": digest_json(call),
            "risk": {"declared": None, "derived": risk},
            "justification": "to count",
            "repeatable": False,
        }
        return self.say("agent:executor", "tool_intent_signed", payload, proposal=proposal, **refs)

    def review_intent(self, intent: str, verdict: str = "approved", *, by: str = "agent:critic") -> Event:
        return self.say(by, "intent_reviewed", {"verdict": verdict, "rationale": "because"}, intent=intent)

    def start(self, intent: str, **refs: str) -> Event:
        payload = {
            "input": self.find_input(intent).reference,
            "workspace": {"revision": None, "change": None},
            "until": "2026-01-05T09:10:00+00:00",
        }
        refs = {"decision": clock.new_id(), **refs}
        return self.say("agent:executor", "tool_execution_started", payload, intent=intent, **refs)

    def find_input(self, intent: str) -> Blob:
        """The call that an intent has announced, as an artifact. Any call stands for that of an unknown intent."""
        known = self.fold.intents.get(intent)
        said = {"tool": "pytest", "arguments": {}} if known is None else known.payload
        return Blob(canonical_json({"tool": said["tool"], "arguments": said["arguments"]}), "application/json")

    def complete(self, start: Event, output: bytes = b"3 passed", exit_code: int = 0) -> Event:
        payload = {"exit_code": exit_code, "output": {"stdout": Blob(output, "text/plain").reference}, "cut": []}
        refs = {"intent": start.refs["intent"], "start": start.id}
        return self.say("agent:executor", "tool_execution_completed", payload, **refs)

    def fail(self, intent: str, code: str = "ERROR", start: str | None = None, output: bytes = b"") -> Event:
        outputs = {"stderr": Blob(output, "text/plain").reference} if output else {}
        refs = {"intent": intent, **({"start": start} if start else {})}
        payload = {"code": code, "words": "it went wrong", "output": outputs}
        return self.say("agent:executor", "tool_execution_failed", payload, **refs)

    def claim(self, proposal: str, artifact: bytes = b"3 passed", about: str = "success") -> Event:
        payload = {
            "text": "three tests pass",
            "confidence": 0.9,
            "about": about,
            "evidence": [{"artifact": Blob(artifact).digest, "check": {"text": {"contains": "3 passed"}}}],
        }
        return self.say("agent:executor", "claim_issued", payload, proposal=proposal)

    def challenge(self, claim: str, *, by: str = "agent:critic") -> Event:
        return self.say(by, "claim_challenged", {"reason": "I count two", "evidence": []}, claim=claim)

    def revise(self, claim: str, *, retracted: bool = False, artifact: bytes = b"3 passed") -> Event:
        evidence = [] if retracted else [{"artifact": Blob(artifact).digest}]
        confidence = None if retracted else 0.5
        payload = {"retracted": retracted, "text": "again", "confidence": confidence, "evidence": evidence}
        return self.say("agent:executor", "claim_revised", payload, claim=claim)

    def withdraw(self, challenge: str) -> Event:
        payload = {"outcome": "withdrawn", "rationale": "I was wrong"}
        return self.say("agent:critic", "challenge_resolved", payload, challenge=challenge)

    def conclude(self) -> Event:
        payload = {"text": "done", "claims": self.fold.list_claims(), "unmet": []}
        return self.say("agent:executor", "final_statement_signed", payload)

    def audit(self, status: str = "pass") -> Event:
        start = self.say("agent:auditor", "verification_run_started", {"profile": self.fold.profile})
        report = Blob(b"{}", "application/json")
        head = SeenHead(start.sequence + 1, start.hash)
        said = SignedReport(self.place, head, self.fold.profile, status, report.digest)
        payload = {
            "v": 1,
            "status": status,
            "report": report.reference,
            "head": head.to_dict(),
            "keys": {"known": [], "unknown": []},
        }
        statement = sign_report(self.signers["agent:auditor"], said)
        refs = {"start": start.id}
        return self.admit(
            self.draft("agent:auditor", "verification_run_completed", payload, refs, statements=(statement,))
        )

    # --- further on

    def reach_executing(self) -> str:
        """Go on to an approved proposal, and return its id."""
        self.begin()
        proposal = self.propose()
        self.review(proposal.id)
        return proposal.id

    def reach_claiming(self) -> str:
        """Go on to a call that completed, and return the id of its proposal."""
        proposal = self.reach_executing()
        self.complete(self.start(self.intend(proposal).id))
        return proposal
