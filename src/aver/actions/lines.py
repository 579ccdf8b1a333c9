"""The lines of `actions.jsonl`: one action, its receipt, and the very text that the receipt is a hash of.

A line is a JSON object: the fourteen fields in the protocol's order, then `receipt_hash`, then `canonical_fields`. Aver
writes `canonical_fields` exactly as they were hashed, so that whoever cuts that object out of the line can hash it.

Reading goes by the raw text. What Aver wrote is recognised by writing it again: then all of it agrees. Anything else
is taken apart: `canonical_fields` are hashed with their numbers as they stand there, and compared with the fields
beside them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from aver.actions.action import FIELDS, AgentAction
from aver.actions.receipts import CAPSEAL_KEYS, RECEIPT_KEYS
from aver.actions.texts import ActionTexts, texts_of
from aver.capsule.bounds import ELEMENT_MAX, Unreadable
from aver.capsule.reading import TOKENS_MAX, read_json
from aver.errors import AverError, BadInput

__all__ = ["LINE_MAX", "Line", "read_line", "written"]

LINE_MAX = ELEMENT_MAX
"""Bytes of a line that is read."""

RECEIPT, CANONICAL = "receipt_hash", "canonical_fields"
_fields = itemgetter(*FIELDS)
_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch


class Line(NamedTuple):
    """A line as it was read."""

    action: AgentAction
    texts: ActionTexts
    receipt_hash: str
    """As it stands in the line."""
    keys: int
    """How many keys its receipt covers: 12, or 13 with `policy_verdict`."""
    problem: str | None = None
    """Why the receipt is not that of the action; None where it is."""
    own: bool = False
    """Whether it is, to the byte, what Aver writes."""


def written(action: AgentAction) -> bytes:
    """The line of an action, without its line feed."""
    return texts_of(action).line(action)


def read_line(raw: bytes) -> Line:
    """Read a line, without its line feed. `Unreadable` where it is not an action with a receipt."""
    if len(raw) <= TOKENS_MAX:
        try:
            content = orjson.loads(raw)
            action = AgentAction(*_fields(content))
            texts = texts_of(action)
            if texts.line(action) == raw:
                return Line(action, texts, texts.receipt_hash, len(RECEIPT_KEYS), own=True)
        except (AverError, ValueError, KeyError, TypeError):
            pass  # What it is, is told below.
    return _read_exactly(raw)


# --- lines that others wrote, or changed


class _Number(str):
    """A number's own text."""

    __slots__ = ()


_AS_WRITTEN = json.JSONDecoder(parse_float=_Number, parse_int=_Number)
_SCALARS = (str, bool, int, float, type(None))


def _read_exactly(raw: bytes) -> Line:
    content = read_json(raw)
    if not isinstance(content, dict):
        raise Unreadable("a line of actions must be a JSON object")
    stored, fields = content.pop(RECEIPT, None), content.pop(CANONICAL, None)
    try:
        action = AgentAction.from_dict(content)
        texts = texts_of(action)
    except BadInput as error:
        raise Unreadable(error.message) from error
    if not isinstance(stored, str) or not _HEX64(stored):
        raise Unreadable("the action has no receipt_hash of 64 lower-case hex digits")
    if fields is None:
        return _without_fields(action, texts, stored)
    if not isinstance(fields, dict) or fields.keys() not in (RECEIPT_KEYS, CAPSEAL_KEYS):
        raise Unreadable("canonical_fields are neither the 12 keys of a receipt nor those with policy_verdict")
    if not all(isinstance(value, _SCALARS) for value in fields.values()):
        raise Unreadable("canonical_fields hold something that is no field of an action")
    score = _AS_WRITTEN.decode(raw.decode("utf-8"))[CANONICAL]["gate_score"]
    return Line(action, texts, stored, len(fields), _problem(action, stored, fields, score))


def _problem(action: AgentAction, stored: str, fields: dict[str, Any], score: Any) -> str | None:
    if stored not in map(_hashed, _forms(fields, score)):
        return "receipt_hash is not the hash of canonical_fields"
    own = action.to_dict()
    for name, value in fields.items():
        beside = own[name]
        if value != beside or isinstance(value, bool) != isinstance(beside, bool):
            return f"canonical_fields say another {name} than the action"
    return None


def _without_fields(action: AgentAction, texts: ActionTexts, stored: str) -> Line:
    """Older files have no `canonical_fields`; the receipt is then over the action's own fields, in one of two ways."""
    own = action.to_dict()
    for keys in (RECEIPT_KEYS, CAPSEAL_KEYS):
        fields = {name: own[name] for name in keys}
        if stored in map(_hashed, _forms(fields, None)):
            return Line(action, texts, stored, len(keys))
    problem = "receipt_hash is not the hash of the action's fields"
    return Line(action, texts, stored, len(RECEIPT_KEYS), problem)


def _forms(fields: dict[str, Any], as_written: Any) -> Iterator[str]:
    """The texts that may have been hashed. A program in another language may have written the score anew since, such
    as `1` for `1.0`; the value is the same in all of them."""
    value = fields["gate_score"]
    scores = {json.dumps(value): None}
    if isinstance(as_written, _Number):
        scores[as_written] = None
    if type(value) is int:
        scores[repr(float(value))] = None
    for score in scores:
        pairs = (f'"{key}":{score if key == "gate_score" else json.dumps(fields[key])}' for key in sorted(fields))
        yield f"{{{','.join(pairs)}}}"


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()
