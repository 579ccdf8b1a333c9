"""The ledger's tables in PostgreSQL: their migrations, and a check that they are those that Aver makes.

The tables are those of SQLite (see `stores.sqlite.schema`), in the schema `aver`. All text is compared byte by byte
(`COLLATE "C"`), so that order and uniqueness depend on no locale. The guards (triggers) protect the ledger from
mistakes of honest programs. They prove nothing, because the owner of the tables can remove them.

`aver.schema_version` has one row for each applied migration. Aver refuses a database of a newer version. A process that
creates or migrates the tables has an advisory lock meanwhile; the others wait and then find the work done.

`find_differences` compares PostgreSQL's catalogue with the expected objects. The owner of a database can replace or add
objects: a rule, a policy that hides rows, a table that inherits from ours, an index over other columns, a trigger that
stores other values. Each could show the verifier other rows than a reader. Owners may tune everything that changes no
result: storage, fill factors, autovacuum, tablespaces, statistics.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from aver.ledger.stores.protocol import NotALedger

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


def refuse_newer_version(name: str, version: int) -> None:
    """Raise `NotALedger` for tables that a newer Aver has made or migrated."""
    if version > VERSION:
        raise NotALedger(
            f"{name} was written by a newer Aver (schema {version}, this one knows {VERSION})",
            advice="nothing was recorded; upgrade Aver",
        )


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


_TEXT = 'text collate "C"'
_COLUMNS = {
    "schema_version": ("version integer not null", "applied_at timestamp with time zone not null default now()"),
    "ledger": (f"name {_TEXT} not null", f"value {_TEXT} not null"),
    "chains": (
        "chain bigint not null identity a",
        f"tenant {_TEXT} not null",
        f"name {_TEXT} not null",
        "count bigint not null default 0",
        f"head {_TEXT}",
        "frozen boolean not null default false",
        f"origin {_TEXT}",
    ),
    "records": (
        "record bigint not null identity a",
        "chain bigint not null",
        "sequence bigint not null",
        *(f"{name} {_TEXT} not null" for name in ("tenant", "hash", "signature", "signature_pq")),
        *(f"{name} {_TEXT} not null" for name in ("signed_at", "signed_by", "id", "type")),
        *(f"{name} {_TEXT}" for name in ("kind", "key", "session", "at")),
        "canonical bytea not null",
    ),
    "blobs": (*(f"{name} {_TEXT} not null" for name in ("tenant", "digest", "media")), "data bytea not null"),
}
_INDEXES = {
    "schema_version_pkey": "UNIQUE INDEX schema_version_pkey ON aver.schema_version USING btree (version)",
    "ledger_pkey": "UNIQUE INDEX ledger_pkey ON aver.ledger USING btree (name)",
    "chains_pkey": "UNIQUE INDEX chains_pkey ON aver.chains USING btree (chain)",
    "chains_by_name": "UNIQUE INDEX chains_by_name ON aver.chains USING btree (tenant, name)",
    "records_pkey": "UNIQUE INDEX records_pkey ON aver.records USING btree (record)",
    "records_by_place": "UNIQUE INDEX records_by_place ON aver.records USING btree (chain, sequence)",
    "records_by_hash": "INDEX records_by_hash ON aver.records USING btree (hash)",
    "records_by_id": "UNIQUE INDEX records_by_id ON aver.records USING btree (tenant, id)",
    "records_by_key": "UNIQUE INDEX records_by_key ON aver.records USING btree (tenant, key) WHERE (key IS NOT NULL)",
    "blobs_by_digest": "UNIQUE INDEX blobs_by_digest ON aver.blobs USING btree (tenant, digest)",
}
_GUARDS = {
    "records_stay": ("records", "BEFORE DELETE OR UPDATE OR TRUNCATE", "a record is never changed or deleted"),
    "chains_stay": ("chains", "BEFORE DELETE OR TRUNCATE", "a chain is never deleted"),
    "blobs_stay": ("blobs", "BEFORE DELETE OR UPDATE OR TRUNCATE", "a blob is never changed or deleted"),
    "the_ledger_keeps_its_name": ("ledger", "BEFORE DELETE OR UPDATE OR TRUNCATE", "a ledger keeps its name"),
    "versions_stay": ("schema_version", "BEFORE DELETE OR UPDATE OR TRUNCATE", "what was applied stays applied"),
}
_TRIGGERS = {
    **{
        name: f"TRIGGER {name} {when} ON aver.{table} FOR EACH STATEMENT EXECUTE FUNCTION aver.refuse('{words}')"
        for name, (table, when, words) in _GUARDS.items()
    },
    "records_only_at_the_end": "TRIGGER records_only_at_the_end AFTER INSERT ON aver.records"
    " REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION aver.only_at_the_end()",
    "chains_only_grow": "TRIGGER chains_only_grow BEFORE UPDATE ON aver.chains FOR EACH ROW"
    " WHEN ((old.frozen OR (new.count < old.count) OR (new.chain <> old.chain) OR (new.tenant <> old.tenant)"
    " OR (new.name <> old.name) OR ((new.count = old.count) AND (new.head IS DISTINCT FROM old.head))))"
    " EXECUTE FUNCTION aver.refuse('a chain only grows, and not once it is frozen')",
}
_FUNCTIONS = {"refuse": REFUSE, "only_at_the_end": ONLY_AT_THE_END}
_SEQUENCES = ("chains_chain_seq", "records_record_seq")

_EXPECTED = {
    **{f"table {name}": "; ".join(("plain", *columns)) for name, columns in _COLUMNS.items()},
    **{f"sequence {name}": "" for name in _SEQUENCES},
    **{f"index {name}": f"CREATE {text}" for name, text in _INDEXES.items()},
    **{f"trigger {name}": f"CREATE {text}" for name, text in _TRIGGERS.items()},
    **{f"function {name}": f"plpgsql search_path=pg_catalog, pg_temp{body}" for name, body in _FUNCTIONS.items()},
}
_MAY_BE_MISSING = ("trigger ", "function ")

_ACTUAL_QUERY = """
WITH ours AS (SELECT * FROM pg_class WHERE relnamespace = to_regnamespace('aver')),
kinds (relkind, kind) AS (VALUES ('r'::"char", 'table'), ('S', 'sequence'), ('v', 'view'), ('m', 'materialized view'),
                                 ('p', 'partitioned table'), ('f', 'foreign table'), ('c', 'type')),
columns AS (
    SELECT attrelid, string_agg(concat(
        '; ', attname, ' ', format_type(atttypid, atttypmod), ' collate ' || quote_ident(collname),
        CASE WHEN attnotnull THEN ' not null' END, ' default ' || pg_get_expr(adbin, adrelid),
        ' identity ' || nullif(attidentity::text, ''), ' generated ' || nullif(attgenerated::text, '')),
        '' ORDER BY attnum) AS list
    FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid
)
SELECT kind, relname::text, CASE WHEN kind <> 'table' THEN '' WHEN relpersistence = 'p' AND amname = 'heap'
    AND NOT (relrowsecurity OR relforcerowsecurity OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = ours.oid))
    THEN 'plain' ELSE 'strange' END || CASE WHEN kind = 'table' THEN list ELSE '' END
FROM ours JOIN kinds USING (relkind) LEFT JOIN pg_am ON pg_am.oid = relam LEFT JOIN columns ON attrelid = ours.oid
UNION ALL
SELECT 'index', i.relname, pg_get_indexdef(i.oid)
    || CASE WHEN indisvalid AND indisready AND indislive AND indimmediate THEN '' ELSE ' (not in use)' END
FROM ours JOIN pg_index ON indrelid = ours.oid JOIN pg_class AS i ON i.oid = indexrelid
UNION ALL
SELECT 'trigger', tgname, pg_get_triggerdef(pg_trigger.oid) FROM ours JOIN pg_trigger ON tgrelid = ours.oid
WHERE NOT tgisinternal
UNION ALL
SELECT 'rule', rulename, '' FROM ours JOIN pg_rewrite ON ev_class = ours.oid WHERE relkind = 'r'
UNION ALL
SELECT 'policy', polname, '' FROM ours JOIN pg_policy ON polrelid = ours.oid
UNION ALL
SELECT 'constraint', conname, '' FROM ours JOIN pg_constraint ON conrelid = ours.oid AND contype NOT IN ('p', 'n')
UNION ALL
SELECT 'table', inhrelid::regclass::text, 'inherits' FROM ours JOIN pg_inherits ON inhparent = ours.oid
WHERE relkind = 'r'
UNION ALL
SELECT 'function', proname, concat(lanname, ' ', CASE WHEN prosecdef THEN 'security definer ' END,
    array_to_string(proconfig, ' '), prosrc)
FROM pg_proc JOIN pg_language ON pg_language.oid = prolang WHERE pronamespace = to_regnamespace('aver')
"""


def find_differences(connection: Connection[TupleRow]) -> list[str]:
    """Objects that differ from those that this Aver makes, each as `<kind> <name>`.

    A missing guard is not a difference, because it hides no row; `aver doctor` reports it.
    """
    found: dict[str, str] = {}
    for kind, name, text in connection.execute(_ACTUAL_QUERY):
        found[f"{kind} {name}"] = text
    wrong = [name for name, text in found.items() if _EXPECTED.get(name) != text]
    gone = [name for name in _EXPECTED if not name.startswith(_MAY_BE_MISSING) and name not in found]
    return sorted({*wrong, *gone})


def find_foreign_programs(connection: Connection[TupleRow]) -> list[str]:
    """Triggers and rules that Aver did not make. They run while a record is added, and could undo it silently."""
    found = connection.execute(
        """SELECT 'trigger', tgname, pg_get_triggerdef(pg_trigger.oid)
           FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid
           WHERE relnamespace = to_regnamespace('aver') AND NOT tgisinternal
           UNION ALL
           SELECT 'rule', rulename, '' FROM pg_rewrite JOIN pg_class ON ev_class = pg_class.oid
           WHERE relnamespace = to_regnamespace('aver')"""
    )
    return [f"{kind} {name}" for kind, name, text in found if _EXPECTED.get(f"{kind} {name}") != text]


def find_missing_guards(connection: Connection[TupleRow]) -> list[str]:
    """The guards that are missing or turned off."""
    query = """SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
               WHERE relnamespace = to_regnamespace('aver') AND tgenabled IN ('O', 'A')"""
    active = {row[0] for row in connection.execute(query)}
    return sorted(_TRIGGERS.keys() - active)
