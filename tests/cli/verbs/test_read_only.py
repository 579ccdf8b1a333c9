"""`aver log`, `show` and `sessions` on a bundle or a `.cap` file, without importing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver import open_ledger
from support.agents import sample_session as sample
from support.aver_command import ONE_DRAFT, Aver


@pytest.fixture
def exported(sealed: Aver) -> Aver:
    """With a bundle of everything in `bundle`."""
    sealed.seal(ONE_DRAFT, chain="runs.a")
    assert sealed("export", "--out", "bundle").code == 0
    return sealed


@pytest.fixture
def worked(aver: Aver, tmp_path: Path) -> Aver:
    """With a session of Claude Code, and decisions about it."""
    with open_ledger(home=aver.home) as ledger:
        sample.asked_of_the_gate(ledger, "pytest -q", workspace=str(tmp_path))
        sample.rich(ledger, tmp_path / "t")
    return aver


def _damage(aver: Aver) -> None:
    path = aver.directory / "bundle" / "notes.today.json"
    path.write_text(path.read_text().replace("ran the tests", "ran no tests"))


@pytest.mark.more
def test_log_reads_a_bundle(exported: Aver) -> None:
    chains = exported("log", "--json").json["chains"]
    ran = exported("log", "--ledger", "bundle", "--json")
    assert (ran.code, ran.json["chains"]) == (0, chains)
    assert ran.json["read_only"] is True
    assert ran.json["verdict"]["status"] == "verified"
    assert "bundle bundle, read-only: verified" in exported("log", "--ledger", "bundle").err
    for given in (("notes.today",), ("--type", "tool"), ("-n", "1"), ("notes.today", "--reverse")):
        own = exported("log", *given, "--json").json["records"]
        assert exported("log", *given, "--ledger", "bundle", "--json").json["records"] == own
    assert exported("log", "--follow", "--ledger", "bundle").code == 2


def test_log_shows_nothing_that_does_not_hold(exported: Aver) -> None:
    _damage(exported)
    ran = exported("log", "notes.today", "--ledger", "bundle")
    assert ran.code == 1
    assert "ran no tests" not in ran.out
    assert "not shown, because they do not hold" in ran.err
    assert "HASH_MISMATCH" in ran.err
    assert exported("log", "--ledger", "bundle", "--json").json["left_out"] >= 1


def test_show_reads_a_bundle(exported: Aver) -> None:
    uri = "capsule://runs.a/0"
    own = exported("show", uri, "--json").json
    ran = exported("show", uri, "--ledger", "bundle", "--json")
    assert (ran.code, ran.json["capsule"]) == (0, own["capsule"])
    for name in (own["capsule"]["id"], own["capsule"]["hash"]):
        assert exported("show", name, "--ledger", "bundle").code == 0
    assert exported("show", "runs.none", "--ledger", "bundle").code == 2
    _damage(exported)
    # This record holds; the bundle does not, and the exit code says so.
    ran = exported("show", uri, "--ledger", "bundle")
    assert ran.code == 1
    assert "HASH_MISMATCH" in ran.err


def test_show_advises_the_right_command(exported: Aver) -> None:
    ran = exported("show", "bundle")
    assert ran.code == 2
    assert "aver log --ledger bundle" in ran.err
    exported.seal(ONE_DRAFT, chain="runs.a")
    exported("export", "--out", "later")
    ran = exported("show", "later/runs.a.json")
    assert ran.code == 2
    assert "--ledger BUNDLE" in ran.err


@pytest.mark.parametrize("verb", [("seal", "draft.json", "--chain", "x.y"), ("checkpoint", "--sweep")], ids=str)
def test_nothing_is_written_to_a_bundle(exported: Aver, verb: tuple[str, ...]) -> None:
    (exported.directory / "draft.json").write_text('{"type": "tool"}')
    ran = exported(*verb, "--ledger", "bundle")
    assert ran.code == 2
    assert "can only be read" in ran.err
    assert exported("verify", "bundle", "--json").json["status"] == "verified"


def test_verify_takes_a_name_in_a_bundle(exported: Aver) -> None:
    verdict = exported("verify", "runs.a", "--ledger", "bundle", "--json").json
    assert (verdict["status"], verdict["chains"]) == ("verified", 1)


@pytest.mark.more
def test_sessions_and_their_stories_are_read_from_a_bundle(worked: Aver, tmp_path: Path) -> None:
    own = worked("sessions", "--json").json["sessions"]
    assert worked("export", "--out", "bundle").code == 0
    ran = worked("sessions", "--ledger", "bundle", "--json")
    assert ran.code == 0, ran.err

    def without_verdict(sessions: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{key: value for key, value in one.items() if key != "verdict"} for one in sessions]

    assert without_verdict(ran.json["sessions"]) == without_verdict(own)
    assert worked("show", "5d2e", "--ledger", "bundle").out.split("\n✓")[0] in worked("show", "5d2e").out
    assert worked("show", "5d2e", "--ledger", "bundle", "--html", "page.html").code == 0
    assert 'class="badge verified"' in (tmp_path / "page.html").read_text("utf-8")


def test_a_session_counts_the_records_of_its_verdict(worked: Aver) -> None:
    for session in worked("sessions", "--json").json["sessions"]:
        assert session["records"] == session["verdict"]["records"]


def test_a_tampered_session_in_a_bundle_is_told(worked: Aver) -> None:
    with open_ledger(home=worked.home) as ledger:
        sample.tampered(ledger, f"claude-code.{sample.SESSION}.kid")
    worked("export", "--out", "bundle")
    ran = worked("show", "5d2e", "--ledger", "bundle")
    assert ran.code == 1
    assert "HASH_MISMATCH" in ran.err
