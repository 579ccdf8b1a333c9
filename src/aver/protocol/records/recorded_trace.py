"""A trace as it is in a ledger: read on from the last known head, verified record by record, and folded.

Every record counts only if

1. its stored bytes have their hash, link to the record before, and name this chain (`aver.verdict.ChainJudge`);
2. the key that the trace binds its agent to has signed it: for the first record a key that this home knows. A key of
   this home that was retired counts up to the head that the `keys` chain records;
3. it is an event, in the form of its schema, and the fold admits it.

`RecordedTrace` raises `IntegrityError` at the first record that does not count. It refuses a history that lacks a head
which it has seen itself, or which this home remembers from before (`aver.protocol.records.trace_files`).
"""

from __future__ import annotations

from collections.abc import Mapping

from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError
from aver.gate.own_records import read_key_history
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.ledger import Head, Ledger
from aver.protocol.events import OPERATOR, Event, read_event, trace_chain
from aver.protocol.rules.participants import check_own_succession
from aver.protocol.rules.step import EventRefused
from aver.protocol.statements import SeenHead, TracePlace
from aver.protocol.trace import ProtocolTrace
from aver.verdict import ChainJudge, Rules
from aver.verdict.chain import Retirement

_SIGNATURE_CHECKS = frozenset({"signature", "signature_pq"})


class RecordedTrace:
    """The fold of a trace's records, and its events in order. `catch_up` reads on."""

    def __init__(self, ledger: Ledger, trace: str) -> None:
        self.ledger = ledger
        self.chain = trace_chain(trace)
        self.fold = ProtocolTrace(TracePlace(ledger.id, ledger.tenant, self.chain), trace)
        self.events: list[Event] = []
        self._judge: ChainJudge | None = None
        self._judged_keys = 0
        """How many keys the trace bound when the judge was made."""

    @property
    def head(self) -> Head:
        """The head up to which the trace was read."""
        last = self.fold.head
        count, digest = (0, None) if last is None else (last.count, last.hash)
        return Head(self.ledger.id, self.ledger.tenant, self.chain, count, digest)

    def catch_up(self, remembered: SeenHead | None = None) -> None:
        """Read the records that were appended since. Raises `IntegrityError` at the first that does not count.

        `remembered` is a head that the chain must have.
        """
        head = self.ledger.head(self.chain)
        known = self.head
        if head.count < known.count or (head.count == known.count and head.hash != known.hash):
            raise _build_rollback(self.chain, SeenHead(known.count, str(known.hash)))
        if head.count > known.count:
            for record in self.ledger.read(self.chain, known.count, head.count):
                self._take(record)
            if self.head != head:
                words = f"chain {self.chain}: its head row says {head.count} records, and {self.fold.count} are there"
                raise IntegrityError("COLUMN_MISMATCH", words, advice="run: aver verify")
        if remembered is not None and not self.fold.has_head(remembered):
            raise _build_rollback(self.chain, remembered)

    def add(self, event: Event, record: Sealed, key: PublicKey | None = None) -> Event:
        """Go on by an event that this process has just sealed. `key` is the operator's, for the first event."""
        sealed = event._replace(
            sequence=self.fold.count,
            hash=record.hash,
            previous=self.events[-1].hash if self.events else "",
            at=record.signed_at,
            signer=record.signed_by,
        )
        self.fold.admit(sealed)
        if key is not None:
            self.fold.set_operator_key(key, sealed)
        self.events.append(sealed)
        self._judge = None  # It has not seen this record.
        return sealed

    def _take(self, record: Sealed) -> None:
        fold = self.fold
        # A judge checks by the keys that the trace bound before this record. So a new key gets a new judge.
        joining = _find_joining_operator(record)
        if self._judge is None or joining is not None or self._judged_keys != len(fold.bound_keys):
            self._judge, self._judged_keys = self._build_judge(joining), len(fold.bound_keys)
        place = f"chain {self.chain}, sequence {fold.count}"
        judge = self._judge
        before = len(judge.tally.findings)
        content = judge.judge(record)
        if content is not None:
            record.keep_content(content)
        for found in judge.tally.findings[before:]:
            # A signature that was not checked, or of which a half is missing, is as bad as a wrong one here.
            if found.status == "failed" or found.check in _SIGNATURE_CHECKS:
                advice = "aver keys trust makes a key known" if found.code == "UNKNOWN_SIGNER" else "run: aver verify"
                raise IntegrityError(found.code, f"{found.place}: {found.words}", evidence=found, advice=advice)
        try:
            event = read_event(record)
            if event.name == "participant_joined":  # Only then is the ring needed, which is read from a file.
                check_own_succession(fold, event, self.ledger.keys.ring())
            fold.admit(event)
            if fold.count == 1:
                if judge.signer is None:
                    raise EventRefused("UNKNOWN_SIGNER", "the key that sealed the first event is not known here")
                entry = self.ledger.keys.ring().entry_of(judge.signer)
                if entry is not None and not entry.role.may_attest:
                    words = f"a trace is opened by the ledger's key, and this is the key of {entry.role}"
                    raise EventRefused("ROLE_POLICY_VIOLATION", words)
                fold.set_operator_key(judge.signer, event)
        except EventRefused as error:
            raise IntegrityError(error.code, f"{place}: {error.message}", advice="run: aver verify") from error
        except BadInput as error:
            raise IntegrityError("SCHEMA_INVALID", f"{place}: {error.message}", advice="run: aver verify") from error
        self.events.append(event)

    def _build_judge(self, joining: PublicKey | None) -> ChainJudge:
        fold = self.fold
        # The first record is checked by the keys of this home. It binds the keys of all others.
        keys = fold.keys if joining is None else (*fold.keys, joining)
        ring = Ring.pin(keys) if fold.count else self.ledger.keys.ring()
        identity = {"name": self.chain, "ledger": self.ledger.id, "tenant": self.ledger.tenant}
        previous = None if fold.head is None else fold.head.hash
        return ChainJudge(
            Rules(ring, retired=self._find_retirements()),
            chain=self.chain,
            start=fold.count,
            previous=previous,
            identity=identity,
            needs_block=True,
        )

    def _find_retirements(self) -> Mapping[str, Retirement]:
        """Return how far retired keys of this home count. So the holder of an old key adds nothing to a trace."""
        own = self.ledger.keys.ring()
        entries = (own.entry(key.fingerprint) for key in self.fold.keys)
        if all(entry is None or entry.retired_at is None for entry in entries):
            return {}
        return read_key_history(self.ledger, own).retired


def _find_joining_operator(record: Sealed) -> PublicKey | None:
    """Return the key by which a successor of the operator joins; None for every other record.

    The old key is gone after a rotation, so the new one seals its own join. The fold checks the rotation statement.
    """
    try:
        if record.kind != "protocol.participant_joined":
            return None
        joining = record.content["outcome"]["result"]["participant"]
        return PublicKey(joining["public_key"], joining["public_key_pq"]) if joining["role"] == OPERATOR else None
    except (AverError, KeyError, TypeError):
        return None


def _build_rollback(chain: str, seen: SeenHead) -> IntegrityError:
    words = (
        f"chain {chain}, sequence {seen.count - 1}: this history lacks the record {seen.hash[:16]}, seen here before"
    )
    return IntegrityError("ROLLBACK", words, evidence=seen, advice="show both histories to the other participants")
