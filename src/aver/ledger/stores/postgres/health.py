"""The checks of `aver doctor` on a server: its settings, the connected role, the guards, connections and clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

from psycopg import Connection
from psycopg.rows import TupleRow

from aver.fast_dataclass import dataclass
from aver.ledger.stores.postgres import schema
from aver.ledger.stores.postgres.catalogue import find_differences, find_missing_guards
from aver.ledger.stores.postgres.roles import READER, WRITER, excess_rights, missing_rights, unrestricted_reason

__all__ = ["HealthRemark", "check_health"]

CONNECTIONS_WARNING = 0.8
"""Warn when more than this share of the server's connections is in use: it may soon refuse a new writer."""

CLOCK_SLACK = 60.0
"""Warn when the clocks of server and client differ by more seconds than this."""

LAG_WARNING = 60.0
"""Warn when a replica is more seconds behind its primary than this."""

_REVOKE_ADVICE = "have the owner run: aver doctor --roles-sql | psql"

_SETTINGS = {
    "fsync": "a crash of the machine loses or damages what was acknowledged",
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
    yield from _check_replica(connection)
    yield from _check_role(connection)
    yield from _check_guards(connection)


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


def _check_replica(connection: Connection[TupleRow]) -> Iterator[HealthRemark]:
    row = connection.execute(
        """SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn() IS DISTINCT FROM pg_last_wal_replay_lsn(),
                  extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())"""
    ).fetchone()
    if row is None or not row[0]:
        yield HealthRemark("ok", "server", "this is the primary")
        return
    words = "this is a replica: it can be read and verified, and takes no appends"
    late = float(row[2] or 0)
    if row[1] and late > LAG_WARNING:
        yield HealthRemark("warning", "server", f"{words}; it is {late:.0f} seconds behind", "look at the replication")
    else:
        yield HealthRemark("ok", "server", words)


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


def _check_guards(connection: Connection[TupleRow]) -> Iterator[HealthRemark]:
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


def _read_setting(connection: Connection[TupleRow], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return "" if row is None else str(row[0])
