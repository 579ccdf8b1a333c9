"""A reader's ways through the page in a real Chromium: requests named in full, narrow windows, and the way back."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger
from aver.diffs import unified_diff
from aver.gate.approvals import enrol_approver, open_request
from aver.ledger.bundle import export_bundle
from support.approvals import action, asking, opened, somebody
from support.browser_pages import go, open_folder, wait_for_verdict
from support.bundles import change_chain
from support.explorer_servers import serve
from support.story_sites import MAIN, make_site, write_session

pytestmark = [pytest.mark.browser, pytest.mark.long]

INVISIBLE = "rm -rf build \U000e002f\U000e0065\u3164\u034f"
"""A command with tags, a filler and a joiner, none of which has a shape."""

LONG_REFERENCE = "4" * 200


@pytest.fixture
def bundle(filled: Ledger, tmp_path: Path) -> Path:
    """A bundle with a record whose authority names a policy by a long text."""
    filled.append(
        "demo.long",
        Capsule(
            type="tool",
            authority={"type": "policy", "policy_reference": LONG_REFERENCE},
            outcome={"status": "success", "summary": "needle in the long record"},
        ),
    )
    export_bundle(filled, tmp_path / "bundle")
    return tmp_path / "bundle"


def test_request_hides_no_character_of_its_action(page: Any, filled: Ledger) -> None:
    """A person who answers must see that the command is not the short one that it seems to be."""
    enrol_approver(filled, somebody("ada"))
    request = opened(filled, INVISIBLE)
    with serve(filled) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        for address, place in (("#/approvals", ".case-line code"), (f"#/approvals/{request.id}", ".command-line")):
            go(page, address)
            shown = page.locator(place).first
            shown.wait_for()
            assert shown.inner_text() == "rm -rf build ⟨U+E002F⟩⟨U+E0065⟩⟨U+3164⟩⟨U+034F⟩"


def test_list_of_requests_says_where_each_goes(page: Any, filled: Ledger) -> None:
    """A path alone does not, and a large action is named by the summary of its record."""
    enrol_approver(filled, somebody("ada"))
    webhook = action(tool="PostWebhook", type="api_request", arguments={"domain": "example.com", "path": "/hook"})
    large = action("echo " + "x" * 30_000)
    for number, about in enumerate((webhook, large)):
        open_request(filled, about, asking(about, f"gate-{number}"))
    with serve(filled) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        go(page, "#/approvals")
        page.locator(".case-line").nth(1).wait_for()
        first, second = page.locator(".case-line code").all_inner_texts()
    assert first.startswith("Bash: echo xxx")
    assert second == "PostWebhook example.com/hook"


@pytest.mark.parametrize("width", [320, 720])
def test_long_text_does_not_widen_a_record(page: Any, bundle: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 640})
    open_folder(page, bundle)
    go(page, "#/c/demo.long/0")
    page.get_by_text(LONG_REFERENCE).first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_escape_leads_back_to_the_search(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    go(page, "#/search/needle")
    page.get_by_role("link", name="needle in the long record").click()
    page.get_by_role("heading", name="needle in the long record").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Search").wait_for()
    assert page.evaluate("location.hash") == "#/search/needle"


def test_focus_goes_back_to_a_hit_that_is_read_again(page: Any, bundle: Path) -> None:
    """The hits come after the view: the focus waits for them, unless the reader has gone on."""
    open_folder(page, bundle)
    go(page, "#/search/needle")
    hit = page.get_by_role("link", name="needle in the long record")
    hit.wait_for()
    for key in ("j", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("heading", name="needle in the long record").wait_for()
    page.keyboard.press("Escape")
    hit.wait_for()
    page.wait_for_function("document.activeElement.matches('.hits a')")


def test_escape_leads_to_the_chain_of_a_record_that_was_opened_first(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    go(page, "#/chain/codex.two")
    page.locator(".row").nth(1).wait_for()
    go(page, "#/c/codex.two/0")
    page.get_by_role("link", name="Record after").wait_for()
    page.keyboard.press("j")
    page.get_by_text("capsule://codex.two/1").wait_for()
    page.keyboard.press("Escape")
    page.locator(".chain-view").wait_for()
    assert page.evaluate("location.hash") == "#/chain/codex.two/at-1"


def test_escape_leads_from_a_chain_to_the_view_that_led_there(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    for start in ("#/meta", "#/chains"):
        go(page, start)
        page.locator("main a[href='#/chain/codex.two']").first.click()
        page.locator(".chain-view .row").first.wait_for()
        go(page, "#/c/codex.two/0")
        page.get_by_role("link", name="Record after").wait_for()
        page.keyboard.press("Escape")
        page.locator(".chain-view .row").first.wait_for()
        page.keyboard.press("Escape")
        page.locator(".chain-view").wait_for(state="detached")
        assert page.evaluate("location.hash") == start


def test_addresses_that_name_no_view_and_no_record(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    go(page, "#/nonsense/<b>")
    page.get_by_role("heading", name="No such page").wait_for()
    page.get_by_text("The Explorer has no view nonsense.").wait_for()
    go(page, "#/c/codex.two")
    page.locator(".chain-view .row").first.wait_for()


def test_bottom_bar_marks_more_for_the_views_behind_it(page: Any, bundle: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    open_folder(page, bundle)
    current = page.locator("nav.bottom a[aria-current]")
    for address, name in (("#/risk", "More"), ("#/keys", "More"), ("#/more", "More"), ("#/chain/codex.two", "Chains")):
        go(page, address)
        page.locator("nav.bottom a[aria-current]", has_text=name).wait_for()
        assert current.count() == 1


def test_way_back_from_a_changed_copy_leads_to_what_was_changed(page: Any, bundle: Path, tmp_path: Path) -> None:
    """Not to another thing that was changed before it."""
    second = Path(shutil.copytree(bundle, tmp_path / "second"))
    for folder in (bundle, second):
        open_beside(page, folder)
        go(page, "#/try/codex.two/1")
        page.get_by_role("button", name="Flip a character").click()
        page.locator(".band.failed").wait_for()
    page.get_by_role("button", name="Back to the records").click()
    page.locator(".band.qualified").wait_for()
    assert page.locator("main h1").inner_text() == "second"


@pytest.mark.parametrize("place", [0, 199, 200, 350])
def test_each_record_of_a_long_chain_can_be_changed(page: Any, ledger: Ledger, tmp_path: Path, place: int) -> None:
    write_session(ledger, tmp_path / "work")
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    if place == 350:
        go(page, f"#/try/{MAIN}/{place}")
    else:
        go(page, f"#/try/{MAIN}")
        page.locator(f"main a[href='#/c/{MAIN}/p1']").wait_for()  # The second record is offered first.
        page.get_by_label("Place").fill(str(place))
        page.get_by_label("Place").press("Tab")
    page.locator(f"main a[href='#/c/{MAIN}/p{place}']").wait_for()
    assert page.locator(".filters select").nth(1).input_value() == str(place)
    page.get_by_role("button", name="Flip a character").click()
    page.locator(".band.failed", has_text=f"chain {MAIN}, sequence {place}").wait_for()


@pytest.mark.parametrize("place", ["500000", "-3", "x"])
def test_record_that_is_not_there_is_not_another_one(page: Any, bundle: Path, place: str) -> None:
    open_folder(page, bundle)
    go(page, f"#/try/codex.two/{place}")
    page.get_by_text("There is no record").wait_for()
    assert page.get_by_role("button", name="Flip a character").count() == 0
    page.get_by_label("Place").fill("1")
    page.get_by_label("Place").press("Tab")
    page.get_by_role("button", name="Flip a character").wait_for()
    assert page.get_by_text("There is no record").count() == 0


@pytest.mark.parametrize("view", ["s", "chain"])
def test_printed_list_has_its_rows_and_no_blank_pages(page: Any, ledger: Ledger, tmp_path: Path, view: str) -> None:
    write_session(ledger, tmp_path / "work")
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    go(page, f"#/{view}/{MAIN}")
    rows = page.locator(".story-row, .entry .row:not(.loading)")
    rows.nth(20).wait_for()
    page.locator(".story, .virtual").evaluate("box => { box.scrollTop = 4000; }")
    page.get_by_text("echo 100").first.wait_for()
    assert 0 < len(re.findall(rb"/Type */Page\b", page.pdf())) <= 6  # All rows are on more than 10.
    page.emulate_media(media="print")
    page.wait_for_timeout(300)
    tops = rows.evaluate_all("all => all.map(one => Math.round(one.getBoundingClientRect().top + scrollY))")
    height = page.evaluate("document.documentElement.scrollHeight")
    assert tops == sorted(set(tops))
    assert 0 < tops[0] < 400
    assert tops[-1] < height < tops[-1] + 1500
    words = page.locator(".story, .virtual").evaluate("box => getComputedStyle(box, '::before').content")
    assert "aver report prints all" in words
    page.emulate_media(media="screen")
    before = page.locator(".story, .virtual").evaluate("box => getComputedStyle(box, '::before').content")
    assert before == "none"


def test_printed_session_has_its_figures_and_a_record_its_whole_text(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    write_session(ledger, tmp_path / "work")
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    page.emulate_media(media="print")
    go(page, f"#/s/{MAIN}")
    page.locator(".figures").wait_for()
    assert page.locator(".figures button", has_text="actions").is_visible()
    assert page.locator("input:visible").count() == 0
    go(page, f"#/c/{MAIN}/2")
    exact = page.locator(".exact")
    exact.wait_for()
    assert exact.evaluate("one => one.scrollHeight <= one.clientHeight + 1")


def test_session_is_as_bad_as_the_worst_of_its_chains(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    """The list of sessions says so, not only the session's own page."""
    write_session(ledger, tmp_path / "work")
    subagent = next(row.name for row in ledger.store.chains(ledger.tenant) if row.name.startswith(f"{MAIN}."))
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    go(page, f"#/try/{subagent}/0")
    page.get_by_role("button", name="Flip a character").click()
    page.locator(".band.failed").wait_for()
    for view in ("#/sessions", "#/"):
        go(page, view)
        row = page.locator("table.sessions tr", has=page.locator(f"a[href='#/s/{MAIN}']"))
        assert row.locator(".state").inner_text().strip() == "failed"


def test_related_record_is_found_by_its_place_in_a_damaged_chain(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    """Where a record is missing, places and sequence numbers differ."""
    first, *rest = (Capsule(type="tool", outcome={"status": "success", "summary": f"step {n}"}) for n in range(5))
    rest[-1] = replace(rest[-1], parent_id=rest[2].id)
    for capsule in (first, *rest):
        ledger.append("ci.run", capsule)
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    go(page, "#/try/ci.run/1")
    page.get_by_role("button", name="Drop it").click()
    page.locator(".band.failed").wait_for()
    go(page, "#/c/ci.run/p3")
    page.locator("main a", has_text="step 3").first.click()
    page.locator("main h1", has_text="step 3").wait_for()


def test_ledger_is_live_again_after_a_look_that_failed(page: Any, filled: Ledger) -> None:
    with serve(filled) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        page.route("**/api/v1/chains?*", lambda route: route.abort())
        filled.append("codex.two", Capsule(type="tool", trigger={"source": "test", "request": "one more"}))
        page.locator(".stale").wait_for()
        page.unroute("**/api/v1/chains?*")
        page.locator(".stale").wait_for(state="detached")


def open_beside(page: Any, folder: Path) -> None:
    """Open a folder on the page that is open, or on a new one."""
    if page.url == "about:blank":
        open_folder(page, folder)
        return
    go(page, "#/open")
    page.get_by_test_id("folder").set_input_files(folder)
    page.locator(".band.qualified").wait_for()


@pytest.mark.parametrize(("name", "view"), [("trace", "protocol"), ("acts", "acts")])
def test_links_of_a_damaged_chain_lead_to_the_record_at_their_place(
    page: Any, tmp_path: Path, name: str, view: str
) -> None:
    """After a record was dropped, the numbers of the records are no longer those of their places."""
    site = make_site(tmp_path, name)
    pattern = "protocol.*.json" if name == "trace" else "gateway.*.json"
    chain = next(path.stem for path in sorted(site.glob(pattern)))
    change_chain(lambda records: records.__delitem__(0), chain)(site)
    open_folder(page, site)
    go(page, f"#/{view}/{chain}")
    page.locator(f"main a[href^='#/c/{chain}/']").first.wait_for()
    target = page.locator(f"main a[href^='#/c/{chain}/']").last.get_attribute("href")
    place = int(target.rsplit("/", 1)[1].removeprefix("p"))
    go(page, target)
    page.get_by_text(f"capsule://{chain}/{place + 1}", exact=True).wait_for()


def test_head_of_a_diff_has_the_whole_path(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    path = "/home/ada/a.py"
    ledger.append(
        "ci.edit",
        Capsule(
            type="tool",
            outcome={
                "status": "success",
                "summary": "edited",
                "side_effects": [f"edited {path}"],
                "result": {"diff": unified_diff(path, "old\n", "new\n")},
            },
        ),
    )
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    go(page, "#/c/ci.edit/0")
    page.locator("figcaption .path").wait_for()
    assert page.locator("figcaption .path").inner_text() == path
