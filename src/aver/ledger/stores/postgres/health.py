"""The checks of `aver doctor` on a PostgreSQL server: settings, role, guards, clock, and whether indexes agree.

**Roles.** `aver_writer` and `aver_reader` are group roles, made once by the owner of the tables. Every login role
becomes a member of one of them. The writer reads everything, adds rows, and updates head rows. It cannot change or
delete a record, empty a table, turn off a guard, alter an object, or choose the numbers that the server gives to rows.

**Indexes.** Aver checks that tables and indexes agree, as far as this is possible without the owner's rights. The
verifier reads through indexes; other programs may read the table. A row that only one of them has is seen by some
readers only. So Aver computes a checksum over every index twice in one snapshot: once from the index, once from the
table. If the extension amcheck is installed and may be used, PostgreSQL's own check of the index pages is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from psycopg import Connection
from psycopg.errors import DataCorrupted, IndexCorrupted
from psycopg.rows import TupleRow

from aver.fast_dataclass import dataclass
from aver.ledger.stores.postgres import schema
from aver.ledger.stores.postgres.schema import TABLES, find_differences, find_missing_guards, tables_sql
from aver.ledger.stores.postgres.transaction import INSERT_COLUMNS

CONNECTIONS_WARNING = 0.8
"""Warn when more than this share of the server's connections is in use: it may soon refuse a new writer."""

CLOCK_SLACK = 60.0
"""Warn when the clocks of server and client differ by more seconds than this."""

LAG_WARNING = 60.0
"""Warn when a replica is more seconds behind its primary than this."""

_REVOKE_ADVICE = "have the owner run: aver doctor --roles-sql | psql"

_SETTINGS = {
    "fsync": "a crash of the machine can lose or damage records that append has confirmed",
    "full_page_writes": "a crash of the machine can leave torn pages",
}
_SERVER = """
SELECT current_setting('server_version'), current_database()::text, pg_database_size(current_database()),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       current_setting('max_connections')::integer, inet_server_addr() IS NOT NULL,
       coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false), clock_timestamp()
"""


@dataclass(frozen=True, slots=True)
class HealthRemark:
    """The result of one check."""

    status: Literal["ok", "warning", "problem"]
    subject: str
    words: str
    advice: str = ""


def check_health(connection: Connection[TupleRow]) -> Iterator[HealthRemark]:
    """Run all checks. They change nothing on the server."""
    yield from _check_server(connection)
    yield from _check_settings(connection)
    row = connection.execute(
        """SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn() IS DISTINCT FROM pg_last_wal_replay_lsn(),
                  extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())"""
    ).fetchone()
    if row is None or not row[0]:
        yield HealthRemark("ok", "server", "this is the primary")
    else:
        words = "this is a replica: it can be read and verified, and takes no appends"
        late = float(row[2] or 0)
        if row[1] and late > LAG_WARNING:
            yield HealthRemark(
                "warning", "server", f"{words}; it is {late:.0f} seconds behind", "look at the replication"
            )
        else:
            yield HealthRemark("ok", "server", words)
    yield from _check_role(connection)
    missing = find_missing_guards(connection)
    for name in missing:
        yield HealthRemark(
            "problem", "guards", f"the guard {name} is missing or turned off", "find out who did that, and why"
        )
    altered = find_differences(connection)
    for name in altered:
        yield HealthRemark("problem", "guards", f"{name} is not as Aver makes it", "find out who did that, and why")
    if not missing and not altered:
        yield HealthRemark("ok", "guards", "tables, indexes and guards are as Aver makes them")


def _check_server(connection: Connection[TupleRow]) -> Iterator[HealthRemark]:
    row = connection.execute(_SERVER).fetchone()
    assert row is not None
    version, database, size, used, most, is_remote, is_encrypted, clock = row
    words = f"PostgreSQL {version}, database {database} of {size / 1024**2:,.1f} MiB, schema {schema.VERSION}"
    yield HealthRemark("ok", "server", words)
    words = f"{used} of {most} connections in use"
    if used > CONNECTIONS_WARNING * most:
        yield HealthRemark("warning", "server", words, "raise max_connections, or run fewer processes")
    else:
        yield HealthRemark("ok", "server", words)
    if is_remote and not is_encrypted:
        yield HealthRemark("warning", "server", "the connection is not encrypted", "add sslmode=verify-full to the URL")
    apart = abs((clock - datetime.now(UTC)).total_seconds())
    if apart > CLOCK_SLACK:
        words = f"the server's clock and this machine's are {apart:.0f} seconds apart"
        yield HealthRemark("warning", "clock", words, "compare both with a good one")


def _check_settings(connection: Connection[TupleRow]) -> Iterator[HealthRemark]:
    for name, danger in _SETTINGS.items():
        value = _read_setting(connection, name)
        if value == "on":
            yield HealthRemark("ok", "server", f"{name} = on")
        else:
            yield HealthRemark(
                "problem", "server", f"{name} = {value}: {danger}", f"set {name} = on, and reload the server"
            )
    commit = _read_setting(connection, "synchronous_commit")
    words = f"synchronous_commit = {commit}"
    yield HealthRemark("ok", "server", words if commit == "on" else f"{words}; Aver's own transactions turn it on")
    if _read_setting(connection, "data_checksums") != "on":
        words = "the server keeps no checksums of its pages: damage is found late"
        yield HealthRemark(
            "warning", "server", words, "turn them on while the server is stopped: pg_checksums --enable"
        )
    if _read_setting(connection, "autovacuum") != "on":
        yield HealthRemark("warning", "server", "autovacuum = off: head rows will grow slow", "set autovacuum = on")


def _check_role(connection: Connection[TupleRow]) -> Iterator[HealthRemark]:
    unrestricted = unrestricted_reason(connection)
    if unrestricted is not None:
        yield HealthRemark("problem", "role", unrestricted, f"append as a member of {WRITER}, read as one of {READER}")
    else:
        may_write, lacking = missing_rights(connection)
        for what in lacking:
            yield HealthRemark(
                "problem", "role", f"this role may not {what}", f"make it a member of {WRITER} or {READER}"
            )
        if not lacking:
            able = "may add records, and cannot change them" if may_write else "may read, and cannot write"
            user = connection.execute("SELECT current_user::text").fetchone()
            yield HealthRemark("ok", "role", f"{'' if user is None else user[0]} {able}")
    for words in excess_rights(connection):
        yield HealthRemark("problem", "role", words, _REVOKE_ADVICE)


def _read_setting(connection: Connection[TupleRow], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return "" if row is None else str(row[0])


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


_INDEX_SUMS = {
    "chains_pkey": "SELECT count(*), sum(hash_record_extended(ROW (chain), 0)) FROM aver.chains",
    "chains_by_name": "SELECT count(*), sum(hash_record_extended(ROW (tenant, name), 0)) FROM aver.chains",
    "records_pkey": "SELECT count(*), sum(hash_record_extended(ROW (record), 0)) FROM aver.records",
    "records_by_place": "SELECT count(*), sum(hash_record_extended(ROW (chain, sequence), 0)) FROM aver.records",
    "records_by_hash": "SELECT count(*), sum(hash_record_extended(ROW (hash), 0)) FROM aver.records",
    "records_by_id": "SELECT count(*), sum(hash_record_extended(ROW (tenant, id), 0)) FROM aver.records",
    "records_by_key": "SELECT count(*), sum(hash_record_extended(ROW (tenant, key), 0)) FROM aver.records"
    " WHERE key IS NOT NULL",
    "blobs_by_digest": "SELECT count(*), sum(hash_record_extended(ROW (tenant, digest), 0)) FROM aver.blobs",
}
"""A checksum over exactly the columns of each index, so that PostgreSQL can compute it from the index alone."""

_BY_TABLE = frozenset({"enable_seqscan"})
_BY_INDEX = frozenset({"enable_indexscan", "enable_indexonlyscan"})
_SCAN_SETTINGS = (*_BY_TABLE, "enable_bitmapscan", *_BY_INDEX)
_AMCHECK = """
SELECT quote_ident(nspname), has_function_privilege(p.oid, 'EXECUTE')
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
JOIN pg_proc AS p ON pronamespace = extnamespace AND proname = 'bt_index_check' AND pronargs = 2
WHERE extname = 'amcheck'
"""


def find_disagreements(connection: Connection[TupleRow]) -> list[str]:
    """A message for every index that does not match its table, and for damaged pages."""
    found = []
    for index in _INDEX_SUMS:
        with _snapshot(connection):
            if _sum_index(connection, index, _BY_INDEX) != _sum_index(connection, index, _BY_TABLE):
                found.append(f"index {index} and its table disagree")
    found += _run_amcheck(connection)
    # The server counts pages whose checksum was wrong when it read them.
    failures = _fetch_one(
        connection, "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
    )
    if failures and failures[0]:
        found.append(f"the server has found {failures[0]} damaged pages in this database")
    return found


def list_unchecked(connection: Connection[TupleRow]) -> list[str]:
    """The checks that `find_disagreements` cannot carry out here, and why."""
    found = [
        f"index {index} could not be read by itself" for index in _INDEX_SUMS if not _is_read_alone(connection, index)
    ]
    amcheck = _fetch_one(connection, _AMCHECK)
    if amcheck is None:
        found.append("pages of indexes not checked: amcheck is not installed")
    elif not amcheck[1]:
        found.append("pages of indexes not checked: this role may not use amcheck")
    if _fetch_one(connection, "SELECT current_setting('data_checksums')") != ("on",):
        found.append("pages not checked: the server keeps no checksums of them")
    return found


def _is_read_alone(connection: Connection[TupleRow], index: str) -> bool:
    """Return whether the planner really uses the index when only index scans are allowed.

    If it does not, both checksums come from the table, and their comparison shows nothing.
    """
    with _snapshot(connection):
        _limit_scans(connection, _BY_INDEX)
        plan = connection.execute(f"EXPLAIN (FORMAT JSON) {_INDEX_SUMS[index]}").fetchone()
    return any(node.get("Index Name") == index for node in _index_only_scans(plan[0][0]["Plan"])) if plan else False


def _index_only_scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if node["Node Type"] == "Index Only Scan":
        yield node
    for inner in node.get("Plans", ()):
        yield from _index_only_scans(inner)


def _sum_index(connection: Connection[TupleRow], index: str, ways: frozenset[str]) -> TupleRow | None:
    _limit_scans(connection, ways)
    return _fetch_one(connection, _INDEX_SUMS[index])


def _limit_scans(connection: Connection[TupleRow], ways: frozenset[str]) -> None:
    """Allow the planner only these kinds of scans until the transaction ends."""
    for each in _SCAN_SETTINGS:
        connection.execute("SELECT set_config(%s, %s, true)", (each, "on" if each in ways else "off"))


@contextmanager
def _snapshot(connection: Connection[TupleRow]) -> Iterator[None]:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _run_amcheck(connection: Connection[TupleRow]) -> list[str]:
    amcheck = _fetch_one(connection, _AMCHECK)
    if amcheck is None or not amcheck[1]:
        return []
    found = []
    for index in _INDEX_SUMS:
        try:
            connection.execute(f"SELECT {amcheck[0]}.bt_index_check('aver.{index}'::regclass, true)")
        except (IndexCorrupted, DataCorrupted) as error:
            found.append(f"index {index}: {error.diag.message_primary}")
    return found


def _fetch_one(connection: Connection[TupleRow], query: str) -> TupleRow | None:
    return connection.execute(query).fetchone()
