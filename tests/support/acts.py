"""Gateways in a throw-away home and workspace, whose clock the test sets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from aver import Ledger, open_ledger
from aver.gate.approvals import ApprovalRequest, Person, approve, deny, enrol_approver, load_request
from aver.gateway.acts.visit import Door
from aver.gateway.embedded_parts import open_embedded
from aver.gateway.gateway import Gateway
from aver.gateway.settings import GatewaySettings, read_gateway_settings
from support.approvals import SHOWN, somebody

CALLER = "agent:writer"


class SetClock:
    """A clock that stands where the test puts it, as seconds after the true time."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead

    def write(self) -> str:
        """The time as records have it."""
        return datetime.fromtimestamp(self(), UTC).isoformat()


class Office:
    """A gateway, its ledger, its workspace, and a person who can approve."""

    def __init__(self, gateway: Gateway, clock: SetClock) -> None:
        self.gateway = gateway
        self.clock = clock
        self.person: Person | None = None

    @property
    def ledger(self) -> Ledger:
        return self.gateway.ledger

    @property
    def workspace(self) -> Path:
        return Path(self.gateway.workspace)

    def act(
        self, intent: str, inputs: dict[str, Any], *, caller: str = CALLER, door: Door | None = None, **constraints: Any
    ) -> dict[str, Any]:
        document = {"intent_id": intent, "inputs": inputs, "constraints": constraints, "caller": caller}
        return self.gateway.act(document, door=door)

    def write(self, name: str = "notes.txt", content: str = "one\n", **more: Any) -> dict[str, Any]:
        return self.act("WriteWorkspaceFile", {"relpath": name, "content": content}, **more)

    def preview(self, name: str = "notes.txt", content: str = "one\n", **more: Any) -> dict[str, Any]:
        return self.act("CheckWriteWorkspaceFile", {"relpath": name, "content": content}, **more)

    def commit(self, tx_id: str, **more: Any) -> dict[str, Any]:
        return self.act("WriteWorkspaceFile", {"tx_id": tx_id}, **more)

    def enrol(self) -> Person:
        self.person = self.person or somebody("ada")
        self.ledger.keys.trust(self.person.public)
        enrol_approver(self.ledger, self.person)
        return self.person

    def approve(self, request_id: str) -> ApprovalRequest:
        assert self.person is not None
        request = load_request(self.ledger, request_id)
        approve(self.ledger, request, self.person, shown=SHOWN)
        return request

    def deny(self, request_id: str) -> None:
        assert self.person is not None
        deny(self.ledger, load_request(self.ledger, request_id), self.person, shown=SHOWN)

    def kinds(self) -> list[str]:
        """The kinds of the session's records, in order."""
        return [str(record.kind) for record in self.ledger.read(f"gateway.{self.gateway.door.session}")]


@contextmanager
def open_office(
    workspace: Path, ledger: Ledger | None = None, *, session: str = "s1", causes: Any = None, **changes: Any
) -> Iterator[Office]:
    """Open an embedded gateway. `changes` are settings that differ from those in the home."""
    workspace.mkdir(parents=True, exist_ok=True)
    own = ledger or open_ledger()
    clock = SetClock()
    settings: GatewaySettings = replace(read_gateway_settings(own.config), **changes)
    close = (lambda: None) if ledger is not None else own.close
    # Records are sealed by the same clock: a verdict compares the ages of shares with their time.
    with (
        patch("aver.ledger.append.now", clock.write),
        open_embedded(
            own, settings, workspace=str(workspace), session=session, effects=causes, clock=clock, close=close
        ) as gateway,
    ):
        yield Office(gateway, clock)
