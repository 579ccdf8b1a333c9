"""Other tools' databases: read without a trace, verified by their signed content, and every tampering named."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.check import resolve, verify
from aver.errors import AverError, BadInput
from support.agent_capsules import AgentCapsules, content_of, write_database

pytest.importorskip("qp_capsule")


def execute(path: Path, sql: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql, values)
    connection.commit()
    connection.close()


def first_bad(verdict: object) -> tuple[str, str | None, int | None]:
    found = verdict.first_bad  # type: ignore[attr-defined]
    assert found is not None, verdict
    return found.code, found.place.chain, found.place.sequence


# --- agent-capsule


@pytest.fixture
def tool() -> AgentCapsules:
    return AgentCapsules()


def test_a_session_database_verifies_with_its_key(tool: AgentCapsules, tmp_path: Path) -> None:
    tool.session("claude-code", "s1", 5)
    home = tool.write_home(tmp_path / "ac")
    path = home / "chains" / "claude-code" / "s1.db"
    verdict = verify(path, keys=[tool.public])
    assert (verdict.status, verdict.records, verdict.chains) == ("verified", 5, 1)
    assert verdict.check("columns").status == "passed"
    assert verdict.check("meta").status == "not_checked"
    assert verdict.check("profile").reason == "agent-capsule: 5"


VECTOR = {
    "canonical": '{"authority":{"policy_reference":"","type":"autonomous"},"context":{"agent_id":"demo",'
    '"environment":{},"session_id":"s1"},"domain":"demo","execution":{"duration_ms":0,"resources_used":{},"tool_calls":[]},'
    '"id":"00000000-0000-4000-8000-000000000001","outcome":{"result":"ok","side_effects":[],"status":"success",'
    '"summary":"ok"},"parent_id":null,"previous_hash":null,"reasoning":{"analysis":"","model":"","reasoning":""},'
    '"sequence":0,"spec_version":"1.0","trigger":{"request":"héllo","source":"s1","type":"user_request"},"type":"chat"}',
    "hash": "196af460b4013a01fb73a004bbd12e59a9bfa854c4a4badec279c7f27dae6d55",
    "signature": "aefd09116f2bd6df84e09d78567ae97f8ae9dfb45e57521bdba58c5307399b0d"
    "70dc209f05f7dfd8c63475e0a82ff18da97d1067fa6f321be4e81c34c1d16108",
    "signature_pq": "",
    "signed_at": "2026-05-31T00:00:00+00:00",
    "signed_by": "03a107bff3ce10be",
}
"""One record by the tool's rules, with the key whose seed is the bytes 0 to 31."""

VECTOR_KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"


def test_a_known_record_verifies(tool: AgentCapsules, tmp_path: Path) -> None:
    assert tool.public == VECTOR_KEY
    verdict = verify(write_database(tmp_path / "s1.db", {None: [VECTOR]}), keys=[VECTOR_KEY])
    assert (verdict.status, verdict.records) == ("verified", 1)
    for name in ("canonical", "hash", "signature"):
        changed = VECTOR | {name: VECTOR[name].replace("0", "1", 1)}
        path = write_database(tmp_path / f"{name}.db", {None: [changed]})
        assert verify(path, keys=[VECTOR_KEY]).status == "failed"


def test_without_its_key_the_signer_is_unknown_and_with_another_key_too(tool: AgentCapsules, tmp_path: Path) -> None:
    tool.session("claude-code", "s1", 2)
    path = tool.write_home(tmp_path / "ac") / "chains" / "claude-code" / "s1.db"
    verdict = verify(path)
    assert verdict.status == "qualified"
    assert verdict.check("signature").code == "UNKNOWN_SIGNER"
    verdict = verify(path, keys=[AgentCapsules(b"x" * 32).public])
    assert (verdict.status, verdict.integrity, verdict.held) == ("qualified", "unsigned", 0)


def test_reading_leaves_no_trace(tool: AgentCapsules, tmp_path: Path, aver_home: Path) -> None:
    tool.session("claude-code", "s1", 2)
    home = tool.write_home(tmp_path / "ac")
    path = home / "chains" / "claude-code" / "s1.db"
    execute(path, "PRAGMA journal_mode = WAL")
    before = {item: item.stat().st_mtime_ns for item in home.rglob("*")}
    assert verify(path, keys=[tool.public]).status == "verified"
    assert verify(home, keys=[tool.public]).status == "verified"
    assert {item: item.stat().st_mtime_ns for item in home.rglob("*")} == before
    assert not aver_home.exists()


TAMPERED: list[tuple[str, str, str, int]] = [
    ("content", "UPDATE capsules SET canonical = replace(canonical, 'step 2', 'step X') WHERE sequence = 2",
     "HASH_MISMATCH", 2),
    ("signature", "UPDATE capsules SET signature = 'ff' || substr(signature, 3) WHERE sequence = 1", "SIG_INVALID", 1),
    ("no signature", "UPDATE capsules SET signature = '' WHERE sequence = 1", "SIG_MISSING", 1),
    ("upper case signature", "UPDATE capsules SET signature = upper(signature) WHERE sequence = 1", "SIG_INVALID", 1),
    ("id column", "UPDATE capsules SET id = 'other' WHERE sequence = 3", "COLUMN_MISMATCH", 3),
    ("link column", "UPDATE capsules SET previous_hash = NULL WHERE sequence = 3", "COLUMN_MISMATCH", 3),
    ("row gone", "DELETE FROM capsules WHERE sequence = 2", "SEQUENCE_GAP", 2),
    ("first row gone", "DELETE FROM capsules WHERE sequence = 0", "SEQUENCE_GAP", 0),
    ("not text", "UPDATE capsules SET canonical = X'ff00' WHERE sequence = 1", "SCHEMA_INVALID", 1),
    ("a number", "UPDATE capsules SET hash = 7 WHERE sequence = 1", "HASH_MISMATCH", 1),
]  # fmt: skip


@pytest.mark.parametrize(("what", "sql", "code", "sequence"), TAMPERED, ids=[case[0] for case in TAMPERED])
def test_each_tampering_is_named_at_its_place(
    tool: AgentCapsules, tmp_path: Path, what: str, sql: str, code: str, sequence: int
) -> None:
    tool.session("claude-code", "s1", 5)
    path = tool.write_home(tmp_path / "ac") / "chains" / "claude-code" / "s1.db"
    execute(path, sql)
    assert first_bad(verify(path, keys=[tool.public])) == (code, "s1", sequence)


def test_rows_deleted_and_columns_rewritten_to_hide_it_are_found(tool: AgentCapsules, tmp_path: Path) -> None:
    """The tool's own verification goes by the two columns and says OK."""
    chain = tool.session("claude-code", "s1", 5)
    path = tool.write_home(tmp_path / "ac") / "chains" / "claude-code" / "s1.db"
    execute(path, "DELETE FROM capsules WHERE sequence = 2")
    execute(path, "UPDATE capsules SET sequence = sequence - 1 WHERE sequence > 2")
    execute(path, "UPDATE capsules SET previous_hash = ? WHERE sequence = 2", chain.entries[1]["hash"])
    assert first_bad(verify(path, keys=[tool.public])) == ("SEQUENCE_GAP", "s1", 2)


def test_two_rows_swapped_with_their_columns_are_found(tool: AgentCapsules, tmp_path: Path) -> None:
    tool.session("claude-code", "s1", 4)
    path = tool.write_home(tmp_path / "ac") / "chains" / "claude-code" / "s1.db"
    execute(path, "UPDATE capsules SET sequence = CASE sequence WHEN 1 THEN 2 ELSE 1 END WHERE sequence IN (1, 2)")
    assert first_bad(verify(path, keys=[tool.public])) == ("SEQUENCE_GAP", "s1", 1)


def test_truncation_of_a_lone_database_is_not_seen_and_not_claimed(tool: AgentCapsules, tmp_path: Path) -> None:
    tool.session("claude-code", "s1", 4)
    path = tool.write_home(tmp_path / "ac") / "chains" / "claude-code" / "s1.db"
    execute(path, "DELETE FROM capsules WHERE sequence = 3")
    verdict = verify(path, keys=[tool.public])
    assert (verdict.status, verdict.records) == ("verified", 3)
    assert verdict.check("meta").status == "not_checked"


def test_tenants_of_a_shared_database_are_chains_of_their_own(tool: AgentCapsules, tmp_path: Path) -> None:
    one, two = tool.session("claude-code", "a", 3), tool.session("codex", "b", 2)
    path = write_database(tmp_path / "shared.db", {"a": one.entries, "b": two.entries})
    verdict = verify(path, keys=[tool.public])
    assert (verdict.status, verdict.records, verdict.chains) == ("verified", 5, 2)
    assert verify(path, keys=[tool.public], tenant="b").records == 2
    assert verify(path, keys=[tool.public], tenant="nobody").status == "empty"
    execute(path, "DELETE FROM capsules WHERE tenant_id = 'b' AND sequence = 0")
    assert first_bad(verify(path, keys=[tool.public])) == ("SEQUENCE_GAP", "shared/b", 0)


def test_an_empty_database_is_empty(tmp_path: Path) -> None:
    assert verify(write_database(tmp_path / "none.db", {})).status == "empty"


def test_a_whole_directory_is_held_to_its_meta_chain(tool: AgentCapsules, tmp_path: Path) -> None:
    first = tool.session("claude-code", "s1", 3)
    tool.session("codex", "s2", 2)
    tool.grow(first, 2)
    tool.finish(first)
    tool.grow(first, 1)  # grown since: normal
    tool.session("cline", "s3", 1, finish=False)
    verdict = verify(tool.write_home(tmp_path / "ac"), keys=[tool.public])
    assert (verdict.status, verdict.chains, verdict.records) == ("verified", 4, 6 + 2 + 1 + 3)
    assert verdict.check("meta").reason == "2 chains match their recorded heads (1 grown since, 1 not recorded)"


META_TAMPERED: list[tuple[str, Callable[[Path], None], tuple[str, str | None, int | None]]] = [
    ("cut", lambda home: execute(home / "chains/codex/s2.db", "DELETE FROM capsules WHERE sequence = 2"),
     ("TRUNCATED", "codex.s2", 2)),
    ("deleted", lambda home: (home / "chains/codex/s2.db").unlink(), ("CHAIN_MISSING", "codex.s2", None)),
    ("emptied", lambda home: execute(home / "chains/codex/s2.db", "DELETE FROM capsules"),
     ("CHAIN_MISSING", "codex.s2", None)),
    ("meta rewritten",
     lambda home: execute(home / "meta.db", "UPDATE capsules SET canonical = replace(canonical, '\"capsule_count\":3',"
                                            " '\"capsule_count\":1')"), ("HASH_MISMATCH", "meta", 0)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "tamper", "expected"), META_TAMPERED, ids=[case[0] for case in META_TAMPERED])
def test_what_was_finished_cannot_be_cut_or_deleted(
    tool: AgentCapsules,
    tmp_path: Path,
    what: str,
    tamper: Callable[[Path], None],
    expected: tuple[str, str | None, int | None],
) -> None:
    tool.session("codex", "s2", 3)
    home = tool.write_home(tmp_path / "ac")
    tamper(home)
    assert first_bad(verify(home, keys=[tool.public])) == expected


def test_another_chain_of_the_same_length_is_a_rollback(tool: AgentCapsules, tmp_path: Path) -> None:
    chain = tool.session("codex", "s2", 2)
    chain.entries.clear()
    tool.grow(chain, 2)
    assert first_bad(verify(tool.write_home(tmp_path / "ac"), keys=[tool.public])) == ("ROLLBACK", "codex.s2", 1)


def test_sessions_kept_elsewhere_are_said_to_be_unchecked(tool: AgentCapsules, tmp_path: Path) -> None:
    tool.session("codex", "s2", 2)
    away = tool.session("codex", "away", 2, finish=False)
    tool.finish(away, db="/elsewhere/shared.db", tenant_id="away")
    tool.chains.remove(away)
    verdict = verify(tool.write_home(tmp_path / "ac"), keys=[tool.public])
    assert verdict.status == "qualified"
    assert "outside this directory" in verdict.check("meta").reason


def test_records_of_one_database_can_be_shown(tool: AgentCapsules, tmp_path: Path) -> None:
    tool.session("claude-code", "s1", 3)
    home = tool.write_home(tmp_path / "ac")
    found = resolve(home / "chains" / "claude-code" / "s1.db")
    assert [record.sequence for record in found.read()] == [0, 1, 2]
    with pytest.raises(BadInput, match="many chains"):
        resolve(home)


def test_an_unknown_database_is_bad_input(tmp_path: Path) -> None:
    execute(tmp_path / "other.db", "CREATE TABLE capsules (a TEXT)")
    with pytest.raises(BadInput, match="nothing that Aver can verify"):
        verify(tmp_path / "other.db")


def test_a_view_in_place_of_the_table_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "view.db"
    execute(
        path,
        "CREATE VIEW capsules AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS sequence, 'x' AS hash, 'x' AS signature, 'x' AS canonical FROM n",
    )
    verdict = verify(path)
    assert first_bad(verdict) == ("SCHEMA_INVALID", "view", None)
    assert "VIEW" in verdict.check("store").reason


def test_a_huge_row_is_refused_not_read(tmp_path: Path) -> None:
    path = write_database(tmp_path / "huge.db", {})
    execute(
        path,
        "INSERT INTO capsules (sequence, id, hash, signature, canonical) VALUES (0, 'x', 'x', 'x', zeroblob(60000000))",
    )
    assert first_bad(verify(path))[0] == "SCHEMA_INVALID"


@settings(max_examples=40)
@given(cut=st.integers(100, 20_000), noise=st.binary(min_size=1, max_size=64))
def test_a_damaged_database_never_passes_for_more_than_it_is(
    tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes
) -> None:
    tool = AgentCapsules()
    chain = tool.session("claude-code", "s1", 4)
    path = write_database(tmp_path_factory.mktemp("damaged") / "s1.db", {None: chain.entries})
    raw = bytearray(path.read_bytes())
    at = cut % len(raw)
    raw[at : at + len(noise)] = noise[: len(raw) - at]
    path.write_bytes(bytes(raw))
    try:
        verdict = verify(path, keys=[tool.public])
    except AverError:
        return
    assert verdict.status in ("failed", "empty") or _same_content(path, chain.entries)


def _same_content(path: Path, entries: list[dict[str, str]]) -> bool:
    """What passed must be the beginning of what was sealed."""
    records = list(resolve(path).read())
    return [record.canonical.decode() for record in records] == [e["canonical"] for e in entries][: len(records)]


# --- what a planted schema or file cannot do


def _with_stale_index(path: Path, change: str) -> None:
    """Plant an index that covers all that is read, and change the table behind its back."""
    execute(
        path,
        "CREATE INDEX planted ON capsules (tenant_id, sequence, canonical, hash, signature, signature_pq, signed_at,"
        " signed_by, id, previous_hash)",
    )
    connection = sqlite3.connect(path, isolation_level=None)
    listed = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema WHERE name = 'planted'"
    row = connection.execute(listed).fetchone()
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_schema WHERE name = 'planted'")
    connection.close()
    execute(path, change)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
    connection.close()


def test_a_planted_index_does_not_hide_what_the_table_holds(tool: AgentCapsules, tmp_path: Path) -> None:
    path = write_database(tmp_path / "s1.db", {None: tool.session("claude-code", "s1", 4).entries})
    _with_stale_index(path, "UPDATE capsules SET canonical = replace(canonical, 'step 2', 'FORGED') WHERE sequence = 2")
    verdict = verify(path, keys=[tool.public])
    assert first_bad(verdict) == ("HASH_MISMATCH", "s1", 2)
    assert verdict.check("store").status == "failed"


def test_an_index_that_disagrees_with_an_intact_table_fails(tool: AgentCapsules, tmp_path: Path) -> None:
    """The table is as it was sealed; whoever reads by the index sees a record that is no more."""
    path = write_database(tmp_path / "s1.db", {None: tool.session("claude-code", "s1", 4).entries})
    _with_stale_index(path, "DELETE FROM capsules WHERE sequence = 3")
    verdict = verify(path, keys=[tool.public])
    assert verdict.records == 3
    assert first_bad(verdict) == ("SCHEMA_INVALID", "s1", None)
    assert "indexes and tables disagree" in verdict.check("store").reason


RAISES = "abs(-9223372036854775807 - 1)"
"""SQLite raises an error where it evaluates this. So a verdict without that error has not evaluated it."""

CHANGES = {
    "CHECK": ("UNIQUE (", f"CHECK ({RAISES}), UNIQUE ("),
    "CHECK beside comments": ("UNIQUE (", f"cHeCk/* */({RAISES}), UNIQUE ("),
    "DEFAULT": ("signed_by TEXT DEFAULT ''", f"signed_by TEXT DEFAULT ({RAISES})"),
    "generated column": ("canonical TEXT", f"extra TEXT AS ({RAISES}), canonical TEXT"),
    "collation": ("canonical TEXT", "canonical TEXT COLLATE NOCASE"),
}
STATEMENTS = {
    "partial index": f"CREATE INDEX evil ON capsules (id) WHERE {RAISES} = id",
    "expression index": f"CREATE INDEX evil ON capsules ({RAISES} || id)",
    "index with a call": "CREATE INDEX evil ON capsules (instr(id, hash))",
    "index with an operator": "CREATE INDEX evil ON capsules (id || hash)",
    "index with a word": "CREATE INDEX evil ON capsules (id LIKE hash)",
    "index with a sign": "CREATE INDEX evil ON capsules (-sequence)",
    "index with a number": "CREATE INDEX evil ON capsules (1)",
    "index with a collation": "CREATE INDEX evil ON capsules (id COLLATE NOCASE)",
    "unique index": f"CREATE UNIQUE INDEX evil ON capsules (id) WHERE {RAISES}",
    "trigger": f"CREATE TRIGGER evil AFTER INSERT ON capsules BEGIN SELECT {RAISES}; END",
    "view beside": f"CREATE VIEW evil AS SELECT {RAISES}",
    "virtual table beside": "CREATE VIRTUAL TABLE evil USING fts5(x)",
    "long statement": f"CREATE TABLE evil (x {'/**/' * 20_000})",
}


@pytest.mark.parametrize("what", [*CHANGES, *STATEMENTS])
def test_a_schema_that_computes_is_refused_and_not_evaluated(tool: AgentCapsules, tmp_path: Path, what: str) -> None:
    path = write_database(tmp_path / "s1.db", {None: tool.session("claude-code", "s1", 2).entries})
    assert verify(path, keys=[tool.public]).status == "verified"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    if what in CHANGES:
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'capsules'", CHANGES[what])
    else:
        connection.execute("CREATE TABLE room (x)")
        kind = STATEMENTS[what].split()[2 if "UNIQUE" in STATEMENTS[what] else 1].lower()
        root = "0" if kind in ("trigger", "view", "virtual") else "rootpage"
        connection.execute(
            f"UPDATE sqlite_schema SET type = ?, name = 'evil', tbl_name = ?, rootpage = {root}, sql = ?"
            " WHERE name = 'room'",
            (
                kind.replace("virtual", "table"),
                "evil" if kind in ("table", "view", "virtual") else "capsules",
                STATEMENTS[what],
            ),
        )
    connection.close()
    verdict = verify(path, keys=[tool.public])
    # SQLite itself refuses a long statement, so nothing at all can be read of that file.
    place = 0 if what == "long statement" else None
    assert first_bad(verdict) == ("SCHEMA_INVALID", "s1", place), verdict.to_dict()
    assert "overflow" not in str(verdict.to_dict())
    with pytest.raises(BadInput):
        list(resolve(path).read())


def test_a_schema_that_sqlite_itself_cannot_read_fails(tool: AgentCapsules, tmp_path: Path) -> None:
    path = write_database(tmp_path / "s1.db", {None: tool.session("claude-code", "s1", 2).entries})
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "INSERT INTO sqlite_schema VALUES ('index', 'x', 'capsules', 3, 'CREATE INDEX x ON nothing (a)')"
    )
    connection.close()
    assert first_bad(verify(path, keys=[tool.public])) == ("SCHEMA_INVALID", "s1", 0)


def test_plain_tables_and_indexes_beside_are_let_be(tool: AgentCapsules, tmp_path: Path) -> None:
    path = write_database(tmp_path / "s1.db", {None: tool.session("claude-code", "s1", 2).entries})
    for statement in (
        "CREATE TABLE \"more CHECK (x)\" (a INTEGER DEFAULT -1, b TEXT DEFAULT 'CHECK (1)', c REAL DEFAULT +1.5)",
        "CREATE TABLE stamped (at TEXT DEFAULT CURRENT_TIMESTAMP /* CHECK */, x REFERENCES capsules (id) -- COLLATE\n)",
        "CREATE INDEX one ON capsules (id, hash DESC)",
        'CREATE UNIQUE INDEX "two WHERE" ON capsules ("id" ASC, [sequence])',
    ):
        execute(path, statement)
    assert verify(path, keys=[tool.public]).status == "verified"


@pytest.mark.parametrize("how", ["CREATE VIRTUAL TABLE", "CREATE /* " + "x" * 60 + " */ VIRTUAL TABLE"])
def test_a_virtual_table_in_place_of_the_table_is_not_read(tmp_path: Path, how: str) -> None:
    path = tmp_path / "virtual.db"
    execute(path, "CREATE VIRTUAL TABLE capsules USING fts5(sequence, hash, signature, canonical)")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, 'CREATE VIRTUAL TABLE', ?) WHERE name = 'capsules'", [how]
    )
    connection.close()
    assert first_bad(verify(path)) == ("SCHEMA_INVALID", "virtual", None)


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("linked", [False, True], ids=["named itself", "named by a link"])
def test_a_pipe_beside_a_database_is_refused_not_waited_for(
    tool: AgentCapsules, tmp_path: Path, ending: str, linked: bool
) -> None:
    tool.session("claude-code", "s1", 2)
    home = tool.write_home(tmp_path / "ac")
    path = home / "chains" / "claude-code" / "s1.db"
    os.mkfifo(f"{path}{ending}")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with pytest.raises(BadInput, match=f"s1.db{ending} is not a regular file"):
        verify(link if linked else path, keys=[tool.public])
    assert first_bad(verify(home, keys=[tool.public])) == ("SCHEMA_INVALID", "claude-code.s1", 0)


def test_a_link_beside_a_database_is_refused(tool: AgentCapsules, tmp_path: Path) -> None:
    path = write_database(tmp_path / "s1.db", {None: tool.session("claude-code", "s1", 2).entries})
    (tmp_path / "s1.db-wal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="not a regular file"):
        verify(path, keys=[tool.public])


# --- qp-capsule


@pytest.fixture
def peer(tmp_path: Path) -> tuple[Path, str]:
    """A database that the reference implementation wrote, and its public key."""
    from support.peer_databases import write_peer

    return write_peer(tmp_path, 5)


def test_a_peer_database_verifies_with_its_key(peer: tuple[Path, str]) -> None:
    path, key = peer
    verdict = verify(path, keys=[key])
    assert (verdict.status, verdict.records) == ("verified", 5)
    assert verdict.check("signature").count == 5
    assert verdict.check("columns").count == 5
    assert verdict.check("meta").status == "not_checked"
    assert verdict.check("profile").reason == "cps: 5"


def test_truncation_of_a_peer_database_cannot_be_seen_and_is_not_claimed(peer: tuple[Path, str]) -> None:
    path, key = peer
    execute(path, "DELETE FROM capsules WHERE sequence >= 3")
    verdict = verify(path, keys=[key])
    assert (verdict.status, verdict.records) == ("verified", 3)
    assert "how many records there once were" in verdict.check("meta").reason


def test_all_rows_deleted_is_empty_not_valid(peer: tuple[Path, str]) -> None:
    path, key = peer
    execute(path, "DELETE FROM capsules")
    assert verify(path, keys=[key]).status == "empty"


def test_a_path_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no"):
        verify(tmp_path / "typo.db")
    assert not (tmp_path / "typo.db").exists()


PEER_TAMPERED: list[tuple[str, str, str, int]] = [
    ("content", "UPDATE capsules SET data = replace(data, 'step 2', 'step X') WHERE sequence = 2", "HASH_MISMATCH", 2),
    ("duplicate key", "UPDATE capsules SET data = '{\"domain\": \"evil\", ' || substr(data, 2) WHERE sequence = 2",
     "DUPLICATE_KEY", 2),
    ("space in signature", "UPDATE capsules SET signature = ' ' || signature WHERE sequence = 1", "SIG_INVALID", 1),
    ("upper case", "UPDATE capsules SET signature = upper(signature) WHERE sequence = 1", "SIG_INVALID", 1),
    ("type column", "UPDATE capsules SET type = 'chat' WHERE sequence = 1", "COLUMN_MISMATCH", 1),
    ("id column", "UPDATE capsules SET id = 'hidden' WHERE sequence = 1", "COLUMN_MISMATCH", 1),
    ("session column", "UPDATE capsules SET session_id = NULL WHERE sequence = 4", "COLUMN_MISMATCH", 4),
    ("link column", "UPDATE capsules SET previous_hash = 'x' WHERE sequence = 4", "COLUMN_MISMATCH", 4),
    ("middle row gone", "DELETE FROM capsules WHERE sequence = 1", "SEQUENCE_GAP", 1),
    ("not JSON", "UPDATE capsules SET data = 'x' WHERE sequence = 1", "SCHEMA_INVALID", 1),
    ("NaN", "UPDATE capsules SET data = replace(data, '1e-07', 'NaN') WHERE sequence = 1", "SCHEMA_INVALID", 1),
    ("null", "UPDATE capsules SET data = 'null' WHERE sequence = 1", "SCHEMA_INVALID", 1),
]  # fmt: skip


@pytest.mark.parametrize(("what", "sql", "code", "sequence"), PEER_TAMPERED, ids=[case[0] for case in PEER_TAMPERED])
def test_each_tampering_of_a_peer_database_is_named(
    peer: tuple[Path, str], what: str, sql: str, code: str, sequence: int
) -> None:
    path, key = peer
    execute(path, sql)
    assert first_bad(verify(path, keys=[key])) == (code, "capsules", sequence)


def test_one_poisoned_row_does_not_stop_the_rest_from_being_judged(peer: tuple[Path, str]) -> None:
    path, key = peer
    execute(path, "UPDATE capsules SET data = 'x' WHERE sequence = 1")
    verdict = verify(path, keys=[key])
    assert verdict.records == 5
    assert verdict.check("schema").count == 1


def test_a_document_with_unknown_keys_is_hashed_as_stored(peer: tuple[Path, str]) -> None:
    """What is not in the model is still in the hash: adding a key breaks it, white space does not."""
    path, key = peer
    execute(path, "UPDATE capsules SET data = '  ' || data || '  '")
    assert verify(path, keys=[key]).status == "verified"
    execute(path, "UPDATE capsules SET data = json_set(data, '$.extra', 1) WHERE sequence = 0")
    assert first_bad(verify(path, keys=[key])) == ("HASH_MISMATCH", "capsules", 0)


def test_peer_records_can_be_shown(peer: tuple[Path, str]) -> None:
    found = resolve(peer[0])
    requests = [json.loads(record.canonical)["trigger"]["request"] for record in found.read()]
    assert requests == [f"step {number} ü" for number in range(5)]


def test_loose_sections_are_a_profile_not_a_failure(tmp_path: Path) -> None:
    tool = AgentCapsules()
    chain = tool.session("claude-code", "s1", 1)
    chain.add(content_of("odd", tool="x", session="s1", outcome={}), tool.key)
    path = write_database(tmp_path / "s1.db", {None: chain.entries})
    verdict = verify(path, keys=[tool.public])
    assert verdict.status == "qualified"
    assert [(f.code, f.place.sequence) for f in verdict.findings] == [("NOT_VALID_CPS", 1)]
    assert verdict.check("profile").reason == "not valid by CPS: trigger.timestamp: is missing"
