"""`aver doctor`: what is fine, what is not, and what to do; without leaving a trace."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from contextlib import closing

import pytest

from support.aver_command import Aver


def reports(aver: Aver, *arguments: str) -> dict[str, list[str]]:
    """Status of each report, by subject."""
    found: dict[str, list[str]] = {}
    for report in aver("doctor", "--json", *arguments).json["reports"]:
        found.setdefault(report["subject"], []).append(report["status"])
    return found


def test_before_anything_is_there(aver: Aver) -> None:
    ran = aver("doctor")
    assert ran.code == 0
    assert "0 problems" in ran.out
    assert "does not exist yet; the first aver seal creates it" in ran.out
    assert aver.listing() == []


def test_a_ledger_in_good_health(sealed: Aver) -> None:
    ran = sealed("doctor")
    assert ran.code == 0
    assert "0 problems, 0 warnings" in ran.out
    assert "tenant default: 4 records in 2 chains" in ran.out
    assert "ledger signs with" in ran.out
    assert set(reports(sealed)) >= {
        "aver",
        "libraries",
        "sqlite",
        "settings",
        "home",
        "keys",
        "ledger",
        "lock",
        "clock",
    }


def test_it_tells_where_each_setting_comes_from(sealed: Aver) -> None:
    (sealed.home / "config.toml").write_text('tenant = "blue"\n')
    out = sealed("doctor", "--ledger", str(sealed.home / "ledger.db")).out
    assert "tenant = blue (config.toml)" in out
    assert "ledger.db (flag)" in out
    assert "lock_timeout = 30.0 (default)" in out


def test_settings_that_cannot_be_read(sealed: Aver) -> None:
    (sealed.home / "config.toml").write_text("tenant = [\n")
    ran = sealed("doctor")
    assert ran.code == 1
    assert "is not valid TOML" in ran.out


def test_files_that_others_may_use(sealed: Aver) -> None:
    os.chmod(sealed.home / "ledger.db", 0o644)
    ran = sealed("doctor")
    assert (ran.code, "1 warning" in ran.out) == (0, True)
    assert f"chmod 600 {sealed.home}/ledger.db" in ran.out
    os.chmod(sealed.home / "keys" / "ledger.0.key", 0o666)
    ran = sealed("doctor")
    assert ran.code == 1
    assert f"chmod 600 {sealed.home}/keys/ledger.0.key" in ran.out


@pytest.mark.more
def test_a_private_key_that_is_gone(sealed: Aver) -> None:
    (sealed.home / "keys" / "ledger.0.key").unlink()
    ran = sealed("doctor")
    assert ran.code == 1
    assert "is missing" in ran.out
    assert "ok" in reports(sealed)["ledger"]


def test_a_damaged_file(sealed: Aver) -> None:
    path = sealed.home / "ledger.db"
    data = bytearray(path.read_bytes())
    for offset in range(8192, len(data), 8192):
        data[offset : offset + 64] = b"\xa5" * 64
    path.write_bytes(data)
    ran = sealed("doctor")
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_a_file_that_is_no_ledger(sealed: Aver) -> None:
    other = sealed.directory / "other.db"
    with closing(sqlite3.connect(other)) as file, file:
        file.execute("CREATE TABLE t (x)")
    ran = sealed("doctor", "--ledger", str(other))
    assert ran.code == 1
    assert "not a ledger of Aver" in ran.out


@pytest.mark.more
def test_a_lock_that_somebody_holds(sealed: Aver) -> None:
    lock = os.open(sealed.home / "ledger.db.lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert reports(sealed)["lock"] == ["warning"]
    finally:
        os.close(lock)
    assert reports(sealed)["lock"] == ["ok"]


def test_a_record_from_the_future(sealed: Aver) -> None:
    with closing(sqlite3.connect(sealed.home / "ledger.db")) as file, file:
        file.execute("DROP TRIGGER records_stay_as_they_are")
        file.execute("UPDATE records SET signed_at = '2199-01-01T00:00:00+00:00'")
    assert reports(sealed)["clock"] == ["warning"]


def hooks(aver: Aver) -> list[tuple[str, str]]:
    found = aver("doctor", "--json", HOME=str(aver.directory)).json["reports"]
    return [(one["status"], one["words"]) for one in found if one["subject"] in ("hooks", "gate")]


@pytest.mark.more
def test_every_hook_that_is_installed_is_tried_out(aver: Aver) -> None:
    assert hooks(aver) == []
    aver("install", "cline", "--only", "hooks", HOME=str(aver.directory))
    [(status, words)] = hooks(aver)
    assert status == "ok"
    assert "PreToolUse, PostToolUse, TaskStart" in words
    assert not (aver.home / "ledger.db").exists(), "a canary leaves no trace"


def test_failures_of_hooks_that_are_not_sealed_are_told(aver: Aver) -> None:
    aver("hook", "codex", "Stop", stdin="nonsense")
    [(status, words)] = hooks(aver)
    assert (status, "1 failure of hooks" in words, "codex Stop" in words) == ("warning", True, True)
    aver("hook", "codex", "Stop", stdin='{"session_id": "s"}')
    assert hooks(aver) == []
    (aver.home / "hook-failures.jsonl").unlink()
    (aver.home / "hook-failures.jsonl").mkdir()
    [(status, words)] = hooks(aver)
    assert (status, "cannot be remembered" in words) == ("problem", True)


@pytest.mark.more
def test_rules_that_cannot_be_used_deny_all_that_hooks_ask(aver: Aver) -> None:
    rules = aver.home / "rules"
    rules.mkdir(mode=0o700, parents=True)
    aver.home.chmod(0o700)
    (rules / "a.cedar").write_text("permit(")
    (aver.home / "config.toml").write_text('[gate]\npolicy = "rules"\n')
    assert hooks(aver) == [], "nobody asks"
    aver("install", "cline", "--only", "hooks", HOME=str(aver.directory))
    [(works, _), (status, words)] = hooks(aver)
    assert (works, status, "a.cedar, line 1, is not Cedar" in words) == ("ok", "problem", True)


@pytest.mark.more
def test_a_hook_that_works_and_is_switched_off_is_not_fine(aver: Aver) -> None:
    aver("install", "claude-code", "--only", "hooks", HOME=str(aver.directory))
    assert [status for status, _ in hooks(aver)] == ["ok"]
    path = aver.directory / ".claude" / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "disableAllHooks": True}))
    [(status, words)] = hooks(aver)
    assert (status, "Claude Code runs no hooks" in words) == ("warning", True)


@pytest.mark.more
def test_a_hook_that_does_not_work_is_a_problem(aver: Aver) -> None:
    home = {"HOME": str(aver.directory)}
    aver("install", "claude-code", "--only", "hooks", **home)
    path = aver.directory / ".claude" / "settings.json"
    path.write_text(path.read_text().replace("hook claude-code Stop", "hook claude-code Stop; exit 3", 1))
    problem, warning = hooks(aver)
    assert (problem[0], "claude-code Stop does not work: exit code 3" in problem[1]) == ("problem", True)
    assert warning[0] == "warning", "and it is not what aver install puts there"
    path.write_text(
        path.read_text().replace("aver hook claude-code PreToolUse", "nothing/aver hook claude-code PreToolUse")
    )
    assert any("claude-code PreToolUse does not work" in words for _, words in hooks(aver))
    assert aver("doctor", **home).code == 1
