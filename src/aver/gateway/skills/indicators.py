"""Indicators against a skill: pure functions over the files of a package.

Every file is looked at, also code and binary files, and also inside of base64 and percent encoding.

    ioc_domain   a host that the operator lists as an indicator of compromise, or a name below it: never installed
    pipe_shell   a download that is piped into a shell or an interpreter
    obfuscation  code that is decoded and run, or a long run of base64
    install      further software that the skill would install
    secret       a path where secrets lie

The first sort blocks the skill (`IOC_BLOCKED`). The others are shown to the person who decides.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from aver.lazy_pattern import lazy_pattern

IOC_DOMAIN = "ioc_domain"

FOUND_MAX = 100
"""Most findings about one package. A person reads no more."""

ENCODED_MAX = 1024 * 1024
"""Most characters of one run of base64 that are decoded."""

_BASE64_RUN = lazy_pattern(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_LONG_BASE64 = lazy_pattern(r"[A-Za-z0-9+/]{120,}={0,2}")
_DEFANGED_DOT = lazy_pattern(r"\s?[\[({]\s?(?:\.|dot)\s?[\])}]\s?", re.IGNORECASE)

_SIGNS = {
    "pipe_shell": lazy_pattern(
        r"(?:curl|wget|iwr|invoke-webrequest|fetch)\b[^\n|;&]{0,400}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?(?:sh|python[0-9.]*|perl|node|iex)\b"
        r"|\|\s*(?:ba|z|da|k)?sh\b|\b(?:ba|z)?sh\s+<\(\s*(?:curl|wget)",
        re.IGNORECASE,
    ),
    "obfuscation": lazy_pattern(
        r"base64\s+(?:-d|--decode|-D)|b64decode|frombase64string|atob\(|invoke-expression|\beval\s*\(|\bexec\s*\(\s*(?:base64|zlib|bytes)",
        re.IGNORECASE,
    ),
    "install": lazy_pattern(
        r"\b(?:pip3?|pipx|uv|npm|pnpm|yarn|gem|cargo|go|brew|apt(?:-get)?|dnf|yum|apk)\s+(?:install|add|i|get)\b|chmod\s+\+x",
        re.IGNORECASE,
    ),
    "secret": lazy_pattern(
        r"(?:~|\$HOME|/root|/home/[^/\s]+)/\.(?:ssh|aws|gnupg|kube|netrc|config/gcloud)\b|/etc/shadow|id_(?:rsa|ed25519)\b",
        re.IGNORECASE,
    ),
}


class Indicator(NamedTuple):
    """One thing that speaks against a package: its sort, the file, and what was found there."""

    sort: str
    path: str
    found: str


def find_indicators(files: Mapping[str, bytes], ioc_domains: frozenset[str]) -> list[Indicator]:
    """Look at every file of a package. Indicators of compromise come first."""
    hosts = [(domain, _build_host_pattern(domain)) for domain in sorted(ioc_domains)]
    blocked, doubtful = list[Indicator](), list[Indicator]()
    for path, data in files.items():
        views = list(_show_text(path.encode() + b"\n" + data))
        for domain, pattern in hosts:
            if any(pattern.search(text) for text in views):
                blocked.append(Indicator(IOC_DOMAIN, path, domain))
        for sort, sign in _SIGNS.items():
            if match := next((found for text in views if (found := sign.search(text))), None):
                doubtful.append(Indicator(sort, path, match[0][:80]))
        if (run := _LONG_BASE64.search(views[0])) and b"\0" not in data:
            doubtful.append(Indicator("obfuscation", path, f"{len(run[0])} characters of base64"))
    return (blocked + doubtful)[:FOUND_MAX]


def _build_host_pattern(domain: str) -> re.Pattern[str]:
    host = re.escape(domain.partition(":")[0])
    return re.compile(rf"(?<![a-z0-9-]){host}(?![a-z0-9-]|\.[a-z0-9-])", re.IGNORECASE)


def _show_text(data: bytes) -> Iterator[str]:
    """Return the ways in which a file can be read: as it is, without defanging, and decoded one level deep."""
    text = data.decode("utf-8", "replace")
    yield text
    yield _DEFANGED_DOT.sub(".", text)
    if b"\0" in data:  # Text of two bytes a character, as on Windows.
        yield data.decode("utf-16-le", "replace")
        yield data.decode("utf-16-be", "replace")
        yield data.replace(b"\0", b"").decode("latin-1")
    if "%" in text:
        yield unquote_to_bytes(text).decode("utf-8", "replace")
    for run in _BASE64_RUN.finditer(text):
        word = run[0][:ENCODED_MAX].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            yield base64.b64decode(word[: len(word) // 4 * 4]).decode("utf-8", "replace")
        except binascii.Error:
            continue
