"""The gateway with all its parts in this process: the default.

Both policy servers, the executor and the gateway are objects here. They make and check the same evidence as parts that
run apart, with the same keys: `policy:0` and `policy:1` in the key store, and MAC keys beside them. One process holds
all of them, so the evidence shows which rules decided. It does not show that two parties decided. Every record says
`embedded`, and so does the verdict.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from aver.errors import Refused
from aver.gate.ask import load_gate
from aver.gateway.calls.upstream import Upstream
from aver.gateway.effects.answer_effect import release_answer
from aver.gateway.effects.preconditions import Preconditions
from aver.gateway.effects.standard_effects import build_effects
from aver.gateway.effects.tool_effects import ToolEffects
from aver.gateway.executor.executor import ActEffect, Executor
from aver.gateway.gateway import Gateway
from aver.gateway.handles import HandleStore
from aver.gateway.policy_server import PolicyServer, name_program
from aver.gateway.proof.attestation import PolicyKeys
from aver.gateway.proof.evidence import SERVERS
from aver.gateway.proof.predicate import EvidenceTrust
from aver.gateway.settings import GatewaySettings
from aver.keys.mac_keys import SHARED, create_mac_keys, mac_key_path, shared_mac_source, verifier_mac_source
from aver.ledger import Ledger


def open_embedded(
    ledger: Ledger,
    settings: GatewaySettings,
    *,
    workspace: str,
    session: str = "",
    effects: Mapping[str, ActEffect] | None = None,
    clock: Callable[[], float] = time.time,
    close: Callable[[], None],
) -> Gateway:
    """Open a gateway whose parts are all in this process. Missing keys are made. `close` is called at its end.

    `effects` are those that the executor can cause, by intent; without them, all of `build_effects`. Tools of connected
    servers can always be called. `clock` is the time by which shares and PREVIEWs expire.
    """
    workspace = os.path.realpath(workspace)
    home = ledger.config.home
    load = partial(load_gate, ledger.config, ledger=ledger)
    for name in (*SERVERS, SHARED):
        with suppress(Refused):  # It is there already.
            create_mac_keys(mac_key_path(home, name))
    macs = [verifier_mac_source(server_id, mac_key_path(home, server_id)) for server_id in SERVERS]
    masks = shared_mac_source(mac_key_path(home, SHARED))
    if any(ledger.keys.ring().active(f"policy:{server_id}") is None for server_id in SERVERS):
        # These keys sign no record, so the chain `keys` has none of them. A verifier gets them by `aver keys export`.
        for server_id in SERVERS:
            ledger.keys.create_if_absent(f"policy:{server_id}", post_quantum=False)
        # Makes the ledger's own key now. Else the second decision would seal it as a change of the settings.
        ledger.record_keys()
    servers = [
        PolicyServer(
            server_id,
            signer=ledger.keys.signer(f"policy:{server_id}"),
            mac_keys=macs[server_id].load,
            mask_keys=masks.load,
            load_gate=load,
            clock=clock,
        )
        for server_id in SERVERS
    ]

    def trust() -> EvidenceTrust:
        first, second = (source.load() for source in macs)
        first.require_apart(second)
        return EvidenceTrust(
            mac_keys0=first,
            mac_keys1=second,
            policy_keys=PolicyKeys.from_ring(ledger.keys.ring()),
            mac_ttl=settings.mac_ttl,
        )

    upstreams: dict[str, Upstream] = {}
    handles = HandleStore(clock)
    own = build_effects(ledger, workspace, settings.effects, handles) if effects is None else effects
    all_effects = {**ToolEffects(upstreams).by_intent, "FinalizeOutput": release_answer, **own}
    executor = Executor(
        ledger,
        all_effects,
        trust=trust,
        # The gateway compares an older PREVIEW with the rules as they are now, and has the servers decide again.
        program_id=lambda: servers[0].program_id or name_program(load(workspace)),
        settings=settings,
        clock=clock,
    )
    executor.recover()

    def end() -> None:
        executor.close()
        close()

    return Gateway(
        ledger,
        servers=servers,
        executor=executor,
        workspace=workspace,
        settings=settings,
        session=session,
        # The settings are those of Aver's own effects.
        preconditions=Preconditions(all_effects, upstreams, settings.effects if effects is None else None),
        upstreams=upstreams,
        handles=handles,
        clock=clock,
        close=end,
    )
