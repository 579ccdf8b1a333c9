"""Read the signed bytes of one record: whether they are a capsule, whether they are canonical, and their profile.

The bytes may come from anyone. Content that `read_record` returns has a capsule's keys with their types.
`aver.verdict.chain` judges everything else about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from aver.capsule.canonical import canonical_json
from aver.capsule.json_reader import (
    TOKENS_MAX,
    Unreadable,
    decode_bounded,
    may_be_too_deep,
    may_hold_odd_number,
    read_json,
)
from aver.capsule.model import SECTIONS, SPEC_VERSION
from aver.capsule.validate import is_plainly_valid, validate_by_cps
from aver.errors import InvalidCapsule, NotCanonical

COLUMNS = ("id", "type", "kind", "key", "session", "at")
"""The columns by which a store finds records, besides place and hash."""


def column_values(content: Mapping[str, Any], block: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """The values of `COLUMNS` for a record, from its signed content."""
    own = block or {}
    return (
        content["id"],
        content["type"],
        own.get("kind"),
        own.get("key"),
        content["context"].get("session_id"),
        own.get("at"),
    )


def imported_column_values(content: Mapping[str, Any], block: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """The same for a record of an imported chain, without its idempotency key, which means nothing here."""
    record_id, type_, kind, _, session, at = column_values(content, block)
    return record_id, type_, kind, None, session, at


def read_record(canonical: bytes) -> tuple[dict[str, Any], bool, bool]:
    """Return a record's content, whether its bytes are canonical, and whether it is known to be valid by CPS.

    `Unreadable` if the bytes are not a capsule. Content that is not known to be valid may still be: `examine_profile`
    tells.

    Most records are canonical: then writing the content out again gives the same bytes, which also excludes duplicate
    keys. Only the other records, and those so large that their memory must be bounded, need the strict, slow reader.
    """
    same = False
    # No text has more tokens than bytes, so a short one cannot exceed the limit on tokens.
    if len(canonical) <= TOKENS_MAX:
        try:
            content = orjson.loads(canonical)
            same = orjson.dumps(content, option=orjson.OPT_SORT_KEYS) == canonical
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            same = False
    if not same or may_hold_odd_number(canonical):
        content = read_json(canonical)
        try:
            same = canonical_json(content) == canonical
        except NotCanonical:
            same = False
    elif may_be_too_deep(canonical):
        decode_bounded(canonical)  # orjson allows more nesting than the strict reader.
    # A plainly valid capsule has every key with its type, and its scores are floats.
    if is_plainly_valid(content) and content["sequence"] < SEQUENCE_END:
        return content, same, True
    problem = _shape_problem(content)
    if problem:
        raise Unreadable(problem)
    # Scores are floats in the canonical form: bytes with `1` for `1.0` are not canonical.
    reasoning = content["reasoning"]
    if type(reasoning.get("confidence")) is int:
        return content, False, False
    options = reasoning.get("options")
    if options and type(options) is list:
        for option in options:
            if type(option) is dict and type(option.get("feasibility")) is int:
                return content, False, False
    return content, same, False


_SCALARS = ("id", "type", "domain", "sequence", "previous_hash", "parent_id")

SEQUENCE_END = 2**63
"""Sequence numbers are below this: stores, URIs and reports count in 64 bits."""


def _shape_problem(content: Any) -> str | None:
    """The reason why this is not a capsule, or None."""
    if type(content) is not dict:
        return "a capsule must be a JSON object"
    try:
        if (
            type(content["id"]) is str
            and type(content["type"]) is str
            and type(content["domain"]) is str
            and type(content["sequence"]) is int
            and 0 <= content["sequence"] < SEQUENCE_END
            and (content["previous_hash"] is None or type(content["previous_hash"]) is str)
            and (content["parent_id"] is None or type(content["parent_id"]) is str)
            and type(content["trigger"]) is dict
            and type(content["context"]) is dict
            and type(content["reasoning"]) is dict
            and type(content["authority"]) is dict
            and type(content["execution"]) is dict
            and type(content["outcome"]) is dict
        ):
            return None
    except KeyError as missing:
        return f"the key {missing.args[0]!r} is missing"
    # A scalar of a wrong type ends the test above before all keys were looked at.
    for name in (*_SCALARS, *SECTIONS):
        if name not in content:
            return f"the key {name!r} is missing"
    for name in SECTIONS:
        if type(content[name]) is not dict:
            return f"{name} must be an object"
    return "id, type, domain, parent_id, sequence or previous_hash is not of its type"


_CPS_KEYS: tuple[tuple[str, frozenset[str]], ...] = (
    ("trigger", frozenset({"type", "source", "timestamp", "request", "correlation_id", "user_id"})),
    ("context", frozenset({"agent_id", "session_id", "environment"})),
    (
        "reasoning",
        frozenset(
            {
                *("analysis", "options", "options_considered", "selected_option"),
                *("reasoning", "confidence", "model", "prompt_hash"),
            }
        ),
    ),
    ("authority", frozenset({"type", "approver", "policy_reference", "chain", "escalation_reason"})),
    ("execution", frozenset({"tool_calls", "duration_ms", "resources_used"})),
    ("outcome", frozenset({"status", "result", "summary", "error", "side_effects", "metrics"})),
)
_AGENT_CAPSULE_KEYS: tuple[tuple[str, frozenset[str]], ...] = (
    ("trigger", frozenset({"type", "source", "request"})),
    ("context", frozenset({"agent_id", "session_id", "environment"})),
    ("reasoning", frozenset({"analysis", "reasoning", "model"})),
    ("authority", frozenset({"type"})),
    ("execution", frozenset({"tool_calls", "duration_ms", "resources_used"})),
    ("outcome", frozenset({"status", "summary", "side_effects"})),
)


def examine_profile(content: Mapping[str, Any]) -> tuple[str, str]:
    """The specification that has these section keys, and the first thing that is not valid by CPS, or "".

    Only for content that `read_record` does not know to be valid. Its profile is `cps`.

    The profile is `cps`, `agent-capsule` or `other`. Agent-capsule writes fewer keys than CPS wants, so only its values
    are examined. Records without `spec_version` are older; CPS 3.5 calls them valid as they were sealed.
    """
    if "spec_version" not in content:
        complete = {**content, "spec_version": SPEC_VERSION}
        profile, problem = ("cps", "") if is_plainly_valid(complete) else examine_profile(complete)
        return f"{profile} without spec_version", problem
    if all(content[section].keys() == keys for section, keys in _CPS_KEYS):
        profile = "cps"
    elif (
        all(content[section].keys() >= keys for section, keys in _AGENT_CAPSULE_KEYS)
        # Agent-capsule never writes these two. A record of CPS that lost a key has them.
        and "timestamp" not in content["trigger"]
        and "options" not in content["reasoning"]
    ):
        profile = "agent-capsule"
    else:
        profile = "other"
    try:
        validate_by_cps(content, complete=profile != "agent-capsule")
    except InvalidCapsule as error:
        return profile, str(error)
    return profile, ""
