"""Check that the tables are those that Aver makes, by comparing PostgreSQL's catalogue with the expected objects.

The owner of a database can replace or add objects: a rule, a policy that hides rows, a table that inherits from ours,
an index over other columns, a trigger that stores other values. Each could show the verifier other rows than a reader.
Owners may tune everything that changes no result: storage, fill factors, autovacuum, tablespaces, statistics.
"""

from __future__ import annotations

from psycopg import Connection
from psycopg.rows import TupleRow

from aver.ledger.stores.postgres.schema import ONLY_AT_THE_END, REFUSE

__all__ = ["find_differences", "find_foreign_programs", "find_missing_guards"]

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
