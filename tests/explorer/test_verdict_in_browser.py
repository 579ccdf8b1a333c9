"""The verdict in a real Chromium: its lists are never folded, however many places they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from aver.ledger.bundle import export_bundle
from support.browser_pages import open_folder
from support.bundles import draft

pytestmark = [pytest.mark.browser, pytest.mark.long]

CHAINS = 130
SHOWN = 100
"""Places that the cards of a verdict name together. Its JSON has all that the verdict kept."""


def test_places_that_were_not_checked_are_not_folded(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    for number in range(CHAINS):
        ledger.append(f"demo.{number:03}", draft(str(number)))
    export_bundle(ledger, tmp_path / "bundle")
    assert open_folder(page, tmp_path / "bundle") == "Qualified"
    band = page.locator(".band.qualified")
    assert band.locator("details").count() == 0
    band.get_by_role("heading", name="At least 101 places that could not be checked").wait_for()
    # One card for all places with the same words. Each place leads to its record.
    card = band.locator(".finding", has_text="UNKNOWN_SIGNER")
    assert card.count() == 2  # Of the records, and of the bundle's head.
    places = card.first.get_by_role("link")
    assert places.count() == SHOWN // 2
    assert places.first.is_visible()
    card.first.get_by_text("more; copy as JSON has them all").wait_for()
    places.nth(3).click()
    page.locator(".chain-view, .row").first.wait_for()
