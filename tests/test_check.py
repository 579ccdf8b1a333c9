"""`verify` and `resolve`: what a thing is taken for, names in a ledger, and how rooms add judges."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aver
from aver import Ledger, open_ledger
from aver.check import EXAMINERS, FORMATS, Format, ResolvedTarget, resolve, verify, verify_with_key
from aver.errors import AverError, BadInput, NotFound, Refused, Unavailable
from aver.ledger.bundle import export_bundle
from aver.ledger.checkpoint import make_checkpoint
from aver.ledger.checkpoint_files import to_checkpoint_line
from aver.verdict import BEGINNING_BYTES, Subject, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import EXAMINED_DOMAINS
from support.loose_capsules import as_json, bad, chain_of, draft, write

# --- names in a ledger


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    ledger.append_many("claude-code.5d2e", [draft(f"step {n}") for n in range(3)], keys=["k:0", None, None])
    ledger.append("claude-code.5d2e.agent-1", draft())
    ledger.append("codex.7777", draft())
    ledger.append("codex.7788", draft())
    return ledger


def test_nothing_named_is_the_default_ledger(filled: Ledger) -> None:
    verdict = verify()
    assert (verdict.status, verdict.chains) == ("verified", 5)
    for thing in (
        filled,
        filled.store.path,
        str(filled.store.path),
        f"sqlite:///{filled.store.path}",
        filled.config.home,
    ):
        assert verify(thing).records == verdict.records
    assert verify(ledger=filled).records == verdict.records
    with pytest.raises(BadInput, match="tenant"):
        verify(filled, tenant="other")


def test_a_ledger_that_is_not_there_is_not_made(aver_home: Path, tmp_path: Path) -> None:
    for thing in (None, "codex.7777", "capsule://codex.7777/0", tmp_path / "none.db", f"sqlite:///{tmp_path}/none.db"):
        with pytest.raises(NotFound):
            verify(thing)
    with pytest.raises(NotFound, match=r"no file or directory 'codex\.7777', and there is no ledger"):
        resolve("codex.7777")
    assert not aver_home.exists()
    assert list(tmp_path.iterdir()) == []


def test_names_of_chains_and_their_beginnings(filled: Ledger) -> None:
    for name in ("claude-code.5d2e", "claude-code.5", "5d2e", "5d"):
        verdict = verify(name)
        assert (verdict.subject, verdict.records) == ("chain claude-code.5d2e", 3)
        assert resolve(name).chain == "claude-code.5d2e"
    assert verify("5d2e.agent").records == 1
    with pytest.raises(BadInput, match=r"may be any of 2 chains: codex\.7777, codex\.7788"):
        verify("77")
    with pytest.raises(NotFound, match="no file or directory 'nothing', and no chain"):
        verify("nothing")
    with pytest.raises(BadInput):
        verify("")


def test_names_of_records(filled: Ledger) -> None:
    record = list(filled.read("claude-code.5d2e"))[1]
    for name in (record.hash, record.id, record.uri, "capsule://claude-code.5d2e/1", f"capsule://{record.id}"):
        verdict = verify(name)
        assert (verdict.status, verdict.records, verdict.subject) == (
            *("verified", 1),
            "record 1 of chain claude-code.5d2e",
        )
        assert verdict.check("links").status == "passed"
        found = resolve(name)
        assert (found.record, found.chain) == (record, "claude-code.5d2e")
        assert list(found.read()) == [record]
    assert resolve("k:0").record == next(filled.read("claude-code.5d2e"))
    assert resolve("capsule://claude-code.5d2e/1#trigger/request").fragment == "trigger/request"
    for name in ("capsule://claude-code.5d2e/99", f"capsule://codex.7777/sha3_{record.hash}", "0" * 64):
        with pytest.raises(NotFound):
            verify(name)


def test_a_tampered_record_is_a_verdict_not_an_error(filled: Ledger) -> None:
    record = list(filled.read("claude-code.5d2e"))[1]
    connection = sqlite3.connect(filled.store.path)
    connection.execute("DROP TRIGGER records_stay_as_they_are")
    connection.execute(
        "UPDATE records SET canonical = replace(canonical, 'step 1', 'step X') WHERE hash = ?", [record.hash]
    )
    connection.commit()
    connection.close()
    for name in (record.hash, record.id, "capsule://claude-code.5d2e/1", "claude-code.5d2e"):
        assert bad(verify(name)) == ("HASH_MISMATCH", 1)
    assert verify("capsule://claude-code.5d2e/2").status == "verified"


def test_names_are_of_one_tenant_only(filled: Ledger) -> None:
    with open_ledger(tenant="other") as other:
        other.append("codex.secret", draft())
    with pytest.raises(NotFound):
        verify("codex.secret")
    assert verify("codex.secret", tenant="other").status == "verified"


def test_names_in_another_ledger(filled: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with open_ledger(path) as other:
        other.append("demo.there", draft())
        assert verify("demo.there", ledger=other).status == "verified"
    assert verify("demo.there", ledger=path).status == "verified"
    assert resolve("demo.there", ledger=str(path)).chain == "demo.there"
    with pytest.raises(NotFound):
        verify("demo.there")


def test_a_directory_with_a_chains_name_is_a_directory_unless_the_ledger_is_named(
    filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(filled.config.home)  # where a directory is called keys, like the chain
    for look in (verify, resolve):
        with pytest.raises(BadInput, match="keys is nothing") as raised:
            look("keys")
        assert "--ledger" in raised.value.advice
    assert verify("keys", ledger=filled).subject == "chain keys"
    assert resolve("keys", ledger=filled).chain == "keys"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    with pytest.raises(BadInput, match="pictures is nothing"):
        verify("pictures")


def test_a_chain_is_read_afresh_and_only_as_far_as_it_was_found(filled: Ledger) -> None:
    found = resolve("claude-code.5d2e")
    filled.append("claude-code.5d2e", draft())
    assert isinstance(found, ResolvedTarget)
    assert len(list(found.read())) == len(list(found.read())) == 3
    assert found.record is None


def test_what_can_be_shown_from_outside(filled: Ledger, tmp_path: Path) -> None:
    records = chain_of(2)
    assert resolve(records[0]).record == records[0]
    assert resolve(as_json(records)[1]).record == records[1]
    assert resolve(json.dumps(as_json(records)[0])).record == records[0]
    found = resolve(write(tmp_path / "two.json", as_json(records), "lines"))
    assert (found.record, list(found.read())) == (None, records)
    for thing in (None, filled, filled.store.path, f"sqlite:///{filled.store.path}"):
        with pytest.raises(BadInput, match="many chains"):
            resolve(thing)
    with pytest.raises(NotFound, match="no capsule"):
        resolve("[]")
    with pytest.raises(BadInput):
        resolve('{"a": 1}')


@pytest.mark.parametrize(
    "name", ["a" * 5000, "a\x00b", "\ud800", "~nobody/x", "../..", "-", "%", "capsule://", "x://y"]
)
def test_odd_names_are_errors_that_say_so(filled: Ledger, name: str) -> None:
    with pytest.raises((BadInput, Refused, Unavailable)):
        verify(name)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("[]")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(Unavailable, match="cannot read"):
        verify(path)


def test_a_level_that_is_none(filled: Ledger) -> None:
    with pytest.raises(BadInput, match="structural, content, signature"):
        verify(level="thorough")  # type: ignore[arg-type]


def test_another_sqlite_database_is_bad_input(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "notes.db")
    connection.execute("CREATE TABLE notes (a)")
    connection.commit()
    connection.close()
    before = set(tmp_path.iterdir())
    with pytest.raises(BadInput):
        verify(tmp_path / "notes.db")
    assert set(tmp_path.iterdir()) == before


# --- the registry


def test_a_room_adds_a_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another room's format is asked for before JSON is taken for capsules."""

    def judged(subject: Subject, terms: VerifyOptions) -> Verdict:
        tally = Tally(records=1)
        tally.count_done("shopping")
        return conclude(f"list {subject.name}", tally, level=terms.level)

    module = type(sys)("aver.shopping")
    module.is_list = lambda subject: "groceries" in subject.keys  # type: ignore[attr-defined]
    module.judge_list = judged  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aver.shopping", module)
    added = Format("a shopping list", "shopping:is_list", "shopping:judge_list")
    monkeypatch.setattr("aver.check.FORMATS", (*FORMATS[:-2], added, *FORMATS[-2:]))
    path = tmp_path / "list.json"
    path.write_text('{"groceries": ["milk"]}')
    verdict = verify(path)
    assert (verdict.status, verdict.subject) == ("verified", "list list.json")
    with pytest.raises(BadInput, match="a shopping list"):
        resolve(path)
    path.write_text('{"other": {"groceries": 1}}')
    assert verify(path).status == "failed"


def test_the_beginning_shows_the_first_keys() -> None:
    for text, keys in (
        ('{"a": [1, {"x": 2}], "b": "}", "c"', ("a", "b")),
        ('  {"a":1', ("a",)),
        ("{}", ()),
        ("{1:2}", ()),
        ('{"a": ' + "[" * 50_000, ("a",)),
        ("[1]", ()),
        ('{"n": ' + "9" * 10_000 + ', "m": 1}', ("n", "m")),
    ):
        assert Subject("x", beginning=text.encode()[:BEGINNING_BYTES]).keys == keys


@given(data=st.binary(max_size=200))
def test_recognising_raises_nothing(data: bytes) -> None:
    for beginning in (data, b"{" + data, b'{"a":' + data):
        subject = Subject("x", value=beginning, beginning=beginning)
        assert isinstance(subject.keys, tuple)


def test_everything_is_exported() -> None:
    assert aver.verify is verify
    assert aver.verify_with_key is verify_with_key


def test_errors_are_of_the_one_tree() -> None:
    with pytest.raises(AverError):
        verify(io.BytesIO(b"{}"))


def test_an_existing_path_is_a_file_unless_the_ledger_is_named(
    filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record = next(filled.read("claude-code.5d2e"))
    for name in ("claude-code.5d2e", "5d2e", record.id, record.hash):
        write(tmp_path / name, as_json(chain_of(2)), "lines")
        assert verify(name).subject == verify(f"./{name}").subject == verify(Path(name)).subject == name
        assert resolve(name).chain is None
        assert verify(name, ledger=filled).subject.endswith("chain claude-code.5d2e")
        assert resolve(name, ledger=filled).chain == "claude-code.5d2e"
    write(tmp_path / "other", as_json(chain_of(2)), "lines")
    assert verify("other").records == verify("other", ledger=filled).records == 2


def test_the_registry_names_what_is_there() -> None:
    for one in FORMATS:
        for function in filter(None, (one.recognise, one.judge, one.records)):
            module, _, name = function.partition(":")
            assert callable(getattr(import_module(f"aver.{module}"), name)), function
    for domain, checks in EXAMINED_DOMAINS.items():
        assert any(domain in one.domains and set(checks) <= set(one.checks) for one in EXAMINERS), domain


def test_every_tenant_of_a_ledger_is_verified(filled: Ledger) -> None:
    alone = verify()
    assert alone.tenants == {}
    with open_ledger(tenant="other") as other:
        other.append("codex.secret", draft())
    both = verify()
    assert list(both.tenants) == ["default", "other"]
    assert (both.status, both.records) == ("verified", sum(one.records for one in both.tenants.values()))
    assert verify(tenant="default").records == both.tenants["default"].records == alone.records
    assert verify(filled).tenants == {}


def test_progress_checkpoints_and_since_are_part_of_verify(filled: Ledger, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    whole = verify(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (whole.records, whole.records)
    head = filled.head("claude-code.5d2e")
    filled.append("claude-code.5d2e", draft())
    assert verify("claude-code.5d2e", since=head).records == 1
    assert verify("claude-code.5d2e", since=f"{head.count}:{head.hash}").records == 1
    assert verify(since="last").earlier == whole.records
    path = tmp_path / "heads.json"
    path.write_bytes(to_checkpoint_line(make_checkpoint(filled)))
    assert verify(checkpoints=[path]).check("checkpoint").status == "passed"
    assert verify(checkpoints=[path], tenant="default").check("checkpoint").status == "passed"
    for wrong in ({"since": "last"}, {"checkpoints": [path]}):
        with pytest.raises(BadInput):
            verify(path, **wrong)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="one record"):
        verify("capsule://claude-code.5d2e/1", since=head)
    with pytest.raises(BadInput, match="not a head"):
        verify("claude-code.5d2e", since="3:abc")


OFFLINE = """
import socket, sys
def refuse(*given, **named):
    raise AssertionError("a connection was made")
socket.socket.connect = refuse
socket.create_connection = refuse
import aver.ledger.ledger, aver.ledger.stores.urls
def no_ledger(*given, **named):
    raise AssertionError("a ledger was opened")
aver.ledger.ledger.open_store = no_ledger
import aver
for path in sys.argv[1:]:
    print(aver.verify(path).status)
"""


@pytest.mark.more
def test_a_path_that_exists_opens_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the name could be a chain's, and for a run that names a ledger."""
    with aver.AgentRuntime(tmp_path / "run", agent="tester") as run:
        run.record_simple("tool_call", "look", {}, "seen")
    runtime = aver.AgentRuntime(tmp_path / "unsealed", agent="tester")
    runtime.record_simple("tool_call", "look", {}, "seen")
    runtime.close()
    with open_ledger() as ledger:
        export_bundle(ledger, tmp_path / "bundle")
    write(tmp_path / "notes.today", as_json(chain_of(2)), "lines")
    things = ["run", "run/run.cap", "unsealed", "bundle", "notes.today"]
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, *things],
        cwd=tmp_path,
        env={**os.environ, "AVER_LEDGER": "postgresql://127.0.0.1:1/none"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["verified", "verified", "qualified", "verified", "qualified"]
