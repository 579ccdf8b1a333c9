"""The gateway's door for confined programs: a Unix socket that is mounted inside of their enclosure.

It answers `POST /act` as the other HTTP door does, and nothing else: an agent may not tell what the user said. It knows
a caller by the kernel's word alone: the user id, and the process namespace of the process that connected. A namespace
has one session and its callers. Another process of the same user is refused, so that no record says `confined` of one
that is not. A header `Aver-Session` that names another session is `INGRESS_CONFLICT`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from aver.errors import AverError
from aver.gateway.act_records import Mediation
from aver.gateway.acts.visit import Door
from aver.gateway.codes import build_envelope
from aver.gateway.gateway import Gateway
from aver.gateway.ingress import SESSION
from aver.gateway.parts.http_door import ACT_PATH, refuse_call
from aver.gateway.request import REQUEST_MAX
from aver.log import debug
from aver.serving.part_server import PartCall, PartServer, ServerLimits
from aver.serving.peers import Credentials
from aver.serving.wire import WireLimits

CONFINED = "confined"
"""The kind of ingress in the records. The identity is SHA-256 of the contract."""

ADMISSION_SECONDS = 5.0
"""How long a program waits that connects before `bwrap` has told its namespace. That takes milliseconds."""


class ConfinedDoor:
    """Answers acts of the process namespaces that were admitted, each through a door of its own."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._doors: dict[int, tuple[Door, Callable[[], Mediation]]] = {}
        self._changed = threading.Condition()

    def admit(self, namespace: int, door: Door, mediation: Callable[[], Mediation]) -> None:
        """Let the programs of a process namespace act through a door. `mediation` is asked at each act."""
        with self._changed:
            self._doors[namespace] = door, mediation
            self._changed.notify_all()

    def dismiss(self, namespace: int) -> None:
        """Admit a namespace no longer. The kernel may give its number to another."""
        with self._changed:
            self._doors.pop(namespace, None)

    def build_server(self) -> PartServer:
        """Build the server of this door."""
        limits = ServerLimits(wire=WireLimits(body_max=REQUEST_MAX))
        return PartServer(
            {("POST", ACT_PATH): self.act},
            identify=self.identify,
            health=lambda: {"ok": True, "part": "gateway"},
            refuse=refuse_call,
            limits=limits,
        )

    def identify(self, shown: Credentials) -> str | None:
        """Return the number of the caller's namespace; None for a caller that was not admitted."""
        if shown.uid != os.geteuid() or shown.pid is None or shown.token is not None:
            return None
        try:
            namespace = os.stat(f"/proc/{shown.pid}/ns/pid").st_ino
        except OSError as error:
            debug("gateway", "cannot tell the namespace of process %d: %s", shown.pid, error)
            return None
        if namespace == os.stat("/proc/self/ns/pid").st_ino:
            return None  # At once: a program outside never becomes one inside.
        with self._changed:
            is_known = self._changed.wait_for(lambda: namespace in self._doors, ADMISSION_SECONDS)
        return str(namespace) if is_known else None

    def act(self, call: PartCall) -> Mapping[str, Any]:
        """Answer a call with an envelope."""
        with self._changed:
            known = self._doors.get(int(call.peer.client))
        if known is None:
            return build_envelope("INGRESS_CONFLICT", "this confinement has ended")
        door, mediation = known
        if call.headers.get(SESSION, door.session) != door.session:
            return build_envelope("INGRESS_CONFLICT", f"a confined agent acts in its own session, {door.session}")
        try:
            found = mediation()
        except AverError as error:
            debug("gateway", "the confinement could not be verified: %s", error.message)
            found = "unverified"
        return self._gateway.act(call.body, door=replace(door, mediation=found))
