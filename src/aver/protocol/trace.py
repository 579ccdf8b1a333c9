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
    executing → claiming       a call completes; or a call has failed as often as the bounds allow; or, after an
                               earlier success, no intent is open any more
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
from typing import Any, NamedTuple, NoReturn, TypeVar

from aver.capsule.blobs import blob_references
from aver.errors import BadInput, Refused
from aver.gate.action import Action
from aver.keys.public_key import PublicKey
from aver.keys.ring import ROTATION_PURPOSE, read_rotation
from aver.keys.statement import Statement
from aver.protocol.bounds import Bounds, is_risk_from, worst_risk
from aver.protocol.events import FINAL_STATES, FORMS, OPERATOR, Event, check_refs, trace_chain
from aver.protocol.standings import (
    ChallengeStanding,
    ClaimStanding,
    ExecutionStanding,
    IntentStanding,
    Participant,
    ProposalStanding,
)
from aver.protocol.statements import (
    JOIN_PURPOSE,
    REPORT_PURPOSE,
    Join,
    SeenHead,
    TracePlace,
    check_signed_by,
    digest_json,
    find_artifacts,
    find_statements,
    read_contribution,
    read_join,
    read_report_statement,
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

REQUIRED_ROLES = ("planner", "executor", "critic")
"""The roles without which no trace begins. Without an auditor, none completes."""

DISPUTE_TOOL = "aver-protocol-dispute"
"""The tool of the action that stands for a dispute, where a person is asked to rule."""

# How an artifact came into the trace. One digest may come in several ways.
_INPUT, _COMPLETED, _FAILED, _RECORDED = 1, 2, 4, 8
_EVIDENCE_BY_ABOUT = {"success": _COMPLETED | _RECORDED, "failure": _COMPLETED | _RECORDED | _FAILED}


class EventRefused(Refused):
    """An event may not be said in this trace now. `code` is that of a verdict, `place` the part that is wrong."""

    def __init__(self, code: str, message: str, *, place: str = "", advice: str = "") -> None:
        super().__init__(code, f"{place}: {message}" if place else message, advice=advice)
        self.place = place


class _Step(NamedTuple):
    """What an event leads to: the next state, and the change of the trace."""

    after: str
    apply: Callable[[], None]


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
        self.running: dict[str, None] = {}
        """The executions that have started and not ended."""
        self.open_intents: dict[str, None] = {}
        """The intents that may still be executed, or are."""
        self.disputes = 0
        """Challenges that are open."""
        self.successes = 0
        self.final_statement: Event | None = None
        self.runs: dict[str, tuple[int, str]] = {}
        """Verification runs that have started: the sequence of the start, and the auditor."""
        self.audit: Event | None = None
        self.failed_calls: dict[tuple[str, str], str] = {}
        """The last failed intent of each call, by proposal and digest of the input."""
        self._names: dict[str, str] = {}
        """The name of each event, by id."""
        self._hashes: list[str] = []
        self._executable = 0
        self._live = 0
        """Proposals that are neither rejected nor revised."""

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
        if event.sequence != self.count:
            words = f"the event has the sequence {event.sequence}, and {self.count} come before it"
            raise EventRefused("SEQUENCE_GAP", words)
        step.apply()
        self._names[event.id] = event.name
        self._hashes.append(event.hash)
        self.state = step.after
        if event.name == "session_initialized":
            self.began = event.at
        if self.is_over:
            self.ended = event.at

    def _judge(self, event: Event) -> _Step:
        if event.trace != self.trace:
            raise EventRefused("REPLAY", f"the event is of the trace {event.trace[:80]}", place="trace")
        if event.id in self._names:
            raise EventRefused("REPLAY", f"the trace has an event with the id {event.id}", place="id")
        if event.name not in ADMITS[self.state]:
            raise EventRefused("STATE_VIOLATION", f"{event.name} does not come in the state {self.state}")
        if event.role not in FORMS[event.name].roles:
            raise EventRefused("ROLE_POLICY_VIOLATION", f"{event.role} may not say {event.name}", place="role")
        try:
            check_refs(event.refs, FORMS[event.name])
            if event.name != "session_initialized":
                self._check_speaker(event)
            handler: Callable[[Event], _Step] = getattr(self, f"_judge_{event.name}")
            return handler(event)
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

    # --- the session and its participants

    def _judge_session_initialized(self, event: Event) -> _Step:
        payload = event.payload
        if event.agent != OPERATOR or event.trace != self.trace or trace_chain(self.trace) != self.place.chain:
            raise EventRefused("ROLE_POLICY_VIOLATION", "the operator opens a trace, in its own chain")
        if digest_json(payload["task"]) != payload["task_sha256"]:
            raise EventRefused("EVIDENCE_INVALID", "task_sha256 is not that of the task", place="task_sha256")
        joins = [read_join(statement) for statement in event.statements]
        listed = [(item["agent"], item["role"]) for item in payload["participants"]]
        if len(joins) != len(listed):
            raise EventRefused("ROLE_POLICY_VIOLATION", "every participant joins by a statement of its own")
        missing = [role for role in REQUIRED_ROLES if role not in {role for _, role in listed}]
        if missing:
            words = f"no trace begins without a {missing[0]}"
            raise EventRefused("ROLE_POLICY_VIOLATION", words, place="participants")
        found: dict[str, Participant] = {}
        for index, (item, join) in enumerate(zip(payload["participants"], joins, strict=True)):
            participant = self._check_join(
                item, join, event, payload["task_sha256"], payload["profile"], f"participants[{index}]"
            )
            taken = {other.key.fingerprint for other in found.values()}
            if participant.agent in found or participant.key.fingerprint in taken:
                raise EventRefused(
                    "ROLE_POLICY_VIOLATION", f"{participant.agent}: one agent, one key, one role", place="participants"
                )
            found[participant.agent] = participant
        if event.signer and any(each.key.fingerprint == event.signer for each in found.values()):
            raise EventRefused("ROLE_POLICY_VIOLATION", "the operator's key takes no other role", place="participants")

        def apply() -> None:
            self.task, self.task_sha256 = payload["task"], payload["task_sha256"]
            self.profile, self.bounds = payload["profile"], Bounds.from_dict(payload["bounds"])
            # The operator's whole key is not in the event: `set_operator_key` gives it, from the verified record.
            for participant in found.values():
                self._add_participant(participant)
            for digest in payload["task"].get("input_artifacts", ()):
                self._add_artifact(digest, _INPUT)

        return _Step("planning", apply)

    def set_operator_key(self, key: PublicKey, event: Event) -> None:
        """Name the key that sealed the first event. The caller has verified its signature with it."""
        if key.fingerprint != event.signer:
            raise EventRefused("ROLE_POLICY_VIOLATION", "another key sealed the first event", place="signer")
        if key.fingerprint in self.bound_keys:
            raise EventRefused("ROLE_POLICY_VIOLATION", "the operator's key takes no other role", place="signer")
        self._add_participant(Participant(OPERATOR, OPERATOR, key, "here", event.id))

    def _check_join(
        self, item: Mapping[str, Any], join: Join, event: Event, task_sha256: str, profile: str, where: str
    ) -> Participant:
        """Return the participant that an item and a signed join name together. Raises unless they fit."""
        key = PublicKey.read(item["public_key"], item["public_key_pq"], where)
        if join.place != self.place:
            raise EventRefused("REPLAY", "the join is for another ledger, tenant or trace", place=where)
        if (join.task_sha256, join.profile) != (task_sha256, profile):
            raise EventRefused("REPLAY", "the join is for another task or profile", place=where)
        if (join.agent, join.role, join.key) != (item["agent"], item["role"], key):
            raise EventRefused("ROLE_POLICY_VIOLATION", "the join names another agent, role or key", place=where)
        if (join.role == OPERATOR) != (join.agent == OPERATOR):
            raise EventRefused("ROLE_POLICY_VIOLATION", "only the operator is called so", place=where)
        if join.role == OPERATOR and event.name == "session_initialized":
            raise EventRefused("ROLE_POLICY_VIOLATION", "the operator's key is that of the seal", place=where)
        return Participant(join.agent, join.role, key, item["held"], event.id)

    def _judge_participant_joined(self, event: Event) -> _Step:
        joins = find_statements(event.statements, JOIN_PURPOSE)
        if len(joins) != 1:
            raise EventRefused("ROLE_POLICY_VIOLATION", "a participant joins by one statement of its own")
        item = event.payload["participant"]
        new = self._check_join(item, read_join(joins[0]), event, self.task_sha256, self.profile, "participant")
        if new.key.fingerprint in self.bound_keys:
            words = f"the key {new.key.fingerprint} has joined before: one key, one role"
            raise EventRefused("ROLE_POLICY_VIOLATION", words, place="participant")
        before = self.participants.get(new.agent)
        if before is not None:
            self._check_succession(event, before, new)
        elif "succeeds" in event.refs or new.role == OPERATOR:
            raise EventRefused("ROLE_POLICY_VIOLATION", f"{new.agent} succeeds nobody here", place="succeeds")
        after = self.state
        if before is None and new.role == "critic":
            # A new critic has approved nothing yet.
            after = self._early_state(executable=0, live=self._live)

        def apply() -> None:
            self._add_participant(new)
            if before is None and new.role == "critic":
                self._executable = 0

        return _Step(after, apply)

    def _check_succession(self, event: Event, before: Participant, new: Participant) -> None:
        """Raise unless rotation statements lead from the key of a participant to the new one."""
        if event.refs.get("succeeds") != before.joined or before.role != new.role:
            words = f"{new.agent} takes part already; a successor of its key must name the event by which that joined"
            raise EventRefused("ROLE_POLICY_VIOLATION", words, place="succeeds")
        key = before.key
        for statement in find_statements(event.statements, ROTATION_PURPOSE):
            rotation = read_rotation(statement)
            if rotation is None or rotation.old != key:
                raise EventRefused("SIG_INVALID", "a rotation statement does not hold", place="authority.chain")
            key = rotation.new
        if key != new.key:
            words = "no rotation statement leads from the old key to the new one"
            raise EventRefused("ROLE_POLICY_VIOLATION", words, place="authority.chain")

    def _add_participant(self, new: Participant) -> None:
        before = self.participants.get(new.agent)
        if before is not None:
            self.retired.add(before.key.fingerprint)
        self.participants[new.agent] = new
        self.bound_keys[new.key.fingerprint] = new
        self.critics = tuple(agent for agent, each in self.participants.items() if each.role == "critic")

    # --- proposals

    def _early_state(self, *, executable: int, live: int, runs: bool | None = None) -> str:
        """Return where the trace stands by its proposals, unless it is past them."""
        if self.state not in ("planning", "reviewing", "executing"):
            return self.state
        if executable or (bool(self.running) if runs is None else runs):
            return "executing"
        return "reviewing" if live else "planning"

    def _judge_proposal_created(self, event: Event) -> _Step:
        if len(self.proposals) >= self.bounds.proposals:
            words = f"the trace has {len(self.proposals)} proposals, as many as its bounds allow"
            raise EventRefused("STATE_VIOLATION", words)
        old = None
        if "revises" in event.refs:
            old = self._find(self.proposals, event.refs["revises"], "revises")
            if old.revised_by is not None:
                raise EventRefused("STATE_VIOLATION", "the proposal was revised before", place="revises")
        executable = self._executable - (old is not None and old.is_executable(self.critics))
        was_live = old is not None and old.standing(self.critics) != "rejected"
        live = self._live + 1 - was_live

        def apply() -> None:
            if old is not None:
                old.revised_by = event.id
            self.proposals[event.id] = ProposalStanding(event.id, event.agent, event.payload, event.refs.get("revises"))
            self._executable, self._live = executable, live

        return _Step(self._early_state(executable=executable, live=live), apply)

    def _judge_proposal_reviewed(self, event: Event) -> _Step:
        proposal = self._find(self.proposals, event.refs["proposal"], "proposal")
        if proposal.revised_by is not None:
            raise EventRefused("STATE_VIOLATION", "the proposal was revised", place="proposal")
        before = proposal.standing(self.critics)
        reviews = {**proposal.reviews, event.agent: event.payload["verdict"]}
        after = ProposalStanding(proposal.id, "", {}, reviews=reviews).standing(self.critics)
        good = ("approved", "conditional")
        executable = self._executable + (after in good) - (before in good)
        live = self._live + (after != "rejected") - (before != "rejected")

        def apply() -> None:
            proposal.reviews = reviews
            proposal.conditions[event.agent] = tuple(event.payload["conditions"])
            self._executable, self._live = executable, live

        return _Step(self._early_state(executable=executable, live=live), apply)

    # --- intents and executions

    def _judge_tool_intent_signed(self, event: Event) -> _Step:
        payload, proposal = event.payload, self._find(self.proposals, event.refs["proposal"], "proposal")
        if not proposal.is_executable(self.critics):
            words = f"the proposal is {'revised' if proposal.revised_by else proposal.standing(self.critics)}"
            raise EventRefused("STATE_VIOLATION", f"{words}: it may not be executed", place="proposal")
        if digest_json({"tool": payload["tool"], "arguments": payload["arguments"]}) != payload["input_sha256"]:
            raise EventRefused("EVIDENCE_INVALID", "it is not that of tool and arguments", place="input_sha256")
        risk = worst_risk(payload["risk"]["declared"], payload["risk"]["derived"])
        if payload["repeatable"] and is_risk_from(risk, "high"):
            raise EventRefused("STATE_VIOLATION", f"a call of {risk} risk is not repeatable", place="repeatable")
        attempt, retry_of = 1, event.refs.get("retry_of")
        last = self.failed_calls.get((proposal.id, payload["input_sha256"]))
        if retry_of is None and last is not None:
            words = "the same call has failed before"
            raise EventRefused("STATE_VIOLATION", words, place="retry_of", advice=f"name the failed intent: {last}")
        if retry_of is not None:
            old = self._find(self.intents, retry_of, "retry_of")
            if old.end is None or old.code == "COMPLETED" or old.proposal != proposal.id:
                words = "only a call of the same proposal that has failed can be tried again"
                raise EventRefused("STATE_VIOLATION", words, place="retry_of")
            attempt = old.attempt + 1
            if attempt > self.bounds.attempts:
                words = f"the call has failed {old.attempt} times, as often as the bounds allow"
                advice = "propose another way, or claim the failure"
                raise EventRefused("STATE_VIOLATION", words, place="retry_of", advice=advice)

        def apply() -> None:
            self.intents[event.id] = IntentStanding(
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
            self.open_intents[event.id] = None

        return _Step("executing", apply)

    def _judge_intent_reviewed(self, event: Event) -> _Step:
        intent = self._find(self.intents, event.refs["intent"], "intent")
        if intent.start is not None or intent.end is not None:
            raise EventRefused("STATE_VIOLATION", "the call has begun: it is too late to review it", place="intent")
        verdict = event.payload["verdict"]
        others = len(self.open_intents) - (intent.id in self.open_intents)
        after = self.state
        if verdict == "blocked" and self.state == "executing" and self.successes and not others:
            after = "claiming"

        def apply() -> None:
            intent.reviews[event.agent] = (verdict, event.id)
            if intent.standing(self.critics) == "blocked":
                self.open_intents.pop(intent.id, None)
            else:
                self.open_intents[intent.id] = None

        return _Step(after, apply)

    def needs_review(self, intent: IntentStanding, risk: str | None = None) -> bool:
        """Whether a critic must approve an intent before it starts. `risk` may make it worse."""
        return is_risk_from(worst_risk(intent.risk, risk), self.bounds.review_from)

    def find_approval(self, intent: IntentStanding) -> str | None:
        """Return the id of the latest review by which all critics approve an intent; None where they do not."""
        if intent.standing(self.critics) != "approved":
            return None
        return [intent.reviews[agent][1] for agent in self.critics][-1]

    def _judge_tool_execution_started(self, event: Event) -> _Step:
        intent = self._find(self.intents, event.refs["intent"], "intent")
        proposal = self.proposals[intent.proposal]
        if intent.agent != event.agent:
            raise EventRefused("ROLE_POLICY_VIOLATION", f"it is an intent of {intent.agent}", place="intent")
        if intent.start is not None or intent.end is not None:
            raise EventRefused("STATE_VIOLATION", "the call has begun before; a retry is a new intent", place="intent")
        if not proposal.is_executable(self.critics):
            raise EventRefused("STATE_VIOLATION", "its proposal may not be executed any more", place="intent")
        standing = intent.standing(self.critics)
        if standing == "blocked":
            raise EventRefused("ROLE_POLICY_VIOLATION", "a critic blocks the intent", place="intent")
        if self.needs_review(intent) and standing != "approved":
            words = f"a call of {intent.risk} risk needs the approval of every critic"
            raise EventRefused("ROLE_POLICY_VIOLATION", words, place="review")
        review = event.refs.get("review")
        approvals = {found for verdict, found in intent.reviews.values() if verdict == "approved"}
        if review is not None and review not in approvals:
            raise EventRefused("ROLE_POLICY_VIOLATION", "it is no valid approval of this intent", place="review")
        if review is None and self.needs_review(intent):
            raise EventRefused("ROLE_POLICY_VIOLATION", "the start must name the approval", place="review")
        limit = self.bounds.tool_calls
        if limit is not None and len(self.executions) >= limit:
            raise EventRefused("STATE_VIOLATION", f"the task allows {limit} calls, and they were made")

        def apply() -> None:
            intent.start = event.id
            self.executions[event.id] = ExecutionStanding(
                event.id, intent.id, event.agent, event.refs["decision"], event.payload["until"], event.payload
            )
            self.running[event.id] = None
            for digest, _ in blob_references(event.payload["input"]):
                self._add_artifact(digest, _INPUT)

        return _Step(self.state, apply)

    def _find_running(self, event: Event, intent: IntentStanding) -> ExecutionStanding:
        execution = self._find(self.executions, event.refs["start"], "start")
        if execution.intent != intent.id or execution.end is not None:
            raise EventRefused("STATE_VIOLATION", "the call has ended before, or is of another intent", place="start")
        return execution

    def _judge_tool_execution_completed(self, event: Event) -> _Step:
        intent = self._find(self.intents, event.refs["intent"], "intent")
        execution = self._find_running(event, intent)
        if execution.agent != event.agent:
            raise EventRefused("ROLE_POLICY_VIOLATION", f"{execution.agent} made the call", place="start")

        def apply() -> None:
            execution.exit_code = event.payload["exit_code"]
            self.successes += 1
            self._end(event, intent, execution, "COMPLETED", _COMPLETED)

        return _Step("claiming", apply)

    def _judge_tool_execution_failed(self, event: Event) -> _Step:
        intent = self._find(self.intents, event.refs["intent"], "intent")
        code = event.payload["code"]
        execution = None
        if "start" in event.refs:
            execution = self._find_running(event, intent)
            if code == "REFUSED":
                raise EventRefused("STATE_VIOLATION", "a call that was refused has no start", place="code")
            # Any executor may give up a call whose runner is gone; only its own executor knows how it ended.
            if execution.agent != event.agent and code != "OUTCOME_UNKNOWN":
                raise EventRefused("ROLE_POLICY_VIOLATION", f"{execution.agent} made the call", place="start")
        elif code != "REFUSED":
            raise EventRefused("STATE_VIOLATION", f"{code} is the end of a call that has started", place="code")
        elif intent.start is not None or intent.end is not None:
            raise EventRefused("STATE_VIOLATION", "the call was begun, or ended before", place="intent")
        elif intent.agent != event.agent:
            raise EventRefused("ROLE_POLICY_VIOLATION", f"it is an intent of {intent.agent}", place="intent")
        others = len(self.open_intents) - (intent.id in self.open_intents)
        runs = len(self.running) - (execution is not None) > 0
        after = self.state
        if self.state == "executing":
            if intent.attempt >= self.bounds.attempts or (self.successes and not others):
                after = "claiming"
            else:
                after = self._early_state(executable=self._executable, live=self._live, runs=runs)

        def apply() -> None:
            self.failed_calls[intent.proposal, intent.input_sha256] = intent.id
            self._end(event, intent, execution, code, _FAILED)

        return _Step(after, apply)

    def _end(
        self, event: Event, intent: IntentStanding, execution: ExecutionStanding | None, code: str, how: int
    ) -> None:
        """Note the end of a call, and its outputs."""
        intent.end, intent.code = event.id, code
        self.proposals[intent.proposal].ends += 1
        self.open_intents.pop(intent.id, None)
        outputs = {
            name: digest for name, item in event.payload["output"].items() for digest, _ in blob_references(item)
        }
        if execution is not None:
            execution.end, execution.code, execution.outputs = event.id, code, outputs
            self.running.pop(execution.id, None)
        for digest in outputs.values():
            self._add_artifact(digest, how)

    def _judge_artifact_recorded(self, event: Event) -> _Step:
        execution = None
        if "execution" in event.refs:
            execution = self._find(self.executions, event.refs["execution"], "execution")

        def apply() -> None:
            is_failed = execution is not None and execution.code not in ("", "COMPLETED")
            for digest, _ in blob_references(event.payload["blob"]):
                self._add_artifact(digest, _FAILED if is_failed else _RECORDED)

        return _Step(self.state, apply)

    def _add_artifact(self, digest: str, how: int) -> None:
        self.artifacts[digest] = self.artifacts.get(digest, 0) | how

    # --- claims

    def check_evidence(self, evidence: Iterable[Mapping[str, Any]], about: str, *, least: int) -> None:
        """Raise `EventRefused` unless evidence is of this trace, of the right kind, and enough: the evidence guard.

        Whether the bytes of an artifact are still there is not looked at. The audit finds out.
        """
        named = set()
        for index, item in enumerate(evidence):
            where = f"evidence[{index}]"
            execution = None
            if "execution" in item:
                execution = self._find(self.executions, item["execution"], f"{where}.execution")
                if execution.end is None:
                    raise EventRefused("STATE_VIOLATION", "the call has not ended", place=f"{where}.execution")
                if about == "success" and execution.code != "COMPLETED":
                    raise EventRefused("CLAIM_UNPROVEN", "the call did not complete", place=f"{where}.execution")
            digest = item.get("artifact")
            if digest is None:
                continue
            if not self.artifacts.get(digest, 0) & _EVIDENCE_BY_ABOUT[about]:
                words = "it is no output of a call of this trace that has completed, and was not recorded in it"
                raise EventRefused("CLAIM_UNPROVEN", words, place=f"{where}.artifact")
            if execution is not None and digest not in execution.outputs.values():
                raise EventRefused("CLAIM_UNPROVEN", "it is no output of that call", place=f"{where}.artifact")
            named.add(digest)
        if len(named) < least:
            words = f"a claim names at least {least} artifact(s) of this trace; this one names {len(named)}"
            raise EventRefused("CLAIM_UNPROVEN", words, place="evidence")

    def _judge_claim_issued(self, event: Event) -> _Step:
        payload, proposal = event.payload, self._find(self.proposals, event.refs["proposal"], "proposal")
        if not proposal.ends:
            raise EventRefused("STATE_VIOLATION", "no call of this proposal has ended", place="proposal")
        self.check_evidence(payload["evidence"], payload["about"], least=self.bounds.evidence_min)

        def apply() -> None:
            self.claims[event.id] = ClaimStanding(
                id=event.id,
                agent=event.agent,
                proposal=proposal.id,
                about=payload["about"],
                text=payload["text"],
                confidence=payload["confidence"],
                evidence=tuple(payload["evidence"]),
                worded_by=event.id,
            )

        return _Step(self.state, apply)

    def _judge_claim_challenged(self, event: Event) -> _Step:
        payload, claim = event.payload, self._find(self.claims, event.refs["claim"], "claim")
        if claim.standing == "retracted":
            raise EventRefused("STATE_VIOLATION", "the claim was taken back", place="claim")
        self.check_evidence(payload["evidence"], "failure", least=0)

        def apply() -> None:
            self.challenges[event.id] = ChallengeStanding(
                event.id, claim.id, event.agent, payload["reason"], tuple(payload["evidence"])
            )
            claim.challenges.append(event.id)
            claim.open_challenges += 1
            claim.standing = "disputed"
            self.disputes += 1

        return _Step(self.state, apply)

    def _judge_claim_revised(self, event: Event) -> _Step:
        payload, claim = event.payload, self._find(self.claims, event.refs["claim"], "claim")
        if claim.standing == "retracted":
            raise EventRefused("STATE_VIOLATION", "the claim was taken back", place="claim")
        if not payload["retracted"]:
            self.check_evidence(payload["evidence"], claim.about, least=self.bounds.evidence_min)

        def apply() -> None:
            claim.worded_by = event.id
            if not payload["retracted"]:
                claim.text, claim.confidence = payload["text"], payload["confidence"]
                claim.evidence = tuple(payload["evidence"])
                # A ruling was about the old words. An open challenge stays open until its critic withdraws it.
                claim.standing = "disputed" if claim.open_challenges else "issued"
                return
            claim.standing = "retracted"
            for challenge in map(self.challenges.__getitem__, claim.challenges):
                if challenge.standing == "open":
                    challenge.standing = "moot"
                    self.disputes -= 1
            claim.open_challenges = 0

        return _Step(self.state, apply)

    def dispute_action(self, challenge: ChallengeStanding) -> Action:
        """Return the action that a person rules on: letting the claim stand against a challenge.

        Its digest is the dispute's digest: it names the trace, the claim as it is worded now, and the challenge.
        """
        claim = self.claims[challenge.claim]
        return Action(
            type="decision",
            tool=DISPUTE_TOOL,
            arguments={
                "trace": self.trace,
                "claim": claim.id,
                "worded_by": claim.worded_by,
                "text": claim.text,
                "challenge": challenge.id,
                "reason": challenge.reason,
            },
            description="Approve to let the claim stand and dismiss the challenge; deny to uphold the challenge.",
            caller=OPERATOR,
            session=self.trace,
            call_id=challenge.id,
        )

    def _judge_challenge_resolved(self, event: Event) -> _Step:
        challenge = self._find(self.challenges, event.refs["challenge"], "challenge")
        outcome = event.payload["outcome"]
        if challenge.standing != "open":
            raise EventRefused("STATE_VIOLATION", f"the challenge is {challenge.standing}", place="challenge")
        if event.role == OPERATOR:
            self._check_ruling(event, challenge, outcome)
        elif outcome != "withdrawn" or challenge.agent != event.agent or "approval" in event.refs:
            words = "a critic can withdraw its own challenge; a person rules on others"
            raise EventRefused("ROLE_POLICY_VIOLATION", words, place="outcome")

        def apply() -> None:
            claim = self.claims[challenge.claim]
            challenge.standing = outcome
            claim.open_challenges -= 1
            self.disputes -= 1
            if outcome == "upheld":
                claim.standing = "refuted"
            elif claim.standing != "refuted":
                claim.standing = "disputed" if claim.open_challenges else "settled"

        return _Step(self.state, apply)

    def _check_ruling(self, event: Event, challenge: ChallengeStanding, outcome: str) -> None:
        """Raise unless people's signed votes on this very dispute are beside a ruling.

        Who may vote, and how many must, is recorded with the request: the approvals' own check judges that.
        """
        word = {"dismissed": "approve", "upheld": "deny"}.get(outcome)
        votes = find_statements(event.statements, "approval")
        digest = self.dispute_action(challenge).digest
        if word is None or "approval" not in event.refs or not votes or len(votes) != len(event.statements):
            raise EventRefused("ROLE_POLICY_VIOLATION", "a ruling needs the signed vote of a person", place="approval")
        for vote in votes:
            told = (vote.content.get("digest"), vote.content.get("decision"), vote.content.get("ledger"))
            if told != (digest, word, self.place.ledger) or not vote.signatures:
                raise EventRefused("EVIDENCE_INVALID", "a vote is not about this dispute", place="authority.chain")

    # --- the end

    def _judge_final_statement_signed(self, event: Event) -> _Step:
        if not self.claims:
            words = "a final statement needs at least one claim; a claim of failure counts"
            raise EventRefused("STATE_VIOLATION", words, place="claims")
        if self.running:
            raise EventRefused("STATE_VIOLATION", f"{len(self.running)} call(s) have not ended", place="claims")
        if self.disputes and self.profile == "strict":
            words = f"{self.disputes} challenge(s) are open, and the profile is strict"
            advice = "revise or retract the claim, or have the challenge withdrawn or ruled on"
            raise EventRefused("CLAIM_DISPUTED", words, place="claims", advice=advice)
        if event.payload["claims"] != self.list_claims():
            words = "it must list every claim, in order, with its present standing"
            raise EventRefused("STATE_VIOLATION", words, place="claims")

        def apply() -> None:
            self.final_statement = event

        return _Step("auditing", apply)

    def _judge_verification_run_started(self, event: Event) -> _Step:
        if event.payload["profile"] != self.profile:
            words = f"the trace is audited by its own profile, {self.profile}"
            raise EventRefused("STATE_VIOLATION", words, place="profile")

        def apply() -> None:
            self.runs[event.id] = (event.sequence, event.agent)

        return _Step(self.state, apply)

    def _judge_verification_run_completed(self, event: Event) -> _Step:
        payload, run = event.payload, self.runs.get(event.refs["start"])
        if run is None or run[1] != event.agent:
            raise EventRefused("STATE_VIOLATION", "it is no run that this auditor has started", place="start")
        head = SeenHead(payload["head"]["count"], payload["head"]["hash"])
        if head.count <= run[0] or not self.has_head(head):
            words = "the report must be about a head of this trace, from the start of its run on"
            raise EventRefused("EVIDENCE_INVALID", words, place="head")
        statements = find_statements(event.statements, REPORT_PURPOSE)
        if len(statements) != 1:
            raise EventRefused("SIG_MISSING", "the auditor signs one statement about its report", place="report")
        check_signed_by(statements[0], self.participants[event.agent].key)
        said = read_report_statement(statements[0])
        digest = payload["report"]["blob"]["digest"]
        if said != (self.place, head, self.profile, payload["status"], digest):
            raise EventRefused("EVIDENCE_INVALID", "the auditor's statement says something else", place="report")

        def apply() -> None:
            self.audit = event

        return _Step("failed" if payload["status"] == "fail" else "completed", apply)

    def _judge_session_aborted(self, event: Event) -> _Step:
        return _Step("aborted", _do_nothing)

    def _judge_session_failed(self, event: Event) -> _Step:
        return _Step("failed", _do_nothing)

    # --- references

    def _find(self, known: Mapping[str, _Thing], reference: str, where: str) -> _Thing:
        """Return the thing of this trace that a reference names. Raises if it is not here, or is something else."""
        found = known.get(reference)
        if found is None:
            self._refuse_reference(reference, where)
        return found

    def _refuse_reference(self, reference: str, where: str) -> NoReturn:
        name = self.event_name(reference)
        words = f"{reference} is a {name}" if name else f"this trace has no event {reference} yet"
        raise EventRefused("STATE_VIOLATION", words, place=where)


def _do_nothing() -> None:
    """Change nothing but the state."""


def fold(place: TracePlace, trace: str, events: Iterable[Event], operator: PublicKey) -> ProtocolTrace:
    """Fold events of a trace whose signatures were verified. Raises `EventRefused` at the first that may not come."""
    folded = ProtocolTrace(place, trace)
    for event in events:
        folded.admit(event)
        if folded.count == 1:
            folded.set_operator_key(operator, event)
    return folded
