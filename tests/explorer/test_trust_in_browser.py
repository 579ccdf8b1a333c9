"""Whom the page believes, in a real Chromium: keys that came along, keys from a file, dropped files, times, expiry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from aver.gate.approvals import enrol_approver, load_request_state
from aver.ledger.bundle import export_bundle
from support.agents import sample_session as sample
from support.approvals import opened, somebody
from support.browser_pages import PAGE, PATIENCE, go, key_of, open_folder, wait_for_verdict
from support.bundles import change_chain
from support.explorer_servers import serve
from support.stolen_keys import seal_after_rotation

pytestmark = [pytest.mark.browser, pytest.mark.long]

INDIA = timezone(timedelta(hours=5, minutes=30))

DROP = """([place, name, text]) => {
  const given = new DataTransfer();
  given.items.add(new File([text], name));
  const dropped = new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true });
  document.querySelector(place).dispatchEvent(dropped);
  return dropped.defaultPrevented;
}"""


@pytest.fixture
def bundle(filled: Ledger, tmp_path: Path) -> Path:
    export_bundle(filled, tmp_path / "bundle")
    return tmp_path / "bundle"


# --- keys


def test_signature_that_fits_the_key_in_the_bundle_is_not_checked(page: Any, bundle: Path) -> None:
    assert open_folder(page, bundle) == "Qualified"
    unmade = page.locator(".band .columns > div").nth(1)
    assert unmade.get_by_role("row").filter(has_text="signature").first.is_visible()
    go(page, "#/c/codex.two/1")
    seal = page.locator("#section-seal")
    seal.get_by_text("matches the key in the bundle, which you have not pinned: not checked").wait_for()
    assert page.locator(".seal-band.qualified").count() == 1
    assert page.locator(".seal-band.verified").count() == 0


def test_signature_that_does_not_fit_the_key_in_the_bundle_is_said(page: Any, bundle: Path) -> None:
    """Nobody pinned the key, so the verdict does not fail. The record says what the page has found."""
    change_chain(lambda records: records[1].update(signature=records[0]["signature"]), "codex.two")(bundle)
    open_folder(page, bundle)
    go(page, "#/c/codex.two/1")
    page.locator("#section-seal").get_by_text("does not match the key in the bundle").wait_for()
    assert page.locator(".seal-band.verified").count() == 0


def test_key_is_pinned_from_the_file_of_an_export(page: Any, bundle: Path, filled: Ledger, tmp_path: Path) -> None:
    exported = tmp_path / "ledger-keys.json"
    exported.write_text(json.dumps(filled.keys.export("ledger")))
    open_folder(page, bundle)
    go(page, "#/keys")
    page.locator("main input[type='file']").set_input_files(exported)
    pinned = page.locator("table.keys").first.locator("tbody tr")
    pinned.filter(has_text="from ledger-keys.json").wait_for()
    assert key_of(filled) in pinned.inner_text().replace(" ", "")
    go(page, "#/")
    page.locator(".band.verified").wait_for()


def test_browser_is_used_after_it_answered_the_known_cases(page: Any, bundle: Path) -> None:
    """Each worker gives Chromium the cases of `ed25519.json` first. One wrong answer, and the page computes itself."""
    open_folder(page, bundle)
    assert "Ed25519 by the browser, after checks of our own" in page.locator(".judged-by").inner_text()


# --- files


def test_dropped_file_is_judged(page: Any, bundle: Path) -> None:
    text = (bundle / "codex.two.json").read_text()
    page.goto(PAGE.as_uri())
    assert page.evaluate(DROP, [".drop", "codex.two.json", text])
    assert wait_for_verdict(page) == "Qualified"
    go(page, "#/open")
    assert page.evaluate(DROP, [".drop", "codex.two.json", text.replace('\\"type\\"', '\\"tyqe\\"', 1)])
    page.locator(".band.failed").wait_for()


def test_file_that_is_dropped_beside_the_field_does_not_replace_the_page(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    assert page.evaluate(DROP, ["body", "other.html", "<h1>another page</h1>"])
    assert page.locator(".band.qualified").count() == 1


# --- times and hits


@pytest.fixture
def page_in_india(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(timezone_id="Asia/Kolkata")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def test_times_are_in_utc_or_local(page_in_india: Any, bundle: Path) -> None:
    open_folder(page_in_india, bundle)
    go(page_in_india, "#/c/codex.two/1")
    shown = page_in_india.locator("#section-seal time")
    shown.wait_for()
    sealed = datetime.fromisoformat(shown.get_attribute("datetime"))
    assert shown.inner_text() == sealed.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    page_in_india.get_by_role("button", name="Times are in UTC; change").click()
    page_in_india.get_by_role("button", name="Times are in local time; change").wait_for()
    assert shown.inner_text() == sealed.astimezone(INDIA).strftime("%Y-%m-%d %H:%M:%S")


def test_map_of_a_session_marks_the_hits(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    go(page, f"#/s/claude-code.{sample.SESSION}")
    page.locator(".story-row").first.wait_for()
    assert page.locator(".minimap rect.hit").count() == 0
    page.get_by_label("Find in this session").fill("half up")
    said = page.get_by_text(re.compile(r"^\d+ hits;"))
    said.wait_for()
    assert page.locator(".minimap rect.hit").count() == int(said.inner_text().split()[0]) > 0


# --- approvals


def test_request_that_nobody_answers_is_denied_before_a_record_says_so(free_page: Any, filled: Ledger) -> None:
    enrol_approver(filled, somebody("ada"))
    request = opened(filled)
    with serve(filled) as running:
        free_page.clock.install()
        free_page.goto(running.server.link)
        wait_for_verdict(free_page)
        go(free_page, f"#/approvals/{request.id}")
        free_page.locator(".countdown").filter(has_text="left; then it is denied").wait_for()
        assert free_page.locator(".answers").count() == 1
        # The page asks for no secret: there is no field that could take one.
        assert free_page.locator("input[type='password'], main input[type='file']").count() == 0
        left = datetime.fromisoformat(request.expires) - datetime.now(UTC)
        free_page.clock.fast_forward(int(left.total_seconds() * 1000) + 60_000)
        free_page.locator(".sentence .word.failure").filter(has_text="expired: denied").wait_for()
        assert free_page.locator(".answers, .countdown").count() == 0
    assert load_request_state(filled, request).state == "pending"  # By the clock of this machine.


def test_key_that_its_owner_retired_is_pinned_as_such(page: Any, aver_home: Path, tmp_path: Path) -> None:
    """The same export, chosen on *Keys* or given to `aver verify`, has the same verdict."""
    bundle, keys = seal_after_rotation(aver_home, tmp_path)
    open_folder(page, bundle)
    go(page, "#/keys")
    page.locator("input[type=file]").set_input_files(keys)
    page.get_by_text("retired, by its owner's export").wait_for()
    go(page, "#/")
    page.locator(".band.failed").wait_for()
    assert "KEY_RETIRED at chain ci.a, sequence 1" in page.locator(".band .finding").first.inner_text()
    assert "aver verify bundle --key keys.json" in page.locator(".without-page").inner_text()
