"""Runs a trace: asks each role for its next event, runs the calls that may run, audits, until the trace ends.

    session = run_protocol("all checks pass", {"planner": plan, "executor": execute, "critic": criticise})

The loop is fair: in each round every role gets one view and may say one event. It is bounded: a round in which nobody
says anything ends the run, unless somebody who speaks by itself is waited for. A run has at most `EVENTS_MAX` events.
Between rounds the loop does what needs no role:

* it runs the intents that may run now, by the executors whose keys are here, side by side where they are independent
  (`roles.call_batch`). The session asks the gate first. The calls begin once a whole round has added no other to them,
  or as soon as there are as many as run side by side. So a role never sees a call of this run half done;
* once the final statement is signed, it has the auditor audit, unless the auditor has a function of its own.

Nobody can challenge a claim after the final statement. So the run holds the statement back while a critic who speaks by
itself has time to challenge: until `wait` seconds have passed since the newest event. The executor is asked again when
the critic has said something.

A role that says what it may not say now gets the reason with its next view. After `REFUSALS_MAX` refusals in a row it
is broken: `RoleBroken`. The trace stays as it is, and another run can go on with it. A refusal does not count if others
have said something since the role got its view. Two runs of one trace may speak for the same agent. Its answer counts
only while the other run has not spoken for it since; then it is asked anew. So nothing is said or done twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from aver.errors import AverError, BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.log import debug
from aver.protocol.events import OPERATOR
from aver.protocol.records.membership import is_held_here
from aver.protocol.roles.call_batch import WaitingCall, count_beside, run_calls
from aver.protocol.roles.role import RoleFunction, find_origin, leave_audit_to_session, stay_silent
from aver.protocol.roles.role_process import CommandRole, RoleBroken
from aver.protocol.roles.said_events import find_wrong_field, say_for
from aver.protocol.rules.step import EventRefused
from aver.protocol.view import Said, View, find_admitted_events, find_open_things

if TYPE_CHECKING:
    from aver.protocol.events import Event
    from aver.protocol.session import ProtocolSession

EVENTS_MAX = 10_000
"""Most events of one run. Two roles that always have something to say must not go on for ever."""

REFUSALS_MAX = 3
"""Refusals in a row after which a role counts as broken."""

POLL_SECONDS = 0.25
"""How often a run looks for events of participants that speak by themselves."""


@dataclass(frozen=True, slots=True)
class RunNote:
    """One step of a run: an event that was sealed, a refusal, or a wait. The command line shows each as a line."""

    agent: str
    event: Event | None
    refusal: str = ""
    waits_for: tuple[str, ...] = ()
    """The agents that the run waits for now. `agent` then is the one who concludes after that, or empty."""


Watcher = Callable[[RunNote], None]


def run_protocol(
    make_session: Callable[..., ProtocolSession],
    task: Mapping[str, Any] | str | None,
    roles: Mapping[str, RoleFunction],
    *,
    watch: Watcher | None = None,
    **same: Any,
) -> ProtocolSession:
    """Run a trace with these roles, and return its session, open. `aver.run_protocol` is this for callers.

    `make_session` takes the task and the options of `ProtocolSession`, which are `same`.
    `roles` maps agents, such as `agent:critic`, to their functions; `critic` stands for `agent:critic`. Agents whose
    key is elsewhere, or who speak by themselves, need none. `wait` is also how long the run waits for those.
    Raises `RoleBroken`, and what the session raises.
    """
    from aver.protocol.tools.standard_tools import protocol_tools

    workspace = same.get("workspace") or os.getcwd()
    tools = same.pop("tools", None) or protocol_tools(workspace)
    session = make_session(task, tools=tools, **same)
    try:
        named = {_name_agent(name): role for name, role in roles.items()}
        run_session(session, named, watch=watch, wait=session.wait)
    except BaseException:
        session.close()
        raise
    return session


def _name_agent(name: str) -> str:
    return name if ":" in name else f"agent:{name}"


def run_session(
    session: ProtocolSession,
    roles: Mapping[str, RoleFunction],
    *,
    watch: Watcher | None = None,
    wait: float = 0.0,
) -> None:
    """Run an open session until its trace ends or nobody has anything to say.

    `wait` is for how many seconds the run waits for participants that speak by themselves, after each event.
    """
    loop = _TraceLoop(session, roles, watch or (lambda _: None), wait)
    while not session.fold.is_over and loop.count < EVENTS_MAX:
        if loop.run_round():
            continue
        if not loop.is_held and loop.quiet_seconds >= wait:
            return
        loop.tell_wait()
        time.sleep(min(POLL_SECONDS, wait))
        session.catch_up()
    loop.show_events()  # Others may have ended the trace.
    debug("protocol", "the run of %s ends after %s events in %s", session.trace, loop.count, session.state)


def find_awaited(session: ProtocolSession, roles: Mapping[str, RoleFunction]) -> tuple[str, ...]:
    """Return the participants that could say something now, and for whom these roles do not speak."""
    return tuple(
        agent
        for agent, participant in session.fold.participants.items()
        if agent != OPERATOR
        and roles.get(agent, stay_silent) is stay_silent
        and find_admitted_events(session.fold, participant.role)
    )


class _HeldStatement(NamedTuple):
    """A final statement that was not said yet, and the view that its executor was shown."""

    said: Said
    view: View


class _TraceLoop:
    """One run of a session."""

    def __init__(
        self, session: ProtocolSession, roles: Mapping[str, RoleFunction], watch: Watcher, wait: float
    ) -> None:
        self._session = session
        self._roles = dict(roles)
        self._watch = watch
        self._wait = wait
        self._refusals: dict[str, int] = {}
        self._waiting: dict[str, str] = {}
        self._runnable: set[WaitingCall] = set()
        """The calls that could run after the last round."""
        self._held: dict[str, _HeldStatement] = {}
        self._silent: dict[str, Mapping[str, Any]] = {}
        """The head of the view at which a program had nothing to say."""
        self._began = self._shown = session.fold.count
        self._changed = time.monotonic()
        self._told: tuple[int, tuple[str, ...]] | None = None

    @property
    def count(self) -> int:
        """How many events the trace has got since the run began."""
        return self._session.fold.count - self._began

    @property
    def quiet_seconds(self) -> float:
        """For how long the run has seen no new event."""
        return time.monotonic() - self._changed

    @property
    def is_held(self) -> bool:
        """Whether a final statement waits for critics. The next rounds say it, or ask for another."""
        return bool(self._held)

    def run_round(self) -> bool:
        """Give every role one turn. Returns whether anything happened."""
        before = self._session.fold.count
        self.show_events()  # Others may have said something meanwhile.
        refused = False
        for agent, role in self._roles.items():
            if self._session.fold.is_over:
                break
            participant = self._session.fold.participants.get(agent)
            if participant is None:
                raise BadInput(f"{agent} does not take part in {self._session.trace}")
            if participant.role == "auditor" and role is leave_audit_to_session and self._session.state == "auditing":
                self._audit(agent)
                continue
            refused |= self._ask(agent, role)
        self._run_unasked_audit()
        deferred = self._run_intents()
        self.show_events()
        return refused or deferred or self._session.fold.count != before

    def show_events(self) -> None:
        """Tell the watcher every event that it has not got yet, whoever said it."""
        if self._session.fold.count == self._shown:
            return
        for event in self._session.events[self._shown :]:
            self._shown += 1
            self._changed = time.monotonic()
            self._watch(RunNote(event.agent, event))

    # --- asking

    def _ask(self, agent: str, role: RoleFunction) -> bool:
        """Ask a role for its event and say it. Returns whether it was refused, so that it may try again."""
        view = self._session.view(agent)
        held = self._held.pop(agent, None)
        if not view.may_say:
            return False
        if held is not None and held.view.head == view.head:
            said: Said | None = held.said
        elif self._silent.get(agent) == view.head:
            said = None
        else:
            said = self._call(agent, role, view)
        if said is None:
            if isinstance(role, CommandRole):
                # It knows the trace alone. While nothing is new there, it is not started again for the same answer.
                self._silent[agent] = view.head
            return False
        if said.event == "final_statement_signed" and self._leaves_turn(agent):
            self._held[agent] = _HeldStatement(said, view)
            return False
        try:
            say_for(self._session, agent, said, view)
        except (Refused, BadInput) as error:
            return self._note_refusal(agent, role, said, view, error)
        self._refusals[agent] = 0
        if isinstance(role, CommandRole):
            role.refused = ""
        self.show_events()
        return False

    def _call(self, agent: str, role: RoleFunction, view: View) -> Said | None:
        try:
            said = role(view)
        except AverError:
            raise
        except Exception as error:
            raise RoleBroken(agent, f"{type(error).__name__}: {error}{find_origin(error)}") from error
        if said is not None and not isinstance(said, Said):
            raise RoleBroken(agent, f"it returned a {type(said).__name__}, not a Said or None")
        if said is not None and (field := find_wrong_field(said)):
            raise RoleBroken(agent, f"the {field} of what it said is of a wrong type")
        return said

    def _note_refusal(self, agent: str, role: RoleFunction, said: Said, view: View, error: AverError) -> bool:
        reason = f"{said.event}: {error}"
        debug("protocol", "%s is refused: %s", agent, reason)
        self._watch(RunNote(agent, None, reason))
        if isinstance(role, CommandRole):
            role.refused = reason
        newer = self._session.events[view.head.get("count", 0) :]
        if getattr(error, "place", "") == "seen" or any(event.agent != agent for event in newer):
            return True  # Somebody else came first: the role has not seen that yet.
        self._refusals[agent] = self._refusals.get(agent, 0) + 1
        if self._refusals[agent] >= REFUSALS_MAX:
            raise RoleBroken(agent, f"refused {REFUSALS_MAX} times in a row, at last: {reason}") from error
        return True

    # --- waiting

    def _leaves_turn(self, agent: str) -> bool:
        """Whether critics who speak by themselves still have time to challenge, before this agent concludes."""
        fold = self._session.fold
        awaited = tuple(critic for critic in fold.critics if self._roles.get(critic, stay_silent) is stay_silent)
        if not awaited or self.quiet_seconds >= self._wait:
            return False
        self._tell_wait(agent, awaited)
        return True

    def tell_wait(self) -> None:
        """Tell the watcher whom the run waits for, once after each event."""
        if not self._held and (awaited := find_awaited(self._session, self._roles)):
            self._tell_wait("", awaited)

    def _tell_wait(self, agent: str, awaited: tuple[str, ...]) -> None:
        if self._told != (told := (self._session.fold.count, awaited)):
            self._told = told
            self._watch(RunNote(agent, None, waits_for=awaited))

    # --- what needs no role

    def _run_intents(self) -> bool:
        """Run the intents that may run now, unless more may come. Returns whether some wait for the next round."""
        calls = self._find_calls()
        may_grow = not self._runnable.issuperset(calls) and len(calls) < count_beside()
        self._runnable = set(calls)
        if calls and not may_grow:
            run_calls(self._session, calls, note=self._note_waiting, show=self.show_events)
        return bool(calls) and may_grow

    def _find_calls(self) -> list[WaitingCall]:
        """Return the calls that may run now, by executors of this run whose keys are here, as they were signed."""
        with self._session.hold_fold() as fold:
            runs = find_open_things(fold, "")["runs"] if fold.open_intents else ()
            calls = [WaitingCall(fold.intents[intent].agent, intent) for intent in runs]
        agents = {call.agent for call in calls}
        own = {agent for agent in agents if agent in self._roles and is_held_here(self._session, agent)}
        return [call for call in calls if call.agent in own]

    def _note_waiting(self, call: WaitingCall, error: AverError) -> None:
        """Say once why an intent does not run now."""
        if self._waiting.get(call.intent) != error.message:
            self._waiting[call.intent] = error.message
            self._watch(RunNote(call.agent, None, str(error)))

    def _audit(self, agent: str) -> None:
        from aver.protocol.handles import AuditorHandle

        try:
            AuditorHandle(self._session, agent).audit()
        except EventRefused:
            if not self._session.fold.is_over:  # Else another run has audited at the same time.
                raise
        self.show_events()

    def _run_unasked_audit(self) -> None:
        """Audit, if an auditor's key is here and the caller named no function for it."""
        if self._session.state != "auditing":
            return
        ring = self._session.ledger.keys.ring()
        for agent, participant in self._session.fold.participants.items():
            if participant.role == "auditor" and agent not in self._roles and ring.active(agent) is not None:
                self._audit(agent)
                return
