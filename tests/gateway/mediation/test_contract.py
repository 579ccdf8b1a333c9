"""Capsule contracts: their variables, and contracts that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput
from aver.gateway.mediation.contract import CapsuleContract, check_path, expand_text, is_inside
from aver.gateway.mediation.contract_clauses import name_probes
from aver.gateway.specs import CONTRACT, read_spec_bytes
from support.capsule_reports import VALUES, change_contract, expand

NAMES = {"A": ("1",), "B": ("x", "y"), "E": ()}


def test_the_contract_of_the_rfc_is_expanded() -> None:
    contract = expand()
    assert contract.read == ("/srv/shop", "/opt/python", "/opt/venv")
    assert contract.write == ("/srv/shop", "/var/tmp", "/tmp")
    assert contract.deny_read == ("/home/ada/.ssh", "/home/ada/.aws", "/home/ada/.config")
    # No Node is installed there.
    assert contract.exec_paths == ("/opt/venv/bin/python", "/opt/python/bin/python3")
    assert contract.sockets[0] == "/tmp/mirage_ogpp_gateway.sock"
    assert name_probes(contract.assertions) == {
        "no_host_secret_read": "direct_fs_read",
        "no_arbitrary_exec_true": "direct_exec_true",
        "no_arbitrary_exec_sh": "direct_exec_sh",
        "no_public_internet": "direct_internet",
        "no_loopback_http_exfil": "direct_exfil_post",
        "gateway_act_allowed": "gateway_act",
        "gateway_mcp_act_allowed": "gateway_mcp_act",
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/a", ("/a",)),
        ("${A}", ("1",)),
        ("/${A}/${B}", ("/1/x", "/1/y")),
        ("${B}${B}", ("xx", "xy", "yx", "yy")),
        ("${E}/a", ()),
        ("${NONE}", ()),
        ("${NONE:-/d}", ("/d",)),
        ("${A:-/d}", ("1",)),
        ("${NONE:-${A}/z}", ("1/z",)),
        ("${NONE:-${E:-${B}}}", ("x", "y")),
        ("${NONE:-${E}}", ()),
        ("a}b", ("a}b",)),
        ("$A", ("$A",)),
    ],
)
def test_variables(text: str, found: tuple[str, ...]) -> None:
    assert expand_text(text, NAMES) == found


@pytest.mark.parametrize("text", ["${", "${A", "${a}", "${A B}", "${}", "${A:-${B}", "${NONE:-" * 9 + "}" * 9])
def test_a_text_that_is_no_variable(text: str) -> None:
    with pytest.raises(BadInput):
        expand_text(text, NAMES)


def test_variables_cannot_stand_for_too_many_texts() -> None:
    with pytest.raises(BadInput, match="more than"):
        expand_text("${B}" * 64, NAMES)


@pytest.mark.parametrize(
    "path", ["a", "", "./a", "/a/../b", "/a/./b", "//a", "/a\0b", "/", "/\ud800", "/" + "a" * 5000]
)
def test_a_path_that_cannot_be_used(path: str) -> None:
    with pytest.raises(BadInput):
        check_path(path, "x")


def test_a_path_is_inside_by_its_parts() -> None:
    assert is_inside("/a/b", "/a")
    assert is_inside("/a", "/a")
    assert not is_inside("/ab", "/a")


def test_an_entry_that_allows_is_left_out_and_one_that_denies_is_an_error() -> None:
    values = {name: value for name, value in VALUES.items() if name != "HOME"}
    with pytest.raises(BadInput, match="cannot deny it"):
        CapsuleContract.parse(read_spec_bytes(CONTRACT)).expand(values)
    del values["PY_PREFIX"]
    allowed = CapsuleContract.parse(read_spec_bytes(CONTRACT)).expand({**values, "HOME": ("/home/ada",)})
    assert allowed.read == ("/srv/shop",)


BAD: list[dict[str, Any]] = [
    {"transport": {"mode": "http", "allowed_uds_paths": ["/tmp/x"]}},
    {"transport": {"mode": "uds", "allowed_uds_paths": []}},
    {"transport": {"mode": "uds", "allowed_uds_paths": ["relative"]}},
    {"process": {"deny_by_default": True, "allow_exec_paths": ["${NODE_BIN}"]}},
    {"process": {"deny_by_default": True, "allow_exec_paths": ["/bin/../sh"]}},
    {"filesystem": {"allow_read_prefixes": ["/"], "allow_write_prefixes": ["/a"], "deny_read_prefixes": ["/b"]}},
    {
        "filesystem": {
            "allow_read_prefixes": [f"/a{number}" for number in range(201)],
            "allow_write_prefixes": ["/a"],
            "deny_read_prefixes": ["/b"],
        }
    },
    {"assertions": [{"id": "x", "kind": "exec", "must_deny": True}]},
    {"assertions": [{"id": "x", "kind": "fs_read", "must_deny": True, "path": "~/.ssh"}]},
    {"assertions": [{"id": f"x{number}", "kind": "gateway_act", "must_deny": True} for number in range(201)]},
    {"version": 2},
    {"network": {"allow_public_internet": True, "allow_loopback_http": False}},
]


@pytest.mark.parametrize("changes", BAD, ids=lambda changes: json.dumps(changes)[:40])
def test_a_contract_that_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        expand(change_contract(**changes))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"version": 1, "version": 1}', b"\xff", b" " * 300_000])
def test_bytes_that_are_no_contract(data: bytes) -> None:
    with pytest.raises(BadInput):
        CapsuleContract.parse(data)


@given(st.text(alphabet="${}:-AB/ab", max_size=60))
def test_any_text_is_expanded_or_refused(text: str) -> None:
    try:
        found = expand_text(text, NAMES)
    except BadInput:
        return
    assert all("${A}" not in each for each in found)
