"""A temporary ledger file, filled from the records of a bundle or a `.cap` file, so that these can be searched.

The file has the same tables as a ledger, so every reader of a ledger works on it. Records are numbered by their time,
as in the ledger that they come from. The file lies in a private temporary directory and is removed when it is closed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aver.capsule.blobs import Blob
from aver.capsule.sealed import Sealed
from aver.clock import now
from aver.errors import BadInput, NotFound, StoreDamaged, Unavailable
from aver.ledger.stores.protocol import SEAL_COLUMNS, SEARCH_COLUMNS
from aver.ledger.stores.sqlite.schema import create_ledger_file
from aver.ledger.stores.sqlite.store import SqliteStore

_COLUMNS = f"chain, sequence, tenant, {SEARCH_COLUMNS}, {SEAL_COLUMNS}"


class TemporaryStore(SqliteStore):
    """The store of the file. Blobs are not in it: `read_blob` reads them where the records are from."""

    read_blob: Callable[[str], bytes]

    def blob(self, tenant: str, digest: str) -> Blob | None:
        try:
            return Blob(self.read_blob(digest))
        except NotFound:
            return None
        except BadInput as error:
            raise StoreDamaged(error.message) from error


class TemporaryStoreWriter:
    """Fills the file: first `add_chain` and `add_record`, then `finish`, which gives the store. `close` removes it."""

    def __init__(self, ledger_id: str, tenant: str) -> None:
        self._tenant = tenant
        try:
            self._directory = TemporaryDirectory(prefix="aver-read-")
        except OSError as error:
            raise Unavailable(f"cannot make a temporary directory: {error.strerror}", advice="set TMPDIR") from error
        self._file = Path(self._directory.name) / "ledger.db"
        create_ledger_file(self._file, {"id": ledger_id, "created_at": now()})
        self._connection = sqlite3.connect(self._file, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")  # Nobody needs this file after a power cut.
        self._connection.execute("BEGIN")
        # Without an order of insertion; `finish` puts the records into the ledger's own table.
        self._connection.execute(f"CREATE TEMP TABLE staged AS SELECT 0 AS rank, {_COLUMNS} FROM records WHERE 0")

    def add_chain(self, number: int, name: str, count: int, head: str | None, origin: str | None) -> None:
        """Add a chain's head row. With an `origin`, it is the frozen chain of another ledger or tool."""
        self._connection.execute(
            "INSERT INTO chains (chain, tenant, name, count, head, frozen, origin) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, self._tenant, name, count, head, int(origin is not None), origin),
        )

    def add_record(
        self, number: int, sequence: int, record: Sealed, columns: tuple[Any, ...], *, is_known: bool
    ) -> None:
        """Add a record of the chain with this number. `columns` are those of `SEARCH_COLUMNS`.

        `is_known` says that the key of its signer is known. Such a record comes before others that claim its place.
        """
        signature = record.signature, record.signature_pq, record.signed_at, record.signed_by
        values = (
            int(not is_known),
            number,
            sequence,
            self._tenant,
            *columns,
            record.canonical,
            record.hash,
            *signature,
        )
        places = ", ".join("?" * len(values))
        try:
            self._connection.execute(f"INSERT INTO staged VALUES ({places})", values)
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise _no_copy_error(error) from error

    def finish(self, timeout: float, read_blob: Callable[[str], bytes]) -> tuple[SqliteStore, dict[str, int]]:
        """Number the records by their time, and open the store. Returns it, and how many records each chain has."""
        connection = self._connection
        try:
            connection.execute("DROP TRIGGER records_only_at_the_end")
            # Of two records at one place, or with one idempotency key, the one by a known signer counts, or else the
            # earlier one. A stranger can write any time into a record.
            connection.execute(
                f"INSERT OR IGNORE INTO records (record, {_COLUMNS}) "
                f"SELECT row_number() OVER (ORDER BY coalesce(at, signed_at), chain, sequence) AS place, {_COLUMNS} "
                "FROM staged ORDER BY rank, place"
            )
            counted = "SELECT name, count(*) FROM records JOIN chains USING (chain) GROUP BY records.chain"
            kept = dict(connection.execute(counted))
            connection.execute("DROP TABLE staged")
            connection.execute("COMMIT")
            connection.close()
        except sqlite3.Error as error:
            raise _no_copy_error(error) from error
        store = TemporaryStore.open(self._file, create=False, timeout=timeout)
        store.read_blob = read_blob
        return store, kept

    def close(self) -> None:
        """Remove the file."""
        self._connection.close()
        self._directory.cleanup()


def _no_copy_error(error: Exception) -> Unavailable:
    return Unavailable(f"the records cannot be made searchable: {error}", advice="free space in TMPDIR")
