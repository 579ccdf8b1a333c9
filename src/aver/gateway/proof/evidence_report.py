"""The report of `aver gateway verify-evidence`: one act's evidence, judged by the RFC alone.

The input is three documents: the parameters of the predicate (`aver.gateway.specs.AcceptRules`), the commit
{policy0, policy1}, and the request

    {"action_id", "intent_id", "caller", "session", "inputs", "context"?, "attestations"?}

No `context` means `{}`. `inputs` are hashed as they stand. `attestations` has the statements of server 0 and server 1,
as the executor receives them beside the commit; only a strict judge looks at them.

The decision is the first of these that applies. The order differs from the executor's, which looks at the request's
hash after the tags and the outputs; what is accepted is the same:

    BAD_SCHEMA BAD_COMMIT_PROOF BAD_COMMIT_TAG_LEN MISSING_OUTPUT_KEY REPLAY_DENY POLICY_DENY REQUIRE_CONFIRM ACCEPT

The report has the keys of the RFC's own tool, and some more: `context`, `detail`, `words`, `not_checked`, and with
`strict` also `attestations_ok`. A share whose MAC could not be checked has `ok` null and the code `not_checked`; then
`evidence_valid` is null, and the evidence is not accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import check_object
from aver.errors import BadInput, NotCanonical
from aver.fast_dataclass import dataclass
from aver.gateway.proof.predicate import (
    NOT_CHECKED,
    Acceptance,
    EvidenceTrust,
    KnownCommit,
    ProofStatus,
    ShareResult,
)
from aver.gateway.request import compute_request_sha256
from aver.gateway.specs import AcceptRules

ACCEPT = "ACCEPT"

_PROOF_CHECKS = ("evidence", "form", "mac", "servers", "age", "ids", "request")
_LATER_DECISIONS = (("replay", "REPLAY_DENY"), ("allow", "POLICY_DENY"), ("confirm", "REQUIRE_CONFIRM"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRequest:
    """The request file. Nothing in it was bound or checked by a gateway."""

    action_id: str
    intent_id: str
    caller: str
    session: str
    inputs: Mapping[str, Any]
    context: Mapping[str, Any]
    attestations: Any = None

    @property
    def sha256(self) -> str:
        """The hash of the request as it stands."""
        return compute_request_sha256(self.intent_id, self.caller, self.session, self.inputs, self.context)

    @classmethod
    def parse(cls, document: Any, where: str = "the request") -> EvidenceRequest:
        """Read a request file. Raises `BadInput`."""
        names = ("action_id", "intent_id", "caller", "session")
        optional = frozenset({"context", "attestations"})
        found = check_object(document, where, frozenset({*names, "inputs"}), optional)
        found = {"context": {}, **found}
        for name in names:
            if type(found[name]) is not str:
                raise BadInput(f"{where}: {name} must be a string, not {type(found[name]).__name__}")
        for name in ("inputs", "context"):
            if type(found[name]) is not dict:
                raise BadInput(f"{where}: {name} must be an object, not {type(found[name]).__name__}")
        try:
            canonical_json({"inputs": found["inputs"], "context": found["context"], **{n: found[n] for n in names}})
        except NotCanonical as error:
            raise BadInput(f"{where}: {error.message}", advice=error.advice) from error
        return cls(**found)


def find_decision(acceptance: Acceptance) -> str:
    """Return the decision of the RFC's verifier."""
    failed = {problem.check for problem in acceptance.problems}
    if acceptance.schema_error:
        return "BAD_SCHEMA"
    if failed & set(_PROOF_CHECKS) or "mac" in acceptance.not_checked:
        return "BAD_COMMIT_PROOF"
    if "tag" in failed:
        return "BAD_COMMIT_TAG_LEN"
    if "outputs" in failed:
        return "MISSING_OUTPUT_KEY" if acceptance.missing_outputs else "BAD_COMMIT_PROOF"
    for check, decision in _LATER_DECISIONS:
        if check in failed:
            return decision
    return ACCEPT if acceptance.accepted else "BAD_COMMIT_PROOF"  # Only attestations are left.


def build_report(
    acceptance: Acceptance,
    *,
    request: EvidenceRequest,
    known: KnownCommit,
    trust: EvidenceTrust,
    rules: AcceptRules,
    paths: Mapping[str, str],
) -> dict[str, Any]:
    """Return the report. `paths` are the files' names under `spec_path`, `commit_path` and `request_path`."""
    decision, bits = find_decision(acceptance), acceptance.bits
    shares: dict[str, Any] = {}
    for server_id, result in enumerate(acceptance.shares):
        shares[f"share{server_id}_ok"] = _share_ok(result)
        shares[f"share{server_id}_code"] = result.detail or "OK"
    lengths = [None if each.share is None else len(each.share.tag_share) for each in acceptance.shares]
    was_read = all(each.share is not None for each in acceptance.shares)
    proof = {acceptance.status(check) for check in _PROOF_CHECKS}
    strict = trust.attestations == "required"
    return {
        "status": "OK" if decision == ACCEPT else "FAIL",
        **paths,
        "schema_ok": not acceptance.schema_error,
        "schema_error": acceptance.schema_error or None,
        "program_id": known.program_id,
        "action_id": known.action_id,
        "intent_id": request.intent_id,
        "caller": request.caller,
        "session": request.session,
        "context": dict(request.context),
        "request_sha256": known.request_sha256,
        "now": known.now,
        "mac_ttl_s": trust.mac_ttl,
        "evidence_valid": _as_truth(proof) if was_read else False,
        **shares,
        "tag_ok": was_read and acceptance.status("tag") == "passed",
        "tag_details": {
            "share0_len": lengths[0],
            "share1_len": lengths[1],
            "required_len": rules.tag_bytes,
            "commit_tag_b64": acceptance.tag_b64 or None,
        },
        "output_interface_ok": was_read and acceptance.status("outputs") == "passed",
        "missing_output_keys": list(acceptance.missing_outputs),
        "outs": dict(acceptance.outputs),
        "allow_pre": None if bits is None else bits.allow_pre,
        "need_confirm": None if bits is None else bits.need_confirm,
        "patch_id": acceptance.patch_id,
        "user_confirm": known.confirmed,
        "replay_seen": known.replay_seen,
        "strict": strict,
        **({"attestations_ok": _as_truth({acceptance.status("attestations")})} if strict else {}),
        "not_checked": list(acceptance.not_checked),
        "accepts": decision == ACCEPT,
        "decision": decision,
        "detail": acceptance.detail,
        "words": acceptance.words,
    }


def _share_ok(result: ShareResult) -> bool | None:
    return None if result.detail == NOT_CHECKED else result.detail == ""


def _as_truth(statuses: set[ProofStatus]) -> bool | None:
    """False if a check failed, None if one was not made, else True."""
    if "failed" in statuses:
        return False
    return None if "not_checked" in statuses else True
