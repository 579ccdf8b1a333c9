"""The capsule as values: six sections with every field of CPS 1.

A caller writes a `Capsule` before sealing, and reads a sealed record as one. It is a view: the bytes of the record
(`aver.capsule.sealed.Sealed`) are the truth, and keep details that a model would lose.

`from_dict` checks the shape only: the twelve keys of CPS, with objects for sections. It keeps unknown keys in `extra`
and writes them back. Missing section keys get their defaults, a missing timestamp becomes "". The rules for writing are
stricter: see `aver.capsule.validate`.

    >>> draft = Capsule(type="tool", trigger=Trigger(source="ci", request="run the tests"))
    >>> Capsule.from_dict(draft.to_dict()) == draft
    True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from aver.clock import new_id, now
from aver.errors import InvalidCapsule
from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from aver.capsule.sealed import Sealed

SPEC_VERSION = "1.0"
SECTIONS = ("trigger", "context", "reasoning", "authority", "execution", "outcome")
REQUIRED_KEYS = ("id", "type", "domain", "parent_id", "sequence", "previous_hash", *SECTIONS)
TOP_LEVEL_KEYS = (*REQUIRED_KEYS, "spec_version")


class _Part:
    """The base of sections, options and tool calls: reads them from a dict."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], path: str = "") -> Self:
        """Read a part of a document. `path` is its place, for errors."""
        return cls.build(data, path)

    @classmethod
    def build(cls, data: Mapping[str, Any], path: str = "") -> Self:
        """Build the part from `data`, with defaults for missing keys. `InvalidCapsule` if it is not an object."""
        if not isinstance(data, Mapping):
            raise InvalidCapsule("wrong_type", path or cls.__name__.lower(), "must be an object")
        known = {f.name for f in fields(cls)} - {"extra"}  # type: ignore[arg-type]
        given = {key: value for key, value in data.items() if key in known}
        given["extra"] = {key: value for key, value in data.items() if key not in known}
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger(_Part):
    """The cause of the action. `timestamp` may be given as an aware datetime."""

    type: str = "user_request"
    source: str = ""
    timestamp: str = field(default_factory=now)
    request: str = ""
    correlation_id: str | None = None
    user_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.timestamp, datetime):
            if self.timestamp.tzinfo is None:
                raise InvalidCapsule("invalid_value", "trigger.timestamp", "must have a time zone")
            object.__setattr__(self, "timestamp", self.timestamp.astimezone(UTC).isoformat())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], path: str = "") -> Self:
        """Read a trigger. A missing time stays empty: the default, the time of reading, was never signed."""
        return cls.build({"timestamp": "", **data} if isinstance(data, Mapping) else data, path)

    def to_dict(self) -> dict[str, Any]:
        content = {
            "type": self.type,
            "source": self.source,
            "timestamp": self.timestamp,
            "request": self.request,
            "correlation_id": self.correlation_id,
            "user_id": self.user_id,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(_Part):
    """The state of the system. `environment` is free; Aver's own block goes there under `aver`."""

    agent_id: str = ""
    session_id: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = {
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "environment": self.environment,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class Option(_Part):
    """One alternative considered. A rejected one says why it was rejected."""

    id: str = ""
    description: str = ""
    pros: Sequence[str] = field(default_factory=list)
    cons: Sequence[str] = field(default_factory=list)
    estimated_impact: Mapping[str, Any] = field(default_factory=dict)
    feasibility: float = 0.0
    risks: Sequence[str] = field(default_factory=list)
    selected: bool = False
    rejection_reason: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = {
            "id": self.id,
            "description": self.description,
            "pros": _list_from_tuple(self.pros),
            "cons": _list_from_tuple(self.cons),
            "estimated_impact": self.estimated_impact,
            "feasibility": self.feasibility,
            "risks": _list_from_tuple(self.risks),
            "selected": self.selected,
            "rejection_reason": self.rejection_reason,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning(_Part):
    """Why the decision was made. `options_considered` follows from `options` unless given."""

    analysis: str = ""
    options: Sequence[Option] = field(default_factory=list)
    options_considered: Sequence[str] | None = None
    selected_option: str = ""
    reasoning: str = ""
    confidence: float = 0.0
    model: str | None = None
    prompt_hash: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _build_parts(self.options, Option, "reasoning.options"))
        if self.options_considered is None:
            described = [getattr(option, "description", "") for option in self.options]
            object.__setattr__(self, "options_considered", described)

    def to_dict(self) -> dict[str, Any]:
        content = {
            "analysis": self.analysis,
            "options": [option.to_dict() for option in self.options] if self.options else [],
            "options_considered": _list_from_tuple(self.options_considered),
            "selected_option": self.selected_option,
            "reasoning": self.reasoning,
            "confidence": self.confidence,
            "model": self.model,
            "prompt_hash": self.prompt_hash,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority(_Part):
    """Who or what allowed it. `chain` holds approval records, in order."""

    type: str = "autonomous"
    approver: str | None = None
    policy_reference: str | None = None
    chain: Sequence[Any] = field(default_factory=list)
    escalation_reason: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = {
            "type": self.type,
            "approver": self.approver,
            "policy_reference": self.policy_reference,
            "chain": _list_from_tuple(self.chain),
            "escalation_reason": self.escalation_reason,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(_Part):
    """One external action: its input, its output, whether it worked and how long it took."""

    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    success: bool = False
    duration_ms: int = 0
    error: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = {
            "tool": self.tool,
            "arguments": self.arguments,
            "result": self.result,
            "success": self.success,
            "duration_ms": self.duration_ms,
            "error": self.error,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution(_Part):
    """The tool calls that were made, and their cost."""

    tool_calls: Sequence[ToolCall] = field(default_factory=list)
    duration_ms: int = 0
    resources_used: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool_calls", _build_parts(self.tool_calls, ToolCall, "execution.tool_calls"))

    def to_dict(self) -> dict[str, Any]:
        content = {
            "tool_calls": [call.to_dict() for call in self.tool_calls] if self.tool_calls else [],
            "duration_ms": self.duration_ms,
            "resources_used": self.resources_used,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(_Part):
    """The result of the action."""

    status: str = "pending"
    result: Any = None
    summary: str = ""
    error: str | None = None
    side_effects: Sequence[str] = field(default_factory=list)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = {
            "status": self.status,
            "result": self.result,
            "summary": self.summary,
            "error": self.error,
            "side_effects": _list_from_tuple(self.side_effects),
            "metrics": self.metrics,
        }
        return {**content, **self.extra} if self.extra else content


@dataclass(frozen=True, slots=True, kw_only=True)
class Capsule:
    """One action, before sealing. Sections may be given as section values or as plain dicts."""

    type: str
    id: str = field(default_factory=new_id)
    domain: str = "agents"
    parent_id: str | None = None
    sequence: int = 0
    previous_hash: str | None = None
    spec_version: str | None = SPEC_VERSION
    trigger: Trigger = field(default_factory=Trigger)
    context: Context = field(default_factory=Context)
    reasoning: Reasoning = field(default_factory=Reasoning)
    authority: Authority = field(default_factory=Authority)
    execution: Execution = field(default_factory=Execution)
    outcome: Outcome = field(default_factory=Outcome)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, part in _SECTION_TYPES.items():
            value = getattr(self, name)
            if type(value) is not part:
                object.__setattr__(self, name, part.build(value, name))

    def to_dict(self) -> dict[str, Any]:
        """The hashed content: thirteen keys, or twelve for a record from before `spec_version`."""
        content = {
            "id": self.id,
            "type": self.type,
            "domain": self.domain,
            "parent_id": self.parent_id,
            "sequence": self.sequence,
            "previous_hash": self.previous_hash,
            "spec_version": self.spec_version,
            "trigger": self.trigger.to_dict(),
            "context": self.context.to_dict(),
            "reasoning": self.reasoning.to_dict(),
            "authority": self.authority.to_dict(),
            "execution": self.execution.to_dict(),
            "outcome": self.outcome.to_dict(),
        }
        if self.spec_version is None:
            del content["spec_version"]
        return {**content, **self.extra} if self.extra else content

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Capsule:
        if not isinstance(data, Mapping):
            raise InvalidCapsule("wrong_type", "", "a capsule must be a JSON object")
        for key in REQUIRED_KEYS:
            if key not in data:
                raise InvalidCapsule("missing_field", key, "is missing")
        known = {key: data[key] for key in TOP_LEVEL_KEYS if key in data}
        extra = {key: value for key, value in data.items() if key not in known}
        known["trigger"] = Trigger.from_dict(data["trigger"], "trigger")
        return cls(**{"spec_version": None, **known}, extra=extra)

    @staticmethod
    def from_sealed_dict(data: Mapping[str, Any]) -> Sealed:
        """Read a capsule together with its seal. Nothing is verified here: see `aver.verify`."""
        from aver.capsule.sealed import Sealed

        return Sealed.from_sealed_dict(data)

    def to_sealed_dict(self) -> dict[str, Any]:
        raise InvalidCapsule(
            "missing_field", "hash", "this capsule is not sealed", advice="use aver.seal(capsule, signer)"
        )


_SECTION_TYPES: Mapping[str, Any] = {
    "trigger": Trigger,
    "context": Context,
    "reasoning": Reasoning,
    "authority": Authority,
    "execution": Execution,
    "outcome": Outcome,
}


def _list_from_tuple(value: Any) -> Any:
    """A tuple as a list, as which it will be read back. Other values are returned for `validate` to judge."""
    return list(value) if type(value) is tuple else value


def _build_parts(values: Any, part: Any, path: str) -> Any:
    if not isinstance(values, list | tuple):
        raise InvalidCapsule("wrong_type", path, "must be an array")
    if all(type(value) is part for value in values):
        return values
    return [
        value if type(value) is part else part.build(value, f"{path}[{index}]") for index, value in enumerate(values)
    ]
