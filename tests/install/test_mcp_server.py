"""The clients: where their settings are, what is put there, and how things stand."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from aver.agents.registry import client_names, load_client
from aver.cli.verbs.doctor.client_canaries import try_servers
from aver.errors import BadInput, Refused
from aver.files.user_dirs import UserEnvironment
from aver.install.client import server_places
from aver.install.mcp_server import build_server_entry, install_server, read_server_state, uninstall_server

USER = {
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "cline": ".cline/data/settings/cline_mcp_settings.json",
    "vscode": ".config/Code/User/mcp.json",
}
PROJECT = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def around(home: Path, project: Path | None = None, **environment: str) -> UserEnvironment:
    return UserEnvironment(home, environment, project, "linux")


def read(path: Path) -> Any:
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())


@pytest.mark.parametrize("client", client_names())
def test_for_the_user(home: Path, client: str) -> None:
    assert client in USER, "add the file of a new client's settings to USER, and to PROJECT if projects have one"
    path = home / USER[client]
    assert [one.path for one in server_places(load_client(client), around(home))] == [path]
    assert read_server_state(load_client(client), around(home))[0].state == "absent"
    assert [one.done for one in install_server(load_client(client), around(home, AVER_HOME="/x/y"))] == ["installed"]
    [servers] = read(path).values()
    entry = servers["aver"]
    assert entry["command"] == str(Path(sys.executable).with_name("aver"))
    assert entry["args"][:3] == ["mcp", "--agent", client]
    assert entry["env"] == {"AVER_HOME": "/x/y"}
    assert read_server_state(load_client(client), around(home, AVER_HOME="/x/y"))[0].state == "installed"
    assert read_server_state(load_client(client), around(home, AVER_HOME="/other"))[0].state == "outdated"
    assert [one.done for one in install_server(load_client(client), around(home, AVER_HOME="/x/y"))] == ["unchanged"]
    assert [one.done for one in uninstall_server(load_client(client), around(home))] == ["removed"]
    assert not path.exists()


@pytest.mark.parametrize("client", PROJECT)
def test_for_a_project_nothing_of_this_machine_is_written(home: Path, client: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    here = around(home, project, AVER_HOME="/x/y")
    install_server(load_client(client), here)
    path = project / PROJECT[client]
    [servers] = read(path).values()
    assert servers["aver"]["command"] == "aver"
    assert "env" not in servers["aver"]
    assert str(home) not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o644
    uninstall_server(load_client(client), here)
    assert list(project.iterdir()) == []
    assert list(home.iterdir()) == []


def test_what_each_client_needs_is_there(home: Path, tmp_path: Path) -> None:
    entries = {
        client: build_server_entry(server_places(load_client(client), around(home))[0], {}) for client in client_names()
    }
    assert [client for client, entry in entries.items() if entry.get("type") == "stdio"] == ["claude-code", "vscode"]
    assert entries["vscode"]["args"][-2:] == ["--workspace", "${workspaceFolder}"]
    assert (
        build_server_entry(server_places(load_client("cursor"), around(home, tmp_path))[0], {})["args"][-1]
        == "${workspaceFolder}"
    )
    assert all("password" not in json.dumps(entry) for entry in entries.values())


@pytest.mark.more
def test_doctor_starts_the_server_of_a_client_with_a_placeholder() -> None:
    """VS Code puts the open folder in the place of `${workspaceFolder}`. `aver doctor` has no such folder."""
    install_server(load_client("vscode"), around(Path.home()))
    [report] = try_servers()
    assert (report.status, report.words) == ("ok", "vscode: the MCP server starts and answers")


def test_a_ledgers_password_is_never_written(home: Path) -> None:
    given = around(home, AVER_LEDGER="postgresql://me:secret@host/db", AVER_HOME="/x")
    assert "secret" not in json.dumps(
        build_server_entry(server_places(load_client("cursor"), given)[0], given.environment)
    )


def test_places_follow_the_clients_own_settings(home: Path, tmp_path: Path) -> None:
    def path(client: str, **environment: str) -> Path:
        return server_places(load_client(client), around(home, **environment))[0].path

    assert path("claude-code", CLAUDE_CONFIG_DIR="/c") == Path("/c/.claude.json")
    assert path("codex", CODEX_HOME="/d") == Path("/d/config.toml")
    assert path("cline", CLINE_MCP_SETTINGS_PATH="/e/f.json") == Path("/e/f.json")
    assert path("vscode", XDG_CONFIG_HOME="/g") == Path("/g/Code/User/mcp.json")
    mac = UserEnvironment(home, {}, None, "darwin")
    assert server_places(load_client("vscode"), mac)[0].path == home / "Library/Application Support/Code/User/mcp.json"
    for directory in (".cline/data/settings", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings"):
        (home / directory).mkdir(parents=True)
    assert len(server_places(load_client("cline"), around(home))) == 2, "both the command's and the editor's"
    with pytest.raises(BadInput, match="no settings for a project"):
        server_places(load_client("cline"), around(home, tmp_path))


def test_another_server_of_that_name_is_left_alone(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    for entry in ({"command": "npx", "args": ["aver-other"]}, {"url": "https://example.org"}, "x", None, []):
        path.write_text(json.dumps({"mcpServers": {"aver": entry}}))
        before = path.read_text()
        if entry is not None:
            assert read_server_state(load_client("cursor"), around(home))[0].state == "foreign"
            with pytest.raises(Refused):
                install_server(load_client("cursor"), around(home))
            assert path.read_text() == before


def test_an_older_aver_is_brought_up_to_date(home: Path) -> None:
    path = home / ".claude.json"
    old = {"type": "stdio", "command": "/old/python", "args": ["-P", "-m", "aver", "mcp"], "timeout": 5}
    path.write_text(json.dumps({"mcpServers": {"aver": old}, "numStartups": 3}, indent=2))
    assert read_server_state(load_client("claude-code"), around(home))[0].state == "outdated"
    assert install_server(load_client("claude-code"), around(home))[0].done == "updated"
    found = read(path)
    assert (found["mcpServers"]["aver"]["timeout"], found["numStartups"]) == (5, 3)
    assert read_server_state(load_client("claude-code"), around(home))[0].state == "installed"


def test_what_cannot_be_read_is_told_and_stays(home: Path) -> None:
    path = home / ".claude.json"
    path.write_text('{"a": 1, // a comment\n}')
    told = read_server_state(load_client("claude-code"), around(home))[0]
    assert (told.state, "comment" in told.why) == ("unreadable", True)
    with pytest.raises(BadInput):
        install_server(load_client("claude-code"), around(home))
    assert path.read_text() == '{"a": 1, // a comment\n}'


def test_the_command_cannot_be_taken_over_by_the_folder_it_starts_in(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    entry = build_server_entry(server_places(load_client("cursor"), around(home))[0], {})
    assert (entry["command"], entry["args"][:3]) == (str(tmp_path / "bin" / "python"), ["-P", "-m", "aver"])


def test_a_server_that_cannot_run_is_skipped_and_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aver.install.mcp_server._PACKAGES", ("no_such_package",))
    outcomes = install_server(load_client("claude-code"), UserEnvironment(tmp_path, {}))
    assert [(one.done, one.why) for one in outcomes] == [("skipped", "needs aver-ledger[mcp]")]
    assert list(tmp_path.iterdir()) == []
