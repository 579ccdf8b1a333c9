"""Runs a trace: asks each role for its next event, runs the calls that may run, audits, until the trace ends.

    session = run_protocol("all checks pass", {"planner": plan, "executor": execute, "critic": criticise})

The loop is fair: in each round every role gets one view and may say one event. It is bounded: a round in which nobody
says anything ends the run, unless somebody who speaks by itself is waited for. A run has at most `EVENTS_MAX` events.
Between rounds the loop does what needs no role:

* it runs each intent that may run now, by the executor whose key is here. The session asks the gate first;
* once the final statement is signed, it has the auditor audit, unless the auditor has a function of its own.

A role that says what it may not say now gets the reason with its next view. After `REFUSALS_MAX` refusals in a row it
is broken: `RoleBroken`. The trace stays as it is, and another run can go on with it.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aver.capsule.blobs import Blob
from aver.errors import AverError, BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.log import debug
from aver.protocol.roles.role import RoleFunction, find_origin, leave_audit_to_session, stay_silent
from aver.protocol.roles.role_process import CommandRole, RoleBroken
from aver.protocol.view import Said, View, check_speaker

if TYPE_CHECKING:
    from aver.protocol.events import Event
    from aver.protocol.roles.task_file import RoleSpec
    from aver.protocol.roles.work_items import BlobReader
    from aver.protocol.session import ProtocolSession

EVENTS_MAX = 10_000
"""Most events of one run. Two roles that always have something to say must not go on for ever."""

REFUSALS_MAX = 3
"""Refusals in a row after which a role counts as broken."""

POLL_SECONDS = 0.25
"""How often a run looks for events of participants that speak by themselves."""

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "proposal_created": {"assumptions": [], "required_tools": [], "expected_evidence": []},
    "proposal_reviewed": {"risk": None, "conditions": []},
    "claim_issued": {"about": "success"},
    "claim_challenged": {"evidence": []},
    "claim_revised": {"retracted": False},
}
"""Fields that a role may leave out."""


@dataclass(frozen=True, slots=True)
class RunNote:
    """One step of a run: an event that was sealed, or a refusal. The command line shows each as a line."""

    agent: str
    event: Event | None
    refusal: str = ""


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
    key is elsewhere, or who speak by themselves, need none. Raises `RoleBroken`, and what the session raises.
    """
    from aver.protocol.tools.standard_tools import protocol_tools

    workspace = same.get("workspace") or os.getcwd()
    tools = same.pop("tools", None) or protocol_tools(workspace)
    session = make_session(task, tools=tools, **same)
    try:
        run_session(session, {_name_agent(name): role for name, role in roles.items()}, watch=watch)
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
    loop = _TraceLoop(session, roles, watch or (lambda _: None))
    quiet_since: float | None = None
    while not session.fold.is_over and loop.count < EVENTS_MAX:
        if loop.run_round():
            quiet_since = None
            continue
        quiet_since = quiet_since or time.monotonic()
        if time.monotonic() - quiet_since >= wait:
            return
        time.sleep(POLL_SECONDS)
        session.catch_up()
    debug("protocol", "the run of %s ends after %s events in %s", session.trace, loop.count, session.state)


class _TraceLoop:
    """One run of a session."""

    def __init__(self, session: ProtocolSession, roles: Mapping[str, RoleFunction], watch: Watcher) -> None:
        self._session = session
        self._roles = dict(roles)
        self._watch = watch
        self._refusals: dict[str, int] = {}
        self._waiting: dict[str, str] = {}
        self.count = 0

    def run_round(self) -> bool:
        """Give every role one turn. Returns whether anything happened."""
        before = self._session.fold.count
        refused = False
        for agent, role in self._roles.items():
            if self._session.fold.is_over:
                break
            participant = self._session.fold.participants.get(agent)
            if participant is None:
                raise BadInput(f"{agent} does not take part in {self._session.trace}")
            if participant.role == "executor":
                self._run_intents(agent)
            if participant.role == "auditor" and role is leave_audit_to_session and self._session.state == "auditing":
                self._audit(agent)
                continue
            refused |= self._ask(agent, role)
        self._run_unasked_audit()
        self.count += self._session.fold.count - before
        return refused or self._session.fold.count != before

    def _ask(self, agent: str, role: RoleFunction) -> bool:
        """Ask a role for its event and say it. Returns whether it was refused, so that it may try again."""
        view = self._session.view(agent)
        if not view.may_say:
            return False
        said = self._call(agent, role, view)
        if said is None:
            return False
        try:
            event = say_for(self._session, agent, said)
        except (Refused, BadInput) as error:
            return self._note_refusal(agent, role, said, error)
        self._refusals[agent] = 0
        if isinstance(role, CommandRole):
            role.refused = ""
        self._watch(RunNote(agent, event))
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
        if said is not None and (field := _find_wrong_field(said)):
            raise RoleBroken(agent, f"the {field} of what it said is of a wrong type")
        return said

    def _note_refusal(self, agent: str, role: RoleFunction, said: Said, error: AverError) -> bool:
        reason = f"{said.event}: {error}"
        debug("protocol", "%s is refused: %s", agent, reason)
        self._watch(RunNote(agent, None, reason))
        self._refusals[agent] = self._refusals.get(agent, 0) + 1
        if self._refusals[agent] >= REFUSALS_MAX:
            raise RoleBroken(agent, f"refused {REFUSALS_MAX} times in a row, at last: {reason}") from error
        if isinstance(role, CommandRole):
            role.refused = reason
        return True

    def _run_intents(self, agent: str) -> None:
        """Run the intents of an executor that may run now, one after the other: they share a workspace."""
        from aver.protocol.handles import ExecutorHandle

        view = self._session.view(agent)
        own = {intent["id"] for intent in view.intents}
        for intent in view.open["runs"]:
            if intent in own and self._session.fold.intents[intent].agent == agent:
                before = self._session.fold.count
                try:
                    ExecutorHandle(self._session, agent).run(intent)
                except Refused as error:
                    # A person must approve it first, or the bounds are used up. The intent stays as it is.
                    self._note_waiting(agent, intent, error)
                for event in self._session.events[before:]:
                    self._watch(RunNote(event.agent, event))

    def _note_waiting(self, agent: str, intent: str, error: Refused) -> None:
        """Say once why an intent does not run now."""
        if self._waiting.get(intent) != error.message:
            self._waiting[intent] = error.message
            self._watch(RunNote(agent, None, str(error)))

    def _audit(self, agent: str) -> None:
        from aver.protocol.handles import AuditorHandle

        before = self._session.fold.count
        AuditorHandle(self._session, agent).audit()
        for event in self._session.events[before:]:
            self._watch(RunNote(event.agent, event))

    def _run_unasked_audit(self) -> None:
        """Audit, if an auditor's key is here and the caller named no function for it."""
        if self._session.state != "auditing":
            return
        ring = self._session.ledger.keys.ring()
        for agent, participant in self._session.fold.participants.items():
            if participant.role == "auditor" and agent not in self._roles and ring.active(agent) is not None:
                self._audit(agent)
                return


def _find_wrong_field(said: Said) -> str:
    """The field of what a function said whose type is wrong; empty if there is none. The values come later."""
    if not isinstance(said.event, str):
        return "event"
    if not isinstance(said.payload, Mapping):
        return "payload"
    refs = said.refs.values() if isinstance(said.refs, Mapping) else [None]
    if not all(isinstance(value, str) for value in refs):
        return "refs"
    is_list = isinstance(said.artifacts, list | tuple)
    return "" if is_list and all(isinstance(blob, Blob) for blob in said.artifacts) else "artifacts"


def say_for(session: ProtocolSession, agent: str, said: Said) -> Event:
    """Say what a role wants to say. The session fills in what only it can know.

    That is the hash and the derived risk of an intent, and the standings of claims in a final statement. Asking for
    `verification_run_started` runs the whole audit.
    """
    from aver.protocol.handles import AuditorHandle, ExecutorHandle

    check_speaker(session.fold, agent, said.event)
    payload = {**_DEFAULTS.get(said.event, {}), **said.payload}
    payload.pop("v", None)
    if said.event == "claim_revised" and payload["retracted"] is True:
        payload = {"confidence": None, "evidence": [], **payload}
    if said.event == "tool_intent_signed":
        return _intend(session, agent, payload, said.refs)
    if said.event == "final_statement_signed":
        return ExecutorHandle(session, agent).conclude(_require_field(payload, "text", said.event))
    if said.event == "verification_run_started":
        AuditorHandle(session, agent).audit()
        return session.events[-1]
    return session.say(agent, said.event, payload, refs=said.refs, artifacts=said.artifacts)


def _intend(session: ProtocolSession, agent: str, payload: Mapping[str, Any], refs: Mapping[str, str]) -> Event:
    """Sign an intent. `repeatable` may be None: repeatable if the effects of the call allow it."""
    from aver.protocol.handles import ExecutorHandle
    from aver.protocol.rules.step import EventRefused

    event, wish = "tool_intent_signed", payload.get("repeatable", False)
    tool, arguments = _require_field(payload, "tool", event), _require_field(payload, "arguments", event)
    if not isinstance(tool, str) or not isinstance(arguments, Mapping):
        raise BadInput(f"{event} needs a text as tool, and an object as arguments")
    proposal, retry_of = _require_field(refs, "proposal", event), refs.get("retry_of")
    for repeatable in (True, False) if wish is None else (wish,):
        try:
            return ExecutorHandle(session, agent).intend(
                proposal,
                tool,
                arguments,
                justification=_require_field(payload, "justification", event),
                risk=_read_declared_risk(payload.get("risk")),
                repeatable=repeatable,
                retry_of=retry_of,
            )
        except EventRefused as error:
            if wish is not None or not repeatable or error.place != "repeatable":
                raise
    raise AssertionError("one of the two is signed, or raises")


def _require_field(values: Mapping[str, Any], name: str, event: str) -> Any:
    if name not in values:
        raise BadInput(f"{event} needs {name}", advice=f"aver protocol schema {event} shows its form")
    return values[name]


def _read_declared_risk(risk: Any) -> Any:
    """A role declares its risk as a word, or as the object that the event has."""
    return risk.get("declared") if isinstance(risk, Mapping) else risk


# --- roles from a task file


def build_roles(
    specs: tuple[RoleSpec, ...], *, workspace: str, directory: str, blob: BlobReader
) -> dict[str, RoleFunction]:
    """Return the functions of the roles of a task file, by agent. Those of participants who wait say nothing.

    `directory` is where programs run and modules are looked for: the folder of the task file.
    """
    found: dict[str, RoleFunction] = {}
    for spec in specs:
        if spec.source == "use":
            from aver.protocol.roles.built_in import build_role

            found[spec.agent] = build_role(spec.role, spec.value, workspace=workspace, options=spec.options, blob=blob)
        elif spec.source == "command":
            found[spec.agent] = CommandRole(spec.agent, spec.value, directory=directory, blob=blob)
        elif spec.source == "python":
            found[spec.agent] = import_role(spec.value, directory)
        else:
            found[spec.agent] = stay_silent
    return found


def import_role(name: str, directory: str) -> RoleFunction:
    """Import `module:function`, also from a folder that is not in Python's path. Raises `BadInput`."""
    module_name, _, function_name = name.partition(":")
    if directory not in sys.path:
        sys.path.insert(0, os.path.abspath(directory))
    try:
        function: RoleFunction = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"the role {name} cannot be loaded: {error}") from error
    if not callable(function):
        raise BadInput(f"the role {name} is no function")
    return function
