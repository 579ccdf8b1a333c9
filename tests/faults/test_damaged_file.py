"""A damaged file: whatever page is hit, no traceback, no false verdict, and the rest stays readable."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from aver import AverError, Capsule, Ledger, Sealed, open_ledger
from aver.ledger.stores.sqlite.schema import PAGE_SIZE

pytestmark = pytest.mark.more

CHAIN = "demo.damage"
RECORDS = 60


@pytest.fixture
def whole(aver_home: Path) -> list[Sealed]:
    """A ledger of a few dozen pages, closed, so that all of it is in the one file."""
    with open_ledger() as ledger:
        records = [ledger.append(CHAIN, Capsule(type="tool", outcome={"result": "x" * 3000})) for _ in range(RECORDS)]
        ledger.append("demo.other", Capsule(type="tool"))
        ledger.close_chain(CHAIN)
    return records


def pages_of(path: Path, table: str) -> set[int]:
    """The pages of a table or index, as SQLite itself tells."""
    connection = sqlite3.connect(path)
    try:
        return {row[0] for row in connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,))}
    except sqlite3.OperationalError:
        pytest.skip("this SQLite was built without dbstat")
    finally:
        connection.close()


def damage(path: Path, page: int, filler: bytes) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_SIZE)
        file.write((filler * PAGE_SIZE)[:PAGE_SIZE])


def attempt(work: object) -> object:
    """What work gives, or the error if it is one of ours; any other is a failure of the test."""
    try:
        return work()  # type: ignore[operator]
    except AverError as error:
        return error


@pytest.mark.parametrize("filler", [b"\x00", b"\xff", b"\xa5garbage"], ids=["zeros", "ones", "garbage"])
def test_any_page_may_be_hit(whole: list[Sealed], aver_home: Path, filler: bytes) -> None:
    path = aver_home / "ledger.db"
    backup = path.with_suffix(".backup")
    shutil.copy(path, backup)
    failed = 0
    for page in range(1, path.stat().st_size // PAGE_SIZE + 1):
        shutil.copy(backup, path)
        for extra in ("-wal", "-shm"):
            Path(f"{path}{extra}").unlink(missing_ok=True)
        damage(path, page, filler)
        opened = attempt(lambda: open_ledger(create=False))
        if isinstance(opened, AverError):
            failed += 1
            continue
        assert isinstance(opened, Ledger)
        with opened as ledger:
            verdict = attempt(ledger.verify)
            if isinstance(verdict, AverError):
                failed += 1
            else:
                if verdict.status == "failed":
                    failed += 1
                else:
                    # Nothing that matters was on it (a free page, or an index nobody needed).
                    assert {record.hash for record in ledger.read(CHAIN)} == {record.hash for record in whole}
            for reading in (
                ledger.chains,
                ledger.heads,
                lambda opened=ledger: list(opened.find()),
                lambda opened=ledger: opened.get(whole[7].hash),
            ):
                attempt(reading)
            attempt(lambda opened=ledger: opened.append("demo.after", Capsule(type="tool")))
    assert failed > 20


def test_a_hit_page_of_records_costs_the_records_on_it_and_no_others(whole: list[Sealed], aver_home: Path) -> None:
    path = aver_home / "ledger.db"
    leaves = sorted(pages_of(path, "records"))
    hit = leaves[len(leaves) // 2]
    damage(path, hit, b"\xa5")
    with open_ledger() as ledger:
        verdict = ledger.verify()
        assert verdict.status == "failed"
        bad = {
            finding.place.sequence
            for finding in verdict.findings
            if finding.place.chain == CHAIN and finding.status == "failed"
        }
        assert bad
        assert len(bad) < 10
        assert verdict.first_bad.place.chain == CHAIN
        assert verdict.first_bad.place.sequence == min(bad)
        assert verdict.chains == 4
        good = [sequence for sequence in range(RECORDS) if sequence not in bad]
        for sequence in good:
            assert list(ledger.read(CHAIN, sequence, sequence + 1)) == [whole[sequence]]
            assert ledger.get(whole[sequence].hash) == whole[sequence]
        assert ledger.verify("demo.other").status == "verified"
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == RECORDS
        assert ledger.append("demo.other", Capsule(type="tool")).sequence == 1


def test_a_file_cut_short(whole: list[Sealed], aver_home: Path) -> None:
    path = aver_home / "ledger.db"
    data = path.read_bytes()
    for size in [0, 1, 100, PAGE_SIZE, 2 * PAGE_SIZE + 17, len(data) // 2, len(data) - PAGE_SIZE, len(data) - 1]:
        path.write_bytes(data[:size])
        opened = attempt(lambda: open_ledger(create=False))
        if isinstance(opened, Ledger):
            with opened as ledger:
                verdict = attempt(ledger.verify)
                assert isinstance(verdict, AverError) or verdict.status == "failed", size


def test_a_log_of_garbage_hides_no_record(aver_home: Path) -> None:
    with open_ledger() as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (aver_home / name).write_bytes(b"\xa5" * 50_000)
    with open_ledger() as ledger:
        assert ledger.verify().status == "verified"
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 1
