"""The database roles: a writer that cannot change what it wrote, and a reader that cannot write.

`aver_writer` and `aver_reader` are group roles, made once by the owner of the tables. Every login role becomes a member
of one of them. The writer reads everything, adds rows, and updates head rows. It cannot change or delete a record,
empty a table, turn off a guard, alter an object, or choose the numbers that the server gives to rows.
"""

from __future__ import annotations

from psycopg import Connection
from psycopg.rows import TupleRow

from aver.ledger.stores.postgres.schema import TABLES, tables_sql
from aver.ledger.stores.postgres.transaction import INSERT_COLUMNS

__all__ = ["READER", "WRITER", "excess_rights", "missing_rights", "roles_sql", "setup_sql", "unrestricted_reason"]

WRITER, READER = "aver_writer", "aver_reader"

_UPDATABLE_COLUMNS = ("count", "head", "frozen", "origin")


def roles_sql() -> str:
    """The SQL that creates the two roles and gives them exactly their rights. It may be run again."""
    return f"""\
DO $$ BEGIN
    IF to_regrole('{WRITER}') IS NULL THEN CREATE ROLE {WRITER} NOLOGIN; END IF;
    IF to_regrole('{READER}') IS NULL THEN CREATE ROLE {READER} NOLOGIN; END IF;
END $$;
REVOKE ALL ON SCHEMA aver FROM PUBLIC, {WRITER}, {READER};
REVOKE ALL ON ALL TABLES IN SCHEMA aver FROM PUBLIC, {WRITER}, {READER};
GRANT USAGE ON SCHEMA aver TO {WRITER}, {READER};
GRANT SELECT ON ALL TABLES IN SCHEMA aver TO {WRITER}, {READER};
GRANT INSERT ON aver.ledger, aver.blobs TO {WRITER};
GRANT INSERT (tenant, name), UPDATE ({", ".join(_UPDATABLE_COLUMNS)}) ON aver.chains TO {WRITER};
GRANT INSERT ({INSERT_COLUMNS}) ON aver.records TO {WRITER};
"""


def setup_sql() -> str:
    """The SQL that creates the tables and the roles, to be run with `psql` by the owner of the database."""
    return f"BEGIN;\n{tables_sql()}\n{roles_sql()}COMMIT;\n"


def unrestricted_reason(connection: Connection[TupleRow]) -> str | None:
    """Why no right or guard restricts the connected role; None if it is restricted."""
    row = connection.execute(
        """SELECT current_user::text, rolsuper, pg_has_role(current_user, nspowner, 'MEMBER'), rolcreaterole
           FROM pg_roles, pg_namespace WHERE rolname = current_user AND nspname = 'aver'"""
    ).fetchone()
    if row is None:
        return None
    user, is_superuser, is_owner, makes_roles = row
    if is_superuser:
        return f"{user} is a superuser: no guard restricts it"
    if is_owner:
        return f"{user} owns the ledger's tables: it can change anything in them"
    return f"{user} may make roles, and so give itself any right" if makes_roles else None


def excess_rights(connection: Connection[TupleRow]) -> list[str]:
    """Rights that only the owner should have, as `<role> may <right>`; those of the connected role come first."""
    granted = connection.execute(
        """WITH ours AS (SELECT c.oid, relname, relacl, relowner FROM pg_class AS c
                         WHERE relnamespace = to_regnamespace('aver') AND relkind = 'r'),
           granted AS (
               SELECT relname, grantee, privilege_type, NULL AS column FROM ours, aclexplode(relacl)
               WHERE grantee <> relowner
               UNION ALL
               SELECT relname, grantee, privilege_type, attname FROM ours JOIN pg_attribute ON attrelid = ours.oid,
                   aclexplode(attacl) WHERE grantee <> relowner
           )
           SELECT CASE grantee WHEN 0 THEN 'everybody' ELSE pg_get_userbyid(grantee)::text END, privilege_type, relname,
               "column"
           FROM granted ORDER BY grantee = to_regrole(quote_ident(current_user)) DESC, 1, 2, 3, 4"""
    )
    return [
        f"{role} may {right} {table}{'' if column is None else f'.{column}'}"
        for role, right, table, column in granted
        if not _is_allowed(right, table, column)
    ]


def _is_allowed(right: str, table: str, column: str | None) -> bool:
    if right == "SELECT":
        return True
    if right == "INSERT":
        return table in ("ledger", "blobs") or (column is not None and column not in ("record", "count", "head"))
    return right == "UPDATE" and table == "chains" and column in _UPDATABLE_COLUMNS


def missing_rights(connection: Connection[TupleRow]) -> tuple[bool, list[str]]:
    """Return whether the connected role may write, and the rights that it lacks for reading or writing."""
    row = connection.execute(
        f"""SELECT {", ".join(f"has_table_privilege('aver.{table}', 'SELECT')" for table in TABLES)},
            has_column_privilege('aver.records', 'canonical', 'INSERT'),
            has_column_privilege('aver.chains', 'name', 'INSERT'),
            has_column_privilege('aver.chains', 'head', 'UPDATE'),
            has_table_privilege('aver.blobs', 'INSERT')"""
    ).fetchone()
    reads, writes = (row or ())[: len(TABLES)], (row or ())[len(TABLES) :]
    names = ("add records", "add chains", "move head rows", "add blobs")
    lacking = [f"read {table}" for table, may in zip(TABLES, reads, strict=True) if not may]
    if any(writes):
        lacking += [name for name, may in zip(names, writes, strict=True) if not may]
    return any(writes), lacking
