"""The gate's decisions about a run's actions, and which of them the run's actions have used.

Both are read from the ledger, so a server that was started again knows them, and so do two servers in one session. A
record is bound to a decision when it names it, or when exactly one thing was gated that it can be: of the same type,
with the same description, files and arguments, and not used yet. A gate's answer about one file never covers another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aver.actions.action import text_hash, value_hash
from aver.actions.binding import RecordedDecision, read_decision
from aver.actions.run_capsules import ACTION_KIND, gate_chain, read_sealed_action, run_chain
from aver.capsule.masking.mask import mask
from aver.capsule.sealed import Sealed
from aver.errors import AverError, NotFound
from aver.gate.decision_record import DECISION_KIND
from aver.ledger import Ledger
from aver.mcp.labels import decision_label

__all__ = ["DecisionQuery", "LabelledDecision", "RunDecisions"]


@dataclass(frozen=True, slots=True)
class LabelledDecision:
    """A decision, and its label."""

    decided: RecordedDecision
    label: str


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """What a record says of the action that may have been gated."""

    action_type: str
    description: str
    tool: str
    files: Sequence[str]
    arguments: Mapping[str, Any] | None
    receipt_id: str | None


class RunDecisions:
    """Those of one run, as far as they were read. Not safe for threads: the session holds its lock."""

    def __init__(self, ledger: Ledger, run_id: str) -> None:
        self._ledger = ledger
        self._gates, self._actions = gate_chain(run_id), run_chain(run_id)
        self._read = {self._gates: 0, self._actions: 0}
        self._known: dict[str, LabelledDecision] = {}
        self._used: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._known)

    @property
    def refused_count(self) -> int:
        """How many of them refused."""
        return sum(known.decided.decision in ("skip", "skipped") for known in self._known.values())

    def catch_up(self) -> None:
        """Read what came to the ledger since."""
        for chain in (self._gates, self._actions):
            for record in self._read_new(chain):
                self._read[chain] += 1
                if record.kind == DECISION_KIND:
                    self._add_decision(record)
                elif record.kind == ACTION_KIND:
                    mark = read_sealed_action(record.to_dict()).gate
                    if mark is not None:
                        self._used.add(mark.gate_id)

    def _read_new(self, chain: str) -> Sequence[Sealed]:
        try:
            return list(self._ledger.read(chain, self._read[chain]))
        except NotFound:
            return ()

    def _add_decision(self, record: Sealed) -> None:
        content = record.to_dict()
        decided = read_decision(record, content)
        self._known[decided.gate_id] = LabelledDecision(decided, decision_label(content["outcome"]["result"]))

    def find_decision(self, wanted: DecisionQuery) -> LabelledDecision | None:
        """The decision that a record was done under; None where none can be told."""
        if wanted.receipt_id is not None:
            named = self._known.get(wanted.receipt_id) or self._find_in_other_run(wanted.receipt_id)
            return named if _matches_files_and_tool(named.decided, wanted) else None
        for known in reversed(self._known.values()):
            if known.decided.gate_id not in self._used and _matches_query(known.decided, wanted):
                return known
        return None

    def _find_in_other_run(self, gate_id: str) -> LabelledDecision:
        """A decision of another run, such as one that was sealed in the meantime."""
        record = self._ledger.get(f"gate:{gate_id}") if gate_id.isprintable() else None
        if record is None or record.kind != DECISION_KIND:
            raise NotFound(
                f"the gate gave no answer {ascii(gate_id)[:80]}",
                advice="use receipt_id of capseal_gate, or leave it out",
            )
        content = record.to_dict()
        return LabelledDecision(read_decision(record, content), decision_label(content["outcome"]["result"]))


def _matches_files_and_tool(decided: RecordedDecision, wanted: DecisionQuery) -> bool:
    """Whether a decision that a record names is about these files, and about this tool if about one. What else differs,
    the verdict names."""
    gated = decided.action
    return gated.get("files") == _mask_value(list(wanted.files)) and gated.get("tool") in ("", _mask_value(wanted.tool))


def _matches_query(decided: RecordedDecision, wanted: DecisionQuery) -> bool:
    gated = decided.action
    return (
        gated.get("type") == wanted.action_type
        and decided.instruction_hash == (text_hash(wanted.description) if wanted.description else None)
        and decided.input_hash == (value_hash(dict(wanted.arguments)) if wanted.arguments else None)
        and _matches_files_and_tool(decided, wanted)
    )


def _mask_value(value: Any) -> Any:
    """As the gate's record has it: with secrets masked."""
    try:
        return mask(value).value
    except AverError:
        return None
