"""`aver install`, `aver uninstall`, `aver status`."""

from __future__ import annotations

import json

from aver.agents.registry import client_names, load_client
from support.aver_command import Aver


def test_put_in_shown_and_taken_out(aver: Aver) -> None:
    home = {"HOME": str(aver.directory)}
    ran = aver("install", "cursor", "codex", "cursor", **home)
    assert ran.code == 0
    assert [line.split()[1:4] for line in ran.out.splitlines()[:4]] == [
        ["cursor", "mcp", "installed"],
        ["cursor", "hooks", "installed"],
        ["codex", "mcp", "installed"],
        ["codex", "hooks", "installed"],
    ]
    assert ran.out.count("Aver only tightens") == 2, "each client's change in a sentence"
    told = aver("status", "--json", **home).json["clients"]
    assert {(one["client"], one["part"]): one["state"] for one in told} == {
        ("claude-code", "mcp"): "absent",
        ("claude-code", "hooks"): "absent",
        ("codex", "mcp"): "installed",
        ("codex", "hooks"): "installed",
        ("cursor", "mcp"): "installed",
        ("cursor", "hooks"): "installed",
        ("cline", "mcp"): "absent",
        ("cline", "hooks"): "absent",
        ("vscode", "mcp"): "absent",
    }
    assert "installed" in aver("status", **home).out
    done = aver("uninstall", "cursor", "codex", "vscode", "--json", **home).json
    assert [(one["part"], one["done"]) for one in done["files"]] == [
        ("hooks", "removed"),
        ("mcp", "removed"),
        ("hooks", "removed"),
        ("mcp", "removed"),
        ("mcp", "absent"),
    ]
    assert not (aver.directory / ".cursor").exists()
    assert not (aver.directory / ".codex").exists()


def test_only_one_part(aver: Aver) -> None:
    home = {"HOME": str(aver.directory)}
    done = aver("install", "claude-code", "vscode", "--only", "hooks", "--json", **home).json["files"]
    assert [(one["client"], one["part"]) for one in done] == [("claude-code", "hooks")]
    assert not (aver.directory / ".claude.json").exists()
    done = aver("install", "claude-code", "--only", "mcp", "--json", **home).json["files"]
    assert [one["part"] for one in done] == ["mcp"]
    aver("uninstall", "claude-code", "--only", "mcp", **home)
    assert (aver.directory / ".claude" / "settings.json").exists()
    assert aver("install", "claude-code", "--only", "hooks", "--project", aver.directory, **home).code == 2


def test_what_the_clients_want_done_is_said(aver: Aver) -> None:
    home = {"HOME": str(aver.directory)}
    assert "NOT ACTIVE until you trust them" in aver("install", "codex", **home).err
    assert "trust" not in aver("install", "codex", "--only", "mcp", **home).err
    assert "runs only hooks that you trust" in aver("status", **home).out


def test_only_telling(aver: Aver) -> None:
    ran = aver("install", "claude-code", "--dry-run", HOME=str(aver.directory))
    assert "would be installed" in ran.out
    assert aver.listing() == []


def test_in_a_project(aver: Aver) -> None:
    project = aver.directory / "project"
    project.mkdir()
    assert aver("install", "claude-code", "vscode", "--project", project).code == 0
    assert json.loads((project / ".mcp.json").read_text())["mcpServers"]["aver"]["command"] == "aver"
    shown = [one["client"] for one in aver("status", "--project", project, "--json").json["clients"]]
    without = {"cline"}  # Agents that have no settings for a project.
    assert sorted(shown) == sorted(set(client_names()) - without), "a new agent stands in one of the two"
    assert aver("uninstall", "claude-code", "vscode", "--project", project).code == 0
    assert list(project.iterdir()) == []


def test_what_cannot_be_done_is_told(aver: Aver) -> None:
    home = {"HOME": str(aver.directory)}
    assert aver("install").code == 2
    assert aver("install", "emacs", **home).code == 2
    assert aver("install", "cline", "--project", aver.directory, **home).code == 2
    assert aver("install", "cursor", "--project", aver.directory / "nowhere", **home).code == 2
    (aver.directory / ".claude.json").write_text("{ broken")
    ran = aver("install", "claude-code", **home)
    assert (ran.code, "nothing was changed" in ran.err) == (2, True)
    (aver.directory / ".claude.json").write_text('{"mcpServers": {"aver": {"command": "x"}}}')
    assert aver("install", "claude-code", **home).code == 5


def test_every_client_is_described_under_its_name() -> None:
    assert [load_client(name).name for name in client_names()] == list(client_names())


def test_what_was_chosen_stands_in_the_settings_and_goes_back(aver: Aver) -> None:
    home, config = {"HOME": str(aver.directory)}, aver.home / "config.toml"
    said = aver("install", "claude-code", "--only", "hooks", "--auto-allow", **home).out
    assert "run without Claude Code's own prompt" in " ".join(said.split())
    assert config.read_text() == '[hooks.claude-code]\non_pass = "allow"\n'
    said = aver("install", "claude-code", "--only", "hooks", "--observe", **home).out
    assert "holds nothing back" in " ".join(said.split())
    assert config.read_text() == '[hooks.claude-code]\nmode = "observe"\n'
    aver("install", "claude-code", "--only", "hooks", "--no-auto-allow", **home)
    assert config.read_text() == '[hooks.claude-code]\non_pass = "leave"\n'
    aver("install", "claude-code", "--only", "hooks", **home)
    assert not config.exists()


def test_a_choice_leaves_other_settings_as_they_are(aver: Aver) -> None:
    home, config = {"HOME": str(aver.directory)}, aver.home / "config.toml"
    aver.home.mkdir(mode=0o700)
    before = '# mine\n[gate]\npass_below = 0.02  # careful\n\n[hooks.claude-code]\non_failure = "closed"\n'
    config.write_text(before)
    aver("install", "claude-code", "--only", "hooks", "--observe", **home)
    assert 'mode = "observe"' in config.read_text()
    aver("uninstall", "claude-code", **home)
    assert config.read_text() == before
    config.write_text("[gate")
    ran = aver("install", "claude-code", "--only", "hooks", **home)
    assert (ran.code, str(config) in ran.err) == (2, True)


def test_a_choice_is_about_hooks(aver: Aver) -> None:
    home = {"HOME": str(aver.directory)}
    assert aver("install", "claude-code", "--only", "mcp", "--observe", **home).code == 2
    assert aver("install", "claude-code", "--observe", "--auto-allow", **home).code == 2
    assert "Codex does not let a hook" in " ".join(aver("install", "codex", "--auto-allow", **home).out.split())
