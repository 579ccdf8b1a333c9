"""A capsule contract in paths that need not exist, and a smoke report that holds all of it."""

from __future__ import annotations

import copy
import json
from typing import Any

from aver.gateway.mediation.contract import CapsuleContract, ExpandedContract, Values
from aver.gateway.mediation.contract_clauses import describe_target, list_clauses, name_probes
from aver.gateway.mediation.contract_verdict import EXFIL_VARIABLE, judge_report
from aver.gateway.specs import CONTRACT, read_spec_bytes

VALUES: Values = {
    "CAPSULE_WORKSPACE": ("/srv/shop",),
    "REPO_ROOT": ("/srv/shop",),
    "TMPDIR": ("/tmp",),
    "STATE_DIR": ("/var/tmp",),
    "PY_PREFIX": ("/opt/python", "/opt/venv"),
    "PY_BIN": ("/opt/venv/bin/python",),
    "PY_REAL_BIN": ("/opt/python/bin/python3",),
    "HOME": ("/home/ada",),
    "MIRAGE_CAPSULE_SECRET_PATH": ("/home/ada/.aver/gateway/smoke/secret",),
    EXFIL_VARIABLE: ("http://127.0.0.1:4711/",),
}
RUNTIME = ("/usr/lib", "/lib64")
HOST_DEVICE, OWN_DEVICE = "254:0", "0:99"


def change_contract(**changes: Any) -> bytes:
    """The contract that comes with Aver, with other sections in the place of some."""
    return json.dumps({**json.loads(read_spec_bytes(CONTRACT)), **changes}).encode()


def expand(data: bytes | None = None) -> ExpandedContract:
    return CapsuleContract.parse(read_spec_bytes(CONTRACT) if data is None else data).expand(VALUES)


def mount(
    point: str, *, device: str = HOST_DEVICE, sort: str = "ext4", writable: bool = False, root: str = "/x"
) -> Any:
    return {"point": point, "device": device, "root": root, "type": sort, "writable": writable}


def honest_report(contract: ExpandedContract) -> dict[str, Any]:
    """A report of a confinement that holds everything."""
    works = {"ok": True, "spawned": True}
    denied = {"ok": False, "spawned": False, "error": "ENOENT", "control": works}
    keys = name_probes(contract.assertions)
    report: dict[str, Any] = {"contract_sha256": contract.sha256}
    for assertion in contract.assertions:
        answer = denied if assertion.must_deny else {**works, "control": works}
        report[keys[assertion.id]] = {**describe_target(assertion), **answer}
    clauses: dict[str, Any] = {}
    for clause in list_clauses(contract):
        answer = denied if clause.must_deny else {**works, "control": works}
        clauses[clause.id] = {"target": list(clause.target), **answer}
    clauses["filesystem.mounts"] |= {
        "mounts": [
            mount("/", device=OWN_DEVICE, sort="tmpfs"),
            mount("/proc", device="0:98", sort="proc"),
            mount("/dev", device="0:97", sort="tmpfs"),
            mount("/dev/null", device="0:5", sort="devtmpfs", writable=True),
            mount("/dev/pts", device="0:96", sort="devpts", writable=True),
            mount("/tmp", device="0:95", sort="tmpfs", writable=True),
            mount("/usr/lib"),
            mount("/opt/python"),
            mount("/srv/shop", writable=True),
            mount(contract.sockets[0], writable=False),
        ],
        "control": {"ok": True, "mounts": [mount("/", writable=True), mount("/dev", device="0:5", sort="devtmpfs")]},
    }
    names = ("net", "pid", "ipc", "user", "mnt")
    spaces = {
        "namespaces": {name: number for number, name in enumerate(names, 100)},
        "interfaces": ["lo"],
        "control": {"ok": True, "namespaces": {name: number for number, name in enumerate(names, 1)}},
    }
    for section in ("network", "process"):
        clauses[f"{section}.namespace"] |= copy.deepcopy(spaces)
    clauses["transport.sockets"] |= {"sockets": [contract.sockets[0]]}
    clauses["transport.gateway"] |= {"path": contract.sockets[0]}
    # Each is changed by some test, and must not change another.
    return copy.deepcopy({**report, "clauses": clauses})


def judge(contract: ExpandedContract, report: Any) -> dict[str, Any]:
    return judge_report(contract, report, runtime=RUNTIME, now=1_700_000_000, paths={})


def find_failed(verdict: dict[str, Any]) -> dict[str, str]:
    """The codes of what does not hold, by the id of the clause or assertion."""
    return {each["id"]: each["reason_code"] for each in (*verdict["results"], *verdict["clauses"]) if not each["ok"]}
