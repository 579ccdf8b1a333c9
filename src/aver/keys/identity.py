"""Identities that own keys, the purposes of keys, and the file names that follow from identities.

An identity is `ledger`, `agent:<name>`, `person:<name>` or `policy:<name>`; a name is 1 to 64 of
`A-Z a-z 0-9 . _ -` and does not begin with a dot. `slug` maps identities to file names one to one, also
on file systems that ignore case: `agent:Bob` becomes `agent-=bob`.
"""

from __future__ import annotations

import re
from typing import Any

from aver.errors import BadInput

__all__ = ["LEDGER", "PURPOSES", "check_identity", "check_purpose", "default_purpose", "identity_from_slug", "slug"]

LEDGER = "ledger"
PURPOSES = ("seal", "approve", "policy", "checkpoint")

_IDENTITY = re.compile(r"ledger|(agent|person|policy):[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_DEFAULT_PURPOSE = {LEDGER: "seal", "agent": "seal", "person": "approve", "policy": "policy"}
_UPPER = re.compile(r"[A-Z]")
_ESCAPED = re.compile(r"=([a-z])")


def check_identity(identity: Any) -> str:
    """Return the identity; `BadInput` unless it is one."""
    if not isinstance(identity, str) or _IDENTITY.fullmatch(identity) is None:
        raise BadInput(
            f"{ascii(identity)[:80]} is not an identity",
            advice="use ledger, agent:NAME, person:NAME or policy:NAME; NAME has 1 to 64 of A-Z a-z 0-9 . _ -",
        )
    return identity


def check_purpose(purpose: Any) -> str:
    """Return the purpose; `BadInput` unless it is one of `PURPOSES`."""
    if purpose not in PURPOSES:
        raise BadInput(f"{ascii(purpose)[:80]} is not a purpose", advice=f"use one of {', '.join(PURPOSES)}")
    return str(purpose)


def default_purpose(identity: str) -> str:
    """The purpose of an identity's key where the caller names none."""
    return _DEFAULT_PURPOSE[check_identity(identity).partition(":")[0]]


def slug(identity: str) -> str:
    """The identity in a form that can begin a file name."""
    return _UPPER.sub(lambda match: "=" + match[0].lower(), check_identity(identity).replace(":", "-", 1))


def identity_from_slug(text: str) -> str | None:
    """The identity with this slug, or None."""
    identity = _ESCAPED.sub(lambda match: match[1].upper(), text)
    if identity != LEDGER:
        identity = identity.replace("-", ":", 1)
    return identity if _IDENTITY.fullmatch(identity) and slug(identity) == text else None
