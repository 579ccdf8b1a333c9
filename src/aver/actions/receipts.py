"""Receipts: the hash over an action by which the next one names it; and the texts of an action that are hashed.

A receipt is SHA-256, in lower-case hex, over sorted compact ASCII JSON of an action's canonical fields: the twelve keys
that the protocol lists. The public implementation hashes thirteen, `policy_verdict` too; those are recognised when
reading and never written.
"""

from __future__ import annotations

import hashlib
from typing import Any

from aver.actions.action import AgentAction
from aver.capsule.canonical import ascii_json

__all__ = ["CAPSEAL_KEYS", "RECEIPT_KEYS", "receipt_bytes", "receipt_hash"]

RECEIPT_KEYS = frozenset(
    (
        *("action_id", "action_type", "instruction_hash", "input_hash", "output_hash", "parent_action_id"),
        *("parent_receipt_hash", "gate_score", "gate_decision", "success", "duration_ms", "timestamp"),
    )
)
CAPSEAL_KEYS = RECEIPT_KEYS | {"policy_verdict"}


def receipt_bytes(action: AgentAction) -> bytes:
    """The exact text that is hashed."""
    fields: dict[str, Any] = {
        "action_id": action.action_id,
        "action_type": action.action_type,
        "instruction_hash": action.instruction_hash,
        "input_hash": action.input_hash,
        "output_hash": action.output_hash,
        "parent_action_id": action.parent_action_id,
        "parent_receipt_hash": action.parent_receipt_hash,
        "gate_score": action.gate_score,
        "gate_decision": action.gate_decision,
        "success": action.success,
        "duration_ms": action.duration_ms,
        "timestamp": action.timestamp,
    }
    return ascii_json(fields)


def receipt_hash(action: AgentAction) -> str:
    return hashlib.sha256(receipt_bytes(action)).hexdigest()
