"""The decision about a call goes into the call's record: who allowed it, and where that is sealed.

The hook before a call asks the gate under the call's id. The hook after it, or whoever reads the transcript, finds the
decision under the same id. The call's draft then gets

    trigger.correlation_id    the call's id, which the decision has, too
    refs.decision             the id of the decision's record, and `refs.approval` where a person's approval was used
    authority                 the decision's: see `aver.gate.decision_record.authorize_call`

A call without a decision keeps the authority that its client reports.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from aver import log
from aver.capsule.aver_block import BLOCK_KEY
from aver.capsule.canonical import ascii_json
from aver.errors import AverError
from aver.gate.decision_record import DoneAction, RecordedDecision, authorize_call, bind, find_decisions
from aver.ingest.agent_event import AgentCall, AgentEvent
from aver.ingest.draft import EventDraft
from aver.ledger import Ledger

__all__ = ["link_decision"]


def link_decision(ledger: Ledger, call_id: str, event: AgentEvent, draft: EventDraft) -> EventDraft:
    """Return the draft of a call with the decision about it. A draft of anything else is returned as it is."""
    if event.call is None:
        return draft
    decision = _find_decision(ledger, call_id, event.call)
    if decision is None:
        return draft
    capsule, permission = draft.capsule, event.allowed
    # The client's own refusal says more than a decision that let the call pass.
    keeps_own = permission.denied and decision.allows
    authority = authorize_call(
        decision, refused=permission.denied, approved=permission.by == "human_approved" and not permission.denied
    )
    environment = capsule.context.environment
    block = {**environment[BLOCK_KEY], "refs": decision.refs}
    linked = replace(
        capsule,
        trigger=replace(capsule.trigger, correlation_id=call_id),
        context=replace(capsule.context, environment={**environment, BLOCK_KEY: block}),
        authority=capsule.authority if keeps_own else authority,
    )
    return draft._replace(capsule=linked)


def _find_decision(ledger: Ledger, call_id: str, call: AgentCall) -> RecordedDecision | None:
    try:
        found = find_decisions(ledger, call_id)
    except AverError as error:  # The call is recorded all the same. `aver verify` names the damage.
        log.debug("ingest", "the decision about %s cannot be read: %s", call_id, error)
        return None
    if len(found) < 2:
        return found[0] if found else None
    try:
        digest = hashlib.sha256(ascii_json(dict(call.arguments))).hexdigest()
    except AverError:
        digest = ""
    # Several decisions about one id: a client that uses ids again, or a second hook. The arguments tell them apart.
    action = DoneAction(call_id=call_id, is_like=lambda decision: decision.input_hash == digest)
    return bind(action, found) or bind(DoneAction(call_id=call_id), found)
