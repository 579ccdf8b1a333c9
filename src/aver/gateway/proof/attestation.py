"""Attestations: each policy server signs its own whole decision and the facts that it rests on.

The two shares of a commit give the decision only together, so one dishonest server could change it alone. Therefore
each server also makes a signed statement of the purpose `policy`, by its own Ed25519 key `policy:0` or `policy:1`, with
the content

    {"v": 1, "server_id": 0, "action_id": "a_...", "request_sha256": "9005...", "program_id": "aver-policy-v1....",
     "share_sha256": "5d2e..." | null, "allow_pre": 1, "need_confirm": 0, "patch_id": 0, "facts_sha256": "77aa...",
     "rules": ["allow-mail"], "reasons": ["..."], "ts": 1700000000}

* `share_sha256` is SHA-256 of ascii_json of the server's share with its MAC, so the two belong together. `ts` is that
  of the share.
* `allow_pre`, `need_confirm` and `patch_id` are the decision in plain.
* `facts_sha256` is SHA-256 of canonical JSON of {"facts", "state", "fixes"}: all that the decision was made from.
* `rules` are the ids of the rules that decided.
* A refusal has `share_sha256` null, and 0 for `allow_pre`, `need_confirm` and `patch_id`.

Anyone with the two public keys can check an attestation. Nobody needs a secret for it, as for a MAC.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from aver.capsule.canonical import canonical_json, has_surrogate
from aver.capsule.json_document import check_object, check_version, int_field, text_field
from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.gateway.proof.evidence import NAME_MAX, REQUEST_SHA256_PATTERN, SERVERS, TS_MAX, PolicyBits, Share
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.keys.statement import Statement, StatementSigner, check_statement, sign_statement
from aver.text import clip_text

POLICY_PURPOSE = "policy"
"""The purpose of an attestation, and of the keys that sign it."""

PATCH_ID_MAX = 3

RULES_MAX = 256
"""Most rules that an attestation names."""

REASONS_MAX = 32
"""Most reasons. The rest is in the decision's own record."""

REASON_MAX = 500
"""Characters of one reason; a longer one is cut."""

PINNED_MAX = 32
"""Rings of policy servers' keys that are kept. A process trusts one pair of servers, a verifier a few."""

_FIELDS = frozenset(
    {"v", "server_id", "action_id", "request_sha256", "program_id", "share_sha256", "allow_pre", "need_confirm"}
    | {"patch_id", "facts_sha256", "rules", "reasons", "ts"}
)


class BadAttestation(BadInput):
    """A statement is not an attestation of that server. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """The content of an attestation. `allow_pre` is 0 exactly if there is no share."""

    server_id: int
    action_id: str
    request_sha256: str
    program_id: str
    share_sha256: str | None
    allow_pre: int
    need_confirm: int
    patch_id: int
    facts_sha256: str
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    ts: int

    @property
    def bits(self) -> PolicyBits:
        """The decision that the server attests."""
        return PolicyBits(self.allow_pre, self.need_confirm, self.patch_id)

    @property
    def content(self) -> dict[str, Any]:
        """The content that the server signs."""
        return {
            "v": 1,
            "server_id": self.server_id,
            "action_id": self.action_id,
            "request_sha256": self.request_sha256,
            "program_id": self.program_id,
            "share_sha256": self.share_sha256,
            "allow_pre": self.allow_pre,
            "need_confirm": self.need_confirm,
            "patch_id": self.patch_id,
            "facts_sha256": self.facts_sha256,
            "rules": list(self.rules),
            "reasons": list(self.reasons),
            "ts": self.ts,
        }

    @classmethod
    def parse(cls, content: Any, where: str = "attestation") -> Attestation:
        """Read the content of an attestation. Raises `BadInput`."""
        found = check_object(content, where, _FIELDS)
        check_version(found["v"], where)
        share_sha256 = found["share_sha256"]
        attestation = cls(
            server_id=int_field(found["server_id"], f"{where}.server_id", low=SERVERS[0], high=SERVERS[-1]),
            action_id=_read_name(found["action_id"], f"{where}.action_id"),
            request_sha256=text_field(found["request_sha256"], f"{where}.request_sha256", REQUEST_SHA256_PATTERN),
            program_id=_read_name(found["program_id"], f"{where}.program_id"),
            share_sha256=None
            if share_sha256 is None
            else text_field(share_sha256, f"{where}.share_sha256", REQUEST_SHA256_PATTERN),
            allow_pre=int_field(found["allow_pre"], f"{where}.allow_pre", low=0, high=1),
            need_confirm=int_field(found["need_confirm"], f"{where}.need_confirm", low=0, high=1),
            patch_id=int_field(found["patch_id"], f"{where}.patch_id", low=0, high=PATCH_ID_MAX),
            facts_sha256=text_field(found["facts_sha256"], f"{where}.facts_sha256", REQUEST_SHA256_PATTERN),
            rules=_read_names(found["rules"], f"{where}.rules", RULES_MAX, NAME_MAX),
            reasons=_read_names(found["reasons"], f"{where}.reasons", REASONS_MAX, REASON_MAX),
            ts=int_field(found["ts"], f"{where}.ts", low=0, high=TS_MAX),
        )
        refused = attestation.bits == PolicyBits(0, 0, 0)
        if (share_sha256 is None) != refused or attestation.allow_pre != (not refused):
            raise BadInput(f"{where} must have either a share and allow_pre 1, or neither")
        return attestation


def _read_name(value: Any, where: str, limit: int = NAME_MAX) -> str:
    if type(value) is not str or not 1 <= len(value) <= limit or has_surrogate(value):
        raise BadInput(f"{where} must be a string of 1 to {limit} characters")
    return value


def _read_names(value: Any, where: str, count: int, limit: int) -> tuple[str, ...]:
    if type(value) is not list or len(value) > count:
        raise BadInput(f"{where} must be a list of at most {count} strings")
    return tuple(_read_name(item, f"{where}[{index}]", limit) for index, item in enumerate(value))


@dataclass(frozen=True, slots=True)
class PolicyKeys:
    """The public keys of both policy servers: of every epoch, as far as the verifier trusts them."""

    server0: tuple[PublicKey, ...]
    server1: tuple[PublicKey, ...]

    def __post_init__(self) -> None:
        if {key.ed25519 for key in self.server0} & {key.ed25519 for key in self.server1}:
            raise BadInput(
                "policy:0 and policy:1 have a key in common, so one key could speak for both servers",
                advice="make a new key for one of them: aver keys rotate policy:1",
            )

    def of(self, server_id: int) -> tuple[PublicKey, ...]:
        return self.server1 if server_id else self.server0

    @classmethod
    def from_ring(cls, ring: Ring) -> PolicyKeys:
        """The keys of `policy:0` and `policy:1` in a ring: our own, and those that their owners exported."""
        found: list[tuple[PublicKey, ...]] = []
        for server_id in SERVERS:
            entries = [each for each in (*ring.entries, *ring.published) if each.identity == f"policy:{server_id}"]
            found.append(tuple(each.key for each in entries if each.purpose == POLICY_PURPOSE))
        return cls(*found)


# --- making attestations


def build_attestation(
    share: Share, bits: PolicyBits, *, facts_sha256: str, rules: Iterable[str], reasons: Iterable[str]
) -> Attestation:
    """Return the attestation of a server that allowed the request. `bits` is its decision, `share` what it made of it.

    Long reasons are cut. Raises `BadInput` for content that no verifier would read.
    """
    return _build(
        server_id=share.server_id,
        action_id=share.action_id,
        request_sha256=share.request_sha256,
        program_id=share.program_id,
        share_sha256=share.sha256,
        bits=bits,
        facts_sha256=facts_sha256,
        rules=rules,
        reasons=reasons,
        ts=share.ts,
    )


def build_refusal_attestation(
    *,
    server_id: int,
    action_id: str,
    request_sha256: str,
    program_id: str,
    facts_sha256: str,
    rules: Iterable[str],
    reasons: Iterable[str],
    ts: int,
) -> Attestation:
    """Return the attestation of a server that refused the request: there is no share."""
    return _build(
        server_id=server_id,
        action_id=action_id,
        request_sha256=request_sha256,
        program_id=program_id,
        share_sha256=None,
        bits=PolicyBits(0, 0, 0),
        facts_sha256=facts_sha256,
        rules=rules,
        reasons=reasons,
        ts=ts,
    )


def _build(*, bits: PolicyBits, rules: Iterable[str], reasons: Iterable[str], **fields: Any) -> Attestation:
    clipped = [clip_text(reason, REASON_MAX) for reason in reasons if reason][:REASONS_MAX]
    attestation = Attestation(
        **fields,
        allow_pre=bits.allow_pre,
        need_confirm=bits.need_confirm,
        patch_id=bits.patch_id,
        rules=tuple(rules),
        reasons=tuple(clipped),
    )
    return Attestation.parse(attestation.content)  # A server signs nothing that it would not read itself.


def sign_attestation(attestation: Attestation, signer: StatementSigner) -> Statement:
    """Return the signed statement. `signer` holds the key of `policy:<server_id>`."""
    return sign_statement(POLICY_PURPOSE, attestation.content, [signer])


def compute_facts_sha256(facts: Any, state: Any, fixes: Any) -> str:
    """Return the digest of all that a decision was made from: SHA-256 of canonical {facts, state, fixes}."""
    return hashlib.sha256(canonical_json({"facts": facts, "state": state, "fixes": fixes})).hexdigest()


# --- checking attestations


def read_attestation(document: Any, server_id: int) -> tuple[Statement, Attestation]:
    """Read a statement, or its JSON, as the attestation of a server. `BadAttestation`. Checks no signature."""
    where = f"the attestation of policy:{server_id}"
    try:
        statement = document if isinstance(document, Statement) else Statement.from_dict(document, where)
        if statement.purpose != POLICY_PURPOSE:
            raise BadAttestation(f"{where} has the purpose {statement.purpose!r}")
        attestation = Attestation.parse(statement.content, where)
    except BadAttestation:
        raise
    except AverError as error:
        raise BadAttestation(error.message) from error
    if attestation.server_id != server_id:
        raise BadAttestation(f"{where} is by server {attestation.server_id}")
    if len(statement.signatures) != 1:
        raise BadAttestation(f"{where} has {len(statement.signatures)} signatures instead of one")
    return statement, attestation


def check_attestation(document: Any, server_id: int, keys: Sequence[PublicKey]) -> Attestation:
    """Return the attestation if a key of that server signed it; `BadAttestation` otherwise."""
    statement, attestation = read_attestation(document, server_id)
    (result,) = check_statement(statement, _pin_keys(tuple(keys)))
    if result.outcome != "valid" or result.key is None:
        raise BadAttestation(f"the attestation of policy:{server_id} is not signed by its key")
    if statement.signatures[0].ml_dsa_65 and not result.key.ml_dsa_65:
        # Nothing would check this part, so anyone could change it.
        raise BadAttestation(f"the attestation of policy:{server_id} has a signature that its key cannot make")
    return attestation


@lru_cache(maxsize=PINNED_MAX)
def _pin_keys(keys: tuple[PublicKey, ...]) -> Ring:
    """Return a ring of these keys. It depends on the values of the keys alone, so it can be kept."""
    return Ring.pin(keys)


def find_binding_problem(attestation: Attestation, share: Share) -> str:
    """Say why an attestation does not belong to a share; empty if it does."""
    for name in ("server_id", "action_id", "request_sha256", "program_id", "ts"):
        if getattr(attestation, name) != getattr(share, name):
            return f"the attestation of policy:{share.server_id} has another {name} than its share"
    if attestation.share_sha256 != share.sha256:
        return f"the attestation of policy:{share.server_id} is about another share"
    return ""
