"""Which texts can be compared, and how a value is found in a text.

The user's words and the results of tools may be built to be read wrongly: letters that look like others, characters
without width, values that are split or encoded. Aver repairs none of that. A value is in a text only if it stands there
as it is, but for upper and lower case and the kind of white space, and if the characters around it are not part of a
longer name:

    >>> contains_value("mail john@shop.example, please", "john@shop.example")
    True
    >>> contains_value("mail john@shop.example.org", "john@shop.example")
    False

A value with characters that cannot be compared safely (`is_plain`) is in no text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from aver.lazy_pattern import lazy_pattern

VALUE_MAX = 512
"""Characters of a value that is looked for. Longer texts are content, and nobody names them."""

TEXT_MAX = 256 * 1024
"""Characters of one text that are looked at. What stands behind them has no origin."""

_JOINING = frozenset("._-@+/\\%#&=~:")
"""Characters that make one name of what stands on both sides of them."""

_TOKEN = lazy_pattern(r"[^\s,;!?\"'`()\[\]{}<>|*]+")
_END = "._-@+/\\%#&=~:"
_ADDRESS = lazy_pattern(
    r"[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+"
    r"|(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s,;\"'`()\[\]{}<>|*]{1,2000}"
    r"|(?<![a-z0-9])[a-z]{2}[0-9]{2}[a-z0-9]{10,30}(?![a-z0-9])",
    re.IGNORECASE,
)
"""E-mail addresses, links and account numbers: names of others that anyone can write."""


def word_set(words: str) -> frozenset[str]:
    """Return a table of words that is written as one text."""
    return frozenset(words.split())


@lru_cache(maxsize=4096)
def is_plain(value: str) -> bool:
    """Whether a value can be compared: it is in its normal form, all of it is visible, and each word has one script."""
    if not value or len(value) > VALUE_MAX or not value.strip():
        return False
    if value.isascii():
        return value.isprintable()
    if unicodedata.normalize("NFKC", value) != value:
        return False
    for word in value.split():
        scripts = set()
        for character in word:
            # Cc, Cf, Co, Cs, Cn: controls, marks without width, and characters that nobody has assigned.
            if unicodedata.category(character)[0] == "C":
                return False
            if character.isalpha():
                scripts.add(unicodedata.name(character, "?").partition(" ")[0])
        if len(scripts) > 1:
            return False
    return True


@lru_cache(maxsize=256)
def fold(text: str) -> str:
    """Return a text for comparing: lower case, and one space for each run of white space.

    `str.casefold` would go too far: it makes `ss` of `ß`, and the two are letters of different domains.
    """
    return " ".join(text[:TEXT_MAX].lower().split())


def contains_value(text: str, value: str) -> bool:
    """Whether a value stands in a text, as a name of its own."""
    return is_plain(value) and find_folded(fold(text), fold(value)) >= 0


def find_folded(text: str, value: str) -> int:
    """Return where a value stands in a text, as a name of its own; -1 if it does not. Both are folded."""
    start = text.find(value) if value else -1
    while start >= 0:
        if _is_free(text, start - 1, -1) and _is_free(text, start + len(value), 1):
            return start
        start = text.find(value, start + 1)
    return -1


def _is_free(text: str, index: int, step: int) -> bool:
    """Whether the name ends here: what stands at `index` does not go on with it."""
    if not 0 <= index < len(text):
        return True
    character = text[index]
    if character.isalnum() or unicodedata.category(character)[0] in "CM":
        return False
    if character not in _JOINING:
        return True
    # A dot at the end of a sentence joins nothing: what follows it is a space, or nothing.
    beyond = index + step
    return not 0 <= beyond < len(text) or not (text[beyond].isalnum() or text[beyond] in _JOINING)


def split_tokens(text: str) -> set[str]:
    """Return the names in a text, folded, without the punctuation at their ends."""
    return {token for found in _TOKEN.findall(text[:TEXT_MAX]) if (token := found.lower().strip(_END))}


def find_addresses(text: str) -> list[str]:
    """Return the addresses, links and account numbers in a text."""
    return [found.rstrip(".,:") for found in _ADDRESS.findall(text[:TEXT_MAX])]


def has_unclear_address(text: str) -> bool:
    """Whether an address or a link in a text holds characters that cannot be compared, such as one without width."""
    if text.isascii():
        return False
    return any(
        ("@" in found or "://" in found) and not is_plain(found)
        for found in _TOKEN.findall(text[:TEXT_MAX])
        if not found.isascii() and len(found) <= VALUE_MAX
    )


def is_address(value: str) -> bool:
    """Whether a value is an address, a link or an account number."""
    return _ADDRESS.fullmatch(value.strip()) is not None or "@" in value or "://" in value
