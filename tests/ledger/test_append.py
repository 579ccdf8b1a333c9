"""Appending: keys used once, heads that moved, all or nothing, and one caller's failure is not another's."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from aver import (
    BadInput,
    Blob,
    Capsule,
    Exists,
    Head,
    HeadMoved,
    IntegrityError,
    InvalidCapsule,
    Ledger,
    NotFound,
    Sealed,
    SeedSigner,
    Signature,
    Unavailable,
    open_ledger,
)
from aver.capsule.blobs import INLINE_MAX
from aver.capsule.draft import prepare_draft
from aver.clock import new_id
from aver.ledger.slices import BLOBS_READ_TOGETHER
from aver.ledger.stores.group_commit import GroupCommit, WriteRequest
from aver.ledger.stores.protocol import SMALL_BLOB
from aver.ledger.stores.urls import is_on_server, path_from_url
from support.strategies import capsules
from support.tamper import first_bad
from support.threads import at_once

pytestmark = pytest.mark.both_stores

CHAIN = "demo.append"


def draft(**outcome: Any) -> Capsule:
    return Capsule(type="tool", outcome=outcome)


@pytest.mark.more
@given(capsules())
def test_whatever_may_be_written_is_stored_and_verifies(aver_home: Any, capsule: Capsule) -> None:
    with open_ledger() as ledger:
        sealed = ledger.append(CHAIN, replace(capsule, id=new_id()))  # Examples may repeat an id; a ledger may not.
        assert ledger.get(sealed.hash) == ledger.get(f"capsule://{CHAIN}/{sealed.sequence}") == sealed
        assert ledger.verify(CHAIN).status == "verified"


def test_records_are_chained(ledger: Ledger) -> None:
    records = [ledger.append(CHAIN, draft(result=number)) for number in range(5)]
    assert [record.sequence for record in records] == [0, 1, 2, 3, 4]
    assert [record.previous_hash for record in records] == [None, *(record.hash for record in records[:-1])]
    assert list(ledger.read(CHAIN)) == records
    assert ledger.head(CHAIN) == Head(ledger.id, "default", CHAIN, 5, records[-1].hash)
    assert records[0].to_dict()["context"]["environment"]["aver"]["chain"] == {
        "ledger": ledger.id,
        "tenant": "default",
        "name": CHAIN,
    }


def test_reading_slices(ledger: Ledger) -> None:
    records = ledger.append_many(CHAIN, [draft() for _ in range(7)])
    for start in (-3, 0, 1, 6, 7, 100, 2**70):
        for stop in (None, -1, 0, 3, 7, 100, 2**70):
            expected = records[max(start, 0) : len(records) if stop is None else max(stop, 0)]
            assert list(ledger.read(CHAIN, start, stop)) == expected


def test_a_key_used_before_gives_the_record_it_stands_for(ledger: Ledger) -> None:
    first = ledger.append(CHAIN, draft(), key="once")
    for chain in (CHAIN, "demo.other"):
        with pytest.raises(Exists) as caught:
            ledger.append(chain, draft(), key="once")
        assert caught.value.record == first
        assert caught.value.record.chain == CHAIN
    assert ledger.get("once") == first
    assert ledger.chains() == [CHAIN, "keys"]
    assert ledger.head(CHAIN).count == 1


def test_threads_racing_for_one_key(ledger: Ledger) -> None:
    for round_ in range(5):
        results = at_once(16, lambda number, r=round_: ledger.append(CHAIN, draft(result=number), key=f"race{r}"))
        won = [result for result in results if isinstance(result, Sealed)]
        lost = [result for result in results if isinstance(result, Exists)]
        assert len(won) == 1
        assert len(lost) == 15
        assert all(error.record == won[0] for error in lost)
    assert ledger.head(CHAIN).count == 5
    assert ledger.verify().status == "verified"


def test_ledgers_racing_for_one_key() -> None:
    """The same, each thread with a ledger of its own: only the store can decide."""

    def work(number: int) -> Sealed:
        with open_ledger() as mine:
            return mine.append(CHAIN, draft(result=number), key="race")

    results = at_once(8, work)
    assert sum(isinstance(result, Sealed) for result in results) == 1
    assert sum(isinstance(result, Exists) for result in results) == 7


def test_many_threads_lose_nothing(ledger: Ledger) -> None:
    def work(number: int) -> list[str]:
        return [ledger.append(f"demo.{number % 3}", draft(result=[number, i])).hash for i in range(25)]

    hashes = [digest for result in at_once(12, work) for digest in result]
    assert len(hashes) == len(set(hashes)) == 300
    stored = {record.hash for chain in ("demo.0", "demo.1", "demo.2") for record in ledger.read(chain)}
    assert stored == set(hashes)
    assert ledger.verify().status == "verified"


# --- append_many


def test_many_are_one_after_the_other(ledger: Ledger) -> None:
    records = ledger.append_many(
        CHAIN, [draft(result=number) for number in range(10)], keys=[f"k{i}" for i in range(10)]
    )
    assert [record.sequence for record in records] == list(range(10))
    assert not any(record.existed for record in records)
    assert ledger.append_many(CHAIN, []) == []


def test_records_that_existed_are_marked_and_stand_in_their_place(ledger: Ledger) -> None:
    before = ledger.append("demo.elsewhere", draft(), key="b")
    records = ledger.append_many(CHAIN, [draft() for _ in range(4)], keys=["a", "b", None, "a"])
    assert [record.existed for record in records] == [False, True, False, True]
    assert records[1] == before
    assert records[1].chain == "demo.elsewhere"
    assert records[3] == records[0]
    assert ledger.head(CHAIN).count == 2
    again = ledger.append_many(CHAIN, [draft(), draft()], keys=["a", "b"])
    assert all(record.existed for record in again)
    assert ledger.verify().status == "verified"


BAD = [
    {"type": "banana"},
    {"type": "tool", "outcome": {"metrics": {"x": float("nan")}}},
    {"type": "tool", "outcome": {"result": Blob(b"absent").reference}},
    {"type": "tool", "sequence": 3},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_all_or_nothing(ledger: Ledger, bad: Any, place: int) -> None:
    drafts: list[Any] = [draft() for _ in range(4)]
    drafts.insert(place, bad)
    with pytest.raises(BadInput):
        ledger.append_many(CHAIN, drafts)
    assert ledger.head(CHAIN).count == 0
    assert CHAIN not in ledger.chains()


def test_as_many_keys_as_drafts(ledger: Ledger) -> None:
    with pytest.raises(BadInput):
        ledger.append_many(CHAIN, [draft()], keys=["a", "b"])


# --- after


def test_after_a_head_that_moved(ledger: Ledger) -> None:
    empty = ledger.head(CHAIN)
    ledger.append(CHAIN, draft(), after=empty)
    with pytest.raises(HeadMoved) as caught:
        ledger.append(CHAIN, draft(), after=empty)
    assert (caught.value.expected, caught.value.actual) == (empty, ledger.head(CHAIN))
    one = ledger.head(CHAIN)
    with pytest.raises(HeadMoved):
        ledger.append(CHAIN, draft(), after=Head(one.ledger, one.tenant, one.chain, 1, "0" * 64))
    ledger.append(CHAIN, draft(), after=one)
    with pytest.raises(HeadMoved):
        ledger.append_many(CHAIN, [draft(), draft()], after=one)
    assert ledger.head(CHAIN).count == 2


@pytest.mark.parametrize("change", [{"ledger": "x"}, {"tenant": "x"}, {"chain": "demo.x"}])
def test_a_head_of_another_place_is_a_mistake(ledger: Ledger, change: dict[str, str]) -> None:
    head = Head.from_dict({**ledger.head(CHAIN).to_dict(), **change})
    with pytest.raises(BadInput):
        ledger.append(CHAIN, draft(), after=head)


def test_threads_racing_after_one_head(ledger: Ledger) -> None:
    for round_ in range(5):
        head = ledger.head(CHAIN)
        results = at_once(8, lambda number, h=head: ledger.append(CHAIN, draft(result=number), after=h))
        assert sum(isinstance(result, Sealed) for result in results) == 1
        assert sum(isinstance(result, HeadMoved) for result in results) == 7
        assert ledger.head(CHAIN).count == round_ + 1


def test_a_counter_built_on_after_counts_right(ledger: Ledger) -> None:
    """Optimistic retries: every thread adds one to the last result, and none is lost."""

    def add(number: int) -> None:
        for _ in range(5):
            while True:
                head = ledger.head(CHAIN)
                last = next(ledger.read(CHAIN, head.count - 1)).to_dict()["outcome"]["result"] if head.count else 0
                try:
                    ledger.append(CHAIN, draft(result=last + 1), after=head)
                except HeadMoved:
                    continue
                break

    assert at_once(6, add) == [None] * 6
    assert [record.to_dict()["outcome"]["result"] for record in ledger.read(CHAIN)] == list(range(1, 31))


# --- group commit


class Failing:
    """A signer that fails for as long as it is told to."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
        self._signer = SeedSigner(bytes([8]) * 32)
        self.fingerprint = self._signer.fingerprint

    def sign(self, digest: str) -> Signature:
        if self.error is not None:
            raise self.error
        return self._signer.sign(digest)


def test_one_refusal_fails_only_its_caller(ledger: Ledger) -> None:
    ledger.append(CHAIN, draft(), key="taken")

    def work(number: int) -> Sealed:
        return ledger.append(CHAIN, draft(result=number), key="taken" if number % 2 else None)

    for _ in range(10):
        results = at_once(12, work)
        assert all(isinstance(result, Exists if number % 2 else Sealed) for number, result in enumerate(results))
    assert ledger.head(CHAIN).count == 61
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize(
    "error", [RuntimeError("the token was pulled out"), Unavailable("the signer is away"), OSError(5, "io")]
)
def test_a_signer_that_fails_records_nothing(ledger: Ledger, error: Exception) -> None:
    ledger.append(CHAIN, draft())
    signer = Failing(error)
    with pytest.raises(type(error)):
        ledger.append(CHAIN, draft(), signer=signer)
    with pytest.raises(type(error)):
        ledger.append_many("demo.many", [draft() for _ in range(3)], signer=signer)
    assert ledger.head(CHAIN).count == 1
    assert ledger.head("demo.many").count == 0
    signer.error = None
    assert ledger.append(CHAIN, draft(), signer=signer).sequence == 1


def test_a_signer_that_fails_in_a_transaction_is_reported_as_itself(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "signer", lambda: Failing(Unavailable("the signer is away")))
    with pytest.raises(Unavailable, match="the signer is away"), ledger.transaction(CHAIN) as (_, append):
        append(CHAIN, prepare_draft(draft()))
    assert ledger.head(CHAIN).count == 0


@pytest.mark.more
def test_a_failed_commit_fails_its_whole_batch_and_stores_nothing_of_it(ledger: Ledger) -> None:
    """Whatever is batched with the failing request fails or was stored before or after it: acknowledged = stored."""
    ledger.append(CHAIN, draft())
    signer = Failing(RuntimeError("broken"))

    def work(number: int) -> Sealed:
        return ledger.append(CHAIN, draft(result=number), signer=signer if number % 4 == 0 else None)

    acknowledged = set()
    for _ in range(15):
        results = at_once(12, work)
        assert all(isinstance(result, RuntimeError) for result in results[::4])
        acknowledged |= {result.hash for result in results if isinstance(result, Sealed)}
        assert all(isinstance(result, Sealed | RuntimeError) for result in results)
    stored = {record.hash for record in list(ledger.read(CHAIN))[1:]}
    assert stored == acknowledged
    assert ledger.verify().status == "verified"


@pytest.mark.sqlite
def test_an_interrupted_leader_wakes_the_others() -> None:
    """Ctrl-C in the thread that commits: the others hear of it, and the next one works."""
    entered, release = threading.Event(), threading.Event()
    batches: list[int] = []

    def write(batch: Any) -> None:
        batches.append(len(batch))
        if len(batches) == 1:
            entered.set()
            release.wait()
            raise KeyboardInterrupt
        for request in batch:
            request.result = "written"

    commits: GroupCommit[str] = GroupCommit(write)
    outcomes: list[Any] = []

    def submit() -> None:
        request: WriteRequest[str] = WriteRequest()
        try:
            commits.submit(request)
            outcomes.append(request.result)
        except BaseException as error:
            outcomes.append(error)

    leader = threading.Thread(target=submit)
    leader.start()
    entered.wait()
    followers = [threading.Thread(target=submit) for _ in range(5)]
    for thread in followers:
        thread.start()
    while len(commits._waiting) < 5:  # they must be waiting when the leader falls
        pass
    release.set()
    for thread in (leader, *followers):
        thread.join()
    assert sum(isinstance(outcome, KeyboardInterrupt) for outcome in outcomes) == 1
    assert outcomes.count("written") == 5


@pytest.mark.sqlite
def test_waiting_requests_share_commits() -> None:
    entered, release = threading.Event(), threading.Event()
    batches: list[int] = []

    def write(batch: Any) -> None:
        batches.append(len(batch))
        if len(batches) == 1:
            entered.set()
            release.wait()
        for request in batch:
            request.result = "written"

    commits: GroupCommit[str] = GroupCommit(write)
    threads = [threading.Thread(target=lambda: commits.submit(WriteRequest())) for _ in range(300)]
    threads[0].start()
    entered.wait()
    for thread in threads[1:]:
        thread.start()
    while len(commits._waiting) < 299:
        pass
    release.set()
    for thread in threads:
        thread.join()
    assert batches == [1, 256, 43]


# --- full disk, as SQLite sees it


@pytest.mark.sqlite
def test_a_full_disk_fails_the_append_and_nothing_else(ledger: Ledger) -> None:
    ledger.append(CHAIN, draft())
    writer = ledger.store._connections._writer
    assert writer is not None
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    stored = 1
    try:
        while stored < 100:
            ledger.append(CHAIN, draft(result="x" * 8000))
            stored += 1
    except Unavailable as error:
        full = str(error)
    assert "full" in full
    assert ledger.head(CHAIN).count == stored
    with pytest.raises(Unavailable, match="full"):
        ledger.append_many(CHAIN, [draft(result="x" * 8000) for _ in range(10)])
    assert ledger.head(CHAIN).count == stored
    assert ledger.verify().status == "verified"
    writer.execute("PRAGMA max_page_count = 1000000")
    assert ledger.append(CHAIN, draft(result="x" * 8000)).sequence == stored
    assert ledger.verify().status == "verified"


# --- blobs


def test_blobs_are_stored_with_the_record_that_refers_to_them(ledger: Ledger) -> None:
    blob = Blob(b"\x00\xffbinary" * 1000, "application/x-test")
    sealed = ledger.append(CHAIN, draft(result={"file": blob.reference}), blobs=[blob])
    assert ledger.blob(blob.digest) == blob.data
    assert sealed.to_dict()["outcome"]["result"]["file"] == blob.reference
    again = ledger.append(CHAIN, draft(result=blob.reference))
    assert again.sequence == 1
    assert ledger.verify().check("blobs").count == 2


def test_a_reference_to_a_blob_that_is_nowhere_is_refused(ledger: Ledger) -> None:
    with pytest.raises(BadInput):
        ledger.append(CHAIN, draft(result=Blob(b"nowhere").reference))
    assert ledger.head(CHAIN).count == 0


def test_long_strings_become_blobs(ledger: Ledger) -> None:
    text = "é" * INLINE_MAX
    sealed = ledger.append(CHAIN, draft(result=text, summary=text))
    content = sealed.to_dict()
    digest = content["outcome"]["result"]["blob"]["digest"]
    assert ledger.blob(digest).decode() == text
    assert content["context"]["environment"]["aver"]["whole"]["outcome.summary"]["blob"]["digest"] == digest
    assert ledger.verify().status == "verified"


def test_a_refused_append_leaves_no_blob(ledger: Ledger) -> None:
    ledger.append(CHAIN, draft(), key="taken")
    blob = Blob(b"left behind?")
    with pytest.raises(Exists):
        ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob], key="taken")
    with pytest.raises(NotFound):
        ledger.blob(blob.digest)


def test_a_changed_blob_is_not_given_out(ledger: Ledger) -> None:
    from support.tamper import unguarded

    blob = Blob(b"original")
    ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
    unguarded(ledger).execute("UPDATE blobs SET data = ?", (b"\x00",))
    with pytest.raises(IntegrityError) as caught:
        ledger.blob(blob.digest)
    assert caught.value.code == "ARTIFACT_HASH_MISMATCH"
    assert first_bad(ledger.verify()) == ("ARTIFACT_HASH_MISMATCH", CHAIN, 0)


def test_blobs_that_are_read_together_are_each_held_to_their_digest(ledger: Ledger) -> None:
    """The verifier reads small blobs in one query, and large ones alone. Some records here bring many of them."""
    from support.tamper import unguarded

    small = [Blob(b"small %d" % number) for number in range(BLOBS_READ_TOGETHER + 6)]
    large = [Blob(bytes([number]) * (SMALL_BLOB + 1)) for number in range(2)]
    ledger.append(CHAIN, draft(result=[blob.reference for blob in small]), blobs=small)
    for blob in (*small[:3], *large, *small[:3]):
        ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
    assert ledger.verify().check("blobs").count == len(small) + 8
    with closing(unguarded(ledger)) as tampering:
        for blob, places in ((small[2], [0, 3, 8]), (small[-1], [0]), (large[1], [5])):
            for change in ({"data": b"x" * len(blob.data)}, {"data": blob.data + b"x"}, {"digest": "0" * 64}):
                code = "ARTIFACT_MISSING" if "digest" in change else "ARTIFACT_HASH_MISMATCH"
                column, value = change.popitem()
                tampering.execute(f"UPDATE blobs SET {column} = ? WHERE digest = ?", (value, blob.digest))
                found = [(each.code, each.place.sequence) for each in ledger.verify().findings]
                tampering.execute("UPDATE blobs SET digest = ? WHERE digest = ?", (blob.digest, "0" * 64))
                tampering.execute("UPDATE blobs SET data = ? WHERE digest = ?", (blob.data, blob.digest))
                assert found == [(code, place) for place in places]
    assert ledger.verify().status == "verified"


def test_a_blob_that_lost_its_bytes_is_restored_or_named_when_it_is_written_again(ledger: Ledger) -> None:
    """PostgreSQL keeps a blob as it is. So a record that brings the right bytes would refer to the wrong ones."""
    from support.tamper import unguarded

    blob, other = Blob(b"original"), Blob(b"another")
    ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
    ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
    unguarded(ledger).execute("UPDATE blobs SET data = ?", (b"0riginal",))
    with open_ledger() as again:
        if is_on_server(again.store.url):
            with pytest.raises(IntegrityError) as caught:
                again.append(CHAIN, draft(result=blob.reference), blobs=[blob, other])
            assert caught.value.code == "ARTIFACT_HASH_MISMATCH"
            assert blob.digest in caught.value.message
            assert again.head(CHAIN).count == 2
        else:
            again.append(CHAIN, draft(result=blob.reference), blobs=[blob, other])
            assert again.blob(blob.digest) == b"original"
            assert again.head(CHAIN).count == 3
        for _ in range(2):
            again.append(CHAIN, draft(result=other.reference), blobs=[other])


def test_a_blob_that_loses_its_bytes_between_appends_of_one_process_is_restored_or_named(ledger: Ledger) -> None:
    from support.tamper import unguarded

    blob = Blob(b"original")
    for _ in range(3):
        ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
    with closing(unguarded(ledger)) as tampering:
        tampering.execute("UPDATE blobs SET data = ?", (b"0riginal",))
    if is_on_server(ledger.store.url):
        with pytest.raises(IntegrityError) as caught:
            ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
        assert caught.value.code == "ARTIFACT_HASH_MISMATCH"
        assert ledger.head(CHAIN).count == 3
    else:
        ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
        assert ledger.blob(blob.digest) == b"original"
        assert ledger.verify().status == "verified"


@pytest.mark.sqlite
def test_restoring_a_blob_leaves_the_guard_in_place(ledger: Ledger) -> None:
    blob = Blob(b"original")
    ledger.append(CHAIN, draft(result=blob.reference), blobs=[blob])
    path = path_from_url(ledger.store.url)
    with closing(sqlite3.connect(path)) as connection, connection:
        ((sql,),) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'blobs_stay_as_they_are'")
        connection.execute("DROP TRIGGER blobs_stay_as_they_are")
        connection.execute("UPDATE blobs SET data = x'00'")
        connection.execute(sql)
    assert first_bad(ledger.verify()) == ("ARTIFACT_HASH_MISMATCH", CHAIN, 0)
    with open_ledger() as again:
        again.append(CHAIN, draft(result=blob.reference), blobs=[blob])
        assert again.verify().status == "verified"
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError, match="never changed"):
        connection.execute("UPDATE blobs SET data = x'00'")


# --- names and lookups


@pytest.mark.parametrize(
    "name",
    [
        "",
        "demo",
        "Demo.x",
        "demo.",
        ".x",
        "a b.x",
        "demo.x/y",
        "demo.../x",
        "x" * 33 + ".y",
        "demo." + "y" * 129,
        "demo.é",
        "demo.x\n",
        "demo..x",
        "demo.\x00",
    ],
)
def test_bad_chain_names(ledger: Ledger, name: str) -> None:
    for call in (
        lambda: ledger.append(name, draft()),
        lambda: ledger.append_many(name, [draft()]),
        lambda: ledger.head(name),
        lambda: ledger.read(name),
    ):
        with pytest.raises(BadInput):
            call()


@pytest.mark.parametrize("name", ["meta", "keys"])
def test_reserved_chains_are_written_by_the_ledger_alone(ledger: Ledger, name: str) -> None:
    for call in (lambda: ledger.append(name, draft()), lambda: ledger.append_many(name, [draft()])):
        with pytest.raises(BadInput):
            call()


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "reference",
    [
        "",
        "nothing",
        "0" * 64,
        "00000000-0000-4000-8000-000000000000",
        "�",
        "\x00",
        "é" * 5000,
        f"capsule://{CHAIN}/1",
        f"capsule://{CHAIN}/9223372036854775807",
        f"capsule://sha3_{'0' * 64}",
        "capsule://meta/0",
        "capsule://no.such/0",
    ],
    ids=lambda value: repr(value[:30]),
)
def test_what_is_not_there_is_none(ledger: Ledger, reference: str) -> None:
    ledger.append(CHAIN, draft())
    assert ledger.get(reference) is None


def test_every_way_to_get_a_record(ledger: Ledger) -> None:
    sealed = ledger.append(CHAIN, draft(), key="the key")
    other = ledger.append("demo.other", draft())
    for reference in (sealed.hash, sealed.id, "the key", sealed.uri, f"capsule://{CHAIN}/0", f"capsule://{sealed.id}"):
        found = ledger.get(reference)
        assert found == sealed
        assert found.chain == CHAIN
    assert ledger.get(f"capsule://{CHAIN}/sha3_{sealed.hash}") == sealed
    assert ledger.get(f"capsule://{CHAIN}/sha3_{other.hash}") is None


@pytest.mark.parametrize("digest", ["", "x", "0" * 64, "\ud800", "../../etc/passwd", "A" * 64])
def test_a_blob_that_is_not_there(ledger: Ledger, digest: str) -> None:
    with pytest.raises(NotFound):
        ledger.blob(digest)


def test_finding(ledger: Ledger) -> None:
    ledger.append("demo.a", Capsule(type="tool", context={"session_id": "s1"}))
    middle = ledger.append("demo.a", Capsule(type="chat", context={"session_id": "s2"}))
    ledger.append("demo.b", Capsule(type="agent", context={"session_id": "s1"}))
    found = lambda **conditions: [record.type for record in ledger.find(**conditions)]  # noqa: E731
    assert found(session="s1") == ["tool", "agent"]
    assert found(type="chat") == ["chat"]
    assert found(kind="call") == ["tool"]
    assert found(kind="turn") == ["chat"]
    assert found(kind="record") == ["agent"]
    assert found(chain="demo.a") == ["tool", "chat"]
    assert found(since=middle.signed_at, chain="demo.a") == ["chat"]
    assert found(until=middle.signed_at, chain="demo.a") == ["tool"]
    assert found(limit=2) == ["system", "tool"]
    assert found(limit=0) == []
    for nothing in (
        {"type": "\ud800"},
        {"session": "s1' OR 1=1 --"},
        {"start": 2**70},
        {"since": "9999"},
        {"kind": "\x00"},
    ):
        assert found(**nothing) == []


@pytest.mark.more
def test_finding_pages_through_more_than_one_slice(ledger: Ledger) -> None:
    ledger.append_many(CHAIN, [draft() for _ in range(2_300)])
    assert len(list(ledger.find(chain=CHAIN))) == 2_300
    assert len(list(ledger.find(limit=1_500))) == 1_500


def test_a_foreign_record_is_found_by_the_kind_that_its_type_gives(ledger: Ledger) -> None:
    """Records of other software have no kind of their own: `find` and `kind_of` must agree on it."""
    from aver.capsule.sealed import seal_content

    ledger.append("demo.real", draft())
    for number, type_ in enumerate(("tool", "chat", "agent")):
        with ledger.store.transaction() as transaction:
            row = transaction.add_chain("default", f"demo.foreign{number}")
            sealed = seal_content(Capsule(type=type_).to_dict(), SeedSigner(bytes(32)), at="2026-01-01T00:00:00+00:00")
            transaction.add_records(row, [(sealed, (sealed.id, type_, None, None, None, None))])
            transaction.update_head(row)
        assert sealed in list(ledger.find(kind=sealed.kind))


def test_a_closed_ledger_says_so(aver_home: Any) -> None:
    ledger = open_ledger()
    ledger.append(CHAIN, draft())
    ledger.close()
    ledger.close()
    for call in (lambda: ledger.append(CHAIN, draft()), lambda: list(ledger.read(CHAIN)), lambda: ledger.verify()):
        with pytest.raises(Unavailable):
            call()


def test_an_invalid_draft_costs_nothing(ledger: Ledger) -> None:
    with pytest.raises(InvalidCapsule):
        ledger.append(CHAIN, Capsule(type="banana"))
    assert ledger.chains() == []
