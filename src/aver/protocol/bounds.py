"""The bounds of a trace: how much may happen in it before somebody has to look. The settings `[protocol]`.

    [protocol]
    profile = "default"       # strict, default or lenient: what the audit makes of disputes and unproven claims
    review_from = "high"      # from this risk on, a critic must approve the very intent
    attempts = 3              # how often one call may fail before it may not be tried again
    evidence_min = 1          # how many artifacts a claim must name
    proposals = 20            # how many proposals a trace may have
    tool_seconds = 600        # how long one call may run
    output_max = 16777216     # how many bytes of one output are kept
    wait = 0                  # for how many seconds the executor waits for a person

They are sealed in the first event, so a later change of the settings changes no trace that has begun. A task may
tighten them: `bounds` in it, and `max_tool_calls` and `time_budget_seconds`, which the settings do not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.protocol.statements import PROFILES

RISKS = ("low", "medium", "high", "critical")
"""The classes of risk, from the least to the worst."""

_RISK_BY_EFFECT: Mapping[str, str] = {
    **dict.fromkeys(("read", "arrange"), "low"),
    **dict.fromkeys(("write", "build", "scratch", "create", "seen", "git-state", "file-state"), "medium"),
    **dict.fromkeys(("delete", "execute", "network", "install", "process", "git-history", "unknown"), "high"),
    **dict.fromkeys(("git-fetch", "service-read", "loopback", "locked-install"), "high"),
    **dict.fromkeys(("secret", "egress", "privilege", "system", "persist", "agent-config"), "critical"),
}

REPEATABLE_EFFECTS = frozenset({"read", "arrange", "build", "scratch"})
"""Only a call with no other effects may be called repeatable: an audit may then make it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one trace. The module docstring says what each means."""

    review_from: str = "high"
    attempts: int = 3
    evidence_min: int = 1
    proposals: int = 20
    tool_seconds: float = 600
    output_max: int = 16 * 1024 * 1024
    wait: float = 0
    tool_calls: int | None = None
    """How many calls may be started in all; None: as many as are needed."""
    time_budget: int | None = None
    """Seconds from the first event after which no call may be started; None: no limit."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Bounds:
        """Read the bounds of a first event, whose schema holds."""
        return cls(**data)


def worst_risk(*risks: str | None) -> str:
    """Return the worst of some classes of risk; None among them counts for nothing."""
    return max((risk for risk in risks if risk is not None), key=RISKS.index, default=RISKS[0])


def is_risk_from(risk: str, threshold: str) -> bool:
    """Whether a risk is at least the threshold."""
    return RISKS.index(risk) >= RISKS.index(threshold)


def derive_risk(effects: object, *, is_unclear: bool = False) -> str:
    """Return the class of risk of an action: the worst of its effect classes.

    `effects` are the classes as a sealed decision has them: a list, or None where they were not found out. Anything
    unclear, outside the workspace, or of a class that this table does not know, is at least `high`.
    """
    if not isinstance(effects, list | tuple | set | frozenset):
        return "high"
    known = [_RISK_BY_EFFECT.get(str(name), "high") for name in effects]
    return worst_risk(*known, "high" if is_unclear else None)


def read_protocol_settings(table: Mapping[str, Any], where: str = "[protocol]") -> tuple[str, Bounds]:
    """Read the table `[protocol]`: the profile and the bounds. `BadInput` names the wrong setting."""
    profile = table.get("profile", "default")
    if profile not in PROFILES:
        raise BadInput(f"{where}: profile must be one of {', '.join(PROFILES)}")
    given = {name: value for name, value in table.items() if name != "profile"}
    unknown = given.keys() - (_LIMITS.keys() | {"review_from"})
    if unknown:
        raise BadInput(f"{where}: unknown setting {min(unknown)!r}", advice=f"known are {', '.join(sorted(_LIMITS))}")
    return str(profile), _check_bounds(replace(Bounds(), **given), where)


def tighten_bounds(bounds: Bounds, task: Mapping[str, Any]) -> Bounds:
    """Return the bounds that hold for a task. `BadInput` where the task would loosen one."""
    wanted = _read_task_bounds(task)
    new = _check_bounds(replace(bounds, **wanted), "the task")
    for name in wanted:
        before, after = getattr(bounds, name), getattr(new, name)
        if _is_looser(name, after, before):
            words = f"the task sets {name} to {after}, and the settings allow only {before}"
            raise BadInput(words, advice="a task may tighten the bounds; change [protocol] in config.toml")
    return new


def find_loosened_bound(bounds: Bounds, task: Mapping[str, Any]) -> str:
    """Return the name of a bound that is looser than its task says; empty if there is none. Raises `BadInput`.

    Everybody who joins a trace signs its task. The operator alone seals the bounds.
    """
    wanted = _read_task_bounds(task)
    limits = _check_bounds(replace(bounds, **wanted), "the task")
    return next((name for name in wanted if _is_looser(name, getattr(bounds, name), getattr(limits, name))), "")


def _read_task_bounds(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bounds that a task names, by the names of `Bounds`. Raises `BadInput`."""
    given = task.get("bounds", {})
    names = {field.name for field in fields(Bounds)}
    if not isinstance(given, Mapping) or given.keys() - names:
        raise BadInput("bounds of the task must be an object with the names of the settings [protocol]")
    wanted = dict(given)
    for name, source in (("tool_calls", "max_tool_calls"), ("time_budget", "time_budget_seconds")):
        if source in task:
            both = [value for value in (task[source], wanted.get(name)) if value is not None]
            if any(type(value) is not int for value in both):
                raise BadInput(f"the task: {name} must be a whole number from 1 on")
            wanted[name] = min(both, default=None)
    return wanted


def _is_looser(name: str, value: Any, limit: Any) -> bool:
    """Whether a bound allows more than a limit does."""
    if name == "review_from":
        return is_risk_from(value, limit) and value != limit
    if name == "evidence_min":
        return bool(value < limit)
    return limit is not None and (value is None or value > limit)


_LIMITS: Mapping[str, tuple[float, float]] = {
    "attempts": (1, 100),
    "evidence_min": (1, 64),
    "proposals": (1, 1000),
    "tool_seconds": (0.001, 86_400),
    "output_max": (1, 256 * 1024 * 1024),
    "wait": (0, 86_400),
}


def _check_bounds(bounds: Bounds, where: str) -> Bounds:
    if bounds.review_from not in RISKS:
        raise BadInput(f"{where}: review_from must be one of {', '.join(RISKS)}")
    for name, (low, high) in _LIMITS.items():
        value = getattr(bounds, name)
        is_number = type(value) is int or (type(value) is float and name in ("tool_seconds", "wait"))
        if not is_number or not low <= value <= high:
            raise BadInput(f"{where}: {name} must be a number from {low:g} to {high:g}")
    for name in ("tool_calls", "time_budget"):
        value = getattr(bounds, name)
        if value is not None and (type(value) is not int or value < 1):
            raise BadInput(f"{where}: {name} must be a whole number from 1 on")
    return bounds
