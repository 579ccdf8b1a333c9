"""What happens when a record cannot be sealed: it is raised or noted, and never silent."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

import aver
from aver import Ledger, NotRecorded, Unavailable
from aver.recording.recorder import dropped_count, get_recorder

CHAIN = "demo.audit"
Stuck = Callable[[], AbstractContextManager[None]]


def kinds(ledger: Ledger) -> list[str]:
    return [record.kind for record in ledger.read(CHAIN)] if CHAIN in ledger.chains() else []


def test_without_its_intent_the_body_does_not_run(impatient: Ledger, stuck: Stuck) -> None:
    ran = []

    @aver.audit(chain=CHAIN, ledger=impatient)
    def work() -> None:
        ran.append(1)

    with stuck(), pytest.raises(NotRecorded, match="work was not run, because its intent") as caught:
        work()
    assert (ran, caught.value.ran) == ([], False)
    assert isinstance(caught.value, Unavailable)
    assert isinstance(caught.value.__cause__, Unavailable)
    assert "lock" in str(caught.value)
    work()
    assert ran == [1]
    assert kinds(impatient) == ["audit.intent", "audit.outcome"]
    assert dropped_count(impatient) == 0, "whoever called was told"


def test_without_its_intent_a_coroutine_and_a_stream_do_not_run(impatient: Ledger, stuck: Stuck) -> None:
    ran = []

    @aver.audit(chain=CHAIN, ledger=impatient)
    async def work() -> None:
        ran.append(1)

    @aver.audit(chain=CHAIN, ledger=impatient)
    def numbers() -> Iterator[int]:
        ran.append(2)
        yield 1

    with stuck():
        with pytest.raises(NotRecorded):
            asyncio.run(work())
        stream = numbers()
        with pytest.raises(NotRecorded):
            next(stream)
    assert ran == []


def test_an_outcome_that_cannot_be_sealed_is_raised_with_the_result(impatient: Ledger, stuck: Stuck) -> None:
    @aver.audit(chain=CHAIN, ledger=impatient)
    def work(hold: AbstractContextManager[None]) -> str:
        hold.__enter__()
        return "done"

    hold = stuck()
    with pytest.raises(NotRecorded, match="work ran, but its outcome") as caught:
        work(hold)
    hold.__exit__(None, None, None)
    assert (caught.value.ran, caught.value.result) == (True, "done")
    assert kinds(impatient) == ["audit.intent"]
    assert [record.kind for record in aver.unfinished_intents(impatient)] == ["audit.intent"]


def test_the_bodys_own_exception_comes_first_and_the_loss_is_noted(
    impatient: Ledger, stuck: Stuck, caplog: pytest.LogCaptureFixture
) -> None:
    @aver.audit(chain=CHAIN, ledger=impatient)
    def work(hold: AbstractContextManager[None] | None) -> None:
        if hold:
            hold.__enter__()
            raise error

    error = ValueError("v")
    hold = stuck()
    with pytest.raises(ValueError, match="v") as caught:
        work(hold)
    hold.__exit__(None, None, None)
    assert caught.value is error
    assert error.__cause__ is None
    assert "could not seal a record of kind audit.outcome" in caplog.text
    assert dropped_count(impatient) == 1
    work(None)
    assert kinds(impatient) == ["audit.intent", "audit.intent", "dropped", "audit.outcome"]
    told = [record.to_dict() for record in impatient.read(CHAIN)][2]
    assert told["outcome"]["result"]["dropped"] == 1
    assert told["outcome"]["result"]["lost"][0]["kind"] == "audit.outcome"


def test_cancellation_comes_first_too(impatient: Ledger, stuck: Stuck) -> None:
    @aver.audit(chain=CHAIN, ledger=impatient)
    async def work() -> None:
        reached.set()
        await asyncio.sleep(3600)

    async def scenario() -> None:
        task = asyncio.create_task(work())
        await reached.wait()
        with stuck():
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    reached = asyncio.Event()
    asyncio.run(scenario())
    assert get_recorder(impatient).count_unsettled() == 1
    assert get_recorder(impatient).settle()


def test_by_setting_a_call_goes_on_and_a_dropped_record_tells(
    impatient: Ledger, stuck: Stuck, caplog: pytest.LogCaptureFixture
) -> None:
    @aver.audit(chain=CHAIN, ledger=impatient, on_failure="log")
    def work(number: int) -> int:
        return number

    assert work(0) == 0
    with stuck():
        assert [work(1), work(2)] == [1, 2]
        with pytest.raises(ZeroDivisionError):
            aver.audit(chain=CHAIN, ledger=impatient, on_failure="log")(lambda: 1 / 0)()
    assert len([record for record in caplog.records if record.name == "aver.audit"]) == 6
    assert dropped_count(impatient) == 6
    assert kinds(impatient) == ["audit.intent", "audit.outcome"]
    assert work(3) == 3
    assert kinds(impatient) == ["audit.intent", "audit.outcome", "audit.intent", "dropped", "audit.outcome"]
    told = [record.to_dict() for record in impatient.read(CHAIN)][3]
    assert (told["type"], told["outcome"]["status"]) == ("system", "failure")
    assert told["outcome"]["summary"].startswith("6 records could not be sealed since 2")
    assert "lock" in told["outcome"]["error"]
    result = told["outcome"]["result"]
    assert (result["dropped"], len(result["lost"])) == (6, 6)
    assert result["since"] <= result["until"] <= told["trigger"]["timestamp"]
    assert [lost["kind"] for lost in result["lost"]] == ["audit.intent", "audit.outcome"] * 3
    assert all(set(lost) == {"kind", "id", "digest"} for lost in result["lost"])
    assert impatient.verify().status == "verified"
    assert get_recorder(impatient).count_unsettled() == 0


def test_the_digest_of_what_was_lost_is_that_of_its_draft(impatient: Ledger, stuck: Stuck) -> None:
    """Whoever kept the draft, or can make it again, can show that it is the one."""
    from aver.capsule import content_hash
    from aver.recording.drafts import ReadyDraft
    from aver.recording.recorder import PendingRecord

    draft = aver.Capsule(type="tool")
    recorder = get_recorder(impatient)
    entry = PendingRecord(CHAIN, "call", lambda: ReadyDraft(draft, ()))
    with stuck():
        recorder.seal_at_close(entry)
    assert recorder.settle()
    (record,) = impatient.read(CHAIN)
    (lost,) = record.to_dict()["outcome"]["result"]["lost"]
    assert lost == {"kind": "call", "id": draft.id, "digest": content_hash(aver.canonical_bytes(draft.to_dict()))}


def test_what_came_through_after_all_is_not_called_lost(ledger: Ledger) -> None:
    """A server's answer can be lost after its commit: the record is there, and saying otherwise would be false."""
    from aver.recording.drafts import ReadyDraft
    from aver.recording.recorder import PendingRecord

    recorder = get_recorder(ledger)
    entries = [PendingRecord(CHAIN, "call", lambda: ReadyDraft(aver.Capsule(type="tool"), ())) for _ in range(2)]
    ledger.append(CHAIN, entries[0].prepare().capsule)
    entries[1].prepare()
    for entry in entries:
        recorder.note_loss(entry, Unavailable("no answer"))
    assert recorder.settle()
    assert kinds(ledger) == ["call", "dropped"]
    result = [record.to_dict() for record in ledger.read(CHAIN)][1]["outcome"]["result"]
    assert result["dropped"] == 1
    assert result["lost"][0]["id"] == entries[1].prepare().capsule.id
    assert dropped_count(ledger) == 1


def test_a_loss_is_not_forgotten_because_the_ledger_cannot_be_read_either(ledger: Ledger, aver_home: Any) -> None:
    """Whether a record is there after all cannot be looked up in a ledger that is gone: then it counts as lost."""
    from aver.recording.drafts import ReadyDraft
    from aver.recording.recorder import PendingRecord

    ledger.append("demo.first", aver.Capsule(type="tool"))
    recorder = get_recorder(ledger)
    entry = PendingRecord(CHAIN, "call", lambda: ReadyDraft(aver.Capsule(type="tool"), ()))
    entry.prepare()
    recorder.note_loss(entry, Unavailable("no answer"))
    path = aver_home / "ledger.db"
    whole = path.read_bytes()
    path.write_bytes(b"\0" * len(whole))
    assert not recorder.settle()
    assert (recorder.count_unsettled(), dropped_count(ledger)) == (1, 1)
    path.write_bytes(whole)
    assert recorder.settle()
    assert kinds(ledger) == ["dropped"]


def test_losses_in_several_chains_are_told_in_each(impatient: Ledger, stuck: Stuck) -> None:
    @aver.audit(chain=lambda arguments: f"demo.{arguments['name']}", ledger=impatient, on_failure="log")
    def work(name: str) -> None: ...

    with stuck():
        for name in ("a", "b", "a"):
            work(name)
    work("c")
    counts = {
        chain: [record.to_dict()["outcome"]["result"]["dropped"] for record in impatient.read(chain)]
        for chain in ("demo.a", "demo.b")
    }
    assert counts == {"demo.a": [4], "demo.b": [2]}


def test_many_losses_are_all_counted_and_the_first_are_named(impatient: Ledger) -> None:
    recorder = get_recorder(impatient)
    for number in range(1_000):
        recorder.note_undrafted_loss(CHAIN, "record", f"error {number}")
    assert recorder.settle()
    (record,) = impatient.read(CHAIN)
    outcome = record.to_dict()["outcome"]
    assert outcome["result"]["dropped"] == 1_000
    assert len(outcome["result"]["lost"]) == 64
    assert outcome["error"] == "error 0"


def test_a_loss_that_cannot_be_told_yet_is_kept_with_what_comes_after(impatient: Ledger, stuck: Stuck) -> None:
    recorder = get_recorder(impatient)
    recorder.note_undrafted_loss(CHAIN, "record", "first")
    with stuck():
        assert not recorder.settle()
        recorder.note_undrafted_loss(CHAIN, "record", "second")
        assert not recorder.settle()
    assert recorder.count_unsettled() == 2
    assert recorder.settle()
    outcome = next(iter(impatient.read(CHAIN))).to_dict()["outcome"]
    assert (outcome["result"]["dropped"], outcome["error"]) == (2, "first")


def test_a_chain_that_cannot_grow_has_its_losses_told_elsewhere(other: Ledger, bundle: Any) -> None:
    """An imported chain is frozen: nothing can be sealed there, not even that something could not be."""
    from aver.ledger.bundle import import_bundle

    import_bundle(other, bundle)
    frozen = next(row.name for row in other.store.chains(other.tenant) if row.frozen)

    @aver.audit(chain=frozen, ledger=other, on_failure="log")
    def work() -> None: ...

    work()
    assert get_recorder(other).settle()
    (told,) = other.read("audit.dropped")
    result = told.to_dict()["outcome"]["result"]
    assert (result["dropped"], result["chain"]) == (2, frozen)


def test_concurrent_losses_are_counted(impatient: Ledger, stuck: Stuck, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "aver.audit")

    @aver.audit(chain=CHAIN, ledger=impatient, on_failure="log")
    async def work() -> None:
        await asyncio.sleep(0)

    async def scenario() -> None:
        with stuck():
            await asyncio.gather(*(work() for _ in range(20)))
        await work()

    asyncio.run(scenario())
    told = [
        record.to_dict()["outcome"]["result"]["dropped"] for record in impatient.read(CHAIN) if record.kind == "dropped"
    ]
    assert sum(told) == 40


@pytest.mark.more
def test_a_ledger_that_owes_a_dropped_record_is_kept_until_it_is_told(
    aver_home: Any, caplog: pytest.LogCaptureFixture
) -> None:
    import weakref

    ledger = aver.open_ledger()
    get_recorder(ledger).note_undrafted_loss(CHAIN, "record", "words")
    kept = weakref.ref(ledger)
    del ledger
    gc.collect()
    again = kept()
    assert again is not None
    assert get_recorder(again).settle()
    again.close()
    del again
    gc.collect()
    assert kept() is None


def test_a_signer_that_is_audited_itself_is_told_that_this_cannot_be(ledger: Ledger) -> None:
    """Sealing asks the signer; sealing the signer's call in the middle of that would wait for itself."""

    class Audited:
        def __init__(self) -> None:
            self.inner = aver.SeedSigner.generate()
            self.fingerprint = self.inner.fingerprint

        @aver.audit(chain=CHAIN, ledger=ledger)
        def sign(self, digest: str) -> Any:
            return self.inner.sign(digest)

    with pytest.raises(NotRecorded, match="in the middle of an append"):
        ledger.append("demo.other", aver.Capsule(type="tool"), signer=Audited())
    assert ledger.chains() == []


def test_reasoning_that_cannot_be_sealed_stops_the_body(impatient: Ledger, stuck: Stuck) -> None:
    reached = []

    @aver.audit(chain=CHAIN, ledger=impatient)
    def work(hold: AbstractContextManager[None]) -> None:
        aver.current().reason(analysis="think")
        with hold:
            aver.current().seal_reasoning()
        reached.append(1)

    with pytest.raises(NotRecorded, match="the reasoning could not be sealed"):
        work(stuck())
    assert reached == []
    assert kinds(impatient) == ["audit.intent", "audit.outcome"]
    *_, outcome = impatient.read(CHAIN)
    assert outcome.to_dict()["reasoning"]["analysis"] == "think", "it is not lost, only late"
