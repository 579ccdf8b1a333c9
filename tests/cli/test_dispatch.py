"""What every verb promises: exit codes, one JSON object, where words go, and what never reaches a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import types

import pytest

from aver.cli.main import VERBS, main
from support.aver_command import COMMAND, ONE_DRAFT, Aver, tampering

MISSING = (
    ("verify",),
    ("verify", "nowhere.json"),
    ("verify", "--checkpoint", "nowhere.json"),
    ("verify", "--key", "nowhere.pub"),
    ("verify", "--since", "last"),
    ("verify", "--watch"),
    ("verify", "meta"),
    ("verify", "meta", "--deep"),
    ("verify", "--ledger", "nowhere/ledger.db"),
    ("log",),
    ("log", "--follow"),
    ("log", "--ledger", "nowhere.db"),
    ("show", "nowhere.json"),
    ("seal", "nowhere.jsonl", "--chain", "notes.today"),
    ("keys", "import", "nowhere.json"),
    ("keys", "trust", "nowhere.json"),
    ("keys", "export"),
    ("keys", "rotate"),
    ("export", "--out", "bundle"),
    ("import", "nowhere"),
    ("checkpoint", "--out", "heads.json"),
    ("checkpoint", "--git", "nowhere"),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("arguments", MISSING, ids=" ".join)
def test_what_is_not_there_is_an_error_and_stays_not_there(arguments: tuple[str, ...], aver: Aver) -> None:
    ran = aver(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("aver: ")
    assert "Traceback" not in ran.err
    assert aver.listing() == []


@pytest.mark.parametrize("arguments", [one for one in MISSING if "--follow" not in one], ids=" ".join)
def test_with_json_the_error_is_the_one_object_on_stdout(arguments: tuple[str, ...], aver: Aver) -> None:
    ran = aver(*arguments, "--json")
    error = ran.json["error"]
    assert ran.code == error["exit_code"] == 2
    assert error["type"] == "NotFound"
    assert error["message"]
    assert error["message"] in ran.err
    assert aver.listing() == []


def test_a_wrong_command_line_is_2_and_says_how_it_is_used(aver: Aver) -> None:
    ran = aver("verify", "--level", "deep", "--json")
    assert ran.code == 2
    assert ran.json["error"]["type"] == "Usage"
    assert "aver verify --help shows its options" in ran.err


def test_failed_is_1(sealed: Aver) -> None:
    with tampering(sealed.home / "ledger.db") as file:
        file.execute("UPDATE records SET signature = (SELECT max(signature) FROM records)")
    ran = sealed("verify", "--json")
    assert (ran.code, ran.json["status"]) == (1, "failed")
    assert ran.json["first_bad"]["code"] == "SIG_INVALID"


def test_empty_is_1(sealed: Aver) -> None:
    ran = sealed("verify", "--tenant", "nobody", "--json")
    assert (ran.code, ran.json["status"]) == (1, "empty")


def test_unavailable_is_3_and_nothing_was_done(sealed: Aver) -> None:
    (sealed.home / "config.toml").write_text("lock_timeout = 0.2\n")
    lock = os.open(sealed.home / "ledger.db.lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = sealed("seal", "-", "--chain", "notes.today", "--json", stdin=json.dumps(ONE_DRAFT))
    finally:
        os.close(lock)
    assert ran.code == 3
    assert ran.json["error"]["type"] == "Unavailable"
    assert "fuser" in ran.err
    assert sealed("log", "--json").json["chains"][1]["records"] == 3


def test_refused_is_5_with_its_reason(sealed: Aver) -> None:
    ran = sealed("keys", "new", "ledger", "--json")
    assert ran.code == 5
    assert ran.json["error"]["code"] == "KEY_EXISTS"
    assert "rotate it instead" in ran.err


def _a_verb_with_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("aver_test_defect")
    module.__dict__.update(EXAMPLES="", add_arguments=lambda parser: parser.add_argument("--json"), run=_divide_by_zero)
    monkeypatch.setitem(sys.modules, "aver_test_defect", module)
    monkeypatch.setitem(VERBS, "defect", ("aver_test_defect", "fails"))


def _divide_by_zero(*_: object) -> int:
    return 1 // 0


def test_a_defect_is_4_in_one_line_with_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _a_verb_with_a_defect(monkeypatch)
    assert main(["defect"]) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[0].startswith("aver: internal error: ZeroDivisionError")
    assert "AVER_DEBUG=1" in shown.err
    assert "Traceback" not in shown.err


def test_aver_debug_shows_where_a_defect_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _a_verb_with_a_defect(monkeypatch)
    monkeypatch.setenv("AVER_DEBUG", "1")
    assert main(["defect"]) == 4
    assert "_divide_by_zero" in capsys.readouterr().err


def test_ctrl_c_is_130_and_quiet(sealed: Aver) -> None:
    child = sealed.started("log", "notes.today", "--follow")
    assert child.stdout is not None
    assert child.stdout.readline().strip()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (130, b"")


def test_a_reader_that_went_away_is_no_error(sealed: Aver) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [str(COMMAND), "log", "notes.today"],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=sealed.directory,
        env=sealed.environment,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_under_the_output_is_told(sealed: Aver) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [str(COMMAND), "log"], stdout=full, stderr=subprocess.PIPE, env=sealed.environment, check=False
        )
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr


# --- what comes from outside never drives the terminal

HOSTILE = "\x1b[2J\x1b[1;1H\r\x9b31m✓ verified: all is well\n✓ verified\u202egnp.exe\u2028\x00\x07"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def _only_harmless(shown: str) -> None:
    """Nothing but printable characters, line ends and our own colours."""
    assert all(line.isprintable() for line in COLOURS.sub("", shown).split("\n"))


@pytest.fixture
def hostile(aver: Aver) -> Aver:
    aver.seal(
        {
            "type": "tool",
            "context": {"agent_id": HOSTILE, "environment": {HOSTILE: {HOSTILE: [HOSTILE]}}},
            "reasoning": {"options": [{"description": HOSTILE, "cons": [HOSTILE], "rejection_reason": HOSTILE}]},
            "execution": {"tool_calls": [{"tool": HOSTILE, "arguments": {"a": HOSTILE}, "error": HOSTILE}]},
            "outcome": {"status": "success", "summary": HOSTILE, "side_effects": [HOSTILE]},
        }
    )
    return aver


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "notes.today"),
        ("log", "--type", "tool"),
        ("log", "notes.today", "--json"),
        ("show", "capsule://notes.today/0"),
        ("show", "capsule://notes.today/0#outcome/summary"),
        ("show", "capsule://notes.today/0", "--raw"),
        ("show", "capsule://notes.today/0", "--json"),
        ("verify", HOSTILE.replace("\x00", "")),
        ("log", HOSTILE.replace("\x00", "")),
        ("seal", HOSTILE.replace("\x00", ""), "--chain", "notes.today"),
    ],
)
def test_a_hostile_record_or_name_cannot_repaint_the_screen(arguments: tuple[str, ...], hostile: Aver) -> None:
    _, shown = hostile.on_terminal(*arguments)
    assert shown
    _only_harmless(shown)


def test_a_hostile_summary_stays_on_its_line(hostile: Aver) -> None:
    lines = hostile("log", "notes.today").out.splitlines()
    assert len(lines) == 1
    assert "\\x1b[2J" in lines[0]


def test_a_hostile_text_never_begins_a_line_of_its_own(hostile: Aver) -> None:
    lines = hostile("show", "capsule://notes.today/0").out.splitlines()
    assert sum(line.startswith("✓ intact, verified") for line in lines) == 1
    assert lines[2].startswith("✓ intact, verified")


# --- colour


def test_colour_is_for_terminals_that_want_it(sealed: Aver) -> None:
    assert "\x1b" not in sealed("log", "notes.today").out
    assert COLOURS.search(sealed.on_terminal("log", "notes.today")[1])
    assert "\x1b" not in sealed.on_terminal("log", "notes.today", NO_COLOR="1")[1]


def test_marks_are_ascii_where_the_stream_is(sealed: Aver) -> None:
    ran = sealed.process("log", "notes.today", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ran.code == 0
    assert ran.out.isascii()
    assert "+ ran the tests" in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "pipe"),
        ("verify", "directory"),
        ("verify", "--checkpoint", "pipe"),
        ("verify", "notes.today", "--since", "pipe"),
        ("verify", "record.json", "--key", "pipe"),
        ("show", "pipe"),
        ("seal", "pipe", "--chain", "notes.today"),
        ("keys", "import", "pipe"),
        ("import", "directory"),
    ],
)
def test_a_pipe_in_the_place_of_a_file_hangs_nothing(sealed: Aver, arguments: tuple[str, ...]) -> None:
    os.mkfifo(sealed.directory / "pipe")
    (sealed.directory / "directory").mkdir()
    (sealed.directory / "record.json").write_text("{}")
    for name in ("ledger.db", "index.json"):
        os.mkfifo(sealed.directory / "directory" / name)
    ran = sealed(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("aver: ")


def test_a_pipe_in_the_place_of_the_settings_hangs_nothing(sealed: Aver) -> None:
    os.mkfifo(sealed.home / "config.toml")
    ran = sealed("verify")
    assert (ran.code, "config.toml is not a regular file" in ran.err) == (2, True)
