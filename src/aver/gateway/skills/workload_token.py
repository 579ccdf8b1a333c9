"""Workload tokens: the statement by which an installed skill acts under its own name.

The executor issues one when it installs a skill. It is base64url of a statement of the purpose `workload`, signed by
the ledger's own key, with the content

    {"v": 1, "skill_digest": "<64 hex>", "session": "s1", "expires": "2026-11-17T12:00:00+00:00"}

An act with the token in `constraints.workload_token` has the caller `skill:<digest>`, whatever caller it names. So the
rules can tell a skill from the agent that runs it. A token that is malformed, expired, of another session, or not
signed by the ledger's key is `WORKLOAD_TOKEN_INVALID`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from aver.capsule.json_document import check_object, check_version, text_field, time_field
from aver.errors import BadInput, Refused
from aver.gateway.delegation import read_token_text
from aver.gateway.request import SKILL_CALLER
from aver.keys.ring import Ring
from aver.keys.statement import StatementSigner, check_statement, encode_statement, sign_statement
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

WORKLOAD_PURPOSE = "workload"

WORKLOAD_SECONDS = 3600
"""How long a token is good. A skill that runs longer is installed again, which a person sees."""

_DIGEST = lazy_pattern(r"[0-9a-f]{64}")


def issue_workload_token(signer: StatementSigner, *, skill_digest: str, session: str, now: float) -> str:
    """Issue a token for a skill in a session."""
    expires = datetime.fromtimestamp(int(now) + WORKLOAD_SECONDS, UTC).isoformat()
    content = {"v": 1, "skill_digest": skill_digest, "session": session, "expires": expires}
    return encode_statement(sign_statement(WORKLOAD_PURPOSE, content, [signer]))


def check_workload_token(text: str, *, ring: Ring, session: str, now: float) -> str:
    """Check a token, and return the caller that it stands for. Raises `Refused` with `WORKLOAD_TOKEN_INVALID`."""
    try:
        statement = read_token_text(text, WORKLOAD_PURPOSE)
        content = check_object(
            statement.content, "token.content", frozenset({"v", "skill_digest", "session", "expires"})
        )
        check_version(content["v"], "token.content")
        digest = text_field(content["skill_digest"], "token.content.skill_digest", _DIGEST)
        expires = datetime.fromisoformat(time_field(content["expires"], "token.content.expires")).timestamp()
    except BadInput as error:
        raise _refuse(f"it cannot be read: {error.message}") from error
    own = ring.active("ledger")
    results = check_statement(statement, Ring.pin([own.key]) if own is not None else Ring())
    if [result.outcome for result in results] != ["valid"]:
        raise _refuse("it is not signed by this ledger's key")
    if content["session"] != session:
        raise _refuse("it is for another session")
    if not now < expires:
        raise _refuse("it has expired")
    return SKILL_CALLER + digest


def _refuse(words: str) -> Refused:
    debug("gateway", "refused a workload token: %s", words)
    return Refused("WORKLOAD_TOKEN_INVALID", f"the workload token does not count: {words}")
