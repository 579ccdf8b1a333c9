"""From what is known of an action to what Cedar is asked: one mapping that takes any value and invents nothing.

Arguments come from outside and may be any JSON. Cedar's own JSON has escapes (`__entity`, `__extn`) by which a value
could pose as another; so no value from outside is ever handed over as JSON structure. Arguments are flattened into
named texts and whole numbers:

    {"path": "a", "depth": 3, "opts": {"x": [1.5, null]}}
    texts    path = "a", depth = "3", opts.x.0 = "1.5"
    numbers  depth = 3

Null is left out; floats are texts; integers beyond 63 bits are texts. In names, `\\` and `.` are escaped by a
backslash, and so is a leading `__`; so two different arguments never get the same name. What does not fit the bounds
is left out, and then the action is `unclear`: rules let nothing unclear pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Literal

from aver.capsule.canonical import has_surrogate
from aver.fast_dataclass import dataclass

__all__ = ["FlatArguments", "PolicyQuestion", "Target", "flatten_arguments"]

TagName = str

TAGS_MAX = 2_000
"""Values of one call that policies can ask about."""

TAG_CHARACTERS_MAX = 1_000_000
"""Characters of them all."""

DEPTH_MAX = 32

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class FlatArguments:
    """A call's arguments as policies see them."""

    texts: Mapping[TagName, str] = field(default_factory=dict)
    numbers: Mapping[TagName, int] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """Something that an action touches. `place` and `classes` are of paths only."""

    kind: Literal["Path", "Host", "Recipient", "Command", "Tool"]
    name: str
    place: str = ""
    classes: frozenset[str] = frozenset()
    text: str = ""
    """The whole of a command, the server of a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyQuestion:
    """One question to policy, but for whether a human has approved."""

    agent: str
    on_behalf_of: str = ""
    groups: frozenset[str] = frozenset()
    """Those of the settings that list the agent."""
    action: str
    tool: str = ""
    server: str = ""
    targets: tuple[Target, ...]
    effects: frozenset[str]
    labels: frozenset[str] = frozenset()
    unclear: bool = False
    arguments: FlatArguments = FlatArguments()
    risk: Literal["low", "unsure", "high"] = "unsure"
    score: tuple[int, int, int] | None = None
    """Score, low and high end of its interval, per mille."""
    observations: int = 0
    recent: Mapping[str, int] = field(default_factory=dict)
    weekday: int = 0
    hour: int = 0


def flatten_arguments(arguments: Mapping[str, Any]) -> FlatArguments:
    """A call's arguments, flattened."""
    texts: dict[str, str] = {}
    numbers: dict[str, int] = {}
    complete, room = True, TAG_CHARACTERS_MAX
    for name, value in _walk_leaves(arguments, "", 0):
        if value is None:
            continue
        text = value if type(value) is str else _format_scalar(value)
        if text is None or len(texts) >= TAGS_MAX:
            complete = False
            break
        room -= len(text) + len(name)
        if room < 0:
            complete = False
            break
        if has_surrogate(text) or has_surrogate(name):
            complete = False
            continue
        texts[name] = text
        if type(value) is int and _LONG_MIN <= value <= _LONG_MAX:
            numbers[name] = value
    return FlatArguments(texts, numbers, complete)


class _TooDeep:
    """Stands where a value lies deeper than is looked."""


def _walk_leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | list | tuple):
        if depth > DEPTH_MAX:
            yield path, _TooDeep()
            return
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            name = _escape_name(str(key))
            yield from _walk_leaves(item, f"{path}.{name}" if path else name, depth + 1)
    else:
        yield path, value


def _escape_name(key: str) -> str:
    name = key.replace("\\", "\\\\").replace(".", "\\.")
    return f"\\{name}" if name.startswith("__") else name


def _format_scalar(value: Any) -> str | None:
    """A scalar as text; None for what is no JSON scalar."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        try:
            return str(value)
        except ValueError:
            return None
    return repr(value) if type(value) is float else None
