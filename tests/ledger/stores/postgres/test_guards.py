"""The guards, and what a verdict says of a database that is not as Aver makes it."""

from __future__ import annotations

import psycopg
import pytest

from aver import Blob, Capsule, IntegrityError, Ledger
from aver.ledger.stores.postgres.schema import find_missing_guards
from support.tamper import codes_at, first_bad

CHAIN = "demo.guards"
REST = (
    "tenant, hash, signature, signature_pq, signed_at, signed_by, id || 'x', type, kind, NULL, session, at, canonical"
)
NAMES = "tenant, hash, signature, signature_pq, signed_at, signed_by, id, type, kind, key, session, at, canonical"
OURS = "WHERE chain = (SELECT chain FROM aver.chains WHERE name = 'demo.guards')"
AGAIN = (
    f"INSERT INTO aver.records (chain, sequence, {NAMES}) SELECT chain, {{}}, {REST} FROM aver.records {OURS} LIMIT 1"
)


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    blob = Blob(b"a large value")
    for _ in range(3):
        ledger.append(CHAIN, Capsule(type="tool", outcome={"result": blob.reference}), blobs=[blob])
    assert ledger.verify().status == "verified"
    return ledger


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE aver.records SET signed_at = ''",
        "UPDATE aver.records SET signed_at = '' WHERE false",
        "DELETE FROM aver.records",
        "TRUNCATE aver.records",
        "TRUNCATE aver.records, aver.chains CASCADE",
        "INSERT INTO aver.records SELECT * FROM aver.records ON CONFLICT (record) DO UPDATE SET at = ''",
        AGAIN.format(-1),
        AGAIN.format(0),
        AGAIN.format(2),
        "UPDATE aver.chains SET count = count - 1",
        "UPDATE aver.chains SET head = ''",
        "UPDATE aver.chains SET name = 'demo.x'",
        "UPDATE aver.chains SET tenant = 'x'",
        "DELETE FROM aver.chains",
        "TRUNCATE aver.chains",
        "UPDATE aver.blobs SET data = ''",
        "DELETE FROM aver.blobs",
        "TRUNCATE aver.blobs",
        "UPDATE aver.ledger SET value = 'x'",
        "DELETE FROM aver.ledger",
        "TRUNCATE aver.ledger",
        "DELETE FROM aver.schema_version",
        "UPDATE aver.schema_version SET version = 0",
    ],
)
def test_guards_keep_even_the_owner_from_harm(filled: Ledger, owner: psycopg.Connection, statement: str) -> None:
    refusals = psycopg.errors.RestrictViolation, psycopg.errors.GeneratedAlways, psycopg.errors.UniqueViolation
    with pytest.raises(refusals):
        owner.execute(statement)
    assert filled.verify().status == "verified"


def test_a_frozen_chain_does_not_change_any_more(filled: Ledger, owner: psycopg.Connection) -> None:
    owner.execute("UPDATE aver.chains SET frozen = true, origin = 'x'")
    for statement in (
        "UPDATE aver.chains SET frozen = false",
        "UPDATE aver.chains SET origin = 'y'",
        "UPDATE aver.chains SET count = count + 1",
        AGAIN.format(3),
    ):
        with pytest.raises(psycopg.errors.RestrictViolation):
            owner.execute(statement)


ALTERATIONS = {
    "rule records_hide": "CREATE RULE records_hide AS ON INSERT TO aver.records DO ALSO NOTIFY x",
    "policy hides": "CREATE POLICY hides ON aver.records USING (sequence > 0)",
    "table records": "ALTER TABLE aver.records ENABLE ROW LEVEL SECURITY",
    "table chains": "ALTER TABLE aver.chains ALTER origin TYPE varchar",
    "table ledger": "ALTER TABLE aver.ledger ADD extra integer",
    "table blobs": "ALTER TABLE aver.blobs ALTER media DROP NOT NULL",
    "table aver.more": "CREATE TABLE aver.more () INHERITS (aver.records)",
    "table other": "CREATE TABLE aver.other (x integer)",
    "view seen": "CREATE VIEW aver.seen AS SELECT * FROM aver.records",
    "sequence counted": "CREATE SEQUENCE aver.counted",
    "index records_by_place": "DROP INDEX aver.records_by_place; "
    "CREATE UNIQUE INDEX records_by_place ON aver.records (chain, sequence) WHERE sequence <> 1",
    "index records_by_hash": "DROP INDEX aver.records_by_hash",
    "index chains_by_name": "DROP INDEX aver.chains_by_name; CREATE INDEX chains_by_name ON aver.chains (tenant, name)",
    "index extra": "CREATE INDEX extra ON aver.records (session)",
    "trigger runs_too": "CREATE TRIGGER runs_too AFTER INSERT ON aver.records EXECUTE FUNCTION aver.only_at_the_end()",
    "trigger records_stay": "CREATE OR REPLACE TRIGGER records_stay BEFORE UPDATE ON aver.records"
    " FOR EACH STATEMENT EXECUTE FUNCTION aver.refuse('x')",
    "function refuse": "CREATE OR REPLACE FUNCTION aver.refuse() RETURNS trigger LANGUAGE plpgsql AS"
    " $$BEGIN RETURN NEW; END$$",
    "function mine": "CREATE FUNCTION aver.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "constraint small": "ALTER TABLE aver.records ADD CONSTRAINT small CHECK (sequence < 1000)",
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", ALTERATIONS)
def test_what_is_not_as_aver_makes_it_fails_the_verdict(filled: Ledger, owner: psycopg.Connection, name: str) -> None:
    owner.execute(ALTERATIONS[name])
    assert filled.store.schema_differences()[:1] == [name]
    verdict = filled.verify()
    assert first_bad(verdict)[0] == "STORE_DAMAGED"
    assert name in {finding.words.removesuffix(" is not as Aver makes it") for finding in verdict.findings}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE aver.records SET (autovacuum_vacuum_scale_factor = 0.01, fillfactor = 90)",
        "ALTER TABLE aver.records ALTER canonical SET STORAGE external",
        "CREATE STATISTICS aver.wisdom ON chain, sequence FROM aver.records",
        "ALTER TABLE aver.blobs ALTER data SET STATISTICS 0",
        "REINDEX TABLE aver.records",
        "VACUUM FULL aver.records",
        "CLUSTER aver.records USING records_by_place",
        "COMMENT ON TABLE aver.records IS 'do not touch'",
    ],
)
def test_what_changes_no_result_may_be_tuned(filled: Ledger, owner: psycopg.Connection, statement: str) -> None:
    owner.execute(statement)
    assert filled.verify().status == "verified"
    filled.append(CHAIN, Capsule(type="tool"))
    assert filled.verify().status == "verified"


def test_a_missing_guard_is_no_matter_to_a_verdict_but_to_the_doctor(filled: Ledger, owner: psycopg.Connection) -> None:
    owner.execute("DROP TRIGGER records_stay ON aver.records")
    owner.execute("ALTER TABLE aver.chains DISABLE TRIGGER chains_stay")
    assert filled.verify().status == "verified"
    assert find_missing_guards(owner) == ["chains_stay", "records_stay"]


# --- programs in the database that would undo what is appended

BODY = "CREATE FUNCTION public.undo() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {}; END$$"
PROGRAMS = {
    "a row trigger that drops records": (
        BODY.format("RETURN NULL"),
        "CREATE TRIGGER undoing BEFORE INSERT ON aver.records FOR EACH ROW EXECUTE FUNCTION public.undo()",
    ),
    "a rule that drops records": ("CREATE RULE undoing AS ON INSERT TO aver.records DO INSTEAD NOTHING",),
    "a trigger that keeps head rows back": (
        BODY.format("RETURN NULL"),
        "CREATE TRIGGER undoing BEFORE UPDATE ON aver.chains FOR EACH ROW EXECUTE FUNCTION public.undo()",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_foreign_programs_are_refused_before_anything_is_appended(
    filled: Ledger, url: str, owner: psycopg.Connection, name: str
) -> None:
    from aver import open_ledger

    for statement in PROGRAMS[name]:
        owner.execute(statement)
    with open_ledger(url) as reopened, pytest.raises(IntegrityError, match="undoing"):
        reopened.append(CHAIN, Capsule(type="tool"))
    assert first_bad(filled.verify())[0] == "STORE_DAMAGED"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "count"),
    [(name, count) for name in PROGRAMS for count in (1, 3, 30) if (name, count) != ("a rule that drops records", 30)],
)
def test_one_that_comes_later_is_noticed_by_what_it_did(
    filled: Ledger, owner: psycopg.Connection, name: str, count: int
) -> None:
    """On a connection that was looked at before: the server says it did less than it was asked to.

    A rule has no power over many records: those go by COPY, which knows no rules.
    """
    for statement in PROGRAMS[name]:
        owner.execute(statement)
    with pytest.raises(IntegrityError, match="stored 0 of") as caught:
        filled.append_many(CHAIN, [Capsule(type="tool") for _ in range(count)])
    assert caught.value.code == "SCHEMA_INVALID"


# --- tables and indexes that disagree

HIDDEN = """UPDATE pg_index SET indisready = {0}, indislive = {0} WHERE indexrelid = 'aver.{1}'::regclass"""


@pytest.mark.parametrize(
    "index", ["records_by_place", "records_by_hash", "records_by_id", "records_by_key", "records_pkey"]
)
def test_a_record_that_an_index_does_not_know(filled: Ledger, owner: psycopg.Connection, index: str) -> None:
    """Put in while the index was told to look away: who reads by it does not see what others see."""
    owner.execute("SET allow_system_table_mods = on")
    owner.execute(HIDDEN.format("false", index))
    key = "'k'" if index == "records_by_key" else "NULL"
    insert = AGAIN.format(3).replace("NULL", key)
    owner.execute(f"SET session_replication_role = replica; {insert}")
    owner.execute(HIDDEN.format("true", index))
    assert filled.store.schema_differences() == []
    assert filled.store.find_damage() == [f"index {index} and its table disagree"]
    assert ("STORE_DAMAGED", None, None) in codes_at(filled.verify())


def test_a_chain_that_an_index_does_not_know(filled: Ledger, owner: psycopg.Connection) -> None:
    owner.execute("SET allow_system_table_mods = on")
    owner.execute(HIDDEN.format("false", "chains_by_name"))
    owner.execute("INSERT INTO aver.chains (tenant, name) VALUES ('default', 'demo.hidden')")
    owner.execute(HIDDEN.format("true", "chains_by_name"))
    assert filled.store.find_damage() == ["index chains_by_name and its table disagree"]


def test_sound_tables_agree_and_what_was_not_checked_is_said(filled: Ledger) -> None:
    assert filled.store.find_damage() == []
    assert [words for words in filled.store.limitations() if "could not be read" in words] == []
    check = filled.verify().check("store")
    assert check.status == "passed"
    assert "amcheck" in check.reason
