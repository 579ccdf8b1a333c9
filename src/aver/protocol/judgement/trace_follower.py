"""Following a trace while the verifier judges its records, so that each record is read and parsed once.

A `TraceFollower` folds the records up to the end of the audit. The examiner goes on from there: it makes the report
again before that event is admitted. A record that the follower cannot take ends it; then the examiner reads the trace
from its beginning, and reports what is wrong.
"""

from __future__ import annotations

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
    """Folds a trace record by record. `judge` has taken `judge.count` of them; None if it could not go on."""

    def __init__(self, rules: Rules, ledger: str, tenant: str, chain: str) -> None:
        place = TracePlace(ledger, tenant, chain)
        self.judge: TraceJudge | None = TraceJudge(place, chain.partition(".")[2], rules.ring, roles=rules.roles)
        self.rulings: list[tuple[Event, str]] = []
        """The rulings of people, each with the digest of its dispute as it stood before."""
        self._is_done = False

    def take(self, record: Sealed) -> None:
        if self._is_done or self.judge is None:
            return
        try:
            event = self.judge.read(record)
            if event is None or event.name == "verification_run_completed":
                self._is_done = True
                return
            dispute = find_dispute(self.judge.trace, event)
            if not self.judge.admit(event):
                self._is_done = True
            elif dispute is not None:
                self.rulings.append((event, dispute))
        except Exception as error:  # A hostile record must not end the verification.
            if (fault := find_machine_fault(error)) is not None:
                raise fault from error
            debug("protocol", "record %d of the trace cannot be followed: %r", self.judge.count, error)
            self.judge = None


def find_dispute(trace: ProtocolTrace, event: Event) -> str | None:
    """The digest of the dispute that a person is said to rule on, as it stands before the ruling; None if none."""
    challenge = trace.challenges.get(event.refs.get("challenge", ""))
    if event.name != "challenge_resolved" or event.role != OPERATOR or challenge is None:
        return None
    return dispute_action(trace, challenge).digest
