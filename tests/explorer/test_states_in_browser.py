"""Every view of a live ledger in its states: empty, not live, refused by the server, with an index that is behind.

No view may stay at "Reading …", call something missing that could not be asked for, or leave its reader without advice.
With `AVER_SCREENSHOTS=DIR`, each state of each view is also drawn there, in both themes and four widths, for people.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from support.agents import sample_session as sample
from support.browser_pages import go, wait_for_verdict
from support.explorer_servers import serve

pytestmark = [pytest.mark.browser, pytest.mark.long]

MAIN = f"claude-code.{sample.SESSION}"

READING = ("#/sessions", f"#/s/{MAIN}", f"#/files/{MAIN}", f"#/chain/{MAIN}", f"#/c/{MAIN}/3", "#/meta")
"""The views that ask the server for records. Their pages are opened while it cannot answer."""

OTHERS = ("#/risk", "#/approvals", "#/chains", "#/keys", "#/acts", "#/protocol", "#/search/sum*", "#/try")
VIEWS = ("#/", *READING, *OTHERS)

REFUSED = {"code": "UNAVAILABLE", "message": "the ledger cannot be read", "advice": "look at the disk"}


def draw(page: Any, state: str, view: str) -> None:
    """Keep pictures of a view, where they are asked for."""
    if not (folder := os.environ.get("AVER_SCREENSHOTS")):
        return
    name = re.sub(r"\W+", "-", view).strip("-") or "overview"
    for width in (1440, 1000, 720, 320):
        page.set_viewport_size({"width": width, "height": 860})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.screenshot(path=Path(folder) / f"{state}-{name}-{width}-{scheme}.png")
    page.set_viewport_size({"width": 1280, "height": 860})
    page.emulate_media(color_scheme="light")


@pytest.fixture
def live(free_page: Any, ledger: Ledger, tmp_path: Path) -> Iterator[Any]:
    """The page on a ledger with one session. Its server may be kept from answering."""
    sample.rich(ledger, tmp_path)
    with serve(ledger) as running:
        free_page.goto(running.server.link)
        wait_for_verdict(free_page)
        yield free_page


def test_new_ledger_is_empty_and_says_what_to_do(page: Any, ledger: Ledger) -> None:
    """A ledger has no key before its first record. Its link has nothing to pin, and that is no error."""
    with serve(ledger) as running:
        page.goto(running.server.link)
        assert wait_for_verdict(page) == "Empty"
        assert page.get_by_role("alert").count() == 0
        page.get_by_text("Nothing is recorded here yet").wait_for()
        for view in VIEWS:
            go(page, view)
            if view in (f"#/s/{MAIN}", f"#/chain/{MAIN}", f"#/c/{MAIN}/3"):
                page.get_by_role("alert").filter(has_text="here is no").wait_for()
            elif view != "#/":
                page.locator(".nothing").first.wait_for()
            draw(page, "empty", view)
        go(page, "#/chains")
        assert page.locator(".nothing code").inner_text() == "aver install claude-code"
        go(page, f"#/chain/{MAIN}")
        page.get_by_text(f"There is no chain {MAIN} in ledger").wait_for()


@pytest.mark.parametrize("state", ["refused", "not-live"])
def test_view_that_cannot_ask_says_so_and_tries_again(live: Any, state: str) -> None:
    def answer(route: Any) -> None:
        if state == "refused":
            route.fulfill(status=500, json=REFUSED)
        else:
            route.abort()

    said = "the ledger cannot be read (look at the disk)" if state == "refused" else "the server does not answer"
    live.route("**/api/v1/**", answer)
    for view in READING:
        go(live, view)
        live.get_by_role("alert").filter(has_text=said).first.wait_for()
        assert live.get_by_text("is no session").count() == 0, view
        assert live.locator("[aria-busy=true]:not(.virtual)").count() == 0, view
        draw(live, state, view)
    live.unroute("**/api/v1/**")
    for view in (f"#/s/{MAIN}", f"#/files/{MAIN}"):
        go(live, view)
        live.get_by_role("alert").first.wait_for(state="detached")
        live.get_by_text("sum.py").first.wait_for()


def test_index_that_is_behind_says_how_far(live: Any) -> None:
    def answer(route: Any) -> None:
        found = route.fetch()
        document = found.json()
        document["indexed"].update(records=5, of_records=12, complete=False)
        route.fulfill(response=found, json=document)

    for name in ("sessions", "search", "counts"):
        live.route(f"**/api/v1/{name}*", answer)
    go(live, "#/search/sum*")
    live.get_by_text("7 records are not in it yet").wait_for()
    draw(live, "behind", "#/search")
    go(live, "#/")
    live.reload()
    wait_for_verdict(live)
    live.get_by_text("lacks 7 records yet").wait_for()
    draw(live, "behind", "#/")
