"""Record what an agent does, action by action, so that anyone can verify it later.

    with AgentRuntime(output_dir="runs/today") as run:
        answer = run.gate(diff_text, description="speed up the parser")
        if answer["allows"]:
            ...
            run.record_simple("code_edit", "speed up the parser", {}, "done", gate_id=answer["gate_id"])

Aver first seals each action in the ledger, in the chain `actions.<run>`, and then writes it to `actions.jsonl`. Thus:

* `record` returns only when the action is durable; otherwise it raises.
* After a crash, the caller opens the directory again, and the run continues where the ledger ends.
* Several processes may record into one run. All their actions get one order; none is lost or recorded twice.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from aver import clock
from aver.actions.action import AgentAction, text_hash, value_hash
from aver.actions.binding import apply_decision, decision_use_key
from aver.actions.encodings import encode_action
from aver.actions.finalize import finalize_run, has_missing_files, sync_actions_file, write_run_files
from aver.actions.run_capsules import GateReference, build_action_capsule, build_open_capsule, run_chain
from aver.actions.run_directory import ActionsFile, RunIdentity, claim_directory, find_newest_number
from aver.actions.run_files import ACTIONS_FILE
from aver.actions.run_state import RecordedRun, WaitingCalls
from aver.capsule.masking.mask import mask
from aver.errors import AverError, BadInput, Exists, HeadMoved, IntegrityError, NotFound, Refused, Unavailable
from aver.files.atomic import make_directory
from aver.gate.action import Action
from aver.gate.decision_record import NOT_HELD_BACK, CallerAnswer, RecordedDecision, decision_chain
from aver.ledger import Ledger, open_ledger
from aver.ledger.ledger import open_configured_ledger
from aver.verdict import Examiner, Verdict

if TYPE_CHECKING:
    from aver.gate.decision import Decision
    from aver.gate.settings import GateMode

TRIES = 100
"""How often Aver tries to append an action while other processes write to the same run."""


class AgentRuntime:
    """One run of an agent, in a directory and in the ledger. Safe for threads. The module docstring has an example."""

    examiners: tuple[Examiner, ...] = ()
    """The examiners of a ledger that this opens; `aver.AgentRuntime` has those of all rooms."""

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        gate_posteriors: Path | None = None,
        auto_chain: bool = True,
        *,
        ledger: Ledger | str | Path | None = None,
        run_id: str | None = None,
        agent: str = "",
        workspace: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open a new run in `output_dir`, or continue the run that the directory holds.

        If that run is sealed, it can be looked at, finalized again and verified. A `with` block, or the first `gate` or
        `record`, then begins a new run in a directory beside: `today-2` after `today`. With `run_id` it does not, and
        new actions are refused.

        `ledger` is an open ledger, or the URL or path of one; by default, the default ledger. With `auto_chain` each
        action gets the previous action as its parent; without it, the caller sets the parents. `workspace` is the
        directory in which the agent works (default: the current directory). The gate needs it to judge paths.
        """
        if gate_posteriors is not None:
            raise BadInput(
                "gate_posteriors names a model of another program, which the gate does not load",
                advice="leave it out: the gate learns from what this ledger records",
            )
        self.agent = agent
        self._workspace = os.path.abspath(workspace or os.getcwd())
        self._auto_chain = auto_chain
        self._lock = threading.RLock()
        self._decided: dict[str, RecordedDecision] = {}
        self._is_closed = self._is_of_the_past = False
        self._trouble: AverError | None = None
        self._owns_ledger = not isinstance(ledger, Ledger)
        self._ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger, examiners=self.examiners)
        self._lines: ActionsFile | None = None
        self._waiting = WaitingCalls(self._ledger)
        try:
            self._open(Path(output_dir).absolute(), run_id)
            self._is_of_the_past = run_id is None and self._run.seal_record is not None
        except BaseException:
            self.close()  # Also after a keyboard interrupt: the caller gets no object to close.
            raise

    def _open(self, directory: Path, run_id: str | None) -> None:
        """Open the run of a directory, and bring its files to what the ledger has."""
        self._dir = directory
        try:
            make_directory(directory)
            self._run = self._open_run(run_id)
            if self._lines is not None:
                self._lines.close()
            self._lines = ActionsFile(directory / ACTIONS_FILE)
            self._lines.bring_up(self._run.lines_from, self._run.catch_up)
            if self._run.seal_record is not None and has_missing_files(directory):
                write_run_files(self._ledger, self._run, directory)  # A crash interrupted the last finalize.
        except OSError as error:
            raise Unavailable(f"cannot use {directory}: {error.strerror}") from error

    def _begin_work(self) -> None:
        """Begin a new run in a directory beside, if the run here was sealed before this object opened it."""
        with self._lock:
            first = self._dir
            numbers = itertools.count(find_newest_number(first) if self._is_of_the_past else 0)
            while self._is_of_the_past:
                # A crash may have left the run with the newest number open. Then that run continues.
                self._open(first.with_name(f"{first.name}-{next(numbers)}"), None)
                self._is_of_the_past = self._run.seal_record is not None
            self._check_open()

    def _open_run(self, run_id: str | None) -> RecordedRun:
        """Claim the directory for the run, and read the run from the ledger. Open its chain if there is none yet.

        Raise `BadInput` if the directory holds another run, or a run of another ledger or tenant.
        """
        ledger, directory = self._ledger, self._dir
        name = run_id or f"run_{datetime.now(UTC):%Y%m%d_%H%M%S}_{clock.new_id()[:8]}"
        found = claim_directory(directory, RunIdentity(name, run_chain(name), ledger.id, ledger.tenant))
        # The directory may hold an older run. It must be the one that the caller means, in this ledger.
        if run_id not in (None, found.run_id):
            raise BadInput(f"{directory} holds the run {found.run_id}, not {run_id}", advice="name a new directory")
        if (found.ledger, found.tenant) != (ledger.id, ledger.tenant):
            raise BadInput(
                f"the run in {directory} is sealed in another ledger, or by another tenant",
                advice=f"open ledger {found.ledger}, tenant {found.tenant}",
            )
        if found.chain != run_chain(found.run_id):
            raise BadInput(f"{directory} names another chain than its run has", advice="name a new directory")
        run = RecordedRun(ledger, found)
        if run.head.count == 0:
            draft = build_open_capsule(found.run_id, self.agent)
            try:
                ledger.append(found.chain, draft, key=f"run:{found.run_id}", after=run.head)
            except (Exists, HeadMoved):
                pass  # Another process opened the run at the same time.
            run.catch_up()
        return run

    # --- the state of the run

    @property
    def run_id(self) -> str:
        return self._run.identity.run_id

    @property
    def output_dir(self) -> Path:
        return self._dir

    @property
    def chain(self) -> str:
        """The name of the ledger chain in which the run is sealed."""
        return self._run.identity.chain

    @property
    def actions(self) -> list[AgentAction]:
        with self._lock:
            return list(self._run.actions)

    @property
    def action_count(self) -> int:
        return len(self._run.actions)

    @property
    def last_action(self) -> AgentAction | None:
        with self._lock:
            return self._run.actions[-1] if self._run.actions else None

    @property
    def last_receipt_hash(self) -> str | None:
        return self._run.last_receipt

    @property
    def last_capsule(self) -> dict[str, Any] | None:
        """The seal of the run, as a sealed capsule; None before `finalize`."""
        return None if self._run.seal_record is None else self._run.seal_record.to_sealed_dict()

    @property
    def mode(self) -> GateMode:
        """The mode of the gate by the settings: `enforce`, or `observe`, which holds nothing back."""
        from aver.gate.settings import read_gate_mode

        return read_gate_mode(self._ledger.config)

    @property
    def trouble(self) -> AverError | None:
        """Why `actions.jsonl` does not match the ledger; None if it does.

        All actions are sealed in the ledger. The next `record` tries to write the file again; `finalize` raises.
        """
        return self._trouble

    # --- before an action

    def gate(
        self,
        diff_text: str = "",
        findings: Sequence[Mapping[str, Any]] | None = None,
        *,
        action_type: str | None = None,
        description: str = "",
        tool: str | Callable[..., Any] = "",
        arguments: Mapping[str, Any] | None = None,
        files: Sequence[str] = (),
        declared: Iterable[str] | None = None,
        mode: GateMode | None = None,
        wait: float = 0.0,
        answer_with: Callable[[Decision], CallerAnswer | None] | None = None,
    ) -> dict[str, Any]:
        """Ask the gate whether the agent may do an action. Aver seals every decision before this returns.

        In the result, `allows` says whether the agent may continue, `q` is the risk, and `uncertainty` is half the
        width of its interval. Pass `gate_id` to `record` to bind the action to this decision. `wait` is the number of
        seconds to wait for a human approval.

        `tool` is the name of a tool, or the function itself. `declared` are its effects, if they are not those that
        `aver.tool` declares for the function. With the `mode` `observe` nothing is held back: `allows` is true whatever
        `decision` says, and the record says so. Without a `mode`, that of the settings holds.

        `answer_with` says what the caller answers to a decision, for the record. A caller that holds an action back
        itself says `deny` there. Then the action does not count as one that may have happened.
        """
        from aver.gate.ask import ask
        from aver.gate.own_tools import find_declared_effects

        self._begin_work()
        if not isinstance(tool, str):
            declared = find_declared_effects(tool) if declared is None else declared
            tool = getattr(tool, "__name__", "")
        mode = mode or self.mode
        given = dict(arguments or {})
        if findings is not None:
            given["findings"] = [dict(finding) for finding in findings]
        asked = Action(
            type=action_type or ("code_edit" if diff_text else "action"),
            tool=tool,
            arguments=given,
            files=tuple(files),
            diff=diff_text or None,
            description=description,
            caller=self.agent,
            session=self._run.identity.run_id,
            workspace=self._workspace,
        )
        answer = ask(self._ledger, asked, declared=declared, wait=wait, mode=mode, answer_with=answer_with)
        reason = "; ".join(answer.reasons)
        if mode == "observe" and not answer.allows:
            reason = f"{NOT_HELD_BACK}: {reason}"
        decided = RecordedDecision.from_record(answer.record)
        with self._lock:
            self._decided[decided.gate_id] = decided
        interval = answer.decision.interval
        return {
            "q": answer.decision.score,
            "uncertainty": None if interval is None else (interval[1] - interval[0]) / 2,
            "decision": decided.decision,
            "grid_idx": None,
            "reason": reason,
            "allows": answer.allows or mode == "observe",
            "mode": mode,
            "gate_id": decided.gate_id,
            "digest": decided.digest,
            "observations": answer.decision.observations,
            "record": decided.record,
        }

    # --- after an action

    def record_simple(
        self,
        action_type: str,
        instruction: str,
        inputs: Any,
        outputs: Any,
        *,
        success: bool = True,
        duration_ms: int = 0,
        gate_score: float | None = None,
        gate_decision: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        gate_id: str | None = None,
        diff_text: str | None = None,
    ) -> str:
        """Record an action from its texts and values. Aver hashes them here and keeps only the hashes.

        Returns the receipt hash; raises as `record` does.
        """
        with self._lock:
            self._begin_work()
            # With `auto_chain`, `record` sets the parents later, when it knows the last action.
            parent = self._run.actions[-1] if self._run.actions and not self._auto_chain else None
            action = AgentAction(
                action_id=f"act_{len(self._run.actions):04d}_{clock.new_id()[:8]}",
                action_type=action_type,
                instruction_hash=text_hash(instruction),
                input_hash=value_hash(inputs),
                output_hash=value_hash(outputs),
                parent_action_id=None if parent is None else parent.action_id,
                parent_receipt_hash=None if parent is None else self._run.last_receipt,
                gate_score=gate_score,
                gate_decision=gate_decision,
                success=success,
                duration_ms=duration_ms,
                timestamp=clock.now().replace("+00:00", "Z"),
                metadata=None if metadata is None else dict(metadata),
            )
            return self.record(action, gate_id=gate_id, diff_text=diff_text)

    def record(
        self,
        action: AgentAction,
        *,
        gate_id: str | None = None,
        diff_text: str | None = None,
        client_answer: Literal["yes", ""] = "",
    ) -> str:
        """Seal an action at the end of the run, durably, and return its receipt hash.

        `gate_id` names the gate decision for the action, `diff_text` is the change that the agent made. Aver masks
        secrets in the metadata. It refuses a parent that is not the previous action, and a `policy_verdict` that no
        decision supports, and a time that is not in UTC.

        With `client_answer`, the client reports that its user agreed to what the gate had asked about. Nobody signs
        that: the verdict is qualified. It counts for nothing after another decision, or after a signed denial.
        """
        with self._lock:
            self._begin_work()
            if not action.timestamp.endswith(("Z", "+00:00")):
                words = f"timestamp must be in UTC, not {action.timestamp!a}"
                raise BadInput(words, advice="such as 2026-05-31T09:00:00Z")
            decided = None if gate_id is None else self._find_decision(gate_id)
            mark = None
            if decided is not None:
                diff = None if diff_text is None else text_hash(diff_text)
                answer = client_answer if client_answer and self._takes_client_answer(decided) else ""
                mark = GateReference(decided.gate_id, decided.record, decided.digest, decided.decision, diff, answer)
            masked = mask(action.metadata) if action.metadata else None
            if masked is not None and masked.count:
                action = replace(action, metadata=masked.value)
            for _ in range(TRIES):
                # The ledger gives this key out once, so only the first action that uses a decision gets it.
                key = None if mark is None else decision_use_key(mark.gate_id)
                if key is not None and self._ledger.get(key) is not None:
                    key = None
                judged = apply_decision(action, mark, decided, is_first_use=key is not None)
                receipt = self._append(judged, mark, decided, {} if masked is None else masked.by_rule, key)
                if receipt is not None:
                    break
                # Another process appended an action, sealed the run, or used the decision. Read that and try again.
                self._run.catch_up()
                self._check_open()
            else:
                raise Unavailable(f"others write to the run {self.run_id} faster than this can", advice="try again")
            # The ledger has the action now. If `record` raised, the caller would record it again.
            try:
                if self._lines is not None:
                    self._lines.bring_up(self._run.lines_from, self._run.catch_up)
                self._trouble = None
            except (Unavailable, IntegrityError) as error:
                self._trouble = error
            return receipt

    def _takes_client_answer(self, decided: RecordedDecision) -> bool:
        """Whether the gate asked for a person, and no person has denied the same with a signature."""
        from aver.gate.approvals import load_request_states, recent_requests

        if decided.decision != "human_review" or decided.is_observed:
            return False
        same = [request for request in recent_requests(self._ledger) if request.digest == decided.digest]
        return all(at.state != "denied" for at in load_request_states(self._ledger, same))

    def _find_decision(self, gate_id: str) -> RecordedDecision:
        decided = self._decided.get(gate_id)
        if decided is None:
            record = self._ledger.get(f"gate:{gate_id}")
            if record is None:
                raise NotFound(f"the ledger has no gate decision {gate_id}", advice="ask the gate first")
            decided = self._decided[gate_id] = RecordedDecision.from_record(record)
        return decided

    def _append(
        self,
        action: AgentAction,
        mark: GateReference | None,
        decided: RecordedDecision | None,
        masked: Mapping[str, int],
        key: str | None,
    ) -> str | None:
        """Link the action to the last known one, seal it right after that one, and return its receipt.

        None if another process appended a record or used the decision in the meantime: the caller must try again.
        """
        run, name = self._run, action.action_id
        if name in run.ids:
            words = f"the run {run.identity.run_id} has an action {name} already"
            raise Refused("DUPLICATE_ACTION", words, advice="give every action a unique id")
        # The parent is the previous action. Only with `auto_chain` may the caller leave it out.
        last = run.actions[-1].action_id if run.actions else None
        given = action.parent_action_id, action.parent_receipt_hash
        if given != (last, run.last_receipt):
            if given != (None, None):
                words = f"the parent of {name} is not the action before it, which is {last}"
                raise Refused("PARENT_WRONG", words, advice="leave the parents out, with auto_chain")
            if not self._auto_chain:
                words = f"{name} names no parent, and {last} was recorded before it"
                raise Refused("PARENT_MISSING", words, advice="set its parents, or use auto_chain")
            action = replace(action, parent_action_id=last, parent_receipt_hash=run.last_receipt)
        texts = encode_action(action)
        waited = self._waiting.find(action, run.head.chain)
        draft, blobs = build_action_capsule(
            action,
            texts,
            run_id=self.run_id,
            agent=self.agent,
            gate=mark,
            decided=decided,
            masked=masked,
            waited=waited,
        )
        try:
            record = self._ledger.append(run.head.chain, draft, key=key, after=run.head, blobs=blobs)
        except (HeadMoved, Exists):
            return None
        run.add_action(action, texts.receipt_hash, mark, record)
        self._waiting.learn(action, record)
        return texts.receipt_hash

    def _check_open(self) -> None:
        if self._run.seal_record is not None:
            raise Refused(
                "SEALED", f"the run {self.run_id} is sealed and takes no more actions", advice="open a new run"
            )

    # --- the end of the run

    def finalize(self, prove: bool = True) -> dict[str, Any]:
        """Seal the run, write its files and `run.cap`, and verify them. A sealed run takes no more actions.

        Without `prove`, the seal contains no statement about the trace, and the policy verdict of the run is lower. A
        run that is sealed already gives its result again. A run in which nothing was asked or done is not sealed.
        """
        with self._lock, self._hold_ledger() as ledger:
            run = self._run
            if run.seal_record is None:
                if not self._is_closed:
                    run.catch_up()
                if not run.actions and ledger.head(decision_chain(self.run_id)).count == 0:
                    return {"status": "empty", "message": "No actions recorded", "run_id": self.run_id}
                sync_actions_file(run, self._dir)  # Before the seal: a changed line must stop it.
            return finalize_run(ledger, run, self._dir, agent=self.agent, prove=prove)

    def verify(self) -> Verdict:
        """Verify the run on disk against the ledger, and return the verdict. This works after `close`, too."""
        from aver.actions.verify import verify_directory

        with self._hold_ledger() as ledger:
            return verify_directory(self._dir, ledger)

    @contextmanager
    def _hold_ledger(self) -> Iterator[Ledger]:
        """Give the ledger of the run; after `close`, open it once more."""
        if not self._is_closed:
            yield self._ledger
            return
        with open_configured_ledger(self._ledger.config, create=False, examiners=self._ledger.examiners) as ledger:
            yield ledger

    def close(self) -> None:
        """Close the files and, if this object opened it, the ledger. This does not seal the run."""
        with self._lock:
            self._is_closed = True
            if self._lines is not None:
                self._lines.close()
            if self._owns_ledger:
                self._ledger.close()

    def __enter__(self) -> Self:
        self._begin_work()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._run.seal_record is None:
                self.finalize()
        except AverError:
            if error is None:  # Otherwise the error of the caller's own code is more important.
                raise
        finally:
            self.close()
