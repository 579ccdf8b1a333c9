"""The ledger's tables in PostgreSQL, and the migrations of older databases.

The tables are those of SQLite (see `stores.sqlite.schema`), in the schema `aver`. All text is compared byte by byte
(`COLLATE "C"`), so that order and uniqueness depend on no locale. The guards (triggers) protect the ledger from
mistakes of honest programs. They prove nothing, because the owner of the tables can remove them.

`aver.schema_version` has one row for each applied migration. Aver refuses a database of a newer version. A process that
creates or migrates the tables has an advisory lock meanwhile; the others wait and then find the work done.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection

__all__ = [
    "MIGRATIONS",
    "ONLY_AT_THE_END",
    "REFUSE",
    "SETUP_LOCK",
    "TABLES",
    "VERSION",
    "migrate",
    "read_version",
    "tables_sql",
]

TABLES = ("schema_version", "ledger", "chains", "records", "blobs")

SETUP_LOCK = 0x41764572
"""The number of the advisory lock for creating and migrating tables: `AvEr`."""

REFUSE = """
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END """
ONLY_AT_THE_END = """
BEGIN
    IF EXISTS (SELECT FROM added JOIN aver.chains USING (chain) WHERE frozen OR sequence < count) THEN
        RAISE EXCEPTION 'a record is only added at the end of an open chain' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END """
"""The bodies of the guards' functions."""

_MIGRATION_1 = f"""
CREATE TABLE aver.schema_version (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE aver.ledger (
    name  text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

CREATE TABLE aver.chains (
    chain  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    count  bigint NOT NULL DEFAULT 0,
    head   text COLLATE "C",
    frozen boolean NOT NULL DEFAULT false,
    origin text COLLATE "C"
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX chains_by_name ON aver.chains (tenant, name);

CREATE TABLE aver.records (
    record       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    chain        bigint NOT NULL,
    sequence     bigint NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    hash         text COLLATE "C" NOT NULL,
    signature    text COLLATE "C" NOT NULL,
    signature_pq text COLLATE "C" NOT NULL,
    signed_at    text COLLATE "C" NOT NULL,
    signed_by    text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    type         text COLLATE "C" NOT NULL,
    kind         text COLLATE "C",
    key          text COLLATE "C",
    session      text COLLATE "C",
    at           text COLLATE "C",
    canonical    bytea NOT NULL
);
CREATE UNIQUE INDEX records_by_place ON aver.records (chain, sequence);
CREATE INDEX records_by_hash ON aver.records (hash);
CREATE UNIQUE INDEX records_by_id ON aver.records (tenant, id);
CREATE UNIQUE INDEX records_by_key ON aver.records (tenant, key) WHERE key IS NOT NULL;

CREATE TABLE aver.blobs (
    tenant text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    media  text COLLATE "C" NOT NULL,
    data   bytea NOT NULL
);
CREATE UNIQUE INDEX blobs_by_digest ON aver.blobs (tenant, digest);

CREATE FUNCTION aver.refuse() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $${REFUSE}$$;

CREATE FUNCTION aver.only_at_the_end() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $${ONLY_AT_THE_END}$$;

CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON aver.records
    FOR EACH STATEMENT EXECUTE FUNCTION aver.refuse('a record is never changed or deleted');
CREATE TRIGGER records_only_at_the_end AFTER INSERT ON aver.records REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION aver.only_at_the_end();
CREATE TRIGGER chains_only_grow BEFORE UPDATE ON aver.chains
    FOR EACH ROW WHEN (
        OLD.frozen OR NEW.count < OLD.count OR NEW.chain <> OLD.chain OR NEW.tenant <> OLD.tenant
        OR NEW.name <> OLD.name OR (NEW.count = OLD.count AND NEW.head IS DISTINCT FROM OLD.head)
    ) EXECUTE FUNCTION aver.refuse('a chain only grows, and not once it is frozen');
CREATE TRIGGER chains_stay BEFORE DELETE OR TRUNCATE ON aver.chains
    FOR EACH STATEMENT EXECUTE FUNCTION aver.refuse('a chain is never deleted');
CREATE TRIGGER blobs_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON aver.blobs
    FOR EACH STATEMENT EXECUTE FUNCTION aver.refuse('a blob is never changed or deleted');
CREATE TRIGGER the_ledger_keeps_its_name BEFORE UPDATE OR DELETE OR TRUNCATE ON aver.ledger
    FOR EACH STATEMENT EXECUTE FUNCTION aver.refuse('a ledger keeps its name');
CREATE TRIGGER versions_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON aver.schema_version
    FOR EACH STATEMENT EXECUTE FUNCTION aver.refuse('what was applied stays applied');
"""

MIGRATIONS: tuple[str, ...] = (_MIGRATION_1,)
"""The migration at index N brings a ledger from version N to N + 1. A released migration is never edited."""

VERSION = len(MIGRATIONS)


def read_version(connection: Connection[Any]) -> int:
    """The version of the existing tables; 0 if there are none."""
    # Ask the catalogue's tables: to_regclass may answer from a cache that is older than our wait for the lock.
    exists = "SELECT FROM pg_tables WHERE schemaname = 'aver' AND tablename = 'schema_version'"
    if connection.execute(exists).fetchone() is None:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM aver.schema_version").fetchone()
    return 0 if row is None else int(row[0])


def migrate(connection: Connection[Any]) -> None:
    """Create the tables or bring them to the newest version, in one transaction."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SETUP_LOCK,))
        # Only now: another process may have migrated them while we waited.
        version = read_version(connection)
        if connection.execute("SELECT FROM pg_namespace WHERE nspname = 'aver'").fetchone() is None:
            connection.execute("CREATE SCHEMA aver")
        for number, migration in enumerate(MIGRATIONS[version:], version + 1):
            connection.execute(migration)
            connection.execute("INSERT INTO aver.schema_version (version) VALUES (%s)", (number,))


def tables_sql() -> str:
    """The statements of `migrate` for an empty database, to be run with `psql`."""
    applied = "".join(
        f"{migration.rstrip()}\n\nINSERT INTO aver.schema_version (version) VALUES ({number});\n"
        for number, migration in enumerate(MIGRATIONS, 1)
    )
    return f"SELECT pg_advisory_xact_lock({SETUP_LOCK});\nCREATE SCHEMA aver;\n{applied}"
