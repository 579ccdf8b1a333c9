"""Judging delegations afterwards: of each act that was done on behalf of a principal, and of the records about tokens.

The token of an act rides in `authority.chain` of its PREVIEW and of its COMMIT. By the time of the record it must

* be there exactly if the request's context names a principal and a jti, and be the token of both;
* be for this caller, this session and this intent;
* not have expired, with its parents;
* not have been revoked, with its parents: a record of the ledger's own ring says when;
* be signed, with its parents, by the keys of their issuers.

A verifier knows the key of an issuer if its own settings name it (`[gateway.principals]`), if its ring has an entry
with the issuer's name as identity, or if it was given the bare key. Signatures by other keys are not checked: the
verdict says so, and is `qualified`. A known key with a signature that does not hold is a forgery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aver.errors import BadInput
from aver.gateway.delegation import DelegationToken, is_in_scope
from aver.gateway.delegation_records import read_token_statement
from aver.gateway.judgement.recorded_act import FetchBlob, RecordedPreview, digest_statement
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.keys.statement import check_statement
from aver.verdict.verdict import CheckStatus

EXPIRY_SLACK = 60.0
"""Seconds by which a record may be sealed after its token has expired. The gateway checks the token when the act comes
in; then both policy servers decide, and a slow one may take long."""

REVOCATION_SLACK = 2.0
"""Seconds between a revocation and a record of the same token in which nobody can tell which the gateway saw first.
Inside this time the verdict warns; beyond it, the record is a forgery."""

TOKENS_KEPT = 256
"""Tokens whose judgement is kept. One token serves for many acts."""


class DelegationFinding(NamedTuple):
    """A problem with the delegation of an act."""

    status: CheckStatus
    code: str
    words: str


class _JudgedToken(NamedTuple):
    """A chain of tokens, and the problem with its signatures, if there is one."""

    chain: tuple[DelegationToken, ...]
    problem: DelegationFinding | None


class DelegationJudge:
    """Judges delegations by the keys that the verifier knows.

    `principals` are the keys of principals by name. `load_revoked` returns the times of revocations by jti, as Unix
    time.
    """

    def __init__(
        self,
        ring: Ring,
        principals: Mapping[str, PublicKey],
        load_revoked: Callable[[], Mapping[str, float]],
    ) -> None:
        self._ring = ring
        self._principals = principals
        self._load_revoked = load_revoked
        self._judged: dict[bytes, _JudgedToken] = {}

    def judge(
        self, preview: RecordedPreview, tokens: list[Any], at: float, fetch: FetchBlob
    ) -> list[DelegationFinding]:
        """Judge the delegation of an act at the time of one of its records. `tokens` are the statements in it."""
        context = preview.context
        named = context.get("external_principal"), context.get("delegation_jti")
        if len(tokens) != 1 or not all(named):
            return [fail("DELEGATION_REQUIRED: the principal that it names, and its one token, must both be there")]
        try:
            judged = self._judge_token(tokens[0], fetch)
        except BadInput as error:
            return [fail(f"DELEGATION_TOKEN_MALFORMED: {error.message}")]
        chain = judged.chain
        last = chain[-1]
        found = [] if judged.problem is None else [judged.problem]
        if named != (chain[0].iss, last.jti) or preview.delegation != last.jti:
            found.append(fail("EXTERNAL_PRINCIPAL_MISMATCH: the request has another principal or jti"))
        if last.session != preview.header.session:
            found.append(fail(f"DELEGATION_SESSION_MISMATCH: the token {last.jti} is for another session"))
        if last.sub != preview.caller:
            found.append(fail(f"DELEGATION_SUBJECT_MISMATCH: the token {last.jti} is for another caller"))
        if not is_in_scope(last.scope, preview.intent_id):
            found.append(fail(f"DELEGATION_SCOPE_DENY: the token {last.jti} is not for {preview.intent_id}"))
        for token in chain:
            if at > token.expires_at + EXPIRY_SLACK:
                found.append(fail(f"DELEGATION_TOKEN_EXPIRED: the token {token.jti} expired at {token.expires}"))
        return found + self._find_revocations(chain, at)

    def judge_issue(self, document: Any, fetch: FetchBlob) -> DelegationFinding | None:
        """Judge the signatures of a token whose issue was recorded. Raises `BadInput` where it is no token."""
        return self._judge_token(document, fetch).problem

    def _judge_token(self, document: Any, fetch: FetchBlob) -> _JudgedToken:
        key = digest_statement(document)
        judged = self._judged.get(key)
        if judged is None:
            chain = read_token_statement(document, fetch)
            problems = (self._find_signature_problem(token) for token in chain)
            judged = _JudgedToken(chain, next((problem for problem in problems if problem is not None), None))
            if len(self._judged) >= TOKENS_KEPT:
                self._judged.clear()
            self._judged[key] = judged
        return judged

    def _find_signature_problem(self, token: DelegationToken) -> DelegationFinding | None:
        signature = token.statement.signatures[0]
        known = find_principal_keys(token.iss, signature.by, self._ring, self._principals)
        if not known:
            words = f"the token {token.jti} was not checked: the key {signature.by} of {token.iss!r} is not known here"
            return DelegationFinding("not_checked", "UNKNOWN_SIGNER", words)
        (result,) = check_statement(token.statement, Ring.pin(known))
        # A post-quantum part that the key cannot have made would be checked by nobody.
        if result.outcome != "valid" or result.key is None or bool(signature.ml_dsa_65) != bool(result.key.ml_dsa_65):
            return fail(f"DELEGATION_TOKEN_BAD_SIGNATURE: {token.iss!r} has not signed the token {token.jti}")
        return None

    def _find_revocations(self, chain: tuple[DelegationToken, ...], at: float) -> list[DelegationFinding]:
        revoked = self._load_revoked()
        found = []
        for token in chain:
            since = revoked.get(token.jti)
            if since is None or since > at:
                continue
            words = f"DELEGATION_REVOKED: the token {token.jti} was revoked {at - since:.1f} seconds before"
            late = at - since <= REVOCATION_SLACK
            found.append(DelegationFinding("warning" if late else "failed", "EVIDENCE_INVALID", words))
        return found


def find_principal_keys(principal: str, by: str, ring: Ring, principals: Mapping[str, PublicKey]) -> list[PublicKey]:
    """Return the keys of a principal with the fingerprint `by` that the verifier knows."""
    # A bare key says nothing about its owner. The verifier gave it, so it counts for any principal.
    known = [key for key in ring.lookup(by) if (entry := ring.entry_of(key)) is None or entry.identity == principal]
    own = principals.get(principal)
    if own is not None and own.fingerprint == by:
        known.append(own)
    return known


def fail(words: str) -> DelegationFinding:
    """Return a finding that the evidence does not hold."""
    return DelegationFinding("failed", "EVIDENCE_INVALID", words)
