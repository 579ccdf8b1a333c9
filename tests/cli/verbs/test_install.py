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
