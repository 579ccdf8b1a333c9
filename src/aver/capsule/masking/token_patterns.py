"""Secrets that are recognised by their own form: key formats, tokens, private keys in PEM, passwords in URLs.

`find_token_spans` finds them. It tries a pattern only where the text contains one of the pattern's `needles`; most
texts contain none. From there a pattern takes a bounded number of steps, or consumes characters that no other match
reads again. So the time is linear for every text. A test parses the patterns and checks this.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator

from aver.capsule.masking import rules_table
from aver.capsule.masking.secret_values import is_secret_value
from aver.fast_dataclass import NamedTuple
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
_PREFIXED_MARK = _SHAPE_MARK._replace(rule="prefixed-key")
"""Stands for the keys of unknown vendors: a prefix, `_` or `-`, and a long text that looks random."""

PREFIXED_MIN, PREFIXED_MAX = 32, 512
"""Characters of the random part of such a key. A longer one is data."""

_PREFIXED_RUN = lazy_pattern(r"[A-Za-z0-9_-]{35,}+")
_PREFIX = lazy_pattern(r"(?:(?<=\\)[nrt])?(?:[A-Z]?[a-z][a-z0-9]{0,15}[_-]|[A-Z][A-Z0-9]{1,15}[_-]){1,4}")
_ONE_SORT = lazy_pattern(r"[a-z]++|[A-Z]++|[0-9]++")
_ONLY_HEX = lazy_pattern(r"[a-f0-9_-]*+|[A-F0-9_-]*+")
_PLAIN_PREFIXES = frozenset(rules_table.PLAIN_PREFIXES)
_PREFIXED_DIGITS_MIN, _PREFIXED_PARTS_MIN = 3, 8
"""Each such key has at least so many digits, and changes so often between small letters, capitals and digits."""


PRIVATE_KEY_MARKS = ("PRIVATE KEY", "Private-Lines:")
"""Every private key has one of these before it."""

KEY_RUN_MIN = 15
"""Every key whose needle has only letters, digits, hyphens and underscores contains the needle in a run of at least
this many such characters, except for the `split_needles` of `rules.toml`. A test checks this for every pattern."""

LEAD_MAX = 6
"""Characters of a run up to the beginning of a key in it: `n`, `3D`, `u003d`, `31m` end an escape, `n-` a diff's."""

LEADING_MAX = max(len(needle) for needle, _ in rules_table.LEADING_NEEDLES)

_RUN_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_RUN_TABLE = bytes(ord("x" if chr(byte) in _RUN_CHARACTERS else " ") for byte in range(256))
_LONG_RUN = b"x" * KEY_RUN_MIN
_DIGEST_CHARACTERS = "0123456789abcdef-"
"""No needle has only these characters, so that digests and ids need not be searched."""
_BEFORE_LEADING_RUN = frozenset((b".", b"/", b"~", b":"))
"""The last characters of the leading needles that do not belong to a run."""
_BEFORE_ESCAPE_END = frozenset((b"\\", b"%", b"[", b";"))
"""The characters before the end of an escape that `_WORD_START` knows."""


def possible_patterns(text: str) -> tuple[TokenPattern, ...]:
    """The patterns that may match somewhere in a text: those with a needle in it, and only with these needles.

    A record has many texts and hardly ever a needle. So the whole record is searched once, written as JSON: no needle
    has a character that JSON escapes. Most needles belong to keys, and a key is always in a long run of characters.
    Other needles are searched in groups, each by a guard that all of a group contain.
    """
    found, marks = _find_in_runs(text.encode("utf-8", "surrogatepass"))
    for searched, groups in ((text, rules_table.TEXT_NEEDLES), (_to_lower(text), rules_table.WORD_NEEDLES)):
        for guard, needles in groups:
            if guard in searched:
                found += [each for each in needles if each[0] in searched]
    if not found:
        return marks
    by_pattern: dict[int, list[str]] = {}
    for needle, number in dict.fromkeys(found):
        by_pattern.setdefault(number, []).append(needle)
    forms = [TOKEN_PATTERNS[number]._replace(needles=tuple(by_pattern[number])) for number in sorted(by_pattern)]
    return (*forms, *marks)


def _find_in_runs(written: bytes) -> tuple[list[tuple[str, int]], tuple[TokenPattern, ...]]:
    """Find the needles of keys in long runs of characters, and which sorts of keys without a needle there may be."""
    # Searching a copy that has one letter for all characters of a run is fast.
    shape = written.translate(_RUN_TABLE)
    found, has_shape, has_prefixed, end = list[tuple[str, int]](), False, False, 0
    while (start := shape.find(_LONG_RUN, end)) != -1:
        space = shape.find(b" ", start)
        end = len(shape) if space == -1 else space
        before = written[start - 1 : start] if start else b""
        if before in _BEFORE_LEADING_RUN:
            window = written[max(start - LEADING_MAX, 0) : end].decode("ascii", "replace")
            found += [each for each in rules_table.LEADING_NEEDLES if each[0] in window]
        run = written[start:end].decode("ascii")
        if not run.strip(_DIGEST_CHARACTERS):
            continue
        found += [each for each in rules_table.INNER_NEEDLES if each[0] in run]
        # A key begins with its run, or right behind an escape or a hyphen.
        for offset in range(LEAD_MAX if before in _BEFORE_ESCAPE_END or run[0] == "-" else 1):
            for each in rules_table.BEGINNING_NEEDLES.get(run[offset : offset + 2], ()):
                if run.startswith(each[0], offset):
                    found.append(each)
            has_shape = has_shape or _may_have_shape(written, start + offset, end)
        has_prefixed = has_prefixed or _may_be_prefixed(run)
    return found, (*[_SHAPE_MARK] * has_shape, *[_PREFIXED_MARK] * has_prefixed)


def _may_have_shape(written: bytes, begin: int, end: int) -> bool:
    """Whether a key without a needle may begin here, where its run ends there."""
    for shape in SHAPE_PATTERNS:
        has_length = end - begin in shape.lengths
        if has_length and chr(written[begin]) in shape.begins and written.startswith(shape.follows.encode(), end):
            return True
    return False


def _may_be_prefixed(run: str) -> bool:
    """Whether a run may hold the key of an unknown vendor. The run can have the end of an escape before it."""
    if len(run) <= PREFIXED_MIN or not ("_" in run or "-" in run):
        return False
    digits = len(run) - len(run.translate(_WITHOUT_DIGITS))
    return digits >= _PREFIXED_DIGITS_MIN and len(_ONE_SORT.findall(run)) >= _PREFIXED_PARTS_MIN


_WITHOUT_DIGITS = dict.fromkeys(map(ord, "0123456789"))


ALL_PATTERNS = (*TOKEN_PATTERNS, _SHAPE_MARK, _PREFIXED_MARK)


def find_token_spans(text: str, among: Iterable[TokenPattern] = ALL_PATTERNS) -> Iterator[Span]:
    """Find every secret that has a form of its own. Spans may overlap."""
    lower = _to_lower(text) if among else ""
    for form in among:
        if form is _SHAPE_MARK:
            yield from _find_shapes(text)
            continue
        if form is _PREFIXED_MARK:
            yield from _find_prefixed(text)
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


def _find_prefixed(text: str) -> Iterator[Span]:
    """Find the keys of unknown vendors. The prefix stays: it says whose key it was."""
    for run in _PREFIXED_RUN.finditer(text):
        # Base64 and digests are cut at other characters, so their parts look like such keys.
        before = text[max(run.start() - 7, 0) : run.start()]
        if before.endswith(("+", ".")) or before in _DIGEST_SIGNS:
            continue
        prefix = _PREFIX.match(text, run.start(), run.end())
        if prefix is None or _PLAIN_PREFIXES.intersection(_SEPARATOR.split(prefix[0].lower())):
            continue
        if looks_like_key(text[prefix.end() : run.end()]):
            yield Span(prefix.end(), run.end(), "prefixed-key")


_SEPARATOR = lazy_pattern("[_-]")
_DIGEST_SIGNS = ("sha256=", "sha384=", "sha512=", "sha256:", "sha512:", "sha384:")


def looks_like_key(text: str) -> bool:
    """Whether a long text is random, as far as one can see: no name, no number, no digest and no id.

    Random texts change between small letters, capitals and digits about every other character, and repeat few of them.
    """
    core = text.replace("_", "").replace("-", "")
    size, marks = len(core), len(text) - len(core)
    if not PREFIXED_MIN <= size <= PREFIXED_MAX or core.isupper() or _ONLY_HEX.fullmatch(core):
        return False
    digits, parts = size - len(core.translate(_WITHOUT_DIGITS)), len(_ONE_SORT.findall(core))
    if core.islower():  # A name of small letters has words, and marks between them.
        return digits >= 4 and not marks and parts >= size / 4 and len(set(core)) >= 16
    return digits >= _PREFIXED_DIGITS_MIN and marks <= size / 8 and parts >= 0.4 * size and len(set(core)) >= 20


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
