"""What secrets look like by themselves: published key formats, tokens, private keys in PEM, credentials in URLs.

`forms_in(text)` finds them. A form is looked for where one of its `needles` stands, and nowhere else; most texts have
none. From there a pattern takes a bounded number of steps, or runs over characters that no other match will run over
again: because they were consumed, or because a form begins only where a run of such characters begins. So the time is
linear in the text, whatever the text; a test reads the patterns and holds them to this.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

__all__ = ["FORMS", "KEY_RUN", "MARKS", "Form", "Span", "forms_in", "forms_possible"]


class Span(NamedTuple):
    """Where a secret stands in a text, and by which rule it is one."""

    start: int
    end: int
    rule: str


class Shape:
    """A pattern that is compiled when it is first tried: needles are rare, and compiling them all takes long."""

    __slots__ = ("_compiled", "flags", "pattern")

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self.pattern = pattern
        self.flags = flags
        self._compiled: re.Pattern[str] | None = None

    def match(self, text: str, at: int) -> re.Match[str] | None:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self.flags)
        return self._compiled.match(text, at)


def _always(_: re.Match[str]) -> bool:
    return True


class Form(NamedTuple):
    """One way to recognise a secret. What the group `secret` holds is masked, or else the whole match."""

    rule: str
    needles: tuple[str, ...]
    """What a match has `back` characters after its beginning; in lower case if the pattern ignores case."""
    pattern: Shape
    accepted: Callable[[re.Match[str]], bool]
    back: int = 0
    any_case: bool = False


# A key begins where a word does, or right after an escape: `\n` and `%3D` are how a line or a value begins in text
# that was quoted once more, `[31m` is how a colour ends on a terminal, `-` is how a line begins that a diff removes.
_START = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=(?m:^)-)|(?<=\\n-)"
    r"|(?<=\[m)|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m))"
)
_END = r"(?![A-Za-z0-9_-])"


def _key(
    rule: str, needles: str, pattern: str, accepted: Callable[[re.Match[str]], bool] = _always, *, back: int = 0
) -> Form:
    return Form(rule, tuple(needles.split()), Shape(f"{_START}(?:{pattern})", re.ASCII), accepted, back)


def _words(rule: str, needles: str, pattern: str, accepted: Callable[[re.Match[str]], bool] = _always) -> Form:
    """A form that begins with words in whatever case."""
    return Form(rule, tuple(needles.split()), Shape(pattern, re.ASCII | re.IGNORECASE), accepted, any_case=True)


def _has_digit(match: re.Match[str]) -> bool:
    return any(character.isdigit() for character in _secret(match))


def _looks_random(match: re.Match[str]) -> bool:
    """Digits, small and capital letters: `sk-` also begins the names of styles and places."""
    text = _secret(match)
    return _has_digit(match) and not text.islower() and any(character.isupper() for character in text)


def _is_basic_credentials(match: re.Match[str]) -> bool:
    """`Basic` is a word too. What follows is credentials if it decodes to `user:password`."""
    encoded = _secret(match).rstrip("=")
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except ValueError:
        return False
    return ":" in decoded and decoded.isprintable()


def _is_no_reference(match: re.Match[str]) -> bool:
    """`$TOKEN`, `${TOKEN}`, `{token}`, `<token>` and `***` stand for a secret; they are none."""
    return _secret(match)[0] not in "$<{[%*"


def _is_header_value(match: re.Match[str]) -> bool:
    """`Authorization: Token abc`, and not `Authorization: required before anything else`."""
    known = (match["scheme"] or "").lower() in ("bearer", "basic", "token", "digest", "apikey")
    return _is_no_reference(match) and (known or _has_digit(match))


FORMS: tuple[Form, ...] = (
    # clouds
    _key("aws-key", "AKIA ASIA ABIA ACCA", rf"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}"),
    _key(
        "google-key",
        "AIza ya29. GOCSPX-",
        rf"AIza[A-Za-z0-9_-]{{35}}{_END}|ya29\.[A-Za-z0-9_-]{{20,}}+|GOCSPX-[A-Za-z0-9_-]{{24,}}+",
    ),
    _key("azure-key", "Q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", back=4),
    _key("cloud-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}+", back=14),
    _key(
        "cloud-token",
        "doo_v1_ dop_v1_ dor_v1_ dapi hvs. hvb. hvr. dp.pt. dp.st. dp.ct. dp.sa. tskey- pscale_ sbp_ HRKU-",
        r"do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|hv[sbr]\.[A-Za-z0-9_-]{24,}+|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{40,}+"
        r"|tskey-[a-z]{1,20}-[A-Za-z0-9-]{16,}+|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_-]{32,}+|sbp_[a-f0-9]{40}"
        r"|HRKU-[A-Za-z0-9_-]{36,}+",
    ),
    # where source is kept
    _key(
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9_]{22,}+",
    ),
    _key(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- gloas-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[A-Za-z0-9_-]{20,}+",
    ),
    _key("atlassian-token", "ATBB ATATT3", r"ATBB[A-Za-z0-9]{28,}+|ATATT3[A-Za-z0-9_-]{50,}+=?[A-Z0-9]{0,16}"),
    # people talking
    _key(
        "slack-token",
        "xox xapp- hooks.slack.com/services/",
        r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}+|xapp-[0-9]-[A-Za-z0-9-]{20,}+"
        r"|hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,}+)",
    ),
    _key(
        "discord-token",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{1,24}/(?P<secret>[A-Za-z0-9_-]{30,}+)",
    ),
    Form("telegram-token", (":AA",), Shape(rf"(?<=[0-9]{{8}}):AA[A-Za-z0-9_-]{{33}}{_END}", re.UNICODE), _always),
    # models
    _key(
        "llm-key",
        "sk-ant- sk-proj- sk-svcacct- sk-or- sk-lf- gsk_ hf_ r8_ xai- pplx- nvapi- lsv2_",
        r"sk-(?:ant|proj|svcacct|or|lf)-[A-Za-z0-9_-]{20,}+|gsk_[A-Za-z0-9]{40,}+|hf_[A-Za-z0-9]{30,}+"
        r"|r8_[A-Za-z0-9]{37}|xai-[A-Za-z0-9]{40,}+|pplx-[A-Za-z0-9]{40,}+|nvapi-[A-Za-z0-9_-]{40,}+"
        r"|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}",
        _has_digit,
    ),
    _key("llm-key", "sk-", r"sk-[A-Za-z0-9_-]{20,}+", _looks_random),
    # money
    _key(
        "payment-key",
        "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sq0atp- sq0csp- shpat_ shpca_ shppa_ shpss_ access_token$produc",
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/]{24,}+=?=?|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}+"
        r"|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|access_token\$production\$[a-z0-9]{16}\$[a-f0-9]{32}",
    ),
    # packages
    _key(
        "registry-token",
        "npm_ pypi- rubygems_ dckr_pat_ dckr_oat_ oy2 cio",
        rf"npm_[A-Za-z0-9]{{36}}{_END}|pypi-[A-Za-z0-9_-]{{50,}}+|rubygems_[a-f0-9]{{48}}"
        rf"|dckr_[po]at_[A-Za-z0-9_-]{{27,}}+|oy2[a-z0-9]{{43}}{_END}|cio[A-Za-z0-9]{{32}}{_END}",
        _has_digit,
    ),
    # services
    _key(
        "service-key",
        "SG. key- SK lin_api_ ntn_ secret_ NRAK- glsa_ sntrys_ sntryu_ figd_ PMAK-",
        rf"SG\.[A-Za-z0-9_-]{{16,32}}\.[A-Za-z0-9_-]{{32,64}}{_END}|key-[a-f0-9]{{32}}{_END}|SK[a-f0-9]{{32}}{_END}"
        r"|lin_api_[A-Za-z0-9]{40}|ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}|NRAK-[A-Z0-9]{27}"
        r"|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|sntry[su]_[A-Za-z0-9_-]{40,}+=?=?|figd_[A-Za-z0-9_-]{40,}+"
        r"|PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
        _has_digit,
    ),
    # what standards define
    _key("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    _key("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    _words("bearer", "bearer", r"bearer(?:\s|%20|\+){1,4}+(?P<secret>[A-Za-z0-9._~+/-]{12,}+=*+)", _has_digit),
    _words("basic-credentials", "basic", r"basic\s{1,4}+(?P<secret>[A-Za-z0-9+/]{6,}+={0,2})", _is_basic_credentials),
    _words(
        "authorization",
        "authorization",
        r"authorization\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?"
        r"(?:(?P<scheme>[a-z][a-z0-9-]{0,31}+) {1,4}+)?(?P<secret>[^\s\"',\\]{6,}+)",
        _is_header_value,
    ),
    _words(
        "cookie",
        "cookie",
        r"cookie2?\\{0,4}[\"']?\s{0,4}:\s{0,4}\\{0,4}[\"']?(?P<secret>[a-z0-9_.!#%&*+^|~-]{1,128}+=[^\r\n\"'\\]{2,}+)",
    ),
    _words("signed-url", "sig= signature=", r"(?:sig|signature)=(?P<secret>[A-Za-z0-9%+/_=-]{40,}+)"),
    # commands and files
    _words("netrc", "login", r"login\s{1,8}+\S{1,128}+\s{1,8}+password\s{1,8}+(?P<secret>\S++)", _is_no_reference),
    _words(
        "command-credentials",
        "curl",
        r"curl [^\n]{0,120}?(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,64}+:(?P<secret>[^\s\"'@]{1,256}+)",
        _is_no_reference,
    ),
)


MARKS = ("PRIVATE KEY", "Private-Lines:")
"""One of these stands before every private key."""

KEY_RUN = 15
"""Letters, digits, hyphens and underscores that stand together in every key whose needle consists of such, and the
needle among them; but for those in `_PIECED`. A test holds this to every form."""

_PIECED = ("eyJ", "whsec_")
"""Needles of keys that may consist of shorter runs."""

_RUN_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_SHAPE = bytes(ord("x" if chr(byte) in _RUN_CHARACTERS else " ") for byte in range(256))
_LONG = b"x" * KEY_RUN
_OF_DIGESTS = b"0123456789abcdef-"
"""No needle consists of these alone: digests and ids are seen through at once."""


def forms_possible(text: str) -> tuple[Form, ...]:
    """The forms that something in a text may have: those of which a needle stands in it where it could matter.

    A record has many texts and hardly ever a needle. So it is looked through once, written as JSON: no needle has a
    character that JSON escapes. Most needles are those of keys, and only what is in a long run can be one.
    """
    lower, runs = _lower(text), _long_runs(text)
    found = [at for needle, at in _OF_RUNS if needle in runs] if runs else []
    found += [at for needle, at in _OF_TEXTS if needle in text]
    found += [at for needle, at in _OF_WORDS if needle in lower]
    return tuple(FORMS[at] for at in sorted(set(found))) if found else ()


def _long_runs(text: str) -> str:
    """All that may be in a key. Looking for them in the text's shape takes no step for most characters."""
    written = text.encode("utf-8", "surrogatepass")
    shape = written.translate(_SHAPE)
    runs, end = [], 0
    while (start := shape.find(_LONG, end)) != -1:
        found = shape.find(b" ", start)
        end = len(shape) if found == -1 else found
        if written[start:end].strip(_OF_DIGESTS):
            runs.append(written[start:end])
    return b" ".join(runs).decode("ascii")


_NEEDLES = [(needle, at) for at, form in enumerate(FORMS) for needle in form.needles]
_OF_WORDS = [(needle, at) for needle, at in _NEEDLES if FORMS[at].any_case]
_OF_RUNS = [
    (needle, at)
    for needle, at in _NEEDLES
    if not FORMS[at].any_case and needle not in _PIECED and _RUN_CHARACTERS.issuperset(needle)
]
_OF_TEXTS = [each for each in _NEEDLES if each not in (*_OF_WORDS, *_OF_RUNS)]


def forms_in(text: str, among: Iterable[Form] = FORMS) -> Iterator[Span]:
    """Every secret that is recognised by its own form. Spans may overlap."""
    lower = _lower(text) if among else ""
    for form in among:
        searched = lower if form.any_case else text
        for needle in form.needles:
            at = searched.find(needle)
            while at != -1:
                match = form.pattern.match(text, at - form.back) if at >= form.back else None
                if match and form.accepted(match):
                    yield Span(*_span(match), form.rule)
                at = searched.find(needle, match.end() if match else at + 1)
    if "://" in text and "@" in text:
        yield from _url_passwords(text)
    if MARKS[0] in text:
        yield from _private_key_blocks(text)
    if MARKS[1] in text:
        for match in _PUTTY_LINES.finditer(text):
            yield Span(*match.span("secret"), "private-key")


def _lower(text: str) -> str:
    """In lower case, character by character. Only one character becomes two, the capital dotted I of Turkish."""
    return text.replace("\u0130", "i").lower()


def _span(match: re.Match[str]) -> tuple[int, int]:
    if match.re.groupindex and match["secret"] is not None:
        return match.span("secret")
    return match.span()


def _secret(match: re.Match[str]) -> str:
    start, end = _span(match)
    return match.string[start:end]


_URL_PASSWORD = re.compile(r"://[^\s/?#:@\"'<>\\]{0,128}:(?P<secret>[^\s/?#\"'<>\\]{1,512}+)")


def _url_passwords(text: str) -> Iterator[Span]:
    """`scheme://user:password@host`: the password alone, up to the last `@` before the host."""
    for match in _URL_PASSWORD.finditer(text):
        start, end = match.span("secret")
        at = text.rfind("@", start, end)
        if at > start and text[start] not in "$<{[%*" and not text.startswith("sha256:", at + 1):
            yield Span(start, at, "url-password")


_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_END_MARK = "-----END "
_END_LINE = re.compile(r"-----END [A-Z0-9 ]{0,48}-----")
_KEY_TEXT = re.compile(r"[A-Za-z0-9+/=]{16}")
_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,.>|-]*+")
_PUTTY_LINES = re.compile(
    r"Private-Lines: [0-9]{1,4}(?:\s|\\[nr]){0,4}+(?P<secret>[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\s\\]*+)"
)

PEM_MAX = 64 * 1024
"""No private key is longer. A block whose end is farther away has lost it, and counts as far as it looks like one."""


def _private_key_blocks(text: str) -> Iterator[Span]:
    """Private keys in PEM, whole: from BEGIN to END, however the lines between are quoted, numbered or escaped.

    A block without an end was cut, and what follows BEGIN and can belong to a key is taken. BEGIN and END without
    anything like a key between are words about keys.
    """
    at, end_mark = 0, -1
    while begin := _BEGIN.search(text, at):
        if end_mark < begin.end():
            found = text.find(_END_MARK, begin.end())
            end_mark = len(text) if found == -1 else found
        if end_mark < len(text) and end_mark - begin.end() <= PEM_MAX:
            closing = _END_LINE.match(text, end_mark)
            end = closing.end() if closing else end_mark + len(_END_MARK)
            body_end = end_mark
        else:
            end = body_end = _BODY.match(text, begin.end()).end()  # type: ignore[union-attr]
        if _KEY_TEXT.search(text, begin.end(), body_end):
            yield Span(begin.start(), end, "private-key")
        at = end
