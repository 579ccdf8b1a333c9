"""The floor: the same work by bare primitives, without any of the checks that make it safe.

orjson, SHA3 and libsodium for the record; raw SQLite with the ledger's own tables, indexes and page size for the
store, and its own lock (`BEGIN IMMEDIATE` with a long busy timeout) where several processes write.
"""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import orjson
from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair

from aver.clock import now
from aver.ledger.stores.sqlite import schema

PUBLIC, SECRET = crypto_sign_seed_keypair(bytes(range(32)))


def seal(content: dict[str, Any]) -> tuple[bytes, str, str]:
    canonical = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha3_256(canonical).hexdigest()
    return canonical, digest, crypto_sign(digest.encode(), SECRET)[:64].hex()


class Store:
    """Raw SQLite with the ledger's schema, without its triggers."""

    def __init__(self, path: Path) -> None:
        new = not path.exists()
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        if new:
            self.connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        if new:
            self.connection.executescript(schema.MIGRATIONS[0])
            for (name,) in self.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                self.connection.execute(f"DROP TRIGGER {name}")
            self.connection.execute("INSERT INTO chains (chain, tenant, name) VALUES (1, 'default', 'bench.floor')")

    def append(self, contents: list[dict[str, Any]]) -> None:
        """Seal contents at the end of the chain, in one durable commit."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        count, head = execute("SELECT count, head FROM chains WHERE chain = 1").fetchone()
        for content in contents:
            content["sequence"], content["previous_hash"] = count, head
            canonical, digest, signature = seal(content)
            execute(
                "INSERT INTO records (chain, sequence, tenant, id, type, kind, key, session, at,"
                " canonical, hash, signature, signature_pq, signed_at, signed_by)"
                " VALUES (1, ?, 'default', ?, ?, 'call', NULL, ?, ?, ?, ?, ?, '', ?, ?)",
                (
                    count,
                    content["id"],
                    content["type"],
                    content["context"]["session_id"],
                    at := now(),
                    canonical,
                    digest,
                    signature,
                    at,
                    PUBLIC.hex()[:16],
                ),
            )
            count, head = count + 1, digest
        execute("UPDATE chains SET count = ?, head = ? WHERE chain = 1", (count, head))
        execute("COMMIT")

    def close(self) -> None:
        self.connection.close()


def verify(path: str, chain: str, public: bytes) -> int:
    """Walk a chain once on one core: hash, link and signature of each record. Returns how many hold."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = connection.execute(
        "SELECT canonical, hash, signature FROM records JOIN chains USING (chain) WHERE name = ? ORDER BY sequence",
        (chain,),
    )
    previous, expected = None, 0
    for canonical, digest, signature in rows:
        content = orjson.loads(canonical)
        if content["sequence"] != expected or content["previous_hash"] != previous:
            break
        if hashlib.sha3_256(canonical).hexdigest() != digest:
            break
        crypto_sign_open(bytes.fromhex(signature) + digest.encode(), public)
        previous, expected = digest, expected + 1
    connection.close()
    return expected
