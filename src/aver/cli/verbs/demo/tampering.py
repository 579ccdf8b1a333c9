"""The demo's fourth part: attacks that change a copy of the ledger file, as someone with access to the disk could.

Only this module runs SQL on a ledger file from outside the ledger, because an attacker does not use the ledger's API.
Each attack names the code and the place that the verdict must report. The demo compares them with the verdict.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from aver import Capsule, KeyStore, Outcome, SeedSigner, open_ledger
from aver.capsule import content_hash
from aver.cli.verbs.demo.scenes import CHAIN, OTHER_CHAIN, REFUND_SEQUENCE
from aver.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AttackPaths:
    """The owner's home, the attacker's copy of it from before the key rotation, and an old ledger file."""

    home: Path
    stolen_home: Path
    old_ledger: Path


@dataclass(frozen=True, slots=True)
class Tampering:
    """One attack on a copy of the ledger, and the finding that the verdict must have."""

    title: str
    code: str
    chain: str
    sequence: int | None
    attack: Callable[[Path, AttackPaths], None]
    require_pq: bool = False


def _edit_amount(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        _update_record(
            file, CHAIN, REFUND_SEQUENCE, canonical=_change_amount(_read_record(file, CHAIN, REFUND_SEQUENCE))
        )


def _edit_and_rehash(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        canonical = _change_amount(_read_record(file, CHAIN, REFUND_SEQUENCE))
        _update_record(file, CHAIN, REFUND_SEQUENCE, canonical=canonical, hash=content_hash(canonical))


def _edit_and_sign(path: Path, _: AttackPaths) -> None:
    stranger = SeedSigner.generate()
    with _open_unprotected(path) as file:
        content = orjson.loads(_change_amount(_read_record(file, CHAIN, REFUND_SEQUENCE)))
        _reseal(file, CHAIN, REFUND_SEQUENCE, content, stranger)


def _edit_and_reseal(path: Path, _: AttackPaths) -> None:
    stranger = SeedSigner.generate()
    with _open_unprotected(path) as file:
        content = orjson.loads(_change_amount(_read_record(file, CHAIN, REFUND_SEQUENCE)))
        head = _reseal(file, CHAIN, REFUND_SEQUENCE, content, stranger)
        records = int(file.execute("SELECT count FROM chains WHERE name = ?", (CHAIN,)).fetchone()[0])
        for sequence in range(REFUND_SEQUENCE + 1, records):
            content = orjson.loads(_read_record(file, CHAIN, sequence)["canonical"])
            head = _reseal(file, CHAIN, sequence, {**content, "previous_hash": head}, stranger)
        file.execute("UPDATE chains SET head = ? WHERE name = ?", (head, CHAIN))


def _delete_record(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        file.execute(f"DELETE FROM records WHERE {_RECORD_WHERE_SQL}", (CHAIN, REFUND_SEQUENCE))


def _swap_records(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        first, second = _read_record(file, CHAIN, 1), _read_record(file, CHAIN, 2)
        _update_record(file, CHAIN, 1, **second)
        _update_record(file, CHAIN, 2, **first)


def _copy_foreign_record(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        _update_record(file, CHAIN, REFUND_SEQUENCE, **_read_record(file, OTHER_CHAIN, REFUND_SEQUENCE))


def _cut_tail(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        last = _read_record(file, CHAIN, REFUND_SEQUENCE - 1)["hash"]
        file.execute(f"DELETE FROM records WHERE chain = {_CHAIN_ID_SQL} AND sequence >= ?", (CHAIN, REFUND_SEQUENCE))
        file.execute("UPDATE chains SET count = ?, head = ? WHERE name = ?", (REFUND_SEQUENCE, last, CHAIN))


def _delete_chain(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        file.execute(f"DELETE FROM records WHERE chain = {_CHAIN_ID_SQL}", (CHAIN,))
        file.execute("DELETE FROM chains WHERE name = ?", (CHAIN,))


def _rename_chain(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        file.execute("UPDATE chains SET name = ? WHERE name = ?", (RENAMED_CHAIN, CHAIN))


def _backdate(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        _update_record(file, CHAIN, REFUND_SEQUENCE, signed_at="2020-01-01T00:00:00+00:00")


def _strip_pq(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        _update_record(file, CHAIN, REFUND_SEQUENCE, signature_pq="")


def _replace_receipt(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        forged = b"refund of EUR 1240.00 for order 1042: accepted\n"
        file.execute("UPDATE blobs SET data = ? WHERE CAST(data AS TEXT) LIKE '%1042%'", (forged,))


def _hide_from_search(path: Path, _: AttackPaths) -> None:
    with _open_unprotected(path) as file:
        _update_record(file, CHAIN, REFUND_SEQUENCE, type="chat")


def _sign_with_stolen_key(path: Path, paths: AttackPaths) -> None:
    with open_ledger(path, home=paths.stolen_home, create=False) as ledger:
        ledger.append(CHAIN, Capsule(type="tool", outcome=Outcome(status="success", summary="refunded EUR 990.00")))


def _restore_old_copy(path: Path, paths: AttackPaths) -> None:
    shutil.copyfile(paths.old_ledger, path)


RENAMED_CHAIN = "refunds.2077"

TAMPERINGS = (
    Tampering("an amount edited", "HASH_MISMATCH", CHAIN, REFUND_SEQUENCE, _edit_amount),
    Tampering("… and the hash made to fit", "SIG_INVALID", CHAIN, REFUND_SEQUENCE, _edit_and_rehash),
    Tampering("… and signed by another key", "CHAIN_BREAK", CHAIN, REFUND_SEQUENCE + 1, _edit_and_sign),
    Tampering("… and all records after it too", "ROLLBACK", CHAIN, 4, _edit_and_reseal),
    Tampering("a record deleted", "SEQUENCE_GAP", CHAIN, REFUND_SEQUENCE, _delete_record),
    Tampering("two records swapped", "SEQUENCE_GAP", CHAIN, 1, _swap_records),
    Tampering("a record from another chain", "CHAIN_BREAK", CHAIN, REFUND_SEQUENCE, _copy_foreign_record),
    Tampering("the last two records cut off", "TRUNCATED", CHAIN, REFUND_SEQUENCE, _cut_tail),
    Tampering("the whole chain deleted", "CHAIN_MISSING", CHAIN, None, _delete_chain),
    Tampering("the chain renamed", "CHAIN_IDENTITY", RENAMED_CHAIN, 0, _rename_chain),
    Tampering("a record dated back", "SEAL_MISMATCH", CHAIN, REFUND_SEQUENCE, _backdate),
    Tampering("post-quantum signature removed", "SIG_MISSING", CHAIN, REFUND_SEQUENCE, _strip_pq, require_pq=True),
    Tampering("the receipt replaced", "ARTIFACT_HASH_MISMATCH", CHAIN, REFUND_SEQUENCE, _replace_receipt),
    Tampering("a record hidden from searches", "COLUMN_MISMATCH", CHAIN, REFUND_SEQUENCE, _hide_from_search),
    Tampering("a stolen, retired key used", "KEY_RETIRED", CHAIN, 5, _sign_with_stolen_key),
    Tampering("an old copy put back", "TRUNCATED", "keys", 1, _restore_old_copy),
)


def rotate_keys(home: Path, path: Path) -> None:
    """Rotate the owner's key. The ledger records up to which record the old key was valid."""
    KeyStore(home).rotate("ledger")
    with open_ledger(path, home=home, create=False) as ledger:
        ledger.record_keys()


# --- the file, as an attacker sees it

_CHAIN_ID_SQL = "(SELECT chain FROM chains WHERE name = ?)"
_RECORD_WHERE_SQL = f"chain = {_CHAIN_ID_SQL} AND sequence = ?"
_RECORD_COLUMNS = "hash, signature, signature_pq, signed_at, signed_by, id, type, kind, key, session, at, canonical"


@contextmanager
def _open_unprotected(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file and drop its triggers. They protect against mistakes, not against an attacker."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                connection.execute(f'DROP TRIGGER "{name}"')
            yield connection
    finally:
        connection.close()


def _read_record(file: sqlite3.Connection, chain: str, sequence: int) -> dict[str, Any]:
    row = file.execute(f"SELECT {_RECORD_COLUMNS} FROM records WHERE {_RECORD_WHERE_SQL}", (chain, sequence)).fetchone()
    return dict(zip(_RECORD_COLUMNS.split(", "), row, strict=True))


def _update_record(file: sqlite3.Connection, chain: str, sequence: int, **columns: Any) -> None:
    assignments = ", ".join(f"{name} = ?" for name in columns)
    file.execute(f"UPDATE records SET {assignments} WHERE {_RECORD_WHERE_SQL}", (*columns.values(), chain, sequence))


def _change_amount(record: dict[str, Any]) -> bytes:
    canonical: bytes = record["canonical"]
    return canonical.replace(b"12.40", b"1240.00")


def _reseal(file: sqlite3.Connection, chain: str, sequence: int, content: dict[str, Any], signer: SeedSigner) -> str:
    """Seal a content as the ledger would, but with another key. Returns the new hash."""
    content["context"]["environment"]["aver"]["by"] = signer.fingerprint
    canonical = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    digest = content_hash(canonical)
    seal = {"hash": digest, "signature": signer.sign(digest).ed25519, "signature_pq": ""}
    _update_record(file, chain, sequence, canonical=canonical, signed_by=signer.fingerprint, **seal)
    return digest
