"""Statements about a run, and the proofs of these statements.

A `RunStatement` gives the number of actions of a run, the last receipt, and the Merkle root of its rows (see `trace`).
`proof_problem(statement, proof)` checks one of two proofs:

* `ExecutionProof` contains all actions. It proves that the run has exactly these actions in this order, that each links
  to the previous one, and that all equations of the trace hold. The verifier computes everything again.
* `InclusionProof` contains one action and a Merkle path. It proves that this action is in the run at this index. The
  verifier does not see the other actions.

Neither proof hides the actions that it contains, and an execution proof is as long as the run. A succinct proof could
replace it behind the same function. A proof does not show who made the statement: the seal of the run does that.
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

PROOF_TYPE = "recomputation"

PATH_MAX = 64
"""The maximum number of steps in a path. No real tree is that high: it would have 2^64 leaves."""

_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch
_FIXED_FIELDS = {"air_id": AIR_ID, "field": "goldilocks", "row_width": WIDTH, "receipt_keys": len(RECEIPT_KEYS)}


@dataclass(frozen=True, slots=True)
class RunStatement:
    """A statement about a run: its number of actions, its last receipt and the root of its rows."""

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
        """Read a statement. Raise `BadInput` if it is of another type or version."""
        names = ("run_id", "num_actions", "final_receipt_hash", "row_root")
        if not isinstance(data, dict) or data.keys() != {*_FIXED_FIELDS, *names}:
            raise BadInput("a statement about a run has other keys")
        for name, value in _FIXED_FIELDS.items():
            # Compare the types too: in Python `12 == 12.0`.
            if data[name] != value or type(data[name]) is not type(value):
                raise BadInput(f"the statement's {name} is not {value!r}", advice="use the Aver that made it")
        run_id, count, final, root = (data[name] for name in names)
        if not isinstance(run_id, str) or type(count) is not int or count < 1:
            raise BadInput("a statement names a run and how many actions it has")
        if not all(isinstance(digest, str) and _HEX64(digest) for digest in (final, root)):
            raise BadInput("a statement's receipt and root are 64 lower-case hex digits")
        return cls(run_id, count, final, root)


@dataclass(frozen=True, slots=True)
class ExecutionProof:
    """All actions of a run, in order."""

    actions: Iterable[AgentAction]


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """One action, its index in the run, and the Merkle path from its row to the root."""

    index: int
    action: AgentAction
    path: tuple[str, ...]


RunProof = ExecutionProof | InclusionProof


def build_statement(run_id: str, actions: Iterable[AgentAction]) -> RunStatement:
    """Build the statement about a run with these actions. Raise `BadInput` if there are none."""
    trace, final = Trace(), None
    for action in actions:
        texts = encode_action(action)
        final = texts.receipt_hash
        trace.take(action, texts)
    if final is None:
        raise BadInput("there is nothing to state about a run without actions")
    return RunStatement(run_id, trace.count, final, trace.root)


def prove_inclusion(actions: Sequence[AgentAction], index: int) -> InclusionProof:
    """Build the proof that the action at `index` is one of these actions."""
    leaves = [row_leaf(build_row(at, action, encode_action(action))) for at, action in enumerate(actions)]
    return InclusionProof(index, actions[index], tuple(step.hex() for step in inclusion_path(leaves, index)))


def proof_problem(statement: RunStatement, proof: RunProof) -> str | None:
    """Return why the proof does not prove the statement; None if it does."""
    if isinstance(proof, InclusionProof):
        return _inclusion_problem(statement, proof)
    trace = Trace()
    for action in proof.actions:
        trace.take(action, encode_action(action))
    return trace_problem(statement, trace)


def trace_problem(statement: RunStatement, trace: Trace) -> str | None:
    """Return why a trace of all actions does not prove the statement; None if it does."""
    if trace.count != statement.num_actions:
        return f"the statement is about {statement.num_actions} actions; there are {trace.count}"
    broken = trace.problem_at_end(count=statement.num_actions, final_receipt=statement.final_receipt_hash)
    if broken is not None:
        return f"a constraint does not hold: {broken}"
    if trace.root != statement.row_root:
        return "the rows have another root than the statement says"
    return None


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
    # The statement names only the last receipt, so only the last action can be compared with it.
    if proof.index == statement.num_actions - 1 and texts.receipt_hash != statement.final_receipt_hash:
        return "the last action has another receipt than the statement says"
    return None
