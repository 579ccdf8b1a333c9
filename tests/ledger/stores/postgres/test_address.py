"""Passwords: in no message, no name, no report, no command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aver import AverError, Capsule, Ledger, open_ledger, verify
from aver.cli.main import main
from aver.config import hide_password
from aver.ledger import slices
from support.postgres_servers import Server

SECRET = "hunter2-Swordfish"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@db.invalid/x",
        f"postgresql://ann:{SECRET}@db.invalid:5432,other.invalid/x?sslmode=require",
        f"postgresql://db.invalid/x?user=ann&password={SECRET}",
        f"postgresql://db.invalid/x?sslpassword={SECRET}&user=ann",
        f"postgresql://ann:{SECRET}@db.invalid:notaport/x",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/x?no_such_option=1",
        f"postgresql://ann:{SECRET}/@127.0.0.1:1/x",
        f"postgresql://ann:a/{SECRET}@127.0.0.1:1/x",
        f"postgresql://ann:{SECRET}#@127.0.0.1:1/x",
        f"postgresql://ann:{SECRET}?@127.0.0.1:1/x",
        f"postgresql://ann:{SECRET}@x@127.0.0.1:1/x",
        f"postgresql://ann:{SECRET}%zz@127.0.0.1:1/x",
        f"postgres://:{SECRET}@127.0.0.1:1/x",
    ],
)
@pytest.mark.parametrize(
    "verb", [("doctor",), ("doctor", "--json"), ("log", "--json"), ("verify", "no.such"), ("show", "x")]
)
def test_no_command_shows_one(url: str, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb, "--ledger", url]) != 0
    shown = "".join(capsys.readouterr())
    assert SECRET not in shown
    assert "ann" in shown or "invalid" in shown or "127.0.0.1" in shown


def test_a_mistyped_option_does_not_show_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--ledgr", f"postgresql://ann:{SECRET}@db/x", "--json"]) == 2
    out, err = capsys.readouterr()
    assert SECRET not in out + err
    assert "***" in json.loads(out)["error"]["message"]


def test_what_is_left_to_be_shown() -> None:
    assert hide_password(f"postgresql://ann:{SECRET}@db:5432/x") == "postgresql://ann:***@db:5432/x"
    for plain in (
        "/srv/ledger.db",
        "sqlite:///x.db",
        "postgresql://ann@db/x",
        "postgresql:///x?host=/run/pg",
        "12:30 @ 4",
    ):
        assert hide_password(plain) == plain


@pytest.mark.more
def test_neither_errors_nor_names_hold_one(postgres: Server, url: str, aver_home: Path) -> None:
    if postgres.data is None:
        pytest.skip("a server that is not ours may ask for its own password")
    database = url.partition("?")[0].rpartition("/")[2]
    secret = postgres.url(database, password=SECRET)
    with open_ledger(secret) as ledger:
        ledger.append("demo.secret", Capsule(type="tool"))
        assert SECRET not in ledger.store.name
        verdict = verify("demo.secret", ledger=ledger)
        assert SECRET not in json.dumps(verdict.to_dict())
        with pytest.raises(AverError) as caught:
            verify("no.such", ledger=ledger)
        assert SECRET not in str(caught.value)
        assert caught.value.advice.startswith("looked in postgresql://postgres:***@/")


@pytest.mark.more
def test_workers_get_the_url_over_their_pipe(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Their command lines, which everybody on the machine can read, hold nothing of it."""
    monkeypatch.setattr(slices, "PARALLEL_FROM", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    started: list[list[str]] = []
    popen = subprocess.Popen

    def noting(command: list[str], **options: object) -> object:
        started.append(command)
        return popen(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", noting)
    ledger.append_many("demo.many", [Capsule(type="tool") for _ in range(50)])
    assert ledger.verify().status == "verified"
    assert started
    assert all(command[0] == sys.executable and "postgres" not in " ".join(command[1:]) for command in started)
