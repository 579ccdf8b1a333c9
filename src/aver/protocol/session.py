"""A session: one trace of the protocol in a ledger, and all that may be done with it.

    with aver.ProtocolSession({"objective": "run the tests"}, tools=runner) as session:
        proposal = session.planner.propose("run pytest", required_tools=["pytest"])
        session.critic.review(proposal.id, "approved", rationale="harmless")
        intent = session.executor.intend(proposal.id, "pytest", {}, justification="to count")
        end = session.executor.run(intent.id)
        ...

`say` is the one way to append an event, and does these steps:

    1. check the payload against its schema, and mask secrets in it
    2. read the records that were appended since, and verify each
    3. ask the fold whether the event may come now, and what state follows
    4. seal it right after the head that was judged, by the key that its agent joined by. If another event came first,
       go on with step 2: who loses a race is judged anew

A session that is opened with the id of a trace goes on with it. It reads and verifies every stored record first. A call
that was started and has no end becomes `OUTCOME_UNKNOWN`, once nobody can be running it any more: its executor's key is
in this home and no process here holds the lock of the trace, or the time of the call has passed.

A broken record ends the trace: the operator's session seals `session_failed` with the finding, and raises.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from aver import clock
from aver.capsule.blobs import Blob, restore_large_texts
from aver.capsule.canonical import canonical_json
from aver.capsule.masking.mask import mask
from aver.capsule.model import Authority
from aver.capsule.sealed import HoldableSigner, Signer
from aver.errors import AverError, BadInput, Exists, HeadMoved, IntegrityError, NotFound, Refused, Unavailable
from aver.keys import StoreSigner
from aver.keys.ring import ROTATION_PURPOSE
from aver.keys.statement import Statement
from aver.ledger import Ledger, open_ledger
from aver.log import debug
from aver.protocol.bounds import read_protocol_settings, tighten_bounds
from aver.protocol.events import OPERATOR, Event, build_event_draft, check_trace_id, find_payload_problem
from aver.protocol.records.draft import SEALED_AS_GIVEN, BoundSigner, prepare_payload, prepare_task
from aver.protocol.records.recorded_trace import RecordedTrace
from aver.protocol.records.trace_files import read_seen_head, save_seen_head, try_exclusive_lock
from aver.protocol.rules.participants import REQUIRED_ROLES
from aver.protocol.rules.step import EventRefused
from aver.protocol.standings import IntentStanding, Participant
from aver.protocol.statements import (
    EVENT_PURPOSE,
    JOIN_PURPOSE,
    PROFILES,
    ContributionFile,
    Join,
    SeenHead,
    TracePlace,
    digest_json,
    read_contribution,
    read_join,
    sign_contribution,
    sign_join,
)
from aver.protocol.trace import ProtocolTrace
from aver.protocol.view import View, build_view

if TYPE_CHECKING:
    from aver.keys.statement import StatementSigner
    from aver.protocol.handles import AuditorHandle, CriticHandle, ExecutorHandle, PlannerHandle
    from aver.protocol.runner import AuditEngine, ToolRunner
    from aver.verdict import Examiner, Verdict

TRIES = 1000
"""How often an event is judged anew because another event of the trace was sealed first."""

DEFAULT_PARTICIPANTS = {f"agent:{role}": role for role in (*REQUIRED_ROLES, "auditor")}
"""Who takes part where the caller names nobody: one agent for each role, with a key in this home."""

GIVEN_UP = "it is not known how the call ended: its process is gone"
"""The words of an `OUTCOME_UNKNOWN`."""


class ProtocolSession:
    """One trace of the multi-agent protocol, new or gone on with. Use it as a context. Safe for threads."""

    examiners: tuple[Examiner, ...] = ()
    """The examiners of a ledger that this opens; `aver.ProtocolSession` has those of all rooms."""

    def __init__(
        self,
        task: Mapping[str, Any] | str | None = None,
        *,
        ledger: Ledger | str | Path | None = None,
        trace: str | None = None,
        workspace: str | os.PathLike[str] | None = None,
        profile: str | None = None,
        participants: Mapping[str, str | Statement] | None = None,
        tools: ToolRunner | None = None,
        wait: float = 0.0,
    ) -> None:
        """Begin a trace for `task`, or go on with `trace`.

        `task` is an object whose `objective` is required, or the objective itself. `participants` maps agents, such as
        `agent:carol`, to a role, if their key is in this home, or to their signed join. Without it, four agents of this
        home take part. `tools` makes the calls of the executor, in `workspace`. `wait` is for how many seconds the
        executor waits for a person, where one must approve a call; at most what the bounds say is waited longer.
        """
        self.workspace = os.path.abspath(workspace or os.getcwd())
        self.tools = tools
        self.wait = wait
        self.audit_engine: AuditEngine | None = None
        """Judges the trace for `auditor.audit`; None stands for that of `aver.protocol.judgement.audit`."""
        self._lock = threading.RLock()
        self._signers: dict[str, Signer | HoldableSigner] = {}
        self._arguments: dict[str, Mapping[str, Any]] = {}
        self._owns_ledger = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger, examiners=self.examiners)
        try:
            self._recorded = RecordedTrace(self.ledger, check_trace_id(trace or clock.new_id()))
            self._remembered = read_seen_head(self.home, self.place, self.trace)
            given = None if task is None else prepare_task(task)
            if self.ledger.head(self.chain).count == 0 and self._remembered is None:
                self._begin(given, profile, participants)
            else:
                self._resume(given)
        except BaseException:
            self._close_ledger()
            raise

    # --- reading

    @property
    def home(self) -> Path:
        return self.ledger.config.home

    @property
    def trace(self) -> str:
        """The id of the trace."""
        return self._recorded.fold.trace

    @property
    def chain(self) -> str:
        """The name of the ledger chain that holds the trace."""
        return self._recorded.chain

    @property
    def place(self) -> TracePlace:
        """Ledger, tenant and chain: statements about the trace name them."""
        return self._recorded.fold.place

    @property
    def fold(self) -> ProtocolTrace:
        """Where everything stands, as far as this session has read. Only for reading."""
        return self._recorded.fold

    @property
    def state(self) -> str:
        """The state of the trace, as far as this session has read. `catch_up` reads on."""
        return self._recorded.fold.state

    @property
    def events(self) -> tuple[Event, ...]:
        """All events of the trace, in order, as far as this session has read."""
        with self._lock:
            return tuple(self._recorded.events)

    def catch_up(self) -> None:
        """Read and verify the records that others have appended. Raises `IntegrityError` where one does not count."""
        with self._lock:
            self._read_on()

    def view(self, agent: str) -> View:
        """Return what a participant sees now, and what it may say. Raises `NotFound` for anybody else."""
        with self._lock:
            self._read_on()
            return build_view(self.fold, self.find_participant(agent))

    def find_participant(self, agent: str) -> Participant:
        """Return the participant of this name. Raises `NotFound`."""
        found = self.fold.participants.get(agent)
        if found is None:
            listed = ", ".join(self.fold.participants)
            raise NotFound(f"{ascii(agent)[:80]} does not take part in {self.trace}", advice=f"these do: {listed}")
        return found

    def verify(self) -> Verdict:
        """Verify the chain of the trace as `aver verify` does."""
        return self.ledger.verify(self.chain, examiners=self.examiners or None)

    # --- one handle for each role

    @property
    def planner(self) -> PlannerHandle:
        """The handle of the planner whose key is in this home."""
        from aver.protocol.handles import PlannerHandle

        return PlannerHandle(self, self._find_own("planner"))

    @property
    def critic(self) -> CriticHandle:
        """The handle of the critic whose key is in this home."""
        from aver.protocol.handles import CriticHandle

        return CriticHandle(self, self._find_own("critic"))

    @property
    def executor(self) -> ExecutorHandle:
        """The handle of the executor whose key is in this home."""
        from aver.protocol.handles import ExecutorHandle

        return ExecutorHandle(self, self._find_own("executor"))

    @property
    def auditor(self) -> AuditorHandle:
        """The handle of the auditor whose key is in this home."""
        from aver.protocol.handles import AuditorHandle

        return AuditorHandle(self, self._find_own("auditor"))

    def _find_own(self, role: str) -> str:
        """Return the first agent of a role whose key is in this home. Raises `NotFound`."""
        ring = self.ledger.keys.ring()
        for agent, participant in self.fold.participants.items():
            if participant.role == role and ring.active(agent) is not None:
                return agent
        raise NotFound(f"this home holds the key of no {role} of the trace {self.trace}", advice="join it first")

    # --- saying

    def say(
        self,
        agent: str,
        event: str,
        payload: Mapping[str, Any],
        *,
        refs: Mapping[str, str] | None = None,
        artifacts: Iterable[Blob] = (),
    ) -> Event:
        """Say an event as an agent whose key is in this home, or as the `operator`. Returns it, durably sealed.

        `artifacts` are the bytes that the payload refers to. Raises `EventRefused` where the event may not come now.
        """
        return self.seal_event(agent, event, payload, refs=refs, artifacts=tuple(artifacts))

    def seal_event(
        self,
        agent: str,
        event: str,
        payload: Mapping[str, Any],
        *,
        refs: Mapping[str, str] | None = None,
        artifacts: Sequence[Blob] = (),
        statements: tuple[Statement, ...] = (),
        event_id: str | None = None,
        authority: Authority | None = None,
    ) -> Event:
        """Say an event, also one that rests on statements or on a person: for handles. It does what `say` does."""
        with self._lock:
            if agent not in self.fold.participants:
                self._read_on()  # It may have joined since.
            self._renew(agent)
            participant = self.fold.participants.get(agent)
            if participant is None:
                raise EventRefused("ROLE_POLICY_VIOLATION", f"{ascii(agent)[:80]} does not take part", place="agent")
            return self._seal(
                Event(
                    trace=self.trace,
                    name=event,
                    role=participant.role,
                    agent=agent,
                    payload=prepare_payload(event, payload),
                    refs=dict(refs or {}),
                    statements=statements,
                    id=event_id or clock.new_id(),
                ),
                self._signer_of(agent),
                artifacts,
                authority,
            )

    def _seal(
        self, event: Event, signer: Signer | HoldableSigner, blobs: Sequence[Blob], authority: Authority | None = None
    ) -> Event:
        """Judge an event and seal it, anew as often as another event comes first: steps 2 to 4."""
        for _ in range(TRIES):
            self._read_on()
            fold = self.fold
            bound = BoundSigner(signer)
            event = replace(event, before=fold.state, after="", signer=bound.fingerprint)
            try:
                event = replace(event, after=fold.next_state(event))
                key, basis = self._find_key(event)
            except EventRefused as error:
                debug("protocol", "%s by %s refused in %s: %s", event.name, event.agent, fold.state, error)
                raise
            draft = build_event_draft(event, authority=authority or basis)
            try:
                record = self.ledger.append(
                    self.chain, draft, signer=bound.for_append, key=key, after=self._recorded.head, blobs=blobs
                )
            except HeadMoved:
                continue  # Another event came first.
            except Exists as error:
                raise self._explain_existing(event, error) from error
            return self._recorded.add(event, record)
        raise Unavailable(f"other events of {self.trace} came first {TRIES} times", advice="try again")

    def _find_key(self, event: Event) -> tuple[str | None, Authority | None]:
        """Return the idempotency key of an event, and the authority that it rests on."""
        if event.name == "tool_execution_started":
            from aver.protocol.calls import require_decision

            return require_decision(self, event)
        if event.name in ("tool_execution_completed", "tool_execution_failed"):
            return f"protocol-end:{event.refs['intent']}", None
        return (f"protocol-say:{event.id}" if event.contribution is not None else None), None

    def _explain_existing(self, event: Event, error: Exists) -> EventRefused:
        words = f"a record has the key {error.key}: "
        if event.name == "tool_execution_started":
            words += "the decision was used before, and one decision allows one start"
        else:
            words += "this was said before"
        return EventRefused("REPLAY", words)

    def _signer_of(self, agent: str) -> Signer | HoldableSigner:
        """Return the signer of an agent of this home, or of the operator. Raises `NotFound`."""
        if agent == OPERATOR:
            return self.ledger.signer()
        if agent not in self._signers:
            if self.ledger.keys.ring().active(agent) is None:
                words = f"the key of {agent} is not in this home"
                raise NotFound(words, advice="say it where the key is, or have it send a contribution")
            self._signers[agent] = self.ledger.keys.signer(agent, create=False)
        return self._signers[agent]

    # --- beginning and joining

    def _begin(
        self,
        task: Mapping[str, Any] | None,
        profile: str | None,
        participants: Mapping[str, str | Statement] | None,
    ) -> None:
        if task is None:
            raise NotFound(f"there is no trace {self.trace} in this ledger", advice="aver protocol list shows them")
        default, bounds = read_protocol_settings(self.ledger.config.protocol)
        chosen = profile or str(task.get("policy_profile", default))
        if chosen not in PROFILES:
            raise BadInput(f"{chosen[:80]!a} is not a profile", advice=f"use one of {', '.join(PROFILES)}")
        task_sha256 = digest_json(task)
        joins: list[tuple[Participant, Statement]] = []
        for agent, given in (participants or DEFAULT_PARTICIPANTS).items():
            if isinstance(given, Statement):
                join, statement, held = read_join(given), given, "elsewhere"
            else:
                signer = self.ledger.keys.signer(agent, post_quantum=self.ledger.config.post_quantum)
                join = Join(self.place, task_sha256, chosen, given, agent, signer.public, clock.now())
                statement, held = sign_join(signer, join), "here"
            joins.append((Participant(join.agent, join.role, join.key, held, ""), statement))
        payload = {
            "v": 1,
            "task": dict(task),
            "task_sha256": task_sha256,
            "profile": chosen,
            "bounds": tighten_bounds(bounds, task).to_dict(),
            "participants": [participant.to_dict() for participant, _ in joins],
        }
        if problem := find_payload_problem("session_initialized", payload):
            raise BadInput(f"the task or the participants cannot be used: {problem}")
        event = Event(
            trace=self.trace,
            name="session_initialized",
            role=OPERATOR,
            agent=OPERATOR,
            payload=payload,
            statements=tuple(statement for _, statement in joins),
            before="initialized",
        )
        bound = BoundSigner(self.ledger.signer())
        event = replace(event, signer=bound.fingerprint)
        event = replace(event, after=self.fold.next_state(event))
        try:
            record = self.ledger.append(
                self.chain,
                build_event_draft(event),
                signer=bound.for_append,
                key=f"protocol:{self.trace}",
                after=self._recorded.head,
            )
        except (Exists, HeadMoved):
            debug("protocol", "the trace %s was begun by another process at the same time", self.trace)
            self._resume(task)
            return
        self._recorded.add(event, record, bound.public)

    def join(self, agent: str, role: str) -> Event:
        """Take in one more agent of this home. Returns the event by which it joined."""
        signer = self.ledger.keys.signer(agent, post_quantum=self.ledger.config.post_quantum)
        return self._admit_join(self._sign_join(signer, agent, role), "here")

    def _sign_join(self, signer: Any, agent: str, role: str) -> Statement:
        fold = self.fold
        join = Join(self.place, fold.task_sha256, fold.profile, role, agent, signer.public, clock.now())
        return sign_join(signer, join)

    def _admit_join(self, statement: Statement, held: str, *, rotations: tuple[Statement, ...] = ()) -> Event:
        """Have the operator seal a join. A successor brings the rotations that lead to its key."""
        join = read_join(statement)
        with self._lock:
            if join.agent != OPERATOR:
                self._renew(OPERATOR)
            before = self.fold.participants.get(join.agent)
            participant = Participant(join.agent, join.role, join.key, held, "")
            return self._seal(
                Event(
                    trace=self.trace,
                    name="participant_joined",
                    role=OPERATOR,
                    agent=OPERATOR,
                    payload={"v": 1, "participant": participant.to_dict()},
                    refs={} if before is None else {"succeeds": before.joined},
                    statements=(statement, *rotations),
                ),
                self.ledger.signer(),
                (),
            )

    def _renew(self, agent: str) -> None:
        """Have a key of this home that was rotated join anew, by its rotation statements."""
        participant = self.fold.participants.get(agent)
        if participant is None or self.fold.is_over:
            return
        identity = "ledger" if agent == OPERATOR else agent
        ring = self.ledger.keys.ring()
        active, old = ring.active(identity), ring.entry(participant.key.fingerprint)
        if active is None or old is None or old.identity != identity or active.key == participant.key:
            return
        later = sorted((entry for entry in ring.entries_of(identity) if entry.epoch > old.epoch), key=lambda e: e.epoch)
        rotations = tuple(entry.statement for entry in later if entry.statement is not None)
        rotations = tuple(each for each in rotations if each.purpose == ROTATION_PURPOSE)
        signer = self._signer_of(agent)
        debug("protocol", "the key of %s was rotated: it joins %s anew", agent, self.trace)
        self._admit_join(self._sign_join(signer, agent, participant.role), participant.held, rotations=rotations)

    # --- contributions

    def contribute(
        self,
        agent: str,
        event: str,
        payload: Mapping[str, Any],
        *,
        refs: Mapping[str, str] | None = None,
        artifacts: Iterable[Blob] = (),
    ) -> ContributionFile:
        """Sign an event that the operator is to seal elsewhere. Nothing is appended here.

        It names the head that this session has seen: the operator cannot seal it into another history.
        """
        with self._lock:
            self._read_on()
            participant, head = self.find_participant(agent), self.fold.head
            assert head is not None
            said = Event(
                trace=self.trace,
                name=event,
                role=participant.role,
                agent=agent,
                payload=prepare_payload(event, payload),
                refs=dict(refs or {}),
            )
            self.fold.next_state(said)  # Refused here already, if it may not come.
            signer: Any = self._signer_of(agent)
            statement = sign_contribution(signer, self.place, said, head)
        return ContributionFile(statement, said.payload, tuple(artifacts))

    def accept(self, contribution: ContributionFile | Statement | Mapping[str, Any]) -> Event:
        """Seal a participant's contribution or join, as the operator. Returns the event.

        Each counts once, and only in the trace that it names. Raises `EventRefused` where it does not.
        """
        if isinstance(contribution, Mapping):
            document = dict(contribution)
            is_statement = "purpose" in document
            contribution = Statement.from_dict(document) if is_statement else ContributionFile.from_dict(document)
        if isinstance(contribution, Statement):
            if contribution.purpose != JOIN_PURPOSE:
                words = f"a statement of the purpose {contribution.purpose} cannot be accepted by itself"
                raise BadInput(words, advice="send the whole contribution, with its payload")
            return self._admit_join(contribution, "elsewhere")
        if contribution.statement.purpose != EVENT_PURPOSE:
            raise BadInput(f"a contribution has a statement of the purpose {EVENT_PURPOSE}")
        said = read_contribution(contribution.statement)
        if said.place != self.place:
            raise EventRefused("REPLAY", "the contribution is for another ledger, tenant or trace", place="statement")
        extra = {blob.digest for blob in contribution.artifacts} - set(said.artifacts)
        if extra:
            raise BadInput(f"the contribution brings an artifact that it does not name: {min(extra)}")
        payload = contribution.payload
        if mask(dict(payload)).count and said.event not in SEALED_AS_GIVEN:
            words = "the contribution holds something that looks like a secret, and nobody but its signer may change it"
            raise Refused("SECRET_FOUND", words, advice="mask it and sign again")
        if problem := find_payload_problem(said.event, payload):
            raise EventRefused("SCHEMA_INVALID", problem, place="payload")
        with self._lock:
            self._read_on()
            self._renew(OPERATOR)
            event = Event(
                trace=self.trace,
                name=said.event,
                role=said.role,
                agent=said.agent,
                payload=payload,
                refs=dict(said.refs),
                statements=(contribution.statement,),
                id=said.id,
            )
            return self._seal(event, self.ledger.signer(), contribution.artifacts)

    # --- for the handles

    def keep_arguments(self, intent: str, arguments: Mapping[str, Any]) -> None:
        """Keep the arguments of an intent in memory: its record has them without secrets."""
        self._arguments[intent] = dict(arguments)

    def find_arguments(self, intent: IntentStanding) -> Mapping[str, Any]:
        """Return the arguments of an intent, as they were given. Raises `Refused` where only masked ones are left."""
        given = self._arguments.get(intent.id)
        if given is None:
            given = restore_large_texts(intent.payload["arguments"], self.ledger.blob)
            if "[masked:" in canonical_json(given).decode("utf-8", "replace"):
                words = "the arguments of this intent held a secret, and the process that knew it has ended"
                raise Refused("ARGUMENTS_MASKED", words, advice="sign a new intent")
        return given

    def find_statement_signer(self, agent: str) -> StatementSigner:
        """Return the signer of an agent of this home, for statements."""
        signer: Any = self._signer_of(agent)
        return cast("StatementSigner", signer)

    def close_chain(self) -> None:
        """Record in `meta` where the trace ends, if this home holds the operator's key."""
        if self._find_operator_signer() is not None:
            self.ledger.close_chain(self.chain)

    # --- the operator's ends

    def abort(self, reason: str, *, code: str = "OPERATOR") -> Event:
        """End the trace before its time, as the operator."""
        return self.seal_event(OPERATOR, "session_aborted", {"code": code, "reason": reason})

    def resolve(self, challenge: str, *, wait: float = 0.0) -> Event | None:
        """Ask a person to rule on a challenge, and seal the ruling. None where nobody has answered yet.

        Approving lets the claim stand and dismisses the challenge; denying upholds it.
        """
        from aver.protocol.dispute import resolve_challenge

        return resolve_challenge(self, challenge, wait)

    # --- going on

    def _resume(self, task: Mapping[str, Any] | None) -> None:
        """Read and verify the trace, and give up calls that nobody can be running any more."""
        self._read_on(self._remembered)
        if self.fold.count == 0:
            raise NotFound(f"there is no trace {self.trace} in this ledger", advice="aver protocol list shows them")
        if task is not None and digest_json(task) != self.fold.task_sha256:
            raise BadInput(f"the trace {self.trace} is about another task", advice="leave the task out to go on")
        self._give_up_lost_calls()

    def _read_on(self, remembered: SeenHead | None = None) -> None:
        """Read and verify what is new. A record that does not hold ends the trace."""
        try:
            self._recorded.catch_up(remembered)
        except IntegrityError as error:
            self._fail(error)
            raise

    def _find_operator_signer(self) -> BoundSigner | None:
        """Return the operator's signer, if its key is in this home. Never makes a key."""
        operator, signer = self.fold.participants.get(OPERATOR), self.ledger.signer()
        if isinstance(signer, StoreSigner) and self.ledger.keys.ring().active(signer.identity) is None:
            return None
        bound = BoundSigner(signer)
        return bound if operator is not None and bound.public == operator.key else None

    def _fail(self, error: IntegrityError) -> None:
        """Seal `session_failed` after a trace that does not hold, if this home holds its operator's key.

        Another history than the one that was seen here is left alone: it is not this session's to end.
        """
        if self.fold.is_over or error.code == "ROLLBACK":
            return
        try:
            bound, last = self._find_operator_signer(), self.ledger.head(self.chain)
            newest = next(self.ledger.read(self.chain, last.count - 1), None)
            if bound is None or (newest is not None and newest.kind == "protocol.session_failed"):
                return
            finding = {"code": error.code, "sequence": self.fold.count, "words": error.message[:1000]}
            event = Event(
                trace=self.trace,
                name="session_failed",
                role=OPERATOR,
                agent=OPERATOR,
                payload={"v": 1, "finding": finding},
                before=self.fold.state,
                after="failed",
            )
            self.ledger.append(self.chain, build_event_draft(event), signer=bound.for_append, after=last)
        except AverError as trouble:  # The finding itself is what the caller must get.
            debug("protocol", "session_failed of %s cannot be sealed: %s", self.trace, trouble)

    def _give_up_lost_calls(self) -> None:
        """Seal `OUTCOME_UNKNOWN` for each call that has started, has no end, and cannot be running any more."""
        if not self.fold.running:
            return
        try:
            agent = self._find_own("executor")
        except NotFound:
            return  # Those who hold an executor's key give up its calls.
        ring = self.ledger.keys.ring()
        with try_exclusive_lock(self.home, self.trace) as is_free:
            for start in list(self.fold.running):
                execution = self.fold.executions[start]
                is_own = ring.active(execution.agent) is not None
                # Elsewhere, nobody here can tell whether its process lives: then only its time limit counts.
                if not (is_free if is_own else execution.until < clock.now()):
                    continue
                speaker = execution.agent if is_own else agent
                refs = {"intent": execution.intent, "start": start}
                payload = {"code": "OUTCOME_UNKNOWN", "words": GIVEN_UP, "output": {}}
                with suppress(EventRefused):  # Another process has given it up, or its runner has ended it after all.
                    self.seal_event(speaker, "tool_execution_failed", payload, refs=refs)

    # --- the context

    def close(self) -> None:
        """Remember the head of the trace in this home, and close the ledger if this session opened it."""
        if self.fold.count:
            save_seen_head(self.home, self.place, self.trace, self._recorded.head)
        self._close_ledger()

    def _close_ledger(self) -> None:
        if self._owns_ledger:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
