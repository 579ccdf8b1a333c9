"""The verdict on a smoke report: each section of the contract counts, and a report from outside cannot cheat."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.gateway.mediation.contract_clauses import list_clauses
from aver.gateway.mediation.contract_verdict import PASSES, find_reported_values
from support.capsule_reports import HOST_DEVICE, change_contract, expand, find_failed, honest_report, judge, mount

CONTRACT = expand()
HONEST = honest_report(CONTRACT)

Break = Callable[[dict[str, Any]], Any]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def clause(report: dict[str, Any], name: str) -> Any:
    return report["clauses"][name]


def add_mount(report: dict[str, Any], *words: Any, **named: Any) -> None:
    clause(report, "filesystem.mounts")["mounts"].append(mount(*words, **named))


WORKS = {"ok": True, "spawned": True}

BROKEN: dict[str, tuple[Break, dict[str, str]]] = {
    "a denied prefix can be read": (
        lambda r: clause(r, "filesystem.deny_read:/home/ada/.ssh").update(WORKS),
        {"filesystem.deny_read:/home/ada/.ssh": "FAIL_MUST_DENY"},
    ),
    "Aver's home can be read": (
        lambda r: clause(r, "filesystem.canary_read").update(WORKS),
        {"filesystem.canary_read": "FAIL_MUST_DENY"},
    ),
    "Aver's home can be written": (
        lambda r: clause(r, "filesystem.canary_write").update(WORKS),
        {"filesystem.canary_write": "FAIL_MUST_DENY"},
    ),
    "an allowed prefix cannot be read": (
        lambda r: clause(r, "filesystem.read:/opt/venv").update(ok=False),
        {"filesystem.read:/opt/venv": "FAIL_MUST_ALLOW"},
    ),
    "an allowed prefix cannot be written": (
        lambda r: clause(r, "filesystem.write:/srv/shop").update(ok=False),
        {"filesystem.write:/srv/shop": "FAIL_MUST_ALLOW"},
    ),
    "another directory of the host is mounted": (
        lambda r: add_mount(r, "/etc"),
        {"filesystem.mounts": "FAIL_MUST_DENY"},
    ),
    "the root of the host is mounted": (lambda r: add_mount(r, "/"), {"filesystem.mounts": "FAIL_MUST_DENY"}),
    "a temporary directory of the host is mounted": (
        lambda r: add_mount(r, "/run/user", device="0:5", sort="tmpfs"),
        {"filesystem.mounts": "FAIL_MUST_DENY"},
    ),
    "the devices of the host are mounted": (
        lambda r: add_mount(r, "/dev", device="0:5", sort="devtmpfs"),
        {"filesystem.mounts": "FAIL_MUST_DENY"},
    ),
    "a denied directory is mounted": (
        lambda r: add_mount(r, "/home/ada/.ssh/keys"),
        {"filesystem.mounts": "FAIL_MUST_DENY"},
    ),
    "a read-only prefix is writable": (
        lambda r: add_mount(r, "/opt/python/lib", writable=True),
        {"filesystem.mounts": "FAIL_MUST_DENY"},
    ),
    "the kernel's settings are writable": (
        lambda r: add_mount(r, "/proc", device="0:98", sort="proc", writable=True),
        {"filesystem.mounts": "FAIL_MUST_DENY"},
    ),
    "the processes of the host are mounted": (
        lambda r: add_mount(r, "/proc", device=HOST_DEVICE, sort="proc"),
        {"filesystem.mounts": "FAIL_MUST_DENY"},
    ),
    "there is a route to the internet": (
        lambda r: clause(r, "network.internet").update(WORKS),
        {"network.internet": "FAIL_MUST_DENY"},
    ),
    "the loopback of the host answers": (
        lambda r: clause(r, "network.loopback").update(WORKS),
        {"network.loopback": "FAIL_MUST_DENY"},
    ),
    "the network is that of the host": (
        lambda r: clause(r, "network.namespace")["namespaces"].update(net=1),
        {"network.namespace": "FAIL_MUST_DENY"},
    ),
    "there is another interface": (
        lambda r: clause(r, "network.namespace").update(interfaces=["eth0", "lo"]),
        {"network.namespace": "FAIL_MUST_DENY"},
    ),
    "a new program starts": (
        lambda r: clause(r, "process.exec_copy").update(WORKS),
        {"process.exec_copy": "FAIL_MUST_DENY"},
    ),
    "a program in memory starts": (
        lambda r: clause(r, "process.exec_memory").update(WORKS),
        {"process.exec_memory": "FAIL_MUST_DENY"},
    ),
    "a listed program does not start": (
        lambda r: clause(r, "process.exec:/opt/venv/bin/python").update(spawned=False, ok=False),
        {"process.exec:/opt/venv/bin/python": "FAIL_MUST_ALLOW"},
    ),
    "the processes of the host are there": (
        lambda r: clause(r, "process.namespace")["namespaces"].update(pid=2),
        {"process.namespace": "FAIL_MUST_DENY"},
    ),
    "the gateway does not answer": (
        lambda r: clause(r, "transport.gateway").update(ok=False),
        {"transport.gateway": "FAIL_MUST_ALLOW"},
    ),
    "the gateway is at another path": (
        lambda r: clause(r, "transport.gateway").update(path="/run/other.sock"),
        {"transport.gateway": "FAIL_MUST_ALLOW"},
    ),
    "another socket answers": (
        lambda r: clause(r, "transport.foreign_socket").update(WORKS),
        {"transport.foreign_socket": "FAIL_MUST_DENY"},
    ),
    "an abstract socket answers": (
        lambda r: clause(r, "transport.abstract_socket").update(WORKS),
        {"transport.abstract_socket": "FAIL_MUST_DENY"},
    ),
    "a socket is left in the workspace": (
        lambda r: clause(r, "transport.sockets")["sockets"].append("/srv/shop/docker.sock"),
        {"transport.sockets": "FAIL_MUST_DENY"},
    ),
    "a secret can be read": (
        lambda r: r["direct_fs_read"].update(ok=True),
        {"no_host_secret_read": "FAIL_MUST_DENY"},
    ),
    "a shell can be started": (
        lambda r: r["direct_exec_sh"].update(WORKS),
        {"no_arbitrary_exec_sh": "FAIL_MUST_DENY"},
    ),
    "the MCP door does not answer": (
        lambda r: r["gateway_mcp_act"].update(ok=False),
        {"gateway_mcp_act_allowed": "FAIL_MUST_ALLOW"},
    ),
}


def test_an_honest_report_holds() -> None:
    verdict = judge(CONTRACT, HONEST)
    assert find_failed(verdict) == {}
    assert (verdict["status"], verdict["ok"], verdict["ts_unix"]) == ("OK", True, 1_700_000_000)
    clauses = len(list_clauses(CONTRACT))
    counts = {"n_assertions": 7, "n_ok": 7, "n_fail": 0}
    assert verdict["summary"] == counts | {"n_clauses": clauses, "n_clauses_ok": clauses, "n_clauses_fail": 0}
    assert {each["section"] for each in verdict["clauses"]} == {"filesystem", "network", "process", "transport"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_contract_that_is_broken_is_found(name: str) -> None:
    change, expected = BROKEN[name]
    report = copy.deepcopy(HONEST)
    change(report)
    verdict = judge(CONTRACT, report)
    assert find_failed(verdict) == expected
    assert (verdict["status"], verdict["ok"]) == ("FAIL", False)


def deny_clauses() -> list[str]:
    return [each.id for each in list_clauses(CONTRACT) if each.must_deny]


@pytest.mark.parametrize("name", deny_clauses())
@pytest.mark.parametrize("control", [None, {"ok": False, "error": "EACCES"}, {"ok": 1}, {}, [], "x"])
def test_a_denial_without_a_control_that_succeeded_shows_nothing(name: str, control: Any) -> None:
    report = copy.deepcopy(HONEST)
    clause(report, name)["control"] = control
    assert find_failed(judge(CONTRACT, report)) == {name: "SKIPPED"}


def test_a_file_that_is_not_there_is_no_denial_of_an_assertion() -> None:
    report = copy.deepcopy(HONEST)
    report["direct_fs_read"]["control"] = {"ok": False, "error": "ENOENT"}
    assert find_failed(judge(CONTRACT, report)) == {"no_host_secret_read": "SKIPPED"}


def test_only_what_the_contract_lets_be_skipped_is_skipped() -> None:
    report = copy.deepcopy(HONEST)
    for key in ("direct_exec_true", "direct_exfil_post", "direct_internet"):
        report[key] = {"skipped": True, "note": "not here"}
    verdict = judge(CONTRACT, report)
    assert find_failed(verdict) == {"no_public_internet": "SKIPPED"}
    codes = {each["id"]: each["reason_code"] for each in verdict["results"]}
    assert codes["no_arbitrary_exec_true"] == codes["no_loopback_http_exfil"] == "SKIPPED_ALLOWED"


def test_a_prefix_that_is_nowhere_demands_nothing() -> None:
    report = copy.deepcopy(HONEST)
    absent = {"ok": False, "error": "ENOENT", "control": {"ok": False, "error": "ENOENT"}}
    clause(report, "filesystem.deny_read:/home/ada/.aws").update(absent)
    clause(report, "filesystem.read:/opt/venv").update(absent)
    assert find_failed(judge(CONTRACT, report)) == {}
    # Inside, there is something: then it is no matter that the control found nothing.
    clause(report, "filesystem.deny_read:/home/ada/.aws")["ok"] = True
    assert find_failed(judge(CONTRACT, report)) == {"filesystem.deny_read:/home/ada/.aws": "FAIL_MUST_DENY"}


def test_every_probe_is_needed() -> None:
    for name in HONEST["clauses"]:
        report = copy.deepcopy(HONEST)
        del report["clauses"][name]
        assert find_failed(judge(CONTRACT, report)) == {name: "MISSING_PROBE"}
    for key in HONEST.keys() - {"clauses", "contract_sha256"}:
        report = copy.deepcopy(HONEST)
        del report[key]
        assert list(find_failed(judge(CONTRACT, report)).values()) == ["MISSING_PROBE"]


def test_a_probe_of_another_target_is_none() -> None:
    report = copy.deepcopy(HONEST)
    clause(report, "filesystem.deny_read:/home/ada/.ssh")["target"] = ["/nowhere"]
    report["direct_fs_read"]["path"] = "/nowhere"
    report["direct_exec_sh"]["argv"] = ["/bin/none"]
    assert find_failed(judge(CONTRACT, report)) == {
        "filesystem.deny_read:/home/ada/.ssh": "MISSING_PROBE",
        "no_host_secret_read": "MISSING_PROBE",
        "no_arbitrary_exec_sh": "MISSING_PROBE",
    }


def test_a_report_of_another_contract_shows_nothing() -> None:
    other = expand(change_contract(name="another"))
    verdict = judge(other, HONEST)
    assert not verdict["ok"]
    assert {each["reason_code"] for each in (*verdict["results"], *verdict["clauses"])} == {"MISSING_PROBE"}


def test_a_report_of_the_reference_alone_does_not_hold() -> None:
    """It has seven probes, no controls, and nothing about the other sections."""
    report = {key: value for key, value in HONEST.items() if key != "clauses"}
    assert not judge(CONTRACT, report)["ok"]


def test_where_the_loopback_is_allowed_nothing_is_demanded_of_it() -> None:
    network = {"allow_public_internet": False, "allow_loopback_http": True}
    contract = expand(change_contract(network=network))
    assert "network.loopback" not in {each.id for each in list_clauses(contract)}
    assert judge(contract, honest_report(contract))["ok"]


@pytest.mark.parametrize(
    "urls", [None, [], "http://127.0.0.1/", ["http://example.com/"], ["https://127.0.0.1/"], ["http://[::1"], [1], [[]]]
)
def test_a_report_cannot_choose_another_machine_for_the_loopback(urls: Any) -> None:
    assert find_reported_values({"variables": {"MIRAGE_EXFIL_URL": urls}}) == {}
    assert find_reported_values({"variables": {"MIRAGE_EXFIL_URL": ["http://127.0.0.1:1/"]}})


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for name, child in children for found in paths_in(child, (*path, name)))]


PLACES = paths_in(HONEST)


@settings(deadline=None)
@given(place=st.sampled_from(PLACES), value=JSON)
def test_any_report_has_a_verdict_and_none_is_better_for_nonsense(place: tuple[Any, ...], value: Any) -> None:
    report: Any = copy.deepcopy(HONEST)
    if not place:
        report = value
    else:
        holder = report
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
    verdict = judge(CONTRACT, report)
    json.dumps(verdict)
    assert verdict["ok"] == all(each["reason_code"] in PASSES for each in (*verdict["results"], *verdict["clauses"]))
    if not isinstance(report, dict):
        assert not verdict["ok"]
