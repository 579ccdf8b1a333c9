"""The page of a hostile session in a real browser: it stays text, its own script runs, and nothing is asked for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from aver.ledger import open_ledger
from aver.sessions.figures import compute_totals
from aver.sessions.html_page import render_page
from aver.sessions.sessions import find_sessions
from aver.sessions.story import read_story
from support.agents import sample_session as sample
from support.browser_pages import find_chromium

pytestmark = [pytest.mark.browser, pytest.mark.long]

HOSTILE = (
    '</script><script>document.title="taken"</script><img src=http://127.0.0.1:9/x onerror=document.title="taken">'
    '"><svg/onload=document.title="taken"><style>*{display:none}</style>'
)


def opened(path: Path, tmp_path: Path) -> tuple[str, str]:
    """The document as it stands after its scripts ran, and a log of all that the browser did on the network."""
    log = tmp_path / "net.json"
    command = [
        *(find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
        *("--disable-component-update", "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}"),
        *(f"--log-net-log={log}", "--virtual-time-budget=2000", "--dump-dom", path.as_uri()),
    ]
    home = {**os.environ, "HOME": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=home)
    return ran.stdout, log.read_text(errors="replace")


def test_a_hostile_session_is_only_text(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        events = [
            sample.prompt(HOSTILE),
            sample.command("c1", HOSTILE, HOSTILE),
            sample.edit("c2", text=HOSTILE, thinking=HOSTILE),
        ]
        sample.seal(ledger, tmp_path / "t", events)
        [chains] = find_sessions(ledger)
        written = tmp_path / "session.html"
        pieces = render_page(compute_totals(ledger, chains), read_story(ledger, chains), ledger.verify(), ledger.blob)
        written.write_text("".join(pieces), encoding="utf-8")
    document, network = opened(written, tmp_path)
    title = re.search("<title>(.*?)</title>", document, re.DOTALL)
    assert title is not None
    assert title[1].startswith("&lt;/script&gt;")
    assert not re.search("<(img|svg|iframe|object|link)", document)
    assert (document.count("<script"), document.count("<style")) == (1, 1)
    assert '<div class="tools" role="group"' in document, "its own script ran: the tools are shown"
    assert "127.0.0.1:9" not in network
