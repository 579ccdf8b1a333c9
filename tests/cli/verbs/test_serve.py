"""`aver serve`: what it prints, how it ends, how it opens a browser, and what it refuses."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver.cli.main import main
from aver.cli.verbs.serve import OPEN_FILE
from support.aver_command import ONE_DRAFT, Aver

LINK = re.compile(r"http://localhost:(\d+)/#token=([\w-]{43})&keys=([0-9a-f]{64})\n")


@contextmanager
def running(aver: Aver, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], re.Match[str]]]:
    """The command, and the link that it printed."""
    child = aver.started("serve", "--port", "0", *arguments)
    assert child.stdout is not None
    try:
        printed = ""
        while (found := LINK.search(printed)) is None:
            line = child.stdout.readline()
            assert line, child.communicate()
            printed += line.decode()
        yield child, found
    finally:
        child.kill()
        child.communicate()


def ask(found: re.Match[str], path: str) -> Any:
    port, token, _ = found.groups()
    request = urllib.request.Request(
        f"http://localhost:{port}/api/v1/{path}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture
def filled_home(aver: Aver) -> Aver:
    assert aver("seal", "-", "--chain", "ci.nightly", stdin=json.dumps(ONE_DRAFT)).code == 0
    return aver


@pytest.mark.more
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_link_works_until_a_signal_comes(filled_home: Aver, number: signal.Signals) -> None:
    with running(filled_home) as (child, found):
        about = ask(found, "about")
        assert about["keys_sha256"] == found[3]
        assert "ci.nightly" in {chain["name"] for chain in ask(found, "chains")["chains"]}
        child.send_signal(number)
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0
        assert errors.decode().strip().endswith("stopped")


@pytest.mark.more
def test_two_servers_have_two_tokens(filled_home: Aver) -> None:
    with running(filled_home) as (_, first), running(filled_home) as (_, second):
        assert first[2] != second[2]
        assert first[3] == second[3]


@pytest.mark.more
def test_port_in_use_is_refused(filled_home: Aver) -> None:
    with running(filled_home) as (_, found):
        ran = filled_home.process("serve", "--port", found[1])
        assert ran.code == 3
        assert "cannot listen" in ran.err
        assert "token" not in ran.out


@pytest.mark.more
def test_browser_gets_the_link_from_a_file(filled_home: Aver, tmp_path: Path) -> None:
    """Never from a command line, which every user of the machine can read."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    filled_home.environment["BROWSER"] = str(browser)
    with running(filled_home, "--open") as (child, found):
        while not seen.exists():
            time.sleep(0.05)
        given = seen.read_text().strip()
        path = filled_home.home / OPEN_FILE
        assert given == path.as_uri()
        assert found[2] not in given
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert found[2] in path.read_text()
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "belong together"),
        (["--tls-cert", "cert.pem"], "belong together"),
        (["--port", "65536"], "at most 65535"),
        (["--origin", "http://aver.example"], "is not an origin"),
        (["--host", "localhost", "--tls-cert", "no.pem", "--tls-key", "no.pem"], "cannot use the certificate"),
    ],
)
def test_wrong_options_are_refused(filled_home: Aver, arguments: list[str], words: str) -> None:
    ran = filled_home("serve", *arguments)
    assert ran.code == 2
    assert words in ran.err


def test_ledger_must_be_there(aver: Aver) -> None:
    ran = aver("serve", "--port", "0")
    assert ran.code == 2
    assert "there is no ledger" in ran.err


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [name for name in sys.modules if name.startswith("aver.explorer.server")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["serve"]) == 3
    assert "aver-ledger[explorer]" in capsys.readouterr().err
