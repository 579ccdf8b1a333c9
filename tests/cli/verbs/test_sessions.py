"""`aver sessions`: one line for each session, with numbers that are right and a verdict that is real."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.agents.claude_code.hooks import read_event as read_hook_event
from aver.ingest.seal import seal_event
from aver.ledger import open_ledger
from support.agent_capsules import AgentCapsules, write_database
from support.agents import sample_session as sample
from support.aver_command import Aver


@pytest.fixture
def worked(aver: Aver, tmp_path: Path) -> Aver:
    """With a session of Claude Code and two of Codex."""
    with open_ledger(home=aver.home) as ledger:
        sample.rich(ledger, tmp_path / "t")
        for day in (1, 2):
            events = [sample.prompt(f"task {day}", at=f"2026-05-0{day}T09:00:00Z")]
            sample.seal(ledger, tmp_path / "t", events, tool="codex", session=f"019dd8e{day}-15dd-7143")
    return aver


def test_a_line_for_each(worked: Aver) -> None:
    ran = worked("sessions")
    assert ran.code == 0, ran.err
    claude, second, first = (line.split("  ") for line in ran.out.splitlines())
    assert [cell.strip() for cell in claude if cell] == [
        "claude-code",
        sample.SESSION,
        "2026-05-31 09:00",
        "6",
        "not gated",
        "1 (+1/-1)",
        "3.2k/130",
        "$0.07",
        "1",
        "verified",
        "Round half up",
    ]
    assert [cell.strip() for cell in second if cell][-2:] == ["verified", "task 2"]
    assert [cell.strip() for cell in first if cell][-2:] == ["verified", "task 1"]
    assert "columns: tool, session, started (UTC), actions" in ran.err


def test_on_a_terminal_the_columns_have_names(worked: Aver) -> None:
    code, shown = worked.on_terminal("sessions", columns=150)
    assert code == 0
    assert [word for word in ("tool", "started (UTC)", "denied", "verdict", "title") if word not in shown] == []


def test_before_any_transcript_is_read_the_title_is_the_prompt_that_a_hook_reported(aver: Aver) -> None:
    payload = {"session_id": "s1", "prompt": "make a file\nand another"}
    told = read_hook_event("UserPromptSubmit", payload).events
    called = {**payload, "tool_name": "Bash", "tool_input": {"command": "touch a"}, "tool_use_id": "t1"}
    done = read_hook_event("PostToolUse", {**called, "tool_response": {"stdout": "", "stderr": ""}}).events
    with open_ledger(home=aver.home) as ledger:
        for event in (*told, *done):
            seal_event(ledger, "claude-code", "s1", event)
    ran = aver("sessions")
    assert ran.out.rstrip().endswith("make a file")
    assert "-/-" in ran.out
    assert "Hooks do not report them; aver ingest reads them" in ran.err


def test_filters_and_limit(worked: Aver) -> None:
    assert len(worked("sessions", "--tool", "codex").out.splitlines()) == 2
    assert len(worked("sessions", "--since", "2026-05-02").out.splitlines()) == 2
    one = worked("sessions", "-n", "1")
    assert len(one.out.splitlines()) == 1
    assert "2 older sessions not listed" in one.err
    assert len(worked("sessions", "-n", "0").out.splitlines()) == 3


def test_what_is_not_verified_is_not_said_to_be(worked: Aver) -> None:
    out = worked("sessions", "--no-verify").out
    assert out.count("not checked") == 3
    assert "verified" not in out
    listed = worked("sessions", "--no-verify", "--json").json["sessions"]
    assert {session["verdict"] for session in listed} == {"not checked"}


def test_as_json(worked: Aver) -> None:
    told = worked("sessions", "--json").json
    assert (told["found"], len(told["sessions"])) == (3, 3)
    first = told["sessions"][0]
    assert (first["tool"], first["actions"], first["denials"], first["tokens_in"]) == ("claude-code", 6, 1, 3200)
    assert first["verdict"]["status"] == "verified"
    assert first["chains"] == [f"claude-code.{sample.SESSION}", f"claude-code.{sample.SESSION}.kid"]


def test_an_empty_ledger_and_none(aver: Aver) -> None:
    assert aver("sessions").code == 2
    aver.seal()
    ran = aver("sessions")
    assert (ran.code, ran.out) == (0, "")
    assert "no sessions" in ran.err


@pytest.mark.more
@pytest.mark.parametrize("part", ["", ".kid"])
def test_tampering_is_seen_also_in_a_subagents_chain(worked: Aver, part: str) -> None:
    with open_ledger(home=worked.home) as ledger:
        sample.tampered(ledger, f"claude-code.{sample.SESSION}{part}")
    ran = worked("sessions", "--tool", "claude-code")
    assert ran.code == 1
    assert "failed" in ran.out
    assert "HASH_MISMATCH" in ran.err
    assert worked("sessions", "--tool", "claude-code", "--json").json["sessions"][0]["verdict"]["status"] == "failed"


@pytest.mark.more
def test_hostile_titles_reach_no_terminal(aver: Aver, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\r\ntool  session"
    with open_ledger(home=aver.home) as ledger:
        sample.seal(ledger, tmp_path / "t", [sample.prompt(evil, title=evil)])
    code, shown = aver.on_terminal("sessions", NO_COLOR="1", columns=150)
    assert code == 0
    assert "\x1b]0" not in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    table = shown.rpartition("\r\x1b[K")[2]  # On a slow machine, progress is shown and wiped out before it.
    assert len(table.splitlines()) == 2


@pytest.mark.more
def test_databases_of_the_public_tool(aver: Aver, tmp_path: Path) -> None:
    machine = AgentCapsules()
    chain = machine.session("claude-code", "5d2e", 2)
    machine.grow(chain, 2)
    machine.finish(chain)
    machine.session("codex", "019d", 1, spec_version=False)
    home = machine.write_home(tmp_path / "theirs")
    done = aver("import", home, "--json")
    assert done.code == 0, done.err
    assert sorted(chain["origin"] for chain in done.json["chains"]) == ["claude-code-5d2e", "codex-019d", "meta"]
    listed = {session["session"]: session for session in aver("sessions", "--json").json["sessions"]}
    assert {name: session["actions"] for name, session in listed.items()} == {"5d2e": 4, "019d": 1}
    assert {session["verdict"]["status"] for session in listed.values()} == {"qualified"}
    again = aver("import", home, "--json").json
    assert {chain["existed"] for chain in again["chains"]} == {True}
    alone = aver("import", home / "chains" / "codex" / "019d.db", "--json").json
    assert [(chain["name"], chain["existed"]) for chain in alone["chains"]] == [
        (f"import.{done.json['source']}.codex.019d", True)
    ]


@pytest.mark.more
def test_one_database_wherever_it_lies_and_only_some_chains(aver: Aver, tmp_path: Path) -> None:
    machine = AgentCapsules()
    machine.session("claude-code", "5d2e", 2)
    machine.session("codex", "019d", 1)
    home = machine.write_home(tmp_path / "theirs")
    copy = tmp_path / "copy.db"
    copy.write_bytes((home / "chains" / "claude-code" / "5d2e.db").read_bytes())
    one = aver("import", copy, "--json").json
    assert [chain["name"] for chain in one["chains"]] == [f"import.{one['source']}.claude-code.5d2e"]
    some = aver("import", home, "--only", "codex-019d", "--json").json
    assert [chain["name"] for chain in some["chains"]] == [f"import.{some['source']}.codex.019d"]
    assert aver("import", home, "--only", "codex-nobody").code == 2


def test_a_tampered_database_is_not_imported(aver: Aver, tmp_path: Path) -> None:
    machine = AgentCapsules()
    machine.session("claude-code", "5d2e", 3)
    machine.chains[0].entries.pop()
    ran = aver("import", machine.write_home(tmp_path / "theirs"))
    assert ran.code == 1
    assert "nothing was imported" in ran.err
    assert "TRUNCATED" in ran.err
    assert aver("sessions").out == ""


def test_a_database_that_sessions_share(aver: Aver, tmp_path: Path) -> None:
    machine = AgentCapsules()
    one, two = machine.session("codex", "s1", 2), machine.session("codex", "s2", 3)
    shared = write_database(tmp_path / "shared.db", {"s1": one.entries, "s2": two.entries})
    done = aver("import", shared, "--json").json
    prefix = f"import.{done['source']}"
    assert {chain["name"]: chain["count"] for chain in done["chains"]} == {
        f"{prefix}.codex.s1": 2,
        f"{prefix}.codex.s2": 3,
    }
    assert len(aver("sessions", "--json").json["sessions"]) == 2


def test_what_is_neither_bundle_nor_database_is_not_imported(aver: Aver, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\x00" + bytes(200))
    for path in ("x.db", "nowhere", "."):
        assert aver("import", path).code == 2
    assert not aver.home.exists()
