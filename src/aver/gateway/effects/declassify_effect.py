"""The effect of `Declassify`: the value behind a handle goes to the caller, and a record of its own says so.

A person has approved the act: the gateway hands over no other one. The record `act.declassify` is sealed before the
value is given out. It has the handle, the purpose and the size, and not the value.
"""

from __future__ import annotations

from typing import Any

from aver.capsule.aver_block import of_kind
from aver.capsule.model import Capsule, Context, Outcome, Trigger
from aver.gateway.act_records import DOMAIN, act_chain
from aver.gateway.executor.executor import EffectDone, EffectOrder
from aver.gateway.handles import HandleStore
from aver.ledger import Ledger

DECLASSIFY_KIND = "act.declassify"


class DeclassifyEffect:
    """Gives out values of one gateway's handles."""

    def __init__(self, ledger: Ledger, handles: HandleStore) -> None:
        self._ledger = ledger
        self._handles = handles

    def __call__(self, order: EffectOrder) -> EffectDone:
        request, handle = order.request, order.inputs["handle"]
        held = self._handles.find(handle, session=request.session, caller=request.caller)
        told: dict[str, Any] = {"handle": handle, "label": held.label, "size": len(held.value)}
        draft = Capsule(
            type="tool",
            domain=DOMAIN,
            trigger=Trigger(source=request.caller, request=order.inputs["purpose"], correlation_id=order.action_id),
            context=Context(agent_id=request.caller, session_id=request.session),
            outcome=Outcome(
                status="success",
                result={"v": 1, "action_id": order.action_id, "purpose": order.inputs["purpose"], **told},
                summary="a secret was given out",
            ),
        )
        self._ledger.append(act_chain(request.session), of_kind(draft, DECLASSIFY_KIND))
        return EffectDone("declassified a value", {**told, "value": held.value}, recorded=told)
