"""Hooks in clients' settings: put in beside what is there, taken out without a trace, and told as they stand."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from aver.agents.registry import AGENTS, load_client, load_hook
from aver.errors import BadInput
from aver.files.user_dirs import UserEnvironment
from aver.install.client import hook_command, hook_places, is_guarded, is_hook_command
from aver.install.hooks import install_hooks, installed_commands, read_hooks_state, uninstall_hooks
from aver.install.mcp_server import install_server, uninstall_server

LISTS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
}
CLINE = "Documents/Cline/Hooks"
FEWEST_EVENTS: dict[str, int] = {}
"""How many events an agent has hooks for, where it offers fewer than eight."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def around(home: Path, **environment: str) -> UserEnvironment:
    return UserEnvironment(home, environment, None, "linux")


def standing(client: str, home: Path, **environment: str) -> list[str]:
    return [one.state for one in read_hooks_state(load_client(client), around(home, **environment))]


def commands_in(path: Path) -> dict[str, list[str]]:
    """The commands under each event, whatever the shape."""
    found = {}
    for event, items in json.loads(path.read_text())["hooks"].items():
        inner = [one for item in items for one in item.get("hooks", [item])]
        found[event] = [one["command"] for one in inner]
    return found


def snapshot(home: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else None
        for path in sorted(home.rglob("*"))
        if ".aver" not in path.parts
    }


@pytest.mark.parametrize("client", AGENTS)
def test_put_in_and_taken_out_without_a_trace(client: str, home: Path) -> None:
    assert standing(client, home) == ["absent"]
    assert [one.done for one in install_hooks(load_client(client), around(home))] == ["installed"]
    assert standing(client, home) == ["installed"]
    assert [one.done for one in install_hooks(load_client(client), around(home))] == ["unchanged"]
    events = [event for event, _ in installed_commands(load_client(client), around(home))]
    assert len(events) == len(set(events)) >= FEWEST_EVENTS.get(client, 8), "see FEWEST_EVENTS for a new agent"
    assert [one.done for one in uninstall_hooks(load_client(client), around(home))] == ["removed"]
    assert [one.done for one in uninstall_hooks(load_client(client), around(home))] == ["absent"]
    assert snapshot(home) == {}


@pytest.mark.parametrize("client", LISTS)
def test_commands_are_absolute_and_name_their_event(client: str, home: Path) -> None:
    install_hooks(load_client(client), around(home, AVER_HOME="/x y/z", AVER_LEDGER="postgresql://me:secret@host/db"))
    path = home / LISTS[client]
    assert "secret" not in path.read_text()
    for event, [command] in commands_in(path).items():
        given, *words = shlex.split(command)
        assert given == "AVER_HOME=/x y/z"
        if event in load_hook(client).gating:
            assert words[:2] == ["/bin/sh", "-c"]
            assert is_guarded(command)
            words = words[4:]
        program, *rest = words
        assert os.path.isabs(program)
        assert rest == ["hook", client, event]
        assert is_hook_command(command, client)


@pytest.mark.parametrize("client", LISTS)
def test_what_others_put_there_stays_to_the_byte(client: str, home: Path) -> None:
    path = home / LISTS[client]
    path.parent.mkdir()
    first = next(iter(load_client(client).find_hooks(around(home)))).events[0]  # type: ignore[union-attr]
    mine = {"hooks": [{"type": "command", "command": "mine --hook"}]} if client != "cursor" else {"command": "mine"}
    before = '{ "z": 1,\n\t"hooks": {"' + first + '" : [' + json.dumps(mine) + '], "Own": [ ]}\n}'
    path.write_text(before)
    install_hooks(load_client(client), around(home))
    found = commands_in(path)
    assert found[first][0].startswith("mine")
    assert len(found[first]) == 2
    assert json.loads(path.read_text())["z"] == 1
    uninstall_hooks(load_client(client), around(home))
    assert path.read_text() == before


@pytest.mark.parametrize("client", LISTS)
def test_what_changed_since_stays_and_ours_goes(client: str, home: Path) -> None:
    path = home / LISTS[client]
    install_hooks(load_client(client), around(home))
    value = json.loads(path.read_text())
    event = list(value["hooks"])[1]
    mine = {"hooks": [{"type": "command", "command": "mine"}]} if client != "cursor" else {"command": "mine"}
    value["hooks"][event].insert(0, mine)
    value["added"] = True
    path.write_text(json.dumps(value))
    assert standing(client, home) == ["installed"]
    uninstall_hooks(load_client(client), around(home))
    left = json.loads(path.read_text())
    assert left["hooks"] == {event: [mine]}
    assert left["added"] is True


def test_an_older_aver_is_replaced_and_its_owners_timeout_stays(home: Path) -> None:
    path = home / LISTS["claude-code"]
    path.parent.mkdir()
    old = {"hooks": [{"type": "command", "command": "/old/bin/aver hook claude-code Stop"}]}
    path.write_text(json.dumps({"hooks": {"Stop": [old]}}))
    assert standing("claude-code", home) == ["outdated"]
    assert [one.done for one in install_hooks(load_client("claude-code"), around(home))] == ["updated"]
    value = json.loads(path.read_text())
    assert len(value["hooks"]["Stop"]) == 1
    value["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 5
    path.write_text(json.dumps(value))
    assert [one.done for one in install_hooks(load_client("claude-code"), around(home))] == ["unchanged"]
    assert json.loads(path.read_text())["hooks"]["Stop"][0]["hooks"][0]["timeout"] == 5
    assert standing("claude-code", home, AVER_HOME="/other") == ["outdated"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", [None, '{\n  "mine": {"hooks": []}\n}\n'])
@pytest.mark.parametrize("client", LISTS)
def test_an_aver_that_was_installed_over_another_is_taken_out_with_it(
    client: str, text: str | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / LISTS[client]
    if text is not None:
        path.parent.mkdir()
        path.write_text(text)
    before = snapshot(home)
    install_hooks(load_client(client), around(home))
    with monkeypatch.context() as patched:
        patched.setattr("aver.install.client.aver_command", lambda: ["/opt/it's another/bin/aver"])
        assert standing(client, home) == ["outdated"]
        install_hooks(load_client(client), around(home))
        assert standing(client, home) == ["installed"]
    uninstall_hooks(load_client(client), around(home))
    assert snapshot(home) == before


def test_a_file_that_cannot_be_understood_is_left(home: Path) -> None:
    path = home / LISTS["claude-code"]
    path.parent.mkdir()
    for text in ("{ broken", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}'):
        path.write_text(text)
        with pytest.raises(BadInput):
            install_hooks(load_client("claude-code"), around(home))
        assert path.read_text() == text
    path.write_text("{ broken")
    assert standing("claude-code", home) == ["unreadable"]


def test_telling_changes_nothing(home: Path) -> None:
    for client in AGENTS:
        assert [one.done for one in install_hooks(load_client(client), around(home), dry_run=True)] == ["installed"]
        list(read_hooks_state(load_client(client), around(home)))
    assert snapshot(home) == {}


def test_hooks_are_never_put_into_a_project(home: Path, tmp_path: Path) -> None:
    project = UserEnvironment(home, {}, tmp_path, "linux")
    for client in AGENTS:
        assert hook_places(load_client(client), project) == []
        assert install_hooks(load_client(client), project) == []


def test_places_follow_the_clients_own_settings(home: Path) -> None:
    def path(client: str, **environment: str) -> Path:
        return hook_places(load_client(client), around(home, **environment))[0].path  # type: ignore[union-attr]

    assert path("claude-code", CLAUDE_CONFIG_DIR="/c") == Path("/c/settings.json")
    assert path("codex", CODEX_HOME="/d") == Path("/d/hooks.json")


@pytest.mark.parametrize(
    ("words", "is_ours"),
    [
        ("/usr/bin/aver hook codex Stop", True),
        ("AVER_HOME=/x /opt/aver hook codex Stop", True),
        ("/usr/bin/python3 -P -m aver hook codex Stop", True),
        ("/usr/bin/aver hook cursor stop", False),
        ("hook codex", False),
        ("echo aver; hook codex", False),
        ("my-aver hook codex Stop", False),
        ("aver 'unclosed", False),
        (None, False),
    ],
)
def test_whose_a_command_is(words: object, is_ours: bool) -> None:
    assert is_hook_command(words, "codex") is is_ours


# --- Codex


def codex(home: Path, version: str) -> dict[str, str]:
    """A Codex that says that it is of this version."""
    directory = home.parent / "bin"
    directory.mkdir(exist_ok=True)
    program = directory / "codex"
    program.write_text(f"#!/bin/sh\necho codex-cli {version}\n")
    program.chmod(0o755)
    return {"PATH": f"{directory}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("version", "name"), [("0.123.0", "config.toml"), ("0.124.0", "hooks.json"), ("1.0.0", "hooks.json")]
)
def test_codex_gets_hooks_if_its_version_has_them(home: Path, version: str, name: str) -> None:
    [done] = install_hooks(load_client("codex"), around(home, **codex(home, version)))
    assert (done.done, done.path.name) == ("installed", name)


def test_an_older_codex_is_to_notify_and_goes_over_to_hooks_with_a_newer_one(home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    before = '# mine\nmodel = "x" # why\n\n[tui]\nnotify = true\n'
    path.write_text(before)
    older = around(home, **codex(home, "0.100.0"))
    install_server(load_client("codex"), older)
    install_hooks(load_client("codex"), older)
    value = tomllib.loads(path.read_text())
    assert value["notify"][-3:] == ["hook", "codex", "notify"]
    assert value["tui"] == {"notify": True}
    assert [one.state for one in read_hooks_state(load_client("codex"), older)] == ["installed"]
    assert [event for event, _ in installed_commands(load_client("codex"), older)] == ["notify"]
    newer = around(home, **codex(home, "0.166.0"))
    assert [one.done for one in install_hooks(load_client("codex"), newer)] == ["removed", "installed"]
    assert "hook" not in path.read_text().replace("notify = true", "")
    uninstall_hooks(load_client("codex"), newer)
    uninstall_server(load_client("codex"), newer)
    assert path.read_text() == before


@pytest.mark.parametrize("end", ["\n", "", "\n# the end\n\n"])
def test_notify_and_server_come_out_and_leave_the_rest(home: Path, end: str) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(f"[tui]\nnotifications = true{end}")
    here = around(home, AVER_HOME="/x", **codex(home, "0.100.0"))
    install_server(load_client("codex"), here)
    install_hooks(load_client("codex"), here)
    assert tomllib.loads(path.read_text())["notify"][:2] == ["/usr/bin/env", "AVER_HOME=/x"]
    uninstall_hooks(load_client("codex"), here)
    uninstall_server(load_client("codex"), here)
    assert path.read_text() == f"[tui]\nnotifications = true{end or chr(10)}", "a last line without an end gets one"


def test_a_notify_of_the_users_stays_and_is_said(home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('notify = ["mine"]\n')
    here = around(home, **codex(home, "0.100.0"))
    [done] = install_hooks(load_client("codex"), here)
    assert (done.done, "of your own" in done.why) == ("kept", True)
    assert [one.state for one in read_hooks_state(load_client("codex"), here)] == ["foreign"]
    assert [one.done for one in uninstall_hooks(load_client("codex"), here)] == ["absent"]
    assert path.read_text() == 'notify = ["mine"]\n'


def test_what_codex_does_not_trust_is_said(home: Path) -> None:
    install_hooks(load_client("codex"), around(home))
    [told] = read_hooks_state(load_client("codex"), around(home))
    assert (told.state, "PreToolUse" in told.why, "/hooks" in told.why) == ("installed", True, True)
    hooks = home / ".codex" / "hooks.json"
    labels = ("pre_tool_use", "post_tool_use", "session_start", "user_prompt_submit", "subagent_stop", "pre_compact")
    lines = [f'[hooks.state."{hooks}:{label}:0:0"]\ntrusted_hash = "sha256:1"\n' for label in (*labels, "stop")]
    lines.append(f'[hooks.state."{hooks}:session_end:0:0"]\ntrusted_hash = "sha256:1"\nenabled = false\n')
    (home / ".codex" / "config.toml").write_text("".join(lines))
    [told] = read_hooks_state(load_client("codex"), around(home))
    assert told.why.endswith("(SessionEnd)")


def narrowed(home: Path, **more: Any) -> str:
    """What is said of Claude Code's hooks, once the user has changed the one that asks."""
    path = home / ".claude" / "settings.json"
    said = json.loads(path.read_text())
    said["hooks"]["PreToolUse"][0]["hooks"][0].update(more)
    path.write_text(json.dumps(said))
    [told] = read_hooks_state(load_client("claude-code"), around(home))
    assert told.state == "installed", "the command is the right one"
    return told.why


def test_what_claude_code_does_not_run_or_heed_is_said(home: Path) -> None:
    install_hooks(load_client("claude-code"), around(home))
    assert narrowed(home, timeout=30) == ""
    assert "is not waited for" in narrowed(home, **{"async": True})
    assert "PreToolUse runs only where 'Bash(git *)' holds" in narrowed(home, **{"if": "Bash(git *)"})
    path = home / ".claude" / "settings.json"
    said = json.loads(path.read_text())
    said["hooks"]["PreToolUse"][0]["matcher"] = "Edit"
    said["hooks"]["PreToolUse"][0]["hooks"].append(None)
    path.write_text(json.dumps({**said, "disableAllHooks": True}))
    [told] = read_hooks_state(load_client("claude-code"), around(home))
    assert "Claude Code runs no hooks" in told.why
    assert "runs only for 'Edit', not for every tool" in told.why


def test_what_whoever_looks_after_the_machine_forbids_is_said(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = tmp_path / "managed-settings.json"
    monkeypatch.setattr("aver.agents.claude_code.install.MANAGED_SETTINGS", (managed,))
    install_hooks(load_client("claude-code"), around(home))
    assert read_hooks_state(load_client("claude-code"), around(home))[0].why == ""
    managed.write_text('{"allowManagedHooksOnly": true}')
    assert "says allowManagedHooksOnly" in read_hooks_state(load_client("claude-code"), around(home))[0].why


def test_hooks_that_codex_has_switched_off_are_said(home: Path) -> None:
    install_hooks(load_client("codex"), around(home))
    (home / ".codex" / "config.toml").write_text("[features]\nhooks = false\n")
    [told] = read_hooks_state(load_client("codex"), around(home))
    assert "Codex runs no hooks" in told.why


# --- Cline


def test_clines_files_can_be_run_and_carry_a_mark(home: Path) -> None:
    install_hooks(load_client("cline"), around(home))
    for path in (home / CLINE).iterdir():
        assert path.stat().st_mode & 0o777 == 0o755
        lines = path.read_text().splitlines()
        assert lines[0] == "#!/bin/sh"
        assert "aver uninstall takes it away" in lines[1]
        command = hook_command("cline", path.name, around(home))
        assert lines[2] == (f"{command} && exit 0" if path.name == "PreToolUse" else command)


def test_a_hook_file_of_the_users_is_left_and_said(home: Path) -> None:
    directory = home / CLINE
    directory.mkdir(parents=True)
    (directory / "PreToolUse").write_text("#!/bin/sh\necho mine\n")
    before = snapshot(home)
    [done] = install_hooks(load_client("cline"), around(home))
    assert (done.done, done.why.endswith(": PreToolUse")) == ("installed", True)
    [told] = read_hooks_state(load_client("cline"), around(home))
    assert (told.state, told.why.endswith(": PreToolUse")) == ("installed", True)
    assert "PreToolUse" not in [event for event, _ in installed_commands(load_client("cline"), around(home))]
    uninstall_hooks(load_client("cline"), around(home))
    assert snapshot(home) == before


def test_a_file_of_ours_that_cannot_be_run_is_mended(home: Path) -> None:
    install_hooks(load_client("cline"), around(home))
    path = home / CLINE / "TaskStart"
    path.chmod(0o644)
    assert standing("cline", home) == ["outdated"]
    assert [one.done for one in install_hooks(load_client("cline"), around(home))] == ["updated"]
    assert path.stat().st_mode & stat.S_IXUSR
    assert standing("cline", home) == ["installed"]


def test_documents_may_have_another_name(home: Path) -> None:
    (home / ".config").mkdir()
    (home / ".config" / "user-dirs.dirs").write_text('# made\nXDG_DOCUMENTS_DIR="$HOME/Dokumente"\n')
    install_hooks(load_client("cline"), around(home))
    assert (home / "Dokumente" / "Cline" / "Hooks" / "PreToolUse").is_file()
    assert (home / ".cline" / "hooks" / "PreToolUse").is_file(), "where sessions look; they know of no other name"
    assert [event for event, _ in installed_commands(load_client("cline"), around(home))].count("PreToolUse") == 2
    (home / ".cline" / "hooks" / "TaskStart").unlink()
    assert standing("cline", home) == ["outdated"]
    uninstall_hooks(load_client("cline"), around(home))
    assert not (home / "Dokumente").exists()
    assert not (home / ".cline").exists()


def test_clines_files_stand_in_one_place_that_all_versions_look_in(home: Path) -> None:
    install_hooks(load_client("cline"), around(home))
    assert not (home / ".cline").exists(), "a session would run them twice"


# --- whether calls are gated


@pytest.mark.parametrize("client", LISTS)
def test_an_entry_of_an_earlier_version_is_recognised_brought_up_to_date_and_taken_out(client: str, home: Path) -> None:
    place = next(iter(load_client(client).find_hooks(around(home))))
    old = {event: [place.build_item(event, f"/old/bin/aver hook {client} {event}")] for event in place.events}  # type: ignore[union-attr]
    path = home / LISTS[client]
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "hooks": old}))
    [state] = [one for one in read_hooks_state(load_client(client), around(home)) if one.path == path]
    assert (state.state, state.is_gated) == ("outdated", False)
    assert "NOT GATED: /old/bin/aver does not exist" in state.why
    install_hooks(load_client(client), around(home))
    [state] = [one for one in read_hooks_state(load_client(client), around(home)) if one.path == path]
    assert state.state == "installed"
    assert state.is_gated == (client != "codex"), "Codex's user has not trusted them"
    uninstall_hooks(load_client(client), around(home))
    assert "aver" not in path.read_text()


def test_hooks_that_are_switched_off_are_not_active(home: Path) -> None:
    install_hooks(load_client("claude-code"), around(home))
    path = home / LISTS["claude-code"]
    path.write_text(json.dumps({**json.loads(path.read_text()), "disableAllHooks": True}))
    [state] = read_hooks_state(load_client("claude-code"), around(home))
    assert (state.is_gated, state.why.startswith("NOT ACTIVE")) == (False, True)


def test_clines_file_cancels_where_aver_cannot_start(home: Path) -> None:
    install_hooks(load_client("cline"), around(home))
    file = home / CLINE / "PreToolUse"
    text = file.read_text()
    program = next(word for word in text.split() if word.endswith("/aver"))
    file.write_text(text.replace(program, "/old/bin/aver"))
    done = subprocess.run([str(file)], input="{}", capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["cancel"]) == (0, True)
    [state] = read_hooks_state(load_client("cline"), around(home))
    assert "every call is blocked: /old/bin/aver does not exist" in state.why
    file.write_text(text)
    file.chmod(0o644)
    [state] = read_hooks_state(load_client("cline"), around(home))
    assert (state.is_gated, "NOT GATED" in state.why) == (False, True)
