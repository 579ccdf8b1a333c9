"""A run as a trace: one row of numbers per action, and equations that must hold between the rows.

The numbers are elements of the Goldilocks field, p = 2^64 - 2^32 + 1. Each hash is written as eight limbs of 32 bits.
This keeps all its bits, so that two different hashes never have the same limbs. The columns:

    index            0, 1, 2, ...
    action_type      1 to 15, in the order of the protocol
    instruction, input, output, parent, receipt      eight limbs each; parent is zero for the first action
    rest             eight limbs: SHA-256 over the canonical JSON of {metadata, policy_verdict}
    has_parent, success, gated, gate_passed, policy_enforced      0 or 1

`gate_passed` is 1 only for the decisions `pass` and `human_approved`. The verifier computes each row from the action
and its receipt. Aver never stores rows and never trusts rows from elsewhere. `Trace` evaluates all equations and names
the first one that does not hold.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from aver.actions.action import POLICY_VERDICTS, AgentAction
from aver.actions.encodings import EncodedAction
from aver.capsule.canonical import canonical_json
from aver.capsule.merkle import MerkleTree, leaf_hash
from aver.gate.action import ACTION_TYPES

AIR_ID = "aver_agent_air_v1"
MODULUS = 2**64 - 2**32 + 1

TraceRow = tuple[int, ...]

_LIMBS = 8
INDEX, TYPE = 0, 1
_INSTRUCTION = 2
_PARENT = slice(_INSTRUCTION + 3 * _LIMBS, _INSTRUCTION + 4 * _LIMBS)
_RECEIPT = slice(_PARENT.stop, _PARENT.stop + _LIMBS)
_REST = slice(_RECEIPT.stop, _RECEIPT.stop + _LIMBS)
HAS_PARENT, SUCCESS, GATED, GATE_PASSED, POLICY_ENFORCED = range(_REST.stop, _REST.stop + 5)
WIDTH = _REST.stop + 5

CONSTRAINTS = {
    "row": ("booleans", "passed_only_if_gated", "enforced_only_if_passed", "parent_only_if_linked"),
    "transition": ("next_index", "next_parent_is_receipt", "next_has_parent"),
    "boundary": ("first_index_is_zero", "first_has_no_parent", "last_receipt_is_final", "last_index_is_count"),
}
"""The equations: in each row, between two adjacent rows, and at both ends of the trace."""

_TYPE_CODE = {name: code for code, name in enumerate(ACTION_TYPES, 1)}
_PASSING_DECISIONS = frozenset({"pass", "human_approved"})
_NO_PARENT = (0,) * _LIMBS
_VERDICTS: dict[str | None, bytes] = {verdict: canonical_json(verdict) for verdict in (None, *POLICY_VERDICTS)}
_FLAGS = frozenset({0, 1})
_unpack_limbs = struct.Struct(f">{_LIMBS}I").unpack
_pack_row = struct.Struct(f">{WIDTH}Q").pack
_unpack_hashes = struct.Struct(f">{3 * _LIMBS}I").unpack


def build_row(index: int, action: AgentAction, texts: EncodedAction) -> TraceRow:
    """Build the row of an action. `texts` is the encoded form of the same action."""
    parent = action.parent_receipt_hash
    decision = action.gate_decision
    passed = decision in _PASSING_DECISIONS
    enforced = passed and action.policy_verdict == "POLICY_ENFORCED"
    # The fields that the receipt does not cover. The keys are in canonical order and both values are canonical JSON, so
    # the whole text is, too.
    rest = b'{"metadata":%b,"policy_verdict":%b}' % (texts.metadata, _VERDICTS[action.policy_verdict])
    return (
        index,
        _TYPE_CODE[action.action_type],
        *_unpack_hashes(bytes.fromhex(action.instruction_hash + action.input_hash + action.output_hash)),
        *(_NO_PARENT if parent is None else _unpack_limbs(bytes.fromhex(parent))),
        *_unpack_limbs(bytes.fromhex(texts.receipt_hash)),
        *_unpack_limbs(hashlib.sha256(rest).digest()),
        int(parent is not None),
        int(action.success),
        int(decision is not None),
        int(passed),
        int(enforced),
    )


def row_leaf(row: TraceRow) -> bytes:
    """Return the leaf hash of a row. Each number is written as eight bytes, big-endian."""
    return leaf_hash(_pack_row(*row))


class Trace:
    """Takes the actions of a run in order; computes the root of their rows and finds the first broken equation."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self.count = 0
        self._tree = MerkleTree()
        self._last: TraceRow | None = None

    def take(self, action: AgentAction, texts: EncodedAction) -> None:
        """Add the row of the next action. `texts` is the encoded form of the same action."""
        row = build_row(self.count, action, texts)
        if self.problem is None:
            for broken in _broken_constraints(self._last, row):
                self.problem = f"{broken}, row {self.count}"
                break
        self._last = row
        self._tree.add(row_leaf(row))
        self.count += 1

    @property
    def root(self) -> str:
        return self._tree.root.hex()

    def problem_at_end(self, *, count: int, final_receipt: str) -> str | None:
        """Return the first equation that does not hold, including those at the end; None if all hold."""
        last = self._last
        if self.problem is not None:
            return self.problem
        if last is None or last[INDEX] != count - 1:
            return f"last_index_is_count, {self.count} rows"
        if last[_RECEIPT] != _unpack_limbs(bytes.fromhex(final_receipt)):
            return f"last_receipt_is_final, row {self.count - 1}"
        return None


def _broken_constraints(before: TraceRow | None, row: TraceRow) -> Iterator[str]:
    """Yield the names of the equations that a row breaks, alone or together with the previous row."""
    has_parent, _, gated, passed, enforced = flags = row[HAS_PARENT:]
    if not _FLAGS.issuperset(flags):
        yield "booleans"
    # For flags of 0 and 1, `a > b` means that a is set and b is not.
    if passed > gated:
        yield "passed_only_if_gated"
    if enforced > passed:
        yield "enforced_only_if_passed"
    if not has_parent and row[_PARENT] != _NO_PARENT:
        yield "parent_only_if_linked"
    if before is None:
        if row[INDEX] != 0:
            yield "first_index_is_zero"
        if has_parent:
            yield "first_has_no_parent"
        return
    if row[INDEX] != before[INDEX] + 1:
        yield "next_index"
    if row[_PARENT] != before[_RECEIPT]:
        yield "next_parent_is_receipt"
    if not has_parent:
        yield "next_has_parent"
