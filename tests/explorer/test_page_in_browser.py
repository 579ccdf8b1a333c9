"""The page in a real Chromium: every door, tampered copies, hostile texts, the keyboard, and small windows."""

from __future__ import annotations

import functools
import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger
from aver.ledger.bundle import export_bundle
from aver.sessions.report import make_report
from aver.sessions.sessions import find_sessions
from support.agents import sample_session as sample
from support.browser_pages import AXE, AXE_RULES, JUDGED, PAGE, go, key_of, open_folder, pin, wait_for_verdict
from support.bundles import change_chain
from support.static_sites import QuietHandler, serve_site

pytestmark = [pytest.mark.browser, pytest.mark.long]

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> \u202etxt.exe \u200b {{7*7}} \x1b[31mred"


VIEWS = (
    *("#/", "#/sessions", "#/approvals", "#/chains", "#/keys", "#/meta", "#/try", "#/open", "#/more", "#/search/alert"),
    "#/ref/capsule%3A%2F%2Fci.none%2F0",
    *("#/risk", "#/acts", "#/protocol", "#/s/claude-code.hostile"),
    *("#/chain/claude-code.hostile", "#/c/claude-code.hostile/3"),
)
"""Every view, on the records of the fixture `bundle`."""


@pytest.fixture
def bundle(filled: Ledger, tmp_path: Path) -> Path:
    drafts = [
        Capsule(
            type="tool",
            trigger={"source": "test", "request": f"{HOSTILE} {number}"},
            outcome={"status": "success", "summary": f"{HOSTILE} {number}", "result": {"big": 12345678901234567890}},
        )
        for number in range(300)
    ]
    filled.append_many("claude-code.hostile", drafts)
    export_bundle(filled, tmp_path / "bundle")
    return tmp_path / "bundle"


def test_unknown_key_qualifies_and_pinned_key_verifies(page: Any, bundle: Path, ledger: Ledger) -> None:
    assert open_folder(page, bundle) == "Qualified"
    assert "is not known here" in page.locator(".band .columns").inner_text()
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for(timeout=90_000)
    assert f"signed by {key_of(ledger)[:16]}, which you pinned on" in page.locator(".sentence").inner_text()


def test_fingerprint_is_no_key(page: Any, bundle: Path, ledger: Ledger) -> None:
    open_folder(page, bundle)
    page.evaluate("location.hash = '#/keys'")
    page.get_by_test_id("key").fill(key_of(ledger)[:16])
    page.get_by_test_id("pin").click()
    assert "only a fingerprint" in page.get_by_role("alert").inner_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0" * 64, "0000000000000000 is not a usable Ed25519 public key"),
        ("01" + "0" * 62, "is not a usable Ed25519 public key"),
        ("02" + "0" * 62, "is not a usable Ed25519 public key"),  # No point of the curve.
        ("abc", "This is no key. Give 64 hex digits"),
        ('{"format": ', "It looks like a file, but cannot be read"),
        ('{"some": "thing"}', "This is no key"),
    ],
)
def test_text_that_is_no_key_pins_nothing(page: Any, bundle: Path, text: str, words: str) -> None:
    open_folder(page, bundle)
    go(page, "#/keys")
    page.get_by_test_id("key").fill(text)
    page.get_by_test_id("pin").click()
    assert words in page.get_by_role("alert").inner_text()
    assert page.get_by_role("button", name="Unpin").count() == 0


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"format": "aver-public-keys", "version": 1, "keys": []}, "is a list of public keys"),
        ({"v": 1, "statement": {}, "payload": {}, "artifacts": []}, "aver protocol accept given.json"),
        ({"artifacts": [], "checks": [], "claims": [], "head": {}, "trace": "t1"}, "is the report of an audit"),
        (
            {"subject": "x", "status": "verified", "first_bad": None, "checks": [], "findings": []},
            "is a verdict that somebody wrote down",
        ),
    ],
    ids=["keys", "contribution", "audit", "verdict"],
)
def test_file_without_records_is_named_for_what_it_is(
    page: Any, tmp_path: Path, document: dict[str, Any], words: str
) -> None:
    """Not as a failure of records: there are none in it."""
    (tmp_path / "given.json").write_text(json.dumps(document))
    page.goto(PAGE.as_uri())
    page.get_by_test_id("files").set_input_files(tmp_path / "given.json")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "Not judged" in alert.inner_text()
    assert words in alert.inner_text()
    assert page.locator(".band").count() == 0


def test_b_leads_from_the_first_screen_to_the_break(page: Any, bundle: Path) -> None:
    change_chain(lambda records: records[200].update(canonical=records[200]["canonical"] + " "), "claude-code.hostile")(
        bundle
    )
    assert open_folder(page, bundle) == "Failed"
    page.keyboard.press("b")
    page.locator(".break-entry").wait_for()
    assert page.evaluate("location.hash") == "#/chain/claude-code.hostile/at-200"


def test_chain_that_is_not_here_is_said_to_be_missing(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    for address in ("#/chain/codex.nope", "#/s/codex.nope"):
        go(page, address)
        assert "There is no chain codex.nope in bundle" in page.get_by_role("alert").inner_text()
        assert page.locator(".mark.qualified").count() == 1  # That of the bar.


def test_search_without_words_claims_nothing(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    go(page, "#/search")
    page.get_by_text("Nothing was searched for yet").wait_for()
    assert "0 hits" not in page.locator("main").inner_text()
    assert page.locator("nav.rail [aria-current]").count() == 0


def test_break_is_shown_at_its_place(page: Any, bundle: Path) -> None:
    change_chain(lambda records: records[200].update(canonical=records[200]["canonical"] + " "), "claude-code.hostile")(
        bundle
    )
    assert open_folder(page, bundle) == "Failed"
    page.get_by_role("link", name="Go there").click()
    card = page.locator(".break").first
    card.wait_for()
    assert "HASH_MISMATCH at chain claude-code.hostile, sequence 200" in card.inner_text()
    assert page.locator(".row.broken").count() == 1
    assert page.locator(".row.after").count() > 3


def test_missing_records_are_one_row(page: Any, bundle: Path) -> None:
    change_chain(lambda records: records.__delitem__(slice(100, 105)), "claude-code.hostile")(bundle)
    assert open_folder(page, bundle) == "Failed"
    page.evaluate("location.hash = '#/chain/claude-code.hostile/at-105'")
    page.locator(".missing").wait_for()
    assert page.locator(".missing").inner_text() == "records 100 to 104 are missing"
    assert page.locator(".break").count() == 1


def test_address_names_a_record_by_its_number(page: Any, bundle: Path) -> None:
    change_chain(lambda records: records.__delitem__(slice(100, 105)), "claude-code.hostile")(bundle)
    open_folder(page, bundle)
    for address, number in (("99", "99"), ("105", "105"), ("299", "299"), ("p100", "105")):
        page.evaluate("address => { location.hash = '#/c/claude-code.hostile/' + address; }", address)
        page.get_by_text(f"capsule://claude-code.hostile/{number}", exact=True).wait_for()
    page.evaluate("location.hash = '#/c/claude-code.hostile/103'")
    assert "there is no such record" in page.get_by_role("alert").inner_text()


def test_hostile_texts_stay_text(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    page.evaluate("location.hash = '#/chain/claude-code.hostile'")
    page.locator(".row:not(.loading)").first.wait_for()
    assert "<script>alert(1)</script>" in page.locator(".row .summary").first.inner_text()
    page.evaluate("location.hash = '#/c/claude-code.hostile/7'")
    page.locator(".record").wait_for()
    text = page.locator(".record").inner_text()
    assert "⟨U+202E⟩" in text
    assert "⟨U+001B⟩" in text
    assert "12345678901234567890" in text
    assert page.locator("main script, main img").count() == 0


def test_long_chain_keeps_few_rows(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    page.evaluate("location.hash = '#/chain/claude-code.hostile'")
    page.locator(".row:not(.loading)").first.wait_for()
    page.locator(".virtual").evaluate("element => { element.scrollTop = 6000; }")
    page.get_by_text("170", exact=True).first.wait_for()
    assert page.locator(".row").count() <= 120


def test_keyboard_alone(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    page.evaluate("location.hash = '#/chain/claude-code.hostile'")
    page.locator(".row:not(.loading)").first.wait_for()
    page.locator(".virtual").focus()
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    page.locator(".record").wait_for()
    assert page.evaluate("location.hash") == "#/c/claude-code.hostile/1"
    page.keyboard.press("Escape")
    page.locator(".virtual").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_screen_reader_is_told_which_record_is_selected(page: Any, bundle: Path) -> None:
    """The list has the focus, whatever had it before, and names its row."""
    open_folder(page, bundle)
    go(page, "#/chain/claude-code.hostile")
    page.locator(".row:not(.loading)").first.wait_for()
    page.locator(".rail a").first.focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    row = page.locator("[role='row'][aria-selected='true']")
    row.wait_for()
    assert row.get_attribute("aria-rowindex") == "2"
    assert page.evaluate("document.activeElement.getAttribute('role')") == "grid"
    assert page.evaluate("document.activeElement.getAttribute('aria-activedescendant')") == row.get_attribute("id")
    assert page.locator("[role='row'][aria-selected='false']").count() > 1


def test_letters_lead_to_every_view(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    for letter, title in (("s", "Sessions"), ("a", "Approvals"), ("c", "Chains"), ("k", "Keys"), ("m", "Meta")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        page.get_by_role("heading", name=title, level=1).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("gs?")  # Letters in a field are letters.
    assert page.locator("#search").input_value() == "gs?"
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "main"  # The focus is where it was.


def test_focus_returns_to_the_link_that_was_followed(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    go(page, "#/chains")
    page.locator(".chain-row:not(.heads)").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    address = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("Enter")
    page.locator(".chain-view").wait_for()
    page.go_back()
    page.locator(f'.chain-row[href="{address}"]').wait_for()
    page.wait_for_timeout(200)
    assert page.evaluate("document.activeElement.getAttribute('href')") == address


def test_nothing_jumps_when_the_verdict_comes(page: Any, bundle: Path) -> None:
    page.add_init_script(
        "window.jumps = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries())"
        " if (!entry.hadRecentInput) window.jumps += entry.value; }).observe({type: 'layout-shift', buffered: true});"
    )
    open_folder(page, bundle)
    page.wait_for_timeout(1000)
    assert page.evaluate("window.jumps") < 0.1  # By the measure of browsers, less than this is good.


def test_loose_capsules_and_what_is_no_record(page: Any, bundle: Path, tmp_path: Path) -> None:
    page.goto(PAGE.as_uri())
    chain = json.loads((bundle / "codex.two.json").read_text())
    lines = tmp_path / "capsules.jsonl"
    records = [{**json.loads(one.pop("canonical")), **one} for one in chain["capsules"]]
    lines.write_text("\n".join(map(json.dumps, records)))
    page.get_by_test_id("files").set_input_files(lines)
    page.locator(JUDGED).wait_for(timeout=90_000)
    assert page.locator(".band h2").inner_text().strip() == "Qualified"
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    page.evaluate("location.hash = '#/open'")
    page.get_by_test_id("files").set_input_files(other)
    assert "is nothing that Aver can verify" in page.get_by_role("alert").inner_text()


def test_report_is_judged_and_shown(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    report = tmp_path / "report.html"
    make_report(ledger, find_sessions(ledger), report)
    page.goto(PAGE.as_uri())
    page.get_by_test_id("files").set_input_files(report)
    assert wait_for_verdict(page) == "Qualified"
    pin(page, key_of(ledger))
    page.locator(".checks tr").filter(has_text="report").filter(has_text="✓").wait_for()
    go(page, "#/sessions")
    page.locator("table.sessions tbody tr").filter(has_text="Round half up").wait_for()
    report.write_bytes(report.read_bytes().replace(b"Round half up", b"Round half uq", 1))
    go(page, "#/open")
    page.get_by_test_id("files").set_input_files(report)
    page.locator(".band.failed").wait_for()


def test_figures_of_sessions_are_counted_from_the_records(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    sample.seal(ledger, tmp_path / "codex", [sample.prompt("Tidy up"), sample.command("c1", "ls")], tool="codex")
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    go(page, "#/sessions")
    row = page.locator("table.sessions tbody tr").filter(has_text="Round half up")
    row.filter(has_text="$").wait_for()
    assert page.locator("table.sessions tbody tr").count() == 2
    page.get_by_role("button", name="Title").click()
    page.get_by_label("Tool").select_option("codex")
    assert page.locator("table.sessions tbody tr").count() == 1
    page.get_by_label("From").fill("2030-01-01")
    page.get_by_text("No session fits this filter").wait_for()


def test_search_reads_every_record(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    page.keyboard.press("/")
    page.keyboard.type('"alert(1)" kind:call')
    page.keyboard.press("Enter")
    page.get_by_text("100 hits so far").wait_for()
    assert page.locator(".hits li").count() == 100
    assert page.locator(".hits .excerpt mark").first.inner_text() == "alert(1"
    page.locator(".hits a").first.focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.get_by_text("capsule://claude-code.hostile/1", exact=True).wait_for()
    go(page, "#/search/nowherewordinhere")
    page.get_by_text("Nothing has these words").wait_for()
    page.get_by_text("This page read every record").wait_for()


def test_meta_shows_what_is_not_here(page: Any, bundle: Path, ledger: Ledger) -> None:
    ledger.close_chain("codex.two")
    export_bundle(ledger, bundle, force=True)
    (bundle / "codex.two.json").unlink()
    index = json.loads((bundle / "index.json").read_text())
    index["chains"] = [chain for chain in index["chains"] if chain["id"] != "codex.two"]
    (bundle / "index.json").write_text(json.dumps(index))
    assert open_folder(page, bundle) == "Failed"
    go(page, "#/meta")
    page.locator(".meta-row").filter(has_text="codex.two").get_by_text("not here").wait_for()


def test_lost_worker_is_no_verdict(free_page: Any, filled: Ledger, tmp_path: Path) -> None:
    filled.append_many(
        "ci.long", [Capsule(type="tool", trigger={"source": "test", "request": "x"}) for _ in range(8000)]
    )
    export_bundle(filled, tmp_path / "bundle")
    free_page.goto(PAGE.as_uri())
    free_page.get_by_test_id("folder").set_input_files(tmp_path / "bundle")
    free_page.locator(".band.working").wait_for()
    free_page.workers[-1].evaluate("setTimeout(() => { throw new Error('killed by a test'); })")
    free_page.locator(".band.not-judged").wait_for()
    assert "a worker was lost" in free_page.locator(".band").inner_text()
    free_page.get_by_role("button", name="Try again").click()
    free_page.locator(".band.qualified").wait_for()


def test_key_that_is_pinned_or_unpinned_meanwhile_counts(page: Any, filled: Ledger, tmp_path: Path) -> None:
    """A verdict is about the keys that are pinned now, also if the reader changes them while the page verifies."""
    filled.append_many(
        "ci.long", [Capsule(type="tool", trigger={"source": "test", "request": "x"}) for _ in range(4000)]
    )
    export_bundle(filled, tmp_path / "bundle")
    page.goto(PAGE.as_uri())
    page.get_by_test_id("folder").set_input_files(tmp_path / "bundle")
    page.locator(".band.working").wait_for()
    pin(page, key_of(filled))
    page.locator(".band.verified").wait_for()
    page.keyboard.press("v")
    page.locator(".band.working").wait_for()
    go(page, "#/keys")
    page.get_by_role("button", name="Unpin").click()
    go(page, "#/")
    page.locator(".band.qualified").wait_for()


def test_verification_can_be_stopped(page: Any, filled: Ledger, tmp_path: Path) -> None:
    filled.append_many(
        "ci.long", [Capsule(type="tool", trigger={"source": "test", "request": "x"}) for _ in range(8000)]
    )
    export_bundle(filled, tmp_path / "bundle")
    page.goto(PAGE.as_uri())
    page.get_by_test_id("folder").set_input_files(tmp_path / "bundle")
    page.get_by_role("button", name="Stop").click()
    page.locator(".band.not-judged").wait_for()
    assert "you stopped it" in page.locator(".band").inner_text()
    go(page, "#/chain/ci.long")
    page.locator(".row:not(.loading)").first.wait_for()


@pytest.mark.parametrize(
    ("label", "code"),
    [
        ("Flip a character", "HASH_MISMATCH"),
        ("Edit its summary", "HASH_MISMATCH"),
        ("Edit it, and give it the right hash", "SIG_INVALID"),
        ("Edit it, and sign it with another key", "CHAIN_BREAK"),
        ("Drop it", "SEQUENCE_GAP"),
        ("Insert it twice", "SEQUENCE_GAP"),
        ("Swap it with the next", "SEQUENCE_GAP"),
        ("Cut the chain here", "TRUNCATED"),
        ("Roll everything back to here", "ROLLBACK"),
    ],
)
def test_changed_copy_breaks_and_the_records_do_not(
    page: Any, bundle: Path, ledger: Ledger, label: str, code: str
) -> None:
    open_folder(page, bundle)
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for(timeout=90_000)
    page.evaluate("location.hash = '#/c/codex.two/1'")
    page.get_by_role("button", name=label, exact=True).click()
    page.locator(".band.failed").wait_for(timeout=90_000)
    assert code in page.locator(".band .finding").first.inner_text()
    assert "copy" in page.locator("main.is-copy .copy").inner_text().lower()
    page.get_by_role("button", name="Back to the records").click()
    page.locator(".band.verified").wait_for(timeout=90_000)
    assert page.locator("main.is-copy").count() == 0


def test_second_change_of_a_copy_is_named_beside_the_first(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    for address, label in (("#/c/codex.two/1", "Flip a character"), ("#/c/claude-code.hostile/5", "Drop it")):
        go(page, address)
        page.get_by_role("button", name=label, exact=True).click()
        page.locator(".band.failed").wait_for(timeout=90_000)
    words = page.locator("main.is-copy .copy").inner_text()
    assert "record 1 of codex.two: one character of its text was changed; then record 5 of claude-code.hostile" in words
    # The command judges the records, not this copy.
    assert "The same without this page" not in page.locator(".band").inner_text()


def test_site_that_was_rolled_back_is_noticed(page: Any, site: Path, ledger: Ledger, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "earlier")
    ledger.append("codex.two", Capsule(type="tool", trigger={"source": "test", "request": "one more"}))
    ledger.close_chain("codex.two")
    export_bundle(ledger, site, html=True, force=True)
    with serve_site(site) as address:
        page.goto(address)
        page.locator(JUDGED).wait_for(timeout=90_000)
        pin(page, key_of(ledger))
        page.locator(".band.verified").wait_for(timeout=90_000)
        shutil.rmtree(site)
        shutil.copytree(tmp_path / "earlier", site)
        page.reload()
        page.locator(".band.failed").wait_for(timeout=90_000)
        assert "ROLLBACK" in page.locator(".band .finding").first.inner_text()


@pytest.mark.parametrize("width", [320, 720, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_is_wider_than_the_window(page: Any, bundle: Path, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.emulate_media(color_scheme=scheme)
    open_folder(page, bundle)
    for view in VIEWS:
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible(chromium: Any, bundle: Path, scheme: str) -> None:
    """By axe, with the rules of WCAG 2.2 AA."""
    if not AXE.is_file():
        pytest.fail("axe-core is not installed; run: make test-browser")
    change_chain(lambda records: records.pop(7), "claude-code.hostile")(bundle)
    context = chromium.new_context(color_scheme=scheme, bypass_csp=True)  # Only so that axe can be put in.
    page = context.new_page()
    open_folder(page, bundle)
    page.evaluate(AXE.read_text())
    for view in VIEWS:
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_timeout(400)
        found = page.evaluate(AXE_RULES)
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == [], view
    context.close()


@pytest.fixture
def site(filled: Ledger, tmp_path: Path) -> Path:
    export_bundle(filled, tmp_path / "site", html=True)
    return tmp_path / "site"


def test_site_by_double_click(page: Any, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    page.locator(JUDGED).wait_for(timeout=90_000)
    assert page.locator(".band h2").inner_text().strip() == "Qualified"
    assert "came with these records" in page.locator(".band").inner_text()


def test_site_by_double_click_says_that_it_judged_copies(page: Any, site: Path, ledger: Ledger) -> None:
    """The page cannot read the bundle's files there. Someone may have changed them and left the copies."""
    change_chain(lambda records: records[1].update(canonical=records[1]["canonical"] + " "), "codex.two")(site)
    page.goto((site / "index.html").as_uri())
    page.locator(JUDGED).wait_for(timeout=90_000)
    pin(page, key_of(ledger))
    page.get_by_text(re.compile("each was signed by a key that you pinned")).wait_for(timeout=90_000)
    band = page.locator(".band")
    # Every signature holds, and yet the folder is not verified.
    assert band.locator("h2").inner_text().strip() == "Qualified"
    assert "judged its own copies" in band.locator(".copies").inner_text()
    assert "page" in band.locator("tr.matters th").all_inner_texts()
    assert "The same without this page" not in band.inner_text()
    assert "The bundle's own files, without this page: aver verify site" in band.inner_text()
    assert "the copies of" in page.locator(".tile").first.inner_text()
    # The remedy that the page names: the folder itself, which the reader chooses.
    go(page, "#/open")
    page.get_by_test_id("folder").set_input_files(site)
    page.locator(".band.failed").wait_for(timeout=90_000)
    assert page.locator(".copies").count() == 0
    assert "The same without this page" in band.inner_text()


def test_site_on_a_web_server(page: Any, site: Path, ledger: Ledger) -> None:
    with serve_site(site) as address:
        page.goto(address)
        page.locator(JUDGED).wait_for(timeout=90_000)
        pin(page, key_of(ledger))
        page.locator(".band.verified").wait_for(timeout=90_000)
        assert page.locator(".copies").count() == 0  # The bundle's own files were read.
        page.reload()
        page.locator(".band.verified").wait_for(timeout=90_000)  # The pin was kept.


def test_keys_wait_until_it_is_known_whose_they_are(page: Any, site: Path, ledger: Ledger) -> None:
    """A key that was pinned while the site was still being read would be pinned for no ledger, and lost."""
    is_let = threading.Event()
    is_seen = threading.Event()

    class SlowHandler(QuietHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/codex.two.json"):
                is_seen.set()
                is_let.wait()
            super().do_GET()

    with serve_site(site, functools.partial(SlowHandler, directory=str(site))) as address:
        page.goto(f"{address}#/keys")
        is_seen.wait()
        page.get_by_role("heading", name="Reading this site").wait_for()
        assert page.get_by_test_id("pin").count() == 0
        is_let.set()
        pin(page, key_of(ledger))
        page.locator(".band.verified").wait_for(timeout=90_000)


def test_site_that_is_not_whole(page: Any, site: Path) -> None:
    (site / "explorer" / "data" / "2.js").write_text('averFile("other.json","");\n')
    page.goto((site / "index.html").as_uri())
    assert "holds other.json" in page.get_by_role("alert").inner_text()
