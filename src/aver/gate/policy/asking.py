"""Asking policy: may this happen, may it happen once a human has approved it, or not at all.

Each target of an action is asked about, and the strictest answer counts. A question is asked twice where it must be:
as things are, and as if approved. What is refused as things are but permitted when approved is a step up. So a rule
needs no third effect: `forbid (…) unless { context.approved }` asks a human, a bare `forbid` refuses.

Anything that Cedar reports as an error is a refusal, whatever else it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aver.errors import BadInput
from aver.gate.decision import PolicyAnswer
from aver.gate.policy.bundle import Bundle
from aver.gate.policy.circumstances import Circumstances, Target

__all__ = ["TARGETS_MAX", "ask"]

TARGETS_MAX = 64
"""Targets asked about one by one. An action with more is refused as too large to be judged."""

NO_PERMIT = "no rule permits this"

_ORDER = ("allow", "step_up", "deny")


class _Answer(NamedTuple):
    allowed: bool
    rules: tuple[str, ...]
    errors: tuple[str, ...]


def ask(bundle: Bundle, question: Circumstances) -> PolicyAnswer:
    """What the rules say of an action."""
    if not question.targets:
        raise BadInput("an action touches at least its tool")
    if len(question.targets) > TARGETS_MAX:
        words = f"the action touches {len(question.targets)} things, more than the {TARGETS_MAX} that can be judged"
        return PolicyAnswer("deny", (), bundle.digest, (words,))
    plain = _asked(bundle, question, question.targets, approved=False)
    refused = [target for target, answer in zip(question.targets, plain, strict=True) if not answer.allowed]
    approved = iter(_asked(bundle, question, refused, approved=True))
    deciding: dict[str, dict[str, None]] = {outcome: {} for outcome in _ORDER}
    errors: dict[str, None] = {}
    worst = "allow"
    for answer in plain:
        if answer.allowed:
            deciding["allow"].update(dict.fromkeys(answer.rules))
            continue
        second = next(approved)
        errors.update(dict.fromkeys((*answer.errors, *second.errors)))
        outcome, rules = ("step_up", answer.rules) if second.allowed and not answer.errors else ("deny", second.rules)
        deciding[outcome].update(dict.fromkeys(rules))
        worst = max(worst, outcome, key=_ORDER.index)
    rules = _decisive(bundle, deciding[worst], permits=worst == "allow")
    reasons = tuple(bundle.rules[rule].reason for rule in rules) or ((NO_PERMIT,) if worst != "allow" else ())
    return PolicyAnswer(worst, rules, bundle.digest, reasons, tuple(errors))  # type: ignore[arg-type]


def _decisive(bundle: Bundle, rules: Iterable[str], *, permits: bool) -> tuple[str, ...]:
    effect = "permit" if permits else "forbid"
    return tuple(rule for rule in rules if rule in bundle.rules and bundle.rules[rule].effect == effect)


def _asked(bundle: Bundle, question: Circumstances, targets: Iterable[Target], *, approved: bool) -> list[_Answer]:
    import cedarpy

    targets = list(targets)
    if not targets:
        return []
    context = _context(question, approved=approved)
    action = {"type": "Aver::Action", "id": question.action}
    requests = [
        {
            "principal": _uid("Agent", question.agent),
            "action": action,
            "resource": _uid(target.kind, str(index)),
            "context": context,
        }
        for index, target in enumerate(targets)
    ]
    entities = [*_who_and_what(question), *(_entity(target, str(index)) for index, target in enumerate(targets))]
    answers = cedarpy.is_authorized_batch(requests, bundle.policies, entities, bundle.schema)
    return [
        _Answer(
            answer.allowed and not answer.diagnostics.errors,
            tuple(sorted(answer.diagnostics.reasons)),
            tuple(str(error)[:300] for error in answer.diagnostics.errors),
        )
        for answer in answers
    ]


def _uid(kind: str, name: str) -> dict[str, str]:
    return {"type": f"Aver::{kind}", "id": name}


_TEXTS, _NUMBERS, _RECENT = _uid("Texts", "arguments"), _uid("Numbers", "arguments"), _uid("Numbers", "recent")


def _context(question: Circumstances, *, approved: bool) -> dict[str, Any]:
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


def _who_and_what(question: Circumstances) -> list[dict[str, Any]]:
    agent = {"name": question.agent, "on_behalf_of": question.on_behalf_of}
    groups = [_uid("Group", group) for group in sorted(question.groups)]
    return [
        {"uid": _uid("Agent", question.agent), "attrs": agent, "parents": groups},
        *({"uid": group, "attrs": {}, "parents": []} for group in groups),
        _tagged(_TEXTS, question.arguments.texts),
        _tagged(_NUMBERS, question.arguments.numbers),
        _tagged(_RECENT, question.recent),
    ]


def _tagged(uid: dict[str, str], tags: Mapping[str, Any]) -> dict[str, Any]:
    return {"uid": uid, "attrs": {}, "parents": [], "tags": dict(tags)}


def _entity(target: Target, name: str) -> dict[str, Any]:
    attributes: dict[str, Any]
    if target.kind == "Path":
        attributes = {"path": target.name, "place": target.place, "classes": sorted(target.classes)}
    elif target.kind == "Command":
        attributes = {"program": target.name, "text": target.text}
    elif target.kind == "Tool":
        attributes = {"name": target.name, "server": target.text}
    else:
        attributes = {"name": target.name}
    return {"uid": _uid(target.kind, name), "attrs": attributes, "parents": []}
