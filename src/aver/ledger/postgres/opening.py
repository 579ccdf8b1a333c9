"""Opening a ledger on a server: is this a server that will do, are the tables there, are they ours, which version."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.errors import InsufficientPrivilege

from aver.clock import new_id, now
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.ledger.postgres import schema
from aver.ledger.postgres.pool import Connection

__all__ = ["check_server", "made_ready"]

OLDEST = 140000
"""PostgreSQL 14: the oldest whose makers still mend it, as this is written."""

_SERVER = """
SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
       current_setting('server_encoding'), pg_is_in_recovery()
"""
_STRANGE = """
SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
       WHEN 'p' THEN 'partitioned table' ELSE 'relation' END || ' ' || relname
FROM pg_class WHERE relnamespace = to_regnamespace('aver') AND relname = ANY (%s) AND relkind <> 'r' LIMIT 1
"""


def check_server(connection: Connection, name: str) -> bool:
    """Refuse a server that will not do. Tells whether it is a replica."""
    number, version, encoding, is_replica = connection.execute(_SERVER).fetchone() or (0, "?", "?", False)
    if number < OLDEST:
        raise BadInput(f"{name} is PostgreSQL {version}", advice=f"use PostgreSQL {OLDEST // 10000} or newer")
    if encoding != "UTF8":
        raise BadInput(
            f"{name} is a database in {encoding}, which cannot hold every text",
            advice="create one WITH ENCODING 'UTF8' TEMPLATE template0",
        )
    return bool(is_replica)


def made_ready(connection: Connection, name: str, *, create: bool, facts: Mapping[str, str] | None) -> None:
    """See that the ledger's tables are there and named; make or migrate them if `create`.

    `facts` is what a new ledger says of itself, where it is to be a copy of another.
    """
    strange = connection.execute(_STRANGE, (list(schema.TABLES),)).fetchone()
    if strange is not None:
        raise IntegrityError(
            "SCHEMA_INVALID",
            f"{name} was tampered with: {strange[0]} is not a table of the ledger",
            evidence=strange[0],
            advice="restore the database from a copy",
        )
    version = schema.version_of(connection)
    if version > schema.VERSION:
        raise BadInput(
            f"{name} was written by a newer Aver (schema {version}, this one knows {schema.VERSION})",
            advice="upgrade Aver",
        )
    if version < schema.VERSION and create:
        _migrated(connection, name, version)
        version = schema.VERSION
    if version == 0:
        advice = "aver seal makes one, where its role may; or else its owner: aver doctor --setup-sql"
        raise NotFound(f"there is no ledger at {name}", advice=advice)
    if not _named(connection, facts, create=create):
        raise NotFound(
            f"there is no ledger at {name} yet; its tables are ready", advice="the first aver seal begins it"
        )


def _migrated(connection: Connection, name: str, version: int) -> None:
    try:
        schema.migrate(connection)
    except InsufficientPrivilege as error:
        if version == 0:
            words, advice = f"there is no ledger at {name}, and this role may not make one", "--setup-sql"
        else:
            words = f"{name} has schema {version}, this Aver needs {schema.VERSION}, and this role may not change it"
            advice = "--setup-sql, or open it once as the owner of its tables"
        raise Unavailable(words, advice=f"have its owner run: aver doctor {advice}") from error


def _named(connection: Connection, facts: Mapping[str, str] | None, *, create: bool) -> bool:
    """Whether the ledger has its id. Whoever comes first gives it one, for ever."""
    query = "SELECT value FROM aver.ledger WHERE name = 'id'"
    if connection.execute(query).fetchone() is None and create:
        given = facts or {"id": new_id(), "created_at": now()}
        with connection.transaction():
            # One row decides between several who try; the others' facts are not mixed with it.
            first = connection.execute(
                "INSERT INTO aver.ledger VALUES ('id', %s) ON CONFLICT DO NOTHING", (given["id"],)
            )
            if first.rowcount:
                rest = [(name, value) for name, value in given.items() if name != "id"]
                connection.cursor().executemany("INSERT INTO aver.ledger VALUES (%s, %s) ON CONFLICT DO NOTHING", rest)
    return connection.execute(query).fetchone() is not None
