"""Check that tables and indexes agree, as far as this is possible without the owner's rights.

The verifier reads through indexes; other programs may read the table. A row that only one of them has is seen by some
readers only. So Aver computes a checksum over every index twice in one snapshot: once from the index, once from the
table. If the extension amcheck is installed and may be used, PostgreSQL's own check of the index pages is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection
from psycopg.errors import DataCorrupted, IndexCorrupted
from psycopg.rows import TupleRow

__all__ = ["find_disagreements", "list_unchecked"]

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
