"""The records of acts, in the chain `gateway.<session>`.

An act leaves up to three records. All of them have the act's id as `trigger.correlation_id`, as its decision has.

    act.preview    agent   the request and the answer to it, also a refusal; refs.decision: the gate's decision
    act.commit     tool    the mark, appended before the effect: key `act:<action_id>`, parent: the preview
    act.outcome    tool    the effect, key `outcome:<action_id>`, parent: the commit; or a refused COMMIT, without a
                           key, parent: the preview

`outcome.result` of an `act.preview`:

    v 1, reason_code, detail, intent_id, caller, session, inputs | inputs_sha256, context, action_id, request_sha256,
    program_id, allow_pre, need_confirm, patch, facts_sha256, base, shares, expires, approval, delegation

`inputs` is there where the settings keep inputs and no secret was found in them; else `inputs_sha256`, SHA-256 of their
ASCII canonical JSON. `patch` is {patch_id, patch_name, params}. `base` is the state of the file that a change was shown
for: {sha256}. `shares` are two blobs, null where there are none: with them, any process can carry out the COMMIT until
`expires`. `approval` is the id of the request for approval. `delegation` is the token's jti.

`act.commit`: v 1, tx_id, action_id, request_sha256, program_id, commit {policy0, policy1}, approval_use, patch,
executor {instance, host}, `decision`, the id of the decision that the commit rests on, and `mac_ttl`, the greatest age
of a share that its executor accepted. `act.outcome`: v 1, action_id, reason_code, detail, sent_sha256, result.

`context.environment.gateway` is {v 1, deployment, ingress {kind, identity}, mediation, insecure}. Attestations of the
policy servers, people's approvals and delegations are statements in `authority.chain`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from aver.capsule.aver_block import build_draft_block, chain_name, read_block
from aver.capsule.blobs import Blob, blob_references, restore_large_texts
from aver.capsule.canonical import ascii_json
from aver.capsule.json_document import parse_document
from aver.capsule.masking.mask import mask
from aver.capsule.model import Authority, Capsule, Context, Execution, Outcome, Reasoning, ToolCall, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gateway.proof.attestation import POLICY_PURPOSE
from aver.gateway.settings import MAC_TTL
from aver.keys.statement import Statement

DOMAIN = "gateway"

PREVIEW_KIND = "act.preview"
COMMIT_KIND = "act.commit"
OUTCOME_KIND = "act.outcome"
INGRESS_KIND = "act.ingress"
CONFINEMENT_KIND = "act.confinement"

TX_PREFIX = "tx_"
ACTION_PREFIX = "a_"

SHARE_MAX = 16 * 1024
"""Largest share, in bytes: both are stored with the preview."""

DETAIL_MAX = 1000
"""Characters of the words about a refusal that a record keeps."""

_SESSION = re.compile(r"(?!x-[0-9a-f]{32}$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
"""A session is the id of its chain, as it stands. A name that stands for the digest of another is no session."""

Deployment = Literal["embedded", "apart"]

Mediation = Literal["verified", "unverified"]
"""Whether the agent ran in a confinement on which a fresh verdict passed, so that the gateway was its only way out."""


def check_session(session: str) -> str:
    """Return a session's name; `BadInput` unless a chain can have it as it stands."""
    if not isinstance(session, str) or _SESSION.fullmatch(session) is None:
        raise BadInput(
            f"{ascii(session)[:80]} is no session: use up to 128 letters, digits, '.', '_' and '-'",
            advice="leave it out to get a new one",
        )
    return session


def find_mediation_change(previewed: str, committed: str) -> str:
    """Say why a COMMIT may not follow its PREVIEW; empty if both are in a confinement, or neither is.

    A COMMIT outside would end a confinement without notice. A COMMIT inside would call a request confined that a
    program outside has made.
    """
    if previewed == committed:
        return ""
    if previewed == "verified":
        return "the PREVIEW was made in a verified confinement, and this COMMIT is not"
    return "the PREVIEW was made outside of a verified confinement, and this COMMIT is made inside"


def act_chain(session: str) -> str:
    """Return the chain of a session's acts."""
    return chain_name(DOMAIN, session)


def mark_key(action_id: str) -> str:
    """Return the idempotency key of the mark. The ledger takes it once, so an act happens at most once."""
    return f"act:{action_id}"


def outcome_key(action_id: str) -> str:
    """Return the idempotency key of the one outcome of a marked act."""
    return f"outcome:{action_id}"


def revocation_key(jti: str) -> str:
    """Return the idempotency key of the record that revokes a delegation."""
    return f"delegation-revoked:{jti}"


class IngressNote(NamedTuple):
    """The door that an act came through, and who stands behind it as far as the door could tell."""

    kind: str
    """`embedded`, `command`, `stdio`, `uid`, `token`, `federated` or `confined`."""
    identity: str = ""


class Surroundings(NamedTuple):
    """The circumstances of an act that every record of it states."""

    ingress: IngressNote
    deployment: Deployment = "embedded"
    is_insecure: bool = False
    mediation: Mediation = "unverified"

    def to_dict(self) -> dict[str, Any]:
        return {
            "v": 1,
            "deployment": self.deployment,
            "ingress": {"kind": self.ingress.kind, "identity": self.ingress.identity},
            "mediation": self.mediation,
            "insecure": self.is_insecure,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """An act as its PREVIEW left it. `record_id` is empty before it is sealed."""

    reason_code: str
    detail: str = ""
    intent_id: str
    caller: str
    session: str
    inputs: Mapping[str, Any] | None = None
    """None where the record keeps their digest only."""
    inputs_sha256: str = ""
    context: Mapping[str, str] | None = None
    action_id: str
    request_sha256: str = ""
    program_id: str = ""
    allow_pre: int = 0
    need_confirm: int = 0
    patch: Mapping[str, Any] | None = None
    facts_sha256: str = ""
    base: Mapping[str, Any] | None = None
    shares: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    expires: str = ""
    approval: str = ""
    delegation: str = ""
    record_id: str = ""
    decision_id: str = ""
    attestations: tuple[Statement, ...] = ()
    delegations: tuple[Statement, ...] = ()
    mediation: Mediation = "unverified"

    @property
    def tx_id(self) -> str:
        return f"{TX_PREFIX}{self.record_id}"


def digest_inputs(inputs: Mapping[str, Any]) -> str:
    """Return the SHA-256 by which a record names inputs that it does not keep."""
    return hashlib.sha256(ascii_json(dict(inputs))).hexdigest()


def build_preview_draft(
    preview: Preview, surroundings: Surroundings, *, keeps_inputs: bool, reasons: Sequence[str] = ()
) -> tuple[Capsule, list[Blob]]:
    """Build the record of a PREVIEW, and its blobs. Secrets in its texts are masked; inputs with one are left out."""
    inputs = dict(preview.inputs or {})
    told: dict[str, Any] = {"detail": preview.detail[:DETAIL_MAX], "reasons": list(reasons)}
    has_secrets = mask({**told, "inputs": inputs}).count > 0  # One search of all. Mostly there are none.
    told = mask(told).value if has_secrets else told
    blobs = [Blob(ascii_json(dict(share)), "application/json") for share in preview.shares or ()]
    is_kept = keeps_inputs and not (has_secrets and mask(inputs).count)
    named = {"inputs": inputs} if is_kept else {"inputs_sha256": digest_inputs(inputs)}
    result = {
        "v": 1,
        "reason_code": preview.reason_code,
        "detail": told["detail"],
        "intent_id": preview.intent_id,
        "caller": preview.caller,
        "session": preview.session,
        **named,
        "context": dict(preview.context or {}),
        "action_id": preview.action_id,
        "request_sha256": preview.request_sha256,
        "program_id": preview.program_id,
        "allow_pre": preview.allow_pre,
        "need_confirm": preview.need_confirm,
        "patch": preview.patch,
        "facts_sha256": preview.facts_sha256,
        "base": preview.base,
        "shares": [blob.reference for blob in blobs] or None,
        "expires": preview.expires or None,
        "approval": preview.approval or None,
        "delegation": preview.delegation or None,
    }
    status = {"ALLOW": "success", "REQUIRE_CONFIRM": "pending"}.get(preview.reason_code, "blocked")
    refs = {"decision": preview.decision_id} if preview.decision_id else None
    draft = Capsule(
        type="agent",
        domain=DOMAIN,
        trigger=_build_trigger(preview),
        context=_build_context(preview, surroundings, PREVIEW_KIND, refs),
        reasoning=Reasoning(analysis="; ".join(told["reasons"]), selected_option=preview.reason_code),
        authority=Authority(
            type="policy",
            policy_reference=preview.program_id or None,
            chain=[statement.to_dict() for statement in (*preview.attestations, *preview.delegations)],
        ),
        outcome=Outcome(
            status=status,
            result=result,
            summary=f"PREVIEW of {preview.intent_id}: {preview.reason_code}",
            error=None if status != "blocked" else preview.reason_code,
        ),
    )
    return draft, blobs


class CommitBasis(NamedTuple):
    """The evidence by which the executor acts: it is sealed in the mark."""

    preview: Preview
    commit: Mapping[str, Any] | None
    """The two shares; None in insecure mode without evidence."""
    attestations: tuple[Statement, ...] = ()
    approvals: tuple[Statement, ...] = ()
    """The people's statements behind the use of an approval."""
    approval_use: str = ""
    """The id of the record by which an approval was used."""
    approver: str = ""
    decision_id: str = ""
    mac_ttl: int = MAC_TTL
    """The greatest age of a share, in seconds, that the executor accepted."""


def build_commit_draft(
    basis: CommitBasis, surroundings: Surroundings, executor: Mapping[str, str], patch: Mapping[str, Any] | None
) -> Capsule:
    """Build the mark of an act that is about to happen."""
    preview = basis.preview
    chain = (*basis.attestations, *basis.approvals, *preview.delegations)
    # Shares that were made after the PREVIEW may be of a newer program. Both servers attest the same one.
    program_id = str(basis.attestations[0].content["program_id"]) if basis.attestations else preview.program_id
    refs = {"decision": basis.decision_id, "approval": basis.approval_use}
    named = {name: value for name, value in refs.items() if value}
    return Capsule(
        type="tool",
        domain=DOMAIN,
        parent_id=preview.record_id or None,
        trigger=_build_trigger(preview),
        context=_build_context(preview, surroundings, COMMIT_KIND, named),
        authority=Authority(
            type="human_approved" if basis.approval_use else "policy",
            approver=basis.approver or None,
            policy_reference=program_id or None,
            chain=[statement.to_dict() for statement in chain],
        ),
        outcome=Outcome(
            status="pending",
            summary=f"COMMIT of {preview.intent_id}",
            result={
                "v": 1,
                "tx_id": preview.tx_id if preview.record_id else None,
                "action_id": preview.action_id,
                "request_sha256": preview.request_sha256,
                "program_id": program_id,
                "mac_ttl": basis.mac_ttl,
                "commit": None if basis.commit is None else dict(basis.commit),
                "approval_use": basis.approval_use or None,
                "decision": basis.decision_id or None,
                "patch": patch,
                "executor": dict(executor),
            },
        ),
    )


class ActReport(NamedTuple):
    """The end of an act: what the effect did, or why there was none."""

    reason_code: str
    detail: str = ""
    sent_sha256: str = ""
    """SHA-256 of the ASCII canonical JSON of the inputs that went out, after the patch."""
    result: Mapping[str, Any] | None = None
    duration_ms: int = 0

    @property
    def is_done(self) -> bool:
        return self.reason_code in ("ALLOW", "ALLOW_INSECURE")


def build_outcome_draft(
    preview: Preview, surroundings: Surroundings, report: ActReport, *, parent: str, sent: Mapping[str, Any] | None
) -> Capsule:
    """Build the record of an act's end. `sent` are the inputs that went out; None where there was no effect."""
    told = mask({"detail": report.detail[:DETAIL_MAX], "result": dict(report.result or {}), "sent": dict(sent or {})})
    is_known = report.reason_code != "OUTCOME_UNKNOWN"
    calls = (
        []
        if sent is None
        else [
            ToolCall(
                tool=preview.intent_id,
                arguments=told.value["sent"],
                result=told.value["result"],
                success=report.is_done,
                duration_ms=report.duration_ms,
                error=None if report.is_done else report.reason_code,
            )
        ]
    )
    return Capsule(
        type="tool",
        domain=DOMAIN,
        parent_id=parent or None,
        trigger=_build_trigger(preview),
        context=_build_context(preview, surroundings, OUTCOME_KIND),
        authority=Authority(type="policy", policy_reference=preview.program_id or None),
        execution=Execution(tool_calls=calls, duration_ms=report.duration_ms),
        outcome=Outcome(
            status=("success" if report.is_done else "failure" if calls else "blocked") if is_known else "pending",
            result={
                "v": 1,
                "action_id": preview.action_id,
                "reason_code": report.reason_code,
                "detail": told.value["detail"],
                "sent_sha256": report.sent_sha256 or None,
                "result": told.value["result"],
            },
            summary=f"{preview.intent_id}: {report.reason_code}",
            error=None if report.is_done else report.reason_code,
        ),
    )


def _build_trigger(preview: Preview) -> Trigger:
    return Trigger(
        type="agent",
        source=preview.caller or "agent",
        request=f"{preview.intent_id} by {preview.caller}",
        correlation_id=preview.action_id,
    )


def _build_context(
    preview: Preview, surroundings: Surroundings, kind: str, refs: Mapping[str, str] | None = None
) -> Context:
    environment = {DOMAIN: surroundings.to_dict(), **build_draft_block(kind, refs)}
    return Context(agent_id=preview.caller, session_id=preview.session, environment=environment)


# --- reading


def read_preview(record: Sealed, fetch: Callable[[str], bytes], *, needs_evidence: bool = True) -> Preview:
    """Read an `act.preview` back. `fetch` returns the bytes of a blob. Raises `BadInput` where it is none.

    Without `needs_evidence`, its inputs, shares and attestations are left out: an executor gets those with the order.
    """
    content = record.content
    block = read_block(content) or {}
    if block.get("kind") != PREVIEW_KIND:
        raise BadInput(f"the record {record.id} is no PREVIEW")
    try:
        result = content["outcome"]["result"]
        statements = tuple(
            Statement.from_dict(restore_large_texts(item, fetch), f"authority.chain[{index}]")
            for index, item in enumerate(content["authority"]["chain"])
            if needs_evidence or item["purpose"] != POLICY_PURPOSE
        )
        return Preview(
            reason_code=str(result["reason_code"]),
            detail=str(result["detail"]),
            intent_id=str(result["intent_id"]),
            caller=str(result["caller"]),
            session=str(result["session"]),
            inputs=restore_large_texts(result["inputs"], fetch) if needs_evidence and "inputs" in result else None,
            inputs_sha256=str(result.get("inputs_sha256") or ""),
            context=dict(result["context"]),
            action_id=str(result["action_id"]),
            request_sha256=str(result["request_sha256"]),
            program_id=str(result["program_id"]),
            allow_pre=int(result["allow_pre"]),
            need_confirm=int(result["need_confirm"]),
            patch=result["patch"],
            facts_sha256=str(result["facts_sha256"]),
            base=result["base"],
            shares=read_shares(result["shares"], fetch) if needs_evidence else None,
            expires=str(result["expires"] or ""),
            approval=str(result["approval"] or ""),
            delegation=str(result["delegation"] or ""),
            record_id=str(content["id"]),
            decision_id=str((block.get("refs") or {}).get("decision") or ""),
            attestations=tuple(found for found in statements if found.purpose == POLICY_PURPOSE),
            delegations=tuple(found for found in statements if found.purpose == "delegation"),
            mediation=(
                "verified" if content["context"]["environment"][DOMAIN]["mediation"] == "verified" else "unverified"
            ),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the PREVIEW {record.id} is not whole") from error


def read_shares(references: Any, fetch: Callable[[str], bytes]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Read the two shares behind the references of a preview; None where it has none."""
    if references is None:
        return None
    digests = [digest for reference in references for digest, _ in blob_references(reference)]
    if len(digests) != 2 or len(references) != 2:
        raise BadInput("a PREVIEW has two shares, or none")
    first, second = (parse_document(fetch(digest), "a share", limit=SHARE_MAX) for digest in digests)
    return first, second
