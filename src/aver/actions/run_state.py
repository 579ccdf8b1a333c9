"""A run as the ledger has it, read from its chain and held to its seals on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aver.actions.action import AgentAction
from aver.actions.encodings import action_line, receipt_hash
from aver.actions.run_capsules import ACTION_KIND, OPEN_KIND, SEAL_KIND, GateReference, load_action, read_sealed_action
from aver.actions.run_directory import RunIdentity
from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError
from aver.ledger import Head, Ledger
from aver.verdict import ChainJudge, Rules

__all__ = ["RecordedRun"]


class RecordedRun:
    """The actions of a run, in order, as far as they were read. `catch_up` reads what came since."""

    def __init__(self, ledger: Ledger, identity: RunIdentity) -> None:
        self.identity = identity
        self.actions: list[AgentAction] = []
        self.ids: set[str] = set()
        self.marks: dict[str, GateReference] = {}
        """The decisions that actions were done under, by their gate id; of several uses the first."""
        self.last_receipt: str | None = None
        self.seal_record: Sealed | None = None
        self.head = Head(ledger.id, ledger.tenant, identity.chain, 0, None)
        self._ledger = ledger
        self.catch_up()

    def catch_up(self) -> None:
        """Read on to the end of the chain. `IntegrityError` where a record does not hold."""
        before, head = self.head, self._ledger.head(self.head.chain)
        if head == before:
            return
        if head.count < before.count:
            raise self._integrity_error("ROLLBACK", f"has {head.count} records; it had {before.count}", None)
        judge = ChainJudge(
            Rules(self._ledger.keys.ring()),
            chain=head.chain,
            start=before.count,
            previous=before.hash,
            identity={"name": head.chain, "ledger": head.ledger, "tenant": head.tenant},
            needs_block=True,
        )
        read = before.count
        for record in self._ledger.read(head.chain, before.count, head.count):
            content = judge.judge(record)
            found = next((one for one in judge.tally.findings if one.status == "failed"), None)
            if found is not None or content is None:
                raise self._integrity_error(found.code if found else "SCHEMA_INVALID", str(found), record)
            self._read_record(record, content)
            read += 1
        if read != head.count or (read and head.hash != self.head.hash):
            raise self._integrity_error("SEQUENCE_GAP", f"has {read} of {head.count} records", None)

    def lines_from(self, start: int) -> Iterator[bytes]:
        """The lines of the actions from a place on, each with its line feed."""
        for action in self.actions[start:]:
            yield action_line(action) + b"\n"

    def add_action(self, action: AgentAction, receipt: str, mark: GateReference | None, record: Sealed) -> None:
        """Note an action that was sealed here right after the head."""
        self.actions.append(action)
        self.ids.add(action.action_id)
        if mark is not None:
            self.marks.setdefault(mark.gate_id, mark)
        self.last_receipt = receipt
        self._advance(record)

    def add_seal(self, record: Sealed) -> None:
        """Note the seal that was put here right after the head."""
        self.seal_record = record
        self._advance(record)

    def _read_record(self, record: Sealed, content: dict[str, Any]) -> None:
        kind = read_kind(content)
        at = self.head.count
        try:
            if self.seal_record is not None:
                raise BadInput("something follows the run's seal")
            if kind == ACTION_KIND and at > 0:
                sealed = read_sealed_action(content)
                action = load_action(sealed, self._ledger.blob)
                if sealed.receipt_hash != receipt_hash(action) or action.parent_receipt_hash != self.last_receipt:
                    raise BadInput("its receipt is not that of the action, or its parent not the action before")
                self.add_action(action, sealed.receipt_hash, sealed.gate, record)
            elif kind == SEAL_KIND and at > 0:
                self.add_seal(record)
            elif kind == OPEN_KIND and at == 0:
                self._advance(record)
            else:
                raise BadInput(f"a {kind} does not belong there")
        except BadInput as error:
            raise self._integrity_error("RECEIPT_MISMATCH", f"record {at}: {error.message}", record) from error

    def _advance(self, record: Sealed) -> None:
        head = self.head
        self.head = Head(head.ledger, head.tenant, head.chain, head.count + 1, record.hash)

    def _integrity_error(self, code: str, words: str, record: Sealed | None) -> IntegrityError:
        return IntegrityError(code, f"chain {self.head.chain}: {words}", evidence=record, advice="run: aver verify")
