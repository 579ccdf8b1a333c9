"""The decisions of a session, for an examiner that goes through the acts of the same session.

Decisions and acts are in two chains, `gate.<session>` and `gateway.<session>`, in the order of time. The examiner asks
for decisions by their ids, in about that order. So the chain of decisions is read once, and only as far as needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.gate.approvals.verify import find_foreign_seal
from aver.gate.decision_record import DECISION_KIND, decision_chain
from aver.gate.examiners import has_chain
from aver.gateway.judgement.recorded_act import GatedDecision, read_gated_decision
from aver.verdict import Examination

DECISIONS_KEPT = 20_000
"""Decisions that are kept for acts still to come. Each takes about 1 kB."""

BLOBS_KEPT = 8
BLOB_KEPT_MAX = 256 * 1024
"""Blobs of decisions that are kept, and the largest of them in bytes."""

LOOK_BACK = 200
"""Records before the first new one that are read along, for acts that were decided then."""


class SessionDecisions:
    """Finds decisions about acts of one session. Decisions that our own ring has not sealed count for nothing."""

    def __init__(self, examination: Examination, session: str) -> None:
        self._reader = examination.reader
        self._ring = examination.rules.ring if examination.is_own else None
        self._chain = decision_chain(session)
        self.are_here = examination.is_complete or has_chain(self._reader, self._chain)
        """Whether the chain of decisions is here, or would have to be."""
        self.has_forgotten = False
        """Whether decisions were too many to keep."""
        self._known: dict[str, GatedDecision] = {}
        self._blobs: dict[str, bytes] = {}
        starts = [chain.start for chain in examination.chains if chain.origin == self._chain and not chain.is_excerpt]
        self._begin = max(0, min(starts, default=0) - LOOK_BACK)
        self._records = self._read(self._begin, None)

    def find(self, record_id: str) -> GatedDecision | None:
        """Return the decision with this id; None where there is none."""
        if not record_id:
            return None
        found = self._known.get(record_id) or self._advance(record_id)
        if found is None and self._begin > 0:
            # It may be older than the records that were verified last time.
            self._records, self._begin = self._read(0, self._begin), 0
            found = self._advance(record_id)
        return found

    def _advance(self, record_id: str) -> GatedDecision | None:
        for record in self._records:
            try:
                content = record.to_dict()
                if read_kind(content) != DECISION_KIND or self._is_foreign(record):
                    continue
                decision = read_gated_decision(content, self._fetch_blob)
            except (NotFound, Unavailable):
                raise
            except (AverError, AttributeError, KeyError, TypeError, ValueError):
                continue  # The check of decisions reports it.
            if decision is None:
                continue
            self._known[decision.record_id] = decision
            if len(self._known) > DECISIONS_KEPT:
                del self._known[next(iter(self._known))]
                self.has_forgotten = True
            if decision.record_id == record_id:
                return decision
        return None

    def _fetch_blob(self, digest: str) -> bytes:
        """Return the bytes of a blob. The last ones are kept: decisions of a session share the state of the model."""
        found = self._blobs.get(digest)
        if found is None:
            found = self._reader.blob(digest)
            if hashlib.sha256(found).hexdigest() != digest:
                raise BadInput(f"the blob {digest} has other bytes")
            if len(self._blobs) >= BLOBS_KEPT:
                del self._blobs[next(iter(self._blobs))]
            if len(found) <= BLOB_KEPT_MAX:
                self._blobs[digest] = found
        return found

    def _is_foreign(self, record: Sealed) -> bool:
        foreign = None if self._ring is None else find_foreign_seal(record, self._ring)
        return foreign is not None and foreign[0] == "failed"

    def _read(self, start: int, stop: int | None) -> Iterator[Sealed]:
        try:
            yield from self._reader.read(self._chain, start, stop)
        except NotFound:
            return
