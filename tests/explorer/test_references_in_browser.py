"""`capsule://` references in a real Chromium: behind every door they open their record, or say that it is not here."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger, Sealed
from aver.ledger.bundle import export_bundle
from support.browser_pages import PAGE, go, open_folder, wait_for_verdict
from support.explorer_servers import serve

pytestmark = [pytest.mark.browser, pytest.mark.long]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def named(ledger: Ledger) -> Sealed:
    """The record that references name."""
    ledger.append_many("ci.named", [Capsule(type="tool", outcome={"summary": f"earlier {n}"}) for n in range(3)])
    return ledger.append(
        "ci.named", Capsule(type="tool", outcome={"summary": "the one", "result": {"answers": ["no", "yes"]}})
    )


@pytest.fixture
def naming(ledger: Ledger, named: Sealed) -> Sealed:
    """A record whose texts have references."""
    by_hash = f"capsule://sha3_{named.hash}#outcome/result/answers/1"
    draft = Capsule(
        type="tool",
        trigger={"source": "test", "request": f"Look at capsule://ci.named/3, then at {by_hash}."},
        outcome={"summary": "looked", "result": {"seen": "capsule://ci.named/3", "no link": "capsule://ci.named/03"}},
    )
    return ledger.append("ci.naming", draft)


@pytest.fixture(params=["server", "site", "double click", "folder", "file"])
def opened(request: Any, page: Any, ledger: Ledger, naming: Sealed, tmp_path: Path) -> Iterator[Any]:
    """The page, opened through each of its doors."""
    site = export_bundle(ledger, tmp_path / "site", html=True).path
    match request.param:
        case "server":
            with serve(ledger) as served:
                page.goto(served.server.link)
                wait_for_verdict(page)
                yield page
        case "site":
            handler = functools.partial(QuietHandler, directory=str(site))
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
                threading.Thread(target=server.serve_forever, daemon=True).start()
                page.goto(f"http://localhost:{server.server_port}/")
                wait_for_verdict(page)
                yield page
                server.shutdown()
        case "double click":
            page.goto((site / "index.html").as_uri())
            wait_for_verdict(page)
            yield page
        case "folder":
            open_folder(page, site)
            yield page
        case "file":
            page.goto(PAGE.as_uri())
            page.get_by_test_id("files").set_input_files(site / "ci.named.json")
            wait_for_verdict(page)
            yield page


def search(page: Any, words: str) -> None:
    page.locator("#search").fill(words)
    page.locator("#search").press("Enter")


def wait_for_named(page: Any) -> None:
    page.get_by_role("heading", name="the one", exact=True).wait_for()


def test_reference_opens_its_record_behind_every_door(opened: Any, named: Sealed) -> None:
    for reference in ("capsule://ci.named/3", f"capsule://sha3_{named.hash}", f"capsule://ci.named/sha3_{named.hash}"):
        search(opened, reference)
        wait_for_named(opened)
        assert opened.evaluate("location.hash").endswith("/3")
        go(opened, f"#capsule://{named.content['id']}")
        opened.get_by_text("earlier 2").wait_for(state="detached")
        wait_for_named(opened)
        go(opened, "#/")
        wait_for_verdict(opened)


def test_record_that_is_not_here_is_said_to_be_missing(opened: Any) -> None:
    for reference in ("capsule://ci.named/4", f"capsule://sha3_{'0' * 64}", "capsule://ci.other/0"):
        search(opened, reference)
        opened.get_by_role("alert").filter(has_text=f"There is no record {reference} in").wait_for()
        assert f"aver show {reference}" in opened.locator("main").inner_text()
    search(opened, "capsule://CI.named/03")
    opened.get_by_role("alert").filter(has_text="not a capsule URI").wait_for()


def test_text_of_a_record_leads_to_the_record_it_names(page: Any, ledger: Ledger, naming: Sealed) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/locate?" in request.url else None)
    with serve(ledger) as served:
        page.goto(served.server.link)
        wait_for_verdict(page)
        go(page, "#/c/ci.naming/0")
        page.get_by_role("heading", name="looked").wait_for()
        assert page.locator("article a[href^='#/ref/']").count() == 3
        page.locator("#section-trigger a").nth(1).click()
        wait_for_named(page)
        assert page.locator("#section-named").inner_text().split("\n")[-1] == "yes"
        assert len(asked) == 1
        page.go_back()
        page.get_by_role("heading", name="looked").wait_for()
        page.locator("#section-outcome a").click()
        wait_for_named(page)


def test_server_that_names_another_record_is_not_believed(page: Any, ledger: Ledger, named: Sealed) -> None:
    with serve(ledger) as served:
        page.route("**/locate?*", lambda route: route.fulfill(json={"chain": "ci.named", "sequence": 1}))
        page.goto(served.server.link)
        wait_for_verdict(page)
        search(page, f"capsule://sha3_{named.hash}")
        words = "the server says that it is record 1 of ci.named, and another record is there"
        page.get_by_role("alert").filter(has_text=words).wait_for()


def test_address_waits_for_the_file(page: Any, ledger: Ledger, named: Sealed, tmp_path: Path) -> None:
    folder = export_bundle(ledger, tmp_path / "bundle").path
    page.goto(f"{PAGE.as_uri()}#capsule://sha3_{named.hash}")
    page.get_by_test_id("folder").set_input_files(folder)
    wait_for_named(page)
