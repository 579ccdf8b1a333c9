"""The gate's decisions about a run's actions, and which of them the run's actions have used.

Both are read from the ledger. So a server that was started again knows them, and so do two servers in one session. A
record is bound to the decision that it names (`receipt_id`). One that names none is bound to the newest unused decision
about the same thing: same type, description, files and arguments. A decision about one file never covers another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aver.actions.action import text_hash, value_hash
from aver.actions.run_capsules import ACTION_KIND, gate_chain, read_sealed_action, run_chain
from aver.capsule.masking.mask import mask
from aver.capsule.sealed import Sealed
from aver.errors import AverError, NotFound
from aver.gate.decision_record import DECISION_KIND, DoneAction, RecordedDecision, bind
from aver.ledger import Ledger

__all__ = ["DecisionQuery", "RunDecisions"]


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """What a record says of the action that may have been gated."""

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
        self._gates, self._actions = gate_chain(run_id), run_chain(run_id)
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
            for record in self._read_new(chain):
                self._read[chain] += 1
                if record.kind == DECISION_KIND:
                    decision = RecordedDecision.from_record(record)
                    self._known[decision.gate_id] = decision
                elif record.kind == ACTION_KIND:
                    reference = read_sealed_action(record.to_dict()).gate
                    if reference is not None:
                        self._used.add(reference.gate_id)

    def _read_new(self, chain: str) -> Sequence[Sealed]:
        try:
            return list(self._ledger.read(chain, self._read[chain]))
        except NotFound:
            return ()

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
