"""The options that a page prints: they reach the served ledger from any terminal, and tell no secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aver import open_ledger
from aver.config import Config, load_config
from aver.explorer.command_options import find_command_options
from support.aver_command import Aver
from support.explorer_servers import serve


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of a person whose environment sets nothing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AVER_HOME", "AVER_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".aver").mkdir()
    return tmp_path


def served(**given: str) -> Config:
    """The settings of a server that was started with these flags."""
    return load_config(**given)  # type: ignore[arg-type]


def test_defaults_need_no_options(user: Path) -> None:
    assert find_command_options(served()) == []
    assert find_command_options(served(ledger=str(user / ".aver" / "ledger.db"))) == []
    assert find_command_options(served(tenant="default")) == []


def test_flags_become_options(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_command_options(served(tenant="acme")) == ["--tenant", "acme"]
    other = ["--ledger", f"sqlite:///{user}/other.db"]
    assert find_command_options(served(ledger=f"{user}/other.db")) == other
    assert find_command_options(served(ledger=f"sqlite:///{user}/other.db")) == other
    # The person who reads the page may stand in another directory.
    monkeypatch.chdir(user)
    assert find_command_options(served(ledger="other.db", tenant="acme")) == [*other, "--tenant", "acme"]
    assert find_command_options(served(ledger=".aver/ledger.db")) == []


def test_environment_of_the_server_is_not_that_of_the_reader(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AVER_LEDGER", str(user / "other.db"))
    assert find_command_options(served()) == ["--ledger", f"sqlite:///{user}/other.db"]
    assert find_command_options(served(ledger=str(user / ".aver" / "ledger.db"))) == []
    monkeypatch.delenv("AVER_LEDGER")
    monkeypatch.setenv("AVER_HOME", str(user / "elsewhere"))
    assert find_command_options(served()) == ["--ledger", f"sqlite:///{user}/elsewhere/ledger.db"]


def test_settings_of_the_reader_need_no_options(user: Path) -> None:
    settings = user / ".aver" / "config.toml"
    settings.write_text(f'ledger = "{user}/other.db"\ntenant = "acme"\n')
    assert find_command_options(served()) == []
    first = f"{user}/.aver/ledger.db"
    assert find_command_options(served(ledger=first)) == ["--ledger", f"sqlite:///{first}"]
    assert find_command_options(served(tenant="default")) == ["--tenant", "default"]
    config = served()
    for text in ("ledger = [", 'ledger = "mysql://x/y"\ntenant = "acme"\n'):
        settings.write_text(text)  # The server has read its settings before.
        assert find_command_options(config)[:2] == ["--ledger", f"sqlite:///{user}/other.db"]


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada@db.example/aver", "postgresql://ada@db.example/aver"),
        (f"postgresql://ada:{SECRET}@db.example:5433/aver", "postgresql://ada@db.example:5433/aver"),
        (f"postgresql://ada:a@{SECRET}@db.example/aver", "postgresql://ada@db.example/aver"),
        (f"postgresql://:{SECRET}@db.example/aver", "postgresql://db.example/aver"),
        (f"postgres://ada:{SECRET}@[::1]:5432/aver", "postgres://ada@[::1]:5432/aver"),
        (f"postgresql://a:{SECRET}@h1:1,h2:2/aver?sslmode=require", "postgresql://a@h1:1,h2:2/aver?sslmode=require"),
        (f"postgresql:///aver?host=/run/pg&password={SECRET}", "postgresql:///aver?host=/run/pg"),
        (f"postgresql:///aver?pass%77ord={SECRET}&user=ada%40x", "postgresql:///aver?user=ada%40x"),
        (f"postgresql:///aver?sslpassword={SECRET}&passfile=/{SECRET}&options={SECRET}", "postgresql:///aver"),
        ("postgresql://ada%3Ax@db/my%20base", "postgresql://ada%3Ax@db/my%20base"),
    ],
)
def test_no_password_is_shown(user: Path, url: str, shown: str) -> None:
    options = find_command_options(served(ledger=url))
    assert options == ["--ledger", shown]
    assert SECRET not in str(options)


def test_address_without_its_password_is_not_taken_for_the_usual_one(user: Path) -> None:
    (user / ".aver" / "config.toml").write_text(f'ledger = "postgresql://ada:{SECRET}@db/aver"\n')
    assert find_command_options(served()) == []
    other = replace(served(), ledger=f"postgresql://ada:{SECRET}@db/other")
    assert find_command_options(other) == ["--ledger", "postgresql://ada@db/other"]


def test_options_of_a_server_reach_its_ledger(user: Path) -> None:
    with open_ledger(user / "other.db", home=user / ".aver", tenant="acme") as ledger:
        ledger.append("notes.today", {"type": "chat"})
        with serve(ledger) as running:
            options = running.get("about")["command_options"]
            assert running.ask("/api/v1/about", token=None).status == 401
    assert options == ["--ledger", f"sqlite:///{user}/other.db", "--tenant", "acme"]
    ran = Aver(user)("log", *options, "--json", AVER_HOME=str(user / ".aver"))
    assert "notes.today" in {chain["chain"] for chain in ran.json["chains"]}
