"""Masking: take secrets out of a record before it is sealed, because a chain keeps sealed bytes for ever.

    >>> mask({"run": "curl -H 'Authorization: Bearer abcd1234efgh5678'"}).value
    {'run': "curl -H 'Authorization: Bearer [masked:bearer]'"}
    >>> mask({"db": {"user": "ann", "password": "hunter2"}}).by_rule
    {'named': 1}

In any JSON value, Aver masks:

* texts in the form of a key, token or private key (`aver.capsule.masking.token_patterns`)
* values that a text assigns to a name that sounds secret: `password=...`, `"api_key": "..."`
  (`aver.capsule.masking.named_values`)
* values of an object's key that sounds secret, values after a flag such as `--password`, `value` where `name` sounds
  secret, and the private members of a JSON Web Key

`[masked:RULE]` replaces the secret. Not even a hash of it is kept, because a short secret can be found by trying.
Masking a masked value changes nothing. The record notes `RULES_VERSION`, and how often each rule applied, in
`context.environment.masked`. Masking cannot find everything: a secret that looks like any other word stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from aver.capsule.aver_block import BLOCK_KEY
from aver.capsule.canonical import DEPTH_MAX
from aver.capsule.masking.named_values import (
    can_be_numeric,
    find_assignment_spans,
    is_secret_value,
    is_sensitive_name,
    may_name_secret,
)
from aver.capsule.masking.token_patterns import (
    PRIVATE_KEY_MARKS,
    TOKEN_PATTERNS,
    Span,
    TokenPattern,
    find_token_spans,
    possible_patterns,
)
from aver.capsule.model import SECTIONS, Capsule
from aver.errors import NotCanonical
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

RULES_VERSION = 1
"""The version of all masking rules. Every change to them raises it."""

NOTE_KEY = "masked"
"""The key in `context.environment` under which a record says how it was masked."""

TEXT_MIN = 5
"""A shorter text cannot hold a secret together with a sign of it."""

KEY_MIN = 20
"""A shorter word has not the form of a key: the shortest key is an AWS access key."""

ROUNDS_MAX = 4
"""How often a text is searched again, because masking may uncover another secret. After that it is masked whole."""

_MARK = lazy_pattern(r"\[masked:[a-z-]{1,32}\](?:#[0-9]+)?")
_SCHEMA_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_SCHEMA_KEYS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum"})
_PRIVATE_JWK = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token"}
)
_UNMASKED_FIELDS = {
    "trigger": ("type", "timestamp"),
    "reasoning": ("prompt_hash",),
    "authority": ("type",),
    "outcome": ("status",),
}
"""Fields of a section that are not masked: a word of CPS, a time or a hash."""

_FLAG = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]*").fullmatch


@dataclass(frozen=True, slots=True)
class Masked:
    """A value without its secrets, and how many places each rule masked in it."""

    value: Any
    by_rule: Mapping[str, int]

    @property
    def count(self) -> int:
        return sum(self.by_rule.values())


def mask(value: Any) -> Masked:
    """Mask the secrets in a JSON value. Values that are not JSON are not changed."""
    run, _ = _begin_run({"": value})
    masked = _mask_value(value, run, 0)
    return Masked(masked, dict(sorted(run.counts.items())))


def mask_draft(draft: Capsule, *, opaque: Iterable[str] = ()) -> Capsule:
    """Mask the secrets in a draft's texts and free-form fields, and add the note that says so.

    Ids, times, enumerations, hashes and Aver's block are not masked. Nor are the entries of `environment` that `opaque`
    names: signatures and digests, which are useless when a part is missing. An earlier note is added up.
    """
    content = draft.to_dict()
    reasoning = content["reasoning"]
    if reasoning["options_considered"] == [option["description"] for option in reasoning["options"]]:
        del reasoning["options_considered"]  # It follows from the options: mask each description once.
    environment = dict(content["context"]["environment"])
    before = environment.pop(NOTE_KEY, None)
    left_alone = {name: environment.pop(name) for name in (BLOCK_KEY, *opaque) if name in environment}
    content["context"]["environment"] = environment
    run, texts = _begin_run({name: content[name] for name in SECTIONS})
    for name, text in texts.items():
        if text is not None and not run.forms and not (run.others and _may_hold_other_secrets(text)):
            continue
        left = {key: content[name][key] for key in _UNMASKED_FIELDS.get(name, ())}
        content[name] = {**_mask_value(content[name], run, 1), **left}
    # A draft that was masked before keeps the counts of its note.
    by_rule = before.get("by_rule") if isinstance(before, dict) else None
    counted = by_rule.items() if isinstance(by_rule, dict) else ()
    counts = run.counts + Counter({str(rule): count for rule, count in counted if type(count) is int})
    environment = {**content["context"]["environment"], **left_alone, NOTE_KEY: masking_note(counts)}
    if not run.counts:
        return replace(draft, context=replace(draft.context, environment=environment))
    content["context"]["environment"] = environment
    return Capsule.from_dict(content)


def masking_note(by_rule: Mapping[str, int]) -> dict[str, Any]:
    """The note in a record: the version of the rules, and how many places were masked, in all and by each rule."""
    return {"rules": RULES_VERSION, "count": sum(by_rule.values()), "by_rule": dict(sorted(by_rule.items()))}


class _MaskingRun(NamedTuple):
    """The state of one run: counts by rule, the patterns that may match, and whether other secrets are possible."""

    counts: Counter[str]
    forms: tuple[TokenPattern, ...]
    others: bool


def _begin_run(values: Mapping[str, Any]) -> tuple[_MaskingRun, dict[str, str | None]]:
    """Start a run. Also returns each value as JSON, to be searched for needles, or None if it is not JSON."""
    texts: dict[str, str | None] = {}
    for name, value in values.items():
        try:
            texts[name] = orjson.dumps(value).decode("utf-8")
        except TypeError:
            texts[name] = None
    written = [text for text in texts.values() if text is not None]
    if len(written) < len(texts):
        # A value that is not JSON cannot be searched beforehand: every pattern is tried.
        return _MaskingRun(Counter(), TOKEN_PATTERNS, others=True), texts
    whole = "\n".join(written)
    return _MaskingRun(Counter(), possible_patterns(whole), _may_hold_other_secrets(whole)), texts


def _may_hold_other_secrets(text: str) -> bool:
    """Whether JSON may hold a secret that no token pattern finds: a named value, a URL's password, a private key."""
    if may_name_secret(text.lower()):
        return True
    return ("://" in text and "@" in text) or '"kty"' in text or any(mark in text for mark in PRIVATE_KEY_MARKS)


def _mask_value(value: Any, run: _MaskingRun, depth: int) -> Any:
    """Mask a value under no name, or under a name that does not sound secret."""
    if type(value) is str:
        return _mask_text(value, run)
    if depth > DEPTH_MAX:
        raise NotCanonical(f"nested deeper than {DEPTH_MAX} levels")
    if isinstance(value, dict):
        masked: dict[Any, Any] = {}
        private = _PRIVATE_JWK if isinstance(value.get("kty"), str) else frozenset()
        # In `{"name": "password", "value": "hunter2"}` one member names the other.
        title = value.get("name", value.get("key"))
        titled = isinstance(title, str) and is_sensitive_name(title)
        for key, item in value.items():
            place = _mask_key(key, masked, run)
            if key in private:
                masked[place] = _mask_under_name(item, "", run, depth + 1, rule="private-key")
            elif type(key) is str and is_sensitive_name(key):
                masked[place] = _mask_under_name(item, key, run, depth + 1)
            elif titled and key == "value":
                masked[place] = _mask_under_name(item, str(title), run, depth + 1)
            else:
                masked[place] = _mask_value(item, run, depth + 1)
        return masked
    if isinstance(value, list | tuple):
        items, results = list(value), []
        for index, item in enumerate(items):
            name = items[index - 1] if index else None
            # `["--password", "hunter2"]`, or a header as a pair: the text before names the value.
            named = (
                type(name) is str
                and type(item) is str
                and (
                    (len(items) == 2 and name.lower() in _SECRET_HEADERS)
                    or (_FLAG(name) is not None and not item.startswith("-") and is_sensitive_name(name))
                )
            )
            if named:
                results.append(_mask_under_name(item, str(name), run, depth + 1))
            else:
                results.append(_mask_value(item, run, depth + 1))
        return results
    return value


def _mask_key(key: Any, taken: Mapping[Any, Any], run: _MaskingRun) -> Any:
    """Mask a key that is a secret itself. A number keeps two masked keys apart."""
    if type(key) is not str or (len(key) < KEY_MIN and key.isidentifier()):
        return key
    masked = _mask_text(key, run)
    if masked == key:
        return key
    number, name = 1, masked
    while name in taken:
        number += 1
        name = f"{masked}#{number}"
    return name


def _mask_under_name(value: Any, name: str, run: _MaskingRun, depth: int, *, rule: str = "named") -> Any:
    """Mask the value of a name that sounds secret: every text in it, and numbers where a number may be a secret."""
    if depth > DEPTH_MAX:
        raise NotCanonical(f"nested deeper than {DEPTH_MAX} levels")
    if type(value) is str:
        if _MARK.fullmatch(value):
            return value
        if is_secret_value(name, value):
            run.counts[rule] += 1
            return f"[masked:{rule}]"
        return _mask_text(value, run)
    if isinstance(value, list | tuple):
        return [_mask_under_name(item, name, run, depth + 1, rule=rule) for item in value]
    if isinstance(value, dict):
        # A JSON Schema describes a password and holds none.
        kind = value.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        if not _SCHEMA_KEYS.isdisjoint(value) or any(isinstance(each, str) and each in _SCHEMA_TYPES for each in kinds):
            return _mask_value(value, run, depth)
        masked: dict[Any, Any] = {}
        for key, item in value.items():
            masked[_mask_key(key, masked, run)] = _mask_under_name(item, name, run, depth + 1, rule=rule)
        return masked
    if type(value) in (int, float) and can_be_numeric(name):
        run.counts[rule] += 1
        return f"[masked:{rule}]"
    return value


def _mask_text(text: str, run: _MaskingRun) -> str:
    if len(text) < TEXT_MIN or text.isalpha():
        return text
    forms = run.forms
    for _ in range(ROUNDS_MAX):
        spans = _merge_spans(_find_spans(text, forms))
        if not spans:
            return text
        pieces, at = [], 0
        for start, end, rule in spans:
            run.counts[rule] += 1
            pieces += [text[at:start], f"[masked:{rule}]"]
            at = end
        text = "".join([*pieces, text[at:]])
        forms = TOKEN_PATTERNS  # The masked text may have hidden another secret.
    if _find_spans(text, TOKEN_PATTERNS):
        run.counts["tangled"] += 1
        return "[masked:tangled]"
    return text


def _find_spans(text: str, forms: tuple[TokenPattern, ...]) -> list[Span]:
    spans = list(find_token_spans(text, forms))
    if may_name_secret(text.lower()):
        spans += find_assignment_spans(text)
    return [span for span in spans if not _MARK.fullmatch(text, span.start, span.end)]


def _merge_spans(spans: list[Span]) -> list[Span]:
    """Join spans that overlap. The first rule gives the name: token patterns come first, and say more."""
    merged: list[tuple[int, int, int, str]] = []
    for start, end, rank, rule in sorted((span.start, span.end, rank, span.rule) for rank, span in enumerate(spans)):
        if merged and start < merged[-1][1]:
            first, last, best, name = merged.pop()
            merged.append((first, max(last, end), *min((best, name), (rank, rule))))
        else:
            merged.append((start, end, rank, rule))
    return [Span(start, end, rule) for start, end, _, rule in merged]
