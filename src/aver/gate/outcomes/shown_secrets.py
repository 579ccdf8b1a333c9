"""A call whose result showed a secret: the session has seen it, whatever the gate knew before.

Nobody can say beforehand what a search prints. But Aver masks the result when it records the call, and so knows that a
secret was in it. That is sealed as `gate.outcome` in the chain of the session's decisions, with `outcome.result`:

    {v: 1, call_id, outcome: "the result showed a secret", session}

`session` is the state after it (`session_state.state_after_secret`). One such record is enough: a session that
has the label keeps it. It is sealed before the record of the call, so that no crash between them loses it.
"""

from __future__ import annotations

import hashlib

from aver.capsule.aver_block import of_kind
from aver.capsule.model import Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import Exists, HeadMoved
from aver.gate.call_decisions import SHOWED_SECRET
from aver.gate.decision_record import DOMAIN, OUTCOME_KIND, decision_chain
from aver.gate.facts.session import read_session_state
from aver.gate.facts.session_state import state_after_secret
from aver.gate.outcomes.refusals import ATTEMPTS_MAX
from aver.ledger import Ledger


def record_shown_secret(ledger: Ledger, session: str, call_id: str) -> Sealed | None:
    """Seal that the result of a call showed a secret.

    Returns None where the session has no decisions, or is known to have seen one. Raises `IntegrityError` where the
    session's past is damaged.
    """
    chain = decision_chain(session)
    for _ in range(ATTEMPTS_MAX):
        head = ledger.head(chain)
        if not session or not head.count:
            return None
        before = read_session_state(ledger, head)
        state = state_after_secret(before)
        if all(state[name] == before.get(name, state[name]) for name in state):
            return None
        draft = Capsule(
            type="system",
            domain=DOMAIN,
            trigger=Trigger(type="system", source="aver", request=f"result of {call_id}", correlation_id=call_id),
            context=Context(agent_id="aver", session_id=session),
            outcome=Outcome(
                status="success",
                summary=SHOWED_SECRET,
                result={"v": 1, "call_id": call_id, "outcome": SHOWED_SECRET, "session": state},
            ),
        )
        # The head is in the key: a state that a refusal took back meanwhile is marked again.
        name = hashlib.sha256(f"{call_id}:{head.hash}".encode()).hexdigest()[:32]
        try:
            return ledger.append(chain, of_kind(draft, OUTCOME_KIND), key=f"{OUTCOME_KIND}:shown:{name}", after=head)
        except HeadMoved:
            continue
        except Exists:
            return None
    return None
