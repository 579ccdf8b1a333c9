"""The page in a real Chromium: every door, tampered copies, hostile texts, the keyboard, and small windows."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger
from aver.ledger.bundle import export_bundle
from support.bundles import change_chain
from support.page_verdicts import ROOT, VERIFIER

pytestmark = [pytest.mark.browser, pytest.mark.long]

PAGE = VERIFIER.parent / "index.html"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SWITCHES = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
"""Chromium in a container, which asks nobody for anything."""

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> \u202etxt.exe \u200b {{7*7}} \x1b[31mred"
JUDGED = ".band.verified, .band.qualified, .band.failed, .band.empty, .band.not-judged"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.fail("there is no Chromium; get one, such as by: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("Playwright is not installed; run: make test-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that fails the test if it reports an error, opens a dialog, or asks another host for anything."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
    opened.on("request", lambda request: problems.append(request.url) if is_foreign(request.url) else None)
    yield opened
    context.close()
    # Every browser asks for it by itself.
    assert [problem for problem in problems if "404" not in problem] == []


def is_foreign(url: str) -> bool:
    return not re.match(r"(file:|blob:|data:|http://(127\.0\.0\.1|localhost):)", url)


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


def key_of(ledger: Ledger) -> str:
    active = ledger.keys.ring().active("ledger")
    assert active is not None
    return active.key.ed25519


def open_folder(page: Any, folder: Path) -> str:
    """Choose a folder, and return the word of the verdict."""
    page.goto(PAGE.as_uri())
    page.get_by_test_id("folder").set_input_files(folder)
    page.locator(JUDGED).wait_for(timeout=60_000)
    return str(page.locator(".band h2").inner_text()).strip()


def pin(page: Any, key: str) -> None:
    page.evaluate("location.hash = '#/keys'")
    page.get_by_test_id("key").fill(key)
    page.get_by_test_id("pin").click()
    page.evaluate("location.hash = '#/'")


def test_unknown_key_qualifies_and_pinned_key_verifies(page: Any, bundle: Path, ledger: Ledger) -> None:
    assert open_folder(page, bundle) == "Qualified"
    assert "is not known here" in page.locator(".columns").inner_text()
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for(timeout=60_000)
    assert f"signed by {key_of(ledger)[:16]}, which you pinned on" in page.locator(".sentence").inner_text()


def test_fingerprint_is_no_key(page: Any, bundle: Path, ledger: Ledger) -> None:
    open_folder(page, bundle)
    page.evaluate("location.hash = '#/keys'")
    page.get_by_test_id("key").fill(key_of(ledger)[:16])
    page.get_by_test_id("pin").click()
    assert "only a fingerprint" in page.get_by_role("alert").inner_text()


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


def test_loose_capsules_and_what_is_no_record(page: Any, bundle: Path, tmp_path: Path) -> None:
    page.goto(PAGE.as_uri())
    chain = json.loads((bundle / "codex.two.json").read_text())
    lines = tmp_path / "capsules.jsonl"
    records = [{**json.loads(one.pop("canonical")), **one} for one in chain["capsules"]]
    lines.write_text("\n".join(map(json.dumps, records)))
    page.get_by_test_id("files").set_input_files(lines)
    page.locator(JUDGED).wait_for(timeout=60_000)
    assert page.locator(".band h2").inner_text().strip() == "Qualified"
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    page.evaluate("location.hash = '#/open'")
    page.get_by_test_id("files").set_input_files(other)
    assert "is nothing that Aver can verify" in page.get_by_role("alert").inner_text()


def test_figures_of_sessions_are_counted_from_the_records(page: Any, bundle: Path) -> None:
    open_folder(page, bundle)
    page.evaluate("location.hash = '#/sessions'")
    row = page.locator("table.sessions tbody tr").filter(has_text="claude-code").filter(has_text="300")
    row.wait_for()
    page.get_by_label("Tool").select_option("codex")
    assert page.locator("table.sessions tbody tr").count() == 1


@pytest.mark.parametrize(
    ("label", "code"),
    [
        ("Flip a character", "HASH_MISMATCH"),
        ("Edit its summary", "HASH_MISMATCH"),
        ("Edit it, and give it the right hash", "SIG_INVALID"),
        ("Drop it", "SEQUENCE_GAP"),
        ("Insert it twice", "SEQUENCE_GAP"),
        ("Swap it with the next", "SEQUENCE_GAP"),
        ("Cut the chain here", "TRUNCATED"),
    ],
)
def test_changed_copy_breaks_and_the_records_do_not(
    page: Any, bundle: Path, ledger: Ledger, label: str, code: str
) -> None:
    open_folder(page, bundle)
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for(timeout=60_000)
    page.evaluate("location.hash = '#/c/codex.two/1'")
    page.get_by_role("button", name=label, exact=True).click()
    page.locator(".band.failed").wait_for(timeout=60_000)
    assert code in page.locator(".band .finding").first.inner_text()
    assert "copy" in page.locator("main.is-copy .copy").inner_text().lower()
    page.get_by_role("button", name="Back to the records").click()
    page.locator(".band.verified").wait_for(timeout=60_000)
    assert page.locator("main.is-copy").count() == 0


def test_site_that_was_rolled_back_is_noticed(page: Any, site: Path, ledger: Ledger, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "earlier")
    ledger.append("codex.two", Capsule(type="tool", trigger={"source": "test", "request": "one more"}))
    ledger.close_chain("codex.two")
    export_bundle(ledger, site, html=True, force=True)
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(site))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://localhost:{server.server_port}/")
        page.locator(JUDGED).wait_for(timeout=60_000)
        pin(page, key_of(ledger))
        page.locator(".band.verified").wait_for(timeout=60_000)
        shutil.rmtree(site)
        shutil.copytree(tmp_path / "earlier", site)
        page.reload()
        page.locator(".band.failed").wait_for(timeout=60_000)
        assert "ROLLBACK" in page.locator(".band .finding").first.inner_text()
        server.shutdown()


@pytest.mark.parametrize("width", [320, 720, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_is_wider_than_the_window(page: Any, bundle: Path, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.emulate_media(color_scheme=scheme)
    open_folder(page, bundle)
    for view in (
        "#/",
        "#/sessions",
        "#/chains",
        "#/keys",
        "#/chain/claude-code.hostile",
        "#/c/claude-code.hostile/3",
        "#/open",
    ):
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
    for view in ("#/", "#/sessions", "#/chains", "#/keys", "#/chain/claude-code.hostile", "#/c/codex.two/1", "#/open"):
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_timeout(400)
        found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == [], view
    context.close()


@pytest.fixture
def site(filled: Ledger, tmp_path: Path) -> Path:
    export_bundle(filled, tmp_path / "site", html=True)
    return tmp_path / "site"


def test_site_by_double_click(page: Any, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    page.locator(JUDGED).wait_for(timeout=60_000)
    assert page.locator(".band h2").inner_text().strip() == "Qualified"
    assert "came with these records" in page.locator(".band").inner_text()


def test_site_on_a_web_server(page: Any, site: Path, ledger: Ledger) -> None:
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://localhost:{server.server_port}/")
        page.locator(JUDGED).wait_for(timeout=60_000)
        pin(page, key_of(ledger))
        page.locator(".band.verified").wait_for(timeout=60_000)
        page.reload()
        page.locator(".band.verified").wait_for(timeout=60_000)  # The pin was kept.
        server.shutdown()


def test_site_that_is_not_whole(page: Any, site: Path) -> None:
    (site / "explorer" / "data" / "2.js").write_text('averFile("other.json","");\n')
    page.goto((site / "index.html").as_uri())
    assert "holds other.json" in page.get_by_role("alert").inner_text()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        pass
