"""The annotations of rules that say more than yes or no: `@patch` and `@code`. Pure.

A rule that decides about a request may demand that the request is changed before it is carried out:

    @patch("REDACT")                                      secrets in its texts are masked
    @patch("CLAMP_LEN 256")                               its text is cut to so many characters
    @patch("REWRITE_DOMAIN_TO_PROXY proxy.example.org")   it goes to this host instead

A forbid may name the reason code that the caller of the gateway gets:

    @code("DOMAIN_NOT_ALLOWED")                           upper-case letters and underscores

Only these spellings are accepted: one blank, no sign and no leading zero, a host in lower case. So two patches are the
same if their texts are. The gateway applies patches. This module has the grammar, for the rules and for the gateway.

    >>> parse_patch("CLAMP_LEN 256")
    RulePatch(word='CLAMP_LEN', length=256, host='')
    >>> parse_patch("CLAMP_LEN 256").text
    'CLAMP_LEN 256'
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.effects.intents import normalise_authority

PatchWord = Literal["REDACT", "CLAMP_LEN", "REWRITE_DOMAIN_TO_PROXY"]
PATCH_WORDS: tuple[str, ...] = get_args(PatchWord)

LENGTH_MAX = 999_999
"""Largest length that a text can be cut to. A longer text is a file."""

CODE_MAX = 64
"""Longest code, in characters."""

_matches_length = re.compile(r"[1-9][0-9]{0,5}").fullmatch
_matches_code = re.compile(rf"[A-Z][A-Z_]{{0,{CODE_MAX - 1}}}").fullmatch


@dataclass(frozen=True, slots=True)
class RulePatch:
    """A patch that a rule demands."""

    word: PatchWord
    length: int = 0
    """For `CLAMP_LEN`: the characters that are left."""
    host: str = ""
    """For `REWRITE_DOMAIN_TO_PROXY`: where the request goes instead."""

    @property
    def text(self) -> str:
        """The patch as the annotation writes it."""
        return f"{self.word} {self.length or self.host}".removesuffix(" ")


def parse_patch(text: str) -> RulePatch:
    """Read the text of `@patch`. Raises `BadInput`, which says what is wrong with it."""
    word, _, rest = text.partition(" ")
    if word == "REDACT" and text == word:
        return RulePatch("REDACT")
    if word == "CLAMP_LEN" and _matches_length(rest):
        return RulePatch("CLAMP_LEN", length=int(rest))
    if word == "REWRITE_DOMAIN_TO_PROXY" and normalise_authority(rest) == rest:
        return RulePatch("REWRITE_DOMAIN_TO_PROXY", host=rest)
    shown = ascii(text)[:120]
    if word not in PATCH_WORDS:
        raise BadInput(f"{shown} is not a patch: it begins with one of {', '.join(PATCH_WORDS)}")
    wanted = {
        "REDACT": "REDACT stands alone",
        "CLAMP_LEN": f"CLAMP_LEN takes a whole number from 1 to {LENGTH_MAX}",
        "REWRITE_DOMAIN_TO_PROXY": "REWRITE_DOMAIN_TO_PROXY takes a host in lower-case ASCII, without port 443",
    }[word]
    raise BadInput(f"{shown} is not a patch: {wanted}")


def check_code(text: str) -> str:
    """Return the text of `@code`. Raises `BadInput` where it is no code."""
    if _matches_code(text) is None:
        shown = ascii(text)[:120]
        raise BadInput(f"{shown} is not a code: at most {CODE_MAX} upper-case letters and underscores")
    return text
