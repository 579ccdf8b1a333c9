"""Records whose fields hold anything, in a real Chromium: every view stays whole, and shows them as text."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.gate.approvals import enrol_approver
from aver.ledger import open_ledger
from aver.ledger.bundle import export_bundle
from support.approvals import opened, somebody
from support.browser_pages import open_folder
from support.bundles import load, save
from support.hostile_bundles import (
    ROUNDED,
    VALUES,
    Changes,
    Family,
    add_chains,
    list_fields,
    read_families,
    replace_text,
)
from support.story_sites import MAIN, make_site

pytestmark = [pytest.mark.browser, pytest.mark.long]

SITES = {
    "session": ["5d2e8f30", "1042"],
    "acts": ["shop-acts"],
    "trace": ["shop-tests"],
    "failed-audit": ["lies", "ended"],
    "approvals": [],
}
"""Ledgers, and the words that tie chains of theirs together."""
EACH = 1
"""Values that each field of each kind of record gets. Kinds share most fields, which meet all values by that."""
COPIES = 60
"""Copies of each chain in one bundle."""
VIEWS = ["", "sessions", "approvals", "chains", "risk", "keys", "acts", "protocol", "meta", "try", "more", "chain/keys"]
ROUTES = {"gateway": "acts", "protocol": "protocol"}
"""The view of a chain by its domain. Other chains are sessions."""
SEARCHES = ["constructor", "img", "tool:constructor", "outcome:success", "kind:toString"]

VISIT = r"""
async ([addresses, forbidden]) => {
  // The characters that visible() of the page writes out.
  const hidden = new RegExp(
    "(?![\\t\\n\\ufe0e\\ufe0f])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]" +
      "|(?<!\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]|(?<=\\p{M}{2})\\p{M}",
    "u",
  );
  // Words of the browser's own errors, and of values that are none. The verifier quotes a name that is no text.
  const broken = new RegExp(
    "This view broke down|Cannot (?:read|convert|set)|is not (?:a function|iterable|defined)|Maximum call stack" +
      "|Invalid (?:time|date|array|string)|\\bundefined\\b|\\bNaN\\b|(?<!\")\\[object |" + forbidden.join("|"),
  );
  const rest = (time) => new Promise((resolve) => setTimeout(resolve, time));
  const [problems, links] = [[], new Set()];
  for (const address of addresses) {
    location.hash = `#/${address}`;
    // A view may begin to read a second thing when it has the first.
    let [turns, quiet] = [0, 0];
    for (; turns < 2000 && quiet < 3; turns++) {
      await rest(15);
      quiet = document.querySelector("main [aria-busy=true]") === null ? quiet + 1 : 0;
    }
    const texts = [document.body.textContent, document.title];
    for (const name of ["title", "aria-label", "placeholder"]) {
      for (const one of document.querySelectorAll(`[${name}]`)) texts.push(one.getAttribute(name));
    }
    for (const text of texts) {
      const at = Math.max(text.search(hidden), text.search(broken));
      if (at >= 0) problems.push(`${address}: ${JSON.stringify(text.slice(Math.max(0, at - 80), at + 80))}`);
    }
    if (quiet < 3) problems.push(`${address}: it never has its records`);
    if (document.querySelector("main img, main script, main iframe") !== null) problems.push(`${address}: markup`);
    const others = document.querySelectorAll("main a[href^='#/acts/'], main a.case-line");
    for (const one of others) links.add(one.hash.slice(2));
  }
  return [problems, [...links]];
}
"""
"""Goes to addresses one by one. Returns what is wrong with the views, and the addresses of acts and requests there."""


def make_bundle(folder: Path, name: str) -> Path:
    """A bundle of a ledger, without a page, so that its twins do not have to be changed, too."""
    bundle = folder / "bundle"
    if name != "approvals":
        shutil.copytree(make_site(folder, name), bundle, ignore=shutil.ignore_patterns("explorer", "index.html"))
        return bundle
    with open_ledger(folder / "home" / "ledger.db", home=folder / "home") as ledger:
        enrol_approver(ledger, somebody("ada"))
        for number in range(3):
            opened(ledger, f"rm -rf build{number}", f"gate-{number}")
        export_bundle(ledger, bundle)
    return bundle


def fill_bundles(bundle: Path, families: list[Family], folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Bundles with changed copies of chains, until each field had its values; and the views of the copies."""
    changes = Changes(EACH)
    for family in families:
        for records in family.chains.values():
            for record in records:
                changes.add(record)
    number = 0
    while changes.left:
        before = changes.left
        chains: dict[str, list[dict[str, Any]]] = {}
        for _ in range(COPIES):
            number += 1
            for family in families:
                for chain, records in family.copy(number, changes).items():
                    chains.setdefault(chain, []).extend(records)
        assert changes.left < before
        filled = folder / f"filled-{number}"
        shutil.copytree(bundle, filled)
        add_chains(filled, chains)
        yield filled, [view for chain, records in chains.items() for view in views_of(chain, len(records))]


def views_of(chain: str, length: int) -> Iterator[str]:
    """The addresses of a chain, and of some of its records: others in each copy."""
    start = sum(chain.encode())
    if length >= COPIES:  # All copies are in one chain.
        yield f"chain/{chain}"
        yield from (f"c/{chain}/p{place}" for place in range(length % 7, length, 7))
        return
    yield f"c/{chain}/p{start % length}"
    domain = chain.partition(".")[0]
    if domain in ROUTES:
        yield f"{ROUTES[domain]}/{chain}"
    elif domain != "gate":
        yield from (f"s/{chain}/at-{start % length}", f"files/{chain}")
    if start % 5 == 0:
        yield f"chain/{chain}"


def visit(page: Any, addresses: list[str]) -> tuple[list[str], list[str]]:
    """Go to views. Return what is wrong with them, and the addresses of acts and requests in them."""
    problems, links = page.evaluate(VISIT, [addresses, [re.escape(one) for one in ROUNDED]])
    return problems, links


@pytest.mark.parametrize("name", SITES)
def test_records_with_hostile_fields_stay_text(page: Any, tmp_path: Path, name: str) -> None:
    bundle = make_bundle(tmp_path, name)
    problems = []
    for filled, views in fill_bundles(bundle, read_families(bundle, SITES[name]), tmp_path):
        open_folder(page, filled)
        found, links = visit(page, [*VIEWS, *(f"search/{words}" for words in SEARCHES), *views])
        problems += found + visit(page, links)[0]
    assert "\n".join(problems) == ""


def test_index_with_hostile_claims_stays_text(page: Any, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path, "session")
    whole = load(bundle / "index.json")
    problems = []
    for number, path in enumerate(list_fields(whole)):
        for value in VALUES[number % 8 :: 8]:
            (bundle / "index.json").write_text(replace_text(json.dumps(whole), path, value))
            open_folder(page, bundle)
            found, _ = visit(page, ["", "sessions", "chains", "keys", "meta", "chain/claude-code.5d2e8f30"])
            problems += [f"{path} {value[:60]} {problem}" for problem in found]
    assert "\n".join(problems) == ""


def test_seals_with_hostile_fields_stay_text(page: Any, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path, "session")
    chain = load(bundle / f"{MAIN}.json")
    kept = chain["capsules"][0]
    # Python would write an infinite number as no JSON.
    values = [json.loads(value) for value in VALUES if "e400" not in value]
    chain["capsules"] = [{**kept, name: value} for name in kept if name != "canonical" for value in values]
    save(bundle / f"{MAIN}.json", chain)
    open_folder(page, bundle)
    records = [f"c/{MAIN}/p{place}" for place in range(len(chain["capsules"]))]
    problems, _ = visit(page, [*VIEWS, f"chain/{MAIN}", f"s/{MAIN}", *records])
    assert "\n".join(problems) == ""


def test_files_of_chains_with_hostile_claims_stay_text(page: Any, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path, "session")
    whole = load(bundle / f"{MAIN}.json")
    whole["capsules"] = whole["capsules"][:3]
    problems = []
    for number, value in enumerate(VALUES):
        for name in list(whole)[number % 6 :: 6]:
            if name != "capsules":
                (bundle / f"{MAIN}.json").write_text(replace_text(json.dumps(whole), (name,), value))
                open_folder(page, bundle)
                problems += visit(page, ["", f"chain/{MAIN}"])[0]
    assert "\n".join(problems) == ""
