"""The servers of the parts that the gateway calls: a policy server, and the executor.

    policy server    POST /evaluate       a question, see `aver.gateway.policy_server`
    executor         POST /exec/...       an order, see `aver.gateway.executor.commit_order`; one path for each intent
    both             GET /health          {"ok": true, "part": "policy0", "majors": [1], "program_id": "..."}

Every decision has the status 200, refusals too. A body that is not JSON, or no question, gets 400. A caller must show
the part's link token. At a Unix socket it must also have the right user id; TCP is on this machine only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from aver.errors import BadInput, NotFound, Refused
from aver.gate.decide import Gate
from aver.gateway.codes import build_envelope
from aver.gateway.effects.standard_effects import build_effects
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.executor.executor import Executor
from aver.gateway.intents import INTENTS
from aver.gateway.parts.part_directories import EXECUTOR, LINK_TOKEN, read_link_token, read_policy_keys
from aver.gateway.parts.pinned_program import PROGRAM_FILE, PinnedProgram
from aver.gateway.parts.remote_parts import MAJOR_HEADER, MAJORS
from aver.gateway.policy_server import PolicyServer
from aver.gateway.proof.evidence import SERVERS
from aver.gateway.proof.predicate import EvidenceTrust
from aver.gateway.settings import GatewaySettings
from aver.keys import KeyStore
from aver.keys.mac_keys import SHARED, mac_key_path, server_mac_source, shared_mac_source, verifier_mac_source
from aver.ledger import Ledger
from aver.serving.part_server import Handler, PartCall, PartServer, ServerLimits
from aver.serving.peers import ClientList, Identify, PermittedClient
from aver.serving.sockets import PartAddress, UnixAddress
from aver.serving.tokens import digest_token
from aver.serving.wire import WireLimits

PART_LIMITS = ServerLimits(wire=WireLimits(body_max=16 * 1024 * 1024))
"""As much as the strict reader takes: a question has the content of a file up to three times, and its old lines. Only
the gateway can send one."""


class ProgramCopy:
    """A part's own copy of the pinned program. It is read again when it has been pinned anew."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / PROGRAM_FILE
        self._loaded: tuple[tuple[int, int], PinnedProgram, Gate] | None = None

    def load(self) -> tuple[PinnedProgram, Gate]:
        """Return the program and its gate. Raises as `PinnedProgram.read` and `build_gate`."""
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise NotFound(f"there is no program in {self._path}", advice="run: aver gateway pin") from error
        # The file is always replaced, never changed in place.
        stamp = status.st_ino, status.st_mtime_ns
        if self._loaded is None or self._loaded[0] != stamp:
            program = PinnedProgram.read(self._path)
            self._loaded = stamp, program, program.build_gate()
        return self._loaded[1], self._loaded[2]


def build_policy_part(directory: Path, server_id: int, address: PartAddress, *, peer_uid: int | None) -> PartServer:
    """Build the server of a policy server from its directory. Raises `AverError` where a key or the program is wrong.

    `peer_uid` is the user id of the gateway; None for that of this process.
    """
    program = ProgramCopy(directory)
    program.load()
    store = KeyStore(directory)
    signer = store.signer(f"policy:{server_id}", create=False)
    macs = server_mac_source(mac_key_path(directory, server_id))
    masks = shared_mac_source(mac_key_path(directory, SHARED))
    for source in (macs, masks):
        source.load()  # A key that is missing is told now, and not at the first question.
    server = PolicyServer(
        server_id,
        signer=signer,
        mac_keys=macs.load,
        mask_keys=masks.load,
        load_gate=lambda workspace: program.load()[1],
    )

    def evaluate(call: PartCall) -> Mapping[str, Any]:
        _check_major(call)
        try:
            return server.answer(call.document)
        except Refused as refusal:
            # A question that is none has no answer that could be signed.
            raise BadInput(str(refusal)) from refusal

    return _build_part(f"policy{server_id}", {("POST", "/evaluate"): evaluate}, directory, address, peer_uid, program)


def build_executor_part(
    ledger: Ledger,
    settings: GatewaySettings,
    directory: Path,
    address: PartAddress,
    *,
    workspace: str,
    peer_uid: int | None,
) -> tuple[PartServer, Executor]:
    """Build the server of the executor, and the executor, which the caller closes. Acts left open are closed first."""
    program = ProgramCopy(directory)
    macs = [verifier_mac_source(server_id, mac_key_path(directory, server_id)) for server_id in SERVERS]
    policy_keys = read_policy_keys(directory)

    def trust() -> EvidenceTrust:
        first, second = (source.load() for source in macs)
        first.require_apart(second)
        return EvidenceTrust(mac_keys0=first, mac_keys1=second, policy_keys=policy_keys, mac_ttl=settings.mac_ttl)

    program.load()
    trust()
    executor = Executor(
        ledger,
        build_effects(ledger, workspace, settings.effects),
        trust=trust,
        program_id=lambda: program.load()[0].program_id,
        settings=settings,
        deployment="apart",
    )
    executor.recover()
    routes: dict[tuple[str, str], Handler] = {
        ("POST", intent.endpoint): partial(_execute, executor, intent.name)
        for intent in INTENTS.values()
        if intent.endpoint
    }
    return _build_part(EXECUTOR, routes, directory, address, peer_uid, program), executor


def _execute(executor: Executor, intent_id: str, call: PartCall) -> Mapping[str, Any]:
    _check_major(call)
    try:
        order = CommitOrder.from_dict(intent_id, call.document)
    except Refused as refusal:
        named = call.document.get("action_id") if isinstance(call.document, dict) else None
        data = {"action_id": named} if isinstance(named, str) else {}
        return build_envelope(refusal.code, str(refusal), data=data)
    return executor.execute(order)


def _check_major(call: PartCall) -> None:
    """Raise `BadInput` unless the call is of a version that we speak."""
    given = call.headers.get(MAJOR_HEADER.lower(), "")
    if given not in map(str, MAJORS):
        raise BadInput(f"the header {MAJOR_HEADER} names no version of {list(MAJORS)}")


def _build_part(
    part: str,
    routes: Mapping[tuple[str, str], Handler],
    directory: Path,
    address: PartAddress,
    peer_uid: int | None,
    program: ProgramCopy,
) -> PartServer:
    def health() -> Mapping[str, Any]:
        return describe_health(part, lambda: program.load()[0].program_id)

    identify = _permit_gateway(directory, address, peer_uid)
    return PartServer(routes, identify=identify, health=health, limits=PART_LIMITS)


def describe_health(part: str, program_id: Callable[[], str]) -> dict[str, Any]:
    """Return the answer to `GET /health`."""
    return {"ok": True, "part": part, "majors": list(MAJORS), "program_id": program_id()}


def _permit_gateway(directory: Path, address: PartAddress, peer_uid: int | None) -> Identify:
    """Permit callers with the link token, at a Unix socket only those of one user."""
    uid = None
    if isinstance(address, UnixAddress):
        uid = os.geteuid() if peer_uid is None else peer_uid
    token = digest_token(read_link_token(directory / LINK_TOKEN))
    return ClientList([PermittedClient("gateway", token_sha256=token, uid=uid)])
