"""Reading the page in a real Chromium: the first answers, phones, the keyboard, print, and what a change does not hide.

Each test about a lack of the public Explorer says so.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, open_ledger
from aver.diffs import unified_diff
from aver.gate.approvals import enrol_approver, open_request
from aver.ledger.bundle import export_bundle
from support.agents import sample_session as sample
from support.approvals import action, asking, opened, somebody
from support.browser_pages import JUDGED, PAGE, go, key_of, open_folder, pin, wait_for_verdict
from support.bundles import change_chain
from support.explorer_servers import serve
from support.story_sites import MAIN, STEPS, write_session

pytestmark = [pytest.mark.browser, pytest.mark.long]

VIEWS = (
    "#/",
    "#/sessions",
    "#/approvals",
    "#/chains",
    "#/risk",
    "#/keys",
    "#/meta",
    "#/try",
    f"#/s/{MAIN}",
    f"#/c/{MAIN}/2",
)
SMALL_TEXTS = """() => [...document.querySelectorAll('body *')]
  .filter((one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()))
  .filter((one) => one.checkVisibility() && !one.closest('svg') && parseFloat(getComputedStyle(one).fontSize) < 12)
  .map((one) => one.outerHTML.slice(0, 120))"""

MOVING = """() => [...document.querySelectorAll('body *')]
  .filter((one) => getComputedStyle(one).transitionDuration !== '0s').length"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The bundle of a long session that was closed, and the key that signed it."""
    folder = tmp_path_factory.mktemp("story")
    with open_ledger(folder / "home" / "ledger.db", home=folder / "home") as ledger:
        write_session(ledger, folder / "work")
        ledger.close_chain(MAIN)
        export_bundle(ledger, folder / "bundle")
        return folder / "bundle", key_of(ledger)


@pytest.fixture
def copy(story: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of the bundle, for a test that damages it."""
    shutil.copytree(story[0], tmp_path / "bundle")
    return tmp_path / "bundle"


# --- the first screen


def test_first_screen_answers_four_questions(page: Any, filled: Ledger, tmp_path: Path) -> None:
    sample.rich(filled, tmp_path)
    enrol_approver(filled, somebody("ada"))
    opened(filled, "rm -rf build")
    with serve(filled) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        tiles = page.locator(".tile")
        # The newest deed of any chain, not the newest session.
        page.locator(".tile", has_text="What happened last?").get_by_text("asks for approval: ").wait_for()
        words = [str(text) for text in tiles.all_inner_texts()]
        assert [text.splitlines()[0] for text in words] == [
            *("Is it intact?", "Does something wait for me?", "What happened last?", "What was refused?")
        ]
        assert "Nothing failed in" in words[0] or "hold" in words[0]
        assert "1 approval" in words[1]
        page.locator(".tile", has_text="2 held back").get_by_text("asks for approval").wait_for()
        bottom = max(box["y"] + box["height"] for box in (tile.bounding_box() for tile in tiles.all()))
        assert bottom < 400, "the answers are not on the first screen"


def test_checks_are_told_in_words_and_none_is_hidden(page: Any, story: tuple[Path, str]) -> None:
    open_folder(page, story[0])
    band = page.locator(".band").first.inner_text()
    assert "each names the record before it: none was removed or moved" in band
    for name in ("decisions", "changes", "signature"):
        assert page.locator(".columns > div").nth(1).get_by_text(name, exact=True).count() == 1, name
    assert "a page cannot make this check" in band


# --- approvals


def test_request_with_a_large_diff_is_shown_whole(page: Any, filled: Ledger) -> None:
    """A part that is kept beside the record is a part of what the person answers to."""
    enrol_approver(filled, somebody("ada"))
    lines = [f"line {number} of a long file" for number in range(1200)]
    diff = unified_diff("deploy/prod.yaml", "", "\n".join([*lines, "the last line"]) + "\n")
    diff = unified_diff("deploy/other.yaml", "a\n", "b\n") + diff
    about = action("apply the change", diff=diff)
    request = open_request(filled, about, asking(about))
    with serve(filled) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        go(page, f"#/approvals/{request.id}")
        exact = page.locator(".case .section").first
        exact.get_by_role("button", name=re.compile("^Show .* more lines")).click()
        for words in ("deploy/other.yaml", "deploy/prod.yaml", "line 0 of a long file", "the last line"):
            exact.get_by_text(words).last.wait_for()
        assert "interval 0.125 to 0.5" in page.locator(".case").inner_text()
        assert "computed here: the same" in page.locator(".case").inner_text()


def test_requests_are_reached_by_keys(page: Any, filled: Ledger) -> None:
    enrol_approver(filled, somebody("ada"))
    for number in range(3):
        opened(filled, f"rm -rf build{number}", f"gate-{number}")
    with serve(filled) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        go(page, "#/approvals")
        page.locator(".case-line").nth(2).wait_for()
        assert page.locator(".case-line[tabindex='0']").count() == 1
        for key in ("j", "j", "Enter"):
            page.keyboard.press(key)
        page.locator(".case h1", has_text="rm -rf build1").wait_for()


# --- heads


def test_rollback_of_a_ledger_with_decisions_is_noticed(
    free_page: Any, filled: Ledger, aver_home: Path, tmp_path: Path
) -> None:
    """Such a ledger is qualified on every page, because only the command computes decisions again."""
    sample.asked_of_the_gate(filled, "pytest -q", workspace=str(tmp_path))
    shutil.copytree(aver_home, tmp_path / "earlier")
    sample.asked_of_the_gate(filled, "make", workspace=str(tmp_path))
    with serve(filled) as running:
        port = running.port
        free_page.goto(running.server.link)
        free_page.locator(".band.qualified").wait_for()
    with open_ledger(home=tmp_path / "earlier") as earlier, serve(earlier, port=port) as running:
        free_page.goto(running.server.link)  # The tab has the page: it loads itself again with the new token.
        free_page.locator(".band.failed").wait_for()
        assert "ROLLBACK" in free_page.locator(".band .finding").first.inner_text()


# --- what the public Explorer lacks


def test_meta_is_reached_on_a_phone(page: Any, story: tuple[Path, str]) -> None:
    """The public Explorer has its meta chain in a rail that phones do not show."""
    page.set_viewport_size({"width": 320, "height": 640})
    open_folder(page, story[0])
    page.locator(".bottom").get_by_role("link", name="More").click()
    page.get_by_role("link", name="Meta").click()
    page.locator(".meta-row").filter(has_text=MAIN).first.wait_for()


def test_meta_is_compared_with_the_records_and_not_with_the_index(page: Any, copy: Path) -> None:
    """The public Explorer compares with the head that the exporter claims."""
    change_chain(lambda capsules: capsules.__delitem__(slice(-10, None)), MAIN)(copy)
    assert open_folder(page, copy) == "Failed"
    go(page, "#/meta")
    row = page.locator(".meta-row").filter(has=page.get_by_role("link", name=MAIN, exact=True))
    row.get_by_text("10 records missing").wait_for()


def test_signature_is_not_called_valid_beside_a_changed_text(page: Any, copy: Path, story: tuple[Path, str]) -> None:
    """The public Explorer checks the signature over the stored hash, so its mark stays green."""

    def edit(capsules: list[dict[str, Any]]) -> None:
        capsules[2]["canonical"] = capsules[2]["canonical"].replace("sum.py", "sun.py", 1)

    change_chain(edit, MAIN)(copy)
    open_folder(page, copy)
    pin(page, story[1])
    go(page, f"#/c/{MAIN}/2")
    page.locator(".seal-band.failed").wait_for()
    assert "which this text does not have" in page.locator("#section-seal").inner_text()
    assert "valid, by a key" not in page.locator("#section-seal").inner_text()


def test_break_far_down_is_scrolled_to(page: Any, copy: Path) -> None:
    """The public Explorer looks for the row before it is there."""

    def edit(capsules: list[dict[str, Any]]) -> None:
        capsules[-5]["canonical"] = capsules[-5]["canonical"].replace("echo", "exho", 1)

    change_chain(edit, MAIN)(copy)
    open_folder(page, copy)
    page.locator(".band").get_by_role("link", name="Go there").click()
    card = page.locator(".break")
    card.wait_for()
    assert "HASH_MISMATCH" in card.inner_text()
    assert card.is_visible()
    go(page, f"#/s/{MAIN}")
    page.locator(".story-row").first.wait_for()
    page.keyboard.press("b")
    page.locator(".story-row.break.selected").wait_for()
    assert "stored hash" in page.locator(".break-detail").inner_text()
    assert page.locator(".minimap rect.break").first.bounding_box()["height"] < 20


def test_filtered_rows_stay_few(page: Any, story: tuple[Path, str]) -> None:
    """The public Explorer puts every match into the page."""
    open_folder(page, story[0])
    go(page, f"#/s/{MAIN}")
    page.get_by_role("button", name=re.compile(r"^\d+ commands")).click()
    page.get_by_role("button", name=re.compile("^Show all steps")).wait_for()
    assert int(page.locator(".story").get_attribute("aria-rowcount")) >= STEPS
    assert 0 < page.locator(".story-row").count() <= 120


def test_sessions_are_filtered_by_tool_dates_words_and_workspace(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    """The public Explorer has no filter of chains by tool or date, and no groups."""
    sample.rich(ledger, tmp_path)
    later = [sample.prompt("Bump all dependencies", key="p1", at="2026-07-01T10:00:00Z", title="Bump dependencies")]
    sample.seal(ledger, tmp_path, later, tool="codex", session="bump")
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    go(page, "#/sessions")
    titles = page.locator(".sessions tbody .title")
    page.locator(".sessions .title", has_text="Bump dependencies").wait_for()
    page.locator(".sessions .title", has_text="Round half up").wait_for()
    dates = page.locator(".filters input[type='date']")
    for field, value, left in (
        (page.locator(".filters select"), "codex", "Bump dependencies"),
        (dates.nth(0), "2026-06-15", "Bump dependencies"),
        (dates.nth(1), "2026-06-15", "Round half up"),
        (page.locator(".filters input[type='search']"), "round", "Round half up"),
    ):
        choose = field.select_option if value == "codex" else field.fill
        choose(value)
        page.get_by_text("1 of 2").wait_for()
        assert titles.all_inner_texts() == [left], value
        choose("")
        page.get_by_text("2 of 2").wait_for()
    page.get_by_label("by workspace").check()
    assert page.locator("main section h2").count() >= 1


def test_no_text_is_under_twelve_pixels(page: Any, story: tuple[Path, str]) -> None:
    """The public Explorer has texts of 9 and 10 pixels."""
    open_folder(page, story[0])
    for width in (1440, 320):
        page.set_viewport_size({"width": width, "height": 800})
        for view in VIEWS:
            go(page, view)
            page.wait_for_timeout(400)
            assert page.evaluate(SMALL_TEXTS) == [], view


def test_help_keeps_the_focus_and_gives_it_back(page: Any, story: tuple[Path, str]) -> None:
    """The public Explorer's dialog neither keeps the focus nor gives it back."""
    open_folder(page, story[0])
    page.locator(".rail a", has_text="Chains").focus()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    for _ in range(4):
        assert page.evaluate(
            "document.activeElement.closest('dialog') !== null || document.activeElement === document.body"
        )
        page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.textContent") == "Chains"


def test_verdict_is_said_to_a_screen_reader(page: Any, story: tuple[Path, str]) -> None:
    """The public Explorer's verdict is in no live region, and its fields have no names."""
    open_folder(page, story[0])
    page.locator("[aria-live='polite']", has_text="Verdict: qualified").wait_for(state="attached")
    for view in VIEWS:
        go(page, view)
        page.wait_for_timeout(300)
        for field in page.locator("main input:not([hidden]), main select, main textarea").all():
            assert field.evaluate("one => one.labels?.length > 0 || one.ariaLabel"), view


# --- forced colours, less motion, print


def test_forced_colours_and_less_motion(chromium: Any, story: tuple[Path, str]) -> None:
    context = chromium.new_context(forced_colors="active", reduced_motion="reduce")
    page = context.new_page()
    page.goto(PAGE.as_uri())
    page.get_by_test_id("folder").set_input_files(story[0])
    page.locator(JUDGED).first.wait_for(timeout=60_000)
    outline = page.locator(".rail a[aria-current]").evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline == "solid"  # Forced colours take away the ground by which one sees where one is.
    assert page.evaluate(MOVING) == 0
    context.close()


def test_printed_page_has_the_verdict_and_no_controls(page: Any, story: tuple[Path, str]) -> None:
    open_folder(page, story[0])
    page.emulate_media(media="print")
    assert not page.locator(".bar").is_visible()
    assert not page.locator(".rail").is_visible()
    assert page.locator("button:visible").count() == 0
    assert page.get_by_text("none was removed or moved").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
