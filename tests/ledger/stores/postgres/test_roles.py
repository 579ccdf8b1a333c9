"""Roles: a writer that cannot alter, a reader that cannot write, and a doctor who sees when it is otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from aver import Blob, Capsule, Ledger, Refused, Unavailable, open_ledger
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.imports.drop import drop_import
from aver.ledger.stores.postgres.health import HealthRemark, roles_sql
from support.postgres_servers import Server

CHAIN = "demo.roles"


@pytest.fixture
def logins(postgres: Server, url: str, owner: psycopg.Connection) -> Iterator[dict[str, str]]:
    """URLs by what may be done with them. Roles are of the whole server; so are their names."""
    if postgres.data is None:
        pytest.skip("on a server that is not ours, roles may not be ours to make")
    owner.execute(roles_sql())
    database = url.partition("?")[0].rpartition("/")[2]
    for login, group in (("ann_writes", "aver_writer"), ("bob_reads", "aver_reader"), ("eve", "")):
        owner.execute(f"DROP ROLE IF EXISTS {login}")
        owner.execute(f"CREATE ROLE {login} LOGIN {f'IN ROLE {group}' if group else ''}")
    names = {"writer": "ann_writes", "reader": "bob_reads", "stranger": "eve"}
    yield {right: postgres.url(database, user=login) for right, login in names.items()}
    for login in names.values():
        owner.execute(f"DROP OWNED BY {login}; DROP ROLE {login}")


@pytest.fixture
def writer(logins: dict[str, str]) -> Iterator[Ledger]:
    """The ledger by way of the writer, who also names it."""
    with open_ledger(logins["writer"]) as opened:
        yield opened


def health(url: str) -> list[HealthRemark]:
    with open_ledger(url, create=False) as ledger:
        return ledger.store.check_health()  # type: ignore[attr-defined,no-any-return]


def problems(url: str) -> list[str]:
    return [remark.words for remark in health(url) if remark.status == "problem" and "fsync" not in remark.words]


def test_the_writer_can_do_all_that_a_ledger_does(writer: Ledger, tmp_path: Path) -> None:
    blob = Blob(b"a large value" * 10_000)
    writer.append(CHAIN, Capsule(type="tool", outcome={"result": blob.reference}), blobs=[blob], key="k")
    writer.append_many(CHAIN, [Capsule(type="tool") for _ in range(20)])
    writer.close_chain(CHAIN)
    with open_ledger(tmp_path / "theirs.db") as theirs:
        theirs.append("their.chain", Capsule(type="tool"))
        import_bundle(writer, export_bundle(theirs, tmp_path / "bundle", chains=["their.chain"]).path)
    writer.keys.rotate("ledger")
    writer.append(CHAIN, Capsule(type="tool"))
    assert writer.verify().first_bad is None
    assert writer.store.schema_differences() == writer.store.find_damage() == []


HARM = [
    "UPDATE aver.records SET at = ''",
    "DELETE FROM aver.records",
    "TRUNCATE aver.records",
    "DELETE FROM aver.chains",
    "UPDATE aver.chains SET name = 'x'",
    "UPDATE aver.chains SET tenant = 'x'",
    "UPDATE aver.blobs SET data = ''",
    "DELETE FROM aver.blobs",
    "UPDATE aver.ledger SET value = 'x'",
    "INSERT INTO aver.schema_version VALUES (99)",
    "INSERT INTO aver.chains (tenant, name, count) VALUES ('default', 'demo.x', 7)",
    "INSERT INTO aver.chains (chain, tenant, name) OVERRIDING SYSTEM VALUE VALUES (7, 'default', 'demo.x')",
    "ALTER TABLE aver.records DISABLE TRIGGER ALL",
    "ALTER TABLE aver.records ADD x integer",
    "DROP TRIGGER records_stay ON aver.records",
    "DROP TABLE aver.records",
    "DROP INDEX aver.records_by_key",
    "CREATE TRIGGER mine BEFORE INSERT ON aver.records EXECUTE FUNCTION aver.refuse('x')",
    "CREATE TABLE aver.mine (x integer)",
    "CREATE INDEX mine ON aver.records (at)",
    "SET session_replication_role = replica",
    "BEGIN; LOCK TABLE aver.schema_version IN ACCESS EXCLUSIVE MODE",
]
"""What neither may do. Some of it a guard would stop; here the right is missing in the first place."""


def test_only_the_owner_drops_an_import(writer: Ledger, url: str, tmp_path: Path) -> None:
    (tmp_path / "their-home").mkdir()
    with open_ledger(tmp_path / "theirs.db", home=tmp_path / "their-home") as theirs:
        theirs.append("their.chain", Capsule(type="tool"))
        source = import_bundle(writer, export_bundle(theirs, tmp_path / "bundle").path).source
    before = writer.heads()
    with pytest.raises(Refused, match="may not remove any") as refused:
        drop_import(writer, source.digits)
    assert "as the owner" in str(refused.value)
    assert writer.heads() == before
    with open_ledger(url) as owners:
        drop_import(owners, source.digits)
    assert writer.chains() == ["keys", "meta"]
    assert problems(writer.store.url) == []
    assert writer.verify().first_bad is None


@pytest.mark.sample(4)
@pytest.mark.parametrize("role", ["writer", "reader"])
@pytest.mark.parametrize("statement", HARM)
def test_what_neither_may_do(writer: Ledger, logins: dict[str, str], role: str, statement: str) -> None:
    with psycopg.connect(logins[role], autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)


def test_the_reader_reads_and_verifies_and_cannot_write(writer: Ledger, logins: dict[str, str]) -> None:
    sealed = writer.append(CHAIN, Capsule(type="tool"), key="k")
    with open_ledger(logins["reader"]) as reader:
        assert reader.get("k") == sealed
        assert reader.verify().status == "verified"
        with pytest.raises(Unavailable, match="permission denied") as caught:
            reader.append(CHAIN, Capsule(type="tool"))
        assert "aver doctor" in caught.value.advice
        with psycopg.connect(logins["reader"], autocommit=True) as connection:
            for statement in (
                "INSERT INTO aver.chains (tenant, name) VALUES ('default', 'demo.x')",
                "INSERT INTO aver.ledger VALUES ('x', 'y')",
                "UPDATE aver.chains SET count = count + 1",
                "SELECT * FROM aver.chains FOR UPDATE",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)


def test_a_stranger_sees_nothing(writer: Ledger, logins: dict[str, str]) -> None:
    with pytest.raises(Unavailable, match="permission denied"):
        open_ledger(logins["stranger"])


def test_a_writer_cannot_make_or_migrate_tables(
    logins: dict[str, str], postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aver.ledger.stores.postgres import schema

    bare = postgres.database()
    try:
        with pytest.raises(Unavailable, match="may not make one") as caught:
            open_ledger(postgres.url(bare, user="ann_writes"))
        assert "--setup-sql" in caught.value.advice
    finally:
        postgres.drop(bare)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE aver.more (x integer);"))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(Unavailable, match="this Aver needs 2"):
        open_ledger(logins["writer"])


# --- what the doctor says


def test_writer_and_reader_are_as_they_should_be(writer: Ledger, logins: dict[str, str]) -> None:
    assert problems(logins["writer"]) == problems(logins["reader"]) == []
    words = [remark.words for remark in health(logins["writer"])]
    assert "ann_writes may add records, and cannot change them" in words
    assert "bob_reads may read, and cannot write" in [remark.words for remark in health(logins["reader"])]
    assert any(text.startswith("PostgreSQL ") for text in words)


def test_an_owner_and_a_superuser_are_named(writer: Ledger, logins: dict[str, str], owner: psycopg.Connection) -> None:
    assert problems(owner.info.dsn and writer.store.url.replace("ann_writes", "postgres")) == [
        "postgres is a superuser: no guard restricts it"
    ]
    owner.execute("GRANT postgres TO ann_writes WITH INHERIT FALSE")
    assert problems(logins["writer"]) == ["ann_writes owns the ledger's tables: it can change anything in them"]
    owner.execute("REVOKE postgres FROM ann_writes; ALTER ROLE ann_writes CREATEROLE")
    assert problems(logins["writer"]) == ["ann_writes may make roles, and so give itself any right"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("grant", "words"),
    [
        ("GRANT DELETE ON aver.records TO ann_writes", "ann_writes may DELETE records"),
        ("GRANT TRUNCATE ON aver.blobs TO aver_writer", "aver_writer may TRUNCATE blobs"),
        ("GRANT UPDATE (canonical) ON aver.records TO aver_writer", "aver_writer may UPDATE records.canonical"),
        ("GRANT UPDATE (name) ON aver.chains TO aver_writer", "aver_writer may UPDATE chains.name"),
        ("GRANT TRIGGER ON aver.records TO aver_reader", "aver_reader may TRIGGER records"),
        ("GRANT INSERT ON aver.records TO PUBLIC", "everybody may INSERT records"),
        ("GRANT UPDATE ON aver.chains TO eve", "eve may UPDATE chains"),
    ],
)
def test_a_right_too_many_is_named_and_taken_away(
    writer: Ledger, logins: dict[str, str], owner: psycopg.Connection, grant: str, words: str
) -> None:
    owner.execute(grant)
    assert problems(logins["writer"]) == [words]
    if "eve" not in grant and "ann" not in grant:
        owner.execute(roles_sql())
        assert problems(logins["writer"]) == []
    else:
        owner.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA aver FROM {grant.rpartition(' ')[2]}")


def test_a_right_too_few_is_named(writer: Ledger, logins: dict[str, str], owner: psycopg.Connection) -> None:
    owner.execute("REVOKE INSERT ON aver.blobs FROM aver_writer")
    assert problems(logins["writer"]) == ["this role may not add blobs"]
    owner.execute(roles_sql())
    owner.execute("REVOKE SELECT ON aver.blobs FROM aver_reader")
    assert problems(logins["reader"]) == ["this role may not read blobs"]
    owner.execute(roles_sql())


def test_guards_that_are_off_or_gone_are_named(
    writer: Ledger, logins: dict[str, str], owner: psycopg.Connection
) -> None:
    owner.execute("ALTER TABLE aver.records DISABLE TRIGGER records_stay; DROP TRIGGER blobs_stay ON aver.blobs")
    assert problems(logins["writer"]) == [
        "the guard blobs_stay is missing or turned off",
        "the guard records_stay is missing or turned off",
    ]


def test_settings_that_lose_records_are_named(
    writer: Ledger, logins: dict[str, str], owner: psycopg.Connection, postgres: Server
) -> None:
    fsync = owner.execute("SHOW fsync").fetchone()
    found = [remark.words for remark in health(logins["writer"]) if remark.status == "problem"]
    assert bool(found) == (fsync == ("off",))
    owner.execute("ALTER ROLE ann_writes SET synchronous_commit = off")
    words = [remark.words for remark in health(logins["writer"])]
    assert "synchronous_commit = off; Aver's own transactions turn it on" in words


def test_connections_that_are_used_up(logins: dict[str, str], owner: psycopg.Connection) -> None:
    with open_ledger(logins["writer"]) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        owner.execute("ALTER ROLE ann_writes CONNECTION LIMIT 1")
        with pytest.raises(Unavailable, match="too many connections") as caught:
            open_ledger(logins["writer"])
        assert "takes no more connections" in caught.value.advice
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 1  # whoever has one goes on


def test_a_commit_is_durable_whatever_the_role_prefers(
    logins: dict[str, str], owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen from within a transaction of Aver's, by a role, a database and a session that all prefer speed."""
    owner.execute("ALTER ROLE ann_writes SET synchronous_commit = off")
    owner.execute(f"ALTER DATABASE {owner.info.dbname} SET synchronous_commit = local")
    for preferred, expected in (
        ("off", "on"),
        ("local", "on"),
        ("remote_write", "on"),
        ("remote_apply", "remote_apply"),
    ):
        owner.execute(f"ALTER ROLE ann_writes SET synchronous_commit = {preferred}")
        with open_ledger(logins["writer"]) as ledger, ledger.store.transaction() as transaction:
            connection = transaction._connection  # type: ignore[attr-defined]
            assert connection.execute("SHOW synchronous_commit").fetchone() == (expected,)
    owner.execute(f"ALTER DATABASE {owner.info.dbname} RESET synchronous_commit")
