"""The smoke report: what a program can do inside of an enclosure, and the same attempts outside.

    direct_fs_read, direct_exec_true, direct_exec_sh, direct_exfil_post, direct_internet, gateway_act, gateway_mcp_act
                      the probes of the contract's assertions, in the form of the reference, each with its `control`
    clauses           the probes of all other sections, by the id of the clause: target, ok, error, control
    v 1, ts_unix, contract_sha256, variables, confinement {wrapper, machine, kernel, hidden}

A control is the same attempt, made outside by the same program. It succeeds if only the confinement stands in the way.
So the smoke test brings its own targets: a file in Aver's home, a server on this machine's loopback, two Unix sockets.
The control of the internet is a route to a public address. Nothing is sent to another machine.
"""

from __future__ import annotations

import http.server
import json
import os
import platform
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.atomic import make_directory, replace_file
from aver.gateway.mediation import inner_program
from aver.gateway.mediation.contract import CapsuleContract, Values
from aver.gateway.mediation.contract_clauses import (
    ABSTRACT_SOCKET,
    CANARY,
    FOREIGN_SOCKET,
    PUBLIC_ADDRESS,
    ContractClause,
    describe_target,
    list_clauses,
    name_probes,
)
from aver.gateway.mediation.contract_verdict import EXFIL_VARIABLE
from aver.gateway.mediation.enclosure import CannotConfine, Enclosure, canary_path, find_python
from aver.serving.server_thread import serve_on_thread

SMOKE_CALLER = "aver:smoke"
"""The caller of the probes' acts. Each asks whether a file of the workspace may be read, and reads nothing."""

SMOKE_ACT: Mapping[str, Any] = {
    "intent_id": "CheckReadWorkspaceFile",
    "inputs": {"relpath": ".aver-smoke"},
    "constraints": {},
    "caller": SMOKE_CALLER,
}

PROBES_SECONDS = 300.0
"""How long all probes together may take. The MCP door needs seconds, all others milliseconds."""

SHOWN_MAX = 500

_ASSERTION_KINDS = {
    "fs_read": "read",
    "exec": "exec",
    "internet_get": "internet",
    "http_post": "post",
    "gateway_act": "act",
    "gateway_mcp_act": "mcp_act",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeTargets:
    """The targets that only a program outside can reach."""

    canary: Path
    url: str
    socket: Path
    abstract: str


@contextmanager
def open_targets(home: Path) -> Iterator[SmokeTargets]:
    """Make the targets, and listen on them. `home` is Aver's."""
    canary = canary_path(home)
    make_directory(canary.parent)
    replace_file(canary, f"{secrets.token_urlsafe(32)}\n".encode("ascii"))
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aver-smoke-")))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _LoopbackHandler)
        stack.enter_context(serve_on_thread(server, "aver-smoke"))
        abstract = f"@aver-smoke-{secrets.token_hex(8)}"
        for address in (os.fspath(directory / "s"), f"\0{abstract[1:]}"):
            listening = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listening.bind(address)
            listening.listen()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        yield SmokeTargets(canary=canary, url=url, socket=directory / "s", abstract=abstract)


class _LoopbackHandler(http.server.BaseHTTPRequestHandler):
    """Answers every POST."""

    def do_POST(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *words: object) -> None:  # noqa: A002 - the name is the library's
        """Write nothing to the terminal."""


def make_report(
    contract: CapsuleContract,
    enclose: Callable[[Values], Enclosure],
    *,
    values: Values,
    targets: SmokeTargets,
    door: Path,
    admit: Callable[[int], None],
    act: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    mcp_command: tuple[str, ...],
) -> dict[str, Any]:
    """Make all probes of a contract, inside and outside. Returns the report.

    `door` is the gateway's socket outside, and `admit` lets a process namespace use it. `act` sends an act from this
    process: the control of those from inside. Raises `CannotConfine` if nothing can be started inside.
    """
    values = {EXFIL_VARIABLE: (targets.url,), **values}
    enclosure = enclose(values)
    expanded = enclosure.contract
    keys = name_probes(expanded.assertions)
    probes: dict[str, dict[str, Any]] = {}
    for assertion in expanded.assertions:
        probe = {"kind": _ASSERTION_KINDS[assertion.kind], **describe_target(assertion)}
        if assertion.target or assertion.kind.startswith("gateway"):
            probes[keys[assertion.id]] = _complete(probe, enclosure, mcp_command)
    clauses = {clause.id: clause for clause in list_clauses(expanded)}
    for clause in clauses.values():
        probes[clause.id] = _complete(_build_probe(clause, targets, enclosure), enclosure, mcp_command)
    wanted = [{"id": name, **probe} for name, probe in probes.items()]
    inside = _probe_inside(enclosure, wanted, door=door, admit=admit)
    outside = _probe_outside(wanted, act)
    report: dict[str, Any] = {
        "v": 1,
        "ts_unix": int(time.time()),
        "contract_sha256": contract.sha256,
        "variables": {name: list(values[name]) for name in (EXFIL_VARIABLE,)},
        "confinement": {
            "wrapper": enclosure.wrapper,
            "machine": platform.machine(),
            "kernel": platform.release(),
            "hidden": len(enclosure.hidden),
        },
    }
    for assertion in expanded.assertions:
        key = keys[assertion.id]
        if key in probes:
            report[key] = {**describe_target(assertion), **inside[key], "control": outside[key]}
        else:
            report[key] = {"skipped": True, "note": "a variable of the assertion has no value"}
    report["clauses"] = {
        name: {"target": list(clause.target), **inside[name], "control": outside[name]}
        for name, clause in clauses.items()
    }
    return report


def _build_probe(clause: ContractClause, targets: SmokeTargets, enclosure: Enclosure) -> dict[str, Any]:
    """Build the probe of a clause: its kind, and what it is to try."""
    probe: dict[str, Any] = {"kind": clause.kind}
    places = {
        CANARY: os.fspath(targets.canary if clause.kind == "read" else targets.canary.parent),
        FOREIGN_SOCKET: os.fspath(targets.socket),
        ABSTRACT_SOCKET: targets.abstract,
    }
    if clause.kind == "exec":
        return {**probe, "argv": list(clause.target)}
    if clause.kind == "post":
        return {**probe, "url": targets.url}
    if clause.kind == "exec_copy":
        return {**probe, "path": _choose_directory(enclosure)}
    if clause.kind == "sockets":
        return {**probe, "paths": [*enclosure.contract.read, *enclosure.contract.write, "/run"]}
    if clause.target and clause.kind != "internet":
        return {**probe, "path": places.get(clause.target[0], clause.target[0])}
    return probe


def _choose_directory(enclosure: Enclosure) -> str:
    """Return a directory in which the agent can make a program: one that ends with it, if there is one."""
    directories = [path for path in enclosure.contract.write if os.path.isdir(path)]
    own = [path for path in directories if ["--tmpfs", path] == _find_mount(enclosure.options, path)]
    if not directories:
        raise BadInput("no prefix of filesystem.allow_write_prefixes is a directory here")
    return (own or directories)[0]


def _find_mount(options: tuple[str, ...], path: str) -> list[str]:
    index = options.index(path) if path in options else 0
    return list(options[index - 1 : index + 1])


def _complete(probe: dict[str, Any], enclosure: Enclosure, mcp_command: tuple[str, ...]) -> dict[str, Any]:
    """Add the act of a probe that sends one, and the address of one that looks for the internet."""
    if probe["kind"] == "act":
        return {**probe, "path": enclosure.socket, "act": dict(SMOKE_ACT)}
    if probe["kind"] == "mcp_act":
        return {**probe, "argv": list(mcp_command), "act": dict(SMOKE_ACT)}
    return {**probe, "address": PUBLIC_ADDRESS} if probe["kind"] == "internet" else probe


def _probe_inside(
    enclosure: Enclosure, probes: list[dict[str, Any]], *, door: Path, admit: Callable[[int], None]
) -> dict[str, Any]:
    process, namespace = enclosure.start(
        {"probes": probes}, door=door, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    admit(namespace)
    try:
        output, errors = process.communicate(timeout=PROBES_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise CannotConfine(f"the probes took more than {PROBES_SECONDS:g} seconds") from None
    return _read_answers(output, errors, probes)


def _probe_outside(
    probes: list[dict[str, Any]], act: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Make the controls. Acts go to the gateway in this process; the internet is a route, and no connection."""
    ours = [
        {name: value for name, value in probe.items() if name != "url" or probe["kind"] != "internet"}
        for probe in probes
    ]
    ours = [probe for probe in ours if probe["kind"] not in ("act", "mcp_act", "sockets")]
    with tempfile.TemporaryDirectory(prefix="aver-smoke-") as directory:
        for probe in ours:
            if probe["kind"] == "exec_copy":
                probe["path"] = directory
        plan = Path(directory, "plan.json")
        plan.write_text(json.dumps({"probes": ours}), encoding="ascii")
        command = [find_python(), "-I", "-S", "-B", inner_program.__file__, os.fspath(plan)]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBES_SECONDS, check=False
        )
    answers = _read_answers(ended.stdout, ended.stderr, ours)
    for probe in probes:
        if probe["kind"] in ("act", "mcp_act"):
            body = dict(act(SMOKE_ACT))
            answers[probe["id"]] = {"ok": body.get("status") in ("OK", "DENY"), "body": body}
        elif probe["kind"] == "sockets":
            answers[probe["id"]] = {"ok": True}
    return answers


def _read_answers(output: bytes, errors: bytes, probes: list[dict[str, Any]]) -> dict[str, Any]:
    try:
        answers = json.loads(output)
    except ValueError:
        words = errors.decode("utf-8", "replace").strip()[-SHOWN_MAX:]
        raise CannotConfine(f"nothing can be started in the confinement: {words or 'it gave no answer'}") from None
    return {probe["id"]: answers.get(probe["id"], {"ok": None}) for probe in probes}
