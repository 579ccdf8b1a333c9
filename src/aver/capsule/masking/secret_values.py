"""Values under a name that sounds secret: which of them are plainly no secret.

A value is no secret if it is

* a placeholder: `${TOKEN}`, `<token>`, `***`, `your-api-key-here`
* a type or the beginning of a sentence: `password: string`, `token=None`
* words about the secret: "this field is required"
* a path, for a name that ends with `pwd` or `key`; the name of a method, for one that ends with `hash`
"""

from __future__ import annotations

import re

from aver.capsule.masking.rules_table import PLAIN, PUBLIC
from aver.lazy_pattern import lazy_pattern

_PLAIN_WORDS = frozenset(PLAIN)

_PLACEHOLDER = lazy_pattern(
    r"<[^<>]*>|\$?\{.*\}|\$\(.*\)|\$\$?[A-Za-z_][A-Za-z0-9_:.]*|\$[0-9@*]|%[A-Za-z_][A-Za-z0-9_]*%"
    r"|!(?:Ref|Sub|GetAtt|ImportValue|vault|secret|env|env_var)\b.*"
    r"|[*xX.\u2022\u2026_?#-]+|(?:[A-Za-z]+ )?(?:%[sdr]|\{[^{}]*\})|\[[A-Za-z :_-]*\]"
    r"|(?i:(?:your|insert|enter|replace|example|dummy|fake|sample)[-_. ]?[a-z]*(?:[-_. ][a-z]+)*)"
    r"|(?i:[a-z]+(?:[-_ ][a-z]+)*[-_ ](?:here|placeholder|goes[-_ ]here))",
    re.DOTALL,
)
_SENTENCE = lazy_pattern(
    r"\b(?:is|are|was|must|should|cannot|can|may|not|please|the|your|this|field|required|invalid|enter)\b",
    re.IGNORECASE,
)
_PATH = lazy_pattern(r"[~/].*|[A-Za-z]:\\.*", re.DOTALL)
_KEY_FILE = lazy_pattern(r"(?:~|\.{0,2})/?[A-Za-z0-9_./ -]*\.(?:pem|key|pub|crt|cer|json|p12|pfx|asc|gpg|jks|ya?ml)")
_PHRASE_NAME = ("mnemonic", "phrase", "words")

PHRASE_WORDS_MIN = 12
"""A recovery phrase of a wallet has at least so many words."""


def is_secret_value(name: str, value: str) -> bool:
    """Whether the value of a secret-sounding name is a secret. It is, unless it plainly is not."""
    text = value.strip()
    if not text or text.lower() in _PLAIN_WORDS or _PLACEHOLDER.fullmatch(text) or text.startswith(PUBLIC):
        return False
    lower = name.lower()
    if (lower.endswith("pwd") and _PATH.fullmatch(text)) or (lower.endswith("hash") and len(text) < RANDOM_MIN):
        return False
    if lower.endswith(("key", "keys")) and _KEY_FILE.fullmatch(text):
        return False
    if lower.endswith(_PHRASE_NAME) and text.count(" ") >= PHRASE_WORDS_MIN - 1:
        return True
    return not (text.count(" ") >= 2 and _SENTENCE.search(text) and not any(c.isdigit() for c in text))


def looks_random(text: str) -> bool:
    """Whether a value looks like a key rather than a word: at least 8 characters, letters and digits, no blank."""
    return (
        len(text) >= RANDOM_MIN
        and " " not in text
        and any(c.isdigit() for c in text)
        and any(c.isalpha() for c in text)
    )


RANDOM_MIN = 8
"""The shortest value that can look random."""
