"""Verification while the server cancels statements, runs out of time or restarts: never `failed`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from aver import Capsule, Ledger, Unavailable, open_ledger
from aver.ledger.stores.protocol import NotALedger
from support.postgres_servers import Server, started

pytestmark = pytest.mark.more

CHAIN = "demo.outages"
ROUNDS = 8


def fill(ledger: Ledger) -> None:
    ledger.append_many(CHAIN, [Capsule(type="tool") for _ in range(1500)])
    ledger.sweep()


def verify_often(ledger: Ledger) -> set[str]:
    found = set()
    for _ in range(ROUNDS):
        try:
            found.add(ledger.verify().status)
        except Unavailable:
            found.add("unavailable")
    return found


def test_statements_are_cancelled(ledger: Ledger, url: str) -> None:
    fill(ledger)
    stop = threading.Event()
    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database() AND state = 'active'"

    def cancel() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not stop.wait(0.005):
                connection.execute(f"SELECT pg_cancel_backend(pid) {others}")

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        found = verify_often(ledger)
    finally:
        stop.set()
        thread.join()
    assert "failed" not in found
    assert ledger.verify().status == "verified"


def test_the_server_gives_statements_no_time(ledger: Ledger, url: str, owner: psycopg.Connection) -> None:
    fill(ledger)
    database = url.partition("?")[0].rpartition("/")[2]
    found = set()
    try:
        for limit in ("1ms", "2ms", "5ms", "20ms"):
            owner.execute(f"ALTER DATABASE {database} SET statement_timeout = '{limit}'")
            try:
                with open_ledger(url, create=False) as hurried:
                    found.add(hurried.verify().status)
            except Unavailable:
                found.add("unavailable")
    finally:
        owner.execute(f"ALTER DATABASE {database} RESET statement_timeout")
    assert "failed" not in found


@pytest.fixture
def server() -> Iterator[Server]:
    own = started()
    yield own
    own.remove()


def test_the_server_restarts(server: Server, aver_home: Path) -> None:
    aver_home.mkdir(mode=0o700)
    (aver_home / "config.toml").write_text("lock_timeout = 1\n")
    with open_ledger(server.url(server.database())) as ledger:
        fill(ledger)
        done = threading.Event()

        def restart() -> None:
            for _ in range(2):
                server.kill()
                server.start()
            done.set()

        thread = threading.Thread(target=restart)
        thread.start()
        found = set()
        while not done.is_set():
            found |= verify_often(ledger)
        thread.join()
        assert "failed" not in found
        assert ledger.verify().status == "verified"


def test_nothing_is_written_to_tables_that_a_newer_version_has_taken_over(
    ledger: Ledger, owner: psycopg.Connection
) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    owner.execute("INSERT INTO aver.schema_version (version) SELECT max(version) + 1 FROM aver.schema_version")
    try:
        with pytest.raises(NotALedger, match=r"newer Aver.*nothing was recorded"):
            ledger.append(CHAIN, Capsule(type="tool"))
        with pytest.raises(NotALedger, match="newer Aver"):
            open_ledger()
        assert ledger.head(CHAIN).count == 1
    finally:
        owner.execute("SET session_replication_role = replica")
        owner.execute("DELETE FROM aver.schema_version WHERE version = (SELECT max(version) FROM aver.schema_version)")
        owner.execute("RESET session_replication_role")
    assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 1
