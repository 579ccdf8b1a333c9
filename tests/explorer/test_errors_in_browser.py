"""Views whose server refuses, dies or answers nonsense, and workers that are lost: said in words, with a way to go on.

A view must not call empty what it could not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from support.browser_pages import go, wait_for_verdict
from support.bundles import draft
from support.explorer_servers import ServedExplorer, serve
from support.shop_ledger import write_shop_ledger

pytestmark = [pytest.mark.browser, pytest.mark.long]

ASKED = ("**/api/v1/chains/*/records*", "**/api/v1/search*")
"""The requests by which these views get what they show."""

VIEWS = {
    "#/risk": "Over time",
    "#/search/round*": "hits in",
    "#/keys": "key.create",
    "#/acts": "Preview",
    "#/protocol": "Events by role",
}
"""Each view, and words that stand there when it has its records."""

REFUSED = {"code": "UNAVAILABLE", "message": "the ledger cannot be read", "advice": "look at the disk"}
ANOTHER_FORM = json.dumps({"hits": [None], "indexed": None}).encode()

STRANGE = {"sessions": [{}], "next": None, "indexed": {"records": 1, "of_records": 1}}
"""A list of sessions that say nothing of themselves."""

ANSWERS: dict[str, tuple[Callable[[Any], None], dict[str, str]]] = {
    "refuses": (
        lambda route: route.fulfill(status=500, json=REFUSED),
        {"": "the ledger cannot be read (look at the disk)"},
    ),
    "dies": (lambda route: route.abort(), {"": "the server does not answer (Start it again: aver serve)"}),
    "answers with markup": (
        lambda route: route.fulfill(body=b"<html>\xff</html>\n" * 1000),
        {"": "", "#/search/round*": "the server's answer is no JSON (Start it again: aver serve)"},
    ),
    "answers in another form": (
        lambda route: route.fulfill(body=ANOTHER_FORM),
        {"": "", "#/search/round*": "another form than it should (Start it again: aver serve)"},
    ),
    "answers with nothing": (
        lambda route: route.fulfill(body=b""),
        {"": "", "#/search/round*": "the server's answer is no JSON (Start it again: aver serve)"},
    ),
}
"""What the server does, and what each view says then."""

EMPTY_WORDS = ("The gate has decided about nothing", "There is no act in this chain", "Nothing has these words")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedExplorer]:
    """A server of a ledger with everything in it."""
    with write_shop_ledger(tmp_path_factory.mktemp("shop")) as ledger, serve(ledger) as running:
        yield running


@pytest.mark.parametrize("state", ANSWERS)
@pytest.mark.parametrize("view", VIEWS)
def test_view_says_what_happened_and_tries_again(free_page: Any, shop: ServedExplorer, view: str, state: str) -> None:
    answer, said = ANSWERS[state]
    free_page.goto(shop.server.link)
    wait_for_verdict(free_page)
    for pattern in ASKED:
        free_page.route(pattern, answer)
    go(free_page, view)
    main = free_page.locator("main")
    main.get_by_role("alert").filter(has_text=said.get(view, said[""])).first.wait_for()
    words = main.inner_text()
    assert not any(claim in words for claim in EMPTY_WORDS), words
    assert free_page.locator("main [aria-busy=true]").count() == 0
    for pattern in ASKED:
        free_page.unroute(pattern)
    free_page.get_by_role("button", name="Try again").first.click()
    main.get_by_text(VIEWS[view]).first.wait_for()
    main.get_by_role("alert").first.wait_for(state="detached")


def test_first_screen_does_not_say_that_nothing_waits_if_it_cannot_know(free_page: Any, shop: ServedExplorer) -> None:
    free_page.route("**/api/v1/chains/approvals.*/records*", lambda route: route.fulfill(status=500, json=REFUSED))
    free_page.goto(shop.server.link)
    tile = free_page.locator(".tile").filter(has_text="Does something wait for me?")
    tile.get_by_role("link", name="Not known").click()
    free_page.unroute("**/api/v1/chains/approvals.*/records*")
    free_page.get_by_role("button", name="Try again").first.click()
    free_page.get_by_text("2 requests wait for an answer").wait_for()


def test_owner_of_a_key_that_cannot_be_read_is_not_called_unknown(free_page: Any, shop: ServedExplorer) -> None:
    free_page.goto(shop.server.link)
    wait_for_verdict(free_page)
    free_page.route(ASKED[0], lambda route: route.abort())
    go(free_page, "#/keys")
    free_page.get_by_text("not read", exact=True).first.wait_for()
    assert free_page.get_by_text("nobody says").count() == 0


def test_answer_of_a_strange_form_breaks_one_view_and_not_the_page(free_page: Any, shop: ServedExplorer) -> None:
    free_page.route("**/api/v1/sessions*", lambda route: route.fulfill(json=STRANGE))
    free_page.goto(shop.server.link)
    free_page.get_by_role("alert").filter(has_text="This view broke down").wait_for()
    go(free_page, "#/chains")
    free_page.locator(".chain-row:not(.heads)").first.wait_for()
    free_page.unroute("**/api/v1/sessions*")
    go(free_page, "#/sessions")
    free_page.get_by_role("button", name="Try again").first.click()
    free_page.locator("table.sessions tbody tr").first.wait_for()


# --- workers

HANG = "setTimeout(() => { for (;;); })"
END = "setTimeout(() => close())"
MINUTE = 70_000


def find_reader(page: Any) -> Any:
    """The worker that reads for the views: the first that the page started."""
    return page.workers[0]


@pytest.mark.parametrize("how", [HANG, END], ids=["hangs", "is ended"])
def test_view_goes_on_with_a_new_worker(free_page: Any, filled: Ledger, how: str) -> None:
    free_page.clock.install()
    filled.append_many("ci.a", [draft(f"alpha {number}") for number in range(6)])
    with serve(filled) as running:
        free_page.goto(running.server.link)
        assert wait_for_verdict(free_page) == "Verified"
        find_reader(free_page).evaluate(how)
        go(free_page, "#/chain/ci.a")
        free_page.locator(".row.loading").first.wait_for()
        free_page.clock.run_for(MINUTE)
        free_page.get_by_role("alert").filter(has_text="it has not answered for a minute").first.wait_for()
        free_page.get_by_role("button", name="Try again").first.click()
        free_page.get_by_text("alpha 2").wait_for()
        # The new worker is held to what was judged, as the lost one was.
        free_page.route(
            "**/api/v1/chains/ci.a/records*",
            lambda route: route.fulfill(body=route.fetch().body().replace(b"alpha", b"omega")),
        )
        go(free_page, "#/c/ci.a/2")
        free_page.get_by_text("another record here than it gave to be verified").wait_for()


@pytest.mark.parametrize("how", [HANG, END], ids=["hangs", "is ended"])
def test_judge_that_is_silent_gives_no_verdict(free_page: Any, filled: Ledger, how: str) -> None:
    free_page.clock.install()
    with serve(filled) as running:
        free_page.goto(running.server.link)
        assert wait_for_verdict(free_page) == "Verified"
        for worker in free_page.workers[1:]:
            worker.evaluate(how)
        free_page.keyboard.press("v")
        free_page.locator(".band.working").wait_for()
        free_page.clock.run_for(MINUTE)
        assert wait_for_verdict(free_page) == "Not judged"
        assert "a worker was lost" in free_page.locator(".band").inner_text()
        free_page.get_by_role("button", name="Try again").first.click()
        free_page.locator(".band.verified").wait_for()


def test_silent_judge_can_be_stopped(free_page: Any, filled: Ledger) -> None:
    with serve(filled) as running:
        free_page.goto(running.server.link)
        assert wait_for_verdict(free_page) == "Verified"
        for worker in free_page.workers[1:]:
            worker.evaluate(HANG)
        free_page.keyboard.press("v")
        free_page.get_by_role("button", name="Stop").click()
        assert wait_for_verdict(free_page) == "Not judged"


# --- light and dark


def test_theme_is_kept(page: Any, shop: ServedExplorer) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(shop.server.link)
    wait_for_verdict(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.get_by_role("button", name="Theme:")
    assert button.inner_text() == "auto"
    seen = {}
    for theme in ("dark", "light", "auto"):
        button.click()
        page.reload()
        wait_for_verdict(page)
        assert button.inner_text() == theme
        seen[theme] = page.evaluate(ground)
        page.emulate_media(color_scheme="dark" if theme == "light" else "light")
    dark = seen["dark"]
    assert dark != light
    # The choice holds against the system: at last it was dark, and then the system was asked again.
    assert (seen["light"], seen["auto"]) == (light, dark)


def test_theme_is_not_kept_on_a_page_from_a_file(page: Any, bundle: Path) -> None:
    from support.browser_pages import open_folder

    open_folder(page, bundle)
    page.get_by_role("button", name="Theme:").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.get_by_role("button", name="Theme:").inner_text() == "auto"
