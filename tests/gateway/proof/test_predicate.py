"""The accept predicate: the corpus of evidence, one bad server in every way, and every changed byte."""

from __future__ import annotations

import base64
import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.capsule.json_reader import Unreadable, read_json
from aver.gateway.codes import load_proof_details, load_reason_codes
from aver.gateway.proof.attestation import PolicyKeys
from aver.gateway.proof.evidence import PolicyBits, build_share
from aver.gateway.proof.patch import NOOP, parse_patch
from aver.gateway.proof.predicate import PROOF_CHECKS, Acceptance, EvidenceTrust, judge_commit
from aver.keys import SeedSigner
from support.commit_evidence import (
    ACTION,
    ALLOWED,
    KNOWN,
    MAC_KEYS,
    MASK_KEY,
    POLICY_KEYS,
    PROGRAM,
    PUBLIC_TRUST,
    REQUEST,
    SIGNERS,
    TRUST,
    TS,
    CommitEvidence,
    MacKeyTable,
)
from support.many_cases import for_each

CORPUS = json.loads((Path(__file__).parent / "corpus" / "evidence.json").read_text("utf-8"))
STRANGER = SeedSigner(bytes([0x66]) * 32)


# --- the corpus


def place_of(commit: Any, path: str) -> tuple[Any, str]:
    *steps, last = path.split(".")
    for step in steps:
        commit = commit[step]
    return commit, last


def change_commit(evidence: CommitEvidence, case: dict[str, Any]) -> None:
    commit = evidence.commit
    for path, value in case.get("set", {}).items():
        holder, name = place_of(commit, path)
        holder[name] = copy.deepcopy(value)
    for path in case.get("delete", []):
        holder, name = place_of(commit, path)
        del holder[name]
    for path in case.get("flip", []):
        holder, name = place_of(commit, path)
        holder[name] ^= 1
    for path, text in case.get("append", {}).items():
        holder, name = place_of(commit, path)
        holder[name] += text
    for path in case.get("base64_bits", []):
        holder, name = place_of(commit, path)
        text = holder[name]
        other = next(
            changed
            for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
            if (changed := f"{text[:-2]}{letter}=") != text and base64.b64decode(changed) == base64.b64decode(text)
        )
        holder[name] = other
    for to, source in case.get("copy", {}).items():
        commit[to] = copy.deepcopy(commit[source])
    if "swap" in case:
        first, second = case["swap"]
        commit[first], commit[second] = commit[second], commit[first]


def change_attestations(evidence: CommitEvidence, case: dict[str, Any]) -> None:
    if "content" in case:
        evidence.content(case["content"]["server"]).update(case["content"]["set"])
    if "statement" in case:
        evidence.attestations[case["statement"]["server"]].update(case["statement"]["set"])
    first, second = evidence.attestations
    lists = {"swap": [second, first], "first": [first], "three": [first, second, second], "twice": [first, first]}
    if "attest" in case:
        evidence.attestations = lists[case["attest"]]


def seal_again(evidence: CommitEvidence, case: dict[str, Any]) -> None:
    if case["by"] == "server":
        for server_id in (0, 1):
            evidence.mac(server_id)
            try:
                evidence.bind(server_id)
                evidence.attest(server_id)
            except Exception:  # A share with a lone surrogate, which nobody can attest.
                assert "surrogate" in case["name"]
    elif case["by"] == "server-attests":
        evidence.attest(case["content"]["server"])
    elif case["by"] == "other-key":
        evidence.mac(case["server"], key=MAC_KEYS[case["mac_key"]])
    elif case["by"] == "other-signer":
        signer = (*SIGNERS, STRANGER)[case.get("signer", case["server"])]
        evidence.attest(case["server"], signer=signer, purpose=case.get("purpose", "policy"))
    else:
        assert case["by"] == "outsider"


def judge_case(case: dict[str, Any]) -> Acceptance:
    bits = PolicyBits(*case.get("bits", ALLOWED))
    attested = PolicyBits(*case["attested"]) if "attested" in case else bits
    evidence = CommitEvidence(bits, attested=(attested, attested))
    change_commit(evidence, case)
    change_attestations(evidence, case)
    seal_again(evidence, case)
    evidence.commit = case.get("commit", evidence.commit)
    evidence.attestations = case.get("attestations", evidence.attestations)
    patch = parse_patch(case["patch"]) if "patch" in case else NOOP
    return evidence.judge(patch=patch, **case.get("known", {}))


def case_name(case: dict[str, Any]) -> str:
    return str(case["name"])


@for_each(CORPUS["accepted"], case_name)
def test_accepted(case: dict[str, Any]) -> None:
    acceptance = judge_case(case)
    assert (acceptance.reason_code, acceptance.detail, acceptance.words) == ("ALLOW", "", "")
    assert acceptance.accepted
    assert acceptance.holds
    assert {acceptance.status(check) for check in PROOF_CHECKS} == {"passed"}


@for_each(CORPUS["refused"], case_name)
def test_refused_with_code_and_detail(case: dict[str, Any]) -> None:
    acceptance = judge_case(case)
    assert (acceptance.reason_code, acceptance.detail) == (case["code"], case["detail"]), acceptance.words
    assert not acceptance.accepted
    assert not acceptance.holds
    assert acceptance.words
    assert case["code"] in load_reason_codes()
    assert case["detail"] in load_proof_details() or case["detail"] == ""


def test_the_corpus_has_every_detail() -> None:
    details = {case["detail"] for case in CORPUS["refused"]} - {""}
    assert details == load_proof_details().keys()
    assert len(CORPUS["refused"]) > 10 * len(CORPUS["accepted"])


# --- the order of the checks


def break_everything() -> tuple[CommitEvidence, dict[str, Any]]:
    """Evidence in which every check after the form fails."""
    evidence = CommitEvidence(PolicyBits(0, 1, 1), attested=(ALLOWED, ALLOWED))
    share = evidence.commit["policy0"]
    share |= {"ts": 0, "action_id": "a_x", "program_id": "x", "request_sha256": "0" * 64}
    share["commit_tag_share_b64"] = "AQEB"
    share["outputs"]["extra"] = 1
    evidence.attestations = []
    return evidence, {"replay_seen": True}


def test_the_first_check_that_fails_gives_the_code() -> None:
    evidence, known = break_everything()
    acceptance = evidence.judge(**known)
    failed = list(dict.fromkeys(problem.check for problem in acceptance.problems))
    expected = ["mac", "age", "ids", "tag", "outputs", "request", "replay", "allow", "confirm", "patch", "attestations"]
    assert failed == expected
    codes = list(dict.fromkeys((problem.reason_code, problem.detail) for problem in acceptance.problems))
    assert codes == [
        ("BAD_COMMIT_PROOF", "bad_mac"),
        ("BAD_COMMIT_PROOF", "expired_proof"),
        ("BAD_COMMIT_PROOF", "bad_action_id"),
        ("BAD_COMMIT_PROOF", "bad_program_id"),
        ("BAD_COMMIT_PROOF", "bad_commit_tag_len"),
        ("BAD_COMMIT_PROOF", "bad_outputs"),
        ("BAD_COMMIT_PROOF", "bad_request_sha256"),
        ("REPLAY_DENY", ""),
        ("POLICY_DENY", ""),
        ("REQUIRE_CONFIRM", ""),
        ("BAD_COMMIT_PROOF", "bad_attestation"),
    ]


def test_the_schema_comes_before_everything() -> None:
    evidence, known = break_everything()
    evidence.commit["policy1"]["v"] = 2
    acceptance = evidence.judge(**known)
    assert [problem.check for problem in acceptance.problems] == ["schema"]
    assert acceptance.detail == "bad_proof_version"
    assert acceptance.schema_error.startswith("policy1")
    assert acceptance.not_checked == PROOF_CHECKS[2:]
    assert [result.share for result in acceptance.shares] == [None, None]
    assert [result.detail for result in acceptance.shares] == ["not_checked", "bad_proof_version"]


def test_a_form_that_the_schema_allows_is_refused_all_the_same() -> None:
    """JSON Schema takes 1.0 for an integer, and has no notion of canonical base64."""
    evidence = CommitEvidence()
    evidence.commit["policy0"]["ts"] = float(TS)
    evidence.seal(1)
    acceptance = evidence.judge()
    assert acceptance.schema_error == ""
    assert [(problem.check, problem.detail) for problem in acceptance.problems] == [("form", "bad_ts")]


# --- the result


def test_the_result_has_the_outputs_the_tag_and_each_share() -> None:
    acceptance = CommitEvidence(PolicyBits(1, 1, 2)).judge(patch=parse_patch("CLAMP_LEN 9"), confirmed=True)
    assert acceptance.accepted
    assert acceptance.outputs == {"allow_pre": 1, "need_confirm": 1, "patch0": 0, "patch1": 1}
    assert acceptance.bits == PolicyBits(1, 1, 2)
    assert acceptance.patch_id == 2
    assert base64.b64decode(acceptance.tag_b64) == bytes([1 ^ 2]) * 16
    assert [(result.mac, result.detail) for result in acceptance.shares] == [("passed", ""), ("passed", "")]
    assert [one.server_id for one in acceptance.attestations if one] == [0, 1]


def test_a_problem_is_reported_at_its_share() -> None:
    evidence = CommitEvidence()
    evidence.commit["policy1"]["kid"] = "7"
    acceptance = evidence.judge()
    assert [(result.mac, result.detail) for result in acceptance.shares] == [("passed", ""), ("failed", "unknown_kid")]


def test_without_mac_keys_the_macs_are_not_checked_and_have_not_failed() -> None:
    evidence = CommitEvidence()
    acceptance = evidence.judge(trust=PUBLIC_TRUST)
    assert acceptance.holds
    assert not acceptance.accepted
    assert acceptance.not_checked == ("mac",)
    assert (acceptance.reason_code, acceptance.detail) == ("BAD_COMMIT_PROOF", "not_checked")
    assert acceptance.status("mac") == "not_checked"
    assert acceptance.status("attestations") == "passed"
    assert [result.mac for result in acceptance.shares] == ["not_checked", "not_checked"]


def test_one_missing_key_ring_is_one_mac_not_checked() -> None:
    trust = EvidenceTrust(mac_keys0=TRUST.mac_keys0, policy_keys=POLICY_KEYS)
    acceptance = CommitEvidence().judge(trust=trust)
    assert [result.mac for result in acceptance.shares] == ["passed", "not_checked"]
    assert not acceptance.accepted


def test_a_stranger_finds_a_changed_share_by_the_attestation_alone() -> None:
    for server_id, name in itertools.product((0, 1), ("allow_pre", "need_confirm", "patch0", "patch1")):
        evidence = CommitEvidence()
        evidence.commit[f"policy{server_id}"]["outputs"][name] ^= 1
        acceptance = evidence.judge(trust=PUBLIC_TRUST, patch=None, confirmed=True)
        assert not acceptance.holds
        if name != "allow_pre":
            assert acceptance.detail == "bad_attestation"


def test_without_public_keys_the_attestations_are_read_and_not_checked() -> None:
    trust = EvidenceTrust(mac_keys0=TRUST.mac_keys0, mac_keys1=TRUST.mac_keys1)
    acceptance = CommitEvidence().judge(trust=trust)
    assert acceptance.holds
    assert acceptance.not_checked == ("attestations",)
    evidence = CommitEvidence()
    evidence.content(1)["facts_sha256"] = "0" * 64
    assert evidence.judge(trust=trust).detail == "facts_differ"


def test_a_key_ring_without_a_servers_key_refuses_its_attestation() -> None:
    trust = EvidenceTrust(
        mac_keys0=TRUST.mac_keys0, mac_keys1=TRUST.mac_keys1, policy_keys=PolicyKeys((SIGNERS[0].public,), ())
    )
    assert CommitEvidence().judge(trust=trust).detail == "bad_attestation"


def test_the_rfc_alone_wants_no_attestations() -> None:
    evidence = CommitEvidence()
    trust = EvidenceTrust(mac_keys0=TRUST.mac_keys0, mac_keys1=TRUST.mac_keys1, attestations="ignored")
    assert judge_commit(evidence.commit, None, KNOWN, trust).accepted


def test_a_patch_at_hand_must_be_named_unless_the_evidence_alone_is_judged() -> None:
    evidence = CommitEvidence(PolicyBits(1, 0, 1))
    assert evidence.judge().reason_code == "POLICY_DENY"
    assert evidence.judge(patch=None).accepted
    assert evidence.judge(patch=parse_patch("REDACT")).accepted
    assert evidence.judge(patch=parse_patch("REDACT"), intent_id="DeleteWorkspaceFile").reason_code == "POLICY_DENY"


def test_an_old_mac_key_counts_as_long_as_its_ring_has_it() -> None:
    evidence = CommitEvidence()
    keys = MacKeyTable({"new": bytes(32), "0": MAC_KEYS[0]})
    trust = EvidenceTrust(mac_keys0=keys, mac_keys1=TRUST.mac_keys1, policy_keys=POLICY_KEYS)
    assert evidence.judge(trust=trust).accepted
    del keys.keys["0"]
    assert evidence.judge(trust=trust).detail == "unknown_kid"


@pytest.mark.parametrize("now", [float("nan"), float("inf"), float("-inf")])
def test_a_clock_that_is_no_number_makes_evidence_too_old(now: float) -> None:
    assert CommitEvidence().judge(now=now).detail == "expired_proof"


# --- one bad server

BITS = [PolicyBits(a, c, p) for a in (0, 1) for c in (0, 1) for p in range(4)]


def honest_side(server_id: int, bits: PolicyBits) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The share of an honest server, and its attestation; None where it refuses, and makes neither.

    To be harder than life, there is a share even for a refusal: as if the honest server had leaked it.
    """
    evidence = CommitEvidence(bits, attested=(ALLOWED, ALLOWED))
    if not bits.allow_pre:
        return evidence.commit[f"policy{server_id}"], None
    evidence.content(server_id).update(need_confirm=bits.need_confirm, patch_id=bits.patch_id)
    evidence.attest(server_id)
    return evidence.commit[f"policy{server_id}"], evidence.attestations[server_id]


def bad_share(server_id: int, outputs: tuple[int, ...]) -> CommitEvidence:
    """Evidence in which one server has written these share bits, with a right MAC and attestation over them."""
    evidence = CommitEvidence()
    share = evidence.commit[f"policy{server_id}"]
    share["outputs"] = dict(zip(("allow_pre", "need_confirm", "patch0", "patch1"), outputs, strict=True))
    evidence.mac(server_id)
    evidence.bind(server_id)
    return evidence


@pytest.mark.more
@pytest.mark.parametrize("bad", [0, 1])
def test_one_bad_server_never_gets_its_way(bad: int) -> None:
    """All 2^4 share bits and 2^4 attested bits of a bad server, against all 2^4 decisions of the honest one."""
    good = 1 - bad
    honest = {bits: honest_side(good, bits) for bits in BITS}
    accepted: set[PolicyBits] = set()
    judged = 0
    for outputs in itertools.product((0, 1), repeat=4):
        crooked = bad_share(bad, outputs)
        for attested in BITS:
            crooked.content(bad).update(attested._asdict())
            crooked.attest(bad)
            for decided, (share, attestation) in honest.items():
                evidence = CommitEvidence.__new__(CommitEvidence)
                evidence.commit = {f"policy{good}": share, f"policy{bad}": crooked.commit[f"policy{bad}"]}
                evidence.attestations = [None, None]
                evidence.attestations[good] = attestation
                evidence.attestations[bad] = crooked.attestations[bad]
                # The judge has a person's approval and takes any patch, so that only the servers' word counts.
                acceptance = evidence.judge(patch=None, confirmed=True)
                judged += 1
                if acceptance.accepted:
                    assert acceptance.bits == decided == attested
                    assert decided.allow_pre == 1
                    accepted.add(decided)
                else:
                    assert acceptance.reason_code in ("POLICY_DENY", "BAD_COMMIT_PROOF")
    assert judged == 2**12
    # Where both agree, it is accepted: the test can tell the two apart.
    assert accepted == {bits for bits in BITS if bits.allow_pre}


def test_a_refusal_cannot_stand_for_a_share() -> None:
    """A server that refused has signed so. Its signed refusal beside a share of an earlier question is no evidence."""
    evidence = CommitEvidence()
    evidence.content(1).update(share_sha256=None, allow_pre=0)
    evidence.attest(1)
    assert (evidence.judge().reason_code, evidence.judge().detail) == ("BAD_COMMIT_PROOF", "bad_attestation")


def test_a_share_of_an_earlier_question_with_a_new_attestation_is_refused() -> None:
    evidence, later = CommitEvidence(), CommitEvidence()
    share = build_share(
        ALLOWED,
        server_id=1,
        kid="0",
        key=MAC_KEYS[1],
        mask_key=MASK_KEY,
        ts=TS + 1,
        action_id=ACTION,
        program_id=PROGRAM,
        request_sha256=REQUEST.sha256,
        tag_share=bytes(16),
    )
    later.commit["policy1"] = share.to_dict()
    later.seal(1)
    assert later.judge().accepted
    evidence.attestations[1] = later.attestations[1]
    assert evidence.judge().detail == "bad_attestation"


# --- every byte


def changed_texts(text: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(len(text)):
        for bit in (1, 0x20):
            changed = bytearray(text)
            changed[at] ^= bit
            yield at, bytes(changed)


@pytest.mark.more
@pytest.mark.parametrize("trust", [TRUST, PUBLIC_TRUST], ids=["executor", "stranger"])
def test_every_changed_byte_is_refused_with_code_and_detail(trust: EvidenceTrust) -> None:
    evidence = CommitEvidence()
    whole = {"commit": evidence.commit, "attestations": evidence.attestations}
    text = json.dumps(whole).encode()
    refused = 0
    for at, changed in changed_texts(text):
        try:
            document = read_json(changed)
        except Unreadable:
            continue
        if document == whole and json.dumps(document) == json.dumps(whole):
            continue
        known_keys = isinstance(document, dict) and document.keys() == whole.keys()
        commit, attestations = (document["commit"], document["attestations"]) if known_keys else (None, None)
        acceptance = judge_commit(commit, attestations, KNOWN, trust)
        assert not acceptance.holds, (at, changed[max(0, at - 20) : at + 20])
        assert acceptance.reason_code in load_reason_codes()
        if acceptance.reason_code == "BAD_COMMIT_PROOF":
            assert acceptance.detail in load_proof_details()
        refused += 1
    assert refused > 2000


# --- any input

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELD = st.sampled_from(sorted(CommitEvidence().commit["policy0"]))


@given(JSON, JSON)
def test_any_json_is_judged_without_an_exception(commit: Any, attestations: Any) -> None:
    assert not judge_commit(commit, attestations, KNOWN, TRUST).accepted


@given(st.sampled_from(["policy0", "policy1"]), FIELD, JSON)
def test_any_value_in_a_share_is_judged(name: str, field: str, value: Any) -> None:
    evidence = CommitEvidence()
    before = evidence.commit[name][field]
    evidence.commit[name][field] = value
    acceptance = evidence.judge()
    assert acceptance.accepted == (type(value) is type(before) and value == before)


@given(st.sampled_from([0, 1]), st.sampled_from(sorted(CommitEvidence().content(0))), JSON)
def test_any_value_in_an_attestation_is_judged(server_id: int, field: str, value: Any) -> None:
    evidence = CommitEvidence()
    before = evidence.content(server_id)[field]
    evidence.content(server_id)[field] = value
    assert evidence.judge().accepted == (json.dumps(value) == json.dumps(before))
