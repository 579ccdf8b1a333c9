"""A session: one trace of the protocol in a ledger, and all that may be done with it.

    with aver.ProtocolSession({"objective": "run the tests"}, tools=runner) as session:
        proposal = session.planner.propose("run pytest", required_tools=["pytest"])
        session.critic.review(proposal.id, "approved", rationale="harmless")
        intent = session.executor.intend(proposal.id, "pytest", {}, justification="to count")
        end = session.executor.run(intent.id)
        ...

`say` is the one way to append an event, and does these steps:

    1. check the payload against its schema, and mask secrets in it
    2. ask the fold whether the event may come now, and what state follows
    3. seal it right after the head that was judged, by the key that its agent joined by
    4. if another event came first, or the fold refuses and there are newer records, read and verify these, and go on
       with step 2: who loses a race is judged anew

A session that is opened with the id of a trace goes on with it. It reads and verifies every stored record first. A call
that was started and has no end becomes `OUTCOME_UNKNOWN`, once nobody can be running it any more: its executor's key is
in this home and no process here holds the lock of the trace, or the time of the call has passed.

A broken record ends the trace: the operator's session seals `session_failed` with the finding, and raises.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from aver import clock
from aver.capsule.blobs import Blob, restore_large_texts
from aver.capsule.canonical import canonical_json
from aver.capsule.model import Authority
from aver.capsule.sealed import HoldableSigner, Signer
from aver.errors import BadInput, Exists, HeadMoved, IntegrityError, NotFound, Refused
from aver.keys.statement import Statement
from aver.ledger import Ledger, open_ledger
from aver.log import debug
from aver.protocol.contributions import accept_for_trace, sign_for_operator
from aver.protocol.events import OPERATOR, Event, build_event_draft, check_trace_id
from aver.protocol.records.draft import BoundSigner, prepare_payload, prepare_task
from aver.protocol.records.event_seal import seal_right_after
from aver.protocol.records.membership import (
    admit_join,
    build_first_event,
    find_operator_signer,
    is_held_here,
    renew_key,
    sign_join_file,
)
from aver.protocol.records.recorded_trace import RecordedTrace
from aver.protocol.records.recovery import fail_trace, give_up_lost_calls
from aver.protocol.records.trace_files import read_seen_head, save_seen_head
from aver.protocol.rules.step import EventRefused
from aver.protocol.standings import IntentStanding, Participant
from aver.protocol.statements import (
    ContributionFile,
    JoinFile,
    SeenHead,
    TracePlace,
    digest_json,
)
from aver.protocol.trace import ProtocolTrace
from aver.protocol.view import View, build_view

if TYPE_CHECKING:
    from aver.keys.statement import StatementSigner
    from aver.protocol.handles import AuditorHandle, CriticHandle, ExecutorHandle, PlannerHandle
    from aver.protocol.runner import AuditEngine, ToolRunner
    from aver.verdict import Examiner, Verdict


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
        self._own: set[str] = set()
        """Agents whose key is in this home. A key that was here stays here, so it is looked for once."""
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

    @contextmanager
    def hold_fold(self) -> Iterator[ProtocolTrace]:
        """Give the fold up to the present head. While the context lasts, no other thread of this session changes it."""
        with self._lock:
            self._read_on()
            yield self.fold

    def view(self, agent: str) -> View:
        """Return what a participant sees now, and what it may say. Raises `NotFound` for anybody else."""
        with self.hold_fold() as fold:
            return build_view(fold, self.find_participant(agent))

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
        for agent, participant in self.fold.participants.items():
            if participant.role == role and (agent in self._own or is_held_here(self, agent)):
                self._own.add(agent)
                return agent
        advice = f"join it first: aver protocol join {self.trace} --role {role} --as agent:NAME"
        raise NotFound(f"this home holds the key of no {role} of the trace {self.trace}", advice=advice)

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
        seen: int | None = None,
    ) -> Event:
        """Say an event, also one that rests on statements or on a person: for handles. It does what `say` does.

        `seen` is how many events the speaker has seen. The event is refused if another process has spoken for the same
        agent since: each of two runs of one trace would say the same.
        """
        with self._lock:
            if agent not in self.fold.participants:
                self._read_on()  # It may have joined since.
            renew_key(self, agent)
            participant = self.fold.participants.get(agent)
            if participant is None:
                raise EventRefused("ROLE_POLICY_VIOLATION", f"{ascii(agent)[:80]} does not take part", place="agent")
            return self.seal_judged(
                Event(
                    id=event_id or clock.new_id(),
                    trace=self.trace,
                    name=event,
                    role=participant.role,
                    agent=agent,
                    payload=prepare_payload(event, payload),
                    refs=dict(refs or {}),
                    statements=statements,
                ),
                self.find_signer(agent),
                artifacts,
                authority,
                seen,
            )

    def seal_judged(
        self,
        event: Event,
        signer: Signer | HoldableSigner,
        blobs: Sequence[Blob] = (),
        authority: Authority | None = None,
        seen: int | None = None,
    ) -> Event:
        """Judge an event whose payload is prepared, and seal it, anew as often as another comes first: steps 2 to 4."""
        return seal_right_after(self, self._recorded, event, signer, blobs, authority, seen)

    def find_signer(self, agent: str) -> Signer | HoldableSigner:
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
        bound = BoundSigner(self.ledger.signer())
        entry = self.ledger.keys.ring().entry_of(bound.public)
        if entry is not None and not entry.role.may_attest:
            words = f"a trace is opened by the ledger's key, and this ledger seals by that of {entry.identity}"
            raise BadInput(words, advice="open the ledger without a signer, or invite the operator's home")
        event = build_first_event(self, task, profile, participants)._replace(signer=bound.fingerprint)
        event = event._replace(after=self.fold.next_state(event))
        draft, key = build_event_draft(event), f"protocol:{self.trace}"
        try:
            record = self.ledger.append(self.chain, draft, signer=bound.for_append, key=key, after=self._recorded.head)
        except (Exists, HeadMoved):
            debug("protocol", "the trace %s was begun by another process at the same time", self.trace)
            self._resume(task)
            return
        self._recorded.add(event, record, bound.public)

    def join(self, agent: str, role: str) -> Event:
        """Take in one more agent of this home. Returns the event by which it joined."""
        with self._lock:
            return admit_join(self, sign_join_file(self, agent, role), "here")

    def sign_join(self, agent: str, role: str) -> JoinFile:
        """Sign that an agent of this home takes a role in the trace. The operator's session accepts it.

        For a key that took part and was rotated, the file has the rotation statements that lead to the new one.
        """
        return sign_join_file(self, agent, role)

    # --- contributions

    def contribute(
        self,
        agent: str,
        event: str,
        payload: Mapping[str, Any],
        *,
        refs: Mapping[str, str] | None = None,
        artifacts: Iterable[Blob] = (),
        more: tuple[Statement, ...] = (),
    ) -> ContributionFile:
        """Sign an event that the operator is to seal elsewhere. Nothing is appended here.

        It names the head that this session has seen: the operator cannot seal it into another history. `more` are
        further statements that the event needs, such as the auditor's about its report.
        """
        return sign_for_operator(self, agent, event, payload, refs or {}, tuple(artifacts), more)

    def accept(self, contribution: ContributionFile | JoinFile | Statement | Mapping[str, Any]) -> Event:
        """Seal a participant's contribution or join, as the operator. Returns the event.

        Each counts once, and only in the trace that it names. Raises `EventRefused` where it does not.
        """
        return accept_for_trace(self, contribution)

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
        signer: Any = self.find_signer(agent)
        return cast("StatementSigner", signer)

    def close_chain(self) -> None:
        """Record in `meta` where the trace ends, if this home holds the operator's key."""
        if find_operator_signer(self) is not None:
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
        give_up_lost_calls(self)

    def _read_on(self, remembered: SeenHead | None = None) -> None:
        """Read and verify what is new. A record that does not hold ends the trace."""
        try:
            self._recorded.catch_up(remembered)
        except IntegrityError as error:
            fail_trace(self, error)
            raise

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
