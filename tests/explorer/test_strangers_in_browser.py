"""A site as a stranger gets and opens it: by the commands of the documentation, and with nothing else of Aver.

The page comes from `python -m http.server`, or by a double click. Both have deep links and *Try to change it*.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.aver_command import Aver
from support.browser_pages import JUDGED, go, pin, wait_for_verdict

pytestmark = [pytest.mark.browser, pytest.mark.long]

CHAIN = "ci.nightly"
DRAFTS = [
    {"type": "tool", "trigger": {"source": "ci", "request": request}, "outcome": {"status": status, "summary": summary}}
    for request, status, summary in (
        ("run the tests", "success", "5 passed"),
        ("build", "success", "built"),
        ("deploy", "blocked", "not approved"),
    )
]


@pytest.fixture
def aver(tmp_path: Path) -> Aver:
    return Aver(tmp_path)


@pytest.fixture
def site(aver: Aver) -> Path:
    """What the person has who made the records: `aver seal`, then `aver export --html`."""
    (aver.directory / "drafts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in DRAFTS))
    assert aver("seal", "drafts.jsonl", "--chain", CHAIN).code == 0
    assert aver("export", "--html", "--out", "site").code == 0
    assert aver("verify", "site").code == 0
    return aver.directory / "site"


@pytest.fixture(params=["http", "file"])
def address(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    """Where the stranger opens it: on a static server of loopback, or by a double click."""
    if request.param == "file":
        yield (site / "index.html").as_uri()
        return
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(site), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"port (\d+)", server.stdout.readline())
        assert found is not None
        yield f"http://127.0.0.1:{found[1]}/"
        server.terminate()


def find_key(aver: Aver) -> str:
    """The key that its owner sends by another way: `aver keys export`."""
    exported = aver("keys", "export")
    assert exported.code == 0
    found = re.search(r'"public_key": ?"([0-9a-f]{64})"', exported.out)
    assert found is not None, exported.out
    return found[1]


def test_verdict_needs_the_key_and_says_what_it_is_about(page: Any, aver: Aver, address: str) -> None:
    page.goto(address)
    assert wait_for_verdict(page) == "Qualified"
    assert "is not known here" in page.locator(".band").inner_text()
    pin(page, find_key(aver))
    if address.startswith("http"):
        page.locator(".band.verified").wait_for()
    else:
        page.get_by_text(re.compile("each was signed by a key that you pinned")).wait_for()
        assert wait_for_verdict(page) == "Qualified"
        assert "judged its own copies" in page.locator(".band").inner_text()


def test_deep_link_leads_to_its_record(page: Any, address: str) -> None:
    page.goto(f"{address}#/c/{CHAIN}/2")
    page.get_by_text(f"capsule://{CHAIN}/2", exact=True).wait_for()
    page.get_by_role("heading", name="not approved").wait_for()
    page.goto(f"{address}#/chain/{CHAIN}/at-1")
    page.reload()
    page.locator(".row.selected, [aria-selected=true], .row[aria-current]").first.wait_for()
    page.goto(f"{address}#/search/approved")
    page.reload()
    page.locator(".hits li").first.wait_for()
    go(page, f"#/c/{CHAIN}/9")
    assert "there is no such record" in page.get_by_role("alert").inner_text()


CHANGES = {
    "Flip a character": "HASH_MISMATCH",
    "Drop it": "SEQUENCE_GAP",
}


@pytest.mark.parametrize("label", CHANGES)
def test_change_of_a_copy_breaks_and_leaves_the_records_alone(
    page: Any, aver: Aver, site: Path, address: str, label: str
) -> None:
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    page.goto(address)
    page.locator(JUDGED).first.wait_for()
    go(page, "#/try")
    page.get_by_role("heading", name="Try to change it").first.wait_for()
    go(page, f"#/c/{CHAIN}/1")
    page.get_by_role("button", name=label, exact=True).click()
    page.locator(".band.failed").wait_for()
    assert CHANGES[label] in page.locator(".band .finding").first.inner_text()
    page.get_by_role("link", name="Go there").click()
    page.locator(".break").first.wait_for()
    assert "copy" in page.locator("main.is-copy .copy").inner_text().lower()
    page.get_by_role("button", name="Back to the records").click()
    go(page, "#/")
    page.locator(".band.qualified").wait_for()
    assert page.locator("main.is-copy").count() == 0
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before
    assert aver("verify", "site").code == 0


def test_changed_file_is_found_on_a_static_server(page: Any, site: Path, address: str) -> None:
    """By a double click the page reads its own copies, says so, and is at most qualified."""
    chain = site / f"{CHAIN}.json"
    chain.write_text(chain.read_text().replace("not approved", "was approved"))
    page.goto(address)
    assert wait_for_verdict(page) == ("Failed" if address.startswith("http") else "Qualified")
    go(page, f"#/c/{CHAIN}/2")
    if address.startswith("http"):
        page.get_by_role("heading", name="was approved").wait_for()
        page.get_by_text("This record does not hold by itself").wait_for()
    else:
        page.get_by_role("heading", name="not approved").wait_for()
