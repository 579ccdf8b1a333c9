"""A client's MCP servers go behind the proxy and come back, with all that others have changed meanwhile."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from aver.agents.registry import client_names, load_client
from aver.cli.verbs.doctor.proxy_canary import check_proxied_servers, try_proxies
from aver.config import load_config
from aver.files.user_dirs import UserEnvironment
from aver.gate.approvals import enrol_approver
from aver.install.edit import get_entry, with_entry, with_value
from aver.install.proxied_servers import (
    install_proxies,
    is_proxied,
    proxied_commands,
    read_proxies_state,
    uninstall_proxies,
    unwrap_entry,
    wrap_entry,
)
from aver.mcp.proxy.http_headers import read_headers
from support.approvals import somebody

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

AVER = str(Path(sys.executable).with_name("aver"))
SECRET = "s3cret-token-value"

JSON_TEXT = """{
  // SERVERS OF MINE
  "SERVERS": {
    "files": {"command": "npx", "args": ["-y", "files-server", "--", "/data"],
      "env": { "KEY": "s3cret-token-value" }, "timeout": 5 },
    "bare": { "command": "/usr/bin/bare" },
    "shop": {"TYPEurl": "https://shop.example/mcp", "headers": {"Authorization": "Bearer s3cret-token-value"}},
    "asked": {"TYPEurl": "https://shop.example/mcp?key=s3cret-token-value"},
    "odd": {"type": "ws", "url": "wss://shop.example/"}
  },
  "other": [1,   2]
}
"""

TOML_TEXT = """# Mine.
model = "x"

[mcp_servers.files]
command = "npx"
args = ["-y", "files-server", "--", "/data"]
startup_timeout_sec = 5

[mcp_servers.files.env]
KEY = "s3cret-token-value"

[mcp_servers.bare]
command = "/usr/bin/bare"

[mcp_servers.shop]
url = "https://shop.example/mcp"
http_headers = { "X-Key" = "s3cret-token-value" }
env_http_headers = { "X-Other" = "OTHER_KEY" }
bearer_token_env_var = "SHOP_TOKEN"

[mcp_servers.asked]
url = "https://shop.example/mcp?key=s3cret-token-value"

[mcp_servers.odd]
url = "https://shop.example/mcp"
scopes = ["all"]

# The end.
[features]
a = true
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def around(home: Path, **environment: str) -> UserEnvironment:
    return UserEnvironment(home, environment, None, "linux")


def write_servers(home: Path, client: str) -> Path:
    path = home / USER[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    if client == "codex":
        path.write_text(TOML_TEXT)
        return path
    text = JSON_TEXT.replace("SERVERS OF MINE", "mine").replace(
        "SERVERS", "servers" if client == "vscode" else "mcpServers"
    )
    kind = {"claude-code": "http", "vscode": "http", "cline": "streamableHttp"}.get(client)
    text = text.replace('"TYPE', f'"type": "{kind}", "' if kind else '"')
    if client in ("claude-code", "cline"):  # Plain JSON.
        text = text.replace("  // mine\n", "")
    path.write_text(text)
    return path


def read_servers(path: Path) -> dict[str, Any]:
    form: Any = "toml" if path.suffix == ".toml" else "jsonc"
    for name in ("mcpServers", "servers", "mcp_servers"):
        found = get_entry(path.read_text(), form, (name,))
        if found is not None:
            return dict(found)
    raise AssertionError(path)


@pytest.mark.parametrize("client", client_names())
def test_every_server_goes_behind_the_proxy_and_comes_back(client: str, home: Path) -> None:
    path = write_servers(home, client)
    before, servers = path.read_text(), read_servers(path)
    [outcome] = install_proxies(load_client(client), around(home, AVER_HOME="/x/y"))
    assert outcome.done == "installed"
    assert "odd" in outcome.why
    behind = read_servers(path)
    files = behind["files"]
    assert files["command"] == AVER
    words = ["-y", "files-server", "--", "/data"]
    assert files["args"][:3] == ["proxy", "--name", "files"]
    assert files["args"][-6:] == ["--", "npx", *words]
    assert files["env"] == {"KEY": SECRET, "AVER_HOME": "/x/y"}
    assert {name: value for name, value in files.items() if name not in ("command", "args", "env", "type")} == {
        name: value for name, value in servers["files"].items() if name not in ("command", "args", "env", "type")
    }
    assert behind["odd"] == servers["odd"]
    # No secret is on a command line, and none is lost.
    for name in ("shop", "asked"):
        assert SECRET not in " ".join([behind[name]["command"], *behind[name]["args"]])
        assert "url" not in behind[name]
        assert SECRET in json.dumps(behind[name]["env"])
    assert "--http" in behind["shop"]["args"]
    assert "https://shop.example/mcp" in behind["shop"]["args"]
    assert behind["asked"]["env"]["AVER_PROXY_URL"] == servers["asked"]["url"]
    # Once more changes nothing.
    assert [one.done for one in install_proxies(load_client(client), around(home, AVER_HOME="/x/y"))] == ["unchanged"]
    [state] = read_proxies_state(load_client(client), around(home))
    assert state.state == "installed"
    assert "behind it: asked, bare, files, shop" in state.why
    assert "NOT behind it: odd" in state.why
    assert [one.done for one in uninstall_proxies(load_client(client), around(home))] == ["removed"]
    assert read_servers(path) == servers
    if client != "codex":  # TOML comes back with the same values; lists and tables may be laid out in another way.
        assert path.read_text() == before
    assert not (Path(os.environ["AVER_HOME"]) / "proxied.json").exists()
    assert uninstall_proxies(load_client(client), around(home)) == []


@pytest.mark.parametrize("client", client_names())
def test_what_others_change_meanwhile_stays(client: str, home: Path) -> None:
    path = write_servers(home, client)
    servers = read_servers(path)
    form: Any = "toml" if client == "codex" else "jsonc"
    top = {"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers")
    install_proxies(load_client(client), around(home))
    text = path.read_text()
    arguments = read_servers(path)["files"]["args"]
    text = with_value(text, form, (top, "files", "args"), [*arguments, "--more"])
    text = with_value(text, form, (top, "files", "env", "NEW"), "1")
    text = with_value(text, form, (top, "shop", "disabled"), value=True)
    text = with_entry(text, form, (top, "added"), {"command": "added"})
    text = with_value(text, form, (top, "bare", "command"), "mine-now")
    text = with_value(text, form, (top, "bare", "args"), [])
    path.write_text(text)
    uninstall_proxies(load_client(client), around(home))
    found = read_servers(path)
    assert found["files"]["args"] == [*servers["files"]["args"], "--more"]
    assert found["files"]["env"] == {"KEY": SECRET, "NEW": "1"}
    assert found["shop"] == {**servers["shop"], "disabled": True}
    assert found["added"] == {"command": "added"}
    assert found["bare"]["command"] == "mine-now"
    assert found["asked"] == servers["asked"]


@pytest.mark.parametrize("client", client_names())
def test_without_its_memory_entries_come_back_from_themselves(client: str, home: Path) -> None:
    path = write_servers(home, client)
    servers = read_servers(path)
    install_proxies(load_client(client), around(home))
    (Path(os.environ["AVER_HOME"]) / "proxied.json").write_text("damaged")
    uninstall_proxies(load_client(client), around(home))
    found = read_servers(path)
    assert not any(map(is_proxied, found.values()))
    for name in ("files", "shop", "asked"):
        same = {**servers[name], "type": found[name].get("type")} if "type" in found[name] else servers[name]
        assert {**found[name], "args": found[name].get("args", [])} == {**same, "args": same.get("args", [])}


@pytest.mark.parametrize("client", sorted(PROJECT))
def test_in_a_project_the_command_is_aver_alone(client: str, home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    path = project / PROJECT[client]
    path.parent.mkdir(parents=True)
    path.write_text(write_servers(home, client).read_text())
    install_proxies(load_client(client), UserEnvironment(home, {"AVER_HOME": "/x"}, project, "linux"))
    files = read_servers(path)["files"]
    assert files["command"] == "aver"
    assert "AVER_HOME" not in files["env"]


def test_servers_of_single_projects_in_claude_codes_own_file_go_behind_it_too(home: Path) -> None:
    path = home / ".claude.json"
    entry = {"type": "stdio", "command": "x", "args": []}
    before = {"projects": {"/src/a": {"mcpServers": {"own": entry}, "history": []}, "/src/b": {}}, "n": 1}
    path.write_text(json.dumps(before, indent=2))
    install_proxies(load_client("claude-code"), around(home))
    found = json.loads(path.read_text())
    assert is_proxied(found["projects"]["/src/a"]["mcpServers"]["own"])
    uninstall_proxies(load_client("claude-code"), around(home))
    assert path.read_text() == json.dumps(before, indent=2)


def test_servers_in_the_own_file_of_a_known_project_are_named_with_the_command(home: Path, tmp_path: Path) -> None:
    project, client = tmp_path / "my project", load_client("claude-code")
    project.mkdir()
    entry = {"type": "stdio", "command": "x", "args": []}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"shared": entry}}))
    known = {str(project): {}, str(tmp_path / "gone"): {}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"own": entry}, "projects": known}))
    install_proxies(client, around(home))
    own, shared = read_proxies_state(client, around(home))
    assert (own.state, own.why) == ("installed", "behind it: own")
    assert (shared.path, shared.state) == (project / ".mcp.json", "absent")
    run = f"aver install claude-code --proxy --project '{project}'"
    assert shared.why == f"NOT behind it: shared; run: {run}"
    install_proxies(client, UserEnvironment(home, {}, project, "linux"))
    assert len(read_proxies_state(client, around(home))) == 1


def test_avers_own_server_is_left_alone(home: Path) -> None:
    path = home / ".claude.json"
    text = json.dumps({"mcpServers": {"aver": {"type": "stdio", "command": AVER, "args": ["mcp"]}}})
    path.write_text(text)
    assert install_proxies(load_client("claude-code"), around(home)) == []
    assert path.read_text() == text


def test_codex_passes_on_the_variables_that_headers_need(home: Path) -> None:
    path = write_servers(home, "codex")
    install_proxies(load_client("codex"), around(home))
    shop = tomllib.loads(path.read_text())["mcp_servers"]["shop"]
    assert shop["env_vars"] == ["OTHER_KEY", "SHOP_TOKEN"]
    headers = read_headers({**shop["env"], "OTHER_KEY": "o", "SHOP_TOKEN": "t"})
    assert headers == {"X-Key": SECRET, "X-Other": "o", "Authorization": "Bearer t"}


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"command": 5},
        {"command": "x", "args": "a b"},
        {"command": "x", "args": [1]},
        {"command": "x", "env": []},
        {"url": "https://x", "headers": ["a"]},
        {"url": "https://x", "headers": {"a": 1}},
        {"url": "https://x", "type": "ws"},
        {"url": "https://x", "headersHelper": "get-headers"},
    ],
)
def test_an_entry_that_cannot_be_carried_over_is_left_and_named(home: Path, entry: dict[str, Any]) -> None:
    path = home / ".claude.json"
    text = json.dumps({"mcpServers": {"odd": entry}})
    path.write_text(text)
    [outcome] = install_proxies(load_client("claude-code"), around(home))
    assert outcome.done == "kept"
    assert "odd" in outcome.why
    assert path.read_text() == text


def test_wrapping_and_unwrapping_are_each_others_inverse(home: Path) -> None:
    for client in map(load_client, client_names()):
        [place] = client.find_servers(around(home))
        for entry in (
            {"command": "a b", "args": ["--", "proxy", "--name", "x", ""], "env": {"A": "1"}},
            {"command": "proxy", "args": []},
            {"url": "http://localhost:1/mcp", client.server_form.headers: {"A": "x: y", "B-C": ""}},
            {"url": "https://u:p@host/mcp"},
        ):
            wrapped = wrap_entry(entry, "name", place, client.server_form, "/home")
            found = unwrap_entry(wrapped, client.server_form)
            found.pop("type", None)
            assert found == entry


def test_doctor_sends_a_canary_that_is_refused_and_no_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    command = ["/bin/sh", "-c", f"touch {shlex.quote(str(started))}"]
    path = Path.home() / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"shop": {"command": command[0], "args": command[1:]}}}))
    own = UserEnvironment(Path.home(), os.environ)
    install_proxies(load_client("cursor"), own)
    [finding] = try_proxies()
    assert (finding.status, finding.subject) == ("ok", "proxy"), finding
    assert not started.exists()
    assert not (Path(os.environ["AVER_HOME"]) / "ledger.db").exists()
    # A command that is no proxy of Aver is a problem.
    [(name, words, _)] = proxied_commands(load_client("cursor"), own)
    assert name == "shop"
    fake = tmp_path / "aver"
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    path.write_text(json.dumps({"mcpServers": {"shop": {"command": str(fake), "args": words[1:]}}}))
    [finding] = try_proxies()
    assert finding.status == "problem"


def test_doctor_warns_of_servers_beside_the_proxy_and_of_nobody_who_approves() -> None:
    path = Path.home() / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    shop = {"command": "/bin/true", "args": []}
    path.write_text(json.dumps({"mcpServers": {"shop": shop}}))
    assert list(check_proxied_servers(load_config())) == [], "no proxy is wanted yet"
    install_proxies(load_client("cursor"), UserEnvironment(Path.home(), os.environ))
    servers = json.loads(path.read_text())["mcpServers"]
    path.write_text(json.dumps({"mcpServers": {**servers, "later": shop}}))
    beside, nobody = check_proxied_servers(load_config())
    assert (beside.status, nobody.status) == ("warning", "warning")
    assert ("later" in beside.words, "shop" in beside.words) == (True, False)
    assert "no approver is enrolled" in nobody.words
    path.write_text(json.dumps({"mcpServers": servers}))
    with open_ledger() as ledger:
        person = somebody("ada")
        ledger.keys.trust(person.public)
        enrol_approver(ledger, person)
    assert list(check_proxied_servers(load_config())) == []
