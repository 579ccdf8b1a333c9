"""One session of an agent: its current run, and the gate calls and actions in it.

A session is safe for threads. A gate call does not hold the lock, because it may wait for a human; recording an action
does. If this server or another one in the same session sealed the run, the next action starts a new run.

The gate's decisions about the run's actions, and which of them were used, are read from the ledger. So a server that
was started again knows them, and so do two servers in one session. A record is bound to the decision that it names
(`receipt_id`). One that names none is bound to the newest unused decision about the same thing: same type, description,
files and arguments. A decision about one file never covers another.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from aver import clock
from aver.actions.action import AgentAction, text_hash, value_hash
from aver.actions.run_capsules import ACTION_KIND, SEAL_KIND, read_sealed_action, run_chain
from aver.actions.run_directory import read_run_identity
from aver.actions.run_files import CAP_FILE
from aver.actions.runtime import AgentRuntime
from aver.capsule.masking.mask import mask
from aver.capsule.sealed import Sealed
from aver.errors import AverError, NotFound, Refused, Unavailable
from aver.events.log import EventProjection
from aver.gate.action import Action, is_description_needed
from aver.gate.ask import Answer, ask
from aver.gate.call_decisions import DoneAction, bind
from aver.gate.decision_record import DECISION_KIND, RecordedDecision, decision_chain
from aver.gate.settings import read_gate_mode
from aver.ledger import Ledger
from aver.mcp.tools import decision_label, to_action_type
from aver.mcp.workspace import RESUME_WITHIN, SessionSlot, Workspace


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """The facts in a record about an action that may have been gated."""

    action_type: str
    description: str
    tool: str
    files: Sequence[str]
    arguments: Mapping[str, Any] | None
    receipt_id: str | None

    def has_same_files_and_tool(self, decision: RecordedDecision) -> bool:
        """Whether a decision is about these files, and about this tool if about one."""
        gated = decision.action
        return gated.get("files") == _mask_value(list(self.files)) and decision.tool in ("", _mask_value(self.tool))

    def is_like(self, decision: RecordedDecision) -> bool:
        """Whether a decision is about the same thing in every respect that both name."""
        return (
            decision.action.get("type") == self.action_type
            and decision.instruction_hash == (text_hash(self.description) if self.description else None)
            and decision.input_hash == (value_hash(dict(self.arguments)) if self.arguments else None)
            and self.has_same_files_and_tool(decision)
        )


class RunDecisions:
    """The decisions of one run, as far as they were read. Not safe for threads: the session holds its lock."""

    def __init__(self, ledger: Ledger, run_id: str) -> None:
        self._ledger = ledger
        self._gates, self._actions = decision_chain(run_id), run_chain(run_id)
        self._read = {self._gates: 0, self._actions: 0}
        self._known: dict[str, RecordedDecision] = {}
        self._used: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._known)

    @property
    def refused_count(self) -> int:
        """How many of them refused."""
        return sum(decision.refuses for decision in self._known.values())

    def catch_up(self) -> None:
        """Read the records that are new in the ledger."""
        for chain in (self._gates, self._actions):
            try:
                new: Sequence[Sealed] = list(self._ledger.read(chain, self._read[chain]))
            except NotFound:
                new = ()
            for record in new:
                self._read[chain] += 1
                if record.kind == DECISION_KIND:
                    decision = RecordedDecision.from_record(record)
                    self._known[decision.gate_id] = decision
                elif record.kind == ACTION_KIND:
                    reference = read_sealed_action(record.to_dict()).gate
                    if reference is not None:
                        self._used.add(reference.gate_id)

    def find_decision(self, query: DecisionQuery) -> RecordedDecision | None:
        """Return the decision that a record was done under; None where that cannot be told.

        Raises `NotFound` where the record names a decision that does not exist.
        """
        if query.receipt_id is not None:
            # Other differences than these two are for the verdict to name.
            action = DoneAction(gate_id=query.receipt_id, is_like=query.has_same_files_and_tool)
            return bind(action, [self._known.get(query.receipt_id) or self._find_in_other_run(query.receipt_id)])
        unused = (known for known in reversed(self._known.values()) if known.gate_id not in self._used)
        return bind(DoneAction(is_like=query.is_like), unused)

    def _find_in_other_run(self, gate_id: str) -> RecordedDecision:
        """Return a decision of another run, such as one that was sealed in the meantime."""
        record = self._ledger.get(f"gate:{gate_id}") if gate_id.isprintable() else None
        if record is None or record.kind != DECISION_KIND:
            raise NotFound(
                f"the gate gave no answer {ascii(gate_id)[:80]}",
                advice="use receipt_id of capseal_gate, or leave it out",
            )
        return RecordedDecision.from_record(record)


def _mask_value(value: Any) -> Any:
    """Return a value as the gate's record has it: with secrets masked."""
    try:
        return mask(value).value
    except AverError:
        return None


TRIES = 3
"""How often Aver tries to record an action while another server seals the run."""

_CHANGE_TYPES = ("code_edit", "code_gen", "file_write", "file_delete")
"""Actions from whose failure the gate learns. A failed test, for example, does not mean that running tests is risky."""


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """An action that was recorded."""

    action: AgentAction
    receipt: str
    position: int
    """The number of the action in the run, starting at 1."""
    gate: RecordedDecision | None
    unbound: bool
    """The agent named a decision about other files or another tool. The action then counts as not gated."""


@dataclass(frozen=True, slots=True)
class SealedRun:
    """A sealed run: the result of `AgentRuntime.finalize`, the `.cap` file, and the number of outcomes learned."""

    result: Mapping[str, Any]
    cap: Path
    learned: int


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """The counts of a session in its current run."""

    actions: int
    gates: int
    denials: int


class _OpenRun:
    def __init__(self, runtime: AgentRuntime, decisions: RunDecisions) -> None:
        self.runtime = runtime
        self.decisions = decisions
        self.learned = 0


class McpSession:
    """A session of an agent. It owns its slot of the workspace and closes it."""

    def __init__(self, ledger: Ledger, workspace: Workspace, slot: SessionSlot, agent: str) -> None:
        self.agent = agent
        self._ledger = ledger
        self._workspace = workspace
        self._slot = slot
        self._lock = threading.RLock()
        self._open: _OpenRun | None = None
        self._events: EventProjection | None = None

    @property
    def run_id(self) -> str | None:
        """The current run of the session; None before its first gate call or action."""
        with self._lock:
            if self._open is not None:
                return self._open.runtime.run_id
            known = self._slot.last_run()
            return known if known is not None and self._is_open(known) else None

    # --- the calls of an agent

    def gate(self, given: Mapping[str, Any], *, wait: float) -> tuple[str, Answer]:
        """Ask the gate. Return the id of the run to which the decision belongs, and the answer."""
        # No lock from here on: the gate may wait for a human, and other calls of the agent go on meanwhile.
        run_id = self._current_run().runtime.run_id
        action = Action(
            type=to_action_type(given["action_type"]),
            tool=given["tool_name"] or "",
            arguments=given["arguments"] or {},
            files=tuple(given["files_affected"] or ()),
            diff=given["diff_text"] or None,
            description=given["description"],
            caller=self.agent,
            session=run_id,
            workspace=str(self._workspace.root),
        )
        answer = ask(self._ledger, action, wait=wait, mode=read_gate_mode(self._ledger.config))
        self._emit_events(run_id)
        return run_id, answer

    def record(self, given: Mapping[str, Any]) -> tuple[str, RecordedAction]:
        """Record an action durably in the run of the session. Return the run id and the recorded action."""
        for _ in range(TRIES):
            run = self._current_run()
            try:
                with self._lock:
                    recorded = self._record_action(run, given)
            except Refused as refusal:
                if refusal.code != "SEALED":
                    raise
                self._leave_run(run)  # The next try starts a new run.
                continue
            action, gate = recorded.action, recorded.gate
            if gate is not None and gate.allows and not action.success and action.action_type in _CHANGE_TYPES:
                from aver.gate.outcomes.reports import record_outcome

                # The gate learns from a change that it allowed and that failed. An error here loses no action.
                with suppress(AverError):
                    record_outcome(self._ledger, gate.gate_id, "failed")
                    run.learned += 1
            self._emit_events(run.runtime.run_id)
            return run.runtime.run_id, recorded
        raise Unavailable("the session is sealed again and again while this is recorded", advice="try again")

    def _record_action(self, run: _OpenRun, given: Mapping[str, Any]) -> RecordedAction:
        files, arguments = given["files_affected"] or [], given["arguments"]
        action_type = to_action_type(given["action_type"])
        # Another server of the session may have asked the gate since.
        run.decisions.catch_up()
        wanted = DecisionQuery(
            action_type, given["description"], given["tool_name"], files, arguments, given["receipt_id"]
        )
        gate = run.decisions.find_decision(wanted)
        outputs = {"output": given["output"] or "", "duration_ms": given["duration_ms"] or 0}
        if given["error"]:
            outputs["error"] = given["error"]
        action = AgentAction(
            action_id=f"act_{run.runtime.action_count:04d}_{clock.new_id()[:8]}",
            action_type=action_type,
            instruction_hash=_instruction_hash(gate, given),
            input_hash=value_hash(
                {"tool_name": given["tool_name"], "files_affected": files} if arguments is None else arguments
            ),
            output_hash=value_hash(outputs),
            success=given["success"],
            duration_ms=given["duration_ms"] or 0,
            timestamp=clock.now().replace("+00:00", "Z"),
            metadata={
                "description": given["description"],
                "tool_name": given["tool_name"],
                "files_affected": files,
                "risk_label": None if gate is None else decision_label(gate),
                "grid_cell": None,
            },
        )
        gate_id = None if gate is None else gate.gate_id
        receipt = run.runtime.record(
            action, gate_id=gate_id, diff_text=given["diff_text"], client_answer="yes" if given["user_said_yes"] else ""
        )
        unbound = given["receipt_id"] is not None and gate is None
        return RecordedAction(action, receipt, _position_in_run(run.runtime, action), gate, unbound)

    def seal(self) -> tuple[str, SealedRun] | None:
        """Seal the current run of the session. Return None if it has no actions."""
        if self.counts().actions == 0:
            return None
        run = self._current_run()
        with self._lock:
            try:
                result = run.runtime.finalize()
            except AverError:
                self._leave_run(run)  # If the run is sealed by now, the next action completes its files.
                raise
            cap = self._link_cap(run.runtime.run_id)
            self._leave_run(run)
        self._emit_events(run.runtime.run_id)
        return run.runtime.run_id, SealedRun(result, cap, run.learned)

    def counts(self) -> SessionCounts:
        """Return the counts of the current run, including the work of other servers in the session."""
        run_id = self.run_id
        if run_id is None:
            return SessionCounts(0, 0, 0)
        with self._lock:
            decisions = RunDecisions(self._ledger, run_id) if self._open is None else self._open.decisions
            decisions.catch_up()
        # The first record of the chain opens the run and is not an action.
        actions = max(self._ledger.head(run_chain(run_id)).count - 1, 0)
        return SessionCounts(actions, decisions.count, decisions.refused_count)

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._leave_run(self._open)
            self._slot.close()

    # --- the run of the session

    def _current_run(self) -> _OpenRun:
        with self._lock:
            if self._open is None:
                # Write the files that are missing after an interrupted seal. The seal itself is in the ledger.
                known = self._slot.last_run()
                if known is not None and not os.path.lexists(self._cap_path(known)) and self._is_sealed_here(known):
                    with suppress(Unavailable):
                        self._open_runtime(known).close()  # Opening a sealed run writes its missing files.
                        self._link_cap(known)
                run_id = self._slot.run(self._is_open)
                self._open = _OpenRun(self._open_runtime(run_id), RunDecisions(self._ledger, run_id))
            return self._open

    def _open_runtime(self, run_id: str) -> AgentRuntime:
        return AgentRuntime(
            self._workspace.make_directory("runs") / run_id,
            ledger=self._ledger,
            run_id=run_id,
            agent=self.agent,
            workspace=self._workspace.root,
        )

    def _is_sealed_here(self, run_id: str) -> bool:
        if read_run_identity(self._workspace.runs / run_id) is None:
            return False
        last = self._last_record(run_chain(run_id))
        return last is not None and last.kind == SEAL_KIND

    def _leave_run(self, run: _OpenRun) -> None:
        with self._lock:
            if self._open is run:
                run.runtime.close()
                self._open = None

    def _is_open(self, run_id: str) -> bool:
        """Return whether a run can continue: it is in this ledger, not sealed, and was used within `RESUME_WITHIN`."""
        identity = read_run_identity(self._workspace.runs / run_id)
        if identity is not None and (identity.ledger, identity.tenant) != (self._ledger.id, self._ledger.tenant):
            return False
        last = [self._last_record(chain) for chain in (run_chain(run_id), decision_chain(run_id))]
        if last[0] is not None and last[0].kind == SEAL_KIND:
            return False
        times = [datetime.fromisoformat(record.signed_at) for record in last if record is not None]
        return not times or datetime.fromisoformat(clock.now()) - max(times) < RESUME_WITHIN

    def _last_record(self, chain: str) -> Any:
        count = self._ledger.head(chain).count
        return next(self._ledger.read(chain, count - 1), None) if count else None

    def _cap_path(self, run_id: str) -> Path:
        return self._workspace.runs / f"{run_id}.cap"

    def _link_cap(self, run_id: str) -> Path:
        """Link the `.cap` file into the directory of all runs, where users look for it. Return its path."""
        made, target = self._workspace.runs / run_id / CAP_FILE, self._cap_path(run_id)
        try:
            with suppress(FileExistsError):
                try:
                    os.link(made, target)
                except PermissionError:  # A file system without hard links raises this.
                    shutil.copyfile(made, target)
        except OSError:
            return made
        return target

    # --- after a call

    def _emit_events(self, run_id: str) -> None:
        """Write the new live events. Events that cannot be written now are written with the next call."""
        with suppress(Unavailable, Refused), self._lock:
            if self._events is None:
                self._events = EventProjection(self._ledger, self._workspace.make_directory())
            self._events.add_new_events(run_id)


def _instruction_hash(gate: RecordedDecision | None, given: Mapping[str, Any]) -> str:
    """Return the instruction hash of an action.

    If the agent names a decision, this is the instruction that the gate judged. The agent may describe the result in
    other words; the metadata keeps them. But if the gate judged only words, the words must be the same. Where a person
    was asked, files beside the words tell nothing: see `aver.gate.action`.
    """
    if gate is None or given["receipt_id"] is None or gate.instruction_hash is None:
        return text_hash(given["description"])
    gated = gate.action
    if gate.decision in ("human_review", "human_approved"):
        has_more: Any = not is_description_needed(gated)
    else:
        has_more = gated.get("files") or gated.get("diff_sha256") or gate.input_hash
    return gate.instruction_hash if has_more else text_hash(given["description"])


def _position_in_run(runtime: AgentRuntime, action: AgentAction) -> int:
    # Search from the end: another thread or process may have recorded a few actions since.
    actions = runtime.actions
    for index in range(len(actions) - 1, -1, -1):
        if actions[index].action_id == action.action_id:
            return index + 1
    return len(actions)
