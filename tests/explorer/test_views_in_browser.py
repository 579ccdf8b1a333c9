"""Session, record, files, risk, acts and protocol in a real Chromium, on sites of real ledgers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.ledger import open_ledger
from aver.ledger.bundle import export_bundle
from aver.sessions.figures import compute_totals
from aver.sessions.labels import total_labels
from aver.sessions.sessions import find_sessions
from support.agents import sample_session as sample
from support.browser_pages import AXE
from support.bundles import change_chain
from support.node import ROOT
from support.story_sites import KID, MAIN, STEPS, make_site

pytestmark = [pytest.mark.browser, pytest.mark.long]

WAIT = 60_000
"""Milliseconds for the page to verify on a busy machine. It fails nothing by itself."""
JUDGED = ".band.verified, .band.qualified, .band.failed, .band.empty, .band.not-judged"
VIEWS = {
    "session": (f"#/s/{MAIN}", f"#/c/{MAIN}/3", f"#/files/{MAIN}", "#/risk", "#/c/refunds.1042/0"),
    "acts": ("#/acts", "#/c/gateway.shop-acts/9", "#/risk"),
    "trace": ("#/protocol", "#/c/protocol.shop-tests/13"),
    "failed-audit": ("#/", "#/protocol/protocol.lies", "#/protocol/protocol.nope", "#/risk", "#/sessions"),
}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sites")
    return {name: make_site(folder, name) for name in VIEWS}


OpenSite = Callable[..., Any]


@pytest.fixture
def open_site(chromium: Any) -> Iterator[OpenSite]:
    """Opens a site at a view. The test fails if the page reports an error or asks another host for anything."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_at(site: Path, view: str, *, width: int = 1440, height: int = 900, scheme: str = "light") -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: problems.append(request.url) if is_foreign(request.url) else None)
        page.goto(f"{(site / 'index.html').as_uri()}#/")
        page.locator(JUDGED).first.wait_for(timeout=WAIT)
        go(page, view)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert problems == []


def is_foreign(url: str) -> bool:
    return not re.match(r"(file:|blob:|data:)", url)


def go(page: Any, view: str) -> None:
    page.evaluate("view => { location.hash = view; }", view)


def rows_of(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".story-row").all_inner_texts()]


def selected(page: Any) -> Any:
    return page.locator(".story-row.selected")


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


# --- session


def test_figures_are_those_of_aver_sessions(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".figures").wait_for(timeout=WAIT)
    home = sites["session"].with_name("session-home")
    with open_ledger(home / "ledger.db", home=home, create=False) as ledger:
        chains = next(chains for chains in find_sessions(ledger) if chains.main == MAIN)
        expected = list(total_labels(compute_totals(ledger, chains)))
    shown = [str(text).strip() for text in page.locator(".figures > *").all_inner_texts()]
    assert shown == expected


def test_each_figure_leads_to_its_rows(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    for name, count in (("failures", 2), ("denials", 3), ("edits", 3), ("subagent", 1)):
        page.get_by_role("button", name=re.compile(rf"^\d+ {name}")).click()
        page.get_by_role("button", name=f"Show all steps ({count} row{'' if count == 1 else 's'} shown)").click()
        page.get_by_role("button", name=re.compile("^Show all steps")).wait_for(state="hidden")


def test_story_has_turns_subagents_decisions_and_joined_records(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".story-row.prompt").first.wait_for(timeout=WAIT)
    texts = rows_of(page)
    places = [
        next(at for at, text in enumerate(texts) if words in text) for words in ("Task:", "subagent kid", "Find total")
    ]
    assert places == sorted(places)
    assert page.locator(".story-row.nested").count() == 4
    # The hook's record and the transcript's are one row; the later one adds what the model thought.
    assert sum("Bash: make" in text for text in texts) == 1
    page.get_by_text("Bash: make").first.click()
    detail = page.locator(".detail")
    detail.get_by_text("Later records about the same step").wait_for()
    assert "What the model thought" in detail.inner_text()
    page.get_by_text("pytest -q").first.click()
    page.locator(".detail .decision").wait_for()
    assert "workspace-builds" in page.locator(".detail .decision").inner_text()


def test_denied_call_says_who_denied_it(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.get_by_text("denied by a person").wait_for(timeout=WAIT)
    assert page.locator(".story-row.denied .sort-icon.struck").count() >= 1


def test_keyboard_alone(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".story-row.prompt").first.wait_for(timeout=WAIT)
    press(page, "j")
    assert "Make totals round half up" in selected(page).inner_text()
    press(page, "J")
    assert "Now the rest" in selected(page).inner_text()
    press(page, "K", "e")
    assert "Edit: sum.py" in selected(page).inner_text()
    press(page, "x")
    assert "failed" in selected(page).inner_text()
    press(page, "x")
    assert "denied" in selected(page).inner_text()
    press(page, "j", "k", "Enter")
    page.locator(".capsule").wait_for()
    assert re.search(rf"#/c/{re.escape(MAIN)}/\d+$", page.evaluate("location.hash"))
    press(page, "Escape")
    page.locator(".story").wait_for()
    assert "denied" in selected(page).inner_text()


def test_keys_do_nothing_while_typing_or_with_a_modifier(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".story-row").first.wait_for(timeout=WAIT)
    press(page, "Control+e", "Alt+j")
    assert selected(page).count() == 0
    page.get_by_label("Find in this session").type("exj")
    assert selected(page).count() == 0


def test_keys_work_after_a_box_was_ticked(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], "#/sessions")
    page.get_by_label("by workspace").check()
    press(page, "j")
    assert page.evaluate("document.activeElement.matches('[data-row]')")


@pytest.mark.parametrize(
    ("site", "view"), [("session", f"#/files/{MAIN}"), ("session", "#/risk"), ("acts", "#/acts"), ("session", "#/meta")]
)
def test_rows_of_each_list_are_reached_by_the_same_keys(
    open_site: OpenSite, sites: dict[str, Path], site: str, view: str
) -> None:
    page = open_site(sites[site], view)
    rows = page.locator("[data-row]")
    rows.nth(1).wait_for(timeout=WAIT)
    assert page.locator("[data-row][tabindex='0']").count() <= 1  # One tab stop: this row, or the list around them.
    press(page, "j", "j")
    assert rows.nth(1).evaluate("one => one === document.activeElement")
    address = rows.nth(1).get_attribute("href")
    press(page, "Enter")
    page.wait_for_function("address => location.hash === address", arg=address)


@pytest.mark.parametrize("field", ["#search", ".find input"])
def test_escape_while_typing_only_leaves_the_field(open_site: OpenSite, sites: dict[str, Path], field: str) -> None:
    page = open_site(sites["session"], "#/sessions")
    page.locator(".sessions").wait_for(timeout=WAIT)
    go(page, f"#/s/{MAIN}")
    page.locator(".story-row").first.wait_for(timeout=WAIT)
    page.locator(field).focus()
    page.keyboard.type("total")
    press(page, "Escape")
    page.wait_for_timeout(200)
    assert page.evaluate("location.hash") == f"#/s/{MAIN}"
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.locator(field).input_value() == "total"  # The browser would clear it.
    press(page, "j")
    assert "Make totals round half up" in selected(page).inner_text()
    press(page, "Escape")
    page.locator(".sessions").wait_for()


def test_words_are_found_in_arguments_and_results(open_site: OpenSite, sites: dict[str, Path]) -> None:
    """The public Explorer looks only at summaries and prompts."""
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".story-row").first.wait_for(timeout=WAIT)
    find = page.get_by_label("Find in this session")
    find.fill("half_up(sum(xs))")
    page.get_by_text("1 hit;").wait_for(timeout=WAIT)
    find.press("Enter")
    assert "Edit: sum.py" in page.locator(".story-row.selected.hit").inner_text()
    find.fill("no such words")
    page.get_by_text("0 hits;").wait_for(timeout=WAIT)


def test_long_session_keeps_few_rows_and_reaches_its_end(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".story-row").first.wait_for(timeout=WAIT)
    heights = set(
        page.locator(".story-row:not(.prompt):not(.break)").evaluate_all("all => all.map(one => one.offsetHeight)")
    )
    assert heights == {36}
    for share in (0.3, 0.7, 1):
        page.locator(".story").evaluate("(box, share) => { box.scrollTop = share * box.scrollHeight; }", share)
        page.wait_for_timeout(100)
        assert 0 < page.locator(".story-row").count() <= 120
    assert int(page.locator(".story").get_attribute("aria-rowcount")) > STEPS
    page.get_by_text(f"echo {STEPS - 1}", exact=False).first.wait_for()


def test_minimap_marks_and_moves(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".story-row").first.wait_for(timeout=WAIT)
    for sort, least in (("edit", 3), ("failure", 2), ("denial", 3), ("prompt", 2)):
        assert page.locator(f".minimap rect.{sort}").count() >= least, sort
    box = page.locator(".minimap").bounding_box()
    page.mouse.click(box["x"] + 8, box["y"] + box["height"] - 4)
    page.get_by_text(f"echo {STEPS - 1}", exact=False).first.wait_for()


def test_deep_link_to_a_step_of_a_subagent(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{KID}/at-1")
    selected(page).wait_for(timeout=WAIT)
    assert "Bash: ls" in selected(page).inner_text()
    assert page.evaluate("location.hash") == f"#/s/{KID}/at-1"


@pytest.mark.parametrize(("width", "is_beside"), [(1440, True), (1000, False), (375, False)])
def test_detail_stands_beside_or_covers(
    open_site: OpenSite, sites: dict[str, Path], width: int, is_beside: bool
) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}", width=width, height=800)
    page.get_by_text("Edit: sum.py").first.click()
    detail = page.locator(".detail")
    detail.get_by_text("half_up").first.wait_for()
    assert page.get_by_role("separator", name="Width of the detail").count() == int(is_beside)
    if not is_beside:
        press(page, "Escape")
        detail.wait_for(state="hidden")


@pytest.mark.parametrize(("way", "width"), [("key", 1000), ("button", 1000), ("key", 360)])
def test_detail_that_covers_has_the_focus_and_gives_it_back(
    open_site: OpenSite, sites: dict[str, Path], way: str, width: int
) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}", width=width, height=800)
    page.locator(".story-row").first.wait_for(timeout=WAIT)
    press(page, "j")
    assert page.evaluate("document.activeElement.className") == "story"
    press(page, "Enter")
    page.locator("[role='dialog'][aria-modal='true']").wait_for()
    covered = ".timeline-frame, .minimap, .session-head, .figures, .find"
    for _ in range(40):
        assert page.evaluate("all => document.activeElement.closest(all)", covered) is None
        press(page, "Tab")
    # What stands behind it is out of the reach of pointers and of assistive technology, too.
    assert page.locator(covered).evaluate_all("all => all.every(one => one.closest('[inert]'))")
    assert page.locator(".bar").evaluate("one => one.closest('[inert]')") is None
    back = page.get_by_role("button", name="Back to the timeline")
    if way == "key":
        press(page, "Escape")
    else:
        back.click()
    back.wait_for(state="detached")
    assert page.evaluate("document.activeElement.className") == "story"
    assert page.locator("main [inert]").count() == 0


def test_focus_goes_back_to_the_button_that_it_came_from(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}", width=1000, height=800)
    page.locator(".story-row").first.wait_for(timeout=WAIT)
    page.get_by_role("button", name="Next break").wait_for(state="detached")
    figure = page.get_by_role("button", name=re.compile(r"^\d+ edits"))
    figure.focus()
    page.get_by_text("Edit: sum.py").first.dispatch_event("click")  # By a means that moves no focus.
    page.get_by_role("button", name="Back to the timeline").wait_for()
    press(page, "Escape")
    assert figure.evaluate("one => one === document.activeElement")


def test_width_of_the_detail_changes_by_keyboard(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    handle = page.get_by_role("separator", name="Width of the detail")
    handle.wait_for(timeout=WAIT)
    before = page.locator(".detail").bounding_box()["width"]
    handle.focus()
    press(page, "ArrowLeft", "ArrowLeft")
    assert page.locator(".detail").bounding_box()["width"] > before


LONG_PROMPT = "\n".join(f"line {number}" for number in range(60))
LONGER_PROMPT = "\n".join(f"more {number}" for number in range(260))


@pytest.fixture(scope="module")
def asked_at_length(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with prompts that are longer than a window, one after another."""
    folder = tmp_path_factory.mktemp("asked")
    wide = "圓周率" * 400
    with open_ledger(folder / "ledger.db", home=folder / "home") as ledger:
        events = [
            sample.prompt(text, key=f"u{number}", at=f"2026-05-31T0{number}:00:00Z")
            for number, text in enumerate(("short", LONG_PROMPT, LONGER_PROMPT, wide, "last"))
        ]
        sample.seal(ledger, folder, events)
        export_bundle(ledger, folder / "bundle")
    return folder / "bundle"


@pytest.mark.parametrize("width", [390, 1440])
def test_prompt_is_shown_whole_and_a_cut_one_says_so(chromium: Any, asked_at_length: Path, width: int) -> None:
    page = open_bundle(chromium, asked_at_length, f"#/s/{MAIN}")
    page.set_viewport_size({"width": width, "height": 900})
    bands = page.locator(".story-row.prompt .asked")
    bands.nth(4).wait_for(timeout=WAIT)
    assert bands.nth(1).inner_text() == LONG_PROMPT
    assert bands.nth(2).inner_text().endswith("more 199\n… 60 more lines")
    assert bands.evaluate_all("all => all.map(one => one.scrollHeight <= one.clientHeight)") == [True] * 5
    page.context.close()


@pytest.fixture(scope="module")
def asked_beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with a prompt that is so long that its text is stored beside its record."""
    folder = tmp_path_factory.mktemp("beside")
    with open_ledger(folder / "ledger.db", home=folder / "home") as ledger:
        sample.seal(ledger, folder, [sample.prompt(BESIDE), sample.command("c1", "ls", at="2026-05-31T09:01:00Z")])
        export_bundle(ledger, folder / "bundle")
    return folder / "bundle"


BESIDE = "\n".join(f"line {number} {'wörter ' * 40}".strip() for number in range(100))


def test_prompt_that_is_stored_beside_its_record_is_shown_whole(chromium: Any, asked_beside: Path) -> None:
    page = open_bundle(chromium, asked_beside, f"#/s/{MAIN}")
    band = page.locator(".story-row.prompt .asked")
    band.wait_for(timeout=WAIT)
    assert band.inner_text() == BESIDE
    assert band.evaluate("one => one.scrollHeight <= one.clientHeight")
    page.context.close()


def test_prompt_whose_text_is_missing_says_so_and_is_tried_again(
    chromium: Any, asked_beside: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(asked_beside, copy)
    for blob in (copy / "blobs").iterdir():
        blob.write_bytes(b"another text")
    page = open_bundle(chromium, copy, f"#/s/{MAIN}")
    band = page.locator(".story-row.prompt .asked")
    band.wait_for(timeout=WAIT)
    assert band.inner_text().startswith("line 0 wörter")
    assert band.inner_text().endswith("… its rest was not read; open it to try again")
    band.click()
    problem = page.locator(".detail").get_by_role("alert")
    assert "missing, damaged or too large" in problem.inner_text()
    problem.get_by_role("button", name="Try again").click()
    page.locator(".detail .prose").get_by_text("line 0").wait_for()
    page.context.close()


def test_prompt_that_is_taller_than_the_window_is_read_from_its_beginning(chromium: Any, asked_at_length: Path) -> None:
    page = open_bundle(chromium, asked_at_length, f"#/s/{MAIN}")
    page.locator(".story-row.prompt").nth(4).wait_for(timeout=WAIT)
    for key in "jjjkj":
        press(page, key)
        page.wait_for_timeout(100)
        top, height = page.evaluate(
            "[document.querySelector('.story-row.selected').getBoundingClientRect().top"
            " - document.querySelector('.story').getBoundingClientRect().top,"
            " document.querySelector('.story').clientHeight]"
        )
        assert 0 <= top < height / 2
    page.context.close()


# --- broken sessions


@pytest.fixture
def broken(sites: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the session's bundle. It is no site, so that its twins do not have to be changed, too."""
    copy = tmp_path / "bundle"
    shutil.copytree(sites["session"], copy, ignore=shutil.ignore_patterns("explorer", "index.html"))
    return copy


def open_bundle(chromium: Any, bundle: Path, view: str) -> Any:
    page = chromium.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto((ROOT / "src/aver/explorer/page/index.html").as_uri())
    page.get_by_test_id("folder").set_input_files(bundle)
    page.locator(JUDGED).first.wait_for(timeout=WAIT)
    go(page, view)
    return page


def test_break_is_at_its_place_and_later_rows_keep_their_marks(chromium: Any, broken: Path) -> None:
    change_chain(lambda records: records[3].update(canonical=records[3]["canonical"] + " "), MAIN)(broken)
    page = open_bundle(chromium, broken, f"#/s/{MAIN}")
    page.locator(".story-row.break").first.wait_for(timeout=WAIT)
    assert "HASH_MISMATCH" in page.locator(".story-row.break").first.inner_text()
    assert page.locator(".story-row.after").count() > 3
    assert page.locator(".story-row.broken").count() == 1
    assert page.locator(".minimap rect.break").count() >= 1
    press(page, "b")
    page.locator(".story-row.break.selected").wait_for()
    assert "failed" in page.locator(".session-head").inner_text()
    page.context.close()


@pytest.mark.parametrize("width", [390, 1440])
def test_card_of_a_break_is_not_cut(chromium: Any, broken: Path, width: int) -> None:
    page = open_bundle(chromium, broken, f"#/c/{MAIN}/6")
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_role("button", name="Roll everything back to here").click()
    page.locator(".band.failed").first.wait_for(timeout=WAIT)
    go(page, f"#/s/{MAIN}")
    card = page.locator(".break-words", has_text="ROLLBACK").first
    card.wait_for(timeout=WAIT)
    assert "remembered:" in card.inner_text()
    assert card.evaluate("element => element.scrollHeight <= element.clientHeight")
    page.context.close()


def test_findings_are_not_folded_and_a_cut_list_says_so(chromium: Any, broken: Path) -> None:
    def change(records: list[dict[str, str]]) -> None:
        for record in records[:150]:
            record["canonical"] += " "

    change_chain(change, MAIN)(broken)
    page = open_bundle(chromium, broken, "#/")
    band = page.locator(".band.failed")
    band.get_by_text(re.compile(r"^\d+ more findings$")).wait_for(timeout=WAIT)
    said = int(band.get_by_text(re.compile(r"^\d+ more findings$")).inner_text().split()[0])
    assert said > 100
    assert band.locator("> .finding:not(.not_checked):visible").count() == 101  # The first one, and a hundred more.
    assert band.get_by_text(f"and {said - 100} more; copy as JSON has them all").is_visible()
    page.context.close()


def test_findings_about_a_chain_as_a_whole_are_all_shown(chromium: Any, broken: Path) -> None:
    index = json.loads((broken / "index.json").read_text("utf-8"))
    [claim] = [claim for claim in index["chains"] if claim["id"] == MAIN]
    claim.update(tool="codex", title="Another", started_at="2020-01-01T00:00:00Z", ended_at="2020-01-01T00:00:00Z")
    (broken / "index.json").write_text(json.dumps(index), "utf-8")
    page = open_bundle(chromium, broken, f"#/chain/{MAIN}")
    findings = page.get_by_role("region", name="4 findings about the chain as a whole").locator(".finding")
    findings.nth(3).scroll_into_view_if_needed()
    assert findings.nth(3).is_visible()
    assert page.locator(".virtual").bounding_box()["height"] >= 240
    page.context.close()


def test_cut_end_of_a_session_has_a_cap(chromium: Any, broken: Path) -> None:
    change_chain(lambda records: records.__delitem__(slice(-5, None)), MAIN)(broken)
    page = open_bundle(chromium, broken, f"#/s/{MAIN}")
    page.locator(".minimap rect.break").first.wait_for(timeout=WAIT)
    page.locator(".story").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    page.locator(".story-row.end .cap", has_text="The end was cut: ").wait_for()
    assert page.locator(".story-row.end").evaluate("row => row.offsetHeight") == 36
    page.context.close()


def test_missing_records_of_a_session_are_one_row(chromium: Any, broken: Path) -> None:
    change_chain(lambda records: records.__delitem__(slice(2, 6)), MAIN)(broken)
    page = open_bundle(chromium, broken, f"#/s/{MAIN}")
    page.locator(".story-row.missing").first.wait_for(timeout=WAIT)
    assert page.locator(".story-row.missing").all_inner_texts() == ["records 2 to 5 are missing"]
    page.context.close()


def test_record_that_cannot_be_read_is_named(chromium: Any, broken: Path) -> None:
    change_chain(lambda records: records[4].update(canonical="{"), MAIN)(broken)
    page = open_bundle(chromium, broken, f"#/s/{MAIN}")
    page.get_by_text("this record cannot be read").first.wait_for(timeout=WAIT)
    go(page, f"#/c/{MAIN}/p4")
    page.get_by_text("no JSON object, or too large to lay out").wait_for(timeout=WAIT)
    assert page.locator(".exact").inner_text() == "{"
    page.context.close()


# --- record


def test_record_has_six_sections_options_and_its_hash(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], "#/c/refunds.1042/0")
    article = page.locator(".capsule")
    article.wait_for(timeout=WAIT)
    for name in ("trigger", "context", "reasoning", "authority", "execution", "outcome", "seal"):
        assert page.locator(f"#section-{name}").count() == 1, name
    options = page.locator(".options")
    assert "the parcel was lost by us" in options.inner_text()
    assert "✓ chosen" in options.locator("tr.chosen").inner_text()
    text = article.inner_text()
    # Numbers by their text: JavaScript would round the first, and write the others in other ways.
    for number in ("12345678901234567890", "0.7500000000000001", "1e-07"):
        assert number in text, number
    hashes = page.locator("#section-seal .hex").all_inner_texts()
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 64
    page.get_by_text("of the same request").wait_for(timeout=WAIT)
    assert "paid" in page.locator(".related").inner_text()


def test_hostile_texts_stay_text(open_site: OpenSite, sites: dict[str, Path]) -> None:
    for view in (f"#/s/{MAIN}", "#/c/refunds.1042/0"):
        page = open_site(sites["session"], view)
        page.get_by_text("<script>alert(1)</script>").first.wait_for(timeout=WAIT)
        text = page.locator("main").inner_text()
        assert "⟨U+202E⟩" in text
        assert "⟨U+200B⟩" in text
        assert "⟨U+001B⟩" in text
        assert page.locator("main script, main img").count() == 0


def test_terminal_output_has_colours_and_hides_nothing(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.get_by_text("pytest --color=yes").first.click()
    output = page.locator(".detail .terminal").last
    output.get_by_text("3 passed").wait_for(timeout=WAIT)
    assert output.locator(".front-2").inner_text() == "3 passed"
    assert output.locator(".front-1.bold").inner_text() == "1 failed"
    assert output.locator(".escape").inner_text() == "⟨ESC[2J⟩"
    hidden = output.get_by_text("hidden")
    colours = hidden.evaluate(
        "one => [getComputedStyle(one).color, getComputedStyle(one.parentElement).backgroundColor]"
    )
    assert colours[0] != colours[1]


def test_diff_is_unified_or_side_by_side_with_marks_inside_lines(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.get_by_text("Edit: sum.py").first.click()
    diff = page.locator(".detail .diff-box")
    diff.wait_for(timeout=WAIT)
    assert diff.locator("ins").all_inner_texts() == ["half_up"]
    assert diff.locator("del").all_inner_texts() == ["round"]
    diff.get_by_role("button", name="Side by side").click()
    row = diff.locator("tr", has_text="half_up")
    assert row.locator("td").count() == 6
    assert "round" in row.inner_text()


def test_approvals_of_an_act_are_checked_one_by_one(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["acts"], "#/c/gateway.shop-acts/9")
    statements = page.locator(".statements > li")
    statements.nth(2).wait_for(timeout=WAIT)
    person = statements.nth(2).inner_text()
    assert "A person's answer by person:demo" in person
    assert "matches the key that came with the records, which you have not pinned" in person
    assert "the signer's key is not here" in statements.nth(0).inner_text()


def test_forged_statement_does_not_match(chromium: Any, sites: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(sites["acts"], copy, ignore=shutil.ignore_patterns("explorer", "index.html"))

    def forge(records: list[dict[str, str]]) -> None:
        content = json.loads(records[9]["canonical"])
        content["authority"]["chain"][2]["content"]["digest"] = "0" * 64
        records[9]["canonical"] = json.dumps(content, sort_keys=True, separators=(",", ":"))

    change_chain(forge, "gateway.shop-acts")(copy)
    page = open_bundle(chromium, copy, "#/c/gateway.shop-acts/9")
    page.get_by_text("does not match the key that came with the records").wait_for(timeout=WAIT)
    page.context.close()


# --- files, risk, acts, protocol


def test_files_have_their_changes_in_order(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/files/{MAIN}")
    entries = page.locator(".files-split nav li")
    entries.first.wait_for(timeout=WAIT)
    assert [text.split("\n")[0] for text in entries.all_inner_texts()] == ["sum.py", "src/price.py"]
    entries.nth(1).get_by_role("link").click()
    page.locator(".file-change .diff-box").nth(1).wait_for(timeout=WAIT)
    assert page.locator(".file-change time").all_inner_texts() == ["10:00:02", "10:00:03"]
    assert "c = 4" in page.locator(".file-change .diff-box").first.inner_text()


def test_risk_shows_intervals_and_does_not_judge_by_few_outcomes(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], "#/risk")
    page.get_by_text("Too few to say").wait_for(timeout=WAIT)
    table = page.locator("table.decisions")
    assert "denied" in table.inner_text()
    assert page.locator(".plot .point line").count() == page.locator(".plot .point").count() == 2
    page.get_by_text("the prior that Aver ships").wait_for(timeout=WAIT)


def test_acts_show_preview_shares_commit_and_effect(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["acts"], "#/acts")
    page.locator(".stage").first.wait_for(timeout=WAIT)
    listed = page.locator(".acts-split nav li").all_inner_texts()
    assert [text.split("\n")[0][2:] for text in listed] == [
        *("ALLOW", "ALLOW", "RECIPIENT_NOT_ALLOWED", "REQUIRE_CONFIRM", "ALLOW", "no preview"),
    ]
    stages = page.locator(".stages")
    assert "Joined, both shares say what the preview says" in stages.inner_text()
    assert page.locator(".shares tbody tr").first.locator("td").last.inner_text() == "1"
    page.locator(".acts-split nav a").nth(4).click()
    page.get_by_text("this act was carried out before").wait_for()
    # The forged one has the shares of another act.
    page.locator(".acts-split nav a").nth(5).click()
    page.get_by_text("There is no preview of this act").wait_for()
    assert "These shares are of another act or request" in stages.inner_text()


def test_protocol_shows_lanes_claims_evidence_and_audit(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["trace"], "#/protocol")
    page.locator(".lanes").wait_for(timeout=WAIT)
    assert page.locator(".lanes thead th").all_inner_texts() == [
        *("Event", "operator", "planner", "executor", "critic", "auditor"),
    ]
    assert page.locator(".lanes td.said").count() == 14
    claim = page.locator(".claim").inner_text()
    assert "settled" in claim
    assert "before: unit: 3 tests pass" in claim
    assert "✓ holds" in claim
    assert "withdrawn" in claim
    assert "Audit: pass-with-warnings" in page.locator(".band").first.inner_text()
    page.get_by_text("The auditor's signed statement").click()
    page.get_by_text("matches the key that came with the records").wait_for(timeout=WAIT)


def test_claim_that_the_audit_refutes_is_not_green(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["failed-audit"], "#/protocol/protocol.lies")
    page.locator(".claim.is-bad").wait_for(timeout=WAIT)
    claim = page.locator(".claim")
    assert "does not hold: by the audit, a piece of its evidence does not hold" in claim.inner_text()
    assert claim.locator("strong.good").count() == 0
    assert "Audit: fail" in page.locator(".band.failed h2").inner_text()


def test_findings_of_an_audit_say_about_whom_and_what(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["failed-audit"], "#/protocol/protocol.lies")
    page.locator(".claim").wait_for(timeout=WAIT)
    found = page.locator(".band .checks").last.locator("tr").all_inner_texts()
    assert len(found) == 3
    assert all("NOT_INDEPENDENT" in text and "Its key lies where" in text for text in found[:2])
    assert {agent for text in found[:2] for agent in ("agent:critic", "agent:auditor") if agent in text} == {
        "agent:critic",
        "agent:auditor",
    }
    assert "CLAIM_UNPROVEN" in found[2]
    assert "about the claim “four tests pass”" in found[2]
    assert "Do not rely on the claim" in found[2]


def test_first_screen_names_a_failed_audit_and_no_tampering(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["failed-audit"], "#/")
    tile = page.locator(".tile").first
    tile.locator(".audits").wait_for(timeout=WAIT)
    assert "1 audit failed: protocol.lies" in tile.inner_text()
    assert "Qualified" in tile.locator(".answer").inner_text()
    tile.get_by_role("link", name="protocol.lies").click()
    page.locator(".claim").wait_for(timeout=WAIT)
    # An audit that passed, with warnings, is none that failed.
    other = open_site(sites["trace"], "#/")
    other.locator(".charts").wait_for(timeout=WAIT)
    assert other.locator(".audits").count() == 0


def test_trace_that_its_operator_ended_is_no_refusal(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["failed-audit"], "#/")
    page.locator(".charts").wait_for(timeout=WAIT)
    assert "Nothing" in page.locator(".tile").last.locator(".answer").inner_text()
    page.get_by_text("Nothing was refused.").wait_for()


@pytest.mark.parametrize(
    ("site", "view", "words"),
    [
        ("failed-audit", "#/protocol/protocol.nope", "There is no trace protocol.nope in failed-audit-site"),
        ("trace", "#/protocol/protocol.nope", "There is no trace protocol.nope in trace-site"),
        ("acts", "#/acts/gateway.nope", "There is no chain of acts gateway.nope in acts-site"),
        ("acts", "#/acts/gateway.shop-acts/a_nope", "There is no act a_nope in acts-site"),
    ],
)
def test_address_of_something_else_shows_nothing_in_its_place(
    open_site: OpenSite, sites: dict[str, Path], site: str, view: str, words: str
) -> None:
    page = open_site(sites[site], view)
    alert = page.get_by_role("alert")
    alert.wait_for(timeout=WAIT)
    assert words in alert.inner_text()
    assert page.locator(".lanes, .stages").count() == 0


def test_preview_does_not_say_that_anything_was_done(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["acts"], "#/acts")
    stages = page.locator(".stage")
    stages.first.wait_for(timeout=WAIT)
    assert "Nothing is done yet" in stages.first.inner_text()
    assert "was done" not in stages.first.inner_text()
    assert "what was asked for was done" in stages.last.inner_text()


def test_record_of_a_denied_call_does_not_say_that_a_person_approved_it(
    open_site: OpenSite, sites: dict[str, Path]
) -> None:
    page = open_site(sites["session"], f"#/s/{MAIN}")
    page.locator(".story-row", has_text="denied by a person").click(timeout=WAIT)
    press(page, "Enter")
    section = page.locator("#section-authority")
    section.wait_for()
    assert "Denied by a person, as the client reports; nothing ran." in section.inner_text()
    shown = page.locator("article.record").inner_text()
    assert "denied" in page.locator("h1").inner_text()
    assert "approved" not in section.inner_text()
    assert "did not run" in shown
    assert "did not end well" not in shown


def test_authority_says_no_more_than_the_record(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["failed-audit"], "#/c/protocol.lies/1")
    section = page.locator("#section-authority")
    section.wait_for(timeout=WAIT)
    assert "names no person: agent-protocol" in section.inner_text()
    assert "A rule allowed or refused it" not in section.inner_text()


def test_risk_names_the_rule_and_what_the_rules_see_of_a_score(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], "#/risk")
    table = page.locator("table.decisions tbody tr")
    table.first.wait_for(timeout=WAIT)
    assert "The rules decide" in page.locator(".risk-view").inner_text()
    by_action = {row.locator("td.action").inner_text(): row.inner_text() for row in table.all()}
    assert "by workspace-builds" in by_action["pytest -q"]
    assert all("unsure" in text for text in by_action.values())
    assert not any("…" in text for text in by_action.values())
    reads = open_site(sites["failed-audit"], "#/risk")
    reads.locator("table.decisions tbody tr").wait_for(timeout=WAIT)
    assert "low" in reads.locator("table.decisions tbody .at-class").inner_text()


def test_phone_shows_every_lane_session_and_decision(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["failed-audit"], "#/protocol/protocol.lies", width=390, height=844)
    page.locator(".lanes").wait_for(timeout=WAIT)
    said = page.locator(".lanes td.said")
    assert said.count() == 10
    assert all((box := one.bounding_box()) and box["x"] >= 0 and box["x"] + box["width"] <= 390 for one in said.all())
    page = open_site(sites["session"], "#/sessions", width=390, height=844)
    facts = page.locator(".sessions .on-phone").first
    facts.wait_for(timeout=WAIT)
    assert re.search(r"claude-code · 2026-05-31 09:00 · \d+ actions · 3 denials", facts.inner_text().replace("\n", " "))
    go(page, "#/risk")
    plot = page.locator(".plot").first
    plot.wait_for(timeout=WAIT)
    box = plot.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390


@pytest.mark.parametrize(
    ("site", "view", "command"),
    [
        ("trace", "#/acts", "aver gateway act"),
        ("acts", "#/protocol", "aver protocol run"),
        ("acts", "#/files/gateway.shop-acts", "aver ingest"),
    ],
)
def test_empty_view_names_the_command(
    open_site: OpenSite, sites: dict[str, Path], site: str, view: str, command: str
) -> None:
    page = open_site(sites[site], view)
    page.locator(".nothing code", has_text=command).wait_for(timeout=WAIT)


def test_record_that_is_not_there_is_an_error_with_a_way_on(open_site: OpenSite, sites: dict[str, Path]) -> None:
    page = open_site(sites["session"], f"#/c/{MAIN}/99999")
    page.get_by_role("alert").wait_for(timeout=WAIT)
    page.get_by_role("button", name="Try again").wait_for()


# --- craft


@pytest.mark.parametrize("site", list(VIEWS))
@pytest.mark.parametrize("width", [320, 720, 1440])
def test_no_view_is_wider_than_the_window(open_site: OpenSite, sites: dict[str, Path], site: str, width: int) -> None:
    page = open_site(sites[site], "#/", width=width, height=700)
    for view in VIEWS[site]:
        go(page, view)
        page.wait_for_timeout(800)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_window_between_phone_and_desk_breaks_no_key_and_squeezes_no_reason(
    open_site: OpenSite, sites: dict[str, Path]
) -> None:
    """A key is compared with what its owner reads out, group by group."""
    page = open_site(sites["session"], "#/keys", width=800)
    key = page.locator("table.keys .whole").first
    key.wait_for(timeout=WAIT)
    assert key.bounding_box()["height"] <= 2 * 20
    go(page, "#/risk")
    reason = page.locator("td.at-why").first
    reason.wait_for(timeout=WAIT)
    assert reason.bounding_box()["width"] > 300


@pytest.mark.parametrize(("site", "view"), [("acts", "#/acts"), ("trace", "#/protocol")])
def test_table_that_scrolls_does_so_by_keyboard(
    open_site: OpenSite, sites: dict[str, Path], site: str, view: str
) -> None:
    page = open_site(sites[site], view, width=320, height=700)
    page.locator(".scroll table").first.wait_for(timeout=WAIT)
    wide = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert page.evaluate(f"{wide}.length") > 0
    assert page.evaluate(f"{wide}.every((one) => one.tabIndex === 0 || one.querySelector('a, button'))")


@pytest.mark.parametrize("site", list(VIEWS))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible(chromium: Any, sites: dict[str, Path], site: str, scheme: str) -> None:
    """By axe, with the rules of WCAG 2.2 AA."""
    if not AXE.is_file():
        pytest.fail("axe-core is not installed; run: make test-browser")
    context = chromium.new_context(color_scheme=scheme, bypass_csp=True, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto((sites[site] / "index.html").as_uri())
    page.locator(JUDGED).first.wait_for(timeout=WAIT)
    page.evaluate(AXE.read_text())
    for view in VIEWS[site]:
        go(page, view)
        page.wait_for_timeout(1000)
        if view.startswith("#/s/"):
            press(page, "J", "j")
            page.wait_for_timeout(500)
        found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == [], view
    context.close()
