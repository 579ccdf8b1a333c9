"""A real Chromium for tests of the Explorer's page, and what every such test does with it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from support.node import PARTS
from support.page_verdicts import VERIFIER

PAGE = VERIFIER.parent / "index.html"
AXE = PARTS / "axe-core" / "axe.min.js"
SWITCHES = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
"""Chromium in a container, which asks nobody for anything."""

JUDGED = ".band.verified, .band.qualified, .band.failed, .band.empty, .band.not-judged"
PATIENCE = 90_000
"""Milliseconds until something must have happened. Only a page that hangs takes so long."""

AXE_RULES = "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"


def find_chromium() -> str:
    """The Chromium of this machine, or the one that `CHROMIUM` names. Fails the test and says how to get one."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, filter(None, names))), None)
    if found is None:
        pytest.fail("there is no Chromium; get one, such as by: apt-get install chromium")
    return found


@contextmanager
def launch_chromium() -> Iterator[Any]:
    found = find_chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("Playwright is not installed; run: make test-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        yield browser
        browser.close()


@contextmanager
def open_page(chromium: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what it did that no page may do: errors, CSP reports, dialogs, and requests to other hosts."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
    opened.on("request", lambda request: problems.append(request.url) if _is_foreign(request.url) else None)
    yield opened, problems
    context.close()


def _is_foreign(url: str) -> bool:
    return not re.match(r"(file:|blob:|data:|http://(127\.0\.0\.1|localhost):)", url)


def key_of(ledger: Ledger) -> str:
    active = ledger.keys.ring().active("ledger")
    assert active is not None
    return active.key.ed25519


def go(page: Any, address: str) -> None:
    page.evaluate("address => { location.hash = address; }", address)


def wait_for_verdict(page: Any) -> str:
    """The word of the verdict on everything, when there is one."""
    page.locator(JUDGED).first.wait_for()
    return str(page.locator(".band h2").first.inner_text()).strip()


def open_folder(page: Any, folder: Path) -> str:
    """Choose a folder, and return the word of the verdict."""
    page.goto(PAGE.as_uri())
    page.get_by_test_id("folder").set_input_files(folder)
    return wait_for_verdict(page)


def pin(page: Any, key: str) -> None:
    go(page, "#/keys")
    page.get_by_test_id("key").fill(key)
    page.get_by_test_id("pin").click()
    go(page, "#/")
