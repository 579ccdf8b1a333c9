"""The Explorer's page in a real Chromium: verification, memory, first rows, scrolling and size.

    python bench/explorer_page.py            medians of five runs, chains of up to 100,000 records
    python bench/explorer_page.py --quick    three runs, up to 20,000

It needs Chromium and Playwright, and says so where one is missing. Every run has a page of its own, because a worker
keeps the answers to signatures that it has checked.

1. Verification: 10,000 signed capsules of a site. The floor is SHA3-256 by noble, whose Keccak the shipped verifier
   has for ML-DSA, and the platform's Ed25519 over the same texts, in as many workers. The page has a faster SHA3-256 of
   its own, so another line compares it with a floor that has this one, too. The time begins when the page begins to
   judge.
2. Memory: `performance.measureUserAgentSpecificMemory`, which counts the page and its workers, again and again while
   the page verifies a long chain. Chromium collects garbage before each measure. It wants an isolated page for this, so
   the site is served with the headers for it.
3. First rows: from the address of a chain to its first drawn row, over `aver serve`, with a new page for each.
4. Scrolling: a frame is dropped where the next one comes later than a frame takes.

Each line is printed as soon as it is known, and progress goes to stderr. Nothing waits for ever: where the page changes
nothing for a minute, the run ends and says what the page shows.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from explorer_api import Served
from measuring import TABLE_HEAD, Line, in_turns, table_row
from sample import sample

import aver
from aver.ledger import Ledger
from aver.ledger.bundle import export_bundle

PAGE = Path(aver.__file__).parent / "explorer" / "page"
CHAIN = "bench.chain"
RECORDS = 10_000
SHORT, MIDDLE = 100, 1_000
JUDGED = ".band.verified, .band.qualified, .band.failed, .band.empty, .band.not-judged"
SWITCHES = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--enable-blink-features=ForceEagerMeasureMemory"),
]
FRAMES, SCROLL_STEP = 120, 280
"""Frames of a scroll, and pixels in each. Together they stay within a list of `MIDDLE` rows."""
STALL = 60
"""Seconds in which the page must change something. Only a page that hangs takes so long, on a busy machine, too."""

WATCH = """
window.benchLong = [];
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) benchLong.push([task.startTime, task.duration]);
}).observe({ type: "longtask", buffered: true });
window.benchTimes = {};
const note = () => {
  const at = performance.now(), times = window.benchTimes;
  if (document.querySelector(".band.working")) times.began ??= at;
  if (document.querySelector(".band.verified, .band.qualified, .band.failed, .band.not-judged")) times.ended ??= at;
  if (document.querySelector(".row:not(.loading)")) times.rows ??= at;
};
document.addEventListener("DOMContentLoaded", () => {
  new MutationObserver(note).observe(document.documentElement, { subtree: true, childList: true, attributes: true });
});
"""
"""Runs in each page before its own script: notes long tasks, and when the page began to judge, judged, and had rows."""

BARE = """
{
  const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
  const BATCH = 250;
  let records, key;
  self.onmessage = async ({ data }) => {
    if (data.records) {
      records = data.records;
      key = await crypto.subtle.importKey("raw", unhex(data.key), "Ed25519", false, ["verify"]);
      self.postMessage("ready");
      return;
    }
    const byNoble = (bytes) => toHex(new Keccak(136, 6, 32).update(bytes).digest());
    const hashOf = data.usesNoble ? byNoble : sha3Hex;
    for (let at = 0; at < records.length; at += BATCH) {
      const batch = records.slice(at, at + BATCH);
      const check = ([hash, signature]) => crypto.subtle.verify("Ed25519", key, unhex(signature), encoder.encode(hash));
      const asked = batch.map(check);
      const isRight = batch.every(([hash, , text]) => hashOf(encoder.encode(text)) === hash);
      if (!isRight || !(await Promise.all(asked)).every(Boolean)) throw new Error("a record does not hold");
    }
    self.postMessage("done");
  };
}
"""
"""A worker of the floor: hashes its records and checks their signatures. It stands after the verifier's own text."""

RUN_BARE = """async ({ key, source, count, usesNoble }) => {
  const records = (await (await fetch(source)).json()).capsules.map((one) => [one.hash, one.signature, one.canonical]);
  const workers = Array.from({ length: count }, () => new Worker("/bare.js", { type: "module" }));
  const answers = () => Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
    worker.onmessage = resolve;
    worker.onerror = (event) => reject(new Error(`a worker of the floor failed: ${event.message}`));
  })));
  const isReady = answers();
  const part = (at) => records.filter((_, number) => number % count === at);
  workers.forEach((worker, at) => worker.postMessage({ key, records: part(at) }));
  await isReady;
  const isDone = answers();
  const began = performance.now();
  for (const worker of workers) worker.postMessage({ usesNoble });
  await isDone;
  const spent = performance.now() - began;
  for (const worker of workers) worker.terminate();
  return spent / 1000;
}"""

MEMORY = "async () => (await performance.measureUserAgentSpecificMemory()).bytes"

SCROLL = """async ([frames, step]) => {
  const box = document.querySelector(".virtual");
  const times = [];
  let rows = 0;
  for (let at = 0; at < frames; at++) {
    times.push(await new Promise(requestAnimationFrame));
    box.scrollTop += step;
    rows = Math.max(rows, box.querySelectorAll("[role=row]").length);
  }
  const gaps = times.slice(1).map((time, at) => time - times[at]);
  const usual = [...gaps].sort((one, other) => one - other)[Math.floor(gaps.length / 4)];
  return { dropped: gaps.reduce((sum, gap) => sum + Math.max(0, Math.round(gap / usual) - 1), 0), rows };
}"""
"""Scroll by the same distance in every frame, in a short list as in a long one.

Returns the frames that were dropped, and the most rows that were in the page.
"""


class SiteHandler(SimpleHTTPRequestHandler):
    """Serves a folder, isolated, with the worker of the floor beside it. It logs nothing."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def do_GET(self) -> None:
        if self.path not in ("/bare.js", "/bare.html"):
            super().do_GET()
            return
        data = make_bare_worker() if self.path == "/bare.js" else b"<!doctype html><title>floor</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if self.path == "/bare.js" else "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A page that is left ends its requests. That is no error here."""


def make_bare_worker() -> bytes:
    """The floor's worker, with noble's SHA3 out of the shipped verifier, which imports parts of Node at its top."""
    text = (PAGE / "verify.mjs").read_text("utf-8")
    text = re.sub(
        r'^import \{([^}]*)\} from "node:[^"]+";', r"const {\1} = { constants: {} };", text, flags=re.MULTILINE
    )
    text = text.replace("process.argv[1]", "undefined")
    return (text + BARE).encode()


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    server = QuietServer(("127.0.0.1", 0), partial(SiteHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def launch() -> Iterator[Any]:
    """A Chromium, or None with the reason on stderr."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if found is None or sync_playwright is None:
        missing = "there is no Chromium" if found is None else "Playwright is not installed (make test-browser does)"
        print(f"the Explorer's page: left out, {missing}", file=sys.stderr, flush=True)
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        yield browser
        browser.close()


@contextmanager
def new_page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(STALL * 1000)
    context.add_init_script(WATCH)
    yield context.new_page()
    context.close()


_started = time.monotonic()


def note(words: str) -> None:
    """Say on stderr how far the run is."""
    print(f"{time.monotonic() - _started:6.1f} s  {words}", file=sys.stderr, flush=True)


def run(page: Any, script: str, given: Any = None) -> Any:
    """The answer of an async function in the page. Playwright alone would wait for it for ever."""
    late = f"new Promise((_, no) => setTimeout(() => no(new Error('no answer in {STALL} s')), {STALL * 1000}))"
    return page.evaluate(f"(given) => Promise.race([({script})(given), {late}])", given)


def wait_for(page: Any, selector: str, words: str) -> None:
    """Wait until something is in the page. Ends the run where the page changes nothing for `STALL` seconds."""
    shown, since = "", time.monotonic()
    while not page.locator(selector).count():
        time.sleep(0.1)
        now = page.locator("body").text_content()
        if now != shown:
            shown, since = now, time.monotonic()
        if time.monotonic() - since > STALL:
            raise SystemExit(
                f"{words}: the page changed nothing for {STALL} s. It shows: {' '.join(shown.split())[:600]}"
            )


def wait_for_verdict(page: Any) -> None:
    """Wait for the verdict on everything. Ends the run if it is another than that everything holds."""
    wait_for(page, JUDGED, "a verdict")
    if not page.locator(".band.verified").count():
        text = " ".join(page.locator(".band").first.inner_text().split())
        raise SystemExit(f"the page should say that everything holds. It says: {text[:600]}")


def fill(ledger: Ledger, chain: str, records: int) -> None:
    for start in range(0, records, 500):
        ledger.append_many(chain, [sample() for _ in range(min(500, records - start))])


def make_site(directory: Path, name: str, records: int) -> tuple[Path, str]:
    """A site with one chain, and the key that sealed it."""
    note(f"sealing and exporting {records:,} capsules")
    home = directory / f"{name}-home"
    with aver.open_ledger(home / "ledger.db", home=home) as ledger:
        fill(ledger, CHAIN, records)
        export_bundle(ledger, directory / name, html=True)
        active = ledger.keys.ring().active("ledger")
        assert active is not None
        return directory / name, active.key.ed25519


def pin(page: Any, address: str, key: str) -> None:
    """Pin the key, and leave the site. It remembers the key for the next time that it is opened."""
    page.goto(f"{address}/index.html#/keys")
    page.get_by_test_id("key").fill(key)
    page.get_by_test_id("pin").click()
    page.goto(f"{address}/index.html#/")
    # The verdict without the key may still stand there.
    wait_for(page, ".band.verified", "a verdict with the pinned key")
    page.goto("about:blank")


def judge(page: Any, address: str) -> dict[str, float]:
    """Open a site, wait for the verdict, and return the seconds it took and the longest task meanwhile."""
    page.goto(f"{address}/index.html")
    wait_for_verdict(page)
    times = page.evaluate("benchTimes")
    tasks = [took for at, took in page.evaluate("benchLong") if at + took > times["began"] and at < times["ended"]]
    return {"seconds": (times["ended"] - times["began"]) / 1000, "task": max(tasks, default=0.0)}


def bench_verification(browser: Any, directory: Path, rounds: int) -> list[Line]:
    site, key = make_site(directory, "judged", RECORDS)
    tasks: list[float] = []
    with serve_folder(site) as address:

        def ours() -> float:
            with new_page(browser) as page:
                pin(page, address, key)
                found = judge(page, address)
            tasks.append(found["task"])
            note(f"the page judged {RECORDS:,} in {found['seconds']:.2f} s")
            return found["seconds"]

        def bare(uses_noble: bool) -> float:
            with new_page(browser) as page:
                page.goto(f"{address}/bare.html")
                count = page.evaluate("Math.min(Math.max((navigator.hardwareConcurrency || 2) - 1, 0), 8) + 1")
                given = {"key": key, "source": f"/{CHAIN}.json", "count": count, "usesNoble": uses_noble}
                seconds = float(run(page, RUN_BARE, given))
            note(f"the floor with {'noble' if uses_noble else 'our own'} SHA3-256 took {seconds:.2f} s")
            return seconds

        floor, page_took, own_floor = in_turns(rounds, partial(bare, True), ours, partial(bare, False))
    return [
        Line(
            f"page: {RECORDS:,} signed capsules",
            f"{floor:.2f} s",
            f"{page_took:.2f} s",
            "",
            f"{page_took / floor:.2f} x floor",
            "≤ 1.5 x",
        ),
        Line(
            "  beside a floor with the page's own SHA3-256",
            f"{own_floor:.2f} s",
            f"{page_took:.2f} s",
            "",
            f"{page_took / own_floor:.2f} x",
            "",
        ),
        Line("  longest task of the page's thread", "", f"{statistics.median(tasks):.0f} ms", "", "", "≤ 50 ms"),
    ]


def bench_memory(browser: Any, directory: Path, records: int) -> Line:
    """The most memory of page and workers while the page verifies a long chain."""
    site, key = make_site(directory, "long", records)
    with serve_folder(site) as address, new_page(browser) as page:
        pin(page, address, key)
        page.goto(f"{address}/index.html")
        peak, heard = 0.0, -10.0
        while page.evaluate("benchTimes.ended === undefined"):
            peak = max(peak, run(page, MEMORY))
            if time.monotonic() - heard > 10:
                heard = time.monotonic()
                note(f"memory so far: {peak / 1e6:.0f} MB; {page.locator('.band .figure').all_inner_texts()}")
        wait_for_verdict(page)
    return Line(f"  heap of page and workers, {records:,} capsules", "", f"{peak / 1e6:.0f} MB", "", "", "≤ 150 MB")


def bench_rows(browser: Any, directory: Path, records: int, rounds: int) -> list[Line]:
    """First rows and scrolling, in a ledger behind `aver serve`."""
    home, path = directory / "rows-home", directory / "rows.db"
    note(f"sealing a ledger with chains of {SHORT}, {MIDDLE:,} and {records:,}")
    with aver.open_ledger(path, home=home) as ledger:
        for chain, count in (("bench.short", SHORT), ("bench.middle", MIDDLE), ("bench.long", records)):
            fill(ledger, chain, count)
    served = Served(path, home)
    scrolled: dict[str, list[dict[str, int]]] = {"bench.middle": [], "bench.long": []}

    def open_chain(chain: str) -> float:
        with new_page(browser) as page:
            page.goto(served.link)
            wait_for(page, ".band", "the first screen")
            page.evaluate("(to) => { window.benchStart = performance.now(); location.hash = to; }", f"#/chain/{chain}")
            wait_for(page, ".row:not(.loading)", f"the first row of {chain}")
            took = float(page.evaluate("benchTimes.rows - benchStart")) / 1000
            if chain in scrolled:
                scrolled[chain].append(run(page, SCROLL, [FRAMES, SCROLL_STEP]))
            note(f"first row of {chain} after {took * 1e3:.0f} ms; scrolling: {scrolled.get(chain, [None])[-1]}")
            return took

    try:
        note("waiting for the index")
        served.wait_for_index()
        chains = ("bench.short", *scrolled)
        short, _, long = in_turns(rounds, *(partial(open_chain, chain) for chain in chains))
    finally:
        served.close()
    dropped = {chain: statistics.median(one["dropped"] for one in runs) for chain, runs in scrolled.items()}
    rows = max(one["rows"] for runs in scrolled.values() for one in runs)
    return [
        Line(
            f"page: first rows of {records:,} / of {SHORT}",
            f"{short * 1e3:.0f} ms",
            f"{long * 1e3:.0f} ms",
            "",
            f"{long / short:.2f} x",
            "≤ 1.2 x",
        ),
        Line("  rows in the page at most, while it scrolls", "", str(rows), "", "", "≤ 120"),
        Line(
            f"  frames of {FRAMES} that scrolling drops, {records:,} / {MIDDLE:,}",
            f"{dropped['bench.middle']:.0f}",
            f"{dropped['bench.long']:.0f}",
            "",
            "",
            "no more",
        ),
    ]


def measure_size() -> Line:
    files = (PAGE / "index.html", PAGE / "explorer" / "app.js", PAGE / "explorer" / "style.css")
    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in files)
    return Line("page: its files, gzipped", "", f"{size / 1000:.1f} kB", "", "", "≤ 250 kB")


def bench_explorer_page(directory: Path, *, quick: bool) -> Iterator[Line]:
    """The lines of the table, each as soon as it is known; only the size where there is no Chromium."""
    rounds, records = (3, 20_000) if quick else (5, 100_000)
    yield measure_size()
    with launch() as browser:
        if browser is not None:
            yield from bench_verification(browser, directory, rounds)
            yield bench_memory(browser, directory, records)
            yield from bench_rows(browser, directory, records, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        print(TABLE_HEAD, flush=True)
        for line in bench_explorer_page(Path(made), quick=options.quick):
            print(table_row(line), flush=True)
