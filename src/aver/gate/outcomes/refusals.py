"""A call that Aver asked about, and that the client refused: it was never made.

Aver's `ask` becomes a question that the client shows to its person. Until the end of the call is known, it counts as
made: a session that asked to read a secret may have read it. Some clients write into their own transcript that a call
was refused. Then Aver seals that, as `gate.outcome` in the chain of the decision, with `outcome.result`:

    {v: 1, gate_id, outcome: "client: asked, then refused", digest, session}

`session` is the session's state after it (`session_state.state_after_refusal`): without the marks that only this call
has left. An open request for approval of the call stays open: a person may still approve a later try.

A refusal counts only if all of this holds. If a part is missing, the call still counts as made:

1. The client's own fields say that the call was refused before it ran, never words in a result. `hooks.contract.Hook`
   has the function that reads them, for the clients that have such fields.
2. No record says that the call was made. The client reports a call right after it, before the model sees the result.
   So an agent that forges a refusal in a transcript comes too late.
3. There is one decision about the call. Where a client used an id again, nothing says which of the calls was refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aver import log
from aver.capsule.sealed import Sealed
from aver.errors import AverError, Exists, HeadMoved
from aver.gate.call_decisions import ASKED_AND_REFUSED, find_decisions
from aver.gate.decision_record import OUTCOME_KIND, decision_chain
from aver.gate.facts.session import read_session_state
from aver.gate.facts.session_state import state_after_refusal
from aver.gate.outcomes.clicks import build_outcome_draft
from aver.gate.own_records import OwnRecords
from aver.ledger import Ledger

ATTEMPTS_MAX = 100
"""How often the state is read anew because another decision of the session was sealed first."""


def record_refusals(ledger: Ledger, session: str, calls: Iterable[str]) -> list[Sealed]:
    """Seal that the client has refused these calls of a session. Returns the records; none for a call that may be made.

    Raises `IntegrityError` where the session's past is damaged.
    """
    records = [_record_refusal(ledger, session, call_id) for call_id in dict.fromkeys(calls)]
    return [record for record in records if record is not None]


def _record_refusal(ledger: Ledger, session: str, call_id: str) -> Sealed | None:
    decisions = find_decisions(ledger, call_id)
    if len(decisions) != 1 or _was_made(ledger, call_id):
        log.debug("gate", "the refusal of call %s does not count: it has other records", call_id)
        return None
    decided, chain = decisions[0], decision_chain(session)
    if decided.action.get("session") != session:
        return None
    for _ in range(ATTEMPTS_MAX):
        head = ledger.head(chain)
        before = read_session_state(ledger, head)
        if not any(entry["gate_id"] == decided.gate_id for entry in before.get("asked") or ()):
            return None
        state = state_after_refusal(before, decided.gate_id)
        draft = build_outcome_draft(decided, ASKED_AND_REFUSED, state)
        try:
            record = ledger.append(chain, draft, key=f"{OUTCOME_KIND}:refused:{decided.gate_id}", after=head)
        except HeadMoved:
            continue
        except Exists:
            return None
        log.debug("gate", "the client refused call %s: its marks are taken back", call_id)
        return record
    return None


def _was_made(ledger: Ledger, call_id: str) -> bool:
    """Whether a record says that the call was made. A watcher also seals calls that were refused: `blocked`."""
    record = ledger.get(call_id)
    if record is None:
        return False
    try:
        content: Mapping[str, Any] = OwnRecords(ledger).require(record).to_dict()
        return bool(content["outcome"]["status"] != "blocked")
    except (AverError, KeyError, TypeError):
        return True
