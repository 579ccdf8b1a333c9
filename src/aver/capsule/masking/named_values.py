"""Names that sound secret, and the values that a text assigns to them: `password=...`, `export TOKEN=...`.

The last words of a name decide: `DB_PASSWORD`, `clientSecret` and `x-api-key` sound secret; `token_count`,
`password_policy` and `public_key` do not. The words are in `rules.toml`. The value is masked unless it is plainly no
secret (`aver.capsule.masking.secret_values`), or refers to another name in code: `password=args.password`. Names such
as `JWT_KEY` sound secret only with a value that looks random.

Names are read once from left to right, and values are skipped after they were judged, so the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from aver.capsule.masking import rules_table
from aver.capsule.masking.secret_values import is_secret_value, looks_random
from aver.capsule.masking.token_patterns import Span
from aver.lazy_pattern import lazy_pattern

NAME_MAX = 200
"""How many characters at the end of a name are examined: the last word decides."""


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _one_of(words: tuple[str, ...]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = lazy_pattern(r"[-. _/:$\[\]\"']+")
_SECRET_NAME = lazy_pattern(
    rf"(?P<word>{_one_of(rules_table.SECRET)}|(?:{_one_of(rules_table.KEY)})_?keys?"
    rf"|(?:^|_)(?:{_one_of(rules_table.PASS_AFTER)})_?pass|(?:^|_)(?:{_one_of(rules_table.TOKENS_AFTER)})_?tokens"
    r"|(?:^|_)(?:set_)?cookie|(?:^|_)(?:otp|cvv|cvc))"
    rf"(?:_(?:{_one_of(rules_table.AFTER)})|_?[0-9]++)*+$"
)
_NUMERIC_SECRET = lazy_pattern(r"pass(?:word|wd|phrase|code)s?|pwd|pass$|secret|otp|cvv|cvc")
_PLAIN_KEYS = frozenset(rules_table.PLAIN_KEYS)
_SWITCH_WORDS = _word_set("is has use no needs requires require show hide forgot allow enable without skip")
"""A name that begins with one of these is a switch."""
_COUNTED_TOKEN_WORDS = _word_set(
    "max min num total per count next page continuation sync cursor stop eos bos pad unk special first last prev "
    "previous start end sep cls mask prompt completion cancellation"
)
"""After one of these, `token` is a counted unit of text, a mark in it, or a page."""

_NEEDLES = ("key", "secret", "auth", "cookie", "credential", "connection", "mnemonic", "phrase", "otp")
_GUARDED_NEEDLES = (("wd", ("pwd", "pswd")), ("cv", ("cvv", "cvc")), ("j", ("jwt",)))
"""More needles. Those of a group are looked for only where their guard is, which all of them contain."""
_NOT_PASSED = lazy_pattern(r"pass(?!ed|es|ing)")
_SINGLE_TOKEN = lazy_pattern(r"token(?!s(?!taging))")


def may_name_secret(lower: str) -> bool:
    """Whether a text in lower case may contain a name that sounds secret. A fast test that most texts fail."""
    if [needle for needle in _NEEDLES if needle in lower]:
        return True
    for guard, needles in _GUARDED_NEEDLES:
        if guard in lower and any(needle in lower for needle in needles):
            return True
    if "seed" in lower and "words" in lower:
        return True
    # The patterns are compiled only where a text has the word: a hook reads one record.
    if "pass" in lower and _NOT_PASSED.search(lower) is not None:
        return True
    # Agents' records count `tokens` everywhere; a single `token` may be a secret. `tokenstaging` contains both.
    if "token" not in lower:
        return False
    if _SINGLE_TOKEN.search(lower) is not None:
        return True
    at = lower.find("tokens")
    while at != -1:
        if lower[max(0, at - 16) : at].rstrip("-. _/:$[]\"'\\").endswith(rules_table.TOKENS_AFTER):
            return True
        at = lower.find("tokens", at + 6)
    return False


def is_sensitive_name(name: str) -> bool:
    """Whether a value with this name is probably a secret."""
    return _is_sensitive_name(name[-NAME_MAX:])


@lru_cache(maxsize=4096)
def _is_sensitive_name(name: str) -> bool:
    if "[masked:" in name:
        return False  # The rest of a masked name does not describe its value.
    plain = name.strip("-. _/:$[]\"'")
    if plain in ("PWD", "OLDPWD"):
        return False  # The shell's directories.
    words = _SEPARATORS.sub("_", _CAMEL.sub("_", plain)).lower()
    if words == "auth":
        return name.startswith("_")  # `_auth` is an npm credential; `auth` alone is a topic.
    found = _SECRET_NAME.search(words)
    if found is None:
        return False
    before = words[: found.start()].rstrip("_").split("_")
    if before[0] in _SWITCH_WORDS:
        return False
    return not (found["word"] == "token" and before[-1] in _COUNTED_TOKEN_WORDS)


def is_secret_under(name: str, value: str) -> bool:
    """Whether a text under this name is a secret. Names such as `JWT_KEY` and `AUTH` need a value that looks random."""
    if is_sensitive_name(name):
        return is_secret_value(name, value)
    return is_key_constant(name) and looks_random(value.strip()) and is_secret_value(name, value)


def is_key_constant(name: str) -> bool:
    """Whether it is a name in capitals that may hold a key: `JWT_KEY`, `APP_KEY`, `AUTH`; not `CACHE_KEY`."""
    if not name.isupper() or "[masked:" in name:
        return False
    words = _SEPARATORS.sub("_", name[-NAME_MAX:].strip("-. _/:$[]\"'")).lower().split("_")
    if words in (["auth"], ["jwt"]):
        return True
    return len(words) > 1 and words[-1] in ("key", "jwt") and words[-2] not in _PLAIN_KEYS


def can_be_numeric(name: str) -> bool:
    """Whether even a number is a secret under this name, as for a password or a one-time code."""
    return _NUMERIC_SECRET.search(name[-NAME_MAX:].lower()) is not None


_LOOKUP = lazy_pattern(
    r"(?:self|this|os|process|config|settings|env|args|ctx|context|request|req|options|opts|params|app|cfg|var|vars"
    r"|secrets|data|props|inputs?|github|steps|local|module|cls|kwargs|state|session|conn|client|user|event|import_meta)"
    r"[.\[].*|[A-Za-z_][A-Za-z0-9_.]*\[[^\[\]]*\].*",
    re.DOTALL,
)
_IDENTIFIER = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


# --- assignments in a text

_TYPE = r"[A-Za-z_][A-Za-z0-9_.\[\]]{0,40}+"
_NAME = lazy_pattern(
    r"(?<![A-Za-z0-9_.-])(?<!\[masked:)(?P<name>[A-Za-z0-9_.-]++)"
    r"(?P<closed>\\{0,4}[\"'`])?\]?[ \t]{0,8}+"
    rf"(?::[ \t]{{0,4}}+(?P<type>{_TYPE}(?:[ ]?\|[ ]?{_TYPE}){{0,3}})[ \t]{{0,4}}+(?==[ \t]{{0,8}}+[\"'`]))?"
    r"(?P<sign>=>|:=|=(?!=)|:(?!:)|%3[Dd])[ \t]{0,8}+"
)
_FLAG = lazy_pattern(r"(?<![A-Za-z0-9_.-])(?P<name>--?[A-Za-z][A-Za-z0-9_-]*+)[ \t]++(?=[^\s=:-])")
_ELEMENT = lazy_pattern(r"<(?P<name>[A-Za-z_][A-Za-z0-9_:.-]{0,99}+)>(?P<value>[^<>]{1,4096}+)</")
_OPENING = lazy_pattern(r"[fFbBrRuU]{0,2}(?P<quote>\"\"\"|'''|\\{0,4}[\"'`])")
_QUOTED_BODY = {quote: lazy_pattern(rf"[^{quote}\\\n]*+(?:\\.[^{quote}\\\n]*+)*+") for quote in ('"', "'", "`")}
_ENCODED_VALUE = lazy_pattern(r"(?:[^\s\"'`,;&<>(){}|\\%]|%[^\s\"'`,;&<>(){}|\\%2]|%2[^\s\"'`,;&<>(){}|\\%6])++")
_BARE_VALUE = lazy_pattern(r"[^\s\"'`,;&<>(){}|\\]++")
_WHOLE_WORD = lazy_pattern(r"[^\s\"'`\\]++")
_LINE_END = lazy_pattern(r"[ \t]{0,64}+(?:[,;}\])#]|\\[nr]|\r|\n|$)")

LINE_MAX = 256
"""How many characters back the quotes of a line are counted."""

NUMERIC_PASSWORD_MIN = 4
"""Digits from which on an unquoted number is taken for a password or a one-time code."""

NUMERIC_TOKEN_MIN = 8
"""Digits from which on an unquoted number is taken for a token or a key. A shorter one is a count or an id."""

BARE_VALUE_MIN = 3
"""An unquoted value shorter than this is a flag or a variable rather than a secret."""


def find_assignment_spans(text: str) -> Iterator[Span]:
    """Find the values that a text assigns to secret-sounding names, without their quotes."""
    at = 0
    while named := _NAME.search(text, at):
        at = named.end()
        if is_sensitive_name(named["name"]) or is_key_constant(named["name"]):
            span, at = _read_value(text, named)
            if span is not None:
                yield span
        elif named["type"] is not None:
            # `log: password="..."` has the form of a variable with its type. So the type is read as a name, too.
            at = named.start("type")
    if "--" in text or " -" in text:
        yield from _find_flag_values(text)
    if "</" in text:
        for element in _ELEMENT.finditer(text):
            if is_secret_under(element["name"], element["value"]):
                yield Span(*element.span("value"), "assignment")


def _find_flag_values(text: str) -> Iterator[Span]:
    """Find the values of flags on a command line: `--password hunter2`."""
    at = 0
    while flag := _FLAG.search(text, at):
        at = flag.end()
        if is_sensitive_name(flag["name"]):
            span, at = _read_value(text, flag)
            if span is not None:
                yield span


def _read_value(text: str, named: re.Match[str]) -> tuple[Span | None, int]:
    """Read the value after a name. Returns its span if it is a secret, and where to continue."""
    at = named.end()
    name = named["name"]
    opening = _OPENING.match(text, at)
    if opening and _is_closing_quote(text, named, opening["quote"]):
        return None, opening.end()
    if opening:
        start = opening.end()
        end, after = _find_quoted_end(text, start, opening["quote"])
        secret = is_secret_under(name, text[start:end])
    else:
        bare = _bare_value_pattern(text, named).match(text, at)
        if bare is None:
            return None, at
        start, end = bare.span()
        after = end
        secret = _is_secret_bare_value(text, named, bare)
    return (Span(start, end, "assignment") if secret and end > start else None), max(after, at)


def _is_closing_quote(text: str, named: re.Match[str], quote: str) -> bool:
    """Whether a quote after a name closes the text that contains the name, as in `prompt="Password: "`."""
    start = named.start("name")
    if named.groupdict().get("closed") or len(quote) != 1:
        return False
    if text.startswith(quote, max(start - 1, 0)) and start:
        return True
    line = text.rfind("\n", max(0, start - LINE_MAX), start) + 1
    if quote != '"' or (line == 0 and start > LINE_MAX):
        return False  # A single quote before it may be an apostrophe.
    return text.count(quote, line, start) % 2 == 1


def _bare_value_pattern(text: str, named: re.Match[str]) -> re.Pattern[str]:
    """The pattern of an unquoted value after this name."""
    if text.startswith("%", named.end() - 3):
        return _ENCODED_VALUE  # In an encoded query, up to the encoded `&`.
    return _WHOLE_WORD if _is_env_line(text, named) else _BARE_VALUE


def _find_quoted_end(text: str, start: int, quote: str) -> tuple[int, int]:
    """Where a quoted value ends, and where its closing quote ends. Without one, it ends with its line."""
    if len(quote) == 1:
        end = _QUOTED_BODY[quote].match(text, start).end()  # type: ignore[union-attr]
        return end, end + 1 if text.startswith(quote, end) else end
    found = text.find(quote, start)
    if found == -1:
        line = text.find("\n", start)
        found = len(text) if line == -1 else line
        return found, found
    return found, found + len(quote)


def _is_env_line(text: str, named: re.Match[str]) -> bool:
    """Whether it is a line `NAME=value` of an environment file, where the value is the whole word."""
    before = text.rfind("\n", max(0, named.start() - 16), named.start()) + 1
    lead = text[max(before, named.start() - 16) : named.start()].strip()
    return named.groupdict().get("sign") == "=" and text[named.end() - 1] == "=" and lead in ("", "export", "set")


def _is_secret_bare_value(text: str, named: re.Match[str], bare: re.Match[str]) -> bool:
    name, value = named["name"], bare[0]
    if len(value) < BARE_VALUE_MIN or value[0] in "<{" or not is_secret_under(name, value):
        return False
    digits_min = NUMERIC_PASSWORD_MIN if can_be_numeric(name) else NUMERIC_TOKEN_MIN
    if text.startswith("(", bare.end()) or (value.isdigit() and len(value) < digits_min):
        return False  # A call of a function, or a count.
    if name.startswith(("self.", "this.", "cls.")):
        return False  # In code a text has quotes.
    if not name.isupper():
        refers = _LOOKUP.fullmatch(value) or (
            _IDENTIFIER.fullmatch(value) and re.search(r"[_.]|[a-z][A-Z]", value) and is_sensitive_name(value)
        )
        if refers or value.lower() == _SEPARATORS.sub("_", name).lower().rpartition("_")[2]:
            return False
    if named.groupdict().get("sign") != ":":
        return True
    # A sentence may follow a colon. Take it for a secret only if it has digits, or is alone on its line.
    return any(c.isdigit() for c in value) or _LINE_END.match(text, bare.end()) is not None
