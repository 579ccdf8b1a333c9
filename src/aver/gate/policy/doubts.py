"""What is probably not meant in a policy that is valid: rules that ask for what does not exist, and gaps.

Nothing here is guessed. A word that no effect, class, place or risk has is one that no action will ever
have. And whether something passes unasked is found out by asking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

from aver.gate.commands.model import EFFECTS
from aver.gate.guarded_names import CLASSES
from aver.gate.places import Where
from aver.gate.policy.asking import ask
from aver.gate.policy.bundle import Bundle
from aver.gate.policy.circumstances import Circumstances, Target
from aver.gate.policy.reading import Rules
from aver.gate.routine import MEANINGS
from aver.values import dataclass

__all__ = ["Doubt", "doubts_about", "words_doubted"]

_KNOWN: Mapping[tuple[str, str], frozenset[str]] = {
    ("context", "effects"): frozenset((*EFFECTS, *MEANINGS)),
    ("context", "risk"): frozenset(("low", "unsure", "high")),
    ("resource", "classes"): frozenset(CLASSES),
    ("resource", "place"): frozenset(get_args(Where)),
}
"""All that these can ever be, or hold."""

_ASKS = ("==", "!=", "contains", "containsAll", "containsAny", "in")
_ARITHMETIC = ("+", "-", "*", "neg")

_INSIDE = Target("Path", "/work/shop/app.py", "workspace")
_PLAIN = Circumstances(agent="agent", action="tool_call", targets=(_INSIDE,), effects=frozenset({"read"}), risk="low")
_PROBES: Mapping[str, Circumstances] = {
    "what could not be understood": replace(_PLAIN, unclear=True),
    "a tool of which nothing is known": replace(
        _PLAIN, targets=(Target("Tool", "mcp__some__tool", text="some"),), effects=frozenset({"unknown"})
    ),
    "a change of Aver's own files": replace(
        _PLAIN,
        targets=(Target("Path", "/home/me/.aver/config.toml", "outside", frozenset({"aver"})),),
        effects=frozenset({"write", "agent-config"}),
    ),
    "sending a secret to another machine": replace(
        _PLAIN, targets=(Target("Host", "example.org"),), effects=frozenset({"read", "secret", "network", "egress"})
    ),
}
"""What should not pass unasked."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that is probably not meant. `rule` is empty where it is about all of them."""

    rule: str
    words: str


def doubts_about(found: Rules, bundle: Bundle) -> list[Doubt]:
    """All doubts about rules that are valid."""
    doubts = [doubt for rule_id, policy in found.policies.items() for doubt in words_doubted(rule_id, policy)]
    everything = [rule_id for rule_id, policy in found.policies.items() if _is_about_everything(policy)]
    for rule_id in everything:
        if found.rules[rule_id].effect == "forbid":
            doubts.append(Doubt(rule_id, "refuses everything: no other rule can ever decide"))
        else:
            doubts.append(Doubt(rule_id, "permits everything that no forbid names: no other permit is needed"))
    if not any(_mentions(policy, "approved") for policy in found.policies.values()):
        doubts.append(Doubt("", "no rule looks at context.approved: nobody is ever asked, the rest is refused"))
    doubts += [Doubt("", f"passes without anyone being asked: {what}") for what in _unasked(bundle)]
    return doubts


def words_doubted(rule_id: str, policy: Any) -> Iterator[Doubt]:
    """Of one rule, in Cedar's JSON: words that nothing ever is, and sums that may fail."""
    for condition in policy.get("conditions", []):
        if condition.get("body") == {"Value": condition.get("kind") == "unless"}:
            yield Doubt(rule_id, "has a condition that never holds: it decides nothing")
    for node in _nodes(policy.get("conditions", [])):
        for name, inner in node.items():
            if name in _ARITHMETIC:
                words = "calculates: numbers beyond 63 bits are an error, and then the action is refused"
                yield Doubt(rule_id, words)
            elif name in _ASKS and isinstance(inner, dict):
                yield from _unheard_of(rule_id, inner)


def _unheard_of(rule_id: str, question: Mapping[str, Any]) -> Iterator[Doubt]:
    sides = (question.get("left"), question.get("right"))
    for asked, other in (sides, sides[::-1]):
        name = _attribute(asked)
        if name is None or name not in _KNOWN:
            continue
        for text in sorted(_texts(other) - _KNOWN[name]):
            known = ", ".join(sorted(_KNOWN[name]))
            yield Doubt(rule_id, f"asks {'.'.join(name)} for {text!r}, which it never is; it is one of {known}")


def _attribute(node: Any) -> tuple[str, str] | None:
    """`context.effects` as a pair."""
    access = node.get(".") if isinstance(node, dict) else None
    if not isinstance(access, dict) or not isinstance(access.get("left"), dict):
        return None
    return str(access["left"].get("Var")), str(access.get("attr"))


def _texts(node: Any) -> set[str]:
    """The texts that a literal is, or lists."""
    if not isinstance(node, dict):
        return set()
    value = node.get("Value")
    if isinstance(value, str):
        return {value}
    items = node.get("Set", value if isinstance(value, list) else [])
    return {text for item in items for text in (_texts(item) if isinstance(item, dict) else {str(item)})}


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _is_about_everything(policy: Any) -> bool:
    scopes = (policy.get(name, {}).get("op") for name in ("principal", "action", "resource"))
    return not policy.get("conditions") and all(scope == "All" for scope in scopes)


def _mentions(policy: Any, attribute: str) -> bool:
    return any(node.get("attr") == attribute for node in _nodes(policy))


def _unasked(bundle: Bundle) -> Iterator[str]:
    for what, question in _PROBES.items():
        if ask(bundle, question).outcome == "allow":
            yield what
