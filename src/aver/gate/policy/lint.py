"""Warnings about a valid policy that probably does not say what its author meant, and explanations of its answers.

`lint_policy` warns of words that do not exist, of annotations without effect, and of gaps. If a rule compares
an effect, class, place or risk with an unknown word, it can never match. Aver asks the rules to find out whether
something dangerous passes without a person.
`policy.shadows` finds permits that never take effect, because a `forbid` holds for all that they permit.

`explain_answer` says what would have changed an answer. Aver does not analyse the rules. It asks them again about
changed questions:

1. with one change each: low risk, no unclear parts, without one label, without one effect, without one target, and, of
   a call of a tool, as if the user had asked for it and named its targets;
2. if no single change makes the answer milder: with all changes of step 1 together, except those of targets. Aver then
   removes each change that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

from aver.fast_dataclass import dataclass
from aver.gate.decision import CAUTIONS, PolicyAnswer
from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.known_agents import GUARDED_CLASSES
from aver.gate.effects.paths import PathZone
from aver.gate.effects.routine_commands import ROUTINE_EFFECTS
from aver.gate.origins.answer import ANSWER_CLASS
from aver.gate.origins.judgement import DOUBTS, ORIGINS, POINTED
from aver.gate.origins.tool_class import CALL_CLASSES
from aver.gate.policy.bundle import PolicyBundle
from aver.gate.policy.query import TARGETS_MAX, PolicyQuestion, Target, ask_policy
from aver.gate.policy.rules import ParsedRules
from aver.gate.policy.shadows import find_shadows

_KNOWN_WORDS: Mapping[tuple[str, str], frozenset[str]] = {
    ("context", "effects"): frozenset((*EFFECTS, *ROUTINE_EFFECTS)),
    ("context", "risk"): frozenset(("low", "unsure", "high")),
    ("context", "caution"): frozenset(CAUTIONS),
    ("context", "class"): frozenset(("", ANSWER_CLASS, *CALL_CLASSES)),
    ("context", "origins"): frozenset((*ORIGINS, POINTED)),
    ("context", "doubts"): frozenset(DOUBTS),
    ("resource", "classes"): frozenset(GUARDED_CLASSES),
    ("resource", "effects"): frozenset((*EFFECTS, *ROUTINE_EFFECTS)),
    ("resource", "place"): frozenset(get_args(PathZone)),
}
"""The words that these attributes can hold."""

_CALL_EFFECTS = frozenset({"call", "call-read"})
"""The effects of a call that is judged by its meaning. Such a call has one of them whatever it does."""

_COMPARISONS = ("==", "!=", "contains", "containsAll", "containsAny", "in")
_ARITHMETIC = ("+", "-", "*", "neg")

_WORKSPACE_FILE = Target("Path", "/work/shop/app.py", "workspace")
_HARMLESS_QUESTION = PolicyQuestion(
    agent="agent", action="tool_call", targets=(_WORKSPACE_FILE,), effects=frozenset({"read"}), risk="low"
)
_PROBES: Mapping[str, PolicyQuestion] = {
    "unclear actions": replace(_HARMLESS_QUESTION, unclear=True),
    "an unknown tool": replace(
        _HARMLESS_QUESTION, targets=(Target("Tool", "mcp__some__tool", text="some"),), effects=frozenset({"unknown"})
    ),
    "a change of Aver's own files": replace(
        _HARMLESS_QUESTION,
        targets=(Target("Path", "/home/me/.aver/config.toml", "outside", frozenset({"aver"})),),
        effects=frozenset({"write", "agent-config"}),
    ),
    "sending a secret to another machine": replace(
        _HARMLESS_QUESTION,
        targets=(Target("Host", "example.org"),),
        effects=frozenset({"read", "secret", "network", "egress"}),
    ),
}
"""Questions that should not be allowed without a human."""


@dataclass(frozen=True, slots=True)
class LintWarning:
    """Something that is probably not meant. `rule` is empty if it concerns all rules."""

    rule: str
    words: str


def lint_policy(found: ParsedRules, bundle: PolicyBundle) -> list[LintWarning]:
    """Return all warnings about valid rules."""
    warnings = [warning for rule_id, policy in found.policies.items() for warning in lint_rule(rule_id, policy)]
    for rule_id, policy in found.policies.items():
        scopes = (policy.get(name, {}).get("op") for name in ("principal", "action", "resource"))
        if policy.get("conditions") or any(scope != "All" for scope in scopes):
            continue
        if found.rules[rule_id].effect == "forbid":
            warnings.append(LintWarning(rule_id, "refuses everything: no other rule can ever decide"))
        else:
            warnings.append(LintWarning(rule_id, "permits everything that no forbid names: no other permit is needed"))
    for rule_id, rule in found.rules.items():
        if rule.code and rule.effect == "permit":
            warnings.append(LintWarning(rule_id, "has @code, which only a forbid gives: leave it out"))
        if rule.patch and rule.effect == "forbid" and not _reads_approval(found.policies[rule_id]):
            words = "refuses whoever approves, so there is nothing to patch: leave @patch out, or add unless"
            warnings.append(LintWarning(rule_id, f"{words} {{ context.approved }}"))
    if not any(_reads_approval(policy) for policy in found.policies.values()):
        warnings.append(LintWarning("", "no rule uses context.approved: Aver never asks a person, and denies the rest"))
    warnings += [LintWarning(shadow.rule, shadow.words) for shadow in find_shadows(found, bundle)]
    for what, question in _PROBES.items():
        if ask_policy(bundle, question).outcome == "allow":
            warnings.append(LintWarning("", f"allowed without asking a person: {what}"))
    return warnings


def _reads_approval(policy: Any) -> bool:
    return any(node.get("attr") == "approved" for node in _walk_nodes(policy))


def lint_rule(rule_id: str, policy: Any) -> Iterator[LintWarning]:
    """Yield the warnings about one rule in Cedar's JSON: unknown words, and arithmetic that may fail."""
    for condition in policy.get("conditions", []):
        if condition.get("body") == {"Value": condition.get("kind") == "unless"}:
            yield LintWarning(rule_id, "has a condition that never holds: it decides nothing")
    for node in _walk_nodes(policy.get("conditions", [])):
        for name, inner in node.items():
            if name in _ARITHMETIC:
                words = "calculates: numbers beyond 63 bits are an error, and then the action is refused"
                yield LintWarning(rule_id, words)
            elif name in _COMPARISONS and isinstance(inner, dict):
                yield from _find_unknown_words(rule_id, inner)


def _find_unknown_words(rule_id: str, question: Mapping[str, Any]) -> Iterator[LintWarning]:
    """Yield the words that a comparison in Cedar's JSON looks for, and its attribute never holds."""
    sides = (question.get("left"), question.get("right"))
    for asked, other in (sides, sides[::-1]):
        # `context.effects` is {".": {"left": {"Var": "context"}, "attr": "effects"}}.
        access = asked.get(".") if isinstance(asked, dict) else None
        if not isinstance(access, dict) or not isinstance(access.get("left"), dict):
            continue
        name = str(access["left"].get("Var")), str(access.get("attr"))
        for text in sorted(_literal_texts(other) - _KNOWN_WORDS[name]) if name in _KNOWN_WORDS else ():
            known = ", ".join(sorted(_KNOWN_WORDS[name]))
            yield LintWarning(rule_id, f"asks {'.'.join(name)} for {text!r}, which it never is; it is one of {known}")


def _literal_texts(node: Any) -> set[str]:
    """Return the texts of a literal, or of a list of literals."""
    if not isinstance(node, dict):
        return set()
    value = node.get("Value")
    if isinstance(value, str):
        return {value}
    items = node.get("Set", value if isinstance(value, list) else [])
    return {text for item in items for text in (_literal_texts(item) if isinstance(item, dict) else {str(item)})}


def _walk_nodes(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


_MILDER_OUTCOMES = {"deny": ("step_up", "allow"), "step_up": ("allow",), "allow": ()}

_QuestionChange = tuple[str, Callable[[PolicyQuestion], PolicyQuestion]]


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """Changes that together would give another answer, and that answer. All of `changes` are needed."""

    changes: tuple[str, ...]
    outcome: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer, the answer for each target alone, and the changes that would give another answer."""

    answer: PolicyAnswer
    by_target: tuple[tuple[Target, PolicyAnswer], ...]
    turns: tuple[Counterfactual, ...]


def explain_answer(bundle: PolicyBundle, question: PolicyQuestion) -> Explanation:
    """Ask the rules, and explain their answer."""
    answer = ask_policy(bundle, question)
    alone = tuple(
        (target, ask_policy(bundle, replace(question, targets=(target,)))) for target in question.targets[:TARGETS_MAX]
    )
    turns = list(_find_counterfactuals(bundle, question, answer.outcome))
    if answer.outcome == "step_up":
        turns.append(Counterfactual(("a human approved it",), "allow"))
    return Explanation(answer, alone, tuple(turns))


def _find_counterfactuals(bundle: PolicyBundle, question: PolicyQuestion, outcome: str) -> Iterator[Counterfactual]:
    """Yield the changes that make an answer milder, by the two steps of this module."""

    def milder(changes: list[_QuestionChange]) -> str | None:
        """Ask with these changes. Returns the outcome if it is milder."""
        changed = question
        for _, change in changes:
            changed = change(changed)
        found = ask_policy(bundle, changed).outcome
        return found if found in _MILDER_OUTCOMES[outcome] else None

    changes = list(_possible_changes(question))
    removals: list[_QuestionChange] = []
    for target in question.targets if 1 < len(question.targets) <= TARGETS_MAX else ():
        others = tuple(other for other in question.targets if other is not target)
        removals.append((f"it left {target.kind.lower()} {target.name} alone", partial(replace, targets=others)))
    # 1. One change each.
    single = [(change, found) for change in (*changes, *removals) if (found := milder([change]))]
    for (words, _), found in single:
        yield Counterfactual((words,), found)
    if single or not milder(changes):
        return
    # 2. All together, and then without each that is not needed.
    needed = changes
    for change in changes:
        rest = [other for other in needed if other is not change]
        if milder(rest):
            needed = rest
    yield Counterfactual(tuple(words for words, _ in needed), milder(needed) or outcome)


def _possible_changes(question: PolicyQuestion) -> Iterator[_QuestionChange]:
    """Yield the changes that could make the answer milder, with words for each."""
    if question.risk != "low":
        yield "its risk were low", lambda asked: replace(asked, risk="low", score=(0, 0, 0))
    if question.unclear or not question.arguments.complete:
        yield (
            "all of it were understood",
            lambda asked: replace(asked, unclear=False, arguments=replace(asked.arguments, complete=True)),
        )
    for label in sorted(question.labels):
        yield f"the session were not marked {label!r}", partial(_drop, "labels", label)
    meaning = question.meaning
    if meaning and (not meaning["asked"] or meaning["doubts"]):
        meant = {**meaning, "asked": True, "origins": ["named"], "doubts": []}
        yield "the user had asked for it and named all that it goes to", partial(replace, meaning=meant)
    # A call that is judged by its meaning cannot be anything but a call.
    for effect in sorted(question.effects - (_CALL_EFFECTS if meaning else frozenset())):
        yield f"it did not have the effect {effect!r}", partial(_drop, "effects", effect)


def _drop(name: Literal["labels", "effects"], value: str, asked: PolicyQuestion) -> PolicyQuestion:
    return replace(asked, **{name: getattr(asked, name) - {value}})
