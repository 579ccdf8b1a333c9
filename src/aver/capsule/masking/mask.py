"""Masking: take secrets out of a record before it is sealed, because a chain keeps sealed bytes for ever.

    >>> mask({"run": "curl -H 'Authorization: Bearer abcd1234efgh5678'"}).value
    {'run': "curl -H 'Authorization: Bearer [masked:bearer]'"}
    >>> mask({"db": {"user": "ann", "password": "hunter2"}}).by_rule
    {'named': 1}

In any JSON value, Aver masks:

* texts in the form of a key, token or private key (`aver.capsule.masking.token_patterns`)
* values that a text assigns to a name that sounds secret: `password=...`, `"api_key": "..."`
  (`aver.capsule.masking.named_values`)
* values that a known program takes as a password: `sshpass -p ...` (`aver.capsule.masking.command_options`)
* values of an object's key that sounds secret, values after a flag such as `--password`, `value` where `name` sounds
  secret, and the private members of a JSON Web Key
* every further place of a secret that one of these rules found, also a beginning of it at the end of a text: a summary
  repeats a command without the context that shows the secret, and may cut it

The rules are in `rules.toml`.

`[masked:RULE]` replaces the secret. Not even a hash of it is kept, because a short secret can be found by trying.
Masking a masked value changes nothing. The record notes `RULES_VERSION`, and how often each rule applied, in
`context.environment.masked`. Masking cannot find everything: a secret that looks like any other word stays.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from aver.capsule.aver_block import BLOCK_KEY
from aver.capsule.canonical import DEPTH_MAX
from aver.capsule.masking import rules_table
from aver.capsule.masking.command_options import find_command_spans, may_give_password
from aver.capsule.masking.named_values import (
    NAME_MAX,
    can_be_numeric,
    find_assignment_spans,
    is_secret_under,
    is_sensitive_name,
    may_name_secret,
    sort_name,
)
from aver.capsule.masking.secret_values import is_secret_value, looks_random
from aver.capsule.masking.token_patterns import (
    ALL_PATTERNS,
    PRIVATE_KEY_MARKS,
    Span,
    TokenPattern,
    find_token_spans,
    is_basic_text,
    possible_patterns,
)
from aver.capsule.model import SECTIONS, Capsule
from aver.errors import NotCanonical
from aver.fast_dataclass import NamedTuple, dataclass
from aver.lazy_pattern import lazy_pattern

RULES_VERSION: int = rules_table.VERSION
"""The version of all masking rules. Every change to them raises it."""

NOTE_KEY = "masked"
"""The key in `context.environment` under which a record says how it was masked."""

TEXT_MIN = 5
"""A shorter text cannot hold a secret together with a sign of it."""

KEY_MIN = 20
"""A shorter word has not the form of a key: the shortest key is an AWS access key."""

REPEATED_MIN = 6
"""A shorter secret is not looked for elsewhere in the record: it may be an ordinary word."""

CUT_MIN = 8
"""Characters of a secret by which the end of a text is taken for its beginning, where no ellipsis shows the cut."""

REPEATED_MAX = 4_096
"""A longer secret is not looked for elsewhere. Whole private keys have their own marks wherever they are."""

REPEATED_COUNT_MAX = 64
"""How many secrets of one record are looked for elsewhere in it."""

ROUNDS_MAX = 4
"""How often a text is searched again, because masking may uncover another secret. After that it is masked whole."""

SHOWN_DIGITS_MIN = 2
"""Fewest digits of a secret that counts as shown. A name such as `Argon2id` has one."""

MASK_START = "[masked:"
"""How the text begins that stands in the place of a secret."""

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

_FLAG = lazy_pattern(r"--?[A-Za-z][A-Za-z0-9_-]*+")
_SHELL_MARK = lazy_pattern(r"[\s|&;()]")
_BETWEEN_WORDS = lazy_pattern(r"[\"'],[ ]?[\"']")


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
    return mask_part(value, set())


def mask_part(value: Any, found: set[str]) -> Masked:
    """Mask one part of a record. `found` receives its secrets, which other parts may repeat. Never store it."""
    run = _MaskingRun(Counter(), set()).narrow_to([value])
    if not (run.forms or run.others):
        return Masked(value, {})  # No rule can apply to it.
    masked = _mask_value(value, run, 0)
    if run.found:
        masked = _mask_all_repeated({"": masked}, run)[""]
        found |= run.found
    return Masked(masked, dict(sorted(run.counts.items())))


def shows_secret(masked: Masked, found: Iterable[str], known: str) -> bool:
    """Whether what was masked in a text tells its reader a secret. `found` are the secrets, `known` is what it knew.

    `password: postgres` and `secretKey: Uint8Array` are masked, and tell nothing: code and its tests are full of such
    words. So a secret counts if it looks random and has two digits, and a private key always.
    """
    if any(name in masked.by_rule for name in ("private-key", "recovery-phrase", "tangled")):
        return True
    return any(
        looks_random(secret)
        and sum(map(str.isdigit, secret)) >= SHOWN_DIGITS_MIN
        and "EXAMPLE" not in secret
        and secret not in known
        for secret in found
    )


def mask_draft(draft: Capsule, *, opaque: Iterable[str] = (), found: Iterable[str] = ()) -> Capsule:
    """Mask the secrets in a draft's texts and free-form fields, and add the note that says so.

    Ids, times, enumerations, hashes and Aver's block are not masked. Nor are the entries of `environment` that `opaque`
    names: signatures and digests, which are useless when a part is missing. An earlier note is added up. `found` are
    secrets from parts of the record that were masked before: they are masked wherever the draft repeats them.
    """
    content = draft.to_dict()
    reasoning = content["reasoning"]
    if reasoning["options_considered"] == [option["description"] for option in reasoning["options"]]:
        del reasoning["options_considered"]  # It follows from the options: mask each description once.
    environment = dict(content["context"]["environment"])
    before = environment.pop(NOTE_KEY, None)
    left_alone = {name: environment.pop(name) for name in (BLOCK_KEY, *opaque) if name in environment}
    content["context"]["environment"] = environment
    # The keys of a section are those of the model, and none of them sounds secret. So only its values are searched.
    searched = {
        name: [value for key, value in content[name].items() if value and key not in _UNMASKED_FIELDS.get(name, ())]
        for name in SECTIONS
    }
    run = _MaskingRun(Counter(), set()).narrow_to(list(searched.values()))
    run.found.update(found)
    # Nearly every record ends here: the search of the whole has found that no rule can apply.
    for name, values in searched.items() if run.forms or run.others else ():
        part = run.narrow_to(values)
        if part.forms or part.others:
            left = {key: content[name][key] for key in _UNMASKED_FIELDS.get(name, ())}
            content[name] = {**_mask_value(content[name], part, 1), **left}
    if run.found:
        for name, section in _mask_all_repeated({name: content[name] for name in SECTIONS}, run).items():
            left = {key: content[name][key] for key in _UNMASKED_FIELDS.get(name, ())}
            content[name] = {**section, **left}
    # A draft that was masked before keeps the counts of its note.
    by_rule = before.get("by_rule") if isinstance(before, dict) else None
    counts = run.counts
    if isinstance(by_rule, dict):
        counts = counts + Counter({str(rule): count for rule, count in by_rule.items() if type(count) is int})
    environment = {**content["context"]["environment"], **left_alone, NOTE_KEY: masking_note(counts)}
    if not run.counts:
        return replace(draft, context=replace(draft.context, environment=environment))
    content["context"]["environment"] = environment
    return Capsule.from_dict(content)


def masking_note(by_rule: Mapping[str, int]) -> dict[str, Any]:
    """The note in a record: the version of the rules, and how many places were masked, in all and by each rule."""
    return {"rules": RULES_VERSION, "count": sum(by_rule.values()), "by_rule": dict(sorted(by_rule.items()))}


class _MaskingRun(NamedTuple):
    """The state of one run: what was masked, and which rules may apply to the value. The other rules are not tried."""

    counts: Counter[str]
    """How many places each rule masked."""
    found: set[str]
    """The secrets that were masked. They are kept only while this run lasts."""
    forms: tuple[TokenPattern, ...] = ALL_PATTERNS
    names: bool = True
    """Whether a name may sound secret."""
    commands: bool = True
    """Whether a command may be given a password."""
    others: bool = True
    """Whether there may be any secret that no pattern of `forms` finds."""

    def add(self, secret: str, rule: str) -> str:
        """Count a secret and return its mark."""
        self.counts[rule] += 1
        if REPEATED_MIN <= len(secret) <= REPEATED_MAX and len(self.found) < REPEATED_COUNT_MAX:
            self.found.add(secret)
        return f"{MASK_START}{rule}]"

    def narrow_to(self, values: list[Any]) -> _MaskingRun:
        """The same run, with only those of its rules that may apply to these values."""
        try:
            text = orjson.dumps(values).decode("utf-8")
        except TypeError:
            return self  # Values that are not JSON cannot be searched beforehand: every rule is tried.
        names = self.names and may_name_secret(text.lower())
        commands = self.commands and may_give_password(text)
        others = names or commands or (self.others and _may_hold_url_or_key(text))
        return _MaskingRun(
            self.counts, self.found, possible_patterns(text) if self.forms else (), names, commands, others
        )

    def widen(self) -> _MaskingRun:
        """The same run with all rules."""
        return _MaskingRun(self.counts, self.found)


def _may_hold_url_or_key(text: str) -> bool:
    """Whether JSON may hold the password of a URL or a private key."""
    return ("@" in text and "://" in text) or '"kty"' in text or any(mark in text for mark in PRIVATE_KEY_MARKS)


def _mask_value(value: Any, run: _MaskingRun, depth: int) -> Any:
    """Mask a value under no name, or under a name that does not sound secret."""
    if type(value) is str:
        return _mask_text(value, run)
    if depth > DEPTH_MAX:
        raise NotCanonical(f"nested deeper than {DEPTH_MAX} levels")
    if isinstance(value, dict):
        masked: dict[Any, Any] = {}
        private = _PRIVATE_JWK if isinstance(value.get("kty"), str) else frozenset()
        titled = _find_titled(value) if run.names else {}
        for key, item in value.items():
            place = _mask_key(key, masked, run)
            if key in private:
                masked[place] = _mask_under_name(item, "", run, depth + 1, rule="private-key")
            elif not run.names:  # No name in this value sounds secret: the patterns of names need not be compiled.
                masked[place] = _mask_value(item, run, depth + 1)
            elif type(key) is str and is_sensitive_name(key):
                masked[place] = _mask_under_name(item, key, run, depth + 1)
            elif type(key) is str and type(item) is str and is_secret_under(key, item):
                masked[place] = run.add(item, "named")
            elif type(item) is int and type(key) is str and sort_name(key) == "pin" and is_secret_under(key, str(item)):
                masked[place] = run.add(str(item), "named")
            elif key == "auth" and type(item) is str and is_basic_text(item):
                masked[place] = run.add(item, "basic-credentials")  # Docker's `config.json`.
            elif key in titled:
                masked[place] = _mask_under_name(item, titled[key], run, depth + 1)
            else:
                masked[place] = _mask_value(item, run, depth + 1)
        return masked
    if isinstance(value, list | tuple):
        items, results = list(value), []
        if run.commands and len(items) <= WORDS_MAX and all(type(item) is str for item in items):
            items = _mask_words(items, run)
        for index, item in enumerate(items):
            name = items[index - 1] if index else None
            # `["--password", "hunter2"]`, or a header as a pair: the text before names the value.
            named = (
                run.names
                and type(name) is str
                and type(item) is str
                and (
                    (len(items) == 2 and name.lower() in _SECRET_HEADERS)
                    or (_FLAG.fullmatch(name) is not None and not item.startswith("-") and is_sensitive_name(name))
                )
            )
            if named:
                results.append(_mask_under_name(item, str(name), run, depth + 1))
            else:
                results.append(_mask_value(item, run, depth + 1))
        return results
    return value


_TITLES = (("value", ("name", "key")), ("text", ("selector", "element", "locator")), ("value", ("selector", "locator")))
"""The members that hold a value, and those that name it: `{"selector": "#password", "text": "hunter2"}`."""
_FIELD_WORDS = lazy_pattern(r"[\s_-]{0,4}(?:field|input|textbox|box)\s{0,4}$", re.IGNORECASE)
_SELECTOR_MARKS = lazy_pattern(r"[^A-Za-z0-9_]++")


def _find_titled(value: Mapping[Any, Any]) -> dict[str, str]:
    """Return the members whose value another member names by a name that sounds secret, with that name."""
    found: dict[str, str] = {}
    for member, titles in _TITLES:
        title = (
            next((value[each] for each in titles if isinstance(value.get(each), str)), "") if member in value else ""
        )
        if titles[0] != "name":
            title = _SELECTOR_MARKS.sub("_", _FIELD_WORDS.sub("", title[-NAME_MAX:]))
        if title and is_sensitive_name(title):
            found[member] = title
    # Beside the name of a user, `pass` is no result.
    if not _USER_KEYS.isdisjoint(value):
        found |= {key: "password" for key in ("pass", "pw", "psw") if key in value}
    return found


_USER_KEYS = frozenset({"user", "username", "login", "email", "usr"})


WORDS_MAX = 256
"""Words of a command that is a list. A longer list is none."""


def _mask_words(words: list[str], run: _MaskingRun) -> list[str]:
    """Mask the passwords in a command that is a list of words: `["sshpass", "-p", "hunter2"]`."""
    line = " ".join(words)
    if not may_give_password(line):
        return words
    starts, at = [], 0
    for word in words:
        starts.append(at)
        at += len(word) + 1
    masked = list(words)
    # No shell reads a list: a blank or a `&` in a word is a part of it.
    whole = " ".join(_SHELL_MARK.sub("_", word) if word.strip("|&;<>") else word for word in words)
    for span in (*find_command_spans(whole), *find_command_spans(line)):
        number = bisect_right(starts, span.start) - 1
        begin, end = span.start - starts[number], span.end - starts[number]
        word = words[number]
        # A span that reaches into the next word is a text with a blank. Such a word is searched by itself.
        if end <= len(word) and masked[number] == word and not _MARK.fullmatch(word, begin, end):
            masked[number] = word[:begin] + run.add(word[begin:end], span.rule) + word[end:]
    return masked


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
            return run.add(value, rule)
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
        return f"{MASK_START}{rule}]"
    return value


def _mask_text(text: str, run: _MaskingRun) -> str:
    if len(text) < (KEY_MIN if text.isalpha() else TEXT_MIN) or not (run.forms or run.others):
        return text
    for _ in range(ROUNDS_MAX):
        spans = _merge_spans(_find_spans(text, run))
        if not spans:
            return text
        pieces, at = [], 0
        for start, end, rule in spans:
            pieces += [text[at:start], run.add(text[start:end], rule)]
            at = end
        text = "".join([*pieces, text[at:]])
        run = run.widen()  # The masked text may have hidden another secret.
    if _find_spans(text, run):
        run.counts["tangled"] += 1
        return "[masked:tangled]"
    return text


def _find_spans(text: str, run: _MaskingRun) -> list[Span]:
    spans = list(find_token_spans(text, run.forms))
    names, commands = run.names and may_name_secret(text.lower()), run.commands and may_give_password(text)
    if names:
        spans += find_assignment_spans(text)
    if commands:
        # Between the words of a list that a text shows stand quotes and a comma.
        spread = _BETWEEN_WORDS.sub(lambda between: " " * len(between[0]), text)
        spans += [span for each in {text, spread} for span in find_command_spans(each)]
    if (names or commands) and text[0] in "{[" and len(text) <= JSON_MAX:
        spans += _find_json_spans(text, run)
    return [span for span in spans if not _MARK.fullmatch(text, span.start, span.end)]


JSON_MAX = 256 * 1024
"""Characters of a text that is read as JSON. In a longer one, only what a text shows by itself is found."""


def _find_json_spans(text: str, run: _MaskingRun) -> Iterator[Span]:
    """Find the secrets of a text that is JSON: there a list or an object shows what the text does not."""
    inner = _MaskingRun(Counter(), set(), (), run.names, run.commands)
    try:
        _find_by_structure(orjson.loads(text), inner, 0)
    except (ValueError, NotCanonical):
        return
    for secret in inner.found:
        for form in {secret, orjson.dumps(secret).decode()[1:-1]}:
            at = text.find(form)
            while at != -1:
                yield Span(at, at + len(form), "named")
                at = text.find(form, at + len(form))


def _find_by_structure(value: Any, run: _MaskingRun, depth: int) -> None:
    """Add to `run` the secrets that only the structure of a value shows: commands as lists, named members, JWKs."""
    if isinstance(value, dict):
        if isinstance(value.get("kty"), str):
            _mask_value(value, run, depth)
        for member, title in _find_titled(value).items():
            if type(value[member]) is str:
                _mask_under_name(value[member], title, run, depth)
        for item in value.values():
            _find_by_structure(item, run, depth + 1)
    elif isinstance(value, list) and all(type(item) is str for item in value):
        _mask_value(value, run, depth)
    elif isinstance(value, list):
        for item in value:
            _find_by_structure(item, run, depth + 1)


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


# --- secrets that a record repeats


def _mask_all_repeated(values: dict[str, Any], run: _MaskingRun) -> dict[str, Any]:
    """Mask every further place of the secrets that were found. That may uncover another secret, so it is repeated."""
    for _ in range(ROUNDS_MAX):
        known = len(run.found)
        values = _mask_repeated(values, _sort_secrets(run.found), run)
        if len(run.found) == known:
            break
    return values


def _sort_secrets(found: Iterable[str]) -> list[str]:
    """The secrets to look for, the longest first: one may contain another."""
    return sorted((each for each in found if "[masked:" not in each), key=lambda each: (-len(each), each))


def _mask_repeated(value: Any, secrets: list[str], run: _MaskingRun) -> Any:
    """Mask every further place of secrets that were found, and a beginning of one at the end of a text."""
    if type(value) is str:
        before = value
        for secret in secrets:
            if secret[:REPEATED_MIN] in value:
                value = _mask_repeated_text(value, secret, run)
        # A mark ends the word before it: a key that was part of a longer word may stand alone now.
        return value if value == before else _mask_text(value, run.widen())
    if isinstance(value, dict):
        return {key: _mask_repeated(item, secrets, run) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mask_repeated(item, secrets, run) for item in value]
    return value


def _mask_repeated_text(text: str, secret: str, run: _MaskingRun) -> str:
    pieces, at, start = [], 0, text.find(secret)
    while start != -1:
        end = start + len(secret)
        # A part of a longer word is another word, unless the secret itself is a long one.
        alone = len(secret) >= KEY_MIN or not (
            (start and text[start - 1].isalnum() and secret[0].isalnum())
            or (text[end : end + 1].isalnum() and secret[-1].isalnum())
        )
        if alone and not _is_in_mark(text, start):
            run.counts["repeated"] += 1
            pieces += [text[at:start], "[masked:repeated]"]
            at = end
            start = text.find(secret, end)
        else:
            start = text.find(secret, start + 1)
    text = "".join([*pieces, text[at:]])
    # A text that was cut may end with the beginning of the secret.
    body = text.removesuffix("…")
    start = body.rfind(secret[:REPEATED_MIN], max(0, len(body) - len(secret)))
    size_min = REPEATED_MIN if len(body) < len(text) else CUT_MIN
    cut = start != -1 and len(body) - start >= size_min and secret.startswith(body[start:])
    if cut and not (start and body[start - 1].isalnum()):
        run.counts["repeated"] += 1
        return f"{body[:start]}[masked:repeated]{text[len(body) :]}"
    return text


def _is_in_mark(text: str, at: int) -> bool:
    opening = text.rfind("[masked:", max(0, at - 64), at + 1)
    return opening != -1 and "]" not in text[opening:at]
