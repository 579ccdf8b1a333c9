"""A recipe: the changes that turn an honest thing of several parts into a hostile one.

The parts of a thing are its members: the files of a bundle or a run, the tables of a ledger, the files in a `.cap`. A
recipe is a JSON list of edits, and each names a member:

    [{"op": "json", "member": "index.json", "path": ["meta"], "do": "set", "value": null},
     {"op": "drop", "member": "meta.json"}]

| op | does |
|---|---|
| `json` | changes one place of a JSON document or of lines of JSON, see `json_edits` |
| `reseal` | computes the hash of the sealed record at `path` again; `key: stranger` also signs it |
| `bytes` | replaces `cut` bytes at `at` by `put` (a text of Latin-1) |
| `drop` `copy` `swap` `add` | removes a member, copies it to the name `to`, swaps it with `to`, writes `put` into it |
| `row` | in a database: sets a column of row `row` of `table` to a value, or changes the JSON in it |
| `sql` | in a database: runs a statement |
| `fit` | computes again, without a key, what the thing says about its own members; `key: stranger` signs that, too |

An edit that does not fit the thing changes nothing. Honest things have new keys and times in every run, so a recipe
names places and not contents.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from aver import SeedSigner
from aver.capsule.canonical import canonical_bytes
from aver.capsule.sealed import SEAL_KEYS, content_hash
from aver.errors import AverError
from fuzz.byte_edits import SNIPPETS, parse_documents
from fuzz.json_edits import VALUES, apply_change, draw_change, dump

Members = dict[str, bytes]
Edit = dict[str, Any]
Fit = Callable[[Members, SeedSigner | None], Members]

STRANGER = SeedSigner(bytes(range(32)))
"""A key that no honest thing knows."""

SQLITE = b"SQLite format 3\x00"

EDITS_MAX = 12
"""Edits of one recipe. A longer one does no more harm than its best part."""


def parse_recipe(data: bytes) -> list[Edit]:
    """The edits in an input. Bytes that are no recipe are an empty one."""
    try:
        edits = json.loads(data)
    except (ValueError, RecursionError):
        return []
    edits = edits if isinstance(edits, list) else []
    return [edit for edit in edits if isinstance(edit, dict) and isinstance(edit.get("op"), str)][:EDITS_MAX]


def apply_recipe(members: Members, edits: list[Edit], fit: Fit, scratch: Path) -> Members:
    """The members as the edits leave them. `scratch` is a path at which a database can be changed."""
    members = dict(members)
    for edit in edits:
        try:
            members = _apply_edit(members, edit, fit, scratch)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError):
            continue
        except (AverError, sqlite3.Error):
            continue
    return members


def _apply_edit(members: Members, edit: Edit, fit: Fit, scratch: Path) -> Members:
    op, name = edit["op"], str(edit.get("member", ""))
    if op == "fit":
        return fit(members, STRANGER if edit.get("key") == "stranger" else None)
    if op == "add":
        return {**members, name: str(edit["put"]).encode("latin-1")} if _is_plain_name(name) else members
    data = members[name]
    if op == "drop":
        del members[name]
    elif op == "copy" and _is_plain_name(edit["to"]):
        members[str(edit["to"])] = data
    elif op == "swap":
        members[name], members[edit["to"]] = members[edit["to"]], data
    elif op == "bytes":
        at = int(edit["at"]) % (len(data) + 1)
        members[name] = data[:at] + str(edit["put"]).encode("latin-1") + data[at + int(edit["cut"]) :]
    elif op == "json":
        members[name] = _change_documents(data, edit)
    elif op == "reseal":
        members[name] = _dump_documents(_reseal_at(_parse(data), edit))
    elif op in ("row", "sql"):
        members[name] = _change_database(data, edit, scratch)
    return members


def _is_plain_name(name: str) -> bool:
    """Whether a member of this name stays inside the thing's directory."""
    return all(part not in ("", ".", "..") and "\x00" not in part and len(part) < 200 for part in name.split("/"))


# --- JSON

Documents = tuple[list[Any], bool]
"""The documents, and whether they stand on lines of their own."""


def _parse(data: bytes) -> Documents:
    documents = parse_documents(data)
    if documents is None:
        raise ValueError("no JSON")
    return documents, b"\n" in data.strip() or len(documents) > 1


def _dump_documents(documents: Documents) -> bytes:
    values, lines = documents
    return b"".join(dump(value) + b"\n" for value in values) if lines else dump(values[0])


def _change_documents(data: bytes, edit: Edit) -> bytes:
    values, lines = _parse(data)
    is_list = len(values) != 1 or data.lstrip()[:1] == b""
    if len(values) == 1 and not is_list:
        return dump(apply_change(values[0], edit))
    return _dump_documents((apply_change(values, edit), lines))


def _reseal_at(documents: Documents, edit: Edit) -> Documents:
    values, lines = documents
    place: Any = values[0] if len(values) == 1 else values
    for step in edit["path"]:
        place = place[step]
    place.update(reseal(place, STRANGER if edit.get("key") == "stranger" else None))
    return values, lines


def reseal(record: dict[str, Any], signer: SeedSigner | None) -> dict[str, str]:
    """The seal that fits the content of a record now: a new hash, and by a signer a new signature."""
    content = {key: value for key, value in record.items() if key not in SEAL_KEYS}
    digest = content_hash(canonical_bytes(content))
    if signer is None:
        return {"hash": digest}
    return {"hash": digest, "signature": signer.sign(digest).ed25519, "signed_by": signer.fingerprint}


# --- databases

GUARDS = "SELECT type, name, sql FROM sqlite_schema WHERE type = 'trigger' OR (type = 'index' AND sql LIKE '%UNIQUE%')"


@contextmanager
def _open_unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """A database without triggers and unique indexes; afterwards it has them again, as far as its rows allow it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        guards = connection.execute(GUARDS).fetchall()
        connection.execute("BEGIN IMMEDIATE")
        for kind, name, _ in guards:
            connection.execute(f"DROP {kind} {name}")
        yield connection
        for _, _, statement in guards:
            try:
                connection.execute(statement)
            except sqlite3.Error:
                continue
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _change_database(data: bytes, edit: Edit, scratch: Path) -> bytes:
    for beside in ("", "-wal", "-shm"):
        Path(f"{scratch}{beside}").unlink(missing_ok=True)
    scratch.write_bytes(data)
    if edit["op"] == "sql" and str(edit["sql"]).startswith("PRAGMA"):
        with closing(sqlite3.connect(scratch, isolation_level=None)) as connection:
            connection.execute(edit["sql"])
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        with _open_unguarded(scratch) as connection:
            if edit["op"] == "sql":
                connection.execute(edit["sql"])
            else:
                _change_row(connection, edit)
    return scratch.read_bytes()


def _change_row(connection: sqlite3.Connection, edit: Edit) -> None:
    table, column = edit["table"], edit["column"]
    row = connection.execute(f"SELECT rowid, {column} FROM {table} LIMIT 1 OFFSET ?", (int(edit["row"]),)).fetchone()
    if row is None:
        return
    key, value = row
    if "change" in edit:
        text = value.encode() if isinstance(value, str) else value
        value = dump(apply_change(json.loads(text), edit["change"]))
        value = value.decode() if isinstance(row[1], str) else value
    else:
        value = edit["value"] if not isinstance(edit["value"], dict | list) else dump(edit["value"])
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, key))
    if edit.get("seal") in ("hash", "stranger") and isinstance(value, bytes):
        digest = content_hash(value)
        (before,) = connection.execute(f"SELECT hash FROM {table} WHERE rowid = ?", (key,)).fetchone()
        connection.execute(f"UPDATE {table} SET hash = ? WHERE rowid = ?", (digest, key))
        connection.execute("UPDATE chains SET head = ? WHERE head = ?", (digest, before))
        if edit["seal"] == "stranger":
            seal = (STRANGER.sign(digest).ed25519, STRANGER.fingerprint, key)
            connection.execute(f"UPDATE {table} SET signature = ?, signed_by = ? WHERE rowid = ?", seal)


# --- drawing


class RecipeBook:
    """Draws recipes for one honest thing."""

    def __init__(self, members: Members, extra: tuple[Edit, ...] = ()) -> None:
        self._members = members
        self._names = sorted(members)
        self._extra = extra
        self._documents = {name: parse_documents(data) for name, data in members.items()}

    def mutate(self, data: bytes, random: Random) -> bytes:
        """A recipe with an edit more, an edit less, or another edit."""
        edits = parse_recipe(data)
        if edits and random.random() < 0.4:
            edits.pop(random.randrange(len(edits)))
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            edits.append(self._draw(random))
        if random.random() < 0.5:
            edits = [edit for edit in edits if edit["op"] != "fit"]
            edits.append({"op": "fit"} if random.random() < 0.6 else {"op": "fit", "key": "stranger"})
        return json.dumps(edits[-EDITS_MAX:]).encode()

    def _draw(self, random: Random) -> Edit:
        if self._extra and random.random() < 0.1:
            return random.choice(self._extra)
        name = random.choice(self._names)
        if self._members[name].startswith(SQLITE) and random.random() < 0.8:
            return {"member": name, **_draw_row(self._members[name], random)}
        documents = self._documents[name]
        if documents is not None and random.random() < 0.7:
            document = documents[0] if len(documents) == 1 else documents
            edit = {"op": "json", "member": name, **draw_change(document, random)}
            if random.random() < 0.2 and (path := _record_path(document, edit["path"])) is not None:
                key = random.choice(("", "stranger"))
                return {"op": "reseal", "member": name, "path": path, "key": key}
            return edit
        other = random.choice(self._names)
        put = random.choice((*SNIPPETS, random.randbytes(3))).decode("latin-1")
        at, cut = random.randrange(len(self._members[name]) + 1), random.choice((0, 1, 2, 16, 4096))
        return random.choice(
            (
                *[{"op": "bytes", "member": name, "at": at, "cut": cut, "put": put}] * 4,
                {"op": "drop", "member": name},
                {"op": "swap", "member": name, "to": other},
                {"op": "copy", "member": name, "to": random.choice((other, f"x-{name}", "x.json", "head.json"))},
                {"op": "add", "member": random.choice((other, "x.json", "blobs/x", "index.json")), "put": put},
            )
        )


def _record_path(document: Any, path: list[Any]) -> list[Any] | None:
    """The path of the sealed record that a place is in; None where it is in none."""
    found: list[Any] | None = None
    for number, step in enumerate([None, *path]):
        if number:
            document = document[step]
        if isinstance(document, dict) and "signature" in document:
            found = path[:number]
    return found


_ROWS: dict[bytes, list[tuple[str, str, int, Any]]] = {}


def _draw_row(data: bytes, random: Random) -> Edit:
    """An edit of one column of a database, or of its schema."""
    if random.random() < 0.1:
        return {"op": "sql", "sql": random.choice(STATEMENTS)}
    if data not in _ROWS:
        _ROWS[data] = list(_list_columns(data))
    table, column, row, value = random.choice(_ROWS[data])
    edit: Edit = {"op": "row", "table": table, "column": column, "row": row}
    if isinstance(value, bytes | str) and value[:1] in (b"{", "{"):
        sealing = {"seal": random.choice(("", "hash", "stranger"))} if column == "canonical" else {}
        return {**edit, "change": draw_change(json.loads(value), random), **sealing}
    if random.random() < 0.3:
        other = random.choice([found[3] for found in _ROWS[data] if found[:2] == (table, column)])
        return {**edit, "value": other.decode("latin-1") if isinstance(other, bytes) else other}
    return {**edit, "value": random.choice([value for value in VALUES if _is_storable(value)])}


def _is_storable(value: Any) -> bool:
    """Whether SQLite can hold it: whole numbers of 64 bits."""
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _list_columns(data: bytes) -> Iterator[tuple[str, str, int, Any]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data[:18] + b"\x01\x01" + data[20:])  # A database in memory has no write-ahead log.
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'"
        ).fetchall()
        for (table,) in tables:
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            for number, row in enumerate(cursor):
                yield from ((table, name, number, value) for name, value in zip(names, row, strict=True))


STATEMENTS = (
    "DELETE FROM records WHERE rowid = (SELECT max(rowid) FROM records)",
    "DELETE FROM records WHERE rowid = 2",
    "DELETE FROM chains WHERE rowid = 1",
    "DELETE FROM chains WHERE name = 'meta'",
    "DELETE FROM records WHERE chain = (SELECT chain FROM chains WHERE name = 'keys')",
    "DELETE FROM blobs",
    "DELETE FROM ledger",
    "INSERT INTO records SELECT record + 1000, chain, sequence + 1, tenant, hash, signature, signature_pq, signed_at,"
    " signed_by, id, type, kind, NULL, session, at, canonical FROM records WHERE rowid = 3",
    "INSERT INTO chains SELECT chain + 1000, 'other', name, count, head, frozen, origin FROM chains WHERE rowid = 1",
    "INSERT INTO chains VALUES (99, 'default', 'ci.none', 0, NULL, 0, NULL)",
    "INSERT INTO blobs SELECT tenant, digest, media, x'00' FROM blobs",
    "UPDATE records SET sequence = sequence + 1",
    "UPDATE chains SET count = count - 1",
    "UPDATE chains SET frozen = 1",
    "UPDATE ledger SET value = 'x'",
    "DROP TABLE blobs",
    "DROP INDEX records_by_hash",
    "CREATE VIEW further AS SELECT * FROM records",
    "CREATE INDEX partial ON records (type) WHERE type || 'b' = 'b'",
    "CREATE INDEX computed ON capsules (length(hash))",
    "CREATE TRIGGER further AFTER INSERT ON records BEGIN SELECT 1; END",
    "ALTER TABLE records ADD COLUMN further TEXT GENERATED ALWAYS AS (hash) VIRTUAL",
    "DELETE FROM capsules WHERE rowid = 2",
    "UPDATE capsules SET sequence = sequence + 1",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = 0",
    "PRAGMA application_id = 7",
    "PRAGMA encoding = 'UTF-16'",
)
"""Changes of whole tables and of the schema."""
