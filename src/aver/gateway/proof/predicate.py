"""The accept predicate: may a COMMIT with this evidence be carried out? One pure function for every judge.

The executor asks it before an effect, `aver gateway verify-evidence` about files, and the verdict about records. They
differ only in their keys and in what they know:

    acceptance = judge_commit(commit, attestations, known, trust)
    acceptance.accepted        whether every check was made, and passed
    acceptance.reason_code     ALLOW, or the code of the first check that did not pass
    acceptance.detail          for BAD_COMMIT_PROOF, one of the details in `codes.json`

The checks, in this order. The first that fails gives the code:

     1  evidence      there is a commit                                        MISSING_EVIDENCE
     2  schema        both shares are there, by the JSON Schema of the RFC     BAD_COMMIT_PROOF
     3  form          and in their only form: canonical base64, true integers  BAD_COMMIT_PROOF
     4  mac           each by the key that its kid names                       BAD_COMMIT_PROOF
     5  servers       server 0 in policy0, server 1 in policy1                 BAD_COMMIT_PROOF
     6  age           at most the TTL old, or as far in the future             BAD_COMMIT_PROOF
     7  ids           of this action_id and program_id                         BAD_COMMIT_PROOF
     8  tag           both tag shares of the required length                   BAD_COMMIT_PROOF
     9  outputs       every required output in both shares                     BAD_COMMIT_PROOF
    10  request       of this request_sha256                                   BAD_COMMIT_PROOF
    11  replay        the action_id was not used before                        REPLAY_DENY
    12  allow         allow_pre is 1                                           POLICY_DENY
    13  confirm       need_confirm is 0, or a person has approved              REQUIRE_CONFIRM
    14  patch         the patch at hand is the one of the outputs, and applies POLICY_DENY
    15  attestations  each server has signed this very decision, about its
                      share, and both about the same facts                     BAD_COMMIT_PROOF

Without MAC keys, or without the servers' public keys, a check is `not_checked`. It has not failed then, and the
evidence is not accepted either: `holds` says whether anything failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.gateway.codes import (
    ALLOW,
    BAD_COMMIT_PROOF,
    MISSING_EVIDENCE,
    POLICY_DENY,
    REPLAY_DENY,
    REQUIRE_CONFIRM,
)
from aver.gateway.proof.attestation import (
    Attestation,
    BadAttestation,
    PolicyKeys,
    check_attestation,
    find_binding_problem,
    read_attestation,
)
from aver.gateway.proof.evidence import (
    SERVERS,
    BadShare,
    MacKeys,
    PolicyBits,
    Share,
    is_valid_mac,
    join_shares,
    join_tags,
)
from aver.gateway.proof.patch import NOOP, SanitizePatch, is_applicable
from aver.gateway.specs import AcceptRules, find_evidence_error
from aver.log import debug

MAC_TTL = 30
"""Greatest age of a share, in seconds, where `POLICY_MAC_TTL_S` says nothing else."""

NOT_CHECKED = "not_checked"

PROOF_CHECKS = (
    *("evidence", "schema", "form", "mac", "servers", "age", "ids", "tag", "outputs", "request"),
    *("replay", "allow", "confirm", "patch", "attestations"),
)
"""Every check, in order."""

ProofStatus = Literal["passed", "failed", "not_checked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCommit:
    """What the judge itself knows about the commit. Nothing of it comes from the evidence."""

    action_id: str
    request_sha256: str
    """The hash that the judge computed from the request it received."""
    program_id: str
    now: float
    """Unix time: the executor's clock, or the time of the record that is judged."""
    replay_seen: bool = False
    """Whether this `action_id` was used before."""
    confirmed: bool = False
    """Whether a person has approved the request. The judge has checked that."""
    intent_id: str = ""
    patch: SanitizePatch | None = NOOP
    """The patch that the judge is ready to apply, or that was applied. None: it judges the evidence alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTrust:
    """The keys by which the judge checks evidence. None means that it has none, and cannot check."""

    mac_keys0: MacKeys | None = None
    mac_keys1: MacKeys | None = None
    policy_keys: PolicyKeys | None = None
    mac_ttl: float = MAC_TTL
    attestations: Literal["required", "ignored"] = "required"
    """`ignored`: the judge goes by the RFC alone."""


@dataclass(frozen=True, slots=True)
class ProofProblem:
    """A check that failed: its name, the code and detail to answer with, and words."""

    check: str
    reason_code: str
    detail: str
    words: str
    server_id: int | None = None


@dataclass(frozen=True, slots=True)
class ShareResult:
    """The result about one share."""

    share: Share | None
    """None if it could not be read."""
    mac: ProofStatus
    detail: str
    """The detail of its first problem; `not_checked` if only its MAC was not checked; empty if it is good."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The answer of the accept predicate."""

    problems: tuple[ProofProblem, ...]
    """Every check that failed, in order."""
    not_checked: tuple[str, ...]
    """The names of the checks that could not be made."""
    shares: tuple[ShareResult, ShareResult]
    outputs: Mapping[str, int] = field(default_factory=dict)
    """The plain output bits; empty if the shares could not be joined."""
    bits: PolicyBits | None = None
    """The decision that the shares give together."""
    tag_b64: str = ""
    """The commit tag."""
    schema_error: str = ""
    missing_outputs: tuple[str, ...] = ()
    attestations: tuple[Attestation | None, Attestation | None] = (None, None)

    @property
    def holds(self) -> bool:
        """Whether nothing failed. Something may not have been checked."""
        return not self.problems

    @property
    def accepted(self) -> bool:
        """Whether every check was made, and passed. Only then may there be an effect."""
        return not self.problems and not self.not_checked

    @property
    def reason_code(self) -> str:
        if self.problems:
            return self.problems[0].reason_code
        return BAD_COMMIT_PROOF if self.not_checked else ALLOW

    @property
    def detail(self) -> str:
        """The detail of the first problem; `not_checked` if nothing failed and something was not checked."""
        if self.problems:
            return self.problems[0].detail
        return NOT_CHECKED if self.not_checked else ""

    @property
    def words(self) -> str:
        """The first problem in words; empty if there is none."""
        if self.problems:
            return self.problems[0].words
        return f"these checks were not made: {', '.join(self.not_checked)}" if self.not_checked else ""

    @property
    def patch_id(self) -> int | None:
        return None if self.bits is None else self.bits.patch_id

    def status(self, check: str) -> ProofStatus:
        """The result of one check. Checks after a share that could not be read are `not_checked`."""
        if any(problem.check == check for problem in self.problems):
            return "failed"
        return "not_checked" if check in self.not_checked else "passed"


def judge_commit(
    commit: Any,
    attestations: Any,
    known: KnownCommit,
    trust: EvidenceTrust,
    *,
    rules: AcceptRules | None = None,
) -> Acceptance:
    """Judge the evidence of a COMMIT. Raises nothing, whatever JSON `commit` and `attestations` are.

    `commit` is {policy0, policy1}, or None. `attestations` are the statements of server 0 and of server 1 in a list, as
    values or as JSON, or None. `rules` are those of a spec file, by default those of the RFC; the program is always
    `known.program_id`.
    """
    rules = AcceptRules() if rules is None else rules
    if commit is None:  # 1.
        return _refuse_unread([ProofProblem("evidence", MISSING_EVIDENCE, "", "the COMMIT carries no evidence")], "")
    schema_error = find_evidence_error(commit)
    shares, problems = _read_shares(commit, schema_error)  # 2 and 3.
    if shares is None:
        return _refuse_unread(problems, schema_error)
    macs, mac_problems = _check_macs(shares, trust)  # 4.
    problems = [*mac_problems, *_find_field_problems(shares, known, trust, rules)]  # 5 to 8.
    outputs = join_shares(*shares)
    missing = tuple(name for name in rules.required_outputs if name not in outputs)
    problems += _find_output_problems(shares, missing)  # 9.
    bits = None if missing else PolicyBits.from_outputs(outputs)
    problems += [
        _share_problem(share, "request", "bad_request_sha256", "is about another request")
        for share in shares
        if share.request_sha256 != known.request_sha256  # 10.
    ]
    problems += _find_decision_problems(bits, known)  # 11 to 14.
    not_checked = ["mac"] if "not_checked" in macs else []
    attested: tuple[Attestation | None, Attestation | None] = (None, None)
    if trust.attestations == "required":  # 15.
        attested, attestation_problems = _judge_attestations(attestations, shares, bits, trust.policy_keys)
        problems += attestation_problems
        if not attestation_problems and trust.policy_keys is None:
            not_checked.append("attestations")
    _log_refusal(problems)
    results = [
        ShareResult(share, mac, _first_detail(problems, share.server_id) or (NOT_CHECKED if mac == NOT_CHECKED else ""))
        for share, mac in zip(shares, macs, strict=True)
    ]
    return Acceptance(
        problems=tuple(problems),
        not_checked=tuple(not_checked),
        shares=(results[0], results[1]),
        outputs=outputs,
        bits=bits,
        tag_b64=join_tags(*shares) if len(shares[0].tag_share) == len(shares[1].tag_share) else "",
        missing_outputs=missing,
        attestations=attested,
    )


def _refuse_unread(problems: list[ProofProblem], schema_error: str) -> Acceptance:
    """The answer about evidence that cannot be read: all later checks are left out."""
    _log_refusal(problems)
    later = PROOF_CHECKS[PROOF_CHECKS.index(problems[0].check) + 1 :]
    # A problem of both shares together, such as a further key beside them, is one of each.
    results = [ShareResult(None, "not_checked", _first_detail(problems, n, None) or NOT_CHECKED) for n in SERVERS]
    return Acceptance(tuple(problems), later, (results[0], results[1]), schema_error=schema_error)


def _log_refusal(problems: list[ProofProblem]) -> None:
    for first in problems[:1]:
        debug("gateway", "refused as %s %s: %s", first.reason_code, first.detail, first.words)


def _first_detail(problems: list[ProofProblem], *server_ids: int | None) -> str:
    return next((problem.detail for problem in problems if problem.server_id in server_ids), "")


def _share_problem(share: Share, check: str, detail: str, words: str) -> ProofProblem:
    return ProofProblem(
        check, BAD_COMMIT_PROOF, detail, f"the share of server {share.server_id} {words}", share.server_id
    )


def _read_shares(commit: Any, schema_error: str) -> tuple[tuple[Share, Share] | None, list[ProofProblem]]:
    """Checks 2 and 3. The schema says only that something is wrong. Reading the shares says what."""
    check = "schema" if schema_error else "form"
    shares: list[Share] = []
    problems: list[ProofProblem] = []
    for server_id in SERVERS:
        name = f"policy{server_id}"
        if type(commit) is not dict or name not in commit:
            problems.append(ProofProblem(check, BAD_COMMIT_PROOF, "missing_commit", f"{name} is missing", server_id))
            continue
        try:
            shares.append(Share.parse(commit[name], name))
        except BadShare as error:
            problems.append(ProofProblem(check, BAD_COMMIT_PROOF, error.detail, error.message, server_id))
    if not problems and schema_error:
        misplaced = [share for share, server_id in zip(shares, SERVERS, strict=True) if share.server_id != server_id]
        detail = "server_id_mismatch" if misplaced else "bad_proof"
        problems.append(ProofProblem(check, BAD_COMMIT_PROOF, detail, schema_error))
    return (None, problems) if problems else ((shares[0], shares[1]), [])


def _check_macs(
    shares: tuple[Share, Share], trust: EvidenceTrust
) -> tuple[tuple[ProofStatus, ProofStatus], list[ProofProblem]]:
    """Check 4."""
    statuses: list[ProofStatus] = []
    problems: list[ProofProblem] = []
    for share, keys in zip(shares, (trust.mac_keys0, trust.mac_keys1), strict=True):
        if keys is None:
            statuses.append("not_checked")
            continue
        key = keys.find(share.kid)
        if key is None:
            problems.append(_share_problem(share, "mac", "unknown_kid", "names a MAC key that is not known"))
        elif not is_valid_mac(share, key):
            problems.append(_share_problem(share, "mac", "bad_mac", "has a wrong MAC"))
        else:
            statuses.append("passed")
            continue
        statuses.append("failed")
    return (statuses[0], statuses[1]), problems


def _find_field_problems(
    shares: tuple[Share, Share], known: KnownCommit, trust: EvidenceTrust, rules: AcceptRules
) -> list[ProofProblem]:
    """Checks 5 to 8, each for both shares before the next."""
    problems: list[ProofProblem] = []
    for share, server_id in zip(shares, SERVERS, strict=True):  # The schema has said so before; this costs nothing.
        if share.server_id != server_id:
            problems.append(_share_problem(share, "servers", "server_id_mismatch", f"stands in policy{server_id}"))
    for share in shares:
        # Written so that a `now` that is no number is too old.
        if not abs(known.now - share.ts) <= trust.mac_ttl:
            words = f"is more than {trust.mac_ttl:g} seconds from now"
            problems.append(_share_problem(share, "age", "expired_proof", words))
    for share in shares:
        if share.action_id != known.action_id:
            problems.append(_share_problem(share, "ids", "bad_action_id", "is about another action_id"))
        if share.program_id != known.program_id:
            problems.append(_share_problem(share, "ids", "bad_program_id", "was made by another program"))
    for share in shares:
        if len(share.tag_share) != rules.tag_bytes:
            words = f"has a commit tag of {len(share.tag_share)} bytes instead of {rules.tag_bytes}"
            problems.append(_share_problem(share, "tag", "bad_commit_tag_len", words))
    return problems


def _find_output_problems(shares: tuple[Share, Share], missing: tuple[str, ...]) -> list[ProofProblem]:
    """Check 9. A required output in one of the shares alone is missing, because nothing can be joined with it."""
    if missing:
        words = f"not both shares have {', '.join(missing)}"
        return [ProofProblem("outputs", BAD_COMMIT_PROOF, "missing_output_key", words)]
    if single := sorted(shares[0].outputs.keys() ^ shares[1].outputs.keys()):
        words = f"only one share has {ascii(single[0])[:80]}"
        return [ProofProblem("outputs", BAD_COMMIT_PROOF, "bad_outputs", words)]
    return []


def _find_decision_problems(bits: PolicyBits | None, known: KnownCommit) -> list[ProofProblem]:
    """Checks 11 to 14."""
    problems: list[ProofProblem] = []
    if known.replay_seen:
        problems.append(ProofProblem("replay", REPLAY_DENY, "", "this action_id was used before"))
    if bits is None:
        return problems
    if bits.allow_pre != 1:
        problems.append(ProofProblem("allow", POLICY_DENY, "", "allow_pre is 0"))
    if bits.need_confirm and not known.confirmed:
        problems.append(ProofProblem("confirm", REQUIRE_CONFIRM, "", "no person has approved this request"))
    patch = known.patch
    if patch is not None and patch.id != bits.patch_id:
        words = f"the evidence wants patch {bits.patch_id}, and patch {patch.id} is at hand"
        problems.append(ProofProblem("patch", POLICY_DENY, "", words))
    elif patch is not None and known.intent_id and not is_applicable(patch, known.intent_id):
        words = f"{patch.name} cannot be applied to {known.intent_id}"
        problems.append(ProofProblem("patch", POLICY_DENY, "", words))
    return problems


def _judge_attestations(
    documents: Any, shares: tuple[Share, Share], bits: PolicyBits | None, keys: PolicyKeys | None
) -> tuple[tuple[Attestation | None, Attestation | None], list[ProofProblem]]:
    """Check 15. Without keys, everything but the signatures is checked."""

    def fail(detail: str, words: str) -> ProofProblem:
        return ProofProblem("attestations", BAD_COMMIT_PROOF, detail, words)

    if not isinstance(documents, list | tuple) or len(documents) != len(SERVERS):
        return (None, None), [fail("bad_attestation", "there must be two attestations, of server 0 and of server 1")]
    attested: list[Attestation | None] = []
    problems: list[ProofProblem] = []
    for document, share in zip(documents, shares, strict=True):
        server_id = share.server_id
        try:
            if keys is None:
                _, attestation = read_attestation(document, server_id)
            else:
                attestation = check_attestation(document, server_id, keys.of(server_id))
            if words := find_binding_problem(attestation, share):
                raise BadAttestation(words)
            attested.append(attestation)
        except BadAttestation as error:
            problems.append(fail("bad_attestation", error.message))
            attested.append(None)
    first, second = attested
    # Each server alone must have decided what the shares say together. So no server changes the decision of another.
    for one in (first, second):
        if one is not None and one.bits != bits:
            problems.append(fail("servers_disagree", f"server {one.server_id} attests {one.bits}, the shares {bits}"))
    if first is not None and second is not None and first.facts_sha256 != second.facts_sha256:
        problems.append(fail("facts_differ", "the servers attest different facts"))
    return (first, second), problems
