"""Indicators against a skill: pure functions over the files of a package.

Every file is looked at, also code, binary files and archives, in every way of `aver.gateway.skills.readings`.

    ioc_domain   a host that the operator lists as an indicator of compromise, or a name below it: never installed
    pipe_shell   a download that is piped into a shell or an interpreter
    obfuscation  code that is decoded and run, a long run of base64, or an archive that cannot be looked at whole
    install      further software that the skill would install
    secret       a path where secrets lie

The first sort blocks the skill (`IOC_BLOCKED`). The others are shown to the person who decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from aver.gateway.skills.readings import Reading, TooMuch, fold_text, read_all_ways
from aver.lazy_pattern import lazy_pattern

IOC_DOMAIN = "ioc_domain"

FOUND_MAX = 100
"""Most findings about one package. A person reads no more."""

_LONG_BASE64 = lazy_pattern(r"[A-Za-z0-9+/]{120,}={0,2}")

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
    hosts = [_Host(domain) for domain in sorted(ioc_domains)]
    blocked, doubtful = list[Indicator](), list[Indicator]()
    for path, data in files.items():
        readings, is_whole = _read_file(path, data)
        lower = [Reading(each.text.lower(), each.is_binary) for each in readings]
        blocked += [Indicator(IOC_DOMAIN, path, host.domain) for host in hosts if any(map(host.is_in, lower))]
        signed = [each.text for number, each in enumerate(readings) if number == 0 or not each.is_binary]
        for sort, sign in _SIGNS.items():
            if match := next((found for text in signed if (found := sign.search(text))), None):
                doubtful.append(Indicator(sort, path, match[0][:80]))
        if (run := _LONG_BASE64.search(readings[0].text)) and b"\0" not in data:
            doubtful.append(Indicator("obfuscation", path, f"{len(run[0])} characters of base64"))
        if not is_whole:
            doubtful.append(Indicator("obfuscation", path, "an archive that cannot be looked at whole"))
    return (blocked + doubtful)[:FOUND_MAX]


def _read_file(path: str, data: bytes) -> tuple[list[Reading], bool]:
    """Return the ways to read a file, and its name, and whether these are all."""
    readings = [Reading(fold_text(path), is_binary=False)]
    try:
        for each in read_all_ways(data):
            readings.append(each)
    except TooMuch:
        return readings[1:] + readings[:1], False
    return readings[1:] + readings[:1], True


class _Host:
    """A host of the list, in each of its spellings."""

    def __init__(self, domain: str) -> None:
        self.domain = domain
        host = domain.partition(":")[0]
        self._names = {host, fold_text(_show_unicode(host))}
        names = "|".join(map(re.escape, sorted(self._names)))
        self._pattern = re.compile(rf"(?<![a-z0-9-])(?:{names})(?![a-z0-9-]|\.[a-z0-9-])")

    def is_in(self, reading: Reading) -> bool:
        """Whether a reading in lower case names the host.

        Bytes that are no text may have a letter of something else beside the name.
        """
        text = reading.text
        if not any(name in text for name in self._names):
            return False
        return reading.is_binary or self._pattern.search(text) is not None


def _show_unicode(host: str) -> str:
    """Return the letters that an ASCII name such as `xn--bcher-kva.example` stands for."""
    try:
        return host.encode("ascii").decode("idna")
    except UnicodeError:
        return host
