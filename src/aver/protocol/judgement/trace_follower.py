"""Following a trace while the verifier judges its records, so that each record is read and parsed once.

A `TraceFollower` folds the records up to the end of the audit. The examiner goes on from there: it makes the report
again before that event is admitted. A record that the follower cannot take ends it; then the examiner reads the trace
from its beginning, and reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.capsule.sealed import Sealed
from aver.errors import find_machine_fault
from aver.log import debug
from aver.protocol.events import OPERATOR, Event
from aver.protocol.judgement.trace_judge import TraceJudge
from aver.protocol.rules.claims import dispute_action
from aver.protocol.statements import TracePlace
from aver.protocol.trace import ProtocolTrace
from aver.verdict import Rules


class TraceFollower:
    """Folds a trace record by record."""

    def __init__(self, rules: Rules, ledger: str, tenant: str, chain: str) -> None:
        place = TracePlace(ledger, tenant, chain)
        self._judge: TraceJudge | None = TraceJudge(place, chain.partition(".")[2], rules.ring, roles=rules.roles)
        self._rulings: list[tuple[Event, str]] = []
        self._is_done = False

    @property
    def judge(self) -> TraceJudge | None:
        """The judge that has taken `judge.count` records of those given; None if it could not go on."""
        return self._judge

    @property
    def rulings(self) -> list[tuple[Event, str]]:
        """The rulings of people, each with the digest of its dispute as it stood before."""
        return self._rulings

    def take(self, records: Sequence[Sealed]) -> None:
        """Fold the next records, up to the end of the audit or the first that does not hold."""
        if self._is_done or self._judge is None:
            return
        try:
            self._is_done = not all(self._go_on(self._judge, record) for record in records)
        except Exception as error:  # A hostile record must not end the verification.
            if (fault := find_machine_fault(error)) is not None:
                raise fault from error
            debug("protocol", "record %d of the trace cannot be followed: %r", self._judge.count, error)
            self._judge = None

    def _go_on(self, judge: TraceJudge, record: Sealed) -> bool:
        """Take one record. Returns whether the next one is to be taken too."""
        event = judge.read(record)
        if event is None or event.name == "verification_run_completed":
            return False
        dispute = find_dispute(judge.trace, event)
        if not judge.admit(event):
            return False
        if dispute is not None:
            self._rulings.append((event, dispute))
        return True


def find_dispute(trace: ProtocolTrace, event: Event) -> str | None:
    """The digest of the dispute that a person is said to rule on, as it stands before the ruling; None if none."""
    if event.name != "challenge_resolved" or event.role != OPERATOR:
        return None
    challenge = trace.challenges.get(event.refs["challenge"])
    return None if challenge is None else dispute_action(trace, challenge).digest
