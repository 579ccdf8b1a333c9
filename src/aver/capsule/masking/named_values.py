"""Names that sound secret, and the values that a text assigns to them: `password=...`, `export TOKEN=...`.

The last words of a name decide: `DB_PASSWORD`, `clientSecret` and `x-api-key` sound secret; `token_count`,
`password_policy` and `public_key` do not. The words are in `rules.toml`. The value is masked unless it is plainly no
secret (`aver.capsule.masking.secret_values`), or refers to another name in code: `password=args.password`. Names such
as `JWT_KEY` sound secret only with a value that looks random, `pass` and `pw` with one that has letters and digits,
`pin` only with digits.

Names are folded first: `ｐａｓｓｗｏｒｄ` is `password`, characters that nobody sees are left out, and words of other
languages count as theirs.

Names are read once from left to right, and values are skipped after they were judged, so the time is linear.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from aver.capsule.masking import rules_table
from aver.capsule.masking.secret_values import is_secret_value, looks_random
from aver.capsule.masking.token_patterns import Span
from aver.fast_dataclass import NamedTuple
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
_NUMERIC_SECRET = lazy_pattern(r"pass(?:word|wd|phrase|code)s?|pwd|pass$|secret|otp|cvv|cvc|pin$|pin_?code$")
_PLAIN_KEYS = frozenset(rules_table.PLAIN_KEYS)
_SWITCH_WORDS = _word_set("is has use no needs requires require show hide forgot allow enable without skip")
"""A name that begins with one of these is a switch."""
_COUNTED_TOKEN_WORDS = _word_set(
    "max min num total per count next page continuation sync cursor stop eos bos pad unk special first last prev "
    "previous start end sep cls mask prompt completion cancellation"
)
"""After one of these, `token` is a counted unit of text, a mark in it, or a page."""

_WEAK_NAME = lazy_pattern(r"^pass$|(?:^|_)(?:pw|psw)$")
_PIN_NAME = lazy_pattern(r"(?:^|_)pin(?:_?code)?$")
_PIN = lazy_pattern(r"(?<![a-z])pin(?![a-z])|pin_?code")

Sort = Literal["", "secret", "random", "weak", "pin"]
"""How much of a secret a name promises; what the value must look like then, `is_secret_under` knows."""

_NEEDLES = (
    *("key", "secret", "auth", "cookie", "credential", "connection", "mnemonic", "phrase", "otp", "pw", "psw"),
    *(word for word in rules_table.SECRET if word in rules_table.FOREIGN),
)
_GUARDED_NEEDLES = (("wd", ("pwd", "pswd")), ("cv", ("cvv", "cvc")), ("j", ("jwt",)))
"""More needles. Those of a group are looked for only where their guard is, which all of them contain."""
_NOT_PASSED = lazy_pattern(r"pass(?!ed|es|ing)")
_SINGLE_TOKEN = lazy_pattern(r"token(?!s(?!taging))")


def may_name_secret(lower: str) -> bool:
    """Whether a text in lower case may contain a name that sounds secret. A fast test that most texts fail."""
    if (folded := fold_text(lower)) is not None:
        lower = folded.text.lower()
    if [needle for needle in _NEEDLES if needle in lower]:
        return True
    for guard, needles in _GUARDED_NEEDLES:
        if guard in lower and any(needle in lower for needle in needles):
            return True
    if ("seed" in lower and "words" in lower) or ("pin" in lower and _PIN.search(lower) is not None):
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
    return sort_name(name[-NAME_MAX:]) == "secret"


@lru_cache(maxsize=4096)
def sort_name(name: str) -> Sort:
    """Return how much of a secret a name promises."""
    if "[masked:" in name:
        return ""  # The rest of a masked name does not describe its value.
    name = name if (folded := fold_text(name)) is None else folded.text
    plain = name.strip("-. _/:$[]\"'#")
    if plain in ("PWD", "OLDPWD"):
        return ""  # The shell's directories.
    words = _SEPARATORS.sub("_", _CAMEL.sub("_", plain)).lower()
    if words == "auth":  # `_auth` is an npm credential; `auth` alone is a topic.
        return "secret" if name.startswith("_") else "random" if name.isupper() else ""
    if name.isupper():
        parts = _SEPARATORS.sub("_", plain).lower().split("_")
        if parts == ["jwt"] or (len(parts) > 1 and parts[-1] in ("key", "jwt") and parts[-2] not in _PLAIN_KEYS):
            return "secret" if _is_secret_name(words) else "random"
    if _WEAK_NAME.search(words):
        return "weak"
    if _PIN_NAME.search(words):
        return "pin"
    return "secret" if _is_secret_name(words) else ""


def _is_secret_name(words: str) -> bool:
    found = _SECRET_NAME.search(words)
    if found is None:
        return False
    before = words[: found.start()].rstrip("_").split("_")
    if before[0] in _SWITCH_WORDS or (before[-1], found["word"]) == ("existing", "secret"):
        return False  # A chart of Helm calls a secret that is kept elsewhere by its name: `existingSecret`.
    return not (found["word"] == "token" and before[-1] in _COUNTED_TOKEN_WORDS)


def is_secret_under(name: str, value: str) -> bool:
    """Whether a text under this name is a secret. Some names need a value that looks like one."""
    text, sort = value.strip(), sort_name(name[-NAME_MAX:])
    if not sort or not is_secret_value(name, value):
        return False
    if sort == "random":
        return looks_random(text)
    if sort == "weak":
        has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
        return len(text) >= WEAK_MIN and has_both and " " not in text
    return sort == "secret" or (text.isdigit() and len(text) in PIN_DIGITS)


WEAK_MIN = 4
"""A shorter value of `pass` or `pw` is a word or a count."""

PIN_DIGITS = range(4, 13)
"""How many digits a personal number has. The pins of a circuit have fewer."""


def can_be_numeric(name: str) -> bool:
    """Whether even a number is a secret under this name, as for a password or a one-time code."""
    return _NUMERIC_SECRET.search(name[-NAME_MAX:].lower()) is not None


_LOOKUP = lazy_pattern(
    r"(?:self|this|os|process|config|settings|env|args|ctx|context|request|req|options|opts|params|app|cfg|var|vars"
    r"|secrets|data|props|inputs?|github|steps|local|module|cls|kwargs|state|session|conn|client|user|event|import_meta)"
    r"[.\[].*|[A-Za-z_][A-Za-z0-9_.]*\[[^\[\]]*\].*|(?:[A-Za-z_]+\.)+[A-Za-z_]+\(.*|[A-Za-z_]+\(\)?",
    re.DOTALL,
)
_IDENTIFIER = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


# --- names in other letters


class FoldedText(NamedTuple):
    """A text in which names have ASCII letters, and for some of its places where they were before."""

    text: str
    places: list[int]
    origins: list[int]

    def find_origin(self, place: int) -> int:
        known = bisect_right(self.places, place) - 1
        return self.origins[known] + place - self.places[known]


_FOREIGN_WORDS = [word for word in rules_table.FOREIGN if word not in rules_table.SECRET]
_SPELLINGS = dict.fromkeys(form for word in _FOREIGN_WORDS for form in (word, word.capitalize(), word.upper()))
_FOLDED = lazy_pattern(f"(?P<word>{'|'.join(_SPELLINGS)})|[{rules_table.FOLDED[0]}]")
_PHRASES = tuple(word for word in _FOREIGN_WORDS if word.isascii())


def fold_text(text: str) -> FoldedText | None:
    """Fold letters of other widths and styles (NFKC), unseen characters, foreign words; None without any."""
    if text.isascii() and not any(phrase in text or phrase.capitalize() in text for phrase in _PHRASES):
        return None
    pieces, places, origins, at, size = list[str](), [0], [0], 0, 0
    for found in _FOLDED.finditer(text):
        letter = "password" if found["word"] else unicodedata.normalize("NFKC", found[0])
        letter = letter if letter.isascii() else ""  # A format character, or a mark that belongs to no name.
        pieces += [text[at : found.start()], letter]
        size += found.start() - at + len(letter)
        at = found.end()
        places.append(size)
        origins.append(at)
    return FoldedText("".join([*pieces, text[at:]]), places, origins) if pieces else None


# --- assignments in a text

_TYPE = r"[A-Za-z_][A-Za-z0-9_.\[\]]{0,40}+"
_NAME = lazy_pattern(
    r"(?<![A-Za-z0-9_.-])(?<!\[masked:)(?P<name>[A-Za-z0-9_.-]++)"
    r"(?P<closed>\\{0,4}[\"'`])?\]?[ \t]{0,8}+"
    rf"(?::[ \t]{{0,4}}+(?P<type>{_TYPE}(?:[ ]?\|[ ]?{_TYPE}){{0,3}})[ \t]{{0,4}}+(?==[ \t]{{0,8}}+[\"'`]))?"
    r"(?P<sign>=>|:=|=(?!=)|:(?!:)|%3[Dd]|,(?=[ \t]{0,8}+\\{0,4}+[\"']))[ \t]{0,8}+"
)
_NEXT_LINE = lazy_pattern(r"\r?\n[ \t]{0,64}+(?=\\{0,4}[\"'])")
_DECLARATION = lazy_pattern(
    rf"(?<![A-Za-z0-9_.-])(?:{'|'.join(word.replace(' ', '[ ]{1,4}+') for word in rules_table.DECLARES)})"
    r"[ \t]{1,8}+(?P<name>[A-Za-z_][A-Za-z0-9_]*+)[ \t]{1,8}+(?=[^\s=])"
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
    folded = fold_text(text)
    if folded is None:
        yield from _find_assignments(text)
        return
    for start, end, rule in _find_assignments(folded.text):
        yield Span(folded.find_origin(start), folded.find_origin(end), rule)


def _find_assignments(text: str) -> Iterator[Span]:
    at = 0
    while named := _NAME.search(text, at):
        at = named.end()
        if named["sign"] == "," and not (named["closed"] and named["name"].startswith("-")):
            continue  # Only of a flag, a list has the value: `["--password", "hunter2"]`.
        if sort_name(named["name"][-NAME_MAX:]):
            span, at = _read_value(text, named)
            if span is not None:
                yield span
        elif named["type"] is not None:
            # `log: password="..."` has the form of a variable with its type. So the type is read as a name, too.
            at = named.start("type")
    if "--" in text or " -" in text:
        yield from _find_named_words(text, _FLAG)
    if (
        any(word in text for word in rules_table.DECLARES if " " not in word)
        or "set -" in text
        or "set  " in text
        or "# define" in text
    ):
        yield from _find_named_words(text, _DECLARATION)
    if "</" in text:
        for element in _ELEMENT.finditer(text):
            if is_secret_under(element["name"], element["value"]):
                yield Span(*element.span("value"), "assignment")


def _find_named_words(text: str, names: re.Pattern[str]) -> Iterator[Span]:
    """Find the values that follow their name as the next word: `--password hunter2`, `setx API_KEY abc`."""
    at = 0
    while named := names.search(text, at):
        at = named.end()
        if sort_name(named["name"][-NAME_MAX:]):
            span, at = _read_value(text, named)
            if span is not None:
                yield span


def _read_value(text: str, named: re.Match[str]) -> tuple[Span | None, int]:
    """Read the value after a name. Returns its span if it is a secret, and where to continue."""
    at = named.end()
    name = named["name"]
    if named.groupdict().get("closed") and (line := _NEXT_LINE.match(text, at)):
        at = line.end()
    opening = _OPENING.match(text, at)
    if opening and _is_closing_quote(text, named, opening["quote"]):
        return None, opening.end()
    if opening:
        start = opening.end()
        end, after = _find_quoted_end(text, start, opening["quote"])
        secret = is_secret_under(name, text[start:end])
        if named.groupdict().get("sign") == "," and text.startswith("-", start):
            return None, start  # A list of flags.
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
    if name.startswith(("self.", "this.", "cls.")) or value.rstrip(":") in rules_table.CODE:
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
