"""The files of the RFC: they are good, they agree with the code, and they are in the wheel and in `spec/`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from aver.errors import BadInput
from aver.gateway.proof.evidence import OUTPUTS, TAG_BYTES
from aver.gateway.specs import (
    ACCEPT_PREDICATE,
    CONTRACT,
    CONTRACT_SCHEMA,
    EVIDENCE_SCHEMA,
    SPEC_FILES,
    AcceptRules,
    find_evidence_error,
    read_spec_bytes,
    validate_specs,
)
from support.commit_evidence import CommitEvidence
from support.real_home import real_environment
from support.source_tree import REPOSITORY

SPECS = {name: read_spec_bytes(name) for name in SPEC_FILES}


def parsed(name: str) -> Any:
    return json.loads(SPECS[name])


def test_the_specs_are_good() -> None:
    assert validate_specs() == []
    assert validate_specs(SPECS) == []


def test_the_links_at_the_root_lead_to_the_package() -> None:
    """The RFC names `spec/`. The files are in the package, so that there is one copy of them."""
    for name in SPEC_FILES:
        link = REPOSITORY / "spec" / name
        assert link.is_symlink()
        assert link.resolve() == (REPOSITORY / "src" / "aver" / "gateway" / "spec" / name).resolve()
        assert link.read_bytes() == SPECS[name]


def test_the_predicate_is_that_of_the_reference() -> None:
    assert parsed(ACCEPT_PREDICATE) == {
        "version": 1,
        "name": "SecureClaw Executor Accept Predicate v1",
        "program_id": "policy_unified_v1",
        "required_output_keys": ["allow_pre", "need_confirm", "patch0", "patch1"],
        "commit_tag_share_len_bytes": 16,
        "mac_ttl_env": "POLICY_MAC_TTL_S",
        "replay_ttl_env": "EXECUTOR_REPLAY_TTL_S",
    }
    rules = AcceptRules.parse(parsed(ACCEPT_PREDICATE))
    assert rules == AcceptRules()
    assert (rules.required_outputs, rules.tag_bytes) == (OUTPUTS, TAG_BYTES)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": True},
        {"version": "1"},
        {"name": ""},
        {"program_id": None},
        {"required_output_keys": []},
        {"required_output_keys": ["allow_pre"]},
        {"required_output_keys": [*OUTPUTS, "allow_pre"]},
        {"required_output_keys": "allow_pre"},
        {"required_output_keys": [*OUTPUTS, 1]},
        {"commit_tag_share_len_bytes": 7},
        {"commit_tag_share_len_bytes": 65},
        {"commit_tag_share_len_bytes": True},
        {"mac_ttl_env": ""},
        {"mac_ttl_env": "path"},
        {"replay_ttl_env": 1},
        {"more": 1},
    ],
)
def test_a_predicate_that_is_none(changes: dict[str, Any]) -> None:
    document = {**parsed(ACCEPT_PREDICATE), **changes}
    with pytest.raises(BadInput):
        AcceptRules.parse(document)
    assert len(validate_specs({**SPECS, ACCEPT_PREDICATE: json.dumps(document).encode()})) == 1


def test_the_contract_has_the_seven_assertions() -> None:
    contract = parsed(CONTRACT)
    assert {(one["id"], one["kind"], one["must_deny"]) for one in contract["assertions"]} == {
        ("no_host_secret_read", "fs_read", True),
        ("no_arbitrary_exec_true", "exec", True),
        ("no_arbitrary_exec_sh", "exec", True),
        ("no_public_internet", "internet_get", True),
        ("no_loopback_http_exfil", "http_post", True),
        ("gateway_act_allowed", "gateway_act", False),
        ("gateway_mcp_act_allowed", "gateway_mcp_act", False),
    }
    assert contract["network"] == {"allow_public_internet": False, "allow_loopback_http": False}


BAD_CONTRACTS: list[tuple[str, Any]] = [
    ("version", 2),
    ("network", {"allow_public_internet": True, "allow_loopback_http": False}),
    ("process", {"deny_by_default": False, "allow_exec_paths": ["/bin/sh"]}),
    ("process", {"deny_by_default": True, "allow_exec_paths": []}),
    ("transport", {"mode": "tcp", "allowed_uds_paths": []}),
    ("filesystem", {"allow_read_prefixes": ["/"], "allow_write_prefixes": ["/"]}),
    ("assertions", []),
    ("assertions", [{"id": "x", "kind": "ptrace", "must_deny": True}]),
    ("assertions", [{"id": "x", "kind": "exec", "must_deny": True, "note": ""}]),
    ("assertions", [{"id": "x", "kind": "gateway_act", "must_deny": True}] * 2),
    ("assertions", [{"id": "x", "kind": "exec", "must_deny": True}]),
    ("note", "x"),
]


@pytest.mark.parametrize(("name", "value"), BAD_CONTRACTS)
def test_a_contract_that_is_none(name: str, value: Any) -> None:
    document = {**parsed(CONTRACT), name: value}
    (problem,) = validate_specs({**SPECS, CONTRACT: json.dumps(document).encode()})
    assert problem.startswith(CONTRACT)


@pytest.mark.parametrize("name", SPEC_FILES)
def test_a_file_that_is_missing_or_no_json(name: str) -> None:
    missing = {other: data for other, data in SPECS.items() if other != name}
    assert validate_specs(missing) == [f"{name} is missing"]
    for data in (b"", b"{", b'{"version":1,"version":1}', b"\xff"):
        (problem,) = validate_specs({**SPECS, name: data})
        assert problem.startswith(f"{name} cannot be read")


@pytest.mark.parametrize("name", [EVIDENCE_SCHEMA, CONTRACT_SCHEMA])
@pytest.mark.parametrize(
    "changes",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$id": "https://secureclaw.local/spec/other.json"},
        {"type": "thing"},
        {"properties": []},
        {"allOf": [{"$ref": "https://example.com/elsewhere.json"}]},
    ],
)
def test_a_schema_that_is_none(name: str, changes: dict[str, Any]) -> None:
    problems = validate_specs({**SPECS, name: json.dumps({**parsed(name), **changes}).encode()})
    assert len(problems) == 1
    assert problems[0].startswith(name)


def test_the_schemas_say_what_they_are() -> None:
    for name in (EVIDENCE_SCHEMA, CONTRACT_SCHEMA):
        jsonschema_rs.meta.validate(parsed(name))
        assert parsed(name)["$id"] == f"https://secureclaw.local/spec/{name}"
        assert parsed(name)["additionalProperties"] is False


def test_the_schema_takes_real_evidence_and_names_the_place_of_a_problem() -> None:
    evidence = CommitEvidence()
    assert find_evidence_error(evidence.commit) == ""
    evidence.commit["policy1"]["outputs"]["patch0"] = 2
    assert find_evidence_error(evidence.commit).startswith("policy1/outputs/patch0: ")
    evidence.commit["policy1"]["outputs"]["patch0"] = True
    assert find_evidence_error(evidence.commit)


@pytest.mark.parametrize("value", [b"bytes", {1: 2}, object(), "\ud800", {"policy0": {"v": {1}}}])
def test_values_that_are_no_json_have_a_problem(value: Any) -> None:
    assert find_evidence_error(value)


@pytest.mark.more
def test_the_wheel_has_the_specs_and_works_by_itself(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    left_behind = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(REPOSITORY / "src", checkout / "src", ignore=left_behind, symlinks=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, checkout / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(checkout)]
    built = subprocess.run(command, capture_output=True, text=True, env=real_environment())
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in SPEC_FILES:
            assert archive.read(f"aver/gateway/spec/{name}") == SPECS[name]
        archive.extractall(tmp_path / "installed")
    # The package from the wheel, not that of the checkout, with no `spec/` beside it.
    script = "import aver; from aver.cli.main import main; print(aver.__file__); main(['gateway', 'validate-specs'])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
    )
    place, answer = ran.stdout.splitlines()
    assert place.startswith(str(tmp_path / "installed"))
    assert answer == "OK: specs validate"
