"""Several things opened at once, in a real Chromium: the latest one wins, and gets its verdict with its own keys."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger
from aver.ledger.bundle import export_bundle
from support.browser_pages import PAGE, go, wait_for_verdict
from support.explorer_servers import ServedExplorer, serve
from support.static_sites import QuietHandler, serve_site

pytestmark = [pytest.mark.browser, pytest.mark.long]

LOSE_OPENING = """() => {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message.type !== "open" || message.thing.name !== "endless.jsonl") post.call(this, message, ...rest);
  };
}"""
"""A file that the worker never finishes reading."""


@pytest.fixture
def served(filled: Ledger) -> Iterator[ServedExplorer]:
    with serve(filled) as running:
        yield running


@pytest.fixture
def theirs(other: Ledger, tmp_path: Path) -> Path:
    """One chain of another ledger."""
    other.append("ci.other", Capsule(type="tool", trigger={"source": "test", "request": "of someone else"}))
    return export_bundle(other, tmp_path / "theirs").path / "ci.other.json"


def choose(page: Any, thing: Path) -> None:
    go(page, "#/open")
    page.get_by_test_id("files").set_input_files(thing)


def expect_verdict_on(page: Any, name: str) -> None:
    page.locator(".open-name", has_text=name).wait_for()
    page.locator(".chip.qualified").wait_for()
    assert wait_for_verdict(page) == "Qualified"


def hold_requests(page: Any, path: str) -> list[Any]:
    """Let requests to this path wait. Returns a list that gets them."""
    held: list[Any] = []
    page.context.route(f"**/api/v1/{path}", lambda route: held.append(route))
    return held


def wait_until_asked(page: Any, held: list[Any]) -> None:
    while not held:
        page.wait_for_timeout(20)


def test_file_that_is_opened_while_another_is_read_gets_its_verdict(page: Any, theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "endless.jsonl").write_text("{}\n")
    page.goto(PAGE.as_uri())
    page.evaluate(LOSE_OPENING)
    choose(page, tmp_path / "endless.jsonl")
    page.get_by_text("Reading endless.jsonl").first.wait_for()
    choose(page, theirs)
    expect_verdict_on(page, theirs.name)
    assert page.get_by_role("alert").count() == 0


def test_file_that_is_opened_twice_gets_its_verdict(page: Any, theirs: Path) -> None:
    page.goto(PAGE.as_uri())
    for _ in range(3):
        choose(page, theirs)
    expect_verdict_on(page, theirs.name)


def test_file_that_is_opened_while_the_ledger_is_listed_gets_its_verdict(
    page: Any, served: ServedExplorer, theirs: Path
) -> None:
    held = hold_requests(page, "chains?*")
    page.goto(served.server.link)
    wait_until_asked(page, held)
    choose(page, theirs)
    expect_verdict_on(page, theirs.name)
    page.context.unroute("**/api/v1/chains?*")
    page.get_by_role("button", name="Back to").click()
    page.locator(".band.verified").wait_for()  # The link's keys were still pinned, for the ledger.


def test_keys_of_the_link_are_not_pinned_for_a_file_that_was_opened_meanwhile(
    page: Any, served: ServedExplorer, theirs: Path
) -> None:
    held: list[Any] = []
    seen: list[Any] = []

    def hold_second(route: Any) -> None:
        """The worker asks for the keys first, to list the ledger; the page asks then, to pin them."""
        seen.append(route)
        if len(seen) == 1:
            route.continue_()
        else:
            held.append(route)

    page.context.route("**/api/v1/keys", hold_second)
    page.goto(served.server.link)
    wait_until_asked(page, held)
    choose(page, theirs)
    expect_verdict_on(page, theirs.name)
    with page.expect_response("**/api/v1/keys"):
        page.context.unroute("**/api/v1/keys")  # Which lets go on what is held.
    go(page, "#/keys")
    page.get_by_test_id("pin").wait_for()
    page.wait_for_timeout(300)
    assert page.get_by_role("button", name="Unpin").count() == 0
    page.get_by_role("button", name="Back to").click()
    go(page, "#/")
    page.locator(".band.verified").wait_for()


def test_site_that_is_read_late_does_not_replace_a_file(
    page: Any, filled: Ledger, theirs: Path, tmp_path: Path
) -> None:
    is_seen, is_let = threading.Event(), threading.Event()

    class SlowHandler(QuietHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/codex.two.json"):
                is_seen.set()
                is_let.wait()
            super().do_GET()

    site = export_bundle(filled, tmp_path / "site", html=True).path
    with serve_site(site, functools.partial(SlowHandler, directory=str(site))) as address:
        page.goto(address)
        is_seen.wait()
        choose(page, theirs)
        expect_verdict_on(page, theirs.name)
        is_let.set()
        page.get_by_role("button", name="Back to").wait_for()
        expect_verdict_on(page, theirs.name)
        page.get_by_role("button", name="Back to").click()
        page.locator(".open-name", has_text=theirs.name).wait_for(state="detached")
        assert wait_for_verdict(page) == "Qualified"
