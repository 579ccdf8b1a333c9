"""Finds permits that can never take effect, because other rules forbid everything that they permit.

Aver does not analyse rules. It makes questions from the words in a permit's own conditions (tools, effects, places,
programs, hosts, arguments), and keeps those that the permit alone permits. If all rules together forbid each of them,
and none is left that passes, the permit is shadowed. A tool that the tables do not know always has the effect
`unknown`, so the questions about a tool have the effects that Aver finds for it.

A permit for which no question was found is not reported: Aver has no example, and says nothing. Nor is one of the
starter set: a person who adds a `forbid` beside it narrows it on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Any

from aver.fast_dataclass import dataclass
from aver.gate.action import ACTION_TYPES, Action, Facts
from aver.gate.effects.effects import find_effects
from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.routine_commands import ROUTINE_EFFECTS
from aver.gate.policy.bundle import PolicyBundle, load_cedar, read_starter_policies
from aver.gate.policy.query import (
    FlatArguments,
    PolicyQuestion,
    Target,
    ask_policy,
    build_cedar_entities,
    build_cedar_requests,
)
from aver.gate.policy.rules import ParsedRules, is_standing

QUESTIONS_MAX = 3000
"""Questions that are made for one permit."""

MATCHES_MAX = 64
"""Questions that a permit permits, and that all rules are asked about."""

WORDS_MAX = 12
"""Words of one attribute that are tried."""

_NOW = "2026-01-05T12:00:00+00:00"
_PATH = "/work/shop/app.py"


@dataclass(frozen=True, slots=True)
class Shadow:
    """A permit that never takes effect."""

    rule: str
    words: str


def find_shadows(found: ParsedRules, bundle: PolicyBundle) -> Iterator[Shadow]:
    """Yield the permits of valid rules that never take effect."""
    shipped = read_starter_policies()
    for rule_id, policy in found.policies.items():
        if policy == shipped.get(rule_id):
            continue
        # A permit that waits for an approval, or stands for one, is meant to be used with forbids.
        if policy["effect"] != "permit" or is_standing(policy) or _reads(policy, "approved"):
            continue
        forbidding: list[set[str]] = []
        for question in _matching_questions(policy):
            answer = ask_policy(bundle, question)
            if answer.outcome == "allow":
                break
            forbidding.append(set(answer.rules))
        else:
            if forbidding:
                # Name the rules that forbid every one of them; or all, where each is forbidden by another rule.
                names = sorted(set.intersection(*forbidding) or set.union(*forbidding))
                words = f"can never take effect: {', '.join(names)} {'forbids' if len(names) == 1 else 'forbid'}"
                advice = 'add @allow("…") if the permit stands for a person\'s approval'
                yield Shadow(rule_id, f"{words} the same calls; {advice}")


def _matching_questions(policy: Mapping[str, Any]) -> list[PolicyQuestion]:
    """Return questions that this permit alone permits."""
    alone = load_cedar().PolicySet.from_json_str(
        _to_json({"staticPolicies": {"rule": policy}, "templates": {}, "templateLinks": []})
    )
    whole = PolicyBundle("", {}, {}, alone, frozenset({"texts", "numbers"}))
    matches = []
    for question in islice(_make_questions(policy), QUESTIONS_MAX):
        targets = list(question.targets)
        requests = build_cedar_requests(question, targets, approved=False)
        answers = load_cedar().is_authorized_batch(requests, alone, build_cedar_entities(whole, question, targets))
        if all(answer.allowed for answer in answers):
            matches.append(question)
            if len(matches) == MATCHES_MAX:
                break
    return matches


def _to_json(document: Mapping[str, Any]) -> str:
    import json

    return json.dumps(document)


def _make_questions(policy: Mapping[str, Any]) -> Iterator[PolicyQuestion]:
    """Yield questions made from the words of a rule, each target with each set of effects and each tool."""
    words = _collect_words(policy)
    tools = _words(words, "tool")
    texts = {name: value for name, values in words.items() if name.startswith("tag:") for value in sorted(values)[:1]}
    arguments = FlatArguments({name.removeprefix("tag:"): value for name, value in texts.items()})
    actions = sorted(words.get("action", ())) or ["tool_call", "shell_exec", "file_read", "code_edit"]
    groups = frozenset(words.get("group", ()))
    for target, tool in product(_make_targets(words), tools or [""]):
        called = target.name if target.kind == "Tool" else tool
        sets = [_effects_of(called)] if called else _effect_sets(words)
        if target.kind == "Recipient":
            sets = list(dict.fromkeys((_EFFECTS_OF_A_MESSAGE, _EFFECTS_OF_A_MESSAGE | words.get("effects", set()))))
        for effects, action, unclear, label, agent in product(
            sets,
            [name for name in actions if name in ACTION_TYPES],
            (False, True) if _reads(policy, "unclear") else (False,),
            ["", *_words(words, "labels")],
            _words(words, "agent") or ["agent"],
        ):
            yield PolicyQuestion(
                agent=agent,
                on_behalf_of=next(iter(_words(words, "on_behalf_of")), ""),
                groups=groups,
                action=action,
                tool=called,
                server=next(iter(_words(words, "server")), ""),
                workspace=next(iter(_words(words, "workspace")), "/work/shop"),
                command=next(iter(_words(words, "command")), ""),
                targets=(target,),
                effects=effects,
                labels=frozenset({label} - {""}),
                unclear=unclear,
                arguments=arguments,
                risk="low",
                score=(0, 0, 0),
                weekday=1,
                hour=12,
            )


_EFFECTS_OF_A_MESSAGE = frozenset({"network", "egress"})
"""The effects of whatever has a recipient."""

_NAMED_ENTITIES = {
    "Aver::Action": "action",
    "Aver::Agent": "agent",
    "Aver::Group": "group",
    "Aver::Recipient": "recipient",
}
"""Entities that rules name."""


def _make_targets(words: Mapping[str, set[str]]) -> list[Target]:
    """Return targets of every kind, with the names that the rule asks for."""
    places = _words(words, "place") or ["workspace", "temporary", "outside"]
    classes = [frozenset[str](), *(frozenset({name}) for name in _words(words, "classes"))]
    paths = _words(words, "path") or [_PATH]
    named = _words(words, "name")
    return [
        *(Target("Path", path, place, kinds) for path, place, kinds in product(paths, places, classes)),
        *(Target("Tool", name, text=next(iter(_words(words, "server")), "")) for name in named or ["some_tool"]),
        *(Target("Host", name) for name in named or ["example.org"]),
        *(
            Target("Recipient", name, channel=channel, domain=domain)
            for name, channel, domain in product(
                [*_words(words, "recipient"), *named] or ["someone@example.org"],
                _words(words, "channel") or ["email"],
                _words(words, "domain") or ["example.org"],
            )
        ),
        *(
            Target("Command", program, text=text)
            for program, text in product(_words(words, "program") or ["ls"], _words(words, "text") or ["ls"])
        ),
    ]


def _effect_sets(words: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Return sets of effects: none, each alone, and those that the rule names, together and alone."""
    named = frozenset(words.get("effects", ()))
    single = [frozenset({name}) for name in sorted(named) or sorted({*EFFECTS, *ROUTINE_EFFECTS})]
    return list(dict.fromkeys([frozenset[str](), *single, named, *(one | {"read"} for one in single)]))


def _effects_of(tool: str) -> frozenset[str]:
    """Return the effects that Aver finds for a call of a tool without arguments."""
    return find_effects(Action(type="tool_call", tool=tool, workspace="/work/shop"), Facts(now=_NOW)).classes


def _words(words: Mapping[str, set[str]], name: str) -> list[str]:
    return sorted(words.get(name, ()))[:WORDS_MAX]


# --- the words of a rule


def _reads(part: Any, attribute: str) -> bool:
    return any(node.get("attr") == attribute for node in _walk(part))


def _collect_words(policy: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the texts that a rule in Cedar's JSON compares each attribute with, and the entities in its scope."""
    words: dict[str, set[str]] = {}
    for node in _walk(policy):
        for operator, inner in node.items():
            if not isinstance(inner, Mapping):
                continue
            sides = [inner.get("left"), inner.get("right"), inner.get("pattern")]
            names = {name for side in sides for name in _attributes(side)}
            texts = {text for side in sides for text in _texts(side)}
            for name in names if operator not in (".", "&&", "||", "if-then-else") else ():
                words.setdefault(name, set()).update(texts)
    for entity_type, entity_id in _entities(policy):
        if entity_type in _NAMED_ENTITIES:
            words.setdefault(_NAMED_ENTITIES[entity_type], set()).add(entity_id)
    return words


def _walk(value: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _attributes(node: Any) -> Iterator[str]:
    """Yield the attribute that a side of a comparison reads; `tag:` and its name for a tag."""
    if not isinstance(node, Mapping):
        return
    access = node.get(".")
    if isinstance(access, Mapping):
        yield str(access.get("attr"))
    tag = node.get("getTag")
    if isinstance(tag, Mapping):
        yield from (f"tag:{text}" for text in _texts(tag.get("right")))


def _texts(node: Any) -> set[str]:
    """Return the literal texts of a side of a comparison. The wildcard of a pattern becomes a letter."""
    if isinstance(node, list):  # A pattern of `like`: literals and wildcards.
        return {"".join(str(part["Literal"]) if isinstance(part, Mapping) else "x" for part in node)}
    if not isinstance(node, Mapping):
        return set()
    value = node.get("Value")
    if isinstance(value, str):
        return {value}
    items: Iterable[Any] = node.get("Set") or (value if isinstance(value, list) else [])
    return {text for item in items for text in (_texts(item) if isinstance(item, Mapping) else {str(item)})}


def _entities(policy: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for node in _walk(policy):
        if set(node) == {"type", "id"}:
            yield str(node["type"]), str(node["id"])
