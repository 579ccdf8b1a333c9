"""The views that the documentation has pictures of, on one ledger with everything in it.

`AVER_SCREENSHOTS=docs/explorer make test-browser ARGS='-k pictures'` draws these pictures anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.ledger.bundle import export_bundle
from support.browser_pages import go, key_of, open_folder, pin, wait_for_verdict
from support.explorer_servers import serve
from support.node import ROOT
from support.shop_ledger import MAIN, TITLE, write_shop_ledger

pytestmark = [pytest.mark.browser, pytest.mark.long]

CHAIN = f"claude-code.{MAIN}"
EDIT = 2
"""The record of the first edit in the chain."""

SIZES = {"approval": (1280, 960), "phone": (360, 720)}
"""Width and height of the window, where they are not the usual ones."""

CUT_TEXTS = """() => [...document.querySelectorAll('main *')]
  .filter((one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()))
  .filter((one) => one.checkVisibility() && one.clientWidth > 1 && !one.closest('svg, pre, code, .virtual'))
  .filter((one) => ['hidden', 'clip'].includes(getComputedStyle(one).overflowX))
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.outerHTML.slice(0, 160))"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """The ledger, and a bundle of it."""
    folder = tmp_path_factory.mktemp("shop")
    with write_shop_ledger(folder) as ledger:
        export_bundle(ledger, folder / "site", html=True)
        yield ledger, folder / "site"


def draw(page: Any, name: str) -> None:
    """Hold a view to the size of its picture, and keep the picture where pictures are asked for."""
    page.mouse.move(0, 0)
    width, height = SIZES.get(name, (1280, 800))
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if name == "phone" else "light", reduced_motion="reduce")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    if folder := os.environ.get("AVER_SCREENSHOTS"):
        page.screenshot(path=ROOT / folder / f"{name}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert page.evaluate(CUT_TEXTS) == [], name


def test_views_of_a_live_ledger(page: Any, shop: tuple[Any, Path]) -> None:
    ledger, _ = shop
    with serve(ledger) as running:
        page.goto(running.server.link)
        assert wait_for_verdict(page) == "Qualified"
        page.get_by_role("heading", name="2 approvals wait").wait_for()
        page.get_by_role("link", name=TITLE).first.wait_for()
        draw(page, "overview")
        draw(page, "phone")
        go(page, "#/sessions")
        page.get_by_text("16 of 16").wait_for()
        draw(page, "sessions")
        go(page, "#/approvals")
        page.get_by_role("link", name="deploy/prod.yaml").first.click()
        page.get_by_text("then it is denied").wait_for()
        draw(page, "approval")
        go(page, f"#/s/{CHAIN}")
        page.locator(".story-row").filter(has_text="Edit: src/price.py").click()
        page.get_by_text("I change the rounding.").wait_for()
        draw(page, "session")
        go(page, f"#/c/{CHAIN}/{EDIT}")
        page.get_by_text("The record holds by itself").wait_for()
        page.get_by_text("Looking through").wait_for(state="detached")
        draw(page, "record")
        go(page, "#/risk")
        page.get_by_role("heading", name="Over time").wait_for()
        draw(page, "risk")
        go(page, "#/acts")
        page.get_by_role("heading", name="Shares").wait_for()
        draw(page, "act")
        go(page, "#/protocol")
        page.get_by_role("heading", name="Audit: pass-with-warnings").wait_for()
        unmet = page.get_by_role("row").filter(has_text="CLAIM_UNPROVEN").inner_text()
        assert "proposal_created" in unmet
        assert "What it expects is not met." in unmet
        assert "Do not rely on the claim" not in unmet
        draw(page, "protocol")


def test_view_of_a_changed_copy(page: Any, shop: tuple[Any, Path]) -> None:
    ledger, site = shop
    open_folder(page, site)
    pin(page, key_of(ledger))
    wait_for_verdict(page)
    go(page, f"#/try/{CHAIN}/{EDIT}")
    page.get_by_role("button", name="Edit its summary").click()
    page.locator(".band.failed, .break-entry").first.wait_for()
    go(page, f"#/s/{CHAIN}")
    page.get_by_role("button", name="Next break").click()
    page.get_by_role("heading", name="The chain breaks here").wait_for()
    draw(page, "break")
