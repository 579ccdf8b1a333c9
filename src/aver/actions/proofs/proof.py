"""Statements about a run, and what proves them: statement in, proof out, `verify(statement, proof)`.

A `Statement` says how many actions a run has, which receipt is the last, and which root its rows have (`trace`,
`merkle`). Two things prove something about it:

* `Execution`, all actions of the run: that there are exactly these, in this order, each linked to the one before, and
  that every equation of the trace holds. It is proved by computing it again, all of it.
* `Inclusion`, one action and a Merkle path: that this action is in the run at this place. The others stay unseen.

Neither hides the actions it carries, and the first is as long as the run. A succinct proof could take the place of
`Execution` behind the same `verify`. Who vouches for a statement is another question: the run's seal does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aver.actions.action import AgentAction
from aver.actions.encodings import RECEIPT_KEYS, encode_action
from aver.actions.proofs.trace import AIR_ID, WIDTH, Trace, build_row, row_leaf
from aver.capsule.merkle import inclusion_path, root_from_path
from aver.errors import BadInput

__all__ = [
    "PROOF_TYPE",
    "ExecutionProof",
    "InclusionProof",
    "RunProof",
    "RunStatement",
    "build_statement",
    "proof_problem",
    "prove_inclusion",
    "trace_problem",
]

PROOF_TYPE = "recomputation"

PATH_MAX = 64
"""Steps of a path; a tree of that height has more leaves than there are."""

_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch
_FIXED_FIELDS = {"air_id": AIR_ID, "field": "goldilocks", "row_width": WIDTH, "receipt_keys": len(RECEIPT_KEYS)}


@dataclass(frozen=True, slots=True)
class RunStatement:
    """What is claimed about a run."""

    run_id: str
    num_actions: int
    final_receipt_hash: str
    row_root: str

    def to_dict(self) -> dict[str, Any]:
        return {
            **_FIXED_FIELDS,
            "run_id": self.run_id,
            "num_actions": self.num_actions,
            "final_receipt_hash": self.final_receipt_hash,
            "row_root": self.row_root,
        }

    @classmethod
    def from_dict(cls, data: Any) -> RunStatement:
        """Read a statement of this sort; of any other, `BadInput`."""
        names = ("run_id", "num_actions", "final_receipt_hash", "row_root")
        if not isinstance(data, dict) or data.keys() != {*_FIXED_FIELDS, *names}:
            raise BadInput("a statement about a run has other keys")
        for name, value in _FIXED_FIELDS.items():
            if data[name] != value or type(data[name]) is not type(value):
                raise BadInput(f"the statement's {name} is not {value!r}", advice="use the Aver that made it")
        run_id, count, final, root = (data[name] for name in names)
        if not isinstance(run_id, str) or type(count) is not int or count < 1:
            raise BadInput("a statement names a run and how many actions it has")
        if not all(isinstance(one, str) and _HEX64(one) for one in (final, root)):
            raise BadInput("a statement's receipt and root are 64 lower-case hex digits")
        return cls(run_id, count, final, root)


@dataclass(frozen=True, slots=True)
class ExecutionProof:
    """All actions of a run, in order."""

    actions: Iterable[AgentAction]


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """One action, where it stands in the run, and the path from its row to the root."""

    index: int
    action: AgentAction
    path: tuple[str, ...]


RunProof = ExecutionProof | InclusionProof


def build_statement(run_id: str, actions: Iterable[AgentAction]) -> RunStatement:
    """The statement about a run with these actions."""
    trace, final = _trace_actions(actions)
    if final is None:
        raise BadInput("there is nothing to state about a run without actions")
    return RunStatement(run_id, trace.count, final, trace.root)


def prove_inclusion(actions: Sequence[AgentAction], index: int) -> InclusionProof:
    """The proof that the action at `index` is one of these."""
    leaves = [row_leaf(build_row(at, action, encode_action(action))) for at, action in enumerate(actions)]
    return InclusionProof(index, actions[index], tuple(step.hex() for step in inclusion_path(leaves, index)))


def proof_problem(statement: RunStatement, proof: RunProof) -> str | None:
    """Why the proof does not prove the statement; None if it does."""
    if isinstance(proof, InclusionProof):
        return _inclusion_problem(statement, proof)
    return trace_problem(statement, _trace_actions(proof.actions)[0])


def trace_problem(statement: RunStatement, trace: Trace) -> str | None:
    """The same for a trace that has taken all actions."""
    if trace.count != statement.num_actions:
        return f"the statement is about {statement.num_actions} actions; there are {trace.count}"
    broken = trace.problem_at_end(count=statement.num_actions, final_receipt=statement.final_receipt_hash)
    if broken is not None:
        return f"a constraint does not hold: {broken}"
    if trace.root != statement.row_root:
        return "the rows have another root than the statement says"
    return None


def _trace_actions(actions: Iterable[AgentAction]) -> tuple[Trace, str | None]:
    trace, final = Trace(), None
    for action in actions:
        texts = encode_action(action)
        final = texts.receipt_hash
        trace.take(action, texts)
    return trace, final


def _inclusion_problem(statement: RunStatement, proof: InclusionProof) -> str | None:
    if len(proof.path) > PATH_MAX or not all(isinstance(step, str) and _HEX64(step) for step in proof.path):
        return "the path is not one"
    if not 0 <= proof.index < statement.num_actions:
        return f"the run has no place {proof.index}"
    texts = encode_action(proof.action)
    leaf = row_leaf(build_row(proof.index, proof.action, texts))
    path = [bytes.fromhex(step) for step in proof.path]
    root = root_from_path(leaf, proof.index, statement.num_actions, path)
    if root is None or root.hex() != statement.row_root:
        return f"the action does not lead to the run's root from place {proof.index}"
    if proof.index == statement.num_actions - 1 and texts.receipt_hash != statement.final_receipt_hash:
        return "the last action has another receipt than the statement says"
    return None
