"""The records of an act as a verifier reads them: only what the rules about acts need, and no record is believed.

`aver.gateway.act_records` says what the records hold. A verifier goes through long chains, so it keeps of each record
the few values that a later record is compared with. The large ones, such as the inputs, are reduced to digests when the
record is read.

All readers raise `BadInput`, or what Python raises for a record that lacks a key; the verdict then says
`SCHEMA_INVALID`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, get_args

import orjson

from aver.capsule.aver_block import read_block
from aver.capsule.blobs import blob_references, restore_large_texts
from aver.capsule.json_document import check_version
from aver.errors import AverError, BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.gate.decision_record import ALLOWING_DECISIONS, REFUSING_DECISIONS
from aver.gate.facts.decision_inputs import digest_recorded_inputs
from aver.gate.replay import MASK_MARK, read_basis
from aver.gateway.act_records import DOMAIN, TX_PREFIX, Mediation, digest_inputs
from aver.gateway.codes import ALLOW, REQUIRE_CONFIRM
from aver.gateway.delegation import DELEGATION_PURPOSE
from aver.gateway.proof.attestation import POLICY_PURPOSE
from aver.gateway.proof.evidence import PolicyBits
from aver.gateway.proof.patch import NOOP, REDACT_ID, SanitizePatch, apply_patch
from aver.gateway.proof.predicate import MAC_TTL
from aver.gateway.request import compute_request_sha256
from aver.gateway.settings import TTL_MAX
from aver.verdict import Place

FetchBlob = Callable[[str], bytes]
"""Returns the bytes of a blob; `NotFound` where it is not here."""

COMMITTABLE = frozenset({ALLOW, REQUIRE_CONFIRM})
"""The answers of a PREVIEW after which there can be a COMMIT."""


MEDIATIONS = get_args(Mediation)


class ActHeader(NamedTuple):
    """The values that every record of an act has."""

    record_id: str
    place: Place
    at: float
    """When it was sealed, as Unix time."""
    key: str
    parent: str
    refs: Mapping[str, Any]
    action_id: str
    correlation_id: str
    session: str
    deployment: str
    is_insecure: bool
    mediation: str


def read_header(place: Place, content: Mapping[str, Any]) -> ActHeader:
    """Read the values that every record of an act has."""
    block, result = read_block(content) or {}, content["outcome"]["result"]
    check_version(result["v"], "outcome.result")
    surroundings = content["context"]["environment"][DOMAIN]
    check_version(surroundings["v"], "environment.gateway")
    if type(surroundings["insecure"]) is not bool:
        raise BadInput("environment.gateway.insecure must be true or false")
    if surroundings["mediation"] not in MEDIATIONS:
        raise BadInput(f"environment.gateway.mediation must be one of {', '.join(MEDIATIONS)}")
    return ActHeader(
        record_id=str(content["id"]),
        place=place,
        at=parse_time(block["at"]),
        key=str(block.get("key") or ""),
        parent=str(content["parent_id"] or ""),
        refs=block.get("refs") or {},
        action_id=_read_text(result["action_id"]),
        correlation_id=str(content["trigger"]["correlation_id"]),
        session=str(content["context"]["session_id"]),
        deployment=str(surroundings["deployment"]),
        is_insecure=surroundings["insecure"],
        mediation=surroundings["mediation"],
    )


def parse_time(text: Any) -> float:
    """Return a time of a record as Unix time. `BadInput` where it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (OverflowError, TypeError, ValueError):
        raise BadInput(f"{ascii(text)[:80]} is not a time") from None


def _read_text(value: Any) -> str:
    if type(value) is not str:
        raise BadInput("a text is missing in the record of the act")
    return value


def digest_statement(document: Any) -> bytes:
    """Return a digest by which two statements in records are compared."""
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).digest()


def select_statements(content: Mapping[str, Any], purpose: str) -> list[Any]:
    """Return the statements of a purpose in `authority.chain`, as they stand there."""
    return [item for item in content["authority"]["chain"] if item["purpose"] == purpose]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPreview:
    """An `act.preview`, as far as later records of the act are compared with it."""

    header: ActHeader
    reason_code: str
    intent_id: str
    caller: str
    context: Mapping[str, str]
    request_sha256: str
    computed_sha256: str
    """The hash of the request, computed from the inputs; empty where the inputs are not here."""
    program_id: str
    bits: PolicyBits
    patch: SanitizePatch
    facts_sha256: str
    share_digests: tuple[str, ...]
    """The digests of both shares; empty for a refusal."""
    expires: float
    decision_id: str
    delegation: str
    inputs_sha256: str
    """The digest of the bound inputs."""
    sent_sha256: str
    """The digest of the inputs that go out, after the patch; empty where that cannot be computed."""
    is_missing_inputs: bool
    """Whether the record keeps the inputs, and a part of them is not here."""
    attested: tuple[bytes, ...] = ()
    """Digests of the attestations, in order."""
    delegated: tuple[bytes, ...] = ()
    """Digests of the delegations, in order."""

    @property
    def has_shares(self) -> bool:
        return bool(self.share_digests)

    @property
    def record_id(self) -> str:
        return self.header.record_id


def read_recorded_preview(header: ActHeader, content: Mapping[str, Any], fetch: FetchBlob) -> RecordedPreview:
    """Read an `act.preview`. Its shares are not fetched: the attestations name them by the digests of their blobs."""
    result = content["outcome"]["result"]
    patch = NOOP if result["patch"] is None else SanitizePatch.from_dict(result["patch"])
    intent_id, context = _read_text(result["intent_id"]), result["context"]
    known = (intent_id, _read_text(result["caller"]), _read_text(result["session"]))
    inputs_sha256, computed, sent, is_missing = str(result.get("inputs_sha256") or ""), "", "", False
    if "inputs" in result:
        try:
            inputs = _restore_inputs(result["inputs"], known, context, str(result["request_sha256"]), fetch)
            computed = compute_request_sha256(*known, inputs, context)
            inputs_sha256 = digest_inputs(inputs)
            sent = _compute_sent(patch, intent_id, inputs, inputs_sha256)
        except NotFound:
            is_missing = True
    elif patch == NOOP:
        sent = inputs_sha256
    shares = [share["blob"]["digest"] for share in result["shares"] or ()]
    return RecordedPreview(
        header=header,
        reason_code=_read_text(result["reason_code"]),
        intent_id=intent_id,
        caller=known[1],
        context=context,
        request_sha256=_read_text(result["request_sha256"]),
        computed_sha256=computed,
        program_id=_read_text(result["program_id"]),
        bits=PolicyBits(int(result["allow_pre"]), int(result["need_confirm"]), patch.id),
        patch=patch,
        facts_sha256=str(result["facts_sha256"]),
        share_digests=tuple(map(_read_text, shares)),
        expires=parse_time(result["expires"]) if result["expires"] else 0.0,
        decision_id=str(header.refs.get("decision") or ""),
        delegation=str(result["delegation"] or ""),
        inputs_sha256=inputs_sha256,
        sent_sha256=sent,
        is_missing_inputs=is_missing,
        attested=tuple(map(digest_statement, select_statements(content, POLICY_PURPOSE))),
        delegated=tuple(map(digest_statement, select_statements(content, DELEGATION_PURPOSE))),
    )


def _restore_inputs(
    kept: Any, known: tuple[str, str, str], context: Any, wanted: str, fetch: FetchBlob
) -> dict[str, Any]:
    """Return the inputs with their long texts. A reference that the caller itself had sent stays as it is."""
    if type(kept) is not dict or type(context) is not dict:
        raise BadInput("inputs and context of a PREVIEW must be objects")
    if next(blob_references(kept), None) is None:
        return kept
    restored: dict[str, Any] = restore_large_texts(kept, fetch)
    return kept if compute_request_sha256(*known, kept, context) == wanted else restored


def _compute_sent(patch: SanitizePatch, intent_id: str, inputs: Mapping[str, Any], inputs_sha256: str) -> str:
    """Return the digest of the inputs after the patch; empty where the patch cannot be applied."""
    # A record keeps inputs only where Aver found no secret in them. So there was nothing to redact, whatever the rules
    # of a later version would find.
    if patch.id in (NOOP.id, REDACT_ID):
        return inputs_sha256
    try:
        return apply_patch(patch, intent_id, inputs).sha256
    except (AverError, KeyError, TypeError):
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCommit:
    """An `act.commit`, as far as its outcome is compared with it."""

    header: ActHeader
    preview_id: str
    request_sha256: str
    program_id: str
    commit: Any
    """The evidence {policy0, policy1}, as sealed; None in insecure mode without evidence."""
    approval_use: str
    decision_id: str
    patch: SanitizePatch
    mac_ttl: int
    """The greatest age of shares that its executor accepted."""
    approver: str
    is_human_approved: bool


def read_recorded_commit(header: ActHeader, content: Mapping[str, Any]) -> RecordedCommit:
    """Read an `act.commit`."""
    result, authority = content["outcome"]["result"], content["authority"]
    tx_id, mac_ttl = _read_text(result["tx_id"]), result.get("mac_ttl", MAC_TTL)
    if not tx_id.startswith(TX_PREFIX):
        raise BadInput("tx_id is not that of a PREVIEW")
    if type(mac_ttl) is not int or not 0 < mac_ttl <= TTL_MAX:
        raise BadInput(f"mac_ttl must be 1 to {TTL_MAX} seconds")
    executor = result["executor"]
    _read_text(executor["instance"])
    _read_text(executor["host"])
    return RecordedCommit(
        header=header,
        preview_id=tx_id.removeprefix(TX_PREFIX),
        request_sha256=_read_text(result["request_sha256"]),
        program_id=_read_text(result["program_id"]),
        commit=result["commit"],
        approval_use=str(result["approval_use"] or ""),
        decision_id=str(result["decision"] or ""),
        patch=NOOP if result["patch"] is None else SanitizePatch.from_dict(result["patch"]),
        mac_ttl=mac_ttl,
        approver=str(authority["approver"] or ""),
        is_human_approved=authority["type"] == "human_approved",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutcome:
    """An `act.outcome`."""

    header: ActHeader
    reason_code: str
    sent_sha256: str
    call_sha256: str
    """The digest of the arguments of the call that it records; empty where secrets in them were masked."""
    has_call: bool


def read_recorded_outcome(header: ActHeader, content: Mapping[str, Any], fetch: FetchBlob) -> RecordedOutcome:
    """Read an `act.outcome`."""
    result, calls = content["outcome"]["result"], content["execution"]["tool_calls"]
    if len(calls) > 1:
        raise BadInput("an act has one call, or none")
    call_sha256 = ""
    if calls:
        arguments = calls[0]["arguments"]
        call_sha256 = digest_inputs(restore_large_texts(arguments, fetch))
        sent = str(result["sent_sha256"] or "")
        # Where secrets were masked, the arguments are not those that went out.
        if call_sha256 != sent and MASK_MARK in orjson.dumps(arguments):
            call_sha256 = ""
    return RecordedOutcome(
        header=header,
        reason_code=_read_text(result["reason_code"]),
        sent_sha256=str(result["sent_sha256"] or ""),
        call_sha256=call_sha256,
        has_call=bool(calls),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDecision:
    """A `gate.decision` about an act, as far as the act is compared with it."""

    record_id: str
    decision: str
    call_id: str
    session: str
    request_sha256: str
    digest: str
    input_sha256: str
    rules: tuple[str, ...]
    patch: str
    """The text of the deciding rules' `@patch`."""
    approval: str
    facts_sha256: str
    """The digest of all that it was made from; empty where secrets were masked, or a part is not here."""
    is_missing_basis: bool

    @property
    def allows(self) -> bool:
        return self.decision in ALLOWING_DECISIONS


def read_gated_decision(content: Mapping[str, Any], fetch: FetchBlob) -> GatedDecision | None:
    """Read the decision about an act; None for the decision about anything else."""
    result, refs = content["outcome"]["result"], (read_block(content) or {}).get("refs") or {}
    action, policy = result["action"], result["policy"] or {}
    if not action.get("request_sha256"):
        return None
    facts_sha256, is_missing = "", False
    if not result["masked"]["count"] and result["decision"] not in REFUSING_DECISIONS:
        try:
            inputs = {**result, "facts": restore_large_texts(result["facts"], fetch)}
            facts_sha256 = digest_recorded_inputs(inputs, read_basis(inputs, fetch, ("state", "written")))
        except NotFound:
            is_missing = True
    return GatedDecision(
        record_id=str(content["id"]),
        decision=_read_text(result["decision"]),
        call_id=_read_text(result["call_id"]),
        session=_read_text(action["session"]),
        request_sha256=_read_text(action["request_sha256"]),
        digest=_read_text(result["digest"]),
        input_sha256=str(result["input_sha256"] or ""),
        rules=tuple(map(str, policy.get("rules", ()))),
        patch=str(policy.get("patch") or ""),
        approval=str(refs.get("approval") or ""),
        facts_sha256=facts_sha256,
        is_missing_basis=is_missing,
    )
