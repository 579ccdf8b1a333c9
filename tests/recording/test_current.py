"""`aver.current()`: what a call's own code adds to its record, and what it may not."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

import aver
from aver import AuditedCall, BadInput, InvalidCapsule, Ledger, Reasoning, Refused

CHAIN = "demo.audit"


def audited(ledger: Ledger, body: Any) -> Any:
    return aver.audit(chain=CHAIN, ledger=ledger)(body)()


def test_outside_an_audited_call_it_says_so() -> None:
    with pytest.raises(BadInput, match="outside an audited call"):
        aver.current()
    assert aver.current(None) is None
    assert aver.current("default") == "default"


def test_everything_that_can_be_added(ledger: Ledger, records: Any) -> None:
    def work() -> None:
        call = aver.current()
        assert isinstance(call, AuditedCall)
        call.reason(analysis="two ways", model="m-1", prompt="the prompt")
        call.reason(reasoning="cheaper", confidence=1)
        call.option("wait", id="w", pros=["free"], cons=["slow"], feasibility=1, risks=["none"], selected=True)
        call.option("act", cons=["dear"], estimated_impact={"cost": 5}, rejection_reason="not worth it")
        call.tool_call("search", {"q": "x", 5: {1, 2}}, result=["a"], duration_ms=12)
        call.tool_call("fetch", error=TimeoutError("late"))
        call.tokens(tokens_in=10, tokens_out=5, cost_usd=0.25, latency_ms=100, native={"cache_read": 3})
        call.tokens(tokens_in=1, tokens_out=2, cost_usd=0.25, native={"cache_read": 4})
        call.set_resources(gpu_seconds=1.5)
        call.set_metrics(quality_score=0.9, odd=float("nan"))
        call.side_effect("wrote a.txt")
        call.summarise("waited")
        call.authorise("human_approved", approver="person:ann", chain=[{"step": 1}])
        call.conclude("partial", "only half of it")

    audited(ledger, work)
    intent, outcome = records()
    assert intent["reasoning"] == Reasoning().to_dict(), "what came up later is not passed off as known before"
    reasoning = outcome["reasoning"]
    assert (reasoning["analysis"], reasoning["reasoning"], reasoning["model"]) == ("two ways", "cheaper", "m-1")
    assert reasoning["confidence"] == 1.0
    assert reasoning["prompt_hash"] == hashlib.sha3_256(b"the prompt").hexdigest()
    assert reasoning["selected_option"] == "wait"
    assert reasoning["options_considered"] == ["wait", "act"]
    first, second = reasoning["options"]
    assert (first["id"], first["pros"], first["cons"], first["selected"]) == ("w", ["free"], ["slow"], True)
    assert (second["id"], second["rejection_reason"], second["estimated_impact"]) == (
        "opt_2",
        "not worth it",
        {"cost": 5},
    )
    search, fetch = outcome["execution"]["tool_calls"]
    assert search["arguments"] == {"q": "x", "5": {"$type": "set", "items": [1, 2]}}
    assert (search["success"], search["result"], search["duration_ms"]) == (True, ["a"], 12)
    assert (fetch["success"], fetch["error"]) == (False, "TimeoutError: late")
    assert outcome["execution"]["resources_used"] == {
        "tokens_in": 11,
        "tokens_out": 7,
        "cost_usd": 0.5,
        "latency_ms": 100,
        "native": [{"cache_read": 3}, {"cache_read": 4}],
        "gpu_seconds": 1.5,
    }
    assert outcome["outcome"]["metrics"] == {"quality_score": 0.9, "odd": {"$type": "float", "text": "nan"}}
    assert outcome["outcome"]["side_effects"] == ["wrote a.txt"]
    assert outcome["outcome"]["summary"] == "waited"
    assert (outcome["outcome"]["status"], outcome["outcome"]["error"]) == ("partial", "only half of it")
    assert (outcome["authority"]["type"], outcome["authority"]["chain"]) == ("human_approved", [{"step": 1}])
    assert ledger.verify().status == "verified"


def test_reasoning_can_be_sealed_before_the_effect(ledger: Ledger, records: Any) -> None:
    seen: list[Any] = []

    def work() -> None:
        call = aver.current()
        call.option("act", selected=True)
        identifier = call.seal_reasoning()
        seen.append((identifier, records()))
        call.reason(analysis="afterwards")

    audited(ledger, work)
    intent, reasoning, outcome = records()
    ((identifier, before),) = seen
    assert before == [intent, reasoning], "the effect came after it"
    assert reasoning["id"] == identifier
    assert (reasoning["type"], reasoning["parent_id"]) == ("agent", intent["id"])
    assert reasoning["context"]["environment"]["aver"]["kind"] == "audit.reasoning"
    assert reasoning["reasoning"]["selected_option"] == "act"
    assert outcome["context"]["environment"]["aver"]["refs"] == {"intent": intent["id"], "reasoning": identifier}
    assert outcome["reasoning"]["options"] == []
    assert outcome["reasoning"]["analysis"] == "afterwards"


def test_reasoning_can_be_sealed_in_a_coroutine(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work() -> None:
        aver.current().reason(analysis="think")
        await aver.current().seal_reasoning_async()

    asyncio.run(work())
    assert [record["reasoning"]["analysis"] for record in records()] == ["", "think", ""]


@pytest.mark.parametrize(
    ("add", "error"),
    [
        (lambda call: call.option("neither chosen nor rejected"), InvalidCapsule),
        (lambda call: (call.option("a", selected=True), call.option("b", selected=True)), InvalidCapsule),
        (lambda call: call.reason(confidence=1.5), InvalidCapsule),
        (lambda call: call.reason(confidence=float("nan")), InvalidCapsule),
        (lambda call: call.reason(prompt_hash="abc"), InvalidCapsule),
        (lambda call: call.reason(model=5), InvalidCapsule),
        (lambda call: call.option("a", feasibility=7, rejection_reason="x"), InvalidCapsule),
        (lambda call: call.tool_call("t", duration_ms=-1), InvalidCapsule),
        (lambda call: call.tokens(tokens_in=-1), BadInput),
        (lambda call: call.tokens(cost_usd=float("inf")), BadInput),
        (lambda call: call.tokens(tokens_in=True), BadInput),
        (lambda call: call.conclude("banana"), BadInput),
        (lambda call: call.authorise("banana"), InvalidCapsule),
        (lambda call: call.seal_reasoning(), BadInput),
        (lambda call: [call.side_effect("x") for _ in range(300)], BadInput),
        (lambda call: [call.option("x", rejection_reason="y") for _ in range(100)], BadInput),
    ],
)
def test_what_cannot_be_recorded_is_refused_where_it_is_said(
    ledger: Ledger, records: Any, add: Any, error: type[Exception]
) -> None:
    """And the call can still be recorded, with all that was right."""

    def work() -> None:
        aver.current().summarise("kept")
        with pytest.raises(error):
            add(aver.current())

    audited(ledger, work)
    assert records()[1]["outcome"]["summary"] == "kept"


def test_after_the_end_nothing_can_be_added(ledger: Ledger, records: Any) -> None:
    calls: list[AuditedCall] = []
    audited(ledger, lambda: calls.append(aver.current()))
    for add in (
        lambda: calls[0].reason(analysis="late"),
        lambda: calls[0].tokens(tokens_in=1),
        lambda: calls[0].seal_reasoning(),
    ):
        with pytest.raises(Refused) as caught:
            add()
        assert caught.value.code == "OUTCOME_SEALED"
    assert len(records()) == 2


def test_a_task_that_outlives_its_call_is_still_caused_by_it(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def leaf() -> None: ...

    async def later() -> None:
        await started.wait()
        with pytest.raises(Refused):
            aver.current().summarise("too late")
        await leaf()

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def root() -> asyncio.Task[None]:
        return asyncio.create_task(later())

    async def scenario() -> None:
        task = await root()
        started.set()
        await task

    started = asyncio.Event()
    asyncio.run(scenario())
    intents = records("audit.intent")
    assert intents[1]["parent_id"] == intents[0]["id"]


def test_many_tool_calls_are_all_recorded(ledger: Ledger, records: Any) -> None:
    def work() -> None:
        for number in range(2_000):
            aver.current().tool_call("search", {"number": number}, result="r" * 200)
        aver.current().tool_call("big", {"text": "x" * 100_000}, result=list(range(10_000)))

    audited(ledger, work)
    outcome = records()[1]
    kept = outcome["execution"]["tool_calls"]
    more = outcome["context"]["environment"]["more_tool_calls"]
    assert len(kept) + more["count"] == 2_001
    assert [call["arguments"]["number"] for call in kept] == list(range(len(kept)))
    import json

    rest = json.loads(ledger.blob(more["calls"]["blob"]["digest"]))
    assert [call["arguments"].get("number") for call in rest[:-1]] == list(range(len(kept), 2_000))
    big = rest[-1]
    assert b"x" * 100_000 in ledger.blob(big["arguments"]["blob"]["digest"])
    assert ledger.verify().status == "verified"


def test_secrets_in_what_is_added_are_masked(ledger: Ledger, records: Any) -> None:
    token = "ghp_" + "Ab1" * 12

    def work() -> None:
        call = aver.current()
        call.reason(analysis=f"use {token}")
        call.tool_call("curl", {"headers": {"Authorization": f"Bearer {token}"}}, result=f"export TOKEN={token}")
        call.side_effect(f"stored password={token}")

    audited(ledger, work)
    assert token not in str(records())
    assert records()[1]["context"]["environment"]["masked"]["count"] == 4


def test_a_long_text_that_is_added_stays_whole(ledger: Ledger, records: Any) -> None:
    text = "think " * 10_000
    audited(ledger, lambda: aver.current().reason(analysis=text))
    outcome = records()[1]
    reference = outcome["context"]["environment"]["aver"]["whole"]["reasoning.analysis"]
    assert ledger.blob(reference["blob"]["digest"]).decode() == text
