"""Traces of the protocol in a real ledger, sealed by the holders of the keys themselves: no session guards them.

So a test can append what an honest session would refuse, such as an execution after a rejection, and see that the
verdict finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aver import Ledger, Verdict, ask, verify
from aver.capsule.blobs import Blob, blob_references
from aver.capsule.canonical import canonical_json
from aver.gate.action import Action
from aver.keys import SeedSigner
from aver.protocol.events import OPERATOR, Event, build_event_draft
from aver.protocol.judgement.audit import report_trace
from aver.protocol.records.draft import BoundSigner
from aver.protocol.statements import SeenHead, SignedReport, sign_report
from support.protocol_traces import TraceInMemory

INPUT = b'{"arguments":{},"tool":"pytest"}'
"""The call of an intent whose test names no arguments."""

Lie = Callable[[dict[str, Any]], Any]


def split_known(keys: list[str]) -> dict[str, list[str]]:
    """The auditor's account of the keys that it knows. Tests replace it."""
    return {"known": keys, "unknown": []}


class HomeSigner(BoundSigner):
    """The key of an agent, or of the operator, in the home of a ledger. It is made when it is first needed."""

    def __init__(self, ledger: Ledger, agent: str) -> None:
        self.store_signer = ledger.signer() if agent == OPERATOR else ledger.keys.signer(agent)
        super().__init__(self.store_signer)

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> Any:
        return self.store_signer.sign_statement(purpose, content)  # type: ignore[union-attr]


class StoredTrace(TraceInMemory):
    """A trace that is sealed event by event into a ledger, by keys of the ledger's home."""

    def __init__(self, ledger: Ledger, workspace: Path, trace: str = "t1", **more: Any) -> None:
        super().__init__(trace, ledger=ledger.id, **more)
        self.ledger = ledger
        self.signers: dict[str, Any] = {agent: HomeSigner(ledger, agent) for agent in self.signers}
        profile = self.initial.payload["profile"]
        payload = {**self.initial.payload, "participants": [self.participant(agent) for agent in self.agents]}
        joins = tuple(self.join(agent, role, profile=profile) for agent, role in self.agents.items())
        self.initial = self.initial._replace(payload=payload, statements=joins)
        self.workspace = workspace
        self.chain = self.place.chain
        self.data: dict[str, Blob] = {}
        self.keep(INPUT, "application/json")
        self.keep(b"3 passed", "text/plain")

    def keep(self, data: bytes, media: str = "application/octet-stream") -> str:
        """Make an artifact known, so that an event can bring it."""
        blob = Blob(data, media)
        self.data[blob.digest] = blob
        return blob.digest

    def seal(self, event: Event, *, after: str | None = None, by: SeedSigner | None = None) -> Event:
        signer = by or self.signers[event.agent]
        event = event._replace(before=self.fold.state, after=after or self.fold.next_state(event))
        blobs = [self.data[digest] for digest, _ in blob_references(event.payload)]
        used = getattr(signer, "for_append", signer)
        record = self.ledger.append(self.chain, build_event_draft(event), signer=used, blobs=blobs)
        self.records.append(record)
        block = record.content["context"]["environment"]["aver"]
        return event._replace(
            sequence=record.sequence,
            hash=record.hash,
            previous=record.previous_hash or "",
            at=block["at"],
            signer=signer.fingerprint,
        )

    def force(
        self,
        agent: str,
        name: str,
        payload: Mapping[str, Any],
        *,
        after: str | None = None,
        by: SeedSigner | None = None,
        role: str | None = None,
        statements: Any = (),
        **refs: str,
    ) -> Event:
        """Seal an event that no session would. The fold does not go on by it."""
        event = self.draft(agent, name, {"v": 1, **payload}, refs, role=role, statements=tuple(statements))
        return self.seal(event, after=after or self.fold.state, by=by)

    def decide(self, intent: str, **more: Any) -> str:
        """Have the gate decide about a call, and return the id of its decision."""
        action = Action(
            **{
                "type": "file_read",
                "tool": "Read",
                "arguments": {"file_path": "tests.txt"},
                "session": self.fold.trace,
                "workspace": str(self.workspace),
                "caller": "agent:executor",
                "call_id": intent,
                **more,
            }
        )
        return ask(self.ledger, action).record.id

    def start(self, intent: str, **refs: str) -> Event:
        given = self.find_input(intent)
        self.keep(given.data, given.media)
        return super().start(intent, **{"decision": refs.pop("decision", None) or self.decide(intent), **refs})

    def audit(self, status: str | None = None, *, lie: Lie | None = None) -> Event:
        """Audit the trace honestly, or with a report and a status of the auditor's own choice."""
        start = self.say("agent:auditor", "verification_run_started", {"profile": self.fold.profile})
        report = report_trace(self.ledger, self.fold.trace).report
        data, said_status = report.data, status or report.status
        if lie is not None:
            content = dict(report.content)
            lied = lie(content)
            data = lied if isinstance(lied, bytes) else canonical_json(content)
        self.keep(data, "application/json")
        blob = Blob(data, "application/json")
        head = SeenHead(start.sequence + 1, start.hash)
        said = SignedReport(self.place, head, self.fold.profile, said_status, blob.digest)
        payload = {
            "v": 1,
            "status": said_status,
            "report": blob.reference,
            "head": head.to_dict(),
            "keys": split_known(sorted(self.fold.bound_keys)),
        }
        statement = sign_report(self.signers["agent:auditor"], said)
        refs = {"start": start.id}
        return self.admit(
            self.draft("agent:auditor", "verification_run_completed", payload, refs, statements=(statement,))
        )

    def finish(self) -> Event:
        """Go from nothing to the end of an honest audit."""
        self.claim(self.reach_claiming())
        self.conclude()
        return self.audit()

    def verify(self, **more: Any) -> Verdict:
        """The verdict on the trace alone."""
        return verify(self.chain, ledger=self.ledger, **more)

    def verify_ledger(self) -> Verdict:
        return verify(ledger=self.ledger)
