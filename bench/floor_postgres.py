"""The floor on PostgreSQL: the same work by bare psycopg, without any of the checks that make it safe.

The ledger's own tables and indexes without its triggers, statements prepared and sent together where the answer to one
is not needed for the next: the head row is locked in one round trip, and a lone record, the head row and the commit go
in another. Many records are copied in binary form.
"""

from __future__ import annotations

import hashlib
from typing import Any

import floor
import orjson
import psycopg
from nacl.bindings import crypto_sign_open

from aver.clock import now
from aver.ledger.stores.postgres import schema

_TYPES = ("int8", "int8", *("text",) * 6, "bytea", *("text",) * 5)
_COLUMNS = "chain, sequence, tenant, id, type, kind, session, at, canonical, hash, signature, signature_pq"
_COLUMNS += ", signed_at, signed_by"
_INSERT = f"INSERT INTO aver.records ({_COLUMNS}) VALUES ({', '.join('%b' if t == 'bytea' else '%s' for t in _TYPES)})"
_COPY = f"COPY aver.records ({_COLUMNS}) FROM STDIN (FORMAT binary)"
_LOCK = "SELECT chain, count, head FROM aver.chains WHERE tenant = 'default' AND name = %s FOR UPDATE"
_ADVANCE = "UPDATE aver.chains SET count = %s, head = %s WHERE chain = %s"
_TRIGGERS = """
SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid WHERE relnamespace = 'aver'::regnamespace AND NOT tgisinternal
"""


def make(url: str, chains: list[str]) -> None:
    """Make the tables in an empty database, and empty chains in them."""
    with psycopg.connect(url, autocommit=True) as connection:
        schema.migrate(connection)
        for (drop,) in connection.execute(_TRIGGERS).fetchall():
            connection.execute(drop)
        for name in chains:
            connection.execute("INSERT INTO aver.chains (tenant, name) VALUES ('default', %s)", (name,))


class Store:
    """One connection to a database that `make` has prepared."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)

    def append(self, chain: str, contents: list[dict[str, Any]]) -> None:
        """Seal contents at the end of a chain, in one durable commit."""
        execute = self.connection.execute
        with self.connection.pipeline():
            execute("BEGIN")
            locked = execute(_LOCK, (chain,), prepare=True, binary=True)
        number, count, head = locked.fetchone() or (0, 0, None)
        rows = []
        for content in contents:
            content["sequence"], content["previous_hash"] = count, head
            canonical, digest, signature = floor.seal(content)
            said = content["id"], content["type"], "call", content["context"]["session_id"], (at := now())
            rows.append(
                (number, count, "default", *said, canonical, digest, signature, "", at, floor.PUBLIC.hex()[:16])
            )
            count, head = count + 1, digest
        if len(rows) > 1:
            with self.connection.cursor() as cursor, cursor.copy(_COPY) as copy:
                copy.set_types(_TYPES)
                for row in rows:
                    copy.write_row(row)
        with self.connection.pipeline():
            if len(rows) == 1:
                execute(_INSERT, rows[0], prepare=True)
            execute(_ADVANCE, (count, head, number), prepare=True)
            execute("COMMIT")

    def close(self) -> None:
        self.connection.close()


def verify(url: str, chain: str, public: bytes) -> int:
    """Walk a chain once on one core: hash, link and signature of each record. Returns how many hold."""
    previous, expected = None, 0
    with psycopg.connect(url) as connection, connection.cursor("walk", binary=True) as cursor:
        cursor.itersize = 2000
        cursor.execute(
            "SELECT canonical, hash, signature FROM aver.records JOIN aver.chains USING (chain)"
            " WHERE name = %s ORDER BY sequence",
            (chain,),
        )
        for canonical, digest, signature in cursor:
            content = orjson.loads(canonical)
            if content["sequence"] != expected or content["previous_hash"] != previous:
                break
            if hashlib.sha3_256(canonical).hexdigest() != digest:
                break
            crypto_sign_open(bytes.fromhex(signature) + digest.encode(), public)
            previous, expected = digest, expected + 1
    return expected
