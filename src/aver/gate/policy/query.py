"""Asking policy: may this happen, may it happen once a human has approved it, or not at all.

Each target of an action is asked about, and the strictest answer counts. Targets that differ in nothing that any rule
looks at are asked about once: a rule that reads no names cannot tell two files of the workspace apart. A question is
asked twice where it must be: as things are, and as if approved. What is refused as things are but permitted when
approved is a step up. So a rule needs no third effect: `forbid (…) unless { context.approved }` asks a human, a bare
`forbid` refuses.

Anything that Cedar reports as an error is a refusal, whatever else it says. Rules are held to the schema when they are
loaded, and what is asked is built to fit it; so Cedar need not check each question against the schema again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from aver.errors import BadInput
from aver.gate.action import ACTION_TYPES
from aver.gate.decision import PolicyAnswer
from aver.gate.policy.bundle import PolicyBundle
from aver.gate.policy.engine import load_cedar
from aver.gate.policy.question import PolicyQuestion, Target

__all__ = ["TARGETS_MAX", "ask_policy", "build_cedar_entities", "build_cedar_requests"]

TARGETS_MAX = 64
"""Targets asked about one by one. An action with more that differ is refused as too large to be judged."""

NO_PERMIT = "no rule permits this"

_OUTCOME_ORDER = ("allow", "step_up", "deny")


class _CedarAnswer(NamedTuple):
    allowed: bool
    rules: tuple[str, ...]
    errors: tuple[str, ...]


def ask_policy(bundle: PolicyBundle, question: PolicyQuestion) -> PolicyAnswer:
    """What the rules say of an action."""
    if not question.targets:
        raise BadInput("an action touches at least its tool")
    if question.action not in ACTION_TYPES:
        return PolicyAnswer("deny", (), bundle.digest, (f"{question.action!r} is not an action type",))
    targets = list({_target_key(target, bundle): target for target in reversed(question.targets)}.values())
    if len(targets) > TARGETS_MAX:
        words = f"the action touches {len(targets)} things, more than the {TARGETS_MAX} that can be judged"
        return PolicyAnswer("deny", (), bundle.digest, (words,))
    try:
        answers = _ask_both_ways(bundle, question, targets)
    except orjson.JSONEncodeError as error:  # Half a character, or a number that no Cedar value holds.
        return PolicyAnswer("deny", (), bundle.digest, ("this cannot be asked in Cedar",), (str(error),))
    deciding: dict[str, dict[str, None]] = {outcome: {} for outcome in _OUTCOME_ORDER}
    errors: dict[str, None] = {}
    worst = "allow"
    for plain, approved in answers:
        if plain.allowed:
            outcome, rules = "allow", plain.rules
        elif approved.allowed and not plain.errors:
            outcome, rules = "step_up", plain.rules
        else:
            outcome, rules = "deny", approved.rules
            errors.update(dict.fromkeys((*plain.errors, *approved.errors)))
        deciding[outcome].update(dict.fromkeys(rules))
        worst = max(worst, outcome, key=_OUTCOME_ORDER.index)
    rules = _select_deciding_rules(bundle, deciding[worst], permits=worst == "allow")
    reasons = tuple(bundle.rules[rule].reason for rule in rules) or ((NO_PERMIT,) if worst != "allow" else ())
    return PolicyAnswer(worst, rules, bundle.digest, reasons, tuple(errors))  # type: ignore[arg-type]


def _select_deciding_rules(bundle: PolicyBundle, rules: Iterable[str], *, permits: bool) -> tuple[str, ...]:
    effect = "permit" if permits else "forbid"
    return tuple(rule for rule in rules if rule in bundle.rules and bundle.rules[rule].effect == effect)


def _target_key(target: Target, bundle: PolicyBundle) -> tuple[Any, ...]:
    """What the rules can tell a target by."""
    attributes = _target_attributes(target)
    return (target.kind, *(_to_hashable(attributes[name]) for name in attributes if name in bundle.looks_at))


def _to_hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _ask_both_ways(
    bundle: PolicyBundle, question: PolicyQuestion, targets: list[Target]
) -> Iterable[tuple[_CedarAnswer, _CedarAnswer]]:
    """For each target what Cedar says as things are, and as if approved. Where it allows all as things are, that is
    not asked; and one call for both is quicker than two, so what is likely to be refused is asked both ways at once."""
    entities = build_cedar_entities(bundle, question, targets)
    plain = build_cedar_requests(question, targets, approved=False)
    if not question.unclear and question.effects <= _OFTEN_ALLOWED_EFFECTS[question.risk]:
        answers = _query_cedar(bundle, plain, entities)
        if all(answer.allowed for answer in answers):
            return zip(answers, answers, strict=True)
    taken = _query_cedar(bundle, [*plain, *build_cedar_requests(question, targets, approved=True)], entities)
    return zip(taken[: len(targets)], taken[len(targets) :], strict=True)


_DAILY_EFFECTS = frozenset({"read", "arrange", "build"})
_OFTEN_ALLOWED_EFFECTS = {"low": _DAILY_EFFECTS | {"write"}, "unsure": _DAILY_EFFECTS, "high": frozenset[str]()}
"""Effects, by risk."""


def _query_cedar(bundle: PolicyBundle, requests: list[dict[str, Any]], entities: str) -> list[_CedarAnswer]:
    answers = load_cedar().is_authorized_batch(requests, bundle.policies, entities)
    if len(answers) != len(requests):
        raise BadInput("Cedar has not answered every question")
    return [
        _CedarAnswer(
            answer.allowed and not answer.diagnostics.errors,
            tuple(sorted(answer.diagnostics.reasons)),
            tuple(str(error)[:300] for error in answer.diagnostics.errors),
        )
        for answer in answers
    ]


def build_cedar_requests(question: PolicyQuestion, targets: list[Target], *, approved: bool) -> list[dict[str, Any]]:
    """What Cedar is asked, a request for each target: as things are, or as if approved."""
    agent, action = _uid("Agent", question.agent), {"type": "Aver::Action", "id": question.action}
    context = orjson.dumps(_build_context(question, approved=approved)).decode()
    return [
        {"principal": agent, "action": action, "resource": _uid(target.kind, str(index)), "context": context}
        for index, target in enumerate(targets)
    ]


def build_cedar_entities(bundle: PolicyBundle, question: PolicyQuestion, targets: list[Target]) -> str:
    """All that those requests speak of."""
    things = [
        {"uid": _uid(target.kind, str(index)), "attrs": _target_attributes(target), "parents": []}
        for index, target in enumerate(targets)
    ]
    return orjson.dumps([*_build_shared_entities(question, bundle), *things]).decode()


def _uid(kind: str, name: str) -> dict[str, str]:
    return {"type": f"Aver::{kind}", "id": name}


_TEXTS, _NUMBERS, _RECENT = _uid("Texts", "arguments"), _uid("Numbers", "arguments"), _uid("Numbers", "recent")


def _build_context(question: PolicyQuestion, *, approved: bool) -> dict[str, Any]:
    context = {
        "tool": question.tool,
        "server": question.server,
        "effects": sorted(question.effects),
        "labels": sorted(question.labels),
        "unclear": question.unclear or not question.arguments.complete,
        "texts": {"__entity": _TEXTS},
        "numbers": {"__entity": _NUMBERS},
        "risk": question.risk,
        "observations": question.observations,
        "recent": {"__entity": _RECENT},
        "approved": approved,
        "weekday": question.weekday,
        "hour": question.hour,
    }
    if question.score is not None:
        context.update(zip(("score", "low", "high"), question.score, strict=True))
    return context


def _build_shared_entities(question: PolicyQuestion, bundle: PolicyBundle) -> list[dict[str, Any]]:
    agent = {"name": question.agent, "on_behalf_of": question.on_behalf_of}
    groups = [_uid("Group", group) for group in sorted(question.groups)]
    return [
        {"uid": _uid("Agent", question.agent), "attrs": agent, "parents": groups},
        *({"uid": group, "attrs": {}, "parents": []} for group in groups),
        _build_tagged_entity(_TEXTS, question.arguments.texts if "texts" in bundle.looks_at else {}),
        _build_tagged_entity(_NUMBERS, question.arguments.numbers if "numbers" in bundle.looks_at else {}),
        _build_tagged_entity(_RECENT, question.recent),
    ]


def _build_tagged_entity(uid: dict[str, str], tags: Mapping[str, Any]) -> dict[str, Any]:
    return {"uid": uid, "attrs": {}, "parents": [], "tags": dict(tags)}


def _target_attributes(target: Target) -> dict[str, Any]:
    if target.kind == "Path":
        return {"path": target.name, "place": target.place, "classes": sorted(target.classes)}
    if target.kind == "Command":
        return {"program": target.name, "text": target.text}
    if target.kind == "Tool":
        return {"name": target.name, "server": target.text}
    return {"name": target.name}
