"""What a session has done so far, as far as the next decision must know it.

    labels          what it has come into touch with; `secret` once it may have seen one
    changed         what it has changed since a human last approved one of its changes, counted as `risk.features` does
    changed_files   the source files of those changes

Each decision's record carries all of this as it stands after it, so that the next decision reads one record, however
long the session is; one that was refused without being judged carries nothing, and the one before it counts. A human
who approves a change looks at it: from there the counting begins anew. So at most as much as risk would pass at once
goes through unseen between two looks, in however many pieces.

How often the very same action was denied, what else was tried within the last minute, and how the tool has fared are
read from the newest records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from aver.capsule.aver_block import read_kind
from aver.errors import AverError, IntegrityError
from aver.gate.action import Action, Facts
from aver.gate.decision import Decision
from aver.gate.risk.features import Features, MeasuredChange
from aver.gate.verified_records import require_valid_records
from aver.ledger import Head, Ledger

__all__ = ["EMPTY_SESSION", "SECRET_LABEL", "load_session_facts", "next_session_state", "read_session_state"]

SECRET_LABEL = "secret"  # noqa: S105 - a label, not one
"""The label of a session that may have seen a secret. It stays."""

FILES_MAX = 1000
"""Source files of a session that are kept by name. One that changes more is unclear from there on."""

LOOK_BACK = 50
"""Newest decisions that are looked at for denials and rates; each is verified."""

USES_MAX = 200
"""Records that are looked at for a tool's uses."""

MINUTE = timedelta(minutes=1)
USES_SPAN = timedelta(minutes=30)
"""How far back a tool's uses count."""

_DECISION_KIND = "gate.decision"
_REFUSED = ("skip", "skipped")


EMPTY_SESSION: Mapping[str, Any] = {"labels": [], "changed": {}, "changed_files": []}
"""Where a session stands that has done nothing."""


def next_session_state(facts: Facts, decision: Decision) -> dict[str, Any] | None:
    """What the session's next decision must know, given this one. What may still happen counts as if it had.

    None where the action was refused without being judged: the session stands where it stood.
    """
    if decision.policy is None:
        return None
    labels = set(facts.labels)
    if decision.decision not in _REFUSED and decision.effects is not None and SECRET_LABEL in decision.effects.classes:
        labels.add(SECRET_LABEL)
    changed = _changes_after(facts, decision)
    return {
        "labels": sorted(labels),
        "changed": changed.features.to_dict() if changed.features != Features() else {},
        "changed_files": list(changed.sources),
    }


def _changes_after(facts: Facts, decision: Decision) -> MeasuredChange:
    before = MeasuredChange(Features.from_dict(facts.changed), facts.changed_files)
    own = None if decision.estimate is None else decision.estimate.change
    if own is None or decision.decision not in ("pass", "human_approved"):
        return before
    if decision.decision == "human_approved":
        return MeasuredChange(Features(), ())
    both = own.plus(before)
    if len(both.sources) > FILES_MAX:
        return MeasuredChange(both.features.plus(Features(unclear=1)), both.sources[:FILES_MAX])
    return both


def load_session_facts(ledger: Ledger, head: Head, action: Action, now: str) -> Facts:
    """The facts about a session whose decisions end at `head`; `IntegrityError` if their record is damaged.

    Actions that belong to no session have no past: they are not each other's.
    """
    if not action.session:
        return Facts(now=now)
    failures, uses = _count_tool_failures(ledger, action, now, decisions=head.chain)
    if head.count == 0:
        return Facts(now=now, failures=failures, uses=uses)
    try:
        return _build_session_facts(ledger, head, action, now, failures=failures, uses=uses)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        words = f"the session's past cannot be understood: a decision in {head.chain} has not the form of one"
        raise IntegrityError("SCHEMA_INVALID", words, advice="run: aver verify") from error


def _build_session_facts(ledger: Ledger, head: Head, action: Action, now: str, *, failures: int, uses: int) -> Facts:
    start = max(0, head.count - LOOK_BACK)
    results = list(_read_results(ledger, head.chain, start, head.count))
    session = _last_session_state(results) or read_session_state(ledger, head.chain, start)
    digest = action.digest
    since = _time_before(now, MINUTE)
    late = [result for result in results if result["facts"]["now"] >= since]
    return Facts(
        now=now,
        labels=frozenset(session["labels"]),
        changed=session["changed"],
        changed_files=tuple(session["changed_files"]),
        denials=sum(result["digest"] == digest and result["decision"] in _REFUSED for result in results),
        recent=dict(Counter(effect for result in late for effect in result["effects"] or ())),
        failures=failures,
        uses=uses,
    )


def read_session_state(ledger: Ledger, chain: str, stop: int) -> Mapping[str, Any]:
    """Where the session of a chain stands before the record with this number."""
    while stop > 0:
        start = max(0, stop - LOOK_BACK)
        found = _last_session_state(list(_read_results(ledger, chain, start, stop)))
        if found is not None:
            return found
        stop = start
    return EMPTY_SESSION


def _last_session_state(results: list[dict[str, Any]]) -> Mapping[str, Any] | None:
    return next((result["session"] for result in reversed(results) if result["session"] is not None), None)


def _read_results(ledger: Ledger, chain: str, start: int, count: int) -> Iterator[dict[str, Any]]:
    """What each decision's record says. Each is held to its seal: a session's past is evidence."""
    records = list(ledger.read(chain, start, count))
    try:
        require_valid_records(ledger, chain, start, records)
        if len(records) != count - start:
            raise IntegrityError("SEQUENCE_GAP", f"records of {chain} are missing")
    except IntegrityError as error:
        words = f"the session's past cannot be trusted: {error.message}"
        raise IntegrityError(error.code, words, advice="run: aver verify") from error
    contents = (record.to_dict() for record in records)
    return (content["outcome"]["result"] for content in contents if read_kind(content) == _DECISION_KIND)


def _count_tool_failures(ledger: Ledger, action: Action, now: str, *, decisions: str) -> tuple[int, int]:
    """Recent failures and uses of the action's tool in its session, by whatever records name the tool calls: those in
    the chain of its decisions do not."""
    if not action.tool:
        return 0, 0
    failures = uses = 0
    for record in ledger.find(session=action.session, since=_time_before(now, USES_SPAN), limit=USES_MAX):
        if record.chain == decisions:
            continue
        try:
            calls = record.to_dict()["execution"]["tool_calls"]
            named = [call for call in calls if call["tool"] == action.tool]
            uses += len(named)
            failures += sum(call["success"] is False for call in named)
        except (AverError, KeyError, TypeError):
            continue  # Not a record of tool calls.
    return failures, uses


def _time_before(now: str, span: timedelta) -> str:
    return (datetime.fromisoformat(now) - span).isoformat()
