"""The rules for a capsule that is about to be written: those of CPS 1 and 2, and a few that CPS leaves open.

`validate` raises `InvalidCapsule` for the first rule that is broken, with its category and field, in this order:

1. The top-level keys: all there, no others, each value of its type and allowed.
2. The place: `previous_hash` is null at sequence 0, and only there.
3. The same for the keys and values of each section.
4. The options of `reasoning`: each rejected one says why, and at most one is selected.
5. The tool calls of `execution`.

Records that others made are read far more tolerantly (`aver.verdict.record`).

Where CPS is silent, Aver refuses values that two implementations could write differently: scores between 0 and 1e-4
(an exponent), timestamps without 0 or 6 fraction digits, ids in upper case or braces, unknown keys where CPS names the
keys. Free keys belong in `environment`, `arguments`, `resources_used`, `metrics`, `result` and `estimated_impact`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

import orjson

from aver.capsule.canonical import coerce_float_fields
from aver.capsule.model import SECTIONS, SPEC_VERSION, Capsule
from aver.errors import InvalidCapsule

TYPES = frozenset({"agent", "tool", "system", "kill", "workflow", "chat", "vault", "auth"})
TRIGGER_TYPES = frozenset({"user_request", "scheduled", "system", "agent"})
AUTHORITY_TYPES = frozenset({"autonomous", "human_approved", "policy", "escalated", "unknown"})
"""The values of CPS, and `unknown` for an action whose authority Aver did not learn."""
STATUSES = frozenset({"pending", "success", "failure", "partial", "blocked"})

SCORE_MIN = 1e-4
"""Smaller scores, except 0, would need an exponent, which each language writes in its own way."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch
_CPS_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?\+00:00", re.ASCII).fullmatch
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?\+00:00", re.ASCII).fullmatch

Rule = Callable[[Any], str | None]
"""Takes a value; returns the problem or None. A message that begins with `must be a` is about its type."""


def _text_rule(value: Any) -> str | None:
    return None if type(value) is str else "must be a string"


def _text_or_null_rule(value: Any) -> str | None:
    return None if value is None or type(value) is str else "must be a string or null"


def _object_rule(value: Any) -> str | None:
    return None if isinstance(value, dict) else "must be an object"


def _text_list_rule(value: Any) -> str | None:
    if type(value) is not list and type(value) is not tuple:
        return "must be an array"
    for item in value:
        if type(item) is not str:
            return "must be an array of strings"
    return None


def _object_list_rule(value: Any) -> str | None:
    if type(value) is not list and type(value) is not tuple:
        return "must be an array"
    for item in value:
        if not isinstance(item, dict):
            return "must be an array of objects"
    return None


def _flag_rule(value: Any) -> str | None:
    return None if type(value) is bool else "must be a boolean"


def _count_rule(value: Any) -> str | None:
    if type(value) is not int:
        return "must be an integer"
    return None if value >= 0 else "may not be negative"


def _score_rule(value: Any) -> str | None:
    if type(value) is not float and type(value) is not int:
        return "must be a number"
    if not 0 <= value <= 1:
        return "lies outside 0.0 to 1.0"
    return None if value == 0 or value >= SCORE_MIN else f"is smaller than {SCORE_MIN} but not zero"


def _uuid_rule(value: Any) -> str | None:
    if type(value) is not str:
        return "must be a string"
    return None if _UUID(value) else "is not a UUID in lower case with hyphens"


def _uuid_or_null_rule(value: Any) -> str | None:
    return None if value is None else _uuid_rule(value)


def _hash_or_null_rule(value: Any) -> str | None:
    if value is not None and type(value) is not str:
        return "must be a string or null"
    return None if value is None or _HEX64(value) else "is not 64 lower-case hex digits"


def _timestamp_rule(value: Any) -> str | None:
    if type(value) is not str:
        return "must be a string"
    if not _TIMESTAMP(value):
        return "is not ISO 8601 in UTC with +00:00 and 0 or 6 fraction digits"
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return "is not a date that exists"
    return "has fraction digits that are all zero" if value.endswith(".000000+00:00") else None


def _cps_timestamp_rule(value: Any) -> str | None:
    if type(value) is not str:
        return "must be a string"
    if not _CPS_TIMESTAMP(value):
        return "is not ISO 8601 in UTC with +00:00"
    try:
        datetime.fromisoformat(value[:19])
    except ValueError:
        return "is not a date that exists"
    return None


def _cps_score_rule(value: Any) -> str | None:
    if type(value) is not float and type(value) is not int:
        return "must be a number"
    return None if 0 <= value <= 1 else "lies outside 0.0 to 1.0"


_CPS_RULES: Mapping[Rule, Rule] = {_timestamp_rule: _cps_timestamp_rule, _score_rule: _cps_score_rule}
"""The rules of CPS where Aver writes by stricter ones."""


def _any_value_rule(_: Any) -> str | None:
    return None


def _one_of_rule(allowed: frozenset[str]) -> Rule:
    def rule(value: Any) -> str | None:
        if type(value) is not str:
            return "must be a string"
        return None if value in allowed else f"{value!r} is not one of {', '.join(sorted(allowed))}"

    return rule


def _spec_version_rule(value: Any) -> str | None:
    if type(value) is not str:
        return "must be a string"
    return None if value == SPEC_VERSION else f"is {value!r}, not {SPEC_VERSION!r}"


_SUFFICIENT_TYPES: Mapping[Rule, frozenset[type]] = {
    _text_rule: frozenset({str}),
    _text_or_null_rule: frozenset({str, type(None)}),
    _uuid_or_null_rule: frozenset({type(None)}),
    _hash_or_null_rule: frozenset({type(None)}),
    _object_rule: frozenset({dict}),
    _flag_rule: frozenset({bool}),
    _any_value_rule: frozenset({dict, list, tuple, str, int, float, bool, type(None)}),
}
"""Types of which every value follows the rule. Most values have them, and skipping the rule saves half the time."""

_PartRules = Mapping[str, tuple[frozenset[type], Rule]]


def _build_rules(by_key: Mapping[str, Rule]) -> _PartRules:
    return {key: (_SUFFICIENT_TYPES.get(rule, frozenset()), rule) for key, rule in by_key.items()}


_TOP_LEVEL_RULES = _build_rules(
    {
        "id": _uuid_rule,
        "type": _one_of_rule(TYPES),
        "domain": _text_rule,
        "parent_id": _uuid_or_null_rule,
        "sequence": _count_rule,
        "previous_hash": _hash_or_null_rule,
        "spec_version": _spec_version_rule,
        **dict.fromkeys(SECTIONS, _object_rule),
    }
)
_SECTION_RULES: Mapping[str, _PartRules] = {
    "trigger": _build_rules(
        {
            "type": _one_of_rule(TRIGGER_TYPES),
            "source": _text_rule,
            "timestamp": _timestamp_rule,
            "request": _text_rule,
            "correlation_id": _text_or_null_rule,
            "user_id": _text_or_null_rule,
        }
    ),
    "context": _build_rules({"agent_id": _text_rule, "session_id": _text_or_null_rule, "environment": _object_rule}),
    "reasoning": _build_rules(
        {
            "analysis": _text_rule,
            "options": _object_list_rule,
            "options_considered": _text_list_rule,
            "selected_option": _text_rule,
            "reasoning": _text_rule,
            "confidence": _score_rule,
            "model": _text_or_null_rule,
            "prompt_hash": _hash_or_null_rule,
        }
    ),
    "authority": _build_rules(
        {
            "type": _one_of_rule(AUTHORITY_TYPES),
            "approver": _text_or_null_rule,
            "policy_reference": _text_or_null_rule,
            "chain": _object_list_rule,
            "escalation_reason": _text_or_null_rule,
        }
    ),
    "execution": _build_rules(
        {"tool_calls": _object_list_rule, "duration_ms": _count_rule, "resources_used": _object_rule}
    ),
    "outcome": _build_rules(
        {
            "status": _one_of_rule(STATUSES),
            "result": _any_value_rule,
            "summary": _text_rule,
            "error": _text_or_null_rule,
            "side_effects": _text_list_rule,
            "metrics": _object_rule,
        }
    ),
}
_OPTION_RULES = _build_rules(
    {
        "id": _text_rule,
        "description": _text_rule,
        "pros": _text_list_rule,
        "cons": _text_list_rule,
        "estimated_impact": _object_rule,
        "feasibility": _score_rule,
        "risks": _text_list_rule,
        "selected": _flag_rule,
        "rejection_reason": _text_rule,
    }
)
_TOOL_CALL_RULES = _build_rules(
    {
        "tool": _text_rule,
        "arguments": _object_rule,
        "result": _any_value_rule,
        "success": _flag_rule,
        "duration_ms": _count_rule,
        "error": _text_or_null_rule,
    }
)


def validate(capsule: Capsule | Mapping[str, Any]) -> None:
    """Raise `InvalidCapsule` unless this capsule may be written."""
    content = capsule.to_dict() if isinstance(capsule, Capsule) else capsule
    if is_plainly_valid(content):
        return
    if not isinstance(content, Mapping):
        raise InvalidCapsule("wrong_type", "", "a capsule must be a JSON object")
    _check_part(content, _TOP_LEVEL_RULES, "")  # 1.
    if content["sequence"] == 0 and content["previous_hash"] is not None:  # 2.
        raise InvalidCapsule("chain_violation", "previous_hash", "the first capsule has no predecessor: must be null")
    if content["sequence"] > 0 and content["previous_hash"] is None:
        raise InvalidCapsule("chain_violation", "previous_hash", "may be null only at sequence 0")
    for name, rules in _SECTION_RULES.items():  # 3.
        _check_part(content[name], rules, f"{name}.")
    _check_options(content["reasoning"])  # 4.
    for index, call in enumerate(content["execution"]["tool_calls"]):  # 5.
        _check_part(call, _TOOL_CALL_RULES, f"execution.tool_calls[{index}].")


def validate_by_cps(content: Mapping[str, Any], *, complete: bool = True) -> None:
    """Raise `InvalidCapsule` for the first key or value of a readable capsule that CPS itself does not allow.

    Aver writes by stricter rules than those of CPS. Here unknown keys, any fraction of a second, small scores and
    rejected options without a reason are accepted: other implementations write them. Without `complete`, keys may be
    missing, and options and tool calls are not examined.
    """
    parts = [("", content, _TOP_LEVEL_RULES)]
    parts += [(f"{name}.", content[name], rules) for name, rules in _SECTION_RULES.items()]
    if complete:
        for field, items, rules in (
            ("reasoning.options", content["reasoning"].get("options"), _OPTION_RULES),
            ("execution.tool_calls", content["execution"].get("tool_calls"), _TOOL_CALL_RULES),
        ):
            if _object_list_rule(items) is None:
                parts += [(f"{field}[{index}].", item, rules) for index, item in enumerate(items)]
    for prefix, part, rules in parts:
        for key, (sufficient_types, rule) in rules.items():
            if key not in part:
                if complete:
                    raise InvalidCapsule("missing_field", f"{prefix}{key}", "is missing")
            elif type(part[key]) not in sufficient_types:
                problem = _CPS_RULES.get(rule, rule)(part[key])
                if problem:
                    category = "wrong_type" if problem.startswith("must be a") else "invalid_value"
                    raise InvalidCapsule(category, f"{prefix}{key}", problem)
    if complete:
        _check_selection(content["reasoning"])


def _build_reader(rules: _PartRules) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the values of an object by the keys of these rules; `KeyError` if one is missing."""
    # orjson keeps the keys that it reads, and takes the same strings for the next text. A lookup by the very string
    # that is the key compares no characters. So the function asks by orjson's strings.
    return itemgetter(*orjson.loads(orjson.dumps(dict.fromkeys(rules))))


_read_top_level = _build_reader(_TOP_LEVEL_RULES)
_read_trigger = _build_reader(_SECTION_RULES["trigger"])
_read_context = _build_reader(_SECTION_RULES["context"])
_read_reasoning = _build_reader(_SECTION_RULES["reasoning"])
_read_authority = _build_reader(_SECTION_RULES["authority"])
_read_execution = _build_reader(_SECTION_RULES["execution"])
_read_outcome = _build_reader(_SECTION_RULES["outcome"])
_read_option = _build_reader(_OPTION_RULES)
_read_call = _build_reader(_TOOL_CALL_RULES)


def is_plainly_valid(content: Any) -> bool:
    """Whether a capsule follows all rules. False means only that `validate` must look closer.

    One expression takes a fifth of the time of the tables. A verifier asks this about every record. The values of each
    part come in the order of its table.
    """
    try:
        record_id, type_, domain, parent, sequence, previous, version, *sections = _read_top_level(content)
        trigger, context, reasoning, authority, execution, outcome = sections
        trigger_type, source, timestamp, request, correlation, user = _read_trigger(trigger)
        agent, session, environment = _read_context(context)
        analysis, options, considered, selected, why, confidence, model, prompt = _read_reasoning(reasoning)
        authority_type, approver, policy, chain, escalation = _read_authority(authority)
        calls, duration, resources = _read_execution(execution)
        status, _, summary, error, effects, metrics = _read_outcome(outcome)
        return (
            type(trigger) is type(context) is type(reasoning) is type(authority) is type(execution) is dict
            and type(outcome) is type(environment) is type(resources) is type(metrics) is dict
            and len(content) == 13
            and len(trigger) == len(outcome) == 6
            and len(context) == len(execution) == 3
            and len(reasoning) == 8
            and len(authority) == 5
            and type(record_id) is type(type_) is type(domain) is type(source) is type(request) is str
            and type(agent) is type(analysis) is type(why) is type(selected) is type(summary) is str
            and type(trigger_type) is type(authority_type) is type(status) is str
            and type(sequence) is type(duration) is int
            and type(options) is type(considered) is type(chain) is type(calls) is list
            and (correlation is None or type(correlation) is str)
            and (user is None or type(user) is str)
            and (session is None or type(session) is str)
            and (model is None or type(model) is str)
            and (approver is None or type(approver) is str)
            and (policy is None or type(policy) is str)
            and (escalation is None or type(escalation) is str)
            and (error is None or type(error) is str)
            and version == SPEC_VERSION
            and type_ in TYPES
            and trigger_type in TRIGGER_TYPES
            and authority_type in AUTHORITY_TYPES
            and status in STATUSES
            and _UUID(record_id) is not None
            and (parent is None or (type(parent) is str and _UUID(parent) is not None))
            and _is_place(sequence, previous)
            and (prompt is None or _hash_or_null_rule(prompt) is None)
            and _timestamp_rule(timestamp) is None
            and type(confidence) is float
            and (SCORE_MIN <= confidence <= 1 or confidence == 0)
            and duration >= 0
            and (not chain or _object_list_rule(chain) is None)
            and _text_list_rule(effects) is None
            and all(map(_is_plain_call, calls))
            and (_are_plain_options(options, considered, selected) if options else not considered)
        )
    except (KeyError, TypeError, ValueError):
        return False


def _is_place(sequence: int, previous: Any) -> bool:
    if sequence == 0:
        return previous is None
    return sequence > 0 and type(previous) is str and _HEX64(previous) is not None


def _is_plain_call(call: Any) -> bool:
    tool, arguments, _, success, duration, error = _read_call(call)
    return (
        type(call) is type(arguments) is dict
        and len(call) == 6
        and type(tool) is str
        and type(success) is bool
        and type(duration) is int
        and duration >= 0
        and (error is None or type(error) is str)
    )


def _are_plain_options(options: list[Any], considered: list[Any], selected: str) -> bool:
    if len(options) != len(considered):
        return False
    chosen, is_named = 0, not selected
    for option, name in zip(options, considered):  # noqa: B905 - `strict` takes as long as the check of an option
        key, description, pros, cons, impact, feasibility, risks, is_selected, reason = _read_option(option)
        if not (
            type(option) is type(impact) is dict
            and len(option) == 9
            and type(key) is type(description) is type(name) is type(reason) is str
            and description == name
            and type(feasibility) is float
            and (SCORE_MIN <= feasibility <= 1 or feasibility == 0)
            and type(is_selected) is bool
            and (is_selected or reason.strip())
            and type(pros) is type(cons) is type(risks) is list
        ):
            return False
        for text in (*pros, *cons, *risks):
            if type(text) is not str:
                return False
        # The option that is marked as selected must be the one that is named.
        if selected == key or selected == description:  # noqa: SIM109 - twice as fast as `in`
            is_named = True
        elif selected and is_selected:
            return False
        chosen += is_selected
    return chosen <= 1 and is_named


def normalise_values(content: dict[str, Any]) -> dict[str, Any]:
    """A copy of the content with integer scores as floats, −0.0 as 0.0, and six digits of a broken second."""
    content = coerce_float_fields(content)
    trigger = content.get("trigger")
    at = trigger.get("timestamp") if isinstance(trigger, dict) else None
    if type(at) is str and len(at) < 32 and "." in at and _CPS_TIMESTAMP(at):  # JavaScript writes milliseconds.
        whole, _, fraction = at.removesuffix("+00:00").partition(".")
        at = f"{whole}.{fraction:0<6}+00:00".replace(".000000", "")
        content = {**content, "trigger": {**content["trigger"], "timestamp": at}}
    reasoning = content.get("reasoning")
    if not isinstance(reasoning, dict):
        return content
    changed: dict[str, Any] = {}
    # −0.0 equals 0, so only its text tells the two apart. The comparison first: writing a float is slow.
    confidence = reasoning.get("confidence")
    if confidence == 0 and type(confidence) is float and str(confidence) == "-0.0":
        changed["confidence"] = 0.0
    options = reasoning.get("options")
    if isinstance(options, list):
        for index, option in enumerate(options):
            score = option.get("feasibility") if isinstance(option, dict) else None
            if score == 0 and type(score) is float and str(score) == "-0.0":
                changed.setdefault("options", list(options))[index] = {**option, "feasibility": 0.0}
    return {**content, "reasoning": {**reasoning, **changed}} if changed else content


def _check_part(part: Mapping[str, Any], rules: _PartRules, prefix: str) -> None:
    if len(part) != len(rules):
        raise _wrong_keys_error(part, rules, prefix)
    try:
        for key, value in part.items():
            sufficient_types, rule = rules[key]
            if type(value) in sufficient_types:
                continue
            problem = rule(value)
            if problem:
                category = "wrong_type" if problem.startswith("must be a") else "invalid_value"
                raise InvalidCapsule(category, f"{prefix}{key}", problem)
    except KeyError:
        raise _wrong_keys_error(part, rules, prefix) from None


def _wrong_keys_error(part: Mapping[str, Any], rules: _PartRules, prefix: str) -> InvalidCapsule:
    for key in rules:
        if key not in part:
            return InvalidCapsule("missing_field", f"{prefix}{key}", "is missing")
    unknown = next(key for key in part if key not in rules)
    return InvalidCapsule(
        "invalid_value",
        f"{prefix}{unknown}",
        "is not a key of this part of a capsule",
        advice="free keys belong in environment, arguments, resources_used, metrics or result",
    )


def _check_options(reasoning: Mapping[str, Any]) -> None:
    options = reasoning["options"]
    for index, option in enumerate(options):
        field = f"reasoning.options[{index}]."
        _check_part(option, _OPTION_RULES, field)
        if not option["selected"] and not option["rejection_reason"].strip():
            raise InvalidCapsule("invalid_value", f"{field}rejection_reason", "a rejected option must say why")
    if list(reasoning["options_considered"]) != [option["description"] for option in options]:
        raise InvalidCapsule(
            "invalid_value",
            "reasoning.options_considered",
            "must list the descriptions of the options, in order",
        )
    _check_selection(reasoning)


def _check_selection(reasoning: Mapping[str, Any]) -> None:
    options = reasoning["options"]
    chosen = [option for option in options if option["selected"]]
    if len(chosen) > 1:
        raise InvalidCapsule("invalid_value", "reasoning.options", "more than one option is marked as selected")
    selected = reasoning["selected_option"]
    if options and selected:
        named = [option for option in options if selected in (option["id"], option["description"])]
        if not named:
            raise InvalidCapsule("invalid_value", "reasoning.selected_option", "is none of the options")
        if chosen and chosen[0] not in named:
            raise InvalidCapsule("invalid_value", "reasoning.selected_option", "is not the option marked as selected")
