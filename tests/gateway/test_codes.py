"""Reason codes: the table, the source, the page and the contract name the same ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aver.errors import Refused
from aver.gateway.codes import (
    SUCCESSES,
    build_envelope,
    build_refusal_envelope,
    load_proof_details,
    load_reason_codes,
)
from aver.verdict.verdict import load_codes
from support.doc_pages import DOCS
from support.source_tree import FILES, name_of, strings_in

RFC_GATEWAY = {
    *("UNKNOWN_INTENT", "CAPABILITY_DENY", "PRINCIPAL_CAPABILITY_DENY", "WORKLOAD_TOKEN_INVALID", "TX_INVALID"),
    *("TX_SESSION_MISMATCH", "TX_CALLER_MISMATCH", "TX_AUTH_CONTEXT_MISMATCH", "POLICY_DENY", "REQUIRE_CONFIRM"),
    *("ALLOW", "HIGH_HANDLE_BLOCKED", "IOC_BLOCKED", "DELEGATION_REQUIRED", "DELEGATION_REVOKED"),
    "DELEGATION_SCOPE_DENY",
}
RFC_EXECUTOR = {
    *("BAD_COMMIT_PROOF", "POLICY_DENY", "REQUIRE_CONFIRM", "REPLAY_DENY", "MISSING_EVIDENCE", "ALLOW"),
    "ALLOW_INSECURE",
}
OURS = {
    *("BAD_REQUEST", "EXTERNAL_PRINCIPAL_MISMATCH", "DELEGATION_TOKEN_MALFORMED", "DELEGATION_TOKEN_BAD_SIGNATURE"),
    *("DELEGATION_SESSION_MISMATCH", "DELEGATION_SUBJECT_MISMATCH", "DELEGATION_TOKEN_EXPIRED"),
    *("INGRESS_SIGNATURE_REQUIRED", "INGRESS_SIGNATURE_INVALID", "INGRESS_EXPIRED", "INGRESS_REPLAY"),
    *("INGRESS_CONFLICT", "RECIPIENT_NOT_ALLOWED", "DOMAIN_NOT_ALLOWED", "WORKSPACE_PATH_BLOCKED"),
    *("WORKSPACE_CHANGED", "ARTIFACTS_NOT_ALLOWED", "HANDLE_INVALID", "DECLASSIFY_BLOCKED", "POLICY_UNAVAILABLE"),
    *("EXECUTOR_UNAVAILABLE", "EFFECT_FAILED", "OUTCOME_UNKNOWN", "TOOL_CHANGED", "CAPSULE_REQUIRED"),
}
DETAILS = {
    *("missing_commit", "bad_proof", "bad_proof_version", "bad_proof_kind", "bad_action_id", "bad_program_id"),
    *("bad_request_sha256", "bad_ts", "expired_proof", "bad_server_id", "unknown_kid", "bad_mac"),
    *("server_id_mismatch", "bad_outputs", "bad_commit_tag_b64", "bad_commit_tag_len", "missing_output_key"),
    *("bad_attestation", "servers_disagree", "facts_differ"),
}


def test_the_table_has_every_code_and_no_other() -> None:
    assert load_reason_codes().keys() == RFC_GATEWAY | RFC_EXECUTOR | OURS
    assert load_proof_details().keys() == DETAILS


def test_each_code_is_on_the_side_that_the_rfc_gives_it() -> None:
    codes = load_reason_codes()
    assert {name for name in RFC_GATEWAY if codes[name].side == "executor"} == set()
    assert {name for name in RFC_EXECUTOR if codes[name].side == "gateway"} == set()
    assert {name for name in RFC_GATEWAY & RFC_EXECUTOR if codes[name].side != "both"} == set()


def test_each_entry_says_what_and_what_next() -> None:
    for entry in (*load_reason_codes().values(), *load_proof_details().values()):
        for text in (entry.meaning, entry.advice):
            assert text[0].isupper(), entry.name
            assert text.endswith("."), entry.name
            assert "|" not in text, entry.name


CODE = re.compile(r"(?:[A-Z]+_)+[A-Z]+")
OTHER_WORDS = re.compile(
    r"POLICY[01]?_MAC_.*|EXECUTOR_REPLAY_TTL_S|EXECUTOR_INSECURE_ALLOW|TX_TTL_S|CLAMP_LEN|REWRITE_DOMAIN_TO_PROXY|NOT_CHECKED"
    r"|PARTS_EXIST|PROGRAM_CHANGED|PROGRAM_OF_OTHER_VERSION"  # Refusals of commands, not of acts.
    r"|(?:PASS|FAIL_MUST)_(?:DENY|ALLOW)|SKIPPED_ALLOWED|MISSING_PROBE|CONTRACT_BROKEN"  # Of the verdict on a contract.
    r"|(?:PY|NODE|MIRAGE|LC|AVER)_.*|CAPSULE_WORKSPACE|REPO_ROOT|STATE_DIR|NO_COLOR"  # Variables.
)
VERIFIER_DECISIONS = {"BAD_SCHEMA", "BAD_COMMIT_TAG_LEN", "MISSING_OUTPUT_KEY"}


def code_words(path: Path) -> set[str]:
    words = {text for _, text in strings_in(path) if CODE.fullmatch(text)}
    return {word for word in words if not OTHER_WORDS.fullmatch(word)} - VERIFIER_DECISIONS


def test_the_source_uses_no_code_that_the_table_lacks() -> None:
    used = {word for path in FILES if name_of(path).startswith("gateway/") for word in code_words(path)}
    assert used - load_reason_codes().keys() - load_codes().keys() == set()
    assert {"DELEGATION_REVOKED", "BAD_COMMIT_PROOF", "INGRESS_CONFLICT"} <= used


def table_of(page: str, mark: str) -> list[list[str]]:
    table = page.partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0]
    return [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]


def test_the_page_has_the_same_tables() -> None:
    page = (DOCS / "gateway" / "codes.md").read_text("utf-8")
    assert table_of(page, "codes") == [
        [f"`{code.name}`", code.side, code.meaning, code.advice] for code in load_reason_codes().values()
    ]
    assert table_of(page, "details") == [
        [f"`{detail.name}`", detail.meaning, detail.advice] for detail in load_proof_details().values()
    ]


# --- envelopes


@pytest.mark.parametrize("code", sorted(load_reason_codes()))
def test_the_status_follows_from_the_code(code: str) -> None:
    envelope = build_envelope(code)
    assert list(envelope) == ["status", "reason_code", "summary", "data", "artifacts"]
    assert envelope["status"] == ("OK" if code in SUCCESSES else "DENY")
    assert envelope["summary"] == load_reason_codes()[code].meaning
    assert (envelope["data"], envelope["artifacts"]) == ({}, [])


def test_an_envelope_has_what_it_is_given() -> None:
    envelope = build_envelope("ALLOW", "sent", data={"tx_id": "tx_1"}, artifacts=[1])
    assert envelope == {
        "status": "OK",
        "reason_code": "ALLOW",
        "summary": "sent",
        "data": {"tx_id": "tx_1"},
        "artifacts": [1],
    }


def test_an_unknown_code_is_a_defect() -> None:
    with pytest.raises(KeyError):
        build_envelope("FINE")


def test_a_refusal_becomes_an_envelope() -> None:
    envelope = build_refusal_envelope(Refused("BAD_REQUEST", "caller is empty", advice="name one"))
    assert (envelope["status"], envelope["reason_code"]) == ("DENY", "BAD_REQUEST")
    assert envelope["summary"] == "caller is empty (name one)"
