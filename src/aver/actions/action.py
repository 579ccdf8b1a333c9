"""One action of an agent: the record of the CapSeal Agent Protocol, with exactly fourteen fields.

Every `AgentAction` object is well formed, because its constructor checks all fields: known words, hashes of 64
lower-case hex digits, a score from 0 to 1, an ISO 8601 time. Aver keeps each value exactly as it was given, including
the text of the time, because the receipt is a hash over these values. Other programs write times with another offset,
or without any; a run of Aver takes only UTC.

    >>> action = AgentAction("act_0001", "tool_call", *[text_hash(part) for part in ("read file", "foo.py", "text")],
    ...     success=True, duration_ms=45, timestamp="2024-01-15T10:30:00Z")
    >>> AgentAction.from_dict(action.to_dict()) == action
    True
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from aver.capsule.canonical import ascii_json
from aver.errors import BadInput
from aver.gate.action import ACTION_TYPES
from aver.gate.decision import DECISIONS

POLICY_VERDICTS = ("PROOF_ONLY", "POLICY_ENFORCED", "FULLY_VERIFIED")

FIELDS = (
    *("action_id", "action_type", "instruction_hash", "input_hash", "output_hash", "parent_action_id"),
    *("parent_receipt_hash", "gate_score", "gate_decision", "policy_verdict", "success", "duration_ms"),
    *("timestamp", "metadata"),
)
"""The fields in the order of the protocol. The files use the same order."""

OPTIONAL_FIELDS = frozenset(
    {"parent_action_id", "parent_receipt_hash", "gate_score", "gate_decision", "policy_verdict", "metadata"}
)

ID_MAX = 256
"""The maximum length of an action id. The id is part of an idempotency key and appears in tables."""

DURATION_MAX = 2**53
"""The maximum duration in milliseconds. Every language reads integers up to this limit exactly."""

_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch
_ZONE = r"(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_TIME = re.compile(rf"(\d{{4}}-\d\d-\d\d)(?:(T\d\d:\d\d)(?:(:\d\d)(?:[.,]\d+)?)?{_ZONE}?)?", re.A).fullmatch
_THREE_HASHES = re.compile(r"[0-9a-f]{192}").fullmatch
_REQUIRED: Any = None
"""The default of a required field. It follows optional ones, so it needs a default; the check then names it."""
_TYPES, _DECISIONS, _VERDICTS = frozenset(ACTION_TYPES), frozenset(DECISIONS), frozenset(POLICY_VERDICTS)


@dataclass(frozen=True, slots=True)
class AgentAction:
    """One action of an agent: hashes of its instruction, input and output, and the decision of the gate."""

    action_id: str
    action_type: str
    instruction_hash: str
    input_hash: str
    output_hash: str
    parent_action_id: str | None = None
    parent_receipt_hash: str | None = None
    gate_score: float | None = None
    gate_decision: str | None = None
    policy_verdict: str | None = None
    success: bool = _REQUIRED
    duration_ms: int = _REQUIRED
    timestamp: str = _REQUIRED
    metadata: Mapping[str, Any] | None = None
    """Any JSON object. The receipt does not cover it; the capsule of the action does."""

    def __post_init__(self) -> None:
        """Check the fields. Raise `BadInput` if one is wrong."""
        score, parent = self.gate_score, self.parent_receipt_hash
        # The fast path, for every line that Aver reads: all fields have their usual form. `_check` handles other cases.
        try:
            # One regular expression checks all three hashes. The length check below fixes where each hash ends.
            hashes = self.instruction_hash + self.input_hash + self.output_hash
            if (
                len(self.instruction_hash) == len(self.input_hash) == 64
                and _THREE_HASHES(hashes) is not None
                and (parent is None or _HEX64(parent) is not None)
                and self.action_type in _TYPES
                and (score is None or (type(score) is float and 0 <= score <= 1))
                and (self.gate_decision is None or self.gate_decision in _DECISIONS)
                and (self.policy_verdict is None or self.policy_verdict in _VERDICTS)
                and type(self.success) is bool
                and type(self.duration_ms) is int
                and 0 <= self.duration_ms <= DURATION_MAX
                and (self.metadata is None or type(self.metadata) is dict)
                and _is_id(self.action_id)
                and (self.parent_action_id is None or _is_id(self.parent_action_id))
                and _is_time(self.timestamp)
            ):
                return
        except (TypeError, AttributeError):
            pass  # A field has a wrong type. `_check` then names the field.
        self._check()

    def _check(self) -> None:
        """Raise `BadInput` with the name of the first wrong field. Convert float subclasses to plain floats."""
        _check_id(self.action_id, "action_id")
        if self.parent_action_id is not None:
            _check_id(self.parent_action_id, "parent_action_id")
        _check_choice(self.action_type, _TYPES, ACTION_TYPES, "action_type")
        if self.gate_decision is not None:
            _check_choice(self.gate_decision, _DECISIONS, DECISIONS, "gate_decision")
        if self.policy_verdict is not None:
            _check_choice(self.policy_verdict, _VERDICTS, POLICY_VERDICTS, "policy_verdict")
        for name in ("instruction_hash", "input_hash", "output_hash", "parent_receipt_hash"):
            if name != "parent_receipt_hash" or self.parent_receipt_hash is not None:
                _check_hash(getattr(self, name), name)
        if self.gate_score is not None:
            # The dataclass is frozen, so a normal assignment would raise.
            object.__setattr__(self, "gate_score", _check_score(self.gate_score))
        if type(self.success) is not bool:
            raise BadInput(f"success must be true or false, not {_short_repr(self.success)}")
        if type(self.duration_ms) is not int or not 0 <= self.duration_ms <= DURATION_MAX:
            raise BadInput(f"duration_ms must be a whole number of milliseconds, not {_short_repr(self.duration_ms)}")
        if not _is_time(self.timestamp):
            words = f"timestamp must be a time of ISO 8601, not {_short_repr(self.timestamp)}"
            raise BadInput(words, advice="such as 2026-05-31T09:00:00Z")
        if self.metadata is not None and not isinstance(self.metadata, dict):
            raise BadInput(f"metadata must be an object, not {type(self.metadata).__name__}")

    def to_dict(self) -> dict[str, Any]:
        """Return all fourteen fields in the order of the protocol."""
        return dict(zip(FIELDS, _field_values(self), strict=True))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AgentAction:
        """Build an action from a mapping. Optional fields may be absent; an unknown field raises `BadInput`."""
        if not isinstance(data, Mapping):
            raise BadInput(f"an action must be an object, not {type(data).__name__}")
        for name in data:
            if name not in FIELDS:
                raise BadInput(f"{_short_repr(name)} is not a field of an action")
        for name in FIELDS:
            if name not in data and name not in OPTIONAL_FIELDS:
                raise BadInput(f"the action lacks {name!r}")
        return cls(**data)


_field_values = attrgetter(*FIELDS)


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text: an instruction, or an input or output that is a string."""
    if not isinstance(text, str):
        raise BadInput(f"an instruction is a text, not {type(text).__name__}")
    try:
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
    except UnicodeEncodeError:
        raise BadInput("a text holds a lone surrogate, which UTF-8 cannot carry") from None


def value_hash(value: Any) -> str:
    """Return the SHA-256 of inputs or outputs.

    Strings are hashed as UTF-8, other values as compact, sorted ASCII JSON.
    """
    return text_hash(value) if isinstance(value, str) else hashlib.sha256(ascii_json(value)).hexdigest()


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= ID_MAX and value.isprintable()


def _check_id(value: Any, name: str) -> None:
    if not _is_id(value):
        raise BadInput(f"{name} must be 1 to {ID_MAX} printable characters, not {_short_repr(value)}")


def _check_choice(value: Any, known: frozenset[str], listed: tuple[str, ...], name: str) -> None:
    if not isinstance(value, str) or value not in known:
        raise BadInput(f"Invalid {name} {_short_repr(value)}. Must be one of: {', '.join(sorted(listed))}")


def _check_hash(value: Any, name: str) -> None:
    if not isinstance(value, str) or not _HEX64(value):
        raise BadInput(f"{name} must be 64 lower-case hex digits, not {_short_repr(value)}")


def _check_score(value: Any) -> float:
    # `type(...) is int` excludes bool. A float subclass, for example from NumPy, becomes a plain float.
    if type(value) is not int and not isinstance(value, float):
        raise BadInput(f"gate_score must be a number from 0 to 1, not {_short_repr(value)}")
    if not 0 <= value <= 1:
        raise BadInput(f"gate_score must lie between 0 and 1, not at {_short_repr(value)}")
    return value if type(value) is int else float(value)


def _is_time(value: Any) -> bool:
    match = _TIME(value) if isinstance(value, str) else None
    if match is None:
        return False
    try:
        datetime.fromisoformat(f"{match[1]}{match[2] or 'T00:00'}{match[3] or ''}")
    except ValueError:
        return False
    return True


def has_zone(timestamp: str) -> bool:
    """Return whether a time of an action says in which zone it is."""
    match = _TIME(timestamp)
    return match is not None and match[4] is not None


def _short_repr(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
