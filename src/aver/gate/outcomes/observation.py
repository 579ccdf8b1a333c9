"""A report on decisions in the mode `observe`: the calls that the gate would have held back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.gate.decision_record import DECISION_KIND, DOMAIN, RecordedDecision
from aver.gate.own_records import OwnRecords
from aver.ledger import Ledger

CALLS_MAX = 1000
"""Calls that a report lists, the newest first. All are counted."""


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A call that the gate would have denied, or asked a person about."""

    at: str
    decision: str
    what: str
    """The tool, and its command or first text."""
    session: str
    agent: str
    reasons: tuple[str, ...]
    rules: tuple[str, ...]

    @property
    def is_denial(self) -> bool:
        return self.decision in ("skip", "skipped")

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "decision": self.decision,
            "what": self.what,
            "session": self.session,
            "agent": self.agent,
            "reasons": list(self.reasons),
            "rules": list(self.rules),
        }


@dataclass(frozen=True, slots=True)
class ObservedReport:
    """The decisions of a ledger that held nothing back."""

    observed: int
    denied: int
    asked: int
    rules: tuple[tuple[str, int], ...]
    """The rules that would have stopped calls, with how many each, the most frequent first."""
    calls: tuple[ObservedCall, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "observed": self.observed,
            "would_be_denied": self.denied,
            "would_be_asked": self.asked,
            "rules": dict(self.rules),
            "calls": [call.to_dict() for call in self.calls],
        }


def report_observed(ledger: Ledger, *, since: str = "") -> ObservedReport:
    """Report on the decisions that this ledger's own ring sealed in the mode `observe`, from a time on."""
    observed = 0
    stopped: list[ObservedCall] = []
    counts: Counter[str] = Counter()
    for decision in _read_own_decisions(ledger):
        if not decision.is_observed or decision.at < since:
            continue
        observed += 1
        if not decision.allows:
            counts.update(decision.rules or ("no rule",))
            stopped.append(_read_call(decision))
    stopped.sort(key=lambda call: call.at, reverse=True)
    denied = sum(call.is_denial for call in stopped)
    rules = tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
    return ObservedReport(observed, denied, len(stopped) - denied, rules, tuple(stopped[:CALLS_MAX]))


def _read_own_decisions(ledger: Ledger) -> Iterator[RecordedDecision]:
    own = OwnRecords(ledger)
    for chain in ledger.chains():
        if not chain.startswith(f"{DOMAIN}.") or own.is_imported(chain):
            continue
        yield from filter(None, (_read_decision(own, record) for record in ledger.read(chain)))


def _read_decision(own: OwnRecords, record: Sealed) -> RecordedDecision | None:
    """Read a decision; None for another record, and for one that does not hold: `aver verify` reports that."""
    if record.kind != DECISION_KIND:
        return None
    try:
        return RecordedDecision.from_record(own.require(record))
    except AverError:
        return None


def _read_call(decision: RecordedDecision) -> ObservedCall:
    arguments, action = decision.arguments, decision.action
    named = next((arguments[name] for name in ("command", "file_path", "path", "url") if name in arguments), "")
    subject = named if isinstance(named, str) else ""
    return ObservedCall(
        at=decision.at,
        decision=decision.decision,
        what=f"{decision.tool}: {subject}" if subject else decision.tool,
        session=str(action.get("session") or ""),
        agent=str(action.get("caller") or ""),
        reasons=decision.shown_reasons,
        rules=decision.rules,
    )
