"""Things that a reader drops on the page, in a real Chromium: each shows a verdict and its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from aver.actions.proofs.inclusion import inclusion_document
from aver.actions.run_state import load_run_from_path
from aver.sessions.report import make_report
from aver.sessions.sessions import find_sessions
from support import capseal_files as capseal
from support.agents import sample_session as sample
from support.browser_pages import AXE, AXE_RULES, PAGE, go, wait_for_verdict
from support.runs import SealedRun, make_sealed_run

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    return make_sealed_run(tmp_path_factory.mktemp("run"), actions=6, gated=(2,))


def drop(page: Any, thing: Path) -> str:
    """Drop a file or folder as a hand does, and return the word of the verdict."""
    page.goto(PAGE.as_uri())
    box = page.locator(".drop").bounding_box()
    place = {"x": box["x"] + 20, "y": box["y"] + 20}
    data = {"items": [], "files": [str(thing)], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})
    return wait_for_verdict(page)


def rows(page: Any, chain: str) -> list[str]:
    go(page, f"#/chain/{chain}")
    page.locator("a.row").first.wait_for()
    page.locator(".row.loading").first.wait_for(state="detached")
    return [text.replace("\n", " ") for text in page.locator("a.row").all_inner_texts()]


def hits(page: Any, words: str) -> int:
    go(page, f"#/search/{words}")
    page.get_by_text("This page read every record").wait_for()
    return int(page.locator(".hits li").count())


def test_lines_of_actions_are_rows(page: Any, run: SealedRun, tmp_path: Path) -> None:
    (tmp_path / "actions.jsonl").write_bytes(run.members["actions.jsonl"])
    assert drop(page, tmp_path / "actions.jsonl") == "Qualified"
    listed = rows(page, "actions.jsonl")
    assert len(listed) == 6
    assert "code_edit: step 2" in listed[2]
    assert "pass" in listed[2]
    page.locator("a.row").nth(2).click()
    page.get_by_role("heading", name="code_edit: step 2").wait_for()
    words = page.locator("article").inner_text()
    assert "Its receipt is right. Nobody signed it" in words
    assert "gate_decision" in words
    line = json.loads(run.members["actions.jsonl"].splitlines()[2])
    assert words.count(line["receipt_hash"]) >= 3  # Computed, stored, and in the exact line.
    page.get_by_role("link", name="the action before").click()
    page.get_by_role("heading", name="tool_call: step 1").wait_for()
    assert hits(page, "step outcome:success") == 6
    assert hits(page, "code_edit") == 1
    page.locator(".hits a").click()
    page.get_by_role("heading", name="code_edit: step 2").wait_for()


def test_cap_of_the_public_tool_shows_its_actions(page: Any, tmp_path: Path) -> None:
    thing = tmp_path / "public.cap"
    thing.write_bytes(capseal.cap(capseal.files(capseal.actions(4))))
    assert drop(page, thing) == "Qualified"
    assert "Pin this key" not in page.locator(".band").inner_text()
    assert [text.count("step") for text in rows(page, "public.cap")] == [1] * 4
    page.locator("a.row").nth(3).click()
    page.get_by_text("SHA-256 of 13 fields, computed here").wait_for()
    assert hits(page, "act_0003_00000000") == 1


def test_changed_action_is_a_break_at_its_row(page: Any, tmp_path: Path) -> None:
    lines = [capseal.line(action) for action in capseal.actions(5)]
    lines[3] = lines[3].replace('"success": true', '"success": false', 1)
    (tmp_path / "actions.jsonl").write_text("".join(lines))
    assert drop(page, tmp_path / "actions.jsonl") == "Failed"
    page.keyboard.press("b")
    page.locator(".break-entry.selected", has_text="RECEIPT_MISMATCH").wait_for()
    assert page.evaluate("location.hash") == "#/chain/actions.jsonl/at-3"
    assert page.locator("a.row.broken").count() == 1
    assert "step 3" in page.locator("a.row.broken").inner_text()
    page.locator("a.row.broken").click()
    page.get_by_text("This action does not hold by itself").wait_for()
    page.locator(".finding.failed", has_text="RECEIPT_MISMATCH").wait_for()
    go(page, "#/c/actions.jsonl/p4")
    page.get_by_text("Its receipt is right. Nobody signed it").wait_for()


def test_line_that_is_no_action_is_named(page: Any, tmp_path: Path) -> None:
    lines = [capseal.line(action) for action in capseal.actions(3)]
    (tmp_path / "actions.jsonl").write_text("".join([lines[0], '{"action_id": 7}\n', lines[2]]))
    assert drop(page, tmp_path / "actions.jsonl") == "Failed"
    listed = rows(page, "actions.jsonl")
    assert len(listed) == 3
    assert "cannot be read" in listed[1]


def test_cap_of_aver_shows_each_of_its_chains(page: Any, run: SealedRun, tmp_path: Path) -> None:
    thing = tmp_path / "run.cap"
    thing.write_bytes(run.cap)
    assert drop(page, thing) == "Qualified"
    go(page, "#/chains")
    names = page.locator("a.chain-row .what").all_inner_texts()
    assert [name.split(".")[0] for name in names] == ["actions", "gate"]
    listed = rows(page, run.chain)
    assert len(listed) == 8  # It is opened, does six things, and is sealed.
    assert "code_edit: step 2" in listed[3]
    page.locator("a.row").nth(3).click()
    page.locator("#section-execution").wait_for()
    assert hits(page, '"step 2" kind:action') == 1


def test_proof_shows_its_action_and_the_seal_of_its_run(page: Any, run: SealedRun, tmp_path: Path) -> None:
    found = load_run_from_path(run.path)
    thing = tmp_path / "proof.json"
    thing.write_text(json.dumps(inclusion_document(found.actions, 2, found.seal)))
    assert drop(page, thing) == "Qualified"
    listed = rows(page, "proof.json")
    assert len(listed) == 2
    assert "code_edit: step 2" in listed[0]
    assert "sealed: 6 actions" in listed[1]
    page.locator("a.row").first.click()
    page.get_by_text("Its receipt is right. Nobody signed it").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_of_actions_are_accessible_and_fit(chromium: Any, tmp_path: Path, scheme: str) -> None:
    """By axe, with the rules of WCAG 2.2 AA, and in a window of 320 pixels."""
    lines = [capseal.line(action) for action in capseal.actions(5)]
    lines[3] = lines[3].replace('"success": true', '"success": false', 1)
    (tmp_path / "actions.jsonl").write_text("".join(lines))
    context = chromium.new_context(color_scheme=scheme, bypass_csp=True)  # Only so that axe can be put in.
    page = context.new_page()
    page.set_viewport_size({"width": 320, "height": 700})
    drop(page, tmp_path / "actions.jsonl")
    page.evaluate(AXE.read_text())
    for view in ("#/chain/actions.jsonl", "#/c/actions.jsonl/2", "#/c/actions.jsonl/3", "#/search/step"):
        go(page, view)
        page.wait_for_timeout(400)
        found = page.evaluate(AXE_RULES)
        assert [problem["id"] for problem in found["violations"]] == [], view
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, view
    context.close()


def test_report_shows_its_sessions(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    thing = tmp_path / "report.html"
    make_report(ledger, find_sessions(ledger), thing)
    assert drop(page, thing) == "Qualified"
    go(page, "#/sessions")
    page.locator("table.sessions tbody tr").filter(has_text="Round half up").wait_for()


def test_folder_of_a_bundle_shows_its_chains(page: Any, bundle: Path) -> None:
    assert drop(page, bundle) == "Qualified"
    assert page.locator(".open-name").inner_text() == "bundle"
    assert rows(page, "codex.two")
