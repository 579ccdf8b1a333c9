"""Copying a ledger to another store: verbatim, resumable at any point, and only ever longer than what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import BadInput, Blob, Capsule, IntegrityError, Ledger, Refused, SeedSigner, open_ledger
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.meta_chain import sweep
from aver.ledger.stores.copy import BATCH_SIZE, CopyResult, copy_ledger
from aver.ledger.stores.protocol import Store
from aver.ledger.stores.urls import open_store
from support.tamper import codes_at, unguarded

WAYS = ["sqlite to postgres", "postgres to sqlite", "sqlite to sqlite", "postgres to postgres"]
ODD = "a\0b\1c é"


class Ends:
    """Where a copy comes from and where it goes to."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        self.stores: list[Store] = []

    def stores_opened(self) -> tuple[Store, Store]:
        source = open_store(self.source, create=False, timeout=30)
        self.stores.append(source)
        target = open_store(self.target, create=True, timeout=30, facts=source.facts())
        self.stores.append(target)
        return source, target

    def copy(self, **options: Any) -> CopyResult:
        return copy_ledger(*self.stores_opened(), **options)


@pytest.fixture(params=WAYS)
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ends]:
    def place(kind: str, name: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / f"{name}.db")
        made: str = request.getfixturevalue("new_database")()
        return made

    source, _, target = request.param.split()
    both = Ends(place(source, "source"), place(target, "target"))
    yield both
    for store in both.stores:
        store.close()


@pytest.fixture
def source(ends: Ends, tmp_path: Path) -> Iterator[Ledger]:
    """Chains that grew in turn, keys, a blob, odd characters, a rotation, closed and imported chains, two tenants."""
    blob = Blob(b"a large value" * 9_999, "text/x-log")
    with open_ledger(tmp_path / "theirs.db", signer=SeedSigner(bytes(32))) as theirs:
        theirs.append_many("their.chain", [Capsule(type="tool") for _ in range(3)])
        bundle = export_bundle(theirs, tmp_path / "bundle", chains=["their.chain"]).path
    with open_ledger(ends.source, tenant="red") as red:
        red.append("demo.a", Capsule(type="tool"), key="k")
    with open_ledger(ends.source) as ledger:
        for number in range(40):
            draft = Capsule(type="tool", context={"session_id": ODD}, outcome={"result": number})
            ledger.append(f"demo.{number % 3}", draft, key=f"k{number}" if number % 2 else None)
        ledger.append("demo.blob", Capsule(type="tool", outcome={"result": blob.reference}), blobs=[blob])
        ledger.close_chain("demo.0")
        ledger.keys.rotate("ledger")
        import_bundle(ledger, bundle)
        sweep(ledger)
        yield ledger


def contents(url: str, tenant: str) -> dict[str, Any]:
    """Everything that can be read of a tenant, in the order in which it is found."""
    with open_ledger(url, tenant=tenant, create=False) as ledger:
        rows = [(row.name, row.count, row.head, row.frozen, row.origin) for row in ledger.store.chains(tenant)]
        columns = []
        for row in ledger.store.chains(tenant):
            with ledger.store.read_rows(row, 0, row.count) as stored:
                columns += [(row.name, item.sequence, item.columns, item.tenant) for item in stored]
        return {
            "id": ledger.id,
            "facts": ledger.store.facts(),
            "chains": rows,
            "columns": columns,
            "found": [(record.chain, record.hash, record.signature, record.canonical) for record in ledger.find()],
            "odd": [record.hash for record in ledger.find(session=ODD)],
            "by key": [(ledger.get(f"k{number}") or ledger.signer).__class__.__name__ for number in range(40)],
        }


def judged(url: str, tenant: str) -> dict[str, str]:
    """Every check of a verdict on a tenant's chains, none of which may have failed."""
    with open_ledger(url, tenant=tenant, create=False) as ledger:
        verdict = ledger.verify()
    assert verdict.first_bad is None
    return {check.name: check.status for check in verdict.checks}


@pytest.mark.more
def test_a_copy_is_the_same_ledger(ends: Ends, source: Ledger) -> None:
    copied = ends.copy()
    assert copied.tenants == ("default", "red")
    assert copied.copied == copied.records == sum(head.count for head in source.heads()) + 2
    for tenant in copied.tenants:
        assert contents(ends.target, tenant) == contents(ends.source, tenant)
        judged(ends.source, tenant)  # What this machine remembers of the ledger, it remembers of the copy, too.
        assert judged(ends.target, tenant) == judged(ends.source, tenant)
    with open_ledger(ends.target) as copy:
        digest = next(iter(copy.find(chain="demo.blob"))).to_dict()["outcome"]["result"]["blob"]["digest"]
        assert copy.blob(digest) == b"a large value" * 9_999
        assert copy.store.blob("default", digest).media == "text/x-log"  # type: ignore[union-attr]
        [imported] = [row for row in copy.store.chains("default") if row.frozen and row.origin == "their.chain"]
        with pytest.raises(Refused, match="imported"):
            copy.append_reserved(imported.name, Capsule(type="tool"), key=None)
        assert copy.append("demo.0", Capsule(type="tool")).sequence == source.head("demo.0").count


def test_again_copies_nothing_and_a_longer_one_goes_on(ends: Ends, source: Ledger) -> None:
    ends.copy()
    assert ends.copy().copied == 0
    source.append_many("demo.1", [Capsule(type="tool") for _ in range(BATCH_SIZE + 5)])
    source.append("demo.new", Capsule(type="tool"))
    assert ends.copy().copied == BATCH_SIZE + 6
    assert contents(ends.target, "default") == contents(ends.source, "default")


def test_one_tenant_alone_and_then_the_others(ends: Ends, source: Ledger) -> None:
    assert ends.copy(tenants=["red"]).copied == 2
    with open_ledger(ends.target, tenant="default") as copy:
        assert copy.chains() == []
    ends.copy()
    assert contents(ends.target, "default") == contents(ends.source, "default")
    with pytest.raises(BadInput, match="no tenant blue"):
        ends.copy(tenants=["blue"])


class Interrupted(Exception):
    pass


def test_broken_off_anywhere_it_goes_on(ends: Ends, source: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every transaction, and inside every one: what is there is a beginning, and the next run completes it."""
    monkeypatch.setattr("aver.ledger.stores.copy.BATCH_SIZE", 7)
    from_store, to_store = ends.stores_opened()
    write = type(to_store).write
    budget = 0

    def stingy(self: Store, work: Callable[..., Any], expected: Any) -> Any:
        nonlocal budget

        def dying(transaction: Any) -> Any:
            result = work(transaction)
            if budget == 0:
                raise Interrupted
            return result

        done = write(self, dying, expected)
        budget -= 1
        return done

    monkeypatch.setattr(type(to_store), "write", stingy)
    rounds = 0
    while True:
        budget = rounds % 3
        rounds += 1
        try:
            copy_ledger(from_store, to_store)
            break
        except Interrupted:
            for row in to_store.chains("default"):
                assert row.count == 0 or from_store.hash_at(row_of(from_store, row.name), row.count - 1) == row.head
    monkeypatch.undo()
    assert rounds > 5
    for tenant in ("default", "red"):
        assert contents(ends.target, tenant) == contents(ends.source, tenant)


def row_of(store: Store, name: str) -> Any:
    row = store.chain("default", name)
    assert row is not None
    return row


def test_a_copy_that_went_its_own_way_is_refused(ends: Ends, source: Ledger) -> None:
    ends.copy()
    with open_ledger(ends.target) as copy:
        copy.append("demo.0", Capsule(type="tool"))
    with pytest.raises(Refused, match=r"demo\.0") as caught:
        ends.copy()
    assert caught.value.code == "DIVERGED"
    source.append("demo.0", Capsule(type="tool"))  # as long, and different
    with pytest.raises(Refused, match=r"demo\.0"):
        ends.copy()


def test_a_copy_with_a_chain_of_its_own_is_refused(ends: Ends, source: Ledger) -> None:
    ends.copy()
    with open_ledger(ends.target) as copy:
        copy.append("demo.mine", Capsule(type="tool"))
    with pytest.raises(Refused, match=r"demo\.mine"):
        ends.copy()


def test_another_ledger_is_refused_even_if_it_is_empty(ends: Ends, source: Ledger) -> None:
    with open_ledger(ends.target) as other:
        assert other.id != source.id
    with pytest.raises(Refused) as caught:
        ends.copy()
    assert caught.value.code == "OTHER_LEDGER"


def test_damage_is_copied_as_it_is_and_found_there(ends: Ends, source: Ledger) -> None:
    unguarded(source).execute("UPDATE records SET signature = ? WHERE sequence = 2", ("0" * 128,))
    ends.copy()
    with open_ledger(ends.target, create=False) as copy:
        assert {("SIG_INVALID", f"demo.{number}", 2) for number in range(3)} <= codes_at(copy.verify())


def test_a_gap_ends_the_copy_where_it_is(ends: Ends, source: Ledger) -> None:
    number = row_of(source.store, "demo.1").number
    unguarded(source).execute("DELETE FROM records WHERE chain = ? AND sequence = 5", (number,))
    with pytest.raises(IntegrityError, match=r"demo\.1 .* has no record 5"):
        ends.copy()


def test_a_ledger_without_records(ends: Ends) -> None:
    with open_ledger(ends.source) as empty:
        assert ends.copy() == CopyResult((), 0, 0, 0)
        with open_ledger(ends.target, create=False) as copy:
            assert copy.id == empty.id
