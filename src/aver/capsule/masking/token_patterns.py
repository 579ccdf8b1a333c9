"""Secrets that are recognised by their own form: key formats, tokens, private keys in PEM, passwords in URLs.

`find_token_spans` finds them. It tries a pattern only where the text contains one of the pattern's `needles`; most
texts contain none. From there a pattern takes a bounded number of steps, or consumes characters that no other match
reads again. So the time is linear for every text. A test parses the patterns and checks this.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from aver.capsule.masking import rules_table
from aver.capsule.masking.secret_values import is_secret_value
from aver.lazy_pattern import lazy_pattern


class Span(NamedTuple):
    """The place of a secret in a text, and the rule that found it."""

    start: int
    end: int
    rule: str


def _accept_any(_: re.Match[str]) -> bool:
    return True


class TokenPattern(NamedTuple):
    """One way to recognise a secret. The group `secret` is masked, or the whole match if there is none."""

    rule: str
    needles: tuple[str, ...]
    """Texts, one of which a match contains `back` characters after its start; in lower case if case is ignored."""
    pattern: re.Pattern[str]
    accepted: Callable[[re.Match[str]], bool]
    back: int = 0
    any_case: bool = False


# A key begins where a word begins, or right after an escape. `\n` and `%3D` begin a line or a value in text that was
# quoted once more, `[31m` ends a terminal's colour code, and `-` begins a line that a diff removes.
_WORD_START = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=(?m:^)-)|(?<=\\n-)"
    r"|(?<=\[m)|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m))"
)


def _has_digit(match: re.Match[str]) -> bool:
    return any(character.isdigit() for character in _secret_text(match))


def _looks_random(match: re.Match[str]) -> bool:
    """Whether it has digits, small and capital letters. `sk-` also begins the names of styles and places."""
    text = _secret_text(match)
    return _has_digit(match) and not text.islower() and any(character.isupper() for character in text)


def _is_basic_credentials(match: re.Match[str]) -> bool:
    """Whether the text after `Basic` decodes to `user:password`. `Basic` is an ordinary word, too."""
    return is_basic_text(_secret_text(match))


def is_basic_text(text: str) -> bool:
    """Whether a text is `user:password` in base64."""
    encoded = text.rstrip("=")
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except ValueError:
        return False
    return ":" in decoded and decoded.isprintable()


def _is_not_placeholder(match: re.Match[str]) -> bool:
    """Whether it is not a placeholder such as `$TOKEN`, `${TOKEN}`, `{token}`, `<token>` or `***`."""
    return _secret_text(match)[0] not in "$<{[%*"


def _is_header_value(match: re.Match[str]) -> bool:
    """Accept `Authorization: Token abc`, but not `Authorization: required before anything else`."""
    known = (match["scheme"] or "").lower() in ("bearer", "basic", "token", "digest", "apikey")
    return _is_not_placeholder(match) and (known or _has_digit(match))


def _is_secret_text(match: re.Match[str]) -> bool:
    """Whether it is a value of its own, and neither a placeholder nor a word such as `required`."""
    return _is_not_placeholder(match) and is_secret_value("", _secret_text(match))


def _is_discord_token(match: re.Match[str]) -> bool:
    """Whether the first part is the number of a user in base64. Other words with two dots are none."""
    first = _secret_text(match).partition(".")[0]
    try:
        decoded = base64.b64decode(first + "=" * (-len(first) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return False
    return decoded.isdigit() and len(decoded) >= 16


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _has_base58_checksum(match: re.Match[str]) -> bool:
    """Whether the checksum at the end is right, as in the private key of a wallet (WIF)."""
    import hashlib

    number = 0
    for character in _secret_text(match):
        number = number * 58 + _BASE58.index(character)
    content = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return hashlib.sha256(hashlib.sha256(content[:-4]).digest()).digest()[:4] == content[-4:]


CHECKS: dict[str, Callable[[re.Match[str]], bool]] = {
    "": _accept_any,
    "digit": _has_digit,
    "random": _looks_random,
    "basic": _is_basic_credentials,
    "value": _is_secret_text,
    "header": _is_header_value,
    "header-value": lambda match: _is_not_placeholder(match) and _has_digit(match),
    "discord": _is_discord_token,
    "base58check": _has_base58_checksum,
}
"""What must hold besides the pattern, by the name in `rules.toml`."""


def _from_table(rule: str, needles: tuple[str, ...], pattern: str, kind: str, check: str, back: int) -> TokenPattern:
    any_case = kind == "word"
    source = f"{_WORD_START}(?:{pattern})" if kind == "key" else pattern
    flags = re.UNICODE if rule == "telegram-token" else re.ASCII | (re.IGNORECASE if any_case else 0)
    return TokenPattern(rule, needles, lazy_pattern(source, flags), CHECKS[check], back, any_case)


TOKEN_PATTERNS: tuple[TokenPattern, ...] = tuple(_from_table(*row) for row in rules_table.TOKENS)


class ShapePattern(NamedTuple):
    """A key without a needle: tried where a word has one of these lengths and begins with one of these letters."""

    rule: str
    begins: str
    lengths: range
    follows: str
    pattern: re.Pattern[str]
    accepted: Callable[[re.Match[str]], bool]


SHAPE_PATTERNS = tuple(
    ShapePattern(
        rule,
        begins,
        range(lengths[0], lengths[1] + 1),
        follows,
        lazy_pattern(f"{_WORD_START}(?:{pattern})", re.ASCII),
        CHECKS[check],
    )
    for rule, begins, lengths, follows, pattern, check in rules_table.SHAPES
)
_SHAPE_MARK = TokenPattern("shape", (), lazy_pattern(r"(?!)"), _accept_any)
"""Stands for all of `SHAPE_PATTERNS` among the patterns that may match."""


PRIVATE_KEY_MARKS = ("PRIVATE KEY", "Private-Lines:")
"""Every private key has one of these before it."""

KEY_RUN_MIN = 15
"""Every key whose needle has only letters, digits, hyphens and underscores contains the needle in a run of at least
this many such characters, except for `_SPLIT_KEY_NEEDLES`. A test checks this for every pattern."""

_SPLIT_KEY_NEEDLES = frozenset(rules_table.SPLIT_NEEDLES)
"""Needles of keys that may consist of shorter runs."""

_RUN_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_RUN_TABLE = bytes(ord("x" if chr(byte) in _RUN_CHARACTERS else " ") for byte in range(256))
_LONG_RUN = b"x" * KEY_RUN_MIN
_DIGEST_CHARACTERS = b"0123456789abcdef-"
"""No needle has only these characters, so that digests and ids need not be searched."""


def possible_patterns(text: str) -> tuple[TokenPattern, ...]:
    """The patterns that may match somewhere in a text: those with a needle in it.

    A record has many texts and hardly ever a needle. So the whole record is searched once, written as JSON: no needle
    has a character that JSON escapes. Most needles belong to keys, and a key is always in a long run of characters.
    """
    lower = _to_lower(text)
    # The long runs of characters that may hold a key. Searching a copy with one letter for all of them is fast.
    written = text.encode("utf-8", "surrogatepass")
    shape = written.translate(_RUN_TABLE)
    long_runs, end, has_shape = list[bytes](), 0, False
    while (start := shape.find(_LONG_RUN, end)) != -1:
        space = shape.find(b" ", start)
        end = len(shape) if space == -1 else space
        if written[start:end].strip(_DIGEST_CHARACTERS):
            long_runs.append(written[start:end])
            has_shape = has_shape or _may_have_shape(written, start, end)
    runs = b" ".join(long_runs).decode("ascii")
    found = [at for needle, at in _RUN_NEEDLES if needle in runs] if runs else []
    found += [at for needle, at in _TEXT_NEEDLES if needle in text]
    found += [at for needle, at in _WORD_NEEDLES if needle in lower]
    shapes = (_SHAPE_MARK,) if has_shape else ()
    return (*(TOKEN_PATTERNS[at] for at in sorted(set(found))), *shapes) if found or shapes else ()


def _may_have_shape(written: bytes, start: int, end: int) -> bool:
    """Whether a run of characters may begin a key without a needle. The end of an escape may stand before the key."""
    return any(
        end - begin in shape.lengths
        and chr(written[begin]) in shape.begins
        and written.startswith(shape.follows.encode(), end)
        for begin in range(start, min(start + SHAPE_LEAD_MAX, end))
        for shape in SHAPE_PATTERNS
    )


SHAPE_LEAD_MAX = 6
"""Characters of an escape (`n`, `u003d`, `31m`) that may stand before a key in the same run."""


_NEEDLES = [(needle, at) for at, form in enumerate(TOKEN_PATTERNS) for needle in form.needles]
_WORD_NEEDLES = [(needle, at) for needle, at in _NEEDLES if TOKEN_PATTERNS[at].any_case]
_RUN_NEEDLES = [
    (needle, at)
    for needle, at in _NEEDLES
    if not TOKEN_PATTERNS[at].any_case and needle not in _SPLIT_KEY_NEEDLES and _RUN_CHARACTERS.issuperset(needle)
]
_TEXT_NEEDLES = [each for each in _NEEDLES if each not in (*_WORD_NEEDLES, *_RUN_NEEDLES)]


ALL_PATTERNS = (*TOKEN_PATTERNS, _SHAPE_MARK)


def find_token_spans(text: str, among: Iterable[TokenPattern] = ALL_PATTERNS) -> Iterator[Span]:
    """Find every secret that has a form of its own. Spans may overlap."""
    lower = _to_lower(text) if among else ""
    for form in among:
        if form is _SHAPE_MARK:
            yield from _find_shapes(text)
            continue
        searched = lower if form.any_case else text
        for needle in form.needles:
            at = searched.find(needle)
            while at != -1:
                match = form.pattern.match(text, at - form.back) if at >= form.back else None
                if match and form.accepted(match):
                    yield Span(*_secret_span(match), form.rule)
                at = searched.find(needle, match.end() if match else at + 1)
    if "://" in text and "@" in text:
        # The password in `scheme://user:password@host`: up to the last `@` before the host.
        for match in _URL_PASSWORD.finditer(text):
            start, end = match.span("secret")
            at = text.rfind("@", start, end)
            # A placeholder is no secret, and `@sha256:` begins the digest of a container image.
            if at > start and text[start] not in "$<{[%*" and not text.startswith("sha256:", at + 1):
                yield Span(start, at, "url-password")
    if PRIVATE_KEY_MARKS[0] in text:
        yield from _find_private_keys(text)
    if PRIVATE_KEY_MARKS[1] in text:
        for match in _PUTTY_LINES.finditer(text):
            yield Span(*match.span("secret"), "private-key")


def _find_shapes(text: str) -> Iterator[Span]:
    for shape in SHAPE_PATTERNS:
        for match in shape.pattern.finditer(text):
            if shape.accepted(match):
                yield Span(*match.span(), shape.rule)


def _to_lower(text: str) -> str:
    """Lower case of the same length. Only the capital dotted I of Turkish would become two characters."""
    return text.replace("\u0130", "i").lower()


def _secret_span(match: re.Match[str]) -> tuple[int, int]:
    if match.re.groupindex and match["secret"] is not None:
        return match.span("secret")
    return match.span()


def _secret_text(match: re.Match[str]) -> str:
    start, end = _secret_span(match)
    return match.string[start:end]


_URL_PASSWORD = lazy_pattern(r"://[^\s/?#:@\"'<>\\]{0,128}:(?P<secret>[^\s/?#\"'<>\\]{1,512}+)")


_PEM_BEGIN = lazy_pattern(r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END_MARK = "-----END "
_PEM_END_LINE = lazy_pattern(r"-----END [A-Z0-9 ]{0,48}-----")
_PEM_KEY_TEXT = lazy_pattern(r"[A-Za-z0-9+/=]{16}")
_PEM_BODY = lazy_pattern(r"[A-Za-z0-9+/=\s\\:,.>|-]*+")
_PUTTY_LINES = lazy_pattern(
    r"Private-Lines: [0-9]{1,4}(?:\s|\\[nr]){0,4}+(?P<secret>[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\s\\]*+)"
)

PEM_MAX = 64 * 1024
"""No private key is longer. A block without an END within this distance was cut."""


def _find_private_keys(text: str) -> Iterator[Span]:
    """Find private keys in PEM from BEGIN to END, however the lines between are quoted, numbered or escaped.

    A block without END was cut: it ends with the last character that can belong to a key. BEGIN and END with nothing
    like a key between them are words about keys.
    """
    at, end_mark = 0, -1
    while begin := _PEM_BEGIN.search(text, at):
        if end_mark < begin.end():
            found = text.find(_PEM_END_MARK, begin.end())
            end_mark = len(text) if found == -1 else found
        if end_mark < len(text) and end_mark - begin.end() <= PEM_MAX:
            closing = _PEM_END_LINE.match(text, end_mark)
            end = closing.end() if closing else end_mark + len(_PEM_END_MARK)
            body_end = end_mark
        else:
            end = body_end = _PEM_BODY.match(text, begin.end()).end()  # type: ignore[union-attr]
        if _PEM_KEY_TEXT.search(text, begin.end(), body_end):
            yield Span(begin.start(), end, "private-key")
        at = end
