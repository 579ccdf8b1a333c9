"""The past of a session, as far as its next decision must know it.

    labels          what the session may have seen; `secret` once that may have been one
    changed         what it has changed since a person last approved one of its changes, counted as `risk.features` does
    changed_files   the source files of those changes

Each decision's record carries this state as it is after the decision, so the next decision reads one record, however
long the session is. A decision that was refused without being judged carries none; then the one before it counts. A
person who approves a change looks at it, so the counting begins anew there. Between two looks, a session gets through
no more than risk would pass at once, in however many pieces.

Three counts come from the newest records: how often the same action was denied, what was tried within the last minute,
and how the tool has fared. `session_memory` keeps them between two decisions, so that these records need not be
verified each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from aver import log
from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, IntegrityError
from aver.gate.action import Action, Facts
from aver.gate.decision import Decision
from aver.gate.decision_record import DECISION_KIND, REFUSING_DECISIONS, RecordedDecision
from aver.gate.risk.features import Features, MeasuredChange
from aver.gate.session_memory import (
    PastCall,
    PastDecision,
    SessionMemory,
    load_memory,
    require_valid_records,
    save_memory,
)
from aver.ledger import Head, Ledger

SECRET_LABEL = "secret"  # noqa: S105 - a label, not one
"""The label of a session that may have seen a secret. A session never loses it."""

FILES_MAX = 1000
"""Source files of a session that are kept by name. A session that changes more counts as unclear."""

LOOK_BACK = 50
"""Newest records of a session's decisions that count for denials and rates; each was verified."""

USES_MAX = 200
"""Newest records that count for a tool's uses. A decision reads no more than so many at once."""

MINUTE = timedelta(minutes=1)
USES_SPAN = timedelta(minutes=30)
"""How far back a tool's uses count."""

EMPTY_SESSION: Mapping[str, Any] = {"labels": [], "changed": {}, "changed_files": []}
"""The state of a session that has done nothing."""


def next_session_state(facts: Facts, decision: Decision) -> dict[str, Any] | None:
    """Return what the session's next decision must know, given this one. What may still happen counts as done.

    None where the action was refused without being judged: then the state before it holds.
    """
    if decision.policy is None:
        return None
    labels = set(facts.labels)
    if (
        decision.decision not in REFUSING_DECISIONS
        and decision.effects is not None
        and SECRET_LABEL in decision.effects.classes
    ):
        labels.add(SECRET_LABEL)
    changed = MeasuredChange(Features.from_dict(facts.changed), facts.changed_files)
    own = None if decision.estimate is None else decision.estimate.change
    if own is not None and decision.decision == "human_approved":  # A person has looked: counting begins anew.
        changed = MeasuredChange(Features(), ())
    elif own is not None and decision.decision == "pass":
        changed = own.plus(changed)
        if len(changed.sources) > FILES_MAX:
            changed = MeasuredChange(changed.features.plus(Features(unclear=1)), changed.sources[:FILES_MAX])
    return {
        "labels": sorted(labels),
        "changed": changed.features.to_dict() if changed.features != Features() else {},
        "changed_files": list(changed.sources),
    }


def load_session_facts(ledger: Ledger, head: Head, action: Action, now: str) -> Facts:
    """Gather the facts about a session whose decisions end at `head`.

    Actions that belong to no session have no past. Raises `IntegrityError` if a record of the past is damaged.
    """
    if not action.session:
        return Facts(now=now)
    at = datetime.fromisoformat(now)
    since, calls_since = (at - MINUTE).isoformat(), (at - USES_SPAN).isoformat()
    # The memory saves time and is no evidence: the records since then are read and verified, and win.
    memory = load_memory(ledger, head)
    if action.tool:
        memory = _read_new_calls(ledger, memory, action.session, calls_since, decisions=head.chain)
    try:
        memory, state = _read_new_decisions(ledger, head, memory)
    except (AttributeError, BadInput, KeyError, TypeError, ValueError) as error:
        words = f"the session's past cannot be understood: a decision in {head.chain} has not the form of one"
        raise IntegrityError("SCHEMA_INVALID", words, advice="run: aver verify") from error
    save_memory(ledger, head.chain, memory)
    digest = action.digest if memory.decisions else ""  # An action without a digest is for `decide` to refuse.
    # Rules limit rates by `recent`, which counts the last minute.
    late = [past for past in memory.decisions if past.now >= since]
    calls = [call for call in memory.calls if call.tool == action.tool and call.at >= calls_since]
    return Facts(
        now=now,
        labels=frozenset(state["labels"]),
        changed=state["changed"],
        changed_files=tuple(state["changed_files"]),
        denials=sum(past.digest == digest and past.refused for past in memory.decisions),
        recent=dict(Counter(effect for past in late for effect in past.effects)),
        failures=sum(call.failed for call in calls),
        uses=len(calls),
    )


# --- decisions


def _read_new_decisions(ledger: Ledger, head: Head, memory: SessionMemory) -> tuple[SessionMemory, Mapping[str, Any]]:
    """Verify the records since the last decision. Returns the memory up to `head`, and the session's state there."""
    # The newest record that was verified before is read again: the memory counts only if it is still that one.
    start = memory.count - 1 if memory.count > 0 and head.count - memory.count < LOOK_BACK else None
    records = [] if start is None else _read_verified(ledger, head.chain, start, head.count)
    if start is None or records[0].hash != memory.hash:
        log.debug("gate", "the past of %s is read from its records", head.chain)
        memory = replace(memory, count=0, hash=None, state_at=None, decisions=())
        start = max(0, head.count - LOOK_BACK)
        records = _read_verified(ledger, head.chain, start, head.count)
    decisions, state_at, state = list(memory.decisions), memory.state_at, None
    for sequence, decision in _read_decisions(start, records):
        if sequence >= memory.count:
            effects, at = tuple(decision.result["effects"] or ()), decision.result["facts"]["now"]
            decisions.append(PastDecision(sequence, decision.digest, decision.refuses, at, effects))
        if decision.result["session"] is not None:
            state_at, state = sequence, decision.result["session"]
    # None of these records holds a state: each was refused without being judged, or is an outcome.
    if state is None and memory.count == 0:
        state_at, state = _find_state(ledger, head.chain, start)
    elif state is None and state_at is not None:  # It is further back: read the signed record that holds it.
        _, state = _find_state(ledger, head.chain, state_at + 1, look_back=1)
    kept = tuple(past for past in decisions if past.sequence >= head.count - LOOK_BACK)
    memory = replace(memory, count=head.count, hash=head.hash, state_at=state_at, decisions=kept)
    return memory, EMPTY_SESSION if state is None else state


def _find_state(
    ledger: Ledger, chain: str, stop: int, *, look_back: int = LOOK_BACK
) -> tuple[int | None, Mapping[str, Any] | None]:
    """Return the newest state before a record, after the number of the record that holds it; None for none."""
    while stop > 0:
        start = max(0, stop - look_back)
        found = list(_read_decisions(start, _read_verified(ledger, chain, start, stop)))
        for sequence, decision in reversed(found):
            if decision.result["session"] is not None:
                return sequence, decision.result["session"]
        stop = start
    return None, None


def _read_decisions(start: int, records: list[Sealed]) -> Iterator[tuple[int, RecordedDecision]]:
    """Read the decisions among records of which the first has the number `start`. Others, such as outcomes, are not."""
    for sequence, record in enumerate(records, start):
        content = record.to_dict()
        if read_kind(content) == DECISION_KIND:
            yield sequence, RecordedDecision.from_record(record, content)


def _read_verified(ledger: Ledger, chain: str, start: int, stop: int) -> list[Sealed]:
    """Read records and verify each: a session's past is evidence. Raises `IntegrityError`."""
    if start >= stop:
        return []
    records = list(ledger.read(chain, start, stop))
    # A record that is missing would hide what the session did: that refuses, as a damaged one does.
    try:
        require_valid_records(ledger, chain, start, records)
        if len(records) != stop - start:
            raise IntegrityError("SEQUENCE_GAP", f"records of {chain} are missing")
    except IntegrityError as error:
        words = f"the session's past cannot be trusted: {error.message}"
        raise IntegrityError(error.code, words, advice="run: aver verify") from error
    return records


# --- uses of tools


def _read_new_calls(
    ledger: Ledger, memory: SessionMemory, session: str, since: str, *, decisions: str
) -> SessionMemory:
    """Add the tool calls that were recorded since. Records in the chain of the decisions are none."""
    row, calls = memory.row, list(memory.calls)
    for row, record in ledger.find_newer(memory.row, session=session, since=since, limit=USES_MAX):  # noqa: B007
        if record.chain == decisions:
            continue
        try:
            made = record.to_dict()["execution"]["tool_calls"]
            calls += [PastCall(record.signed_at, str(call["tool"]), call["success"] is False) for call in made]
        except (AverError, KeyError, TypeError):
            continue  # Not a record of tool calls.
    kept = tuple(call for call in calls if call.at >= since)[-USES_MAX:]
    return replace(memory, row=row, calls=kept)
