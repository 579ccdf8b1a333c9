"""Rows of the ledger's tables in PostgreSQL, and the text of what is asked of them.

The server holds columns to their types, so what is read has them. Results come in binary form: `canonical` is then the
very bytes, without a detour through hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aver.capsule.sealed import Sealed
from aver.ledger.postgres.text import from_column, to_column
from aver.ledger.rows import COLUMNS, SEAL, ChainRow, Row

__all__ = ["CHAIN", "COPIED", "RECORD", "chain_row", "record_row", "record_values"]

CHAIN = "chain, tenant, name, count, head, frozen, origin"
RECORD = f"sequence, {COLUMNS}, {SEAL}, records.tenant"
COPIED = f"chain, sequence, tenant, {COLUMNS}, {SEAL}"


def chain_row(row: Sequence[Any]) -> ChainRow:
    """A head row as it is stored. A count that is none counts no records: those that are there then lie beyond it."""
    number, tenant, name, count, head, frozen, origin = row
    return ChainRow(number, tenant, name, max(count, 0), head, frozen, None if origin is None else from_column(origin))


def record_row(row: Sequence[Any]) -> Row:
    """A record as it is stored, from `RECORD`."""
    columns = tuple(None if value is None else from_column(value) for value in row[1:7])
    return Row(row[0], Sealed(row[7], *map(from_column, row[8:13])), columns, row[13])


def record_values(chain: ChainRow, sealed: Sealed, columns: Sequence[str | None]) -> tuple[Any, ...]:
    """A record as it goes into the columns of `COPIED`."""
    seal = (sealed.hash, sealed.signature, sealed.signature_pq, sealed.signed_at, sealed.signed_by)
    stored = (None if value is None else to_column(value) for value in columns)
    return (chain.number, chain.count, chain.tenant, *stored, sealed.canonical, *map(to_column, seal))
