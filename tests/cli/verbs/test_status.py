"""`aver status` and `aver doctor` about the choices that a user has made for hooks."""

from __future__ import annotations

import json

import pytest

from aver import open_ledger
from support.aver_command import Aver, Ran


@pytest.fixture
def user(aver: Aver) -> Aver:
    """A user with a home of their own, in which a client's settings may be written."""
    home = aver.directory / "user"
    (home / ".claude").mkdir(parents=True)
    aver.environment["HOME"] = str(home)
    return aver


def decide_once(aver: Aver) -> None:
    payload = {
        "session_id": "s",
        "cwd": "/work",
        "tool_name": "Bash",
        "tool_use_id": "t",
        "tool_input": {"command": "ls"},
    }
    aver("hook", "claude-code", "PreToolUse", stdin=json.dumps(payload))


def hooks_of(ran: Ran, client: str) -> dict[str, object]:
    return next(one for one in ran.json["clients"] if one["client"] == client and one["part"] == "hooks")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("option", "mode", "on_pass", "words"),
    [
        ((), "enforce", "leave", ""),
        (("--observe",), "observe", "leave", "OBSERVES: nothing is held back"),
        (("--auto-allow",), "enforce", "allow", "AUTO-ALLOW: calls that pass run without"),
        (("--no-auto-allow",), "enforce", "leave", ""),
    ],
)
def test_the_choice_is_shown(user: Aver, option: tuple[str, ...], mode: str, on_pass: str, words: str) -> None:
    assert user("install", "claude-code", "codex", "--only", "hooks", *option).code == 0
    found = hooks_of(user("status", "--json"), "claude-code")
    assert (found["state"], found["mode"], found["on_pass"]) == ("installed", mode, on_pass)
    line = next(line for line in user("status").out.splitlines() if "claude-code" in line and "hooks" in line)
    assert words in line
    assert ("(" in line) == bool(words)
    # Codex does not let a hook skip its own prompt.
    assert hooks_of(user("status", "--json"), "codex")["on_pass"] == "leave"
    assert "AUTO-ALLOW" not in next(
        line for line in user("status").out.splitlines() if "codex" in line and "hooks" in line
    )


def test_the_mode_of_the_gate_counts_for_all(user: Aver) -> None:
    assert user("install", "claude-code", "--only", "hooks").code == 0
    (user.home / "config.toml").write_text('[gate]\nmode = "observe"\n')
    assert hooks_of(user("status", "--json"), "claude-code")["mode"] == "observe"


def test_settings_that_cannot_be_used_are_named(user: Aver) -> None:
    assert user("install", "claude-code", "--only", "hooks").code == 0
    (user.home / "config.toml").write_text('[hooks]\non_pass = "always"\n')
    ran = user("status")
    assert ran.code == 0
    assert "no call passes" in ran.out
    assert "on_pass" in user("status", "--json").json["trouble"]


def gate_lines(user: Aver) -> list[dict[str, str]]:
    return [one for one in user("doctor", "--json").json["reports"] if one["subject"] == "gate"]


@pytest.mark.more
def test_doctor_does_not_ask_who_made_ones_own_choice(user: Aver) -> None:
    assert user("install", "claude-code", "--only", "hooks").code == 0
    decide_once(user)
    assert user("install", "claude-code", "--only", "hooks", "--observe").code == 0
    [change] = [one for one in gate_lines(user) if "changed at" in one["words"]]
    assert (change["status"], change["advice"]) == ("ok", "")
    assert "by aver install --observe (user " in change["words"]
    # That nothing is held back is still said.
    assert any(one["status"] == "warning" and "mode observe" in one["words"] for one in gate_lines(user))


@pytest.mark.more
def test_a_change_by_another_program_is_one_to_find_out_about(user: Aver) -> None:
    assert user("install", "claude-code", "--only", "hooks").code == 0
    decide_once(user)
    (user.home / "config.toml").write_text('[hooks.claude-code]\nmode = "observe"\n')
    decide_once(user)
    [change] = [one for one in gate_lines(user) if "changed at" in one["words"]]
    assert (change["status"], change["advice"]) == ("warning", "find out who changed them")


def test_an_installation_does_not_hide_the_change_of_another_program(user: Aver) -> None:
    assert user("install", "claude-code", "--only", "hooks").code == 0
    decide_once(user)
    (user.home / "config.toml").write_text("[gate]\npass_below = 0.9\n")
    assert user("install", "claude-code", "--only", "hooks", "--observe").code == 0
    with open_ledger(user.home / "ledger.db", home=user.home) as ledger:
        changes = [record.to_dict()["outcome"]["result"] for record in ledger.read("gate.settings")]
    assert [change.get("by", "").partition(" (")[0] for change in changes] == ["", "", "aver install --observe"]
    assert "pass_below" in " ".join(changes[1]["what"])
    assert "pass_below" not in " ".join(changes[2]["what"])
