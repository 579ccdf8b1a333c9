"""Tabs of the live page in a real Chromium: a new one asks the others of its origin for the token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aver import Ledger
from support.browser_pages import PAGE, go, wait_for_verdict
from support.explorer_servers import ServedExplorer, serve

pytestmark = [pytest.mark.browser, pytest.mark.long]

NO_TOKEN = "This page has no token"
REFUSED = "does not accept this page's token"

LISTEN = """() => {
  window.heard = [];
  new BroadcastChannel("aver-secrets").onmessage = ({ data }) => { if (data.token) heard.push(data.token); };
}"""


@pytest.fixture
def served(filled: Ledger) -> Iterator[ServedExplorer]:
    with serve(filled) as running:
        yield running


def home(served: ServedExplorer) -> str:
    return f"http://localhost:{served.port}/"


def open_first_tab(page: Any, served: ServedExplorer) -> None:
    page.goto(served.server.link)
    assert wait_for_verdict(page) == "Verified"
    page.locator(".live.on").wait_for()


def test_link_opens_in_a_new_tab(page: Any, served: ServedExplorer) -> None:
    open_first_tab(page, served)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Chains").first.click(modifiers=["Control"])
    other = opened.value
    other.get_by_text("codex.two").first.wait_for()
    assert other.url.endswith("#/chains")
    other.get_by_role("link", name="Overview").first.click()
    assert wait_for_verdict(other) == "Verified"  # With the keys that the first tab's link vouched for.
    kept = other.evaluate("location.href + document.cookie + JSON.stringify(localStorage)")
    assert served.server.token not in kept
    page.close()
    other.reload()  # The tab keeps it for itself.
    assert wait_for_verdict(other) == "Verified"


def unpin_all(page: Any) -> None:
    go(page, "#/keys")
    page.get_by_role("button", name="Unpin").first.wait_for()
    while page.get_by_role("button", name="Unpin").count():
        page.get_by_role("button", name="Unpin").first.click()
    go(page, "#/")
    page.locator(".band.qualified").wait_for()


def test_key_that_was_unpinned_stays_so_until_a_link_is_opened(page: Any, served: ServedExplorer) -> None:
    """Not in this tab, and not in one that got its secrets from this one."""
    open_first_tab(page, served)
    other = page.context.new_page()
    other.goto(home(served))
    assert wait_for_verdict(other) == "Verified"
    unpin_all(page)
    third = page.context.new_page()
    third.goto(home(served))
    assert wait_for_verdict(third) == "Qualified"
    for tab in (page, other):
        tab.reload()
        assert wait_for_verdict(tab) == "Qualified"
    # The reader opens the printed link anew: these are the keys that he wants.
    third.goto("about:blank")
    third.goto(served.server.link)
    assert wait_for_verdict(third) == "Verified"


def test_deep_link_in_a_tab_of_another_browser_has_no_token(chromium: Any, page: Any, served: ServedExplorer) -> None:
    open_first_tab(page, served)
    context = chromium.new_context()
    stranger = context.new_page()
    stranger.goto(f"{home(served)}#/chains")
    stranger.get_by_text(NO_TOKEN).wait_for()
    context.close()


def test_tabs_without_a_token_do_not_wait_for_each_other(page: Any, served: ServedExplorer) -> None:
    other = page.context.new_page()
    for tab in (page, other):
        tab.goto(home(served), wait_until="commit")
    for tab in (page, other):
        tab.get_by_text(NO_TOKEN).wait_for()
    open_first_tab(page, served)
    other.get_by_role("button", name="Try again").click()
    assert wait_for_verdict(other) == "Verified"


def test_tab_of_a_server_that_was_started_anew_hands_nothing_on(free_page: Any, filled: Ledger) -> None:
    with serve(filled) as first:
        open_first_tab(free_page, first)
    free_page.locator(".stale").wait_for()
    listener = free_page.context.new_page()
    with serve(filled, port=first.port) as second:
        listener.goto(f"{home(second)}api/v1/nothing")  # Of the same origin, and no page of ours.
        listener.evaluate(LISTEN)
        free_page.locator(".stale").filter(has_text="token").wait_for()
        other = free_page.context.new_page()
        other.goto(f"{home(second)}#/chains")
        other.get_by_text(NO_TOKEN).wait_for()
        assert listener.evaluate("heard") == []
        free_page.goto(second.server.link)
        free_page.locator(".live.on").wait_for()
        other.get_by_role("button", name="Try again").click()
        other.get_by_text("codex.two").first.wait_for()
        assert set(listener.evaluate("heard")) == {second.server.token}


def test_wrong_token_of_another_tab_is_tried_once(free_page: Any, served: ServedExplorer) -> None:
    """A page of the same origin could have come from another program that had this port before."""
    free_page.goto(f"{home(served)}api/v1/nothing")
    free_page.evaluate("""() => {
      const channel = new BroadcastChannel("aver-secrets");
      channel.onmessage = () => {
        for (const sent of [null, 7, {token: 1}, {token: "wrong", keys: ""}]) channel.postMessage(sent);
      };
    }""")
    other = free_page.context.new_page()
    asked: list[str] = []
    other.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    other.goto(home(served))
    other.get_by_role("alert").filter(has_text=REFUSED).wait_for()
    other.wait_for_timeout(1_500)
    assert len(asked) == 1


def test_files_share_no_channel(page: Any) -> None:
    page.add_init_script("window.BroadcastChannel = class { constructor() { throw new Error('a channel'); } };")
    page.goto(PAGE.as_uri())
    page.get_by_test_id("folder").wait_for(state="attached")
    assert page.get_by_role("alert").count() == 0
