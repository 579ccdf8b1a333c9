"""The demo's second part: a support agent refunds an order. The run is sealed through Aver's public API."""

from __future__ import annotations

from pathlib import Path

from aver import (
    Authority,
    Blob,
    Capsule,
    Context,
    Execution,
    KeyStore,
    Ledger,
    Option,
    Outcome,
    Reasoning,
    ToolCall,
    Trigger,
    open_ledger,
)

__all__ = ["CHAIN", "OTHER_CHAIN", "REFUND_SEQUENCE", "seal_runs"]

CHAIN = "refunds.1042"
OTHER_CHAIN = "refunds.1043"

REFUND_SEQUENCE = 3
"""The sequence number of the record of the refund."""


def seal_runs(home: Path) -> Path:
    """Seal two runs into a ledger in `home`, signed with Ed25519 and ML-DSA-65, and record where they ended.

    Returns the ledger's file. Beside it lies `before.db`, a copy from before the second run ended.
    """
    KeyStore(home).create("ledger", post_quantum=True)
    path = home / "ledger.db"
    with open_ledger(path, home=home) as ledger:
        _seal_run(ledger, CHAIN, "1042", "12.40")
        ledger.close_chain(CHAIN)
    (home / "before.db").write_bytes(path.read_bytes())
    with open_ledger(path, home=home) as ledger:
        _seal_run(ledger, OTHER_CHAIN, "1043", "8.90")
        ledger.close_chain(OTHER_CHAIN)
    return path


def _seal_run(ledger: Ledger, chain: str, order: str, amount: str) -> None:
    receipt = Blob(f"refund of EUR {amount} for order {order}: accepted\n".encode(), "text/plain")
    request = f"order {order} arrived broken, please refund it"
    asked = ledger.append(chain, _request_capsule(order, request))
    ledger.append(chain, _lookup_capsule(order, request, amount, asked.id))
    decided = ledger.append(chain, _decision_capsule(order, request, amount, asked.id))
    ledger.append(chain, _refund_capsule(order, request, amount, decided.id, receipt), blobs=[receipt])
    ledger.append(chain, _answer_capsule(order, request, amount, asked.id))


def _request_capsule(order: str, request: str) -> Capsule:
    return Capsule(
        type="chat",
        trigger=Trigger(source="support-inbox", request=request),
        context=_context(order),
        outcome=Outcome(status="success", summary=f"asked: {request}"),
    )


def _lookup_capsule(order: str, request: str, amount: str, parent: str) -> Capsule:
    paid = {"paid": amount, "currency": "EUR"}
    call = ToolCall(tool="orders.get", arguments={"order": order}, result=paid, success=True)
    return Capsule(
        type="tool",
        parent_id=parent,
        trigger=Trigger(type="agent", source="support-agent", request=request),
        context=_context(order),
        execution=Execution(tool_calls=[call]),
        outcome=Outcome(status="success", summary=f"looked up order {order}: EUR {amount} paid"),
    )


def _decision_capsule(order: str, request: str, amount: str, parent: str) -> Capsule:
    options = [
        Option(
            id="refund",
            description="refund the order",
            pros=["what was asked for"],
            feasibility=0.9,
            selected=True,
        ),
        Option(
            id="voucher",
            description="send a voucher instead",
            cons=["not what was asked for"],
            feasibility=0.8,
            rejection_reason="the customer asked for the money",
        ),
    ]
    return Capsule(
        type="agent",
        parent_id=parent,
        trigger=Trigger(type="agent", source="support-agent", request=request),
        context=_context(order),
        reasoning=Reasoning(
            analysis=f"EUR {amount} is below the limit up to which the agent may refund.",
            options=options,
            selected_option="refund",
            reasoning="The order arrived broken and the amount is small.",
            confidence=0.9,
        ),
        authority=Authority(type="policy", policy_reference="refunds up to EUR 50"),
        outcome=Outcome(status="success", summary=f"decided: refund EUR {amount}, as the policy allows"),
    )


def _refund_capsule(order: str, request: str, amount: str, parent: str, receipt: Blob) -> Capsule:
    call = ToolCall(
        tool="payments.refund",
        arguments={"order": order, "amount": amount, "currency": "EUR"},
        result={"receipt": receipt.reference},
        success=True,
        duration_ms=412,
    )
    return Capsule(
        type="tool",
        parent_id=parent,
        trigger=Trigger(type="agent", source="support-agent", request=request),
        context=_context(order),
        authority=Authority(type="policy", policy_reference="refunds up to EUR 50"),
        execution=Execution(tool_calls=[call], duration_ms=412),
        outcome=Outcome(
            status="success", summary=f"refunded EUR {amount}", side_effects=[f"EUR {amount} left the account"]
        ),
    )


def _answer_capsule(order: str, request: str, amount: str, parent: str) -> Capsule:
    return Capsule(
        type="chat",
        parent_id=parent,
        trigger=Trigger(type="agent", source="support-agent", request=request),
        context=_context(order),
        outcome=Outcome(status="success", summary=f"answered: EUR {amount} are on their way back to you"),
    )


def _context(order: str) -> Context:
    return Context(agent_id="support-agent", session_id=f"order-{order}")
