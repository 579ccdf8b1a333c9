"""The ledger for asyncio: the loop never waits, nothing is lost, every name is there."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from aver import AsyncLedger, Capsule, Exists, Ledger, NotFound, open_ledger, open_ledger_async
from support.tamper import held_elsewhere

pytestmark = pytest.mark.both_stores

CHAIN = "demo.async"


def test_the_loop_keeps_ticking_while_appends_wait() -> None:
    """The chain is locked elsewhere, so no append can finish: the loop must go round and round all the same."""

    async def scenario() -> tuple[int, int, str]:
        async with open_ledger_async() as ledger:
            await ledger.append(CHAIN, Capsule(type="tool"))
            lock = held_elsewhere(ledger.ledger)
            appends = [
                asyncio.create_task(ledger.append(CHAIN, Capsule(type="tool"), key=f"k{number}"))
                for number in range(300)
            ]
            ticks = 0
            while ticks < 200:
                await asyncio.sleep(0.0005)
                ticks += 1
            assert not any(task.done() for task in appends)
            lock.close()
            hashes = {record.hash for record in await asyncio.gather(*appends)}
            return len(hashes), (await ledger.head(CHAIN)).count, (await ledger.verify()).status

    assert asyncio.run(scenario()) == (300, 301, "verified")


@pytest.mark.sample(4)
@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_reading_gives_every_record(count: int) -> None:
    async def scenario() -> tuple[list[int], int]:
        async with open_ledger_async() as ledger:
            await ledger.append(CHAIN, Capsule(type="tool"))
            await ledger.append_many(CHAIN, [Capsule(type="tool") for _ in range(count)])
            read = [record.sequence async for record in ledger.read(CHAIN)]
            found = len([record async for record in ledger.find(chain=CHAIN)])
            return read, found

    assert asyncio.run(scenario()) == (list(range(count + 1)), count + 1)


def test_errors_come_through() -> None:
    async def scenario() -> None:
        async with open_ledger_async() as ledger:
            first = await ledger.append(CHAIN, Capsule(type="tool"), key="k")
            with pytest.raises(Exists) as caught:
                await ledger.append(CHAIN, Capsule(type="tool"), key="k")
            assert caught.value.record == first
            with pytest.raises(NotFound):
                [record async for record in ledger.read("demo.none")]
            assert await ledger.get("k") == first
            assert await ledger.chains() == [CHAIN, "keys"]
            assert len(await ledger.heads()) == 2
            assert (await ledger.close_chain(CHAIN)).chain == "meta"
            with pytest.raises(NotFound):
                await ledger.blob("0" * 64)

    asyncio.run(scenario())


def test_it_must_be_opened() -> None:
    with pytest.raises(RuntimeError):
        _ = open_ledger_async().ledger
    with pytest.raises(NotFound):
        asyncio.run(open_and_close(open_ledger_async(create=False)))


async def open_and_close(ledger: AsyncLedger) -> None:
    async with ledger:
        pass


def test_a_cancelled_append_is_whole_or_absent() -> None:
    async def scenario() -> None:
        async with open_ledger_async() as ledger:
            await ledger.append(CHAIN, Capsule(type="tool"))
            for number in range(30):
                task = asyncio.create_task(ledger.append(CHAIN, Capsule(type="tool"), key=f"c{number}"))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    with open_ledger() as ledger:
        assert ledger.verify().status == "verified"


def test_the_same_names_with_the_same_parameters() -> None:
    own = {name for name, value in vars(AsyncLedger).items() if not name.startswith("_") and callable(value)}
    assert own <= {name for name in dir(Ledger) if not name.startswith("_")}
    public = [
        "append",
        "append_many",
        "append_together",
        "read",
        "head",
        "heads",
        "chains",
        "get",
        "find",
        "blob",
        "close_chain",
        "verify",
        "close",
    ]
    assert set(public) <= own
    for name in ("read", "head", "get", "blob", "close_chain"):
        expected = list(inspect.signature(getattr(Ledger, name)).parameters)
        assert list(inspect.signature(getattr(AsyncLedger, name)).parameters) == expected
