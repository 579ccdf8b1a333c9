"""`aver export` and `aver import`: giving chains away, and taking them in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aver import open_ledger
from aver.gate.action import Action
from aver.gate.approvals import approve, enrol_approver, recent_requests
from aver.gate.ask import ask
from aver.ledger.bundle import import_bundle
from support.agents import sample_session as sample
from support.approvals import SHOWN, somebody
from support.aver_command import ONE_DRAFT, Aver
from support.old_imports import as_an_older_aver_did
from support.tamper import unguarded


@pytest.fixture
def exported(sealed: Aver) -> Aver:
    """With a bundle of everything in `bundle`."""
    sealed.seal(ONE_DRAFT, chain="runs.a")
    ran = sealed("export", "--out", "bundle")
    assert ran.code == 0, ran.err
    return sealed


def test_a_bundle_verifies_where_it_was_made(exported: Aver) -> None:
    assert exported("verify", "bundle", "--json").json["status"] == "verified"


@pytest.mark.parametrize("given", [(), ("runs.a",), ("runs.a", "--with-meta")], ids=str)
def test_sender_and_verifier_see_the_same_numbers(exported: Aver, given: tuple[str, ...]) -> None:
    exported("checkpoint", "--sweep", "--out", "-")
    ran = exported("export", "--out", "again", *given)
    assert ran.code == 0, ran.err
    verdict = exported("verify", "again", "--json").json
    records, chains = verdict["records"], verdict["chains"]
    words = f"{records} record{'s'[: records != 1]} in {chains} chain{'s'[: chains != 1]}"
    assert ran.out.splitlines()[0] == f"wrote again: {words}"
    assert words in exported("verify", "again").out


def test_export_says_which_file_to_hand_over(exported: Aver) -> None:
    ran = exported("export", "--out", "again")
    assert "by another channel than the bundle" in ran.out
    assert "  aver verify again --key again.keys.json" in ran.out.splitlines()
    verdict = exported("verify", "again", "--key", "again.keys.json", "--json", AVER_HOME="stranger")
    assert verdict.json["status"] == "verified"


def test_export_says_that_no_key_is_at_hand(exported: Aver) -> None:
    ledger = str(exported.home / "ledger.db")
    ran = exported("export", "--out", "again", "--ledger", ledger, AVER_HOME="stranger")
    assert ran.code == 0, ran.err
    assert "no head.json" in ran.err
    assert (
        exported("export", "--out", "b", "--json", "--ledger", ledger, AVER_HOME="stranger").json["head_signed"]
        is False
    )
    assert exported("verify", "again", "--json").json["status"] == "qualified"


def test_a_bundle_is_replaced_only_by_force(exported: Aver) -> None:
    before = (exported.directory / "bundle" / "index.json").read_bytes()
    ran = exported("export", "--out", "bundle", "runs.a")
    assert ran.code == 2
    assert "exists already and is not overwritten" in ran.err
    assert "--force" in ran.err
    assert (exported.directory / "bundle" / "index.json").read_bytes() == before
    assert exported("export", "--out", "bundle", "runs.a", "--force").code == 0
    assert exported("verify", "bundle", "--json").json["chains"] == 2


def test_a_site_is_a_bundle_with_a_page(exported: Aver) -> None:
    ran = exported("export", "--html", "--out", "site")
    assert "open site/index.html in a browser" in ran.out
    assert (exported.directory / "site" / "explorer" / "app.js").is_file()
    checks = {check["name"]: check["status"] for check in exported("verify", "site", "--json").json["checks"]}
    assert checks["page"] == "passed"


def test_some_chains_only(exported: Aver) -> None:
    ran = exported("export", "--out", "part", "runs.a", "--json")
    assert (ran.code, ran.json["chains"], ran.json["capsules"]) == (0, 2, 2)
    assert exported("export", "--out", "part2", "runs.nowhere").code == 2


def test_imported_elsewhere_it_is_frozen_and_its_signer_unknown(exported: Aver) -> None:
    other = {"AVER_HOME": str(exported.directory / "other")}
    ran = exported("import", "bundle", **other)
    assert ran.code == 0
    assert re.search(r"imported  import\.[0-9a-f]{16}\.notes\.today .* was notes\.today", ran.out)
    assert "signed by an unknown key" in ran.err
    assert exported("keys", "show", "--json", **other).json["known"] == []
    listed = exported("log", "--json", **other).json["chains"]
    own = {"keys", "meta"}  # Where the import itself was recorded.
    assert {chain["chain"] for chain in listed if not chain["frozen"]} == own
    again = exported("import", "bundle", "--json", **other)
    assert all(chain["existed"] for chain in again.json["chains"])


def test_what_has_grown_since_is_told(exported: Aver) -> None:
    other = {"AVER_HOME": str(exported.directory / "other")}
    exported("import", "bundle", "--only", "runs.a", **other)
    exported.seal(ONE_DRAFT, chain="runs.a")
    exported("export", "--out", "later")
    ran = exported("import", "later", "--only", "runs.a", "notes.today", **other)
    assert ran.code == 0, ran.err
    lines = [line.split() for line in ran.out.splitlines()]
    grown = next(line for line in lines if line[0] == "existed")
    assert grown[1].endswith(".runs.a")
    assert grown[2:] == ["2", "records", "1", "newer", "record", "not", "imported"]
    assert any(line[0] == "imported" and line[1].endswith(".notes.today") for line in lines)
    assert "1 chain grew since the last import" in ran.err
    again = exported("import", "later", "--only", "runs.a", "--json", **other).json["chains"]
    assert [(chain["existed"], chain["beyond"]) for chain in again] == [(True, 1)]
    beside = exported("import", "later", "--only", "runs.a", "--tenant", "later", **other)
    assert re.search(r"imported  import\.[0-9a-f]{16}\.runs\.a  2 records", beside.out)
    assert exported("import", "--drop", grown[1], **other).code == 0
    whole = exported("import", "later", "--only", "runs.a", "--json", **other).json["chains"]
    assert [(chain["existed"], chain["count"], chain["beyond"]) for chain in whole] == [(False, 2, 0)]


def test_only_the_chains_that_were_named(exported: Aver) -> None:
    other = {"AVER_HOME": str(exported.directory / "other")}
    ran = exported("import", "bundle", "--only", "runs.a", "--json", **other)
    assert [chain["name"] for chain in ran.json["chains"]] == [f"import.{ran.json['source']}.runs.a"]


@pytest.mark.more
def test_an_import_is_dropped_by_one_command(exported: Aver) -> None:
    other = {"AVER_HOME": str(exported.directory / "other")}
    done = exported("import", "bundle", **other)
    digits = re.search(r"aver import --drop ([0-9a-f]{16})", done.err)
    assert digits is not None, done.err
    ran = exported("import", "--drop", digits[1], **other)
    assert ran.code == 0, ran.err
    assert f"dropped  import.{digits[1]}.notes.today" in ran.out
    assert "sealed in meta" in ran.out
    assert {chain["chain"] for chain in exported("log", "--json", **other).json["chains"]} == {"keys", "meta"}
    assert exported("verify", **other).code == 0
    assert exported("import", "--drop", digits[1], **other).code == 2
    assert exported("import", "bundle", "--json", **other).json["source"] == digits[1]
    dropped = exported("import", "--drop", f"import.{digits[1]}", "--json", **other).json["dropped"]
    assert dropped["source"] == digits[1]


def test_a_drop_takes_nothing_else(exported: Aver) -> None:
    assert exported("import").code == 2
    assert exported("import", "bundle", "--drop", "0" * 16).code == 2
    refused = exported("import", "--drop", "notes.today")
    assert refused.code == 5
    assert "was made here" in refused.err


@pytest.mark.more
def test_imported_chains_are_read_and_named(exported: Aver) -> None:
    other = {"AVER_HOME": str(exported.directory / "other")}
    digits = exported("import", "bundle", "--json", **other).json["source"]
    name = f"import.{digits}.notes.today"
    assert "imported, was notes.today" in exported("log", **other).out
    for wanted in (name, "notes.today", f"capsule://{name}/0", "capsule://notes.today/0"):
        assert exported("verify", wanted, "--json", **other).json["status"] == "qualified", wanted
        shown = exported("show", wanted, **other)
        assert (shown.code == 0) == wanted.startswith("capsule://")
        assert name in shown.out + shown.err
    drafts = json.dumps(ONE_DRAFT)
    assert exported("seal", "-", "--chain", "notes.today", stdin=drafts, **other).code == 0
    assert exported("verify", "capsule://notes.today/0", "--json", **other).json["status"] == "verified"
    assert exported("export", "--out", "again", **other).code == 0
    assert exported("verify", "again", **other).code == 0


def test_a_changed_bundle_is_not_imported(exported: Aver) -> None:
    path = exported.directory / "bundle" / "notes.today.json"
    path.write_text(path.read_text().replace("ran the tests", "ran no tests"))
    other = {"AVER_HOME": str(exported.directory / "other")}
    ran = exported("import", "bundle", "--json", **other)
    assert ran.code == 1
    assert ran.json["error"]["code"] == "HASH_MISMATCH"
    assert exported("log", "--json", **other).json["chains"] == []
    assert exported("verify", "bundle").code == 1


def test_what_is_no_bundle_creates_nothing(aver: Aver) -> None:
    (aver.directory / "some").mkdir()
    (aver.directory / "file.json").write_text(json.dumps({}))
    for path in ("some", "file.json", "nowhere"):
        assert aver("import", path).code == 2
    assert aver.listing() == ["file.json", "some"]


# --- a ledger whose own names an older Aver has given to an import


@pytest.mark.more
def test_a_gate_that_an_old_import_has_taken_over_is_given_back(aver: Aver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert aver("gate", "check", "--command", "ls").code == 0
    assert aver("export", "--out", "bundle").code == 0
    home = aver.directory / "other"
    home.mkdir()
    other = {"AVER_HOME": str(home)}
    with as_an_older_aver_did(monkeypatch), open_ledger(home / "ledger.db", home=home) as ledger:
        import_bundle(ledger, aver.directory / "bundle")
    assert aver("verify", **other).code == 0
    refused = aver("gate", "check", "--command", "ls", **other)
    assert refused.code == 5
    assert "aver import --drop gate." in refused.out + refused.err
    told = aver("doctor", **other)
    assert "aver import --drop gate.default" in told.out
    assert aver("import", "--drop", "gate.default", **other).code == 0
    assert "--drop" not in aver("doctor", **other).out
    allowed = aver("gate", "check", "--command", "ls", **other)
    assert allowed.code == 0, allowed.err
    verdict = aver("verify", "--json", **other).json
    assert verdict["status"] == "verified"
    assert aver("import", "bundle", **other).code == 0
    assert aver("gate", "check", "--command", "ls", **other).code == 0
    assert aver("verify", "--json", **other).json["status"] == "qualified"


@pytest.mark.more
def test_an_import_into_a_new_home_changes_nothing_for_the_gate(aver: Aver) -> None:
    """A stranger's decisions, approvals and sessions come in, and the gate and the approvals work as before."""
    assert aver("gate", "check", "--command", "ls").code == 0
    assert aver("export", "--out", "bundle").code == 0
    other = {"AVER_HOME": str(aver.directory / "other")}
    assert aver("import", "bundle", **other).code == 0
    assert aver("gate", "check", "--command", "ls", **other).code == 0
    assert aver("approvals", "list", **other).code == 0
    checks = {check["name"]: check for check in aver("verify", "--json", **other).json["checks"]}
    assert (checks["decisions"]["status"], checks["decisions"]["count"]) == ("passed", 2)


@pytest.mark.more
@pytest.mark.parametrize(
    "verb", [("checkpoint", "--out", "kept"), ("keys", "export", "--out", "kept")], ids=lambda verb: verb[0]
)
def test_no_verb_overwrites_evidence_without_force(exported: Aver, verb: tuple[str, ...]) -> None:
    kept = exported.directory / "kept"
    kept.write_text("mine")
    ran = exported(*verb)
    assert ran.code == 2
    assert "exists already and is not overwritten" in ran.err
    assert "--force" in ran.err
    assert kept.read_text() == "mine"
    assert exported(*verb, "--force").code == 0
    assert kept.read_text() != "mine"


# --- sessions


MAIN, KID, DECISIONS = (name.format(sample.SESSION) for name in ("claude-code.{}", "claude-code.{}.kid", "gate.{}"))


@pytest.fixture
def worked(aver: Aver, tmp_path: Path) -> Aver:
    """With a session that has a subagent and decisions, and another one that begins with other letters."""
    with open_ledger(home=aver.home) as ledger:
        sample.asked_of_the_gate(ledger, "pytest -q")
        sample.rich(ledger, tmp_path / "t")
        sample.rich(ledger, tmp_path / "u", session="second")
    return aver


def chains_in(command: Aver, bundle: str) -> set[str]:
    """The chains of a bundle, but for the keys that every bundle has."""
    index = json.loads((command.directory / bundle / "index.json").read_text())
    return {chain["id"] for chain in index["chains"]} - {"keys"}


@pytest.mark.more
@pytest.mark.parametrize("name", [sample.SESSION, sample.SESSION[:4], f"claude-code.{sample.SESSION[:4]}", "5d2e8…"])
def test_a_session_is_exported_with_all_its_chains(worked: Aver, name: str) -> None:
    ran = worked("export", "--out", "bundle", name)
    assert ran.code == 0, ran.err
    assert chains_in(worked, "bundle") == {MAIN, KID, DECISIONS}
    assert "not exported" not in ran.err
    assert worked("verify", "bundle", "--json").json["status"] == "verified"
    shown = worked("show", sample.SESSION, "--ledger", "bundle").out
    assert "Find total()" in shown  # The subagent's part of the story.


@pytest.mark.more
def test_a_chain_by_its_whole_name_is_exported_alone(worked: Aver) -> None:
    ran = worked("export", "--out", "bundle", MAIN)
    assert ran.code == 0, ran.err
    assert chains_in(worked, "bundle") == {MAIN}
    assert "not exported: 2 other chains of it" in ran.err
    assert f"to export the whole session, name {sample.SESSION}" in ran.err
    for given in ((KID,), (MAIN, sample.SESSION), (MAIN, KID, DECISIONS)):
        ran = worked("export", "--out", "bundle", "--force", *given)
        assert (ran.code, "not exported" in ran.err) == (0, False)
        assert chains_in(worked, "bundle") == ({KID} if given == (KID,) else {MAIN, KID, DECISIONS})


def test_sessions_and_chains_are_exported_together(worked: Aver) -> None:
    worked.seal(ONE_DRAFT, chain="runs.a")
    assert worked("export", "--out", "bundle", "runs.a", "second").code == 0
    assert chains_in(worked, "bundle") == {"runs.a", "claude-code.second", "claude-code.second.kid"}


def test_a_whole_id_counts_before_those_that_begin_with_it(worked: Aver, tmp_path: Path) -> None:
    with open_ledger(home=worked.home) as ledger:
        sample.rich(ledger, tmp_path / "v", session="second-try")
    assert worked("export", "--out", "bundle", "second").code == 0
    assert chains_in(worked, "bundle") == {"claude-code.second", "claude-code.second.kid"}
    ran = worked("export", "--out", "other", "sec")
    assert ran.code == 2
    assert "'sec' may be any of 2 sessions: claude-code.second, claude-code.second-try" in ran.err
    assert not (worked.directory / "other").exists()


def test_a_session_of_any_id_is_named_as_it_is_listed(worked: Aver, tmp_path: Path) -> None:
    with open_ledger(home=worked.home) as ledger:
        sample.rich(ledger, tmp_path / "v", session="a b/c")
    listed = worked("sessions", "--no-verify", "--json").json["sessions"]
    assert "a b/c" in {session["session"] for session in listed}
    assert worked("export", "--out", "bundle", "a b/c").code == 0
    assert len(chains_in(worked, "bundle")) == 2


def test_an_imported_session_is_exported_by_its_id(worked: Aver) -> None:
    other = {"AVER_HOME": str(worked.directory / "other")}
    assert worked("export", "--out", "bundle", sample.SESSION).code == 0
    digits = worked("import", "bundle", "--json", **other).json["source"]
    assert worked("export", "--out", "again", sample.SESSION[:4], **other).code == 0
    assert chains_in(worked, "again") == {f"import.{digits}.{name}" for name in (MAIN, KID, DECISIONS)}


def test_a_session_takes_the_approvals_along_that_it_rests_on(aver: Aver, tmp_path: Path) -> None:
    ada = somebody("ada")
    action = Action(
        type="shell_exec",
        tool="Bash",
        arguments={"command": "rm -rf build"},
        session=sample.SESSION,
        workspace="/w/shop",
        caller=sample.TOOL,
    )
    with open_ledger(home=aver.home) as ledger:
        sample.rich(ledger, tmp_path / "t")
        enrol_approver(ledger, ada)
        assert ask(ledger, action).decision.decision == "human_review"
        approve(ledger, next(iter(recent_requests(ledger))), ada, shown=SHOWN)
        assert ask(ledger, action).decision.decision != "human_review"
    ran = aver("export", "--out", "bundle", sample.SESSION)
    assert ran.code == 0, ran.err
    assert chains_in(aver, "bundle") == {MAIN, KID, DECISIONS, "approvals.default", "approvers.default"}
    assert "--no-approvals leaves them out" in ran.err
    assert aver("export", "--out", "bare", sample.SESSION, "--no-approvals").code == 0
    assert chains_in(aver, "bare") == {MAIN, KID, DECISIONS}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "no chain and no session in this ledger is called 'nowhere'"),
        ("runs.", "did you mean runs.a?"),
        (f"{MAIN}.k", f"did you mean {KID}?"),
        ("", "no chain and no session in this ledger is called ''"),
        (f"capsule://{MAIN}/0", f"is a record of the chain {MAIN}, and whole chains are exported"),
    ],
)
def test_a_name_of_nothing_says_what_was_looked_for(worked: Aver, name: str, words: str) -> None:
    worked.seal(ONE_DRAFT, chain="runs.a")
    ran = worked("export", "--out", "bundle", name)
    assert ran.code == 2
    assert words in ran.err
    assert "aver sessions lists the sessions, aver log the chains" in ran.err
    assert not (worked.directory / "bundle").exists()


def test_records_that_are_gone_are_not_counted(exported: Aver) -> None:
    with open_ledger(home=exported.home) as ledger:
        unguarded(ledger).execute(
            "DELETE FROM records WHERE sequence = 1 AND chain = (SELECT chain FROM chains WHERE name = 'notes.today')"
        )
    ran = exported("export", "--out", "again", "notes.today")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0] == "wrote again: 3 records in 2 chains"
    assert "1 record of these chains could not be exported" in ran.err
    told = exported("export", "--out", "more", "notes.today", "--json").json
    assert (told["capsules"], told["missing"]) == (3, 1)
    verdict = exported("verify", "again", "--json").json
    assert (verdict["status"], verdict["records"]) == ("failed", 3)
