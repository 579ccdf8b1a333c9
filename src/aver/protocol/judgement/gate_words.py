"""The gate's decisions about the calls of a trace, as an audit reads them.

A trace's decisions are in the chain `gate.<trace>`. An execution names its decision by id. Executions follow their
decisions in time, so the chain is read once, and only as far as it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.gate.decision_record import DECISION_KIND, RecordedDecision, decision_chain
from aver.log import debug
from aver.protocol.bounds import derive_risk
from aver.protocol.judgement.trace_facts import GateWord
from aver.verdict.examiner import EvidenceReader


class GateWords:
    """Finds the decisions about one trace by their ids."""

    def __init__(self, reader: EvidenceReader, trace: str) -> None:
        self._records = self._read(reader, decision_chain(trace))
        self._known: dict[str, GateWord] = {}
        self.are_here = True
        """Whether there is a chain of decisions at all."""

    def find(self, record_id: str) -> GateWord | None:
        """Return the decision with this id; None where there is none that can be read."""
        found = self._known.get(record_id)
        if found is not None:
            return found
        for record in self._records:
            word = read_gate_word(record)
            if word is not None:
                self._known[word.id] = word
                if word.id == record_id:
                    return word
        return None

    def _read(self, reader: EvidenceReader, chain: str) -> Iterator[Sealed]:
        try:
            yield from reader.read(chain)
        except NotFound:
            self.are_here = False


def read_gate_word(record: Sealed) -> GateWord | None:
    """Read a decision; None if the record is something else, or not whole."""
    try:
        content = record.content
        if read_kind(content) != DECISION_KIND:
            return None
        decision = RecordedDecision.from_record(record, content)
    except (BadInput, AttributeError, KeyError, TypeError, ValueError) as error:
        debug("protocol", "a record of decisions cannot be read: %r", error)
        return None
    return GateWord(
        id=decision.record_id,
        call_id=decision.call_id,
        # The protocol always enforces: a decision that held nothing back allows nothing here.
        allows=decision.enforces,
        risk=derive_risk(decision.result.get("effects")),
        signed_by=decision.signed_by,
        digest=record.hash,
        signature=record.signature or "",
    )
