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
_WORD_END = r"(?![A-Za-z0-9_-])"


def _key_pattern(
    rule: str, needles: str, pattern: str, accepted: Callable[[re.Match[str]], bool] = _accept_any, *, back: int = 0
) -> TokenPattern:
    return TokenPattern(
        rule, tuple(needles.split()), lazy_pattern(f"{_WORD_START}(?:{pattern})", re.ASCII), accepted, back
    )


def _word_pattern(
    rule: str, needles: str, pattern: str, accepted: Callable[[re.Match[str]], bool] = _accept_any
) -> TokenPattern:
    """A pattern that begins with a word in any case."""
    return TokenPattern(
        rule, tuple(needles.split()), lazy_pattern(pattern, re.ASCII | re.IGNORECASE), accepted, any_case=True
    )


def _has_digit(match: re.Match[str]) -> bool:
    return any(character.isdigit() for character in _secret_text(match))


def _looks_random(match: re.Match[str]) -> bool:
    """Whether it has digits, small and capital letters. `sk-` also begins the names of styles and places."""
    text = _secret_text(match)
    return _has_digit(match) and not text.islower() and any(character.isupper() for character in text)


def _is_basic_credentials(match: re.Match[str]) -> bool:
    """Whether the text after `Basic` decodes to `user:password`. `Basic` is an ordinary word, too."""
    encoded = _secret_text(match).rstrip("=")
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


TOKEN_PATTERNS: tuple[TokenPattern, ...] = (
    # clouds
    _key_pattern("aws-key", "AKIA ASIA ABIA ACCA", rf"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_WORD_END}"),
    _key_pattern(
        "google-key",
        "AIza ya29. GOCSPX-",
        rf"AIza[A-Za-z0-9_-]{{35}}{_WORD_END}|ya29\.[A-Za-z0-9_-]{{20,}}+|GOCSPX-[A-Za-z0-9_-]{{24,}}+",
    ),
    _key_pattern("azure-key", "Q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", back=4),
    _key_pattern("cloud-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}+", back=14),
    _key_pattern(
        "cloud-token",
        "doo_v1_ dop_v1_ dor_v1_ dapi hvs. hvb. hvr. dp.pt. dp.st. dp.ct. dp.sa. tskey- pscale_ sbp_ HRKU-",
        r"do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|hv[sbr]\.[A-Za-z0-9_-]{24,}+|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{40,}+"
        r"|tskey-[a-z]{1,20}-[A-Za-z0-9-]{16,}+|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_-]{32,}+|sbp_[a-f0-9]{40}"
        r"|HRKU-[A-Za-z0-9_-]{36,}+",
    ),
    # source code hosts
    _key_pattern(
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9_]{22,}+",
    ),
    _key_pattern(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- gloas-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[A-Za-z0-9_-]{20,}+",
    ),
    _key_pattern("atlassian-token", "ATBB ATATT3", r"ATBB[A-Za-z0-9]{28,}+|ATATT3[A-Za-z0-9_-]{50,}+=?[A-Z0-9]{0,16}"),
    # chat
    _key_pattern(
        "slack-token",
        "xox xapp- hooks.slack.com/services/",
        r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}+|xapp-[0-9]-[A-Za-z0-9-]{20,}+"
        r"|hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,}+)",
    ),
    _key_pattern(
        "discord-token",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{1,24}/(?P<secret>[A-Za-z0-9_-]{30,}+)",
    ),
    TokenPattern(
        "telegram-token",
        (":AA",),
        lazy_pattern(rf"(?<=[0-9]{{8}}):AA[A-Za-z0-9_-]{{33}}{_WORD_END}", re.UNICODE),
        _accept_any,
    ),
    # models
    _key_pattern(
        "llm-key",
        "sk-ant- sk-proj- sk-svcacct- sk-or- sk-lf- gsk_ hf_ r8_ xai- pplx- nvapi- lsv2_",
        r"sk-(?:ant|proj|svcacct|or|lf)-[A-Za-z0-9_-]{20,}+|gsk_[A-Za-z0-9]{40,}+|hf_[A-Za-z0-9]{30,}+"
        r"|r8_[A-Za-z0-9]{37}|xai-[A-Za-z0-9]{40,}+|pplx-[A-Za-z0-9]{40,}+|nvapi-[A-Za-z0-9_-]{40,}+"
        r"|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}",
        _has_digit,
    ),
    _key_pattern("llm-key", "sk-", r"sk-[A-Za-z0-9_-]{20,}+", _looks_random),
    # payment
    _key_pattern(
        "payment-key",
        "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sq0atp- sq0csp- shpat_ shpca_ shppa_ shpss_ access_token$produc",
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/]{24,}+=?=?|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}+"
        r"|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|access_token\$production\$[a-z0-9]{16}\$[a-f0-9]{32}",
    ),
    # packages
    _key_pattern(
        "registry-token",
        "npm_ pypi- rubygems_ dckr_pat_ dckr_oat_ oy2 cio",
        rf"npm_[A-Za-z0-9]{{36}}{_WORD_END}|pypi-[A-Za-z0-9_-]{{50,}}+|rubygems_[a-f0-9]{{48}}"
        rf"|dckr_[po]at_[A-Za-z0-9_-]{{27,}}+|oy2[a-z0-9]{{43}}{_WORD_END}|cio[A-Za-z0-9]{{32}}{_WORD_END}",
        _has_digit,
    ),
    # services
    _key_pattern(
        "service-key",
        "SG. key- SK lin_api_ ntn_ secret_ NRAK- glsa_ sntrys_ sntryu_ figd_ PMAK-",
        rf"SG\.[A-Za-z0-9_-]{{16,32}}\.[A-Za-z0-9_-]{{32,64}}{_WORD_END}|key-[a-f0-9]{{32}}{_WORD_END}|SK[a-f0-9]{{32}}{_WORD_END}"
        r"|lin_api_[A-Za-z0-9]{40}|ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}|NRAK-[A-Z0-9]{27}"
        r"|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|sntry[su]_[A-Za-z0-9_-]{40,}+=?=?|figd_[A-Za-z0-9_-]{40,}+"
        r"|PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
        _has_digit,
    ),
    # standards
    _key_pattern("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    _key_pattern("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    _word_pattern("bearer", "bearer", r"bearer(?:\s|%20|\+){1,4}+(?P<secret>[A-Za-z0-9._~+/-]{12,}+=*+)", _has_digit),
    _word_pattern(
        "basic-credentials", "basic", r"basic\s{1,4}+(?P<secret>[A-Za-z0-9+/]{6,}+={0,2})", _is_basic_credentials
    ),
    _word_pattern(
        "authorization",
        "authorization",
        r"authorization\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?"
        r"(?:(?P<scheme>[a-z][a-z0-9-]{0,31}+) {1,4}+)?(?P<secret>[^\s\"',\\]{6,}+)",
        _is_header_value,
    ),
    _word_pattern(
        "cookie",
        "cookie",
        r"cookie2?\\{0,4}[\"']?\s{0,4}:\s{0,4}\\{0,4}[\"']?(?P<secret>[a-z0-9_.!#%&*+^|~-]{1,128}+=[^\r\n\"'\\]{2,}+)",
    ),
    _word_pattern("signed-url", "sig= signature=", r"(?:sig|signature)=(?P<secret>[A-Za-z0-9%+/_=-]{40,}+)"),
    # commands and files
    _word_pattern(
        "netrc", "login", r"login\s{1,8}+\S{1,128}+\s{1,8}+password\s{1,8}+(?P<secret>\S++)", _is_not_placeholder
    ),
    _word_pattern(
        "command-credentials",
        "curl",
        r"curl [^\n]{0,120}?(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,64}+:(?P<secret>[^\s\"'@]{1,256}+)",
        _is_not_placeholder,
    ),
)


PRIVATE_KEY_MARKS = ("PRIVATE KEY", "Private-Lines:")
"""Every private key has one of these before it."""

KEY_RUN_MIN = 15
"""Every key whose needle has only letters, digits, hyphens and underscores contains the needle in a run of at least
this many such characters, except for `_SPLIT_KEY_NEEDLES`. A test checks this for every pattern."""

_SPLIT_KEY_NEEDLES = ("eyJ", "whsec_")
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
    long_runs, end = [], 0
    while (start := shape.find(_LONG_RUN, end)) != -1:
        space = shape.find(b" ", start)
        end = len(shape) if space == -1 else space
        if written[start:end].strip(_DIGEST_CHARACTERS):
            long_runs.append(written[start:end])
    runs = b" ".join(long_runs).decode("ascii")
    found = [at for needle, at in _RUN_NEEDLES if needle in runs] if runs else []
    found += [at for needle, at in _TEXT_NEEDLES if needle in text]
    found += [at for needle, at in _WORD_NEEDLES if needle in lower]
    return tuple(TOKEN_PATTERNS[at] for at in sorted(set(found))) if found else ()


_NEEDLES = [(needle, at) for at, form in enumerate(TOKEN_PATTERNS) for needle in form.needles]
_WORD_NEEDLES = [(needle, at) for needle, at in _NEEDLES if TOKEN_PATTERNS[at].any_case]
_RUN_NEEDLES = [
    (needle, at)
    for needle, at in _NEEDLES
    if not TOKEN_PATTERNS[at].any_case and needle not in _SPLIT_KEY_NEEDLES and _RUN_CHARACTERS.issuperset(needle)
]
_TEXT_NEEDLES = [each for each in _NEEDLES if each not in (*_WORD_NEEDLES, *_RUN_NEEDLES)]


def find_token_spans(text: str, among: Iterable[TokenPattern] = TOKEN_PATTERNS) -> Iterator[Span]:
    """Find every secret that has a form of its own. Spans may overlap."""
    lower = _to_lower(text) if among else ""
    for form in among:
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
