"""The server of `aver serve` and a real Chromium: the link, the file that opens it, and pages of others."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger
from support.explorer_servers import ServedExplorer, serve

pytestmark = [pytest.mark.browser, pytest.mark.long]

HOSTILE_PAGE = """<!doctype html><title>another page</title><body><script>
async function attack(target, another) {
  const found = {};
  for (const mode of ["cors", "no-cors"]) {
    try { found[mode] = (await fetch(target + "/api/v1/about", { mode })).type; } catch { found[mode] = "refused"; }
  }
  for (const [name, tag] of [["script", "script"], ["image", "img"]]) {
    found[name] = await new Promise((resolve) => {
      const element = document.createElement(tag);
      element.onload = () => resolve("loaded");
      element.onerror = () => resolve("refused");
      element.src = target + "/explorer/app.js";
      document.body.append(element);
    });
  }
  for (const [name, address] of [["explorer", target + "/"], ["another", another]]) {
    const frame = Object.assign(document.createElement("iframe"), { name, src: address });
    document.body.append(frame);
    await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 3000); });
  }
  return found;
}
</script>"""


@pytest.fixture
def served(filled: Ledger) -> Iterator[ServedExplorer]:
    with serve(filled) as running:
        yield running


def open_page(chromium: Any) -> tuple[Any, list[str]]:
    """A page, and the problems that it reports: errors, and blocked loads."""
    page = chromium.new_context().new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    return page, problems


def wait_for_text(page: Any, text: str) -> None:
    page.get_by_text(text).first.wait_for(timeout=60_000)


def test_link_pins_the_keys_and_leaves_the_address(chromium: Any, served: ServedExplorer, filled: Ledger) -> None:
    page, problems = open_page(chromium)
    page.goto(served.server.link)
    page.locator(".band.verified").wait_for(timeout=60_000)
    assert served.server.token not in page.url
    assert page.evaluate("document.cookie") == ""
    filled.append("demo.later", Capsule(type="tool", outcome={"status": "success", "summary": "sealed meanwhile"}))
    page.evaluate("location.hash = '#/chains'")
    wait_for_text(page, "demo.later")
    assert problems == []


def test_file_leads_to_the_page(chromium: Any, served: ServedExplorer, tmp_path: Path) -> None:
    """As `aver serve --open` does it. For the browser, a file is another site."""
    leading = tmp_path / "open.html"
    leading.write_text(f'<meta http-equiv="refresh" content="0; url={served.server.link.replace("&", "&amp;")}">')
    page, problems = open_page(chromium)
    page.goto(leading.as_uri())
    page.locator(".band.verified").wait_for(timeout=60_000)
    assert problems == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_page_of_others_reaches_nothing(chromium: Any, served: ServedExplorer, host: str) -> None:
    """Neither from another site, nor from another port of the same one."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), HostilePage) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page, _ = open_page(chromium)
        page.goto(f"http://{host}:{other.server_port}/")
        answered: list[int] = []
        page.on("response", lambda answer: answered.append(answer.status) if "/api/" in answer.url else None)
        addresses = [f"http://localhost:{served.port}", f"http://127.0.0.1:{other.server_port}/framed"]
        found = page.evaluate("addresses => attack(...addresses)", addresses)
        explorer, another = page.frame(name="explorer"), page.frame(name="another")
        # The browser shows its own page of an error in the place of the Explorer. It frames a page that allows it.
        assert explorer.url.startswith("chrome-error:")
        assert explorer.locator("#app").count() == 0
        assert (another.url, another.title()) == (addresses[1], "another page")
        other.shutdown()
    assert found["cors"] == "refused"
    assert found["no-cors"] in ("refused", "opaque")
    assert (found["script"], found["image"]) == ("refused", "refused")
    assert 200 not in answered


class HostilePage(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(HOSTILE_PAGE.encode())

    def log_message(self, *_: Any) -> None:
        return
