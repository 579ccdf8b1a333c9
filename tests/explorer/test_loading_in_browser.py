"""Every view of a live ledger while it waits for records, and where there are more of them than it lays out.

The server's answers are held back, so that a view stays in its state for as long as the test looks. A view that loads
says so, and its rows have the height that they will have. One with too many records says which command tells them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from aver.ledger import open_ledger
from support.agents import sample_session as sample
from support.browser_pages import PATIENCE, go, wait_for_verdict
from support.explorer_servers import serve
from support.story_sites import make_site

pytestmark = [pytest.mark.browser, pytest.mark.long]

MAIN = f"claude-code.{sample.SESSION}"
RECORDS = ("**/api/v1/chains/*/records*", "**/api/v1/sessions*", "**/api/v1/search*", "**/api/v1/counts*")
"""The requests for records and for what the index says of them. The list of chains is answered at once."""

BUSY = "main [aria-busy=true], main .row.loading"
MANY = 60_000
"""More records than any view lays out."""


@pytest.fixture
def served(free_page: Any, ledger: Ledger, tmp_path: Path) -> Iterator[Any]:
    """The page on a ledger with one session."""
    sample.rich(ledger, tmp_path)
    with serve(ledger) as running:
        free_page.goto(running.server.link)
        wait_for_verdict(free_page)
        yield free_page


@contextmanager
def reload_unanswered(page: Any) -> Iterator[None]:
    """Load the page anew, and hold all its requests for records back until the end. The list of chains is there."""
    held: list[Any] = []
    is_over = False

    def take(route: Any) -> None:
        if is_over:
            route.continue_()
        else:
            held.append(route)

    for pattern in RECORDS:
        page.route(pattern, take)
    page.reload()
    for _ in range(PATIENCE // 50):
        if held:
            break
        page.wait_for_timeout(50)
    assert held, "the page asked for no record"
    yield
    is_over = True
    for route in held:
        route.continue_()


def enlarge(page: Any, prefix: str) -> None:
    """Let the server claim that the chains with this prefix are very long."""

    def answer(route: Any) -> None:
        found = route.fetch()
        document = found.json()
        for chain in document["chains"]:
            if chain["name"].startswith(prefix):
                chain["count"] = MANY
        route.fulfill(response=found, json=document)

    page.route("**/api/v1/chains?*", answer)


def height_of(page: Any, selector: str) -> float:
    found = page.locator(selector).first
    found.wait_for()
    return float(found.bounding_box()["height"])


LOADING = {
    "#/": "Latest sessions",
    "#/sessions": "claude-code",
    f"#/s/{MAIN}": "sum.py",
    f"#/files/{MAIN}": "sum.py",
    f"#/chain/{MAIN}": "rows; j and k move",
    f"#/c/{MAIN}/3": "Exact bytes",
    "#/meta": "meta chain",
    "#/keys": "key.create",
    "#/search/sum*": "hit",
}
"""Each view that waits for records, and words that stand there when it has them."""


@pytest.mark.parametrize("view", LOADING)
def test_view_that_waits_says_so_and_then_shows_the_records(served: Any, view: str) -> None:
    go(served, view)
    with reload_unanswered(served):
        served.locator(BUSY).first.wait_for(state="attached")
        served.get_by_role("status").first.wait_for(state="attached")
        assert served.get_by_role("alert").count() == 0
        assert served.locator("main .nothing").count() == 0, "an empty view while nothing is known"
    served.get_by_text(LOADING[view]).filter(visible=True).first.wait_for()
    served.locator(BUSY).first.wait_for(state="detached")


def test_rows_that_wait_have_their_final_height(served: Any) -> None:
    go(served, f"#/chain/{MAIN}")
    with reload_unanswered(served):
        before = height_of(served, ".row.loading")
    assert height_of(served, "a.row") == before


@pytest.mark.parametrize(("name", "view"), [("acts", "#/acts"), ("trace", "#/protocol")])
def test_acts_and_traces_wait_and_have_a_limit(free_page: Any, tmp_path: Path, name: str, view: str) -> None:
    make_site(tmp_path, name)
    home = tmp_path / f"{name}-home"
    with open_ledger(home / "ledger.db", home=home) as ledger, serve(ledger) as running:
        free_page.goto(running.server.link)
        wait_for_verdict(free_page)
        go(free_page, view)
        with reload_unanswered(free_page):
            free_page.locator(BUSY).first.wait_for(state="attached")
        free_page.locator(BUSY).first.wait_for(state="detached")
        enlarge(free_page, "gateway." if name == "acts" else "protocol.")
        free_page.reload()
        free_page.get_by_text(f"{MANY:,}").first.wait_for()
        free_page.locator("main .strip .command").first.wait_for()
        assert free_page.locator(BUSY).count() == 0


def test_session_with_too_many_records_names_the_command(served: Any) -> None:
    enlarge(served, MAIN)
    for view in (f"#/s/{MAIN}", f"#/files/{MAIN}"):
        go(served, view)
        served.reload()
        # Its own chain, and that of its subagent.
        served.get_by_text(f"This session has {2 * MANY:,} records").wait_for()
        assert served.locator("main .command").first.inner_text().startswith("aver show")
        assert served.locator(BUSY).count() == 0


def test_ledger_with_too_many_records_is_not_counted_and_waits_to_be_verified(served: Any) -> None:
    """The index of the server counts. Without it, the page does not begin to count as many."""
    enlarge(served, MAIN)
    served.route("**/api/v1/counts*", lambda route: route.fulfill(status=404, json={"code": "NOT_FOUND"}))
    served.reload()
    served.get_by_text("the page does not count their activity").wait_for()
    served.get_by_role("button", name="Verify").first.wait_for()
    go(served, "#/risk")
    served.get_by_text("The gate has decided about nothing").wait_for()


def test_list_of_a_long_chain_draws_few_rows(served: Any) -> None:
    """The claimed length is not believed: rows that the server does not give stay open, and nothing else hangs."""
    enlarge(served, MAIN)
    go(served, f"#/chain/{MAIN}")
    served.reload()
    served.get_by_text(f"{MANY:,} rows").wait_for()
    served.locator("a.row").first.wait_for()
    assert served.locator("[role=row]").count() <= 120


def test_first_screen_says_that_its_sessions_cannot_be_read(served: Any) -> None:
    go(served, "#/")
    served.route("**/api/v1/sessions*", lambda route: route.abort())
    served.reload()
    alert = served.get_by_role("alert").filter(has_text="the server does not answer")
    alert.first.wait_for()
    served.unroute("**/api/v1/sessions*")
    alert.get_by_role("button", name="Try again").first.click()
    alert.first.wait_for(state="detached")


def test_request_that_cannot_be_read_says_so(served: Any) -> None:
    go(served, "#/approvals/nobody")
    served.get_by_role("alert").filter(has_text="There is no request nobody here").wait_for()
    served.route(
        RECORDS[0], lambda route: route.fulfill(status=500, json={"code": "UNAVAILABLE", "message": "no disk"})
    )
    served.reload()
    served.get_by_role("button", name="Try again").first.wait_for()


def test_door_that_does_not_open_can_be_tried_again(served: Any) -> None:
    served.route("**/api/v1/about*", lambda route: route.abort())
    served.reload()
    served.get_by_role("alert").filter(has_text="Not judged").wait_for()
    served.unroute("**/api/v1/about*")
    served.get_by_role("button", name="Try again").click()
    wait_for_verdict(served)
