"""A replica is read and verified and says that it is one; dumps and copies of a server are ledgers like any other."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver import Capsule, Exists, Unavailable, open_ledger
from aver.ledger.meta_chain import sweep
from support.postgres_servers import USER, Server, new_place, program, run, server_at, started
from support.tamper import codes_at

pytestmark = pytest.mark.more

CHAIN = "demo.replica"


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    server = started(fsync="off", wal_level="replica", max_wal_senders="4")
    yield server
    server.remove()


def backed_up(server: Server, *options: str) -> Path:
    data = new_place()
    where = ["-h", str(server.socket.parent), "-U", USER, "-D", str(data)]
    run("pg_basebackup", *where, "-X", "stream", "-c", "fast", *options)
    return data


@pytest.fixture
def replica(primary: Server) -> Iterator[Server]:
    """A copy of the primary that follows it."""
    server = server_at(backed_up(primary, "-R"))
    yield server
    server.remove()


@pytest.fixture
def database(primary: Server) -> Iterator[str]:
    name = primary.lend()
    yield name
    primary.drop(name)


def caught_up(primary: Server, replica: Server) -> None:
    position = primary.execute("SELECT pg_current_wal_lsn()")[0][0]
    deadline = time.monotonic() + 60
    while not replica.execute(f"SELECT pg_last_wal_replay_lsn() >= '{position}'")[0][0]:
        assert time.monotonic() < deadline, "the replica does not follow"
        time.sleep(0.02)


def test_a_replica_is_read_verified_and_not_written(primary: Server, database: str, replica: Server) -> None:
    with open_ledger(primary.url(database)) as ledger:
        records = [ledger.append(CHAIN, Capsule(type="tool")) for _ in range(5)]
        caught_up(primary, replica)
        with open_ledger(replica.url(database)) as copy:
            assert list(copy.read(CHAIN)) == records
            verdict = copy.verify()
            assert verdict.status == "verified"
            assert "replica" in verdict.check("store").reason
            with pytest.raises(Unavailable, match="it is a replica") as caught:
                copy.append(CHAIN, Capsule(type="tool"))
            assert "primary" in caught.value.advice
            assert any("this is a replica" in remark.words for remark in copy.store.check_health())  # type: ignore[attr-defined]
            later = ledger.append(CHAIN, Capsule(type="tool"))
            caught_up(primary, replica)
            assert copy.get(later.hash) == later
        hosts = f"{replica.socket.parent},{primary.socket.parent}"
        with open_ledger(f"postgresql://{USER}@/{database}?host={hosts}&target_session_attrs=read-write") as found:
            assert found.append(CHAIN, Capsule(type="tool")).sequence == 6


def test_a_replica_that_is_behind_is_not_taken_for_the_newest(primary: Server, database: str, replica: Server) -> None:
    """It lacks what this machine has seen on the primary: that is said, and gone when it has caught up."""
    with open_ledger(primary.url(database)) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        sweep(ledger)
        caught_up(primary, replica)
        replica.execute("SELECT pg_wal_replay_pause()")
        ledger.append(CHAIN, Capsule(type="tool"))
        sweep(ledger)
        assert ledger.verify().status == "verified"
        with open_ledger(replica.url(database)) as copy:
            verdict = copy.verify()
            assert "ROLLBACK" in {code for code, _, _ in codes_at(verdict)}
            assert "replica" in verdict.check("store").reason
            replica.execute("SELECT pg_wal_replay_resume()")
            caught_up(primary, replica)
            assert copy.verify().status == "verified"


def test_a_replica_that_is_promoted_takes_appends(primary: Server, database: str, replica: Server) -> None:
    with open_ledger(primary.url(database)) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        caught_up(primary, replica)
    replica.execute("SELECT pg_promote()")
    with open_ledger(replica.url(database)) as promoted:
        assert promoted.append(CHAIN, Capsule(type="tool")).sequence == 1
        assert promoted.verify().status == "verified"


def test_an_open_ledger_finds_the_new_primary() -> None:
    """A failover under one URL: the old server is gone, its standby is promoted, and the next append goes there."""
    old = started(fsync="off", wal_level="replica", max_wal_senders="4")
    standby = server_at(backed_up(old, "-R"))
    try:
        hosts = f"{old.socket.parent},{standby.socket.parent}"
        with open_ledger(f"postgresql://{USER}@/{USER}?host={hosts}&target_session_attrs=read-write") as ledger:
            before = ledger.append(CHAIN, Capsule(type="tool"), key="k")
            caught_up(old, standby)
            old.kill()
            standby.execute("SELECT pg_promote()")
            assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 1
            with pytest.raises(Exists) as caught:
                ledger.append(CHAIN, Capsule(type="tool"), key="k")
            assert caught.value.record.hash == before.hash
            assert ledger.verify().status == "verified"
    finally:
        old.remove()
        standby.remove()


def test_a_dump_that_is_restored_is_the_same_ledger(primary: Server, database: str) -> None:
    with open_ledger(primary.url(database)) as ledger:
        records = ledger.append_many(CHAIN, [Capsule(type="tool") for _ in range(20)])
        sweep(ledger)
        assert ledger.verify().status == "verified"
        dumped = subprocess.run(
            [program("pg_dump"), primary.url(database)], check=True, capture_output=True, timeout=60
        ).stdout
        ledger.append(CHAIN, Capsule(type="tool"))
        sweep(ledger)
        restored = primary.database()
        try:
            command = [program("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", primary.url(restored)]
            subprocess.run(command, input=dumped, check=True, capture_output=True, timeout=60)
            with open_ledger(primary.url(restored), create=False) as copy:
                assert copy.id == ledger.id
                assert list(copy.read(CHAIN)) == records
                assert copy.store.schema_differences() == []
                assert copy.verify().status == "verified"
                assert ledger.verify().status == "verified"  # which notes the newer head
                assert {code for code, _, _ in codes_at(copy.verify())} >= {"ROLLBACK"}
        finally:
            primary.drop(restored)


def test_a_base_backup_that_is_started_is_the_same_ledger(primary: Server, database: str) -> None:
    with open_ledger(primary.url(database)) as ledger:
        records = ledger.append_many(CHAIN, [Capsule(type="tool") for _ in range(20)])
        data = backed_up(primary)
        ledger.append(CHAIN, Capsule(type="tool"))
    backup = server_at(data)
    try:
        with open_ledger(backup.url(database)) as copy:
            assert list(copy.read(CHAIN)) == records
            assert copy.verify().status == "verified"
            assert copy.append(CHAIN, Capsule(type="tool")).sequence == 20
    finally:
        backup.remove()
