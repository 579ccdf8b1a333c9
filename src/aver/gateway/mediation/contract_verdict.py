"""The verdict on a smoke report: was every section of a contract held?

    status OK | FAIL, ok, ts_unix, contract_path, contract_sha256, report_path, schema_path, schema_sha256,
    summary {n_assertions, n_ok, n_fail, n_clauses, n_clauses_ok, n_clauses_fail},
    results   one for each assertion: id, kind, must_deny, allow_skip, ok, reason_code, details, probe_key, target
    clauses   one for each clause of the other sections: id, section, kind, must_deny, ok, reason_code, details

The form and the codes of `results` are those of the reference, which judged assertions alone:

    PASS_DENY        it was denied inside, and the same attempt outside succeeded
    PASS_ALLOW       it worked inside
    SKIPPED_ALLOWED  no probe could be made, and the contract lets it be left out, or there is nothing to probe
    FAIL_MUST_DENY   it worked inside, or more is open than the contract says
    FAIL_MUST_ALLOW  it did not work inside
    MISSING_PROBE    the report has no answer to this, or one of another target
    SKIPPED          no probe could be made, or its control failed: nothing is shown

A denial counts only if its control succeeded. Otherwise a file that is not there would pass for one that is closed.
This module opens no file. A report comes from outside: whatever it holds, there is a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aver.gateway.mediation.contract import ContractAssertion, ExpandedContract, is_inside
from aver.gateway.mediation.contract_clauses import (
    ContractClause,
    describe_target,
    list_clauses,
    name_probes,
)
from aver.lazy_pattern import lazy_pattern

PASS_DENY, PASS_ALLOW, SKIPPED_ALLOWED = "PASS_DENY", "PASS_ALLOW", "SKIPPED_ALLOWED"
FAIL_MUST_DENY, FAIL_MUST_ALLOW, MISSING_PROBE, SKIPPED = (
    "FAIL_MUST_DENY",
    "FAIL_MUST_ALLOW",
    "MISSING_PROBE",
    "SKIPPED",
)
PASSES = frozenset({PASS_DENY, PASS_ALLOW, SKIPPED_ALLOWED})

EXFIL_VARIABLE = "MIRAGE_EXFIL_URL"

PRIVATE_MOUNT_TYPES = frozenset({"tmpfs", "devpts", "proc", "mqueue"})
"""File systems that can be a confinement's own. One on a device of the host is not."""

DEVICE_FILES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx")
)
"""Devices of the host that every program needs. Writing to them changes no file."""

OWN_NAMESPACES = {"network": ("net",), "process": ("pid", "ipc", "user")}

DETAILS_MAX = 500

_LOOPBACK_URL = lazy_pattern(r"http://(?:127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?/[\x21-\x7e]*")


class Judged(NamedTuple):
    """The judgement of one clause or assertion."""

    reason_code: str
    details: str = ""


def judge_report(
    contract: ExpandedContract, report: Any, *, runtime: tuple[str, ...], now: int, paths: Mapping[str, Any]
) -> dict[str, Any]:
    """Judge a smoke report by a contract. Returns the verdict.

    `runtime` are the files that every enclosure shows. `paths` are further fields of the verdict, such as the names of
    the files.
    """
    found = report if isinstance(report, dict) else {}
    is_same = found.get("contract_sha256") == contract.sha256
    keys = name_probes(contract.assertions)
    results = []
    for assertion in contract.assertions:
        judged = judge_assertion(assertion, _find(found, keys[assertion.id])) if is_same else _other_contract()
        results.append(
            {
                "id": assertion.id,
                "kind": assertion.kind,
                "must_deny": assertion.must_deny,
                "allow_skip": assertion.allow_skip,
                **describe_target(assertion),
                "probe_key": keys[assertion.id],
                **_describe(judged),
            }
        )
    clauses = []
    for clause in list_clauses(contract):
        judged = judge_clause(clause, found, contract, runtime) if is_same else _other_contract()
        clauses.append(
            {
                "id": clause.id,
                "section": clause.section,
                "kind": clause.kind,
                "must_deny": clause.must_deny,
                **_describe(judged),
            }
        )
    summary = {"n_assertions": len(results), **_count(results, "n_"), "n_clauses": len(clauses)}
    is_ok = all(each["ok"] for each in (*results, *clauses))
    return {
        "status": "OK" if is_ok else "FAIL",
        "ok": is_ok,
        "ts_unix": now,
        "contract_sha256": contract.sha256,
        **paths,
        "summary": {**summary, **_count(clauses, "n_clauses_")},
        "results": results,
        "clauses": clauses,
    }


def judge_assertion(assertion: ContractAssertion, probe: Mapping[str, Any] | None) -> Judged:
    """Judge one assertion by its probe in the report."""
    if not assertion.target and assertion.kind not in ("gateway_act", "gateway_mcp_act"):
        return _skip(assertion.allow_skip, "a variable of the assertion has no value")
    if probe is None:
        return Judged(MISSING_PROBE, "the report has no probe of it")
    if probe.get("skipped") is True:
        return _skip(assertion.allow_skip, str(probe.get("note", "")))
    for name, value in describe_target(assertion).items():
        if probe.get(name) != value:
            return Judged(MISSING_PROBE, f"the probe is of another {name}")
    worked = probe.get("spawned" if assertion.kind == "exec" else "ok")
    return _judge_probe(probe, worked, must_deny=assertion.must_deny, allow_skip=assertion.allow_skip)


def judge_clause(
    clause: ContractClause, report: Mapping[str, Any], contract: ExpandedContract, runtime: tuple[str, ...]
) -> Judged:
    """Judge one clause of another section by its answer in the report."""
    answers = report.get("clauses")
    probe = _find(answers, clause.id) if isinstance(answers, dict) else None
    if probe is None:
        return Judged(MISSING_PROBE, "the report has no probe of it")
    if list(clause.target) != probe.get("target"):
        return Judged(MISSING_PROBE, "the probe is of another target")
    control = _find(probe, "control")
    if clause.may_be_absent and control is not None and control.get("error") == "ENOENT" and probe.get("ok") is False:
        return Judged(SKIPPED_ALLOWED, "there is nothing at this path")
    if clause.kind == "mounts":
        return _judge_mounts(probe, contract, runtime)
    if clause.kind == "namespaces":
        return _judge_namespaces(probe, OWN_NAMESPACES[clause.section])
    if clause.kind == "sockets":
        return _judge_sockets(probe, contract)
    if clause.kind == "act" and probe.get("path") not in contract.sockets:
        return Judged(FAIL_MUST_ALLOW, "the gateway was reached at a path that the contract does not list")
    worked = probe.get("spawned" if clause.kind.startswith("exec") else "ok")
    return _judge_probe(probe, worked, must_deny=clause.must_deny, allow_skip=False)


def is_loopback_url(url: Any) -> bool:
    """Whether a URL is of this machine: a report may not choose another for the probe of the loopback."""
    return isinstance(url, str) and _LOOPBACK_URL.fullmatch(url) is not None


def find_reported_values(report: Any) -> dict[str, tuple[str, ...]]:
    """Return the values of variables that only the smoke test knows: the URL of its server on this machine."""
    found = report.get("variables") if isinstance(report, dict) else None
    urls = found.get(EXFIL_VARIABLE) if isinstance(found, dict) else None
    is_good = isinstance(urls, list) and len(urls) == 1 and is_loopback_url(urls[0])
    return {EXFIL_VARIABLE: (urls[0],)} if isinstance(urls, list) and is_good else {}


def _judge_probe(probe: Mapping[str, Any], worked: Any, *, must_deny: bool, allow_skip: bool) -> Judged:
    words = " ".join(str(probe[name]) for name in ("error", "details") if probe.get(name))[:DETAILS_MAX]
    if type(worked) is not bool:
        return Judged(MISSING_PROBE, f"the probe has no answer {words}".strip())
    control = _find(probe, "control") or {}
    if must_deny:
        if worked:
            return Judged(FAIL_MUST_DENY, words or "it worked inside")
        if control.get("ok") is not True:
            why = str(control.get("error") or "the report has none")[:DETAILS_MAX]
            return _skip(allow_skip, f"the control outside did not succeed: {why}")
        return Judged(PASS_DENY, words)
    return Judged(PASS_ALLOW) if worked else Judged(FAIL_MUST_ALLOW, words)


def _judge_mounts(probe: Mapping[str, Any], contract: ExpandedContract, runtime: tuple[str, ...]) -> Judged:
    """Compare all mounts inside with the contract: nothing of the host is there, or writable, that it does not name."""
    inside, outside = _list_mounts(probe), _list_mounts(_find(probe, "control") or {})
    if not inside or not outside:
        return Judged(MISSING_PROBE, "the report has no mounts, or none of the host to compare them with")
    devices = {mount["device"] for mount in outside}
    named = (*contract.read, *contract.write, *contract.exec_paths, *contract.sockets, *contract.deny_read)
    shown = (*contract.follow(named), *runtime)
    denied, writable = contract.follow(contract.deny_read), contract.follow((*contract.write, *contract.sockets))
    for mount in inside:
        point = mount["point"]
        if point in DEVICE_FILES:
            continue
        # A file of the host that is covered has the empty device in its place.
        is_cover = mount["root"].endswith("/null") and not mount["writable"]
        if mount["type"] not in PRIVATE_MOUNT_TYPES or mount["device"] in devices:
            if not any(is_inside(point, path) for path in shown):
                return Judged(FAIL_MUST_DENY, f"{point} of the host is there, and the contract does not name it")
            if not is_cover and any(is_inside(point, path) for path in denied):
                return Judged(FAIL_MUST_DENY, f"{point} of the host is there, and the contract denies it")
        is_own = mount["type"] in ("devpts", "mqueue") and mount["device"] not in devices
        if mount["writable"] and not is_own and not any(is_inside(point, path) for path in writable):
            return Judged(FAIL_MUST_DENY, f"{point} can be written to, and the contract does not allow it")
    return Judged(PASS_DENY, f"{len(inside)} mounts")


def _list_mounts(probe: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the mounts of a probe; none where one of them has another form."""
    found = probe.get("mounts")
    if not isinstance(found, list) or not all(isinstance(mount, dict) for mount in found):
        return []
    for mount in found:
        texts = [mount.get(name) for name in ("point", "device", "type", "root")]
        if not all(isinstance(text, str) for text in texts) or type(mount.get("writable")) is not bool:
            return []
    return found


def _judge_namespaces(probe: Mapping[str, Any], names: tuple[str, ...]) -> Judged:
    inside, outside = probe.get("namespaces"), (_find(probe, "control") or {}).get("namespaces")
    if not isinstance(inside, dict) or not isinstance(outside, dict):
        return Judged(MISSING_PROBE, "the report does not name the namespaces")
    for name in names:
        if type(inside.get(name)) is not int or type(outside.get(name)) is not int:
            return Judged(MISSING_PROBE, f"the report does not name the namespace {name}")
        if inside[name] == outside[name]:
            return Judged(FAIL_MUST_DENY, f"the namespace {name} is that of the host")
    if "net" in names and probe.get("interfaces") != ["lo"]:
        return Judged(FAIL_MUST_DENY, f"there are other network interfaces than lo: {probe.get('interfaces')!r}"[:200])
    return Judged(PASS_DENY)


def _judge_sockets(probe: Mapping[str, Any], contract: ExpandedContract) -> Judged:
    found = probe.get("sockets")
    if probe.get("ok") is not True or not isinstance(found, list):
        return Judged(MISSING_PROBE, str(probe.get("error") or "the report has no list of sockets")[:DETAILS_MAX])
    other = [path for path in found if path not in contract.sockets]
    if other:
        return Judged(FAIL_MUST_DENY, f"a socket that the contract does not list answers: {other[0]!r}"[:DETAILS_MAX])
    return Judged(PASS_DENY, f"{len(found)} sockets")


def _skip(may_skip: bool, words: str) -> Judged:
    return Judged(SKIPPED_ALLOWED if may_skip else SKIPPED, words[:DETAILS_MAX])


def _other_contract() -> Judged:
    return Judged(MISSING_PROBE, "the report is of another contract")


def _find(document: Any, key: str) -> Mapping[str, Any] | None:
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else None


def _describe(judged: Judged) -> dict[str, Any]:
    return {"ok": judged.reason_code in PASSES, "reason_code": judged.reason_code, "details": judged.details}


def _count(entries: list[dict[str, Any]], prefix: str) -> dict[str, int]:
    passed = sum(each["ok"] for each in entries)
    return {f"{prefix}ok": passed, f"{prefix}fail": len(entries) - passed}
