"""The rules that the records of an act keep among themselves: pure functions from records to words.

Each function returns the first problem in words, or an empty text. The module `examiners` beside this one finds the
records, and turns the words into findings at their places.

The trust in policy servers comes from public keys that the verifier knows (`ActTrust`). Where an act's evidence is
judged, the accept predicate itself is applied: the verifier has no other rules than the executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from aver.capsule.canonical import canonical_bytes
from aver.config import load_config
from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.gate.approvals.vote import APPROVAL_PURPOSE
from aver.gate.decision_record import REFUSING_DECISIONS
from aver.gate.examiners import RecordedUse
from aver.gateway.act_records import find_mediation_change, mark_key, outcome_key
from aver.gateway.codes import ALLOW, ALLOW_INSECURE, SUCCESSES
from aver.gateway.judgement.recorded_act import (
    COMMITTABLE,
    GatedDecision,
    RecordedCommit,
    RecordedOutcome,
    RecordedPreview,
    digest_statement,
    parse_time,
    select_statements,
)
from aver.gateway.proof.attestation import (
    Attestation,
    BadAttestation,
    PolicyKeys,
    check_attestation,
    read_attestation,
)
from aver.gateway.proof.evidence import SERVERS, MacKeys
from aver.gateway.proof.patch import NOOP, parse_patch
from aver.gateway.proof.predicate import Acceptance, EvidenceTrust, KnownCommit, judge_commit
from aver.gateway.settings import TTL_MAX, read_gateway_settings
from aver.keys.mac_keys import mac_key_path, verifier_mac_source
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.log import debug
from aver.verdict import Examination

OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"

TIME_SLACK = 60.0
"""Seconds by which a record may be sealed after a time that the gateway has compared before: both policy servers, and
the executor, may take a while."""

KEYS_UNKNOWN = "the keys of policy:0 and policy:1 are not known here; aver keys export writes them, for --key FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActTrust:
    """The keys by which a verifier judges acts. None of them comes from the records."""

    policy_keys: PolicyKeys | None = None
    """None where a key of one of the servers is missing; `keys_problem` then says why."""
    keys_problem: str = ""
    are_told: tuple[bool, bool] = (False, False)
    """Whether the verifier was told keys of each server, beside those of its own ring."""
    retired: Mapping[str, float] = field(default_factory=dict)
    """When keys of policy servers were retired, by fingerprint, as Unix time."""
    mac_keys: Mapping[str, tuple[MacKeys, MacKeys]] = field(default_factory=dict)
    """The MAC keyrings of both servers by deployment, as far as they are at hand: a home may have run both."""
    principals: Mapping[str, PublicKey] = field(default_factory=dict)
    """The keys of principals by name."""


def load_trust(examination: Examination) -> ActTrust:
    """Take the policy servers' keys of the verifier's ring, and what the home of our own ledger has besides."""
    ring, home = examination.rules.ring, Path(examination.home) if examination.home else None
    mac_keys = _load_mac_keys(home)
    # Also where the acts are of another ledger: the settings are the verifier's own word about a principal.
    principals = _load_principals(Path(examination.verifier_home)) if examination.verifier_home else {}
    try:
        keys = PolicyKeys.from_ring(ring)
    except BadInput as error:
        return ActTrust(keys_problem=error.message, mac_keys=mac_keys, principals=principals)
    if not keys.server0 or not keys.server1:
        return ActTrust(keys_problem=KEYS_UNKNOWN, mac_keys=mac_keys, principals=principals)
    told = {entry.identity for entry in ring.published}
    return ActTrust(
        policy_keys=keys,
        are_told=("policy:0" in told, "policy:1" in told),
        retired=_find_retirements(ring, keys),
        mac_keys=mac_keys,
        principals=principals,
    )


def are_signers_unknown(statements: list[Any], trust: ActTrust) -> bool:
    """Whether attestations of another ledger are by keys about which the verifier knows nothing.

    The keys of the verifier's own policy servers say nothing about those of another ledger.
    """
    if trust.policy_keys is None:
        return False
    for server_id, document in zip(SERVERS, statements, strict=False):
        try:
            by = document["signatures"][0]["by"]
        except (IndexError, KeyError, TypeError):
            return False  # It does not hold, whatever its key.
        known = {key.fingerprint for key in trust.policy_keys.of(server_id)}
        if by not in known and not trust.are_told[server_id]:
            return True
    return False


def _find_retirements(ring: Ring, keys: PolicyKeys) -> dict[str, float]:
    times = ring.retirement_times()
    known = (key for server_id in SERVERS for key in keys.of(server_id))
    return {key.fingerprint: parse_time(times[key.ed25519]) for key in known if key.ed25519 in times}


def _load_mac_keys(home: Path | None) -> dict[str, tuple[MacKeys, MacKeys]]:
    """Load the MAC keyrings, from the environment or from the home of our own ledger.

    Servers in one process and those that run apart have keys of their own, and these can have the same names.
    """
    places = {"embedded": home, "apart": None if home is None else home / "gateway" / "executor"}
    found: dict[str, tuple[MacKeys, MacKeys]] = {}
    for deployment, place in places.items():
        try:
            first, second = (
                verifier_mac_source(server_id, None if place is None else mac_key_path(place, server_id)).load()
                for server_id in SERVERS
            )
            found[deployment] = first, second
        except AverError as error:
            debug("gateway", "there are no MAC keys of %s servers to check with: %s", deployment, error.message)
    return found


def _load_principals(home: Path) -> Mapping[str, PublicKey]:
    try:
        return read_gateway_settings(load_config(home=home)).keys
    except AverError as error:
        debug("gateway", "the principals in %s are not known: %s", home, error.message)
        return {}


# --- PREVIEW


def find_preview_problem(preview: RecordedPreview) -> str:
    """Say why a PREVIEW contradicts itself."""
    if preview.computed_sha256 and preview.computed_sha256 != preview.request_sha256:
        return "its request_sha256 is not that of its inputs"
    if preview.has_shares != (preview.reason_code in COMMITTABLE):
        return f"it answers {preview.reason_code}, and {'has' if preview.has_shares else 'lacks'} evidence"
    if not preview.has_shares:
        return ""
    if len(preview.share_digests) != len(SERVERS) or not preview.request_sha256 or preview.bits.allow_pre != 1:
        return "its evidence is not whole"
    if preview.reason_code != ALLOW and not preview.bits.need_confirm:
        return "it asks for a person, and its evidence does not"
    if not 0 < preview.expires <= preview.header.at + TTL_MAX + TIME_SLACK:
        return "it can be committed for longer than any setting allows"
    return ""


def find_attestation_problem(preview: RecordedPreview, statements: list[Any], trust: ActTrust) -> str:
    """Say why the attestations of a PREVIEW do not hold. Without the servers' keys, all but the signatures counts."""
    if len(statements) != len(SERVERS):
        return "it lacks an attestation of both policy servers"
    for server_id, document in enumerate(statements):
        try:
            attestation = _read_attestation(document, server_id, trust)
        except BadAttestation as error:
            return error.message
        wanted = {
            "action_id": preview.header.action_id,
            "request_sha256": preview.request_sha256,
            "program_id": preview.program_id,
            "facts_sha256": preview.facts_sha256,
            "share_sha256": preview.share_digests[server_id],
            "bits": preview.bits,
        }
        for name, value in wanted.items():
            if getattr(attestation, name) != value:
                return f"policy:{server_id} attests another {name}"
    return ""


def _read_attestation(document: Any, server_id: int, trust: ActTrust) -> Attestation:
    if trust.policy_keys is None:
        return read_attestation(document, server_id)[1]
    attestation = check_attestation(document, server_id, trust.policy_keys.of(server_id))
    _check_signer(document, attestation, trust)
    return attestation


def _check_signer(document: Mapping[str, Any], attestation: Attestation, trust: ActTrust) -> None:
    """Raise `BadAttestation` where a key attests something that was no server's any more."""
    by = document["signatures"][0]["by"]
    if attestation.ts > trust.retired.get(by, float("inf")) + TIME_SLACK:
        raise BadAttestation(f"the attestation of policy:{attestation.server_id} is by its key {by}, which was retired")


def find_previewed_decision_problem(preview: RecordedPreview, decision: GatedDecision) -> str:
    """Say why a PREVIEW does not follow from the decision that it names."""
    if words := _find_link_problem(preview, decision):
        return words
    fits = {ALLOW: decision.allows, "REQUIRE_CONFIRM": decision.decision == "human_review"}
    if not fits.get(preview.reason_code, decision.decision in REFUSING_DECISIONS):
        return f"it answers {preview.reason_code}, and the gate decided {decision.decision}"
    if preview.has_shares and decision.facts_sha256 and decision.facts_sha256 != preview.facts_sha256:
        return "it was decided by other facts than the gate's decision"
    return ""


def _find_link_problem(preview: RecordedPreview, decision: GatedDecision) -> str:
    """Say why a decision is not about the act of a PREVIEW."""
    if decision.call_id != preview.header.action_id:
        return "the gate's decision is about another act"
    if decision.request_sha256 != preview.request_sha256 or decision.session != preview.header.session:
        return "the gate's decision is about another request"
    if preview.inputs_sha256 and decision.input_sha256 != preview.inputs_sha256:
        return "the gate's decision is about other inputs"
    return ""


# --- COMMIT


def find_commit_problems(commit: RecordedCommit, preview: RecordedPreview) -> Iterator[str]:
    """Say why a COMMIT does not follow from its PREVIEW."""
    header = commit.header
    if header.key != mark_key(header.action_id):
        yield "its idempotency key is not that of its act, so the act could have happened twice"
    if header.parent != commit.preview_id or preview.header.action_id != header.action_id:
        yield "its PREVIEW is of another act"
    if commit.request_sha256 != preview.request_sha256:
        yield "its PREVIEW is of another request"
    if commit.patch != preview.patch:
        yield "it applies another patch than its PREVIEW shows"
    if header.at > preview.expires + TIME_SLACK:
        yield "its PREVIEW had expired"
    if words := find_mediation_change(preview.header.mediation, header.mediation):
        yield words
    named = {"decision": commit.decision_id, "approval": commit.approval_use}
    if any(header.refs.get(name, "") != value for name, value in named.items()):
        yield "its references are not those that it names"
    if commit.is_human_approved != bool(commit.approval_use):
        yield "it says that a person approved it, and names no use of an approval, or the other way round"


def judge_evidence(
    commit: RecordedCommit,
    preview: RecordedPreview,
    statements: list[Any],
    trust: ActTrust,
    *,
    replay_seen: bool,
) -> Acceptance:
    """Apply the accept predicate to a COMMIT, at the time of its record.

    Whether a person has approved is judged apart (`find_confirmation_problem`), so that a missing approval is told from
    one that does not hold.
    """
    is_judged = tuple(map(digest_statement, statements)) == preview.attested
    mac_keys = _select_mac_keys(commit, trust)
    return judge_commit(
        commit.commit,
        statements,
        KnownCommit(
            action_id=commit.header.action_id,
            request_sha256=preview.computed_sha256 or preview.request_sha256,
            program_id=commit.program_id,
            now=commit.header.at,
            replay_seen=replay_seen,
            confirmed=True,
            intent_id=preview.intent_id,
            patch=commit.patch,
        ),
        EvidenceTrust(
            mac_keys0=mac_keys[0],
            mac_keys1=mac_keys[1],
            # Signing is the costly part. The very same statements were checked with the PREVIEW.
            policy_keys=None if is_judged else trust.policy_keys,
            mac_ttl=commit.mac_ttl,
        ),
    )


def find_signer_problem(acceptance: Acceptance, statements: list[Any], trust: ActTrust) -> str:
    """Say why the attestations of a COMMIT that holds are by keys that were no servers' any more."""
    try:
        for document, attestation in zip(statements, acceptance.attestations, strict=False):
            if attestation is not None:
                _check_signer(document, attestation, trust)
    except BadAttestation as error:
        return error.message
    return ""


def _select_mac_keys(commit: RecordedCommit, trust: ActTrust) -> tuple[MacKeys | None, MacKeys | None]:
    """Return the MAC keys, if they have the keys of this evidence. A key that is gone since then proves nothing."""
    known = trust.mac_keys.get(commit.header.deployment)
    if known is None or type(commit.commit) is not dict:
        return None, None
    for server_id, keys in zip(SERVERS, known, strict=True):
        share = commit.commit.get(f"policy{server_id}")
        kid = share.get("kid") if type(share) is dict else None
        if type(kid) is not str or keys.find(kid) is None:
            return None, None
    return known


def find_decision_problem(
    commit: RecordedCommit, preview: RecordedPreview, decision: GatedDecision, acceptance: Acceptance
) -> str:
    """Say why a COMMIT does not follow from the decision that it rests on."""
    if words := _find_link_problem(preview, decision):
        return words
    # Without a use of an approval, a person's confirmation may be the caller's word: that is a warning elsewhere.
    if not decision.allows and (decision.decision != "human_review" or commit.approval_use):
        return f"the gate decided {decision.decision}"
    if acceptance.bits is not None and bool(acceptance.bits.need_confirm) != (decision.decision != "pass"):
        return "its evidence asks for a person where the gate's decision does not, or the other way round"
    if decision.approval != commit.approval_use:
        return "the gate's decision is by another approval"
    if commit.patch != (parse_patch(decision.patch) if decision.patch else NOOP):
        return "the rules that decided want another patch"
    for attestation in acceptance.attestations:
        if attestation is None:
            continue
        if decision.facts_sha256 and attestation.facts_sha256 != decision.facts_sha256:
            return f"policy:{attestation.server_id} attests other facts than the gate's decision has"
        if attestation.rules != decision.rules:
            return f"policy:{attestation.server_id} attests other rules than the gate's decision has"
    return ""


def find_confirmation_problem(
    commit: RecordedCommit, content: Mapping[str, Any], decision: GatedDecision | None, used: RecordedUse | None
) -> str:
    """Say why a COMMIT that names the use of an approval is not covered by it. `used` is the use that is left."""
    use = None if used is None else used.vote.use
    if used is None or use is None:
        return "that use does not exist, or was counted for another act"
    if use.call_id != commit.header.action_id or use.session != commit.header.session:
        return "the approval was used for another act"
    if decision is not None and used.request.digest != decision.digest:
        return "the approval is of another action"
    if commit.approver != ", ".join(use.approvers):
        return "others approved it than it says"
    statements = [canonical_bytes(statement) for statement in select_statements(content, APPROVAL_PURPOSE)]
    if not statements or not set(statements) <= set(used.statements):
        return "its statements are not those of the people who approved it"
    return ""


# --- outcome


def find_outcome_problem(
    outcome: RecordedOutcome, commit: RecordedCommit | None, preview: RecordedPreview | None
) -> str:
    """Say why an outcome does not follow from its COMMIT. Without a COMMIT, it can only be a refusal."""
    header, code = outcome.header, outcome.reason_code
    if commit is None:
        if code in SUCCESSES or code == OUTCOME_UNKNOWN or header.key:
            return f"it says {code}, and there is no COMMIT before it that has no outcome yet"
        return "something went out, and there is no COMMIT before it" if outcome.has_call or outcome.sent_sha256 else ""
    if header.action_id != commit.header.action_id or header.key != outcome_key(header.action_id):
        return "it is the outcome of another act than its COMMIT"
    if header.mediation == "verified" and commit.header.mediation != "verified":
        return "it says verified, and its COMMIT does not"
    if code == OUTCOME_UNKNOWN:
        return "it says what went out, and that nobody knows it" if outcome.has_call or outcome.sent_sha256 else ""
    if code in SUCCESSES and (code == ALLOW_INSECURE) != commit.header.is_insecure:
        return f"it says {code}, and its COMMIT was made in another mode"
    if not outcome.has_call or not outcome.sent_sha256:
        return "it does not say what went out"
    if preview is not None and preview.sent_sha256 and outcome.sent_sha256 != preview.sent_sha256:
        return "something else went out than the patched inputs"
    if outcome.call_sha256 and outcome.call_sha256 != outcome.sent_sha256:
        return "the call that it records is not what went out"
    return ""
