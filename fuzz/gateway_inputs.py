"""Targets of the gateway: acts, evidence of policy servers, delegation tokens, headers of federated calls, specs."""

from __future__ import annotations

import json
from typing import Any

from aver import SeedSigner
from aver.capsule.canonical import ascii_json
from aver.capsule.json_reader import read_json
from aver.errors import AverError
from aver.gateway.delegation import check_delegation, sign_delegation
from aver.gateway.ingress import check_ingress, sign_ingress
from aver.gateway.intents import read_inputs
from aver.gateway.mediation.contract import CapsuleContract
from aver.gateway.mediation.contract_clauses import list_clauses
from aver.gateway.mediation.contract_verdict import find_reported_values, judge_report
from aver.gateway.proof.attestation import PolicyKeys, build_attestation, sign_attestation
from aver.gateway.proof.evidence import PolicyBits, build_share
from aver.gateway.proof.evidence_report import EvidenceRequest
from aver.gateway.proof.patch import SanitizePatch, parse_patch
from aver.gateway.proof.predicate import EvidenceTrust, KnownCommit, judge_commit
from aver.gateway.request import ActRequest, BoundRequest
from aver.gateway.specs import CONTRACT, SPEC_FILES, AcceptRules, read_spec_bytes, validate_specs
from aver.keys.mac_keys import parse_mac_keys
from fuzz.oracles import Defect, call_parser
from fuzz.target import Target

NOW = 1_700_000_000
PRINCIPAL = SeedSigner(bytes([9]) * 32)
KEYS = {"ext:acme": PRINCIPAL.public}
CONTRACT_VALUES = {
    name: (f"/{name.lower()}",)
    for name in ("CAPSULE_WORKSPACE", "REPO_ROOT", "TMPDIR", "STATE_DIR", "PY_PREFIX", "PY_BIN", "PY_REAL_BIN", "HOME")
}
"""Values of the contract's variables."""


class Act(Target):
    """An act as an agent sends it, down to the request that it is bound to."""

    name = "act"

    def seeds(self) -> list[bytes]:
        inputs: list[tuple[str, dict[str, Any]]] = [
            ("SendMessage", {"recipient": "bob@example.com", "text": "hé", "artifacts": []}),
            ("CheckFetchPolicy", {"domain": "a.example:8443", "resource_id": "x/y?z"}),
            ("PostWebhook", {"domain": "a.example", "path": "/x", "body": "{}"}),
            ("WriteWorkspaceFile", {"relpath": "./src/a.py", "content": "x"}),
            ("RunCommand", {"argv": ["ls", "-l"], "cwd": "src", "tx_id": "tx_1"}),
            ("CallTool", {"server": "s", "tool": "t", "arguments": {"n": [1, 2.5, None]}, "params": {}}),
        ]
        constraints = {"external_principal": "ext:a", "delegation_token": "x", "user_confirm": True}
        return [
            json.dumps({"intent_id": name, "inputs": given, "constraints": constraints, "caller": "alice"}).encode()
            for name, given in inputs
        ]

    def run(self, data: bytes) -> None:
        act = call_parser(lambda: ActRequest.parse(data))
        call = call_parser(act.find_intent) if act is not None else None
        if act is None or call is None:
            return
        inputs = call_parser(lambda: read_inputs(call, act.inputs))
        if inputs is None or inputs.bound is None:
            return
        bound = inputs.bound
        request = BoundRequest.bind(call.intent.name, caller=act.caller, session="s", inputs=bound)
        if request.inputs != bound or BoundRequest.from_dict(request.to_dict()).sha256 != request.sha256:
            raise Defect(f"bound inputs do not bind to themselves: {bound!r}")


class CommitEvidenceTarget(Target):
    """The shares and attestations of two policy servers, as an executor judges them."""

    name = "commit-evidence"

    def prepare(self) -> None:
        mac_keys, signers = (
            (bytes([1]) * 32, bytes([2]) * 32),
            (SeedSigner(bytes([3]) * 32), SeedSigner(bytes([4]) * 32)),
        )
        request = BoundRequest.bind("FinalizeOutput", caller="a", session="s", inputs={"text": "x"})
        bits = PolicyBits(1, 0, 0)
        commit: dict[str, Any] = {}
        attestations = []
        for server_id in (0, 1):
            share = build_share(
                bits,
                server_id=server_id,
                kid="0",
                key=mac_keys[server_id],
                mask_key=bytes(32),
                ts=NOW,
                action_id="a_1",
                program_id="p",
                request_sha256=request.sha256,
                tag_share=bytes(16),
            )
            commit[f"policy{server_id}"] = share.to_dict()
            attestation = build_attestation(share, bits, facts_sha256="0" * 64, rules=["r"], reasons=["why"])
            attestations.append(sign_attestation(attestation, signers[server_id]).to_dict())
        self._honest = {"commit": commit, "attestations": attestations}
        self._known = KnownCommit(action_id="a_1", request_sha256=request.sha256, program_id="p", now=NOW)
        policy_keys = PolicyKeys((signers[0].public,), (signers[1].public,))
        rings = [parse_mac_keys(f"0:{key.hex()}", "a key") for key in mac_keys]
        self._trusts = [
            EvidenceTrust(mac_keys0=rings[0], mac_keys1=rings[1], policy_keys=policy_keys),
            EvidenceTrust(policy_keys=policy_keys),
        ]

    def seeds(self) -> list[bytes]:
        return [json.dumps(self._honest).encode(), ascii_json(self._honest)]

    def run(self, data: bytes) -> None:
        document = call_parser(lambda: read_json(data))
        found = document if isinstance(document, dict) else {}
        for trust in self._trusts:
            acceptance = judge_commit(found.get("commit"), found.get("attestations"), self._known, trust)
            judged = {name: found.get(name) for name in self._honest}
            if acceptance.holds and ascii_json(judged) != ascii_json(self._honest):
                raise Defect(f"accepted with other content: {judged!r}")


class Tokens(Target):
    """Delegation tokens and the texts of patches and MAC keys."""

    name = "delegation-token"
    share = 6

    def prepare(self) -> None:
        given: dict[str, Any] = {"session": "s", "expires": "2999-01-01T00:00:00+00:00", "scope": ("*",)}
        self._root = sign_delegation(PRINCIPAL, iss="ext:acme", sub="alice", jti="j1", **given)

    def seeds(self) -> list[bytes]:
        return [self._root.encode(), b"CLAMP_LEN 256", b"REWRITE_DOMAIN_TO_PROXY a.example:80", b"k:" + b"ab" * 32]

    def run(self, data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        delegation = call_parser(
            lambda: check_delegation(
                text,
                intent_id="SendMessage",
                caller="alice",
                session="s",
                external_principal=None,
                keys=KEYS,
                now=NOW,
                is_revoked=lambda jti: False,
            )
        )
        if delegation is not None and text != self._root:
            raise Defect(f"another token is accepted: {text!r}")
        patch = call_parser(lambda: parse_patch(text))
        if patch is not None and (patch.annotation != text or SanitizePatch.from_dict(patch.to_dict()) != patch):
            raise Defect(f"a patch is not written as it was read: {text!r}")
        call_parser(lambda: parse_mac_keys(text, "a text"))


class IngressHeaders(Target):
    """The headers of a federated call: lines of `name: value`."""

    name = "ingress"
    share = 6

    def prepare(self) -> None:
        self._headers = sign_ingress(
            PRINCIPAL,
            method="POST",
            path="/act",
            principal="ext:acme",
            session="s",
            time=NOW,
            nonce="0123456789abcdef",
            body=b"{}",
            delegation="token",
        )

    def seeds(self) -> list[bytes]:
        return ["\n".join(f"{name}: {value}" for name, value in self._headers.items()).encode()]

    def run(self, data: bytes) -> None:
        lines = data.decode("latin-1").split("\n")
        headers = [(name, value.strip(" ")) for name, _, value in (line.partition(":") for line in lines)]
        call = call_parser(lambda: check_ingress(headers, method="POST", path="/act", body=b"{}", keys=KEYS, now=NOW))
        wanted = {name.lower(): value for name, value in self._headers.items()}
        given = {name.lower(): value for name, value in headers if name.lower() in wanted}
        if call is not None and given != wanted:
            raise Defect(f"another call is accepted: {given!r}")


class Specs(Target):
    """The files that `verify-evidence` and `validate-specs` read."""

    name = "gateway-specs"
    share = 3

    def seeds(self) -> list[bytes]:
        request = {"action_id": "a", "intent_id": "i", "caller": "c", "session": "s", "inputs": {}, "context": {}}
        return [*map(read_spec_bytes, SPEC_FILES), json.dumps(request).encode()]

    def run(self, data: bytes) -> None:
        for name in SPEC_FILES:
            validate_specs({**{each: read_spec_bytes(each) for each in SPEC_FILES}, name: data})
        try:
            document = read_json(data)
        except AverError:
            return
        call_parser(lambda: AcceptRules.parse(document))
        call_parser(lambda: EvidenceRequest.parse(document))
        call_parser(lambda: SanitizePatch.from_dict(document))


class Contracts(Target):
    """Capsule contracts, and smoke reports about the one that comes with Aver. No report may be better for nonsense."""

    name = "capsule-contract"

    def prepare(self) -> None:
        self.contract = CapsuleContract.parse(read_spec_bytes(CONTRACT)).expand(CONTRACT_VALUES)

    def seeds(self) -> list[bytes]:
        probe = {"target": ["/home/ada/.ssh"], "ok": False, "control": {"ok": True}}
        clauses = {each.id: {**probe, "target": list(each.target)} for each in list_clauses(self.contract)}
        clauses["filesystem.mounts"] |= {
            "mounts": [{"point": "/tmp", "device": "0:1", "root": "/", "type": "tmpfs", "writable": True}],
            "control": {"mounts": [{"point": "/", "device": "8:1", "root": "/", "type": "ext4", "writable": True}]},
        }
        report = {"contract_sha256": self.contract.sha256, "clauses": clauses, "direct_fs_read": probe}
        return [read_spec_bytes(CONTRACT), json.dumps(report).encode()]

    def run(self, data: bytes) -> None:
        contract = call_parser(lambda: CapsuleContract.parse(data))
        if contract is not None:
            call_parser(lambda: contract.expand(CONTRACT_VALUES))
        try:
            report = read_json(data)
        except AverError:
            return
        find_reported_values(report)
        verdict = judge_report(self.contract, report, runtime=(), now=NOW, paths={})
        if verdict["ok"]:
            raise Defect("a report without the gateway's answers holds a contract")


TARGETS: tuple[type[Target], ...] = (Act, CommitEvidenceTarget, Tokens, IngressHeaders, Specs, Contracts)
