"""Files that try to cost a verifier much more than their size: for the tests of memory, and for `make bench`.

Each form is written to a directory and needs no key. `size` is how many bytes it may have, packed or not; the bytes
that it unpacks to are what its reader has to look at.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from aver.actions.archive import MEMBER_MAX, RATIO_MAX, pack
from aver.ledger.stores.sqlite import schema

__all__ = ["FORMS", "WrittenForm", "write_form"]

MINIMAL = {
    "id": "",
    "type": "",
    "domain": "",
    "parent_id": None,
    "sequence": 0,
    "previous_hash": None,
    **{name: {} for name in ("trigger", "context", "reasoning", "authority", "execution", "outcome")},
}
"""The shortest content that has the shape of a capsule."""

LONG = 2_000_000
"""Characters of a long text: fewer than one JSON element may have."""

SEAL = {"hash": "0" * 64, "signature": "", "signature_pq": "", "signed_at": "", "signed_by": ""}


class WrittenForm(NamedTuple):
    path: Path
    read: int
    """The bytes that the form holds when it is unpacked."""


Write = Callable[[Path, int], WrittenForm]


def write_form(name: str, directory: Path, size: int) -> WrittenForm:
    """Write a form of at most so many bytes into an empty directory."""
    return FORMS[name](directory, size)


def _repeated(unit: bytes, size: int, before: bytes = b"", after: bytes = b"") -> Iterator[bytes]:
    """Pieces of a text: `before`, the unit again and again, `after`."""
    yield before
    left = (size - len(before) - len(after)) // len(unit)
    block = unit * max(1, 1_000_000 // len(unit))
    while left > 0:
        count = min(left, len(block) // len(unit))
        yield block[: count * len(unit)]
        left -= count
    yield after


def _text(name: str, unit: bytes, before: bytes = b"", after: bytes = b"") -> Write:
    def write(directory: Path, size: int) -> WrittenForm:
        path = directory / name
        with path.open("wb") as file:
            for piece in _repeated(unit, size, before, after):
                file.write(piece)
        return WrittenForm(path, path.stat().st_size)

    return write


def _numbered(name: str, line: Callable[[int], bytes], before: bytes = b"", between: bytes = b"\n") -> Write:
    """A file whose lines are all different."""

    def write(directory: Path, size: int) -> WrittenForm:
        path, written, number = directory / name, len(before), 0
        with path.open("wb") as file:
            file.write(before)
            while written < size:
                piece = between.join(map(line, range(number, number + 1000))) + between
                written, number = written + file.write(piece), number + 1000
            file.write(b"" if between == b"\n" else line(number) + b"]")
        return WrittenForm(path, path.stat().st_size)

    return write


# --- .cap files


def _manifest(**changes: object) -> bytes:
    """A manifest that the verifier can read; its digests are those of no file."""
    none = {"sha256": "0" * 64, "size": 0}
    members = ("proof.json", "commitments.json", "actions.jsonl", "capsules.jsonl")
    content = {
        "schema": "aver_cap_v1",
        "protocol_version": "0.4.0",
        "run_id": "r",
        "head": {"ledger": "l", "tenant": "default", "chain": "actions.r", "count": 1_000_000, "hash": "0" * 64},
        "created_at": "2026-01-01T00:00:00+00:00",
        "num_actions": 1,
        "final_receipt_hash": "0" * 64,
        "policy_verdict": None,
        "proof_type": None,
        "files": dict.fromkeys(members, none),
        **changes,
    }
    return orjson.dumps(content)


def _cap(member: str, unit: bytes, *, before: bytes = b"", tool: str = "aver") -> Write:
    """An archive with one long member that packs extremely well. A member of noise keeps the ratio below the limit."""

    def write(directory: Path, size: int) -> WrittenForm:
        unpacked = min(MEMBER_MAX - 1_000_000, size * (RATIO_MAX - 50))
        noise = os.urandom(size * 85 // 100)
        long = directory / "long"
        with long.open("wb") as file:
            for piece in _repeated(unit, unpacked, before):
                file.write(piece)
        with long.open("rb") as opened, (directory / "form.cap").open("wb") as out:
            members: dict[str, BinaryIO] = {"manifest.json": BytesIO(_manifest())}
            if tool == "aver":
                small = ("proof.json", "commitments.json", "actions.jsonl", "capsules.jsonl")
                members |= {"head.json": BytesIO(noise), **{name: BytesIO() for name in small}}
            else:
                members = {"agent_capsule.json": BytesIO(noise), "actions.jsonl": BytesIO()}
            pack({**members, member: opened}, out)
        long.unlink()
        return WrittenForm(directory / "form.cap", unpacked + len(noise))

    return write


def _capsule_line(number: int) -> bytes:
    content = {"chain": "actions.r", **SEAL, "canonical": json.dumps({**MINIMAL, "sequence": number})}
    return orjson.dumps(content)


# --- bundles


def _bundle(capsules: Callable[[int], Iterator[bytes]]) -> Write:
    def write(directory: Path, size: int) -> WrittenForm:
        path = directory / "bundle"
        path.mkdir()
        (path / "index.json").write_text(json.dumps({"chains": [{"id": "x.y"}]}))
        with (path / "x.y.json").open("wb") as file:
            file.write(b'{"capsules":[')
            for piece in capsules(size):
                file.write(piece)
            file.write(b"]}")
        return WrittenForm(path, (path / "x.y.json").stat().st_size)

    return write


def _many_chains(directory: Path, size: int) -> WrittenForm:
    """An index of as many chains as it may list, of which none is there."""
    path = directory / "bundle"
    path.mkdir()
    listed = [{"id": f"x.{number}"} for number in range(min(size // 16, 240_000))]
    (path / "index.json").write_bytes(orjson.dumps({"chains": listed}))
    return WrittenForm(path, (path / "index.json").stat().st_size)


def _tiny_chains(directory: Path, size: int) -> WrittenForm:
    """As many chains of one short record as fit. Each is a file that must be opened and judged."""
    path = directory / "bundle"
    path.mkdir()
    document = b'{"capsules":[' + _hashed_record() + b"]}"
    count = size // (len(document) + 16)
    (path / "index.json").write_bytes(orjson.dumps({"chains": [{"id": f"x.{number}"} for number in range(count)]}))
    for number in range(count):
        (path / f"x.{number}.json").write_bytes(document)
    return WrittenForm(path, count * len(document) + (path / "index.json").stat().st_size)


LINKS = 2000
"""Names of one file: fewer than any file system allows."""


def _linked_chains(directory: Path, size: int) -> WrittenForm:
    """One long chain under many names. A disk has its bytes once."""
    path = directory / "bundle"
    path.mkdir()
    (path / "index.json").write_bytes(orjson.dumps({"chains": [{"id": f"x.{number}"} for number in range(LINKS)]}))
    with (path / "x.0.json").open("wb") as file:
        file.write(b'{"capsules":[')
        for piece in _repeated(_hashed_record() + b",", size, b"", _hashed_record()):
            file.write(piece)
        file.write(b"]}")
    for number in range(1, LINKS):
        os.link(path / "x.0.json", path / f"x.{number}.json")
    return WrittenForm(path, (path / "x.0.json").stat().st_size)


def _hashed_record() -> bytes:
    """A capsule of a bundle that has its hash, and no signature."""
    canonical = orjson.dumps(MINIMAL, option=orjson.OPT_SORT_KEYS)
    return orjson.dumps({**SEAL, "hash": hashlib.sha3_256(canonical).hexdigest(), "canonical": canonical.decode()})


# --- databases


def _ledger(fill: Callable[[sqlite3.Connection, int], None]) -> Write:
    """A ledger's file in which somebody else has put rows."""

    def write(directory: Path, size: int) -> WrittenForm:
        path = directory / "ledger.db"
        schema.create_ledger_file(path, {"id": "00000000-0000-4000-8000-000000000000", "created_at": ""})
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        fill(connection, size)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return WrittenForm(path, path.stat().st_size)

    return write


def _insert_records(connection: sqlite3.Connection, count: int, content: Callable[[int], bytes]) -> None:
    connection.execute("INSERT INTO chains VALUES (1, 'default', 'x.y', 0, NULL, 0, NULL)")
    rows = (
        (
            1,
            number,
            "default",
            f"{number:064x}",
            "",
            "",
            "",
            "",
            str(number),
            "",
            None,
            None,
            None,
            None,
            content(number),
        )
        for number in range(count)
    )
    connection.executemany(f"INSERT INTO records VALUES (NULL, {', '.join('?' * 15)})", rows)
    connection.execute("UPDATE chains SET count = ?", (count,))


def _fill_with_empty_records(connection: sqlite3.Connection, size: int) -> None:
    _insert_records(connection, size // 230, lambda _: b"{}")


def _fill_with_minimal_records(connection: sqlite3.Connection, size: int) -> None:
    raw = orjson.dumps(MINIMAL, option=orjson.OPT_SORT_KEYS)
    _insert_records(connection, size // 420, lambda _: raw)


def _fill_with_large_records(connection: sqlite3.Connection, size: int) -> None:
    raw = orjson.dumps({**MINIMAL, "type": "x" * LONG}, option=orjson.OPT_SORT_KEYS)
    _insert_records(connection, max(1, size // (LONG + 100_000)), lambda _: raw)


def _fill_with_references(connection: sqlite3.Connection, size: int) -> None:
    """One large blob, and as many references to it as fit."""
    data = bytes(min(size // 2, 60_000_000))
    digest = hashlib.sha256(data).hexdigest()
    connection.execute("INSERT INTO blobs VALUES ('default', ?, '', ?)", (digest, data))
    reference = {"blob": {"digest": digest, "media": "", "size": len(data)}}
    raw = orjson.dumps({**MINIMAL, "outcome": {"result": [reference] * 100}}, option=orjson.OPT_SORT_KEYS)
    _insert_records(connection, (size - len(data)) // (len(raw) + 300), lambda _: raw)


def _fill_with_chains(connection: sqlite3.Connection, size: int) -> None:
    rows = ((f"x.{number}",) for number in range(size // 60))
    connection.executemany("INSERT INTO chains (tenant, name) VALUES ('default', ?)", rows)


def _fill_with_tenants(connection: sqlite3.Connection, size: int) -> None:
    rows = ((f"t{number}",) for number in range(size // 60))
    connection.executemany("INSERT INTO chains (tenant, name) VALUES (?, 'x.y')", rows)


def _foreign(columns: str, row: Callable[[int], tuple[object, ...]], each: int) -> Write:
    def write(directory: Path, size: int) -> WrittenForm:
        path = directory / "capsules.db"
        connection = sqlite3.connect(path)
        connection.execute(f"CREATE TABLE capsules ({columns})")
        count = len(columns.split(","))
        connection.executemany(f"INSERT INTO capsules VALUES ({', '.join('?' * count)})", map(row, range(size // each)))
        connection.commit()
        connection.close()
        return WrittenForm(path, path.stat().st_size)

    return write


def _wide_schema(directory: Path, size: int) -> WrittenForm:
    """Tables with as many columns as SQLite allows: it keeps every one of them in memory."""
    path = directory / "capsules.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE capsules (canonical, hash, signature, sequence)")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("BEGIN")
    names = ",".join(f"a{number}" for number in range(1999))
    rows = (
        ("table", f"t{number}", f"t{number}", 2, f"CREATE TABLE t{number}({names})")
        for number in range(size // (len(names) + 40))
    )
    connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()
    return WrittenForm(path, path.stat().st_size)


_NATIVE = "canonical TEXT, hash TEXT, signature TEXT, sequence INTEGER"

FORMS: dict[str, Write] = {
    # text
    "empty objects, one on each line": _text("form.jsonl", b"{}\n"),
    "empty objects in an array": _text("form.json", b"{},", b"[", b"{}]"),
    "line feeds": _text("form.jsonl", b"\n"),
    "line feeds between records": _text("form.jsonl", orjson.dumps({**MINIMAL, **SEAL}) + b"\n\n"),
    "an array of spaces": _text("form.json", b" ", b"["),
    "a document after spaces": _text("form.json", b" ", b"", b"{}"),
    "one long line": _text("form.jsonl", b"x", b'{"id":"', b'"}'),
    "one long string": _text("form.json", b"x", b'[{"id":"', b'"}]'),
    "long lines": _text("form.jsonl", b'{"id":"' + b"x" * LONG + b'"}\n'),
    "deep arrays": _text("form.json", b"["),
    "deep objects": _text("form.json", b'{"a":', b"["),
    "deep lines": _text("form.jsonl", b"[" * 200 + b"]" * 200 + b"\n", b"{}\n"),
    "escaped characters": _text("form.json", b"\\u0041", b'[{"id":"', b'"}]'),
    "many numbers": _text("form.json", b"1,", b'[{"id":[', b"1]}]"),
    "one long number": _text("form.json", b"9", b'[{"id":', b"}]"),
    "minimal records, one on each line": _text("form.jsonl", orjson.dumps({**MINIMAL, **SEAL}) + b"\n"),
    "minimal records in an array": _text("form.json", orjson.dumps({**MINIMAL, **SEAL}) + b",", b"[", b"{}]"),
    "keys that repeat": _text("form.jsonl", b'{"a":1,"a":2}\n'),
    "empty actions": _text("actions.jsonl", b"{}\n"),
    "line feeds for actions": _text("actions.jsonl", b"\n"),
    # .cap
    ".cap of line feeds": _cap("capsules.jsonl", b"\n"),
    ".cap of line feeds for actions": _cap("actions.jsonl", b"\n"),
    ".cap of empty objects": _cap("capsules.jsonl", b"{}\n"),
    ".cap of empty actions": _cap("actions.jsonl", b"{}\n"),
    ".cap of long lines": _cap("capsules.jsonl", b"x" * 900_000 + b"\n"),
    ".cap of overlong lines": _cap("actions.jsonl", b"x" * 17_000_000 + b"\n"),
    ".cap of minimal capsules": _cap("capsules.jsonl", _capsule_line(0) + b"\n"),
    ".cap of evidence": _cap("evidence.jsonl", b'{"sha256":"' + b"0" * 64 + b'","text":""}\n'),
    ".cap of another tool with spaces": _cap("row_archive/rows.json", b" ", before=b"[", tool="other"),
    ".cap of another tool with rows": _cap("row_archive/rows.json", b"[0],", before=b"[", tool="other"),
    # bundles
    "bundle of empty objects": _bundle(lambda size: _repeated(b"{},", size, b"", b"{}")),
    "bundle of spaces": _bundle(lambda size: _repeated(b" ", size)),
    "bundle of a long string": _bundle(lambda size: _repeated(b"x", size, b'{"canonical":"', b'"}')),
    "bundle of minimal records": _bundle(
        lambda size: _repeated(orjson.dumps({**SEAL, "canonical": json.dumps(MINIMAL)}) + b",", size, b"", b"{}")
    ),
    "bundle of chains that are not there": _many_chains,
    "bundle of tiny chains": _tiny_chains,
    "bundle of one chain under many names": _linked_chains,
    # databases
    "ledger of empty records": _ledger(_fill_with_empty_records),
    "ledger of minimal records": _ledger(_fill_with_minimal_records),
    "ledger of large records": _ledger(_fill_with_large_records),
    "ledger of references to one blob": _ledger(_fill_with_references),
    "ledger of chains without records": _ledger(_fill_with_chains),
    "ledger of tenants": _ledger(_fill_with_tenants),
    "database of empty records": _foreign(_NATIVE, lambda number: ("{}", "", "", number), 20),
    "database of minimal records": _foreign(
        _NATIVE, lambda number: (json.dumps({**MINIMAL, "sequence": number}), "0" * 64, "", number), 290
    ),
    "database of large records": _foreign(_NATIVE, lambda number: ("x" * LONG, "", "", number), LONG),
    "database of tenants": _foreign(f"{_NATIVE}, tenant_id TEXT", lambda number: ("{}", "", "", 0, f"t{number}"), 24),
    "database with a wide schema": _wide_schema,
}
