"""A report in a real Chromium: it reads and prints by itself, and the Explorer's page judges it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from support.agents import sample_session as sample
from support.browser_pages import JUDGED, PAGE, key_of, pin
from support.reports import write_report

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def report(ledger: Ledger, tmp_path: Path) -> Path:
    hostile = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
    sample.rich(ledger, tmp_path / "t")
    sample.seal(ledger, tmp_path / "h", [sample.prompt(hostile), sample.answer(hostile)], session="hostile")
    write_report(ledger, tmp_path / "report.html")
    return tmp_path / "report.html"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_reads_and_prints_by_itself(page: Any, report: Path, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(report.as_uri())
    assert page.get_by_role("heading", name="Not established", exact=True).is_visible()
    page.get_by_role("button", name="Edits").click()
    assert page.locator("li.step:visible").count() >= 1
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.emulate_media(media="print")
    assert not page.locator(".tools").is_visible()
    folded = page.locator("details.long:visible > :not(summary)")  # Nobody unfolds paper.
    assert folded.evaluate_all("all => all.length > 0 && all.every((one) => one.checkVisibility())")
    assert len(page.pdf(format="A4")) > 10_000


def test_the_page_judges_it(page: Any, report: Path, ledger: Ledger) -> None:
    page.goto(PAGE.as_uri())
    page.get_by_test_id("files").set_input_files(report)
    page.locator(JUDGED).wait_for(timeout=90_000)
    assert page.locator(".band h2").first.inner_text().strip() == "Qualified"
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for(timeout=90_000)


def test_the_page_finds_a_change(page: Any, report: Path, ledger: Ledger) -> None:
    report.write_bytes(report.read_bytes().replace(b"half up", b"half down"))
    page.goto(PAGE.as_uri())
    page.get_by_test_id("files").set_input_files(report)
    page.locator(".band.failed").wait_for(timeout=90_000)
    assert "ARTIFACT_HASH_MISMATCH" in page.locator("main").inner_text()
