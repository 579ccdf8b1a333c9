"""`aver gateway verify-evidence` and `validate-specs`, as a person and a pipeline call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aver.gateway.proof.evidence import PolicyBits
from aver.gateway.specs import ACCEPT_PREDICATE, SPEC_FILES, read_spec_bytes
from aver.keys import RingEntry, build_key_export
from support.aver_command import Aver, Ran
from support.commit_evidence import ACTION, MAC_KEYS, REQUEST, SIGNERS, TS, CommitEvidence
from support.source_tree import REPOSITORY

KEYS = {"POLICY0_MAC_KEYS": f"0:{MAC_KEYS[0].hex()}", "POLICY1_MAC_KEYS": f"0:{MAC_KEYS[1].hex()}"}
REPORT_KEYS = {
    *("status", "spec_path", "commit_path", "request_path", "schema_ok", "schema_error", "program_id", "action_id"),
    *("intent_id", "caller", "session", "request_sha256", "now", "mac_ttl_s", "evidence_valid", "share0_ok"),
    *("share0_code", "share1_ok", "share1_code", "tag_ok", "tag_details", "output_interface_ok"),
    *("missing_output_keys", "outs", "allow_pre", "need_confirm", "user_confirm", "replay_seen", "accepts", "decision"),
}
"""The keys of the report of the RFC's own tool."""


class Files:
    """The evidence of one act in files."""

    def __init__(self, aver: Aver) -> None:
        self.aver = aver
        self.evidence = CommitEvidence()
        self.request: dict[str, Any] = {"action_id": ACTION, **REQUEST.to_dict()}
        self.commit_path, self.request_path = aver.directory / "commit.json", aver.directory / "request.json"

    def run(self, *options: str | Path, keys: dict[str, str] = KEYS, **environment: str) -> Ran:
        self.commit_path.write_text(json.dumps(self.evidence.commit))
        self.request_path.write_text(json.dumps(self.request))
        return self.verify(*options, keys=keys, **environment)

    def verify(self, *options: str | Path, keys: dict[str, str] = KEYS, **environment: str) -> Ran:
        times = () if "--now" in options else ("--now", str(TS + 1))
        files = ("--commit", self.commit_path, "--request", self.request_path)
        return self.aver("gateway", "verify-evidence", *files, *times, *options, **{**keys, **environment})

    def report(self, *options: str | Path, **named: Any) -> dict[str, Any]:
        ran = self.run("--json", *options, **named)
        assert ran.code == (0 if ran.json["accepts"] else 2)
        assert ran.json["accepts"] == (ran.json["decision"] == "ACCEPT") == (ran.json["status"] == "OK")
        return dict(ran.json)


@pytest.fixture
def files(aver: Aver) -> Files:
    return Files(aver)


def test_accepted(files: Files) -> None:
    ran = files.run()
    assert (ran.code, ran.err) == (0, "")
    assert "ACCEPT" in ran.out.splitlines()[0]


def test_the_report_has_the_keys_of_the_rfcs_tool(files: Files) -> None:
    report = files.report("--spec", REPOSITORY / "spec" / ACCEPT_PREDICATE)
    assert report.keys() >= REPORT_KEYS
    assert report["request_sha256"] == REQUEST.sha256
    assert report["outs"] == {"allow_pre": 1, "need_confirm": 0, "patch0": 0, "patch1": 0}
    assert (report["share0_ok"], report["share0_code"], report["evidence_valid"]) == (True, "OK", True)
    assert (report["tag_ok"], report["output_interface_ok"], report["schema_ok"]) == (True, True, True)
    assert (report["now"], report["mac_ttl_s"]) == (TS + 1, 30)


def test_the_report_is_written_too(files: Files) -> None:
    path = files.aver.directory / "report.json"
    report = files.report("--out", path)
    assert json.loads(path.read_text()) == report
    files.report("--out", path, "--replay-seen")
    assert json.loads(path.read_text())["decision"] == "REPLAY_DENY"


def test_each_decision(files: Files) -> None:
    assert files.report()["decision"] == "ACCEPT"
    assert files.report("--replay-seen")["decision"] == "REPLAY_DENY"
    assert files.report("--now", str(TS + 31))["decision"] == "BAD_COMMIT_PROOF"
    files.evidence = CommitEvidence(PolicyBits(1, 1, 0))
    assert files.report()["decision"] == "REQUIRE_CONFIRM"
    assert files.report("--user-confirm")["decision"] == "ACCEPT"
    files.evidence = CommitEvidence(PolicyBits(0, 0, 0), attested=(PolicyBits(1, 0, 0),) * 2)
    assert files.report("--user-confirm")["decision"] == "POLICY_DENY"
    files.evidence = CommitEvidence()
    del files.evidence.commit["policy1"]["outputs"]["patch1"]
    files.evidence.mac(1)
    report = files.report()
    assert (report["decision"], report["missing_output_keys"]) == ("MISSING_OUTPUT_KEY", ["patch1"])
    assert report["output_interface_ok"] is False
    files.evidence = CommitEvidence()
    files.evidence.commit["policy0"]["commit_tag_share_b64"] = "AQEBAQEB"
    files.evidence.mac(0)
    report = files.report()
    assert (report["decision"], report["tag_ok"]) == ("BAD_COMMIT_TAG_LEN", False)
    assert report["tag_details"]["share0_len"] == 6
    files.evidence.commit["policy0"]["v"] = 2
    report = files.report()
    assert (report["decision"], report["schema_ok"], report["detail"]) == ("BAD_SCHEMA", False, "bad_proof_version")


def test_the_order_of_the_decisions(files: Files) -> None:
    """A wrong request comes before a wrong tag here, as in the RFC's own tool."""
    files.evidence.commit["policy0"]["commit_tag_share_b64"] = "AQEBAQEB"
    files.evidence.mac(0)
    files.request["caller"] = "mallory"
    assert files.report("--replay-seen")["decision"] == "BAD_COMMIT_PROOF"


def test_the_context_counts(files: Files) -> None:
    """The RFC's own tool ignores it, and so refuses every delegated request."""
    delegated = "531a67d439ac5f65afa025feb48d568aefb50a3d415211af4bec422b25f59a70"
    for server_id in (0, 1):
        files.evidence.commit[f"policy{server_id}"]["request_sha256"] = delegated
        files.evidence.mac(server_id)
    assert files.report()["detail"] == "bad_request_sha256"
    files.request["context"] = {"external_principal": "ext:a", "delegation_jti": "dlg_1"}
    report = files.report()
    assert (report["decision"], report["request_sha256"]) == ("ACCEPT", delegated)
    files.request["context"] = {"external_principal": "", "delegation_jti": "dlg_1"}
    assert files.report()["detail"] == "bad_request_sha256"


def test_no_context_is_an_empty_one(files: Files) -> None:
    del files.request["context"]
    assert files.report()["decision"] == "ACCEPT"


def test_inputs_are_hashed_as_they_stand(files: Files) -> None:
    files.request["inputs"] = {**files.request["inputs"], "domain": "EXAMPLE.com"}
    assert files.report()["detail"] == "bad_request_sha256"


@pytest.mark.parametrize("name", ["action_id", "intent_id", "caller", "session", "inputs"])
def test_another_request(files: Files, name: str) -> None:
    files.request[name] = {} if name == "inputs" else "other"
    expected = "bad_action_id" if name == "action_id" else "bad_request_sha256"
    assert files.report()["detail"] == expected


# --- keys


def test_without_mac_keys_nothing_is_accepted_and_nothing_failed(files: Files) -> None:
    report = files.report(keys={})
    assert (report["decision"], report["detail"]) == ("BAD_COMMIT_PROOF", "not_checked")
    assert (report["share0_ok"], report["share0_code"]) == (None, "not_checked")
    assert report["evidence_valid"] is None
    assert report["not_checked"] == ["mac"]
    assert files.report("--replay-seen", keys={})["decision"] == "BAD_COMMIT_PROOF", "in the order of the decisions"
    ran = files.run(keys={})
    assert ran.code == 2
    assert "POLICY0_MAC_KEYS" in ran.out


def test_where_mac_keys_come_from(files: Files) -> None:
    wrong = "0:" + "99" * 32
    singular = {name.removesuffix("S"): value.removeprefix("0:") for name, value in KEYS.items()}
    assert files.report(keys=singular)["accepts"]
    assert files.report(keys={**dict.fromkeys(singular, wrong), **KEYS})["accepts"], "the plural wins"
    options = [word for number in (0, 1) for word in (f"--policy{number}-mac-keys", KEYS[f"POLICY{number}_MAC_KEYS"])]
    assert files.report(*options, keys=dict.fromkeys(KEYS, wrong))["accepts"], "the command line wins"
    assert files.report(keys=dict.fromkeys(KEYS, wrong))["detail"] == "bad_mac"
    several = {name: f"new:{'77' * 32},{value}" for name, value in KEYS.items()}
    assert files.report(keys=several)["accepts"]
    assert files.report(keys=dict.fromkeys(KEYS, f"1:{'77' * 32}"))["detail"] == "unknown_kid"


@pytest.mark.parametrize("text", ["0:xyz", "0:", ":", "0:11", "0:" + "11" * 32 + ",0:" + "22" * 32, "a b:" + "11" * 32])
def test_mac_keys_that_are_none(files: Files, text: str) -> None:
    ran = files.run("--policy0-mac-keys", text)
    assert ran.code == 2
    assert "--policy0-mac-keys" in ran.err
    assert "11" * 16 not in ran.err, "an error shows no key"


def test_the_age_comes_from_the_environment(files: Files) -> None:
    assert files.report("--now", str(TS + 90), POLICY_MAC_TTL_S="100")["accepts"]
    assert files.report("--now", str(TS + 5), POLICY_MAC_TTL_S="4")["detail"] == "expired_proof"
    assert files.report("--now", str(TS - 5), POLICY_MAC_TTL_S="4")["detail"] == "expired_proof"
    assert files.report("--now", str(TS + 30), POLICY_MAC_TTL_S="0")["mac_ttl_s"] == 30
    assert files.report("--now", str(TS + 30), POLICY_MAC_TTL_S="-9")["accepts"]
    assert files.run(POLICY_MAC_TTL_S="soon").code == 2


def test_another_program(files: Files) -> None:
    report = files.report("--program-id", "aver-policy-v1.0")
    assert (report["detail"], report["program_id"]) == ("bad_program_id", "aver-policy-v1.0")
    spec = {**json.loads(read_spec_bytes(ACCEPT_PREDICATE)), "program_id": "other"}
    path = files.aver.directory / "spec.json"
    path.write_text(json.dumps(spec))
    assert files.report("--spec", path)["detail"] == "bad_program_id"
    assert files.report("--spec", path, "--program-id", "policy_unified_v1")["accepts"]


# --- strict


def trust_policy_keys(aver: Aver, *numbers: int) -> None:
    at = "2026-01-01T00:00:00+00:00"
    entries = [RingEntry(f"policy:{number}", "policy", 0, SIGNERS[number].public, at) for number in numbers]
    path = aver.directory / "policy-keys.json"
    path.write_text(json.dumps(build_key_export(entries)))
    assert aver("keys", "trust", path).code == 0


def test_strict_wants_attestations_by_keys_that_you_trust(files: Files) -> None:
    files.request["attestations"] = files.evidence.attestations
    report = files.report("--strict")
    assert (report["detail"], report["not_checked"], report["attestations_ok"]) == (
        "not_checked",
        ["attestations"],
        None,
    )
    trust_policy_keys(files.aver, 0)
    assert files.report("--strict")["detail"] == "bad_attestation"
    trust_policy_keys(files.aver, 1)
    report = files.report("--strict")
    assert (report["decision"], report["attestations_ok"]) == ("ACCEPT", True)
    del files.request["attestations"]
    report = files.report("--strict")
    assert (report["decision"], report["detail"], report["attestations_ok"]) == (
        "BAD_COMMIT_PROOF",
        "bad_attestation",
        False,
    )
    assert files.report()["accepts"], "without --strict nobody looks at them"


def test_strict_finds_one_bad_server(files: Files) -> None:
    trust_policy_keys(files.aver, 0, 1)
    files.evidence = CommitEvidence(PolicyBits(1, 1, 0))
    files.evidence.commit["policy1"]["outputs"]["need_confirm"] ^= 1
    files.evidence.seal(1)
    files.request["attestations"] = files.evidence.attestations
    assert files.report()["accepts"], "by the RFC alone, one server can flip a bit"
    assert files.report("--strict")["detail"] == "servers_disagree"


# --- files


@pytest.mark.parametrize("text", ["", "{", '{"policy0": {}, "policy0": {}}', "NaN", "[]", '"x"', "[" * 300])
def test_a_commit_that_is_none(files: Files, text: str) -> None:
    files.run()
    files.commit_path.write_text(text)
    ran = files.verify("--json")
    assert ran.code == 2
    assert (ran.json["decision"], ran.json["schema_ok"], ran.json["accepts"]) == ("BAD_SCHEMA", False, False)
    assert ran.json["schema_error"]


def test_a_commit_of_null_is_no_evidence(files: Files) -> None:
    files.evidence.commit = None  # type: ignore[assignment]
    report = files.report()
    assert (report["decision"], report["accepts"]) == ("BAD_COMMIT_PROOF", False)


@pytest.mark.parametrize(
    "changes",
    [{"inputs": []}, {"caller": 1}, {"context": None}, {"more": 1}, {"action_id": None}, {"inputs": {"a": "\ud800"}}],
)
def test_a_request_that_is_none(files: Files, changes: dict[str, Any]) -> None:
    files.request |= changes
    ran = files.run("--json")
    assert ran.code == 2
    assert ran.json["error"]["type"] == "BadInput"


def test_missing_files_and_wrong_options(files: Files) -> None:
    assert files.verify().code == 2
    assert files.run("--spec", "nowhere.json").code == 2
    assert files.run("--now", "yesterday").code == 2
    assert files.run("--out", "nowhere/report.json").code == 2
    assert files.aver("gateway", "verify-evidence").code == 2
    assert files.aver("gateway").code == 2


def test_hostile_text_does_not_reach_the_terminal(files: Files) -> None:
    files.request["action_id"] = "a\x1b[31m\nACCEPT"
    ran = files.run()
    assert "\x1b" not in ran.out
    assert ran.out.splitlines()[1].startswith("  action    a\\x1b")


# --- specs


def test_the_specs_validate(aver: Aver) -> None:
    ran = aver("gateway", "validate-specs")
    assert (ran.code, ran.out) == (0, "OK: specs validate\n")
    assert aver("gateway", "validate-specs", REPOSITORY / "spec").code == 0
    assert aver("gateway", "validate-specs", "--json").json == {
        "status": "OK",
        "files": list(SPEC_FILES),
        "problems": [],
    }


def test_specs_in_a_directory(aver: Aver) -> None:
    directory = aver.directory / "specs"
    directory.mkdir()
    ran = aver("gateway", "validate-specs", directory, "--json")
    assert ran.code == 1
    assert len(ran.json["problems"]) == len(SPEC_FILES)
    for name in SPEC_FILES:
        (directory / name).write_bytes(read_spec_bytes(name))
    assert aver("gateway", "validate-specs", directory).code == 0
    (directory / ACCEPT_PREDICATE).write_text('{"version": 2}')
    ran = aver("gateway", "validate-specs", directory)
    assert ran.code == 1
    assert ACCEPT_PREDICATE in ran.out
