"""Audited coroutines: none lost, the loop not held up, cancellation and all."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

import aver
from aver import Ledger, open_ledger_async
from aver.recording.recorder import dropped_count

CHAIN = "demo.audit"


@pytest.mark.parametrize("count", [4, 50, 200])
def test_concurrent_coroutines_seal_two_records_each(ledger: Ledger, records: Any, count: int) -> None:
    """The public reference lost 25 % of 4 and 88 % of 200 in this, and its chain still verified."""

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work(number: int) -> int:
        await asyncio.sleep(0.001)
        return number * 2

    async def scenario() -> list[int]:
        return await asyncio.gather(*(work(number) for number in range(count)))

    assert asyncio.run(scenario()) == [2 * number for number in range(count)]
    intents, outcomes = records("audit.intent"), records("audit.outcome")
    assert len(intents) == len(outcomes) == count
    by_id = {record["id"]: record for record in intents}
    for outcome in outcomes:
        given = by_id.pop(outcome["parent_id"])["context"]["environment"]["audit"]["arguments"]["number"]
        assert outcome["outcome"]["result"] == 2 * given
    assert by_id == {}
    assert len({record["trigger"]["correlation_id"] for record in intents}) == count
    assert ledger.verify().status == "verified"
    assert dropped_count(ledger) == 0


def test_the_loop_goes_on_while_records_wait(
    ledger: Ledger, records: Any, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    """The ledger's lock is held elsewhere, so nothing can be sealed; the loop goes round all the same."""
    ledger.append("demo.first", aver.Capsule(type="tool"))
    ran: list[int] = []

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work(number: int) -> None:
        ran.append(number)

    async def scenario() -> None:
        with stuck():
            tasks = [asyncio.create_task(work(number)) for number in range(100)]
            for _ in range(100):
                await asyncio.sleep(0.001)
            assert ran == [], "no body runs before its intent is sealed"
        await asyncio.gather(*tasks)

    asyncio.run(scenario())
    assert sorted(ran) == list(range(100))
    assert len(records()) == 200


def test_a_coroutine_function_stays_one(ledger: Ledger, records: Any) -> None:
    class Agent:
        @aver.audit(chain=CHAIN, ledger=ledger)
        async def act(self, n: int) -> int:
            return n

        async def __call__(self, n: int) -> int:
            return n + 1

    assert inspect.iscoroutinefunction(Agent.act)
    assert asyncio.run(Agent().act(1)) == 1
    audited = aver.audit(chain=CHAIN, ledger=ledger)(Agent())
    assert inspect.iscoroutinefunction(audited)
    assert asyncio.run(audited(1)) == 2
    assert [record["outcome"]["result"] for record in records("audit.outcome")] == [1, 2]


def test_nesting_and_correlation_cross_tasks(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def leaf(number: int) -> None:
        await asyncio.sleep(0)

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def branch() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(leaf(number))

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def root() -> None:
        await asyncio.gather(branch(), branch())
        await asyncio.to_thread(in_thread)

    @aver.audit(chain=CHAIN, ledger=ledger)
    def in_thread() -> None: ...

    asyncio.run(root())
    intents = records("audit.intent")
    named: dict[str, list[dict[str, Any]]] = {}
    for record in intents:
        name = record["context"]["environment"]["audit"]["function"].rpartition(".")[2]
        named.setdefault(name, []).append(record)
    (top,) = named["root"]
    branches = {record["id"] for record in named["branch"]}
    assert {record["parent_id"] for record in named["branch"]} == {top["id"]}
    assert sorted(record["parent_id"] for record in named["leaf"]) == sorted([*branches] * 3)
    assert [record["parent_id"] for record in named["in_thread"]] == [top["id"]]
    assert len({record["trigger"]["correlation_id"] for record in intents}) == 1


def test_a_plain_function_in_a_loop_is_recorded_before_it_returns(ledger: Ledger, records: Any) -> None:
    """The reference stored 12 of 20 here, through tasks that nobody waited for."""

    @aver.audit(chain=CHAIN, ledger=ledger)
    def work(number: int) -> int:
        return number

    async def scenario() -> None:
        for number in range(20):
            work(number)
            assert len(records()) == 2 * (number + 1)

    asyncio.run(scenario())


# --- cancellation


def test_a_cancelled_body_is_recorded_and_stays_cancelled(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work() -> None:
        started.set()
        await asyncio.sleep(3600)

    async def scenario() -> None:
        task = asyncio.create_task(work())
        await started.wait()
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert caught.value.args == ("enough",)
        assert task.cancelled()

    started = asyncio.Event()
    asyncio.run(scenario())
    outcome = records()[1]["outcome"]
    assert (outcome["status"], outcome["error"]) == ("failure", "asyncio.exceptions.CancelledError: enough")


def test_a_timeout_is_recorded(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work() -> None:
        await asyncio.sleep(3600)

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await work()

    asyncio.run(scenario())
    assert records()[1]["outcome"]["error"] == "asyncio.exceptions.CancelledError"


def test_cancelled_while_its_intent_is_sealed_the_body_does_not_run(
    ledger: Ledger, records: Any, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    ledger.append("demo.first", aver.Capsule(type="tool"))
    ran = []

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work() -> None:
        ran.append(1)

    async def scenario() -> None:
        with stuck():
            task = asyncio.create_task(work())
            await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.sleep(0.02)
            assert not task.done(), "it waits for what became of the intent"
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert ran == []
    intent, outcome = records()
    assert outcome["parent_id"] == intent["id"]
    assert outcome["outcome"]["status"] == "blocked"
    assert outcome["outcome"]["summary"].endswith("work was cancelled before it began")


def test_cancelled_while_its_outcome_is_sealed_the_outcome_is_sealed(
    ledger: Ledger, records: Any, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work() -> str:
        reached.set()
        await go.wait()
        return "done"

    async def scenario() -> None:
        task = asyncio.create_task(work())
        await reached.wait()
        with stuck():
            go.set()
            await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.sleep(0.02)
        with pytest.raises(asyncio.CancelledError):
            await task

    reached, go = asyncio.Event(), asyncio.Event()
    asyncio.run(scenario())
    outcome = records()[1]["outcome"]
    assert (outcome["status"], outcome["result"]) == ("success", "done")


class Pause:
    """What another library than asyncio awaits: it comes out where the coroutine is driven."""

    def __await__(self) -> Any:
        yield "pause"


def test_a_coroutine_that_is_closed_is_recorded(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work() -> None:
        await Pause()

    coroutine = work()
    assert coroutine.send(None) == "pause"
    coroutine.close()
    outcome = records()[1]["outcome"]
    assert (outcome["status"], outcome["summary"].rpartition(".")[2]) == ("partial", "work was closed before its end")


def test_a_coroutine_driven_by_another_library(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def work() -> str:
        await Pause()
        return aver.current().id

    coroutine = work()
    assert coroutine.send(None) == "pause"
    assert len(records()) == 1
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    assert stop.value.value == records()[0]["id"]
    assert len(records()) == 2


def test_an_async_ledger_does_as_well(aver_home: Any) -> None:
    async def scenario() -> tuple[int, str]:
        async with open_ledger_async() as ledger:

            @aver.audit(chain=CHAIN, ledger=ledger)
            async def work() -> None:
                await asyncio.sleep(0)

            await asyncio.gather(*(work() for _ in range(10)))
            return (await ledger.head(CHAIN)).count, (await ledger.verify()).status

    assert asyncio.run(scenario()) == (20, "verified")
