"""The question about an action, and the answer of the rules: allowed, allowed after a human's approval, or refused.

Aver asks about each target of an action, and the strictest answer counts. Targets that no rule can distinguish are
asked about once: if no rule reads names, two files of the workspace are the same. Each question is asked in two forms:
as it is, and as if a human had approved. If the rules refuse the first and permit the second, the action steps up to a
human. Rules therefore need no third effect: `forbid (…) unless { context.approved }` asks a human, a plain `forbid`
refuses.

A permit with the annotation `@allow` stands for a human's approval that was given for good. Where an action would step
up to a human, and such a rule permits every target of it, it is allowed. A refusal stays a refusal.

Rules may demand a patch (`aver.gate.policy.annotations`). The patches of all rules that permit the action count, or
would once a person has approved it, and those of the rules that ask for that person. If they differ, the answer is a
refusal.

If Cedar reports any error, the answer is a refusal. Rules are checked against the schema when they are loaded, and Aver
builds questions that fit the schema. Cedar need not check each question again.

Arguments come from the agent and may be any JSON. Cedar's own JSON has escapes (`__entity`, `__extn`), with which a
value could pretend to be another. Aver therefore never passes arguments on as JSON structure. It flattens them into
named texts and whole numbers:

    {"path": "a", "depth": 3, "opts": {"x": [1.5, null]}}
    texts    path = "a", depth = "3", opts.x.0 = "1.5"
    numbers  depth = 3

Null is left out. Floats, and integers beyond 63 bits, are texts only. In names, a backslash escapes `\\` and `.`, and a
leading `__`, so two different arguments never get the same name. Values beyond the limits are left out, and the action
is then `unclear`: rules let nothing unclear pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal

import orjson

from aver.capsule.canonical import has_surrogate
from aver.errors import BadInput
from aver.fast_dataclass import NamedTuple, dataclass
from aver.gate.action import ACTION_TYPES
from aver.gate.decision import Caution, PolicyAnswer
from aver.gate.policy.bundle import PolicyBundle, load_cedar

TARGETS_MAX = 64
"""Different targets of one action. Aver refuses an action with more."""

TagName = str

TAGS_MAX = 2_000
"""Values of one call that rules can read."""

TAG_CHARACTERS_MAX = 1_000_000
"""Characters of all these values and their names."""

DEPTH_MAX = 32

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class FlatArguments:
    """The arguments of a call as rules see them. `complete` is false if something was left out."""

    texts: Mapping[TagName, str] = field(default_factory=dict)
    numbers: Mapping[TagName, int] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """Something that an action touches. Only paths have `place`, `classes` and `effects`.

    Only recipients have `channel` and `domain`.
    """

    kind: Literal["Path", "Host", "Recipient", "Command", "Tool"]
    name: str
    place: str = ""
    classes: frozenset[str] = frozenset()
    text: str = ""
    """The whole text of a command, or the server of a tool."""
    effects: frozenset[str] = frozenset()
    """What is done to a path."""
    channel: str = ""
    domain: str = ""

    def entity_id(self, number: int) -> str:
        """Return the name by which Cedar knows the target. `number` is its place among all targets.

        Rules name recipients, and nothing else of a recipient differs from act to act. Other targets are named by their
        number, so that no name from outside becomes an identifier.
        """
        return self.name if self.kind == "Recipient" else str(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyQuestion:
    """A question to the rules, without whether a human has approved."""

    agent: str
    on_behalf_of: str = ""
    groups: frozenset[str] = frozenset()
    """The groups in the settings that list the agent."""
    action: str
    tool: str = ""
    server: str = ""
    workspace: str = ""
    command: str = ""
    """The command, as `aver.gate.policy.standing_rules.shape_command` writes it; empty if no rule compares it."""
    targets: tuple[Target, ...]
    effects: frozenset[str]
    labels: frozenset[str] = frozenset()
    meaning: Mapping[str, Any] = field(default_factory=dict)
    """The meaning of a call (`gate.origins`): `class asked origins doubts`; empty where nobody has judged it."""
    unclear: bool = False
    runs_unseen: bool = False
    """Whether code that the session changed unseen may run. Nobody has approved that code, so no rule stands for it."""
    arguments: FlatArguments = FlatArguments()
    risk: Literal["low", "unsure", "high"] = "unsure"
    score: tuple[int, int, int] | None = None
    """The risk score, and the low and the high end of its interval, per mille."""
    observations: int = 0
    caution: Caution = "balanced"
    recent: Mapping[str, int] = field(default_factory=dict)
    weekday: int = 0
    hour: int = 0


def flatten_arguments(arguments: Mapping[str, Any]) -> FlatArguments:
    """Flatten the arguments of a call into texts and numbers."""
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
        if has_surrogate(text) or has_surrogate(name):  # no text of Cedar holds half a character
            complete = False
            continue
        texts[name] = text
        if type(value) is int and _LONG_MIN <= value <= _LONG_MAX:
            numbers[name] = value
    return FlatArguments(texts, numbers, complete)


class _TooDeep:
    """Marks a value that is nested too deep. It has no text, so the arguments count as incomplete."""


def _walk_leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | list | tuple):
        if depth > DEPTH_MAX:
            yield path, _TooDeep()
            return
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            name = str(key).replace("\\", "\\\\").replace(".", "\\.")
            if name.startswith("__"):  # Cedar's JSON gives such a name a meaning of its own.
                name = f"\\{name}"
            yield from _walk_leaves(item, f"{path}.{name}" if path else name, depth + 1)
    else:
        yield path, value


def _format_scalar(value: Any) -> str | None:
    """Return a JSON scalar as text; None for anything else."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        try:
            return str(value)
        except ValueError:  # Python refuses to print integers of more than 4300 digits
            return None
    return repr(value) if type(value) is float else None


# --- asking Cedar

NO_PERMIT = "no rule permits this"

_OUTCOME_ORDER = ("allow", "step_up", "deny")


class _CedarAnswer(NamedTuple):
    allowed: bool
    rules: tuple[str, ...]
    errors: tuple[str, ...]


def ask_policy(bundle: PolicyBundle, question: PolicyQuestion) -> PolicyAnswer:
    """Ask the rules about an action. Raises BadInput if it has no target."""
    if not question.targets:
        raise BadInput("an action touches at least its tool")
    if question.action not in ACTION_TYPES:
        return PolicyAnswer("deny", (), bundle.digest, (f"{question.action!r} is not an action type",))
    # Keep one target of each group that the rules cannot distinguish; reversed, so that the first one stays.
    # Rules distinguish targets by the kind, and by the attributes that any rule reads.
    kept: dict[tuple[Any, ...], Target] = {}
    for target in reversed(question.targets):
        read = [value for name, value in _target_attributes(target).items() if name in bundle.looks_at]
        own = target.name if target.kind == "Recipient" else ""  # Rules may name it without reading an attribute.
        kept[(target.kind, own, *(tuple(value) if isinstance(value, list) else value for value in read))] = target
    targets = list(kept.values())
    if len(targets) > TARGETS_MAX:
        words = f"the action touches {len(targets)} things, more than the {TARGETS_MAX} that can be judged"
        return PolicyAnswer("deny", (), bundle.digest, (words,))
    try:
        answers = list(_ask_both_ways(bundle, question, targets))
        is_stepping_up = all(approved.allowed and not plain.errors for plain, approved in answers)
        standing: tuple[str, ...] = ()
        if is_stepping_up and not all(plain.allowed for plain, _ in answers):
            standing = _ask_standing(bundle, question, targets)
    except orjson.JSONEncodeError as error:  # half a character, or a number beyond 64 bits
        return PolicyAnswer("deny", (), bundle.digest, ("this cannot be asked in Cedar",), (str(error),))
    # The action is as bad as its worst target. Dictionaries serve as ordered sets.
    deciding: dict[str, dict[str, None]] = {outcome: {} for outcome in _OUTCOME_ORDER}
    errors: dict[str, None] = {}
    patching = dict.fromkeys(standing)
    worst = "allow"
    for plain, approved in answers:
        if plain.allowed:
            outcome, rules = "allow", plain.rules
        elif approved.allowed and not plain.errors:  # A rule that failed may be one that forbids: then deny.
            outcome, rules = "step_up", plain.rules
            patching.update(dict.fromkeys(approved.rules))  # These permit it, once a person has approved.
        else:
            outcome, rules = "deny", approved.rules
            errors.update(dict.fromkeys((*plain.errors, *approved.errors)))
        deciding[outcome].update(dict.fromkeys(rules))
        patching.update(dict.fromkeys(rules))
        worst = max(worst, outcome, key=_OUTCOME_ORDER.index)
    patches = {rule: bundle.rules[rule].patch for rule in patching if rule in bundle.rules and bundle.rules[rule].patch}
    if worst != "deny" and len(set(patches.values())) > 1:
        return _refuse_patches(bundle, patches)
    patch = next(iter(patches.values()), "") if worst != "deny" else ""
    if standing:
        reasons = tuple(bundle.rules[rule].reason for rule in standing)
        return PolicyAnswer("allow", standing, bundle.digest, reasons, patch=patch)
    # After an error in a rule, Cedar may have named permits. They did not decide: leave them out.
    effect = "permit" if worst == "allow" else "forbid"
    rules = tuple(rule for rule in deciding[worst] if rule in bundle.rules and bundle.rules[rule].effect == effect)
    reasons = tuple(bundle.rules[rule].reason for rule in rules) or ((NO_PERMIT,) if worst != "allow" else ())
    return PolicyAnswer(
        worst,  # type: ignore[arg-type]
        rules,
        bundle.digest,
        reasons,
        tuple(errors),
        patch,
        _find_code(bundle, rules),
    )


def _refuse_patches(bundle: PolicyBundle, patches: Mapping[str, str]) -> PolicyAnswer:
    """Refuse an action that rules want to have patched in different ways."""
    named = sorted(patches)
    words = ", ".join(f"{rule}: {patches[rule]}" for rule in named)
    return PolicyAnswer("deny", tuple(named), bundle.digest, (f"rules demand different patches of this ({words})",))


def _find_code(bundle: PolicyBundle, rules: Iterable[str]) -> str:
    """Return the code of the first forbid that has one, in the order of files and lines; empty if none has."""
    known = [bundle.rules[rule] for rule in rules if bundle.rules[rule].effect == "forbid" and bundle.rules[rule].code]
    return min(known, key=lambda rule: (rule.file, rule.line, rule.id)).code if known else ""


def _ask_both_ways(
    bundle: PolicyBundle, question: PolicyQuestion, targets: list[Target]
) -> Iterable[tuple[_CedarAnswer, _CedarAnswer]]:
    """Return Cedar's two answers for each target: as it is, and as if approved.

    One call with both questions is faster than two calls. But if the plain question is likely to be allowed, Aver asks
    it first, and needs the other only after a refusal.
    """
    entities = build_cedar_entities(bundle, question, targets)
    is_likely = not question.unclear and question.effects <= _OFTEN_ALLOWED_EFFECTS[question.risk]
    answers: list[_CedarAnswer] = []
    for forms in ((False,), (False, True)) if is_likely else ((False, True),):
        requests = [
            request for approved in forms for request in build_cedar_requests(question, targets, approved=approved)
        ]
        found = load_cedar().is_authorized_batch(requests, bundle.policies, entities)
        if len(found) != len(requests):
            raise BadInput("Cedar has not answered every question")
        # Fail closed: an answer with an error allows nothing, because Cedar skips the rule that failed.
        answers = [
            _CedarAnswer(
                answer.allowed and not answer.diagnostics.errors,
                tuple(sorted(answer.diagnostics.reasons)),
                tuple(str(error)[:300] for error in answer.diagnostics.errors),
            )
            for answer in found
        ]
        if len(forms) == 1 and all(answer.allowed for answer in answers):
            return zip(answers, answers, strict=True)
    return zip(answers[: len(targets)], answers[len(targets) :], strict=True)


def _ask_standing(bundle: PolicyBundle, question: PolicyQuestion, targets: list[Target]) -> tuple[str, ...]:
    """Return the rules with `@allow` that permit every target; none if one is left that they do not permit."""
    if bundle.standing is None or question.runs_unseen:
        return ()
    requests = build_cedar_requests(question, targets, approved=False)
    found = load_cedar().is_authorized_batch(requests, bundle.standing, build_cedar_entities(bundle, question, targets))
    # An error in any of these rules counts for nothing: then a human is asked.
    if len(found) != len(requests) or not all(one.allowed and not one.diagnostics.errors for one in found):
        return ()
    return tuple(dict.fromkeys(rule for one in found for rule in sorted(one.diagnostics.reasons)))


_ROUTINE_EFFECTS = frozenset(
    (
        *("read", "arrange", "build", "scratch", "git-state", "file-state"),
        *("git-fetch", "service-read", "loopback", "locked-install"),
    )
)
_OFTEN_ALLOWED_EFFECTS = {
    "low": _ROUTINE_EFFECTS | {"write", "create", "seen"},
    "unsure": _ROUTINE_EFFECTS,
    "high": frozenset[str](),
}
"""Effects that most rules allow, by risk. This only decides which question is asked first."""


def build_cedar_requests(question: PolicyQuestion, targets: list[Target], *, approved: bool) -> list[dict[str, Any]]:
    """Build the requests to Cedar, one for each target. `approved` says whether a human has approved."""
    agent, action = {"type": "Aver::Agent", "id": question.agent}, {"type": "Aver::Action", "id": question.action}
    context = {
        "tool": question.tool,
        "server": question.server,
        "workspace": question.workspace,
        "command": question.command,
        "effects": sorted(question.effects),
        "labels": sorted(question.labels),
        "class": str(question.meaning.get("class", "")),
        "asked": question.meaning.get("asked") is True,
        "origins": [str(name) for name in question.meaning.get("origins", ())],
        "doubts": [str(name) for name in question.meaning.get("doubts", ())],
        "unclear": question.unclear or not question.arguments.complete,
        "texts": {"__entity": _TEXTS},
        "numbers": {"__entity": _NUMBERS},
        "risk": question.risk,
        "observations": question.observations,
        "caution": question.caution,
        "recent": {"__entity": _RECENT},
        "approved": approved,
        "weekday": question.weekday,
        "hour": question.hour,
    }
    if question.score is not None:
        context["score"], context["low"], context["high"] = question.score
    encoded = orjson.dumps(context).decode()
    resources = [
        {"type": f"Aver::{target.kind}", "id": target.entity_id(index)} for index, target in enumerate(targets)
    ]
    return [{"principal": agent, "action": action, "resource": resource, "context": encoded} for resource in resources]


def build_cedar_entities(bundle: PolicyBundle, question: PolicyQuestion, targets: list[Target]) -> str:
    """Build the entities that the requests refer to."""
    groups = [{"type": "Aver::Group", "id": group} for group in sorted(question.groups)]
    # Tags cost time in Cedar. Leave them out where no rule reads them.
    arguments, read = question.arguments, bundle.looks_at
    tags: list[tuple[dict[str, str], Mapping[str, Any]]] = [
        (_TEXTS, arguments.texts if "texts" in read else {}),
        (_NUMBERS, arguments.numbers if "numbers" in read else {}),
        (_RECENT, question.recent),
    ]
    agent = {"name": question.agent, "on_behalf_of": question.on_behalf_of}
    entities: list[dict[str, Any]] = [
        {"uid": {"type": "Aver::Agent", "id": question.agent}, "attrs": agent, "parents": groups},
        *[{"uid": group, "attrs": {}, "parents": []} for group in groups],
        *[{"uid": uid, "attrs": {}, "parents": [], "tags": dict(values)} for uid, values in tags],
    ]
    for index, target in enumerate(targets):
        uid = {"type": f"Aver::{target.kind}", "id": target.entity_id(index)}
        entities.append({"uid": uid, "attrs": _target_attributes(target), "parents": []})
    return orjson.dumps(entities).decode()


_TEXTS = {"type": "Aver::Texts", "id": "arguments"}
_NUMBERS = {"type": "Aver::Numbers", "id": "arguments"}
_RECENT = {"type": "Aver::Numbers", "id": "recent"}


def _target_attributes(target: Target) -> dict[str, Any]:
    """Return a target's attributes under the names that rules use: `resource.path`, `resource.program` and so on."""
    if target.kind == "Path":
        attributes = {"path": target.name, "place": target.place, "classes": sorted(target.classes)}
        return {**attributes, "effects": sorted(target.effects)}
    if target.kind == "Command":
        return {"program": target.name, "text": target.text}
    if target.kind == "Tool":
        return {"name": target.name, "server": target.text}
    if target.kind == "Recipient":
        return {"name": target.name, "channel": target.channel, "domain": target.domain}
    return {"name": target.name}
