"""Audited generators, plain and async: everything that a generator can do still works, and is recorded once it ran."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any

import pytest

import aver
from aver import Ledger, open_ledger_async

CHAIN = "demo.audit"


def test_a_generator_is_recorded_from_its_first_value_to_its_end(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def numbers(stop: int) -> Generator[int, None, str]:
        yield from range(stop)
        return "done"

    assert inspect.isgeneratorfunction(numbers)
    stream = numbers(3)
    assert records() == [], "nothing has run yet"
    assert next(stream) == 0
    (intent,) = records()
    assert intent["context"]["environment"]["audit"]["form"] == "generator"
    assert [*stream] == [1, 2]
    _, outcome = records()
    assert outcome["parent_id"] == intent["id"]
    assert outcome["outcome"]["status"] == "success"
    assert outcome["outcome"]["result"] == {
        "yielded": 3,
        "sent": 0,
        "thrown": 0,
        "values": [0, 1, 2],
        "returned": "done",
    }
    assert outcome["outcome"]["summary"].endswith("numbers ended after 3 values")
    assert "busy_ms" in outcome["outcome"]["metrics"]


def test_one_that_is_never_started_leaves_no_record(ledger: Ledger, records: Any) -> None:
    ran = []

    @aver.audit(chain=CHAIN, ledger=ledger)
    def numbers() -> Iterator[int]:
        ran.append(1)
        yield 1

    stream = numbers()
    stream.close()  # type: ignore[attr-defined]
    del stream
    numbers()
    gc.collect()
    assert (records(), ran) == ([], [])


def test_values_are_sent_and_exceptions_thrown_in(ledger: Ledger, records: Any) -> None:
    log: list[Any] = []

    @aver.audit(chain=CHAIN, ledger=ledger)
    def echo() -> Generator[Any, Any, str]:
        given = yield "ready"
        while given != "stop":
            try:
                given = yield given
            except ValueError as error:
                log.append(error)
                given = yield f"caught {error}"
        return "stopped"

    stream = echo()
    thrown = ValueError("v")
    assert next(stream) == "ready"
    assert stream.send("a") == "a"
    assert stream.throw(thrown) == "caught v"
    assert log == [thrown]
    with pytest.raises(StopIteration) as stop:
        stream.send("stop")
    assert stop.value.value == "stopped"
    result = records()[1]["outcome"]["result"]
    assert result["values"] == ["ready", "a", "caught v"]
    assert (result["yielded"], result["sent"], result["thrown"], result["returned"]) == (3, 2, 1, "stopped")


def test_an_exception_thrown_in_and_not_caught_goes_on(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    stream = numbers()
    next(stream)
    error = KeyError("k")
    with pytest.raises(KeyError) as caught:
        stream.throw(error)  # type: ignore[attr-defined]
    assert caught.value is error
    outcome = records()[1]["outcome"]
    assert (outcome["status"], outcome["error"]) == ("failure", "KeyError: 'k'")
    assert outcome["result"]["yielded"] == 1


def test_closing_early_runs_the_bodys_cleanup_and_is_partial(ledger: Ledger, records: Any) -> None:
    cleaned = []

    @aver.audit(chain=CHAIN, ledger=ledger)
    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            cleaned.append(aver.current().name)

    for number in numbers():
        if number == 1:
            break
    assert [name.rpartition(".")[2] for name in cleaned] == ["numbers"]
    _, outcome = records()
    assert outcome["outcome"]["status"] == "partial"
    assert outcome["outcome"]["summary"].endswith("numbers was closed after 1 values")
    assert outcome["outcome"]["result"]["values"] == [1]


def test_a_body_that_fails_while_it_is_closed(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise OSError("disk")

    stream = numbers()
    next(stream)
    with pytest.raises(OSError, match="disk"):
        stream.close()  # type: ignore[attr-defined]
    assert records()[1]["outcome"]["error"] == "OSError: disk"


def test_a_generator_is_current_only_while_its_body_runs(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def inner() -> None: ...

    @aver.audit(chain=CHAIN, ledger=ledger)
    def numbers() -> Iterator[str]:
        inner()
        yield aver.current().id
        inner()
        yield aver.current().id

    first, second = numbers(), numbers()
    one, two = next(first), next(second)
    assert aver.current(None) is None, "between two values the consumer runs"
    inner()
    assert (next(first), next(second)) == (one, two)
    assert one != two
    parents = [
        record["parent_id"]
        for record in records("audit.intent")
        if record["context"]["environment"]["audit"]["function"].endswith("inner")
    ]
    assert parents == [one, two, None, one, two]


def test_a_context_manager_made_of_an_audited_generator(ledger: Ledger, records: Any) -> None:
    @contextlib.contextmanager
    @aver.audit(chain=CHAIN, ledger=ledger)
    def lent() -> Iterator[str]:
        try:
            yield "it"
        except ValueError:
            pass

    with lent() as it:
        assert it == "it"
    with lent():
        raise ValueError
    with pytest.raises(KeyError), lent():
        raise KeyError
    statuses = [record["outcome"]["status"] for record in records("audit.outcome")]
    assert statuses == ["success", "success", "failure"]


def test_a_long_stream_is_counted_whole_and_kept_in_part(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def numbers() -> Iterator[int]:
        yield from range(2_500)

    assert sum(numbers()) == sum(range(2_500))
    result = records()[1]["outcome"]["result"]
    assert result["yielded"] == 2_500
    assert result["values"] == list(range(1_000))


def test_values_of_a_stream_can_be_left_out(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger, leave_out=["return"])
    def numbers() -> Iterator[str]:
        yield "private"

    assert [*numbers()] == ["private"]
    result = records()[1]["outcome"]["result"]
    assert (result["yielded"], result["values"], result["returned"]) == (1, [], None)


class Holder:
    """Refers to its own generator: only the garbage collector can free the two."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        stream.send(None)
        stream.send(self)


def test_one_that_the_collector_closes_during_an_append_does_not_wait_for_itself(
    ledger: Ledger, records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector runs where it likes: here in the middle of signing, with every lock held."""

    @aver.audit(chain=CHAIN, ledger=ledger)
    def keeps() -> Generator[None, Any, None]:
        held = yield
        while held:
            yield

    class CollectingSigner:
        def __init__(self) -> None:
            self.inner = aver.SeedSigner.generate()
            self.fingerprint = self.inner.fingerprint

        def sign(self, digest: str) -> Any:
            gc.collect()
            return self.inner.sign(digest)

    gc.collect()
    gc.disable()
    try:
        Holder(keeps())
        assert [record["outcome"]["status"] for record in records()] == ["pending"]
        ledger.append("demo.other", aver.Capsule(type="tool"), signer=CollectingSigner())
    finally:
        gc.enable()
    assert len(records()) == 1, "put aside"

    @aver.audit(chain=CHAIN, ledger=ledger)
    def next_call() -> None: ...

    next_call()
    summaries = [record["outcome"]["summary"].rpartition(".")[2] for record in records()]
    assert "keeps was closed after 2 values" in summaries


# --- async


def test_an_async_generator_is_recorded_when_it_ran_and_not_before(aver_home: Any) -> None:
    async def scenario() -> list[dict[str, Any]]:
        async with open_ledger_async() as ledger:

            @aver.audit(chain=CHAIN, ledger=ledger)
            async def words(text: str) -> AsyncIterator[str]:
                for word in text.split():
                    await asyncio.sleep(0)
                    yield word

            assert inspect.isasyncgenfunction(words)
            stream = words("to be or not")
            assert await ledger.chains() == []
            assert [word async for word in stream] == ["to", "be", "or", "not"]
            return [record.to_dict() async for record in ledger.read(CHAIN)]

    intent, outcome = asyncio.run(scenario())
    assert intent["context"]["environment"]["audit"]["form"] == "async generator"
    assert outcome["outcome"]["result"]["values"] == ["to", "be", "or", "not"]
    assert outcome["outcome"]["status"] == "success"


def test_what_goes_into_an_async_generator(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def echo() -> AsyncGenerator[Any, Any]:
        given = yield "ready"
        while given != "stop":
            try:
                given = yield given
            except ValueError as error:
                given = yield f"caught {error}"

    async def scenario() -> None:
        stream = echo()
        assert await anext(stream) == "ready"
        assert await stream.asend("a") == "a"
        assert await stream.athrow(ValueError("v")) == "caught v"
        with pytest.raises(StopAsyncIteration):
            await stream.asend("stop")
        early = echo()
        await anext(early)
        await early.aclose()
        failing = echo()
        await anext(failing)
        with pytest.raises(KeyError):
            await failing.athrow(KeyError("k"))

    asyncio.run(scenario())
    first, early, failed = [record["outcome"] for record in records("audit.outcome")]
    assert (first["status"], first["result"]["sent"], first["result"]["thrown"]) == ("success", 2, 1)
    assert early["status"] == "partial"
    assert (failed["status"], failed["error"]) == ("failure", "KeyError: 'k'")


def test_an_async_generator_left_in_the_middle_is_closed_by_the_loop(ledger: Ledger, records: Any) -> None:
    cleaned = []

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)

    async def scenario() -> None:
        async for _ in numbers():
            break
        for _ in range(1_000):  # asyncio closes it in a task of its own
            if len(records()) == 2:
                break
            await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert cleaned == [1]
    assert [record["outcome"]["status"] for record in records()] == ["pending", "partial"]


def test_async_streams_interleave(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    async def inner() -> None: ...

    @aver.audit(chain=CHAIN, ledger=ledger)
    async def numbers() -> AsyncIterator[str]:
        for _ in range(3):
            await inner()
            yield aver.current().id

    async def consume() -> str:
        (identifier,) = {one async for one in numbers()}
        assert aver.current(None) is None
        return identifier

    async def scenario() -> list[str]:
        return await asyncio.gather(*(consume() for _ in range(5)))

    identifiers = asyncio.run(scenario())
    parents = [
        record["parent_id"]
        for record in records("audit.intent")
        if record["context"]["environment"]["audit"]["function"].endswith("inner")
    ]
    assert sorted(parents) == sorted(identifiers * 3)
