"""The fold over a trace's events: which event may come next, and the state after it. No I/O, no clock.

    trace = ProtocolTrace(place, trace_id)
    after = trace.next_state(event)      # may it be said? raises EventRefused, and changes nothing
    trace.admit(event)                   # the same, and the trace goes on by it

The rules, in the order in which they are checked:

1. An id occurs once, and the event is of this trace. Its payload has the form of its schema (`read_event`).
2. The state admits the event: `ADMITS`.
3. Role guard: the table of events, the key that the agent joined by, and that key's own signature. The operator seals
   around a contribution: then the participant's statement counts, and its `seen` must be a head of this chain.
4. The rules of the event itself: order, action guard, evidence guard, finalisation guard.

States:

    initialized → planning     the first event
    planning → reviewing       the first proposal that is neither rejected nor revised
    reviewing → executing      the first proposal that every critic approves, with or without conditions
    reviewing → planning, executing → reviewing, executing → planning
                               no proposal can be executed any more, and nothing runs
    executing → claiming       a call completes, or has failed as often as the bounds allow; after that, also when no
                               intent is open, or no proposal can be executed, any more
    claiming → executing       a new intent
    claiming → auditing        the final statement
    auditing → completed, failed    by the auditor's status
    any → aborted, failed      the operator

An event costs the same whether it is the tenth or the ten thousandth: nothing is copied, and no rule walks the past.
`EventRefused` has a code of the verdict: ROLE_POLICY_VIOLATION, STATE_VIOLATION, CLAIM_UNPROVEN, REPLAY, SIG_INVALID,
KEY_RETIRED, EVIDENCE_INVALID or SCHEMA_INVALID.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from aver.errors import BadInput, Refused
from aver.keys.public_key import PublicKey
from aver.keys.ring import ROTATION_PURPOSE
from aver.keys.statement import Statement
from aver.protocol.bounds import Bounds
from aver.protocol.events import FINAL_STATES, FORMS, OPERATOR, Event, check_refs
from aver.protocol.rules import claims, end, participants, work
from aver.protocol.rules.step import EventRefused, FoldStep
from aver.protocol.standings import (
    ChallengeStanding,
    ClaimStanding,
    ExecutionStanding,
    IntentStanding,
    Participant,
    ProposalStanding,
)
from aver.protocol.statements import (
    APPROVAL_PURPOSE,
    JOIN_PURPOSE,
    REPORT_PURPOSE,
    SeenHead,
    TracePlace,
    check_signed_by,
    digest_json,
    find_artifacts,
    read_contribution,
)

_Thing = TypeVar("_Thing")

_PLANNING = frozenset({"proposal_created"})
_REVIEWING = _PLANNING | {"proposal_reviewed"}
_EXECUTING = _REVIEWING | {
    *("tool_intent_signed", "intent_reviewed", "tool_execution_started", "tool_execution_completed"),
    *("tool_execution_failed", "artifact_recorded"),
}
_CLAIMING = _EXECUTING | {
    *("claim_issued", "claim_challenged", "claim_revised", "challenge_resolved", "final_statement_signed"),
}
_ALWAYS = frozenset({"participant_joined", "session_aborted", "session_failed"})

ADMITS: Mapping[str, frozenset[str]] = {
    "initialized": frozenset({"session_initialized"}),
    "planning": _PLANNING | _ALWAYS,
    "reviewing": _REVIEWING | _ALWAYS,
    "executing": _EXECUTING | _ALWAYS,
    "claiming": _CLAIMING | _ALWAYS,
    "auditing": frozenset({"verification_run_started", "verification_run_completed"}) | _ALWAYS,
    **{state: frozenset() for state in FINAL_STATES},
}
"""The events that each state admits. A guard may still refuse one."""

_STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "session_initialized": (JOIN_PURPOSE,),
    "participant_joined": (JOIN_PURPOSE, ROTATION_PURPOSE),
    "challenge_resolved": (APPROVAL_PURPOSE,),
    "verification_run_completed": (REPORT_PURPOSE,),
}
"""The purposes of the statements that an event may have beside it, besides a contribution. Others have none."""

_RULES: Mapping[str, Callable[[ProtocolTrace, Event], FoldStep]] = {
    "session_initialized": participants.judge_session_initialized,
    "participant_joined": participants.judge_participant_joined,
    "proposal_created": work.judge_proposal_created,
    "proposal_reviewed": work.judge_proposal_reviewed,
    "tool_intent_signed": work.judge_tool_intent_signed,
    "intent_reviewed": work.judge_intent_reviewed,
    "tool_execution_started": work.judge_tool_execution_started,
    "tool_execution_completed": work.judge_tool_execution_completed,
    "tool_execution_failed": work.judge_tool_execution_failed,
    "artifact_recorded": work.judge_artifact_recorded,
    "claim_issued": claims.judge_claim_issued,
    "claim_challenged": claims.judge_claim_challenged,
    "claim_revised": claims.judge_claim_revised,
    "challenge_resolved": claims.judge_challenge_resolved,
    "final_statement_signed": end.judge_final_statement_signed,
    "verification_run_started": end.judge_verification_run_started,
    "verification_run_completed": end.judge_verification_run_completed,
    "session_aborted": end.judge_session_aborted,
    "session_failed": end.judge_session_failed,
}
"""The rule of each event."""


class ProtocolTrace:
    """A trace as far as its events have been admitted. The module docstring has the rules."""

    def __init__(self, place: TracePlace, trace: str) -> None:
        self.place = place
        self.trace = trace
        self.state: str = "initialized"
        self.task: Mapping[str, Any] = {}
        self.task_sha256 = ""
        self.profile = "default"
        self.bounds = Bounds()
        self.began = ""
        """When the first event was sealed."""
        self.ended = ""
        """When the last event was sealed, in a final state."""
        self.participants: dict[str, Participant] = {}
        """Those who may speak now, by agent; the operator is among them."""
        self.bound_keys: dict[str, Participant] = {}
        """Every key that ever joined, by fingerprint, with the participant that it belonged to."""
        self.retired: set[str] = set()
        """The fingerprints of keys that have a successor."""
        self.critics: tuple[str, ...] = ()
        self.proposals: dict[str, ProposalStanding] = {}
        self.intents: dict[str, IntentStanding] = {}
        self.executions: dict[str, ExecutionStanding] = {}
        self.claims: dict[str, ClaimStanding] = {}
        self.challenges: dict[str, ChallengeStanding] = {}
        self.artifacts: dict[str, int] = {}
        """How each artifact came into the trace, by digest: bits of this module."""
        self.recorded: dict[str, str] = {}
        """The names of the artifacts that were recorded by themselves, by digest."""
        self.cut: set[str] = set()
        """The digests of outputs of which only the beginning was kept."""
        self.running: dict[str, None] = {}
        """The executions that have started and not ended."""
        self.open_intents: dict[str, None] = {}
        """The intents that may still be executed, or are."""
        self.disputes = 0
        """Challenges that are open."""
        self.refuted: set[str] = set()
        """The digests of claims, by words and evidence, against which a person has upheld a challenge."""
        self.may_claim = False
        """Whether a call has completed, or has failed as often as the bounds allow."""
        self.final_statement: Event | None = None
        self.runs: dict[str, tuple[int, str]] = {}
        """Verification runs that have started: the sequence of the start, and the auditor."""
        self.audit: Event | None = None
        self.failed_calls: dict[tuple[str, str], str] = {}
        """The last failed intent of each call, by proposal and digest of the input."""
        self._names: dict[str, str] = {}
        """The name of each event, by id."""
        self._hashes: list[str] = []
        self.executable = 0
        """How many proposals may be executed now."""
        self.live = 0
        """How many proposals are neither rejected nor revised."""

    # --- reading

    @property
    def count(self) -> int:
        """How many events were admitted."""
        return len(self._hashes)

    @property
    def is_over(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def status(self) -> str:
        """`succeeded`, `failed`, `aborted` or `running`."""
        if self.state == "completed":
            return "succeeded"
        return self.state if self.is_over else "running"

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """Every key that the trace binds, retired ones included: records of the trace are verified by these alone."""
        return tuple(participant.key for participant in self.bound_keys.values())

    def event_name(self, event_id: str) -> str:
        """Return the name of the event with this id; empty if this trace has none."""
        return self._names.get(event_id, "")

    def has_head(self, seen: SeenHead) -> bool:
        """Whether the chain had this head once."""
        return 1 <= seen.count <= self.count and self._hashes[seen.count - 1] == seen.hash

    @property
    def head(self) -> SeenHead | None:
        """The head of the chain; None before the first event."""
        return SeenHead(self.count, self._hashes[-1]) if self._hashes else None

    def list_claims(self) -> list[dict[str, str]]:
        """Return every claim with its standing, as the final statement lists them."""
        return [{"id": claim.id, "standing": claim.standing} for claim in self.claims.values()]

    # --- going on

    def next_state(self, event: Event) -> str:
        """Return the state after an event. Raises `EventRefused` if it may not be said now."""
        return self._judge(event).after

    def admit(self, event: Event) -> None:
        """Go on by a sealed event. Raises `EventRefused`, and then nothing changes."""
        step = self._judge(event)
        if (event.before, event.after) != (self.state, step.after):
            words = f"the record says {event.before} → {event.after}; by the rules it is {self.state} → {step.after}"
            raise EventRefused("STATE_VIOLATION", words)
        if event.sequence != len(self._hashes):
            words = f"the event has the sequence {event.sequence}, and {self.count} come before it"
            raise EventRefused("SEQUENCE_GAP", words)
        step.apply()
        self._names[event.id] = event.name
        self._hashes.append(event.hash)
        self.state = step.after
        if event.name == "session_initialized":
            self.began = event.at
        if step.after in FINAL_STATES:
            self.ended = event.at

    def _judge(self, event: Event) -> FoldStep:
        if event.trace != self.trace:
            raise EventRefused("REPLAY", f"the event is of the trace {event.trace[:80]}", place="trace")
        if event.id in self._names:
            raise EventRefused("REPLAY", f"this was said before: the trace has the event {event.id}", place="id")
        if event.name not in ADMITS[self.state]:
            raise EventRefused("STATE_VIOLATION", f"{event.name} does not come in the state {self.state}")
        if event.role not in FORMS[event.name].roles:
            raise EventRefused("ROLE_POLICY_VIOLATION", f"{event.role} may not say {event.name}", place="role")
        if event.statements:  # Most events have none.
            beside = event.statements if event.contribution is None else event.statements[1:]
            if any(statement.purpose not in _STATEMENTS.get(event.name, ()) for statement in beside):
                words = f"a statement beside it does not belong to {event.name}"
                raise EventRefused("EVIDENCE_INVALID", words, place="authority.chain")
        try:
            if event.sequence < 0:  # `read_event` has checked those of a sealed event.
                check_refs(event.refs, event.name)
            if event.name != "session_initialized":
                self._check_speaker(event)
            return _RULES[event.name](self, event)
        except EventRefused:
            raise
        except Refused as error:
            raise EventRefused(error.code, error.message, advice=error.advice) from error
        except BadInput as error:
            raise EventRefused("SCHEMA_INVALID", error.message) from error

    # --- the role guard

    def _check_speaker(self, event: Event) -> None:
        """Raise unless the event's agent has its role here, and the key behind it is the one that it joined by."""
        speaker = self.participants.get(event.agent)
        if speaker is None or speaker.role != event.role:
            words = f"{event.agent} does not take part as {event.role}"
            raise EventRefused("ROLE_POLICY_VIOLATION", words, place="agent")
        contribution = event.contribution
        if contribution is not None:
            self._check_contribution(event, contribution, speaker)
            speaker = self.participants[OPERATOR]
        if event.signer and event.signer != speaker.key.fingerprint and not self._is_succession(event):
            code = "KEY_RETIRED" if event.signer in self.retired else "ROLE_POLICY_VIOLATION"
            words = f"sealed by the key {event.signer}, and {speaker.agent} joined by {speaker.key.fingerprint}"
            raise EventRefused(code, words, place="signer", advice="a rotated key joins anew")

    def _is_succession(self, event: Event) -> bool:
        """Whether the operator's own successor seals its join. `_judge_participant_joined` checks the rotation."""
        if event.name != "participant_joined":
            return False
        joining = event.payload["participant"]
        return bool(joining["role"] == OPERATOR and event.signer == joining["public_key"][:16])

    def _check_contribution(self, event: Event, statement: Statement, speaker: Participant) -> None:
        """Raise unless a participant's statement says exactly this event, in this trace, after a head of it."""
        if event.role == OPERATOR:
            raise EventRefused("ROLE_POLICY_VIOLATION", "the operator seals itself, and contributes nothing")
        said = read_contribution(statement)
        if said.place != self.place:
            raise EventRefused("REPLAY", "the contribution is for another ledger, tenant or trace", place="statement")
        check_signed_by(statement, speaker.key)
        if not self.has_head(said.seen):
            words = f"the participant has seen record {said.seen.count} as {said.seen.hash[:16]}, and it is another"
            raise EventRefused("ROLLBACK", words, place="seen", advice="show both histories to the participants")
        told = (said.id, said.event, said.role, said.agent, dict(said.refs), said.payload_sha256, list(said.artifacts))
        payload = event.payload
        found = (event.id, event.name, event.role, event.agent, dict(event.refs), digest_json(payload))
        if told != (*found, find_artifacts(payload)):
            raise EventRefused("EVIDENCE_INVALID", "the contribution says something else than the event")

    # --- for the rules

    def set_operator_key(self, key: PublicKey, event: Event) -> None:
        """Name the key that sealed the first event. The caller has verified its signature with it.

        The whole key is not in the event, and its fingerprint is only the beginning.
        """
        if key.fingerprint != event.signer:
            raise EventRefused("ROLE_POLICY_VIOLATION", "another key sealed the first event", place="signer")
        if key.fingerprint in self.bound_keys:
            raise EventRefused("ROLE_POLICY_VIOLATION", "the operator's key takes no other role", place="signer")
        self.add_participant(Participant(OPERATOR, OPERATOR, key, "here", event.id))

    def add_participant(self, new: Participant) -> None:
        """Let a key speak from now on, in place of its agent's last one."""
        before = self.participants.get(new.agent)
        if before is not None:
            self.retired.add(before.key.fingerprint)
        self.participants[new.agent] = new
        self.bound_keys[new.key.fingerprint] = new
        self.critics = tuple(agent for agent, each in self.participants.items() if each.role == "critic")

    def add_artifact(self, digest: str, how: int) -> None:
        """Note how an artifact came into the trace: bits of `standings`."""
        self.artifacts[digest] = self.artifacts.get(digest, 0) | how

    def early_state(self, *, executable: int, live: int, runs: bool | None = None) -> str:
        """Return where the trace stands by its proposals, unless it is past them."""
        if self.state not in ("planning", "reviewing", "executing"):
            return self.state
        if executable or (bool(self.running) if runs is None else runs):
            return "executing"
        if self.may_claim:
            return "claiming"  # There is something to claim, and nothing left to do.
        return "reviewing" if live else "planning"

    def find(self, known: Mapping[str, _Thing], reference: str, where: str) -> _Thing:
        """Return the thing of this trace that a reference names. Raises if it is not here, or is something else."""
        found = known.get(reference)
        if found is None:
            name = self.event_name(reference)
            words = f"{reference} is a {name}" if name else f"this trace has no event {reference} yet"
            raise EventRefused("STATE_VIOLATION", words, place=where)
        return found


def fold(place: TracePlace, trace: str, events: Iterable[Event], operator: PublicKey) -> ProtocolTrace:
    """Fold events of a trace whose signatures were verified. Raises `EventRefused` at the first that may not come."""
    folded = ProtocolTrace(place, trace)
    for event in events:
        folded.admit(event)
        if folded.count == 1:
            folded.set_operator_key(operator, event)
    return folded
