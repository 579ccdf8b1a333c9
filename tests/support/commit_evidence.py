"""Evidence of two policy servers with known keys, honest or changed: by an outsider, or by a server that seals again.

evidence = CommitEvidence()
evidence.commit["policy0"]["ts"] += 1          an outsider changes the share
evidence.seal(0)                               the server makes its MAC and its attestation anew
evidence.judge().reason_code
"""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Any

from aver.capsule.canonical import ascii_json
from aver.gateway.proof.attestation import (
    PolicyKeys,
    build_attestation,
    compute_facts_sha256,
    sign_attestation,
)
from aver.gateway.proof.evidence import PolicyBits, build_share
from aver.gateway.proof.patch import NOOP, SanitizePatch
from aver.gateway.proof.predicate import Acceptance, EvidenceTrust, KnownCommit, judge_commit
from aver.gateway.request import BoundRequest
from aver.keys import SeedSigner, sign_statement

TS = 1_700_000_000
ACTION = "a_0123456789abcdef"
PROGRAM = "policy_unified_v1"
MAC_KEYS = (bytes([0x11]) * 32, bytes([0x22]) * 32)
MASK_KEY = bytes([0x33]) * 32
SEEDS = (bytes([0x44]) * 32, bytes([0x55]) * 32)
SIGNERS = tuple(SeedSigner(seed) for seed in SEEDS)
FACTS = compute_facts_sha256({"effects": ["network"]}, {"labels": []}, [])
REQUEST = BoundRequest.bind(
    "SendMessage",
    caller="alice",
    session="s1",
    inputs={"recipient": "bob@example.com", "text": "h\u00e9llo \U0001f600"},
)
ALLOWED = PolicyBits(1, 0, 0)


@dataclass
class MacKeyTable:
    """MAC keys by kid: the part of a MAC key ring that a judge needs."""

    keys: dict[str, bytes]

    def find(self, kid: str) -> bytes | None:
        return self.keys.get(kid)


POLICY_KEYS = PolicyKeys((SIGNERS[0].public,), (SIGNERS[1].public,))
TRUST = EvidenceTrust(
    mac_keys0=MacKeyTable({"0": MAC_KEYS[0]}), mac_keys1=MacKeyTable({"0": MAC_KEYS[1]}), policy_keys=POLICY_KEYS
)
PUBLIC_TRUST = EvidenceTrust(policy_keys=POLICY_KEYS)
"""What a stranger has: public keys, and no MAC key."""

KNOWN = KnownCommit(
    action_id=ACTION, request_sha256=REQUEST.sha256, program_id=PROGRAM, now=TS + 1, intent_id="SendMessage"
)


class CommitEvidence:
    """The evidence of one act as JSON values, which a test may change."""

    def __init__(self, bits: PolicyBits = ALLOWED, *, attested: tuple[PolicyBits, PolicyBits] | None = None) -> None:
        self.commit: dict[str, Any] = {}
        self.attestations: list[Any] = []
        for server_id in (0, 1):
            share = build_share(
                bits,
                server_id=server_id,
                kid="0",
                key=MAC_KEYS[server_id],
                mask_key=MASK_KEY,
                ts=TS,
                action_id=ACTION,
                program_id=PROGRAM,
                request_sha256=REQUEST.sha256,
                tag_share=bytes([server_id + 1]) * 16,
            )
            said = bits if attested is None else attested[server_id]
            attestation = build_attestation(share, said, facts_sha256=FACTS, rules=["allow-mail"], reasons=["known"])
            self.commit[f"policy{server_id}"] = share.to_dict()
            self.attestations.append(sign_attestation(attestation, SIGNERS[server_id]).to_dict())

    def copy(self) -> CommitEvidence:
        return copy.deepcopy(self)

    def content(self, server_id: int) -> dict[str, Any]:
        """The content of an attestation, to be changed before `attest`."""
        return self.attestations[server_id]["content"]

    def mac(self, server_id: int, *, key: bytes | None = None) -> None:
        """Make the MAC of a share anew, whatever the share is by now."""
        share = self.commit[f"policy{server_id}"]
        unsigned = {name: value for name, value in share.items() if name != "mac_b64"}
        digest = hmac.digest(key or MAC_KEYS[server_id], ascii_json(unsigned), "sha256")
        share["mac_b64"] = base64.b64encode(digest).decode()

    def attest(self, server_id: int, *, signer: SeedSigner | None = None, purpose: str = "policy") -> None:
        """Sign the content of an attestation anew, whatever it is by now."""
        signed = sign_statement(purpose, self.content(server_id), [signer or SIGNERS[server_id]])
        self.attestations[server_id] = signed.to_dict()

    def bind(self, server_id: int) -> None:
        """Let the attestation speak about the share as it is by now."""
        share = self.commit[f"policy{server_id}"]
        content = self.content(server_id)
        content["share_sha256"] = hashlib.sha256(ascii_json(share)).hexdigest()
        for name in ("server_id", "action_id", "request_sha256", "program_id", "ts"):
            if name in share:
                content[name] = share[name]

    def seal(self, server_id: int) -> None:
        """Do all that a server can do to make its changed share look right."""
        self.mac(server_id)
        self.bind(server_id)
        self.attest(server_id)

    def judge(self, *, trust: EvidenceTrust = TRUST, patch: SanitizePatch | None = NOOP, **known: Any) -> Acceptance:
        return judge_commit(self.commit, self.attestations, replace(KNOWN, patch=patch, **known), trust)
