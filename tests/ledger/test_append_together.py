"""Appending to several chains at once: in order, all or none, and no caller disturbs another."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aver
from aver import (
    BadInput,
    Blob,
    Capsule,
    Entry,
    Exists,
    Head,
    HeadMoved,
    IntegrityError,
    InvalidCapsule,
    Ledger,
    NotFound,
    Refused,
    Sealed,
    SeedSigner,
    Signature,
    Unavailable,
    of_kind,
    open_ledger,
    open_ledger_async,
)
from aver.capsule.draft import prepare_draft
from aver.clock import new_id
from aver.ledger.append import AppendPart, AppendRequest
from aver.ledger.bundle import export_bundle, import_bundle
from support.faults.storm import rage, rounds_wanted
from support.threads import at_once

pytestmark = pytest.mark.both_stores

A, B, C = CHAINS = ("demo.a", "demo.b", "demo.c")


def draft(result: Any = None, **more: Any) -> Capsule:
    return Capsule(type="tool", outcome={"result": result}, **more)


def results(ledger: Ledger, chain: str) -> list[Any]:
    return [record.to_dict()["outcome"]["result"] for record in ledger.read(chain)]


# --- order and references


def test_records_are_sealed_in_the_order_of_the_entries(ledger: Ledger) -> None:
    order = [B, A, B, C, A, B]
    records = ledger.append_together([Entry(chain, draft(number)) for number, chain in enumerate(order)])
    assert [record.chain for record in records] == order
    assert [record.sequence for record in records] == [0, 0, 1, 0, 1, 2]
    assert [record.to_dict()["outcome"]["result"] for record in records] == [0, 1, 2, 3, 4, 5]
    for chain in CHAINS:
        own = [record for record in records if record.chain == chain]
        assert list(ledger.read(chain)) == own
        assert [record.previous_hash for record in own] == [None, *(record.hash for record in own[:-1])]
        assert ledger.head(chain) == Head(ledger.id, "default", chain, len(own), own[-1].hash)
    assert [record.hash for record in ledger.find(type="tool")] == [record.hash for record in records]
    assert ledger.verify().status == "verified"


def test_chains_go_on_where_they_were(ledger: Ledger) -> None:
    ledger.append_many(A, [draft(), draft()])
    first = ledger.append_together([Entry(A, draft()), Entry(B, draft())])
    ledger.append(B, draft())
    second = ledger.append_together([Entry(B, draft()), Entry(A, draft()), Entry(B, draft())])
    assert [record.sequence for record in (*first, *second)] == [2, 0, 2, 3, 3]
    assert ledger.verify().status == "verified"


def test_records_of_one_call_refer_to_each_other(ledger: Ledger) -> None:
    """Ids are in the drafts before anything is sealed; so the first record can name the last, too."""
    asked, answered = new_id(), new_id()
    records = ledger.append_together(
        [
            Entry(A, of_kind(draft(id=asked), "call", refs={"answer": answered})),
            Entry(B, of_kind(draft(id=answered, parent_id=asked), "record", refs={"question": asked})),
        ]
    )
    contents = [record.to_dict() for record in records]
    blocks = [content["context"]["environment"]["aver"] for content in contents]
    assert [content["id"] for content in contents] == [asked, answered]
    assert contents[1]["parent_id"] == asked
    assert [block["refs"] for block in blocks] == [{"answer": answered}, {"question": asked}]
    assert ledger.get(answered) == records[1]
    assert ledger.verify().status == "verified"


def test_no_entries_are_no_records(ledger: Ledger) -> None:
    assert ledger.append_together([]) == []
    assert ledger.chains() == []


def test_one_entry_is_an_append(ledger: Ledger) -> None:
    [record] = ledger.append_together([Entry(A, draft(), key="k", after=ledger.head(A))])
    assert ledger.get("k") == record
    with pytest.raises(Exists) as caught:
        ledger.append(A, draft(), key="k")
    assert caught.value.record == record


def test_drafts_may_be_plain_objects_and_entries_any_iterable(ledger: Ledger) -> None:
    entries = (Entry(chain, {"type": "tool"}, key="twice") for chain in (A, B))
    with pytest.raises(BadInput, match="'twice'"):
        ledger.append_together(entries)
    assert len(ledger.append_together(Entry(chain, {"type": "tool"}) for chain in (A, B))) == 2


# --- refusals


class Broken:
    """A signer that fails at its n-th signature."""

    def __init__(self, at: int) -> None:
        self._signer = SeedSigner(bytes([9]) * 32)
        self._left = at
        self.fingerprint = self._signer.fingerprint

    def sign(self, digest: str) -> Signature:
        self._left -= 1
        if self._left == 0:
            raise RuntimeError("the token was pulled out")
        return self._signer.sign(digest)


MISSING = Blob(b"nowhere")
TAKEN_ID = new_id()
FROZEN = "import.frozen"


def moved(ledger: Ledger) -> Entry:
    return Entry(C, draft(), after=Head(ledger.id, "default", C, 7, "0" * 64))


REFUSALS: dict[str, tuple[Callable[[Ledger], Entry], type[Exception], str]] = {
    "a key that exists": (lambda _: Entry(C, draft(), key="taken"), Exists, "EXISTS"),
    "a head that moved": (moved, HeadMoved, "HEAD_MOVED"),
    "an id that exists": (lambda _: Entry(C, draft(id=TAKEN_ID)), Refused, "ID_TAKEN"),
    "a blob that is nowhere": (lambda _: Entry(C, draft(MISSING.reference)), BadInput, ""),
    "the chain meta": (lambda _: Entry("meta", draft()), BadInput, ""),
    "the chain keys": (lambda _: Entry("keys", draft()), BadInput, ""),
    "a name of imports": (lambda _: Entry(FROZEN, draft()), BadInput, ""),
    "no chain name": (lambda _: Entry("demo", draft()), BadInput, ""),
    "a key of the keys chain": (lambda _: Entry(C, draft(), key=f"key:{'0' * 16}"), BadInput, ""),
    "no key": (lambda _: Entry(C, draft(), key=""), BadInput, ""),
    "a key of the same call": (lambda _: Entry(C, draft(), key="first"), BadInput, ""),
    "an id of the same call": (lambda _: Entry(C, draft(id=FIRST_ID)), Refused, "ID_TAKEN"),
    "no draft": (lambda _: Entry(C, {"type": "banana"}), InvalidCapsule, ""),
    "the head of another chain": (lambda ledger: Entry(C, draft(), after=ledger.head(A)), BadInput, ""),
}
FIRST_ID = new_id()


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_one_refusal_refuses_all_and_leaves_nothing(ledger: Ledger, name: str, place: int) -> None:
    make, error, code = REFUSALS[name]
    ledger.append_together([Entry(A, draft(), key="taken"), Entry(B, draft(id=TAKEN_ID))])
    before = ledger.heads()
    blob = Blob(f"{name} {place}".encode())
    entries = [
        Entry(A, draft(id=FIRST_ID), key="first"),
        Entry("demo.new", draft(blob.reference), blobs=[blob]),
        Entry(B, draft()),
    ]
    with pytest.raises(error) as caught:
        ledger.append_together([*entries[:place], make(ledger), *entries[place:]])
    assert getattr(caught.value, "code", "") == code or not code
    assert ledger.heads() == before
    assert ledger.get("first") is None
    with pytest.raises(NotFound):
        ledger.blob(blob.digest)
    assert [record.sequence for record in ledger.append_together(entries)] == [1, 0, 1]
    assert ledger.verify().status == "verified"


def test_a_chain_that_was_imported_refuses_all(ledger: Ledger, other: Ledger, tmp_path: Path) -> None:
    """The name is that of a chain here, so only the transaction finds it frozen."""
    other.append("their.chain", draft())
    ledger.append(A, draft())
    import_bundle(ledger, export_bundle(other, tmp_path / "bundle", chains=["their.chain"]).path)
    [frozen] = [row for row in ledger.store.chains("default") if row.frozen and row.origin == "their.chain"]
    parts = [AppendPart(chain, [prepare_draft(draft())]) for chain in (A, "demo.new", frozen.name, B)]
    before = ledger.heads()
    with pytest.raises(Refused) as caught:
        ledger._appender.submit(AppendRequest(parts, ledger.signer(), refuse_existing=True))
    assert caught.value.code == "FROZEN"
    assert ledger.heads() == before


def test_a_refusal_carries_what_it_carries_for_one_append(ledger: Ledger) -> None:
    first = ledger.append(A, draft(), key="k")
    seen, actual = Head(ledger.id, "default", A, 0, None), ledger.head(A)
    with pytest.raises(Exists) as exists:
        ledger.append_together([Entry(B, draft()), Entry(C, draft(), key="k")])
    assert (exists.value.key, exists.value.record, exists.value.record.chain) == ("k", first, A)
    with pytest.raises(HeadMoved) as moved_on:
        ledger.append_together([Entry(B, draft()), Entry(A, draft(), after=seen)])
    assert (moved_on.value.expected, moved_on.value.actual) == (seen, actual)


def test_of_several_keys_that_exist_the_first_is_told(ledger: Ledger) -> None:
    records = ledger.append_many(A, [draft(), draft()], keys=["k1", "k2"])
    with pytest.raises(Exists) as caught:
        ledger.append_together([Entry(B, draft(), key="new"), *(Entry(B, draft(), key=k) for k in ("k2", "k1"))])
    assert (caught.value.key, caught.value.record) == ("k2", records[1])


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_signer_that_fails_halfway_leaves_nothing(ledger: Ledger, at: int) -> None:
    ledger.append(A, draft())
    before = ledger.heads()
    with pytest.raises(RuntimeError, match="pulled out"):
        ledger.append_together([Entry(chain, draft()) for chain in CHAINS], signer=Broken(at))
    assert ledger.heads() == before
    assert len(ledger.append_together([Entry(chain, draft()) for chain in CHAINS], signer=Broken(4))) == 3


def test_a_failure_among_the_inserts_fails_the_whole_commit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store takes the first part and not the second, with an error of Aver's own: none of the batch is written."""
    ledger.append(A, draft())
    before = ledger.heads()
    with ledger.store.transaction() as transaction:
        kind = type(transaction)
    whole = kind.add_records

    def add_records(self: Any, chain: Any, records: Any) -> None:
        if chain.name == B:
            raise IntegrityError("SCHEMA_INVALID", "the server stored 0 of 1 rows")
        whole(self, chain, records)

    monkeypatch.setattr(kind, "add_records", add_records)
    calls = [[A, C], [A, B], [C]]
    parts = [[AppendPart(chain, [prepare_draft(draft())]) for chain in chains] for chains in calls]
    with pytest.raises(IntegrityError, match="0 of 1"):
        ledger._appender._write_batch([AppendRequest(each, ledger.signer(), refuse_existing=True) for each in parts])
    monkeypatch.undo()
    assert ledger.heads() == before
    assert ledger.verify().status == "verified"


@pytest.mark.sqlite
def test_a_full_disk_fails_the_whole_call(ledger: Ledger) -> None:
    ledger.append_together([Entry(A, draft()), Entry(B, draft())])
    writer = ledger.store._connections._writer
    assert writer is not None
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    before = ledger.heads()
    entries = [Entry(chain, draft("x" * 8000)) for chain in (A, B, C) * 10]
    with pytest.raises(Unavailable, match="full"):
        ledger.append_together(entries)
    assert ledger.heads() == before
    writer.execute("PRAGMA max_page_count = 1000000")
    assert len(ledger.append_together([Entry(chain, draft("x" * 8000)) for chain in (A, B, C) * 10])) == 30
    assert ledger.verify().status == "verified"


# --- after


def test_after_is_the_head_before_the_call(ledger: Ledger) -> None:
    """In every entry of a chain, the second one too: nobody can know the hash of a record that is not sealed yet."""
    ledger.append(A, draft())
    head, empty = ledger.head(A), ledger.head(B)
    entries = [Entry(A, draft(), after=head), Entry(B, draft(), after=empty), Entry(A, draft(), after=head)]
    assert [record.sequence for record in ledger.append_together(entries)] == [1, 0, 2]
    later = ledger.head(A)
    with pytest.raises(HeadMoved) as caught:
        ledger.append_together([Entry(A, draft()), Entry(A, draft(), after=head)])
    assert caught.value.actual == later
    next_one = Head(ledger.id, "default", A, later.count + 1, "0" * 64)
    with pytest.raises(HeadMoved) as caught:
        ledger.append_together([Entry(A, draft(), after=later), Entry(A, draft(), after=next_one)])
    assert (caught.value.expected, caught.value.actual) == (next_one, later)
    assert ledger.head(A) == later


def test_threads_racing_after_the_same_two_heads(ledger: Ledger) -> None:
    for round_ in range(3):
        heads = [ledger.head(chain) for chain in (A, B)]

        def work(number: int, heads: list[Head] = heads) -> list[Sealed]:
            entries = [Entry(head.chain, draft(number), after=head) for head in heads]
            return ledger.append_together(entries[:: 1 if number % 2 else -1])

        outcomes = at_once(8, work)
        assert sum(isinstance(outcome, list) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, HeadMoved) for outcome in outcomes) == 7
        assert [ledger.head(chain).count for chain in (A, B)] == [round_ + 1, round_ + 1]
        assert results(ledger, A) == results(ledger, B)


# --- blobs


@pytest.mark.sample(4)
@pytest.mark.parametrize("bringing", [0, 1, 2])
def test_a_blob_of_one_entry_may_be_referred_to_by_all(ledger: Ledger, bringing: int) -> None:
    blob = Blob(b"one for all" * 100, "text/plain")
    entries = [
        Entry(chain, draft(blob.reference), blobs=[blob] if number == bringing else ())
        for number, chain in enumerate(CHAINS)
    ]
    ledger.append_together(entries)
    assert ledger.blob(blob.digest) == blob.data
    verdict = ledger.verify()
    assert verdict.status == "verified"
    assert verdict.check("blobs").count == 3


def test_the_same_blob_from_every_entry_is_stored_once(ledger: Ledger) -> None:
    blob = Blob(b"the same")
    ledger.append_together([Entry(chain, draft(blob.reference), blobs=[blob]) for chain in CHAINS])
    ledger.append_together([Entry(chain, draft(blob.reference)) for chain in CHAINS])
    assert ledger.verify().status == "verified"


# --- keys


def test_the_first_call_records_the_key_before_its_records(ledger: Ledger) -> None:
    ledger.append_together([Entry("a.first", draft()), Entry("z.last", draft())])
    assert [record.kind for record in ledger.find()] == ["key.create", "call", "call"]
    ledger.keys.rotate("ledger")
    ledger.append_together([Entry("z.last", draft()), Entry("a.first", draft())])
    rotation = list(ledger.read("keys"))[1].to_dict()
    assert {chain: head["count"] for chain, head in rotation["outcome"]["result"]["heads"].items()} == {
        "a.first": 1,
        "z.last": 1,
    }
    assert ledger.verify().status == "verified"


def test_an_agent_seals_all_of_its_call(ledger: Ledger) -> None:
    ledger.append(A, draft())
    ledger.keys.create("agent:bob")
    bob = ledger.keys.signer("agent:bob")
    records = ledger.append_together([Entry(chain, draft()) for chain in CHAINS], signer=bob)
    [entry] = ledger.keys.ring().entries_of("agent:bob")
    assert {record.signed_by for record in records} == {entry.fingerprint}
    assert ledger.head("keys").count == 2
    assert ledger.verify().status == "verified"


def test_a_key_of_another_purpose_is_refused(ledger: Ledger) -> None:
    ledger.append(A, draft())
    ledger.keys.create("policy:0")
    before = ledger.heads()
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            ledger.append_together([Entry(A, draft()), Entry(B, draft())], signer=ledger.keys.signer("policy:0"))
        assert caught.value.code == "KEY_MISMATCH"
    assert ledger.heads() == before


# --- group commit


def test_a_refusal_in_a_group_is_its_callers_alone(ledger: Ledger) -> None:
    """One commit for all of these, by hand, so that it is certain that they share it."""
    ledger.append(C, draft(), key="taken")
    blob = Blob(b"of the refused call")
    calls = [
        [Entry(A, draft(0)), Entry(B, draft(0), key="shared")],
        [
            Entry(B, draft(1)),
            Entry("demo.refused", draft(blob.reference), blobs=[blob]),
            Entry(C, draft(), key="taken"),
        ],
        [Entry(B, draft(2)), Entry(A, draft(2))],
        [Entry(A, draft(3)), Entry(C, draft(3), key="shared")],
        [Entry(C, draft(blob.reference))],
        [Entry(C, draft(5)), Entry(B, draft(5)), Entry(A, draft(5))],
    ]
    group = []
    for entries in calls:
        parts = [AppendPart(e.chain, [prepare_draft(e.draft, key=e.key, blobs=e.blobs)], e.after) for e in entries]
        group.append(AppendRequest(parts, ledger.signer(), refuse_existing=True))
    ledger._appender._write_batch(group)
    failures = [request.failure for request in group]
    assert [type(failure) for failure in failures] == [type(None), Exists, type(None), Exists, BadInput, type(None)]
    assert failures[3].record == group[0].result[1]
    assert (results(ledger, A), results(ledger, B), results(ledger, C)[1:]) == ([0, 2, 5], [0, 2, 5], [5])
    assert "demo.refused" not in ledger.chains()
    assert ledger.verify().status == "verified"


def test_threads_whose_calls_are_refused_and_others(ledger: Ledger) -> None:
    ledger.append(A, draft("first"), key="taken")

    def work(number: int) -> list[Sealed]:
        key = "taken" if number % 3 == 0 else None
        return ledger.append_together([Entry(B, draft(number)), Entry(A, draft(number), key=key)])

    for _ in range(3):
        outcomes = at_once(15, work)
        assert all(isinstance(each, list if number % 3 else Exists) for number, each in enumerate(outcomes))
    assert results(ledger, B) == results(ledger, A)[1:]
    assert len(results(ledger, B)) == 30
    assert ledger.verify().status == "verified"


@pytest.mark.more
def test_hundreds_of_callers_with_crossed_chains(ledger: Ledger) -> None:
    """With single appends among them. None is lost, none is doubled, and no call is torn."""
    orders = [(A, B, C), (C, B, A), (B, A, C), (C, A, B), (A, C), (B,)]

    def work(number: int) -> list[list[str]]:
        done = []
        for again in range(2):
            order = orders[(number + again) % len(orders)]
            entries = [
                Entry(chain, draft([number, again, len(order)]), key=f"{number}:{again}:{chain}") for chain in order
            ]
            done.append([record.hash for record in ledger.append_together(entries)])
        return done

    outcomes = at_once(150, work)
    hashes = [digest for outcome in outcomes for call in outcome for digest in call]
    stored = [record.hash for chain in CHAINS for record in ledger.read(chain)]
    assert len(hashes) == len(set(hashes))
    assert sorted(stored) == sorted(hashes)
    assert_calls_whole(result for chain in CHAINS for result in results(ledger, chain))
    assert ledger.verify().status == "verified"


def assert_calls_whole(found: Any) -> None:
    """Each result is (caller, call, how many records the call had): so many must be there."""
    counts: dict[tuple[int, int], list[int]] = {}
    for caller, call, count in found:
        counts.setdefault((caller, call), []).append(count)
    assert counts
    assert all(len(each) == each[0] for each in counts.values())


CALLER = """
import json, random, sys
from aver import Capsule, Entry, Exists, open_ledger
number = int(sys.argv[1])
picker = random.Random(number)
with open_ledger() as ledger:
    for call in range(40):
        names = ["race.0", "race.1", "race.2", f"race.new-{call // 4}"]
        picker.shuffle(names)
        names = names[: picker.randint(2, 4)]
        result = [number, call, len(names)]
        # For one call in eight all processes race: only one of theirs may happen.
        keys = [f"once:{call}"] if call % 8 == 7 else []
        entries = [
            Entry(name, Capsule(type="tool", outcome={"result": result}), key=keys.pop() if keys else None)
            for name in names
        ]
        try:
            print(json.dumps([record.hash for record in ledger.append_together(entries)]))
        except Exists:
            print("[]")
"""


@pytest.mark.more
def test_four_processes_with_crossed_chains(aver_home: Path) -> None:
    """They also race for making the ledger, the first key and every chain."""
    callers = [
        subprocess.Popen(
            [sys.executable, "-c", CALLER, str(number)], stdout=subprocess.PIPE, text=True, env=os.environ.copy()
        )
        for number in range(4)
    ]
    outputs = [[json.loads(line) for line in caller.communicate()[0].splitlines()] for caller in callers]
    assert [caller.returncode for caller in callers] == [0] * 4
    assert [len(output) for output in outputs] == [40] * 4
    hashes = [digest for output in outputs for call in output for digest in call]
    for call in range(7, 40, 8):
        assert sum(bool(output[call]) for output in outputs) == 1
    with open_ledger() as ledger:
        chains = [chain for chain in ledger.chains() if chain.startswith("race.")]
        stored = [record.hash for chain in chains for record in ledger.read(chain)]
        assert len(hashes) == len(set(hashes))
        assert sorted(stored) == sorted(hashes)
        assert_calls_whole(result for chain in chains for result in results(ledger, chain))
        assert ledger.verify().status == "verified"


@pytest.mark.more
def test_a_kill_storm_tears_no_call(new_ledger_url: Callable[[], str]) -> None:
    rounds = rounds_wanted(8)
    storm = rage(new_ledger_url(), rounds=rounds, seed=21, calls="together")
    assert len(storm.acknowledged) > 5 * rounds


# --- the same elsewhere


def test_the_async_ledger_has_it_too() -> None:
    async def scenario() -> None:
        async with open_ledger_async() as ledger:
            calls = [
                ledger.append_together([Entry(chain, draft([number, 0, 2])) for chain in ((A, B), (B, A))[number % 2]])
                for number in range(60)
            ]
            records = [record for call in await asyncio.gather(*calls) for record in call]
            assert len({record.hash for record in records}) == 120
            assert [(await ledger.head(chain)).count for chain in (A, B)] == [60, 60]
            with pytest.raises(BadInput):
                await ledger.append_together([Entry(A, draft()), Entry("meta", draft())])
            assert (await ledger.verify()).status == "verified"

    asyncio.run(scenario())


def test_what_was_appended_together_is_exported_verified_and_imported(
    ledger: Ledger, other: Ledger, tmp_path: Path
) -> None:
    blob = Blob(b"in a bundle, too")
    ledger.append_together([Entry(A, draft(blob.reference)), Entry(B, draft(), blobs=[blob]), Entry(A, draft())])
    bundle = export_bundle(ledger, tmp_path / "bundle").path
    assert aver.verify(bundle).status == "verified"
    import_bundle(other, bundle)
    assert sum(row.frozen for row in other.store.chains("default")) >= 2
    assert other.verify().status in ("verified", "qualified")
    [active] = ledger.keys.ring().entries_of("ledger")
    other.keys.trust(active)
    assert other.verify().status == "verified"


# --- any sequence of calls, beside a model

NUMBERS = iter(range(10**6))


@dataclass
class Model:
    """A ledger as a dictionary of lists. `accept` changes it, or says by which error the call is refused."""

    chains: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    blobs: set[str] = field(default_factory=set)

    def refusal(self, entries: list[Entry], brought: set[str]) -> type[Exception] | None:
        keys = [entry.key for entry in entries if entry.key is not None]
        ids = [entry.draft.id for entry in entries]
        taken = {each for chain in self.chains.values() for each in chain}
        if len(set(keys)) < len(keys):
            return BadInput
        if any(entry.after and entry.after.count != len(self.chains.get(entry.chain, ())) for entry in entries):
            return HeadMoved
        if {digest for entry in entries for digest in digests(entry)} - self.blobs - brought:
            return BadInput
        if self.keys.keys() & keys:
            return Exists
        if len(set(ids)) < len(ids) or taken & set(ids):
            return Refused
        return None


def digests(entry: Entry) -> set[str]:
    result = entry.draft.outcome.result
    return {result["blob"]["digest"]} if result else set()


CALLS = st.lists(
    st.lists(
        st.fixed_dictionaries(
            {
                "chain": st.sampled_from("abc"),
                "key": st.sampled_from([None, None, None, "k1", "k2", "k3", "k4"]),
                "after": st.sampled_from(["", "", "", "now", "stale"]),
                "id": st.sampled_from(["new", "new", "new", "new", "old"]),
                "blob": st.sampled_from(["", "", "0", "1"]),
                "brings": st.booleans(),
            }
        ),
        min_size=1,
        max_size=4,
    ),
    max_size=6,
)


@pytest.mark.more
@given(CALLS)
def test_any_sequence_of_calls_does_what_a_model_says(ledger: Ledger, calls: list[list[dict[str, Any]]]) -> None:
    example, model = next(NUMBERS), Model()
    blobs = {name: Blob(f"{example} {name}".encode()) for name in "01"}
    for call in calls:
        entries = []
        for each in call:
            chain = f"model{example}.{each['chain']}"
            used = [record_id for ids in model.chains.values() for record_id in ids]
            head = ledger.head(chain)
            stale = Head(head.ledger, head.tenant, chain, head.count + 1, "0" * 64)
            blob = blobs.get(each["blob"])
            entries.append(
                Entry(
                    chain,
                    draft(blob.reference if blob else None, id=used[0] if used and each["id"] == "old" else new_id()),
                    key=each["key"] and f"{example}:{each['key']}",
                    after={"": None, "now": head, "stale": stale}[each["after"]],
                    blobs=[blob] if blob and each["brings"] else (),
                )
            )
        brought = {blob.digest for entry in entries for blob in entry.blobs}
        refusal = model.refusal(entries, brought)
        if refusal is not None:
            with pytest.raises(refusal):
                ledger.append_together(entries)
        else:
            records = ledger.append_together(entries)
            model.blobs |= brought
            for entry, record in zip(entries, records, strict=True):
                model.chains.setdefault(entry.chain, []).append(record.id)
                if entry.key is not None:
                    model.keys[entry.key] = record.id
        stored = [chain for chain in ledger.chains() if chain.startswith(f"model{example}.")]
        assert {chain: [record.id for record in ledger.read(chain)] for chain in stored} == model.chains
    assert all(ledger.get(key).id == record_id for key, record_id in model.keys.items())
    for blob in blobs.values():
        assert (ledger.store.blob("default", blob.digest) is not None) == (blob.digest in model.blobs)
    if model.chains:
        assert ledger.verify().status == "verified"
