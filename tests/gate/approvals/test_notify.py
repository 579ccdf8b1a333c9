"""Notifications: they carry what is needed, run without a shell, and harm nothing when they fail."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from aver.errors import BadInput
from aver.gate.approvals import load_approval_setup, open_request
from aver.gate.approvals.notification import _desktop_command, notify
from support.approvals import action, asking, enrolled, opened, somebody, with_settings

WRITER = """
import json, os, sys
told = {name: value for name, value in os.environ.items() if name.startswith("AVER_") and name != "AVER_HOME"}
with open(sys.argv[1] + ".part", "w") as file:
    json.dump({"environment": told, "stdin": json.load(sys.stdin), "argv": sys.argv[2:]}, file)
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""


def settings(*command: str) -> str:
    return f"[approvals]\nnotify = {json.dumps(list(command))}\n"


def told_in(path: Path) -> dict[str, dict[str, str]]:
    for _ in range(2000):
        if path.exists():
            told: dict[str, dict[str, str]] = json.loads(path.read_text() or "{}")
            return told
        time.sleep(0.01)
    raise AssertionError("nobody was told")


def test_a_command_gets_the_request(aver_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "told.json"
    command = (sys.executable, "-c", WRITER, str(out), "$(touch never)", "; touch never")
    with with_settings(aver_home, settings(*command)) as ledger:
        enrolled(ledger, somebody("ada"))
        about = action("rm \x1b[2J\u202e -rf $(touch never)")
        request = open_request(ledger, about, asking(about))
        told = told_in(out)
        open_request(ledger, about, asking(about))
    expected = {
        "AVER_REQUEST": request.id,
        "AVER_DIGEST": request.digest,
        "AVER_EXPIRES": request.expires,
        "AVER_SUMMARY": "Bash: rm <U+001B>[2J<U+202E> -rf $(touch never), builder",
    }
    assert told["environment"] == expected
    assert told["stdin"] == {name.removeprefix("AVER_").lower(): value for name, value in expected.items()}
    assert told["argv"] == ["$(touch never)", "; touch never"]


@pytest.mark.parametrize(
    "command",
    [
        ["/nowhere/at/all"],
        [""],
        [sys.executable, "-c", "raise SystemExit(3)"],
        [sys.executable, "-c", "import os; os.close(0)"],
        [],
    ],
    ids=["missing", "empty", "failing", "not reading", "none"],
)
def test_one_that_fails_harms_nothing(command: list[str], aver_home: Path) -> None:
    with with_settings(aver_home, settings(*command)) as ledger:
        enrolled(ledger, somebody("ada"))
        assert ledger.get(opened(ledger).id) is not None


def test_nobody_waits_for_it(aver_home: Path, tmp_path: Path) -> None:
    """It ends only when we let it, and we do that after the request is open."""
    go, gone = tmp_path / "go", tmp_path / "gone"
    program = (
        "import os, sys, time\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "open(sys.argv[2], 'w').write('{}')"
    )
    with with_settings(aver_home, settings(sys.executable, "-c", program, str(go), str(gone))) as ledger:
        enrolled(ledger, somebody("ada"))
        opened(ledger)
        assert not gone.exists()
        go.touch()
        assert told_in(gone) == {}


def test_the_desktop_is_told_where_there_is_one(
    aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, out = tmp_path / "bin", tmp_path / "said"
    programs.mkdir()
    program = programs / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {out}.part\nmv {out}.part {out}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    with with_settings(aver_home, "") as ledger:
        enrolled(ledger, somebody("ada"))
        request = opened(ledger)
        assert not notify(request, None, "x")  # No desktop.
        monkeypatch.setenv("DISPLAY", ":7")
        assert notify(request, None, "--icon=evil\n<b>x</b>")
    for _ in range(2000):
        if out.exists():
            break
        time.sleep(0.01)
    said = out.read_text().splitlines()
    assert said[1:3] == ["--", "Approval needed"]
    assert said[3] == "--icon=evil<U+000A><b>x</b>"


def test_no_secret_is_told(aver_home: Path, tmp_path: Path) -> None:
    out, token = tmp_path / "told.json", "ghp_" + "a1B2" * 9
    with with_settings(aver_home, settings(sys.executable, "-c", WRITER, str(out))) as ledger:
        enrolled(ledger, somebody("ada"))
        opened(ledger, f"curl -H 'Authorization: Bearer {token}' https://example.org")
        told = told_in(out)
    assert token not in json.dumps(told)
    assert "[masked:" in told["environment"]["AVER_SUMMARY"]


def test_it_can_be_switched_off(aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, out = tmp_path / "bin", tmp_path / "said"
    programs.mkdir()
    (programs / "notify-send").write_text(f"#!/bin/sh\ntouch {out}\n")
    (programs / "notify-send").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":7")
    with with_settings(aver_home, '[approvals]\nnotify = "off"\n') as ledger:
        assert load_approval_setup(ledger).rules.notify == ()
        enrolled(ledger, somebody("ada"))
        assert not notify(opened(ledger), (), "x")
    assert not out.exists()


@pytest.mark.parametrize("value", ['"loud"', "true", "{}", "[1]", '["a\\u0000b"]'])
def test_another_setting_is_refused(aver_home: Path, value: str) -> None:
    with (
        with_settings(aver_home, f"[approvals]\nnotify = {value}\n") as ledger,
        pytest.raises(BadInput, match="notify"),
    ):
        load_approval_setup(ledger)


def test_on_macos_a_script_gets_the_texts_as_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    variables = {"AVER_SUMMARY": '" & do shell script "id', "AVER_REQUEST": "0123456789"}
    command = _desktop_command(variables)
    assert command[0] == "/usr/bin/osascript"
    assert command[-2:] == ['" & do shell script "id\naver approvals show 01234567', "Approval needed"]
    assert not any("do shell script" in part for part in command[:-2])
