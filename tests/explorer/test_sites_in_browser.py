"""A site on a web server, in a real Chromium: its verdict is that of `aver verify` on the same files.

A web server does not tell which files it has. So files that a site does not list are named as not checked, and the
printed command fetches the bundle before it judges it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Capsule, Ledger
from aver.ledger.bundle import export_bundle
from support.browser_pages import JUDGED, go, key_of, pin
from support.site_twins import CHANGED, TWIN_CHANGES, twin_of
from support.static_sites import serve_site

pytestmark = [pytest.mark.browser, pytest.mark.long]

NAMES = Path("explorer/data/names.js")


@pytest.fixture
def sites(filled: Ledger, tmp_path: Path) -> tuple[Path, Path]:
    """A site, and an older one of the same ledger."""
    older = export_bundle(filled, tmp_path / "older", html=True).path
    filled.append("codex.two", Capsule(type="tool", trigger={"source": "test", "request": "one more"}))
    filled.close_chain("codex.two")
    return export_bundle(filled, tmp_path / "web" / "s", html=True).path, older


def read_names(site: Path) -> list[str]:
    names: list[str] = json.loads((site / NAMES).read_text().removeprefix("averNames(").removesuffix(");\n"))
    return names


def write_names(site: Path, names: list[str]) -> None:
    (site / NAMES).write_text(f"averNames({json.dumps(names)});\n")


def take_older_twins(site: Path, older: Path) -> None:
    """A reader who opens the site by a double click would see the older records."""
    for twin in (older / "explorer" / "data").iterdir():
        shutil.copy(twin, site / "explorer" / "data" / twin.name)


def hide_heads(site: Path, _: Path) -> None:
    """The last name takes the place of the signed heads, which the server still has."""
    names = read_names(site)
    place = names.index("head.json")
    names[place] = names.pop()
    write_names(site, names)
    shutil.move(site / f"explorer/data/{len(names)}.js", site / f"explorer/data/{place}.js")


def list_another_file(site: Path, name: str) -> None:
    names = read_names(site)
    data = site / "explorer" / "data"
    content = (data / "0.js").read_text().replace('"index.json"', json.dumps(name))
    (data / f"{len(names)}.js").write_text(content)
    write_names(site, [*names, name])


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "older twins": take_older_twins,
    "no twin": lambda site, _: (site / "explorer/data/2.js").unlink(),
    "a list without the heads": hide_heads,
    "no chain": lambda site, _: (site / "codex.two.json").unlink(),
    "no heads": lambda site, _: (site / "head.json").unlink(),
    "a file outside": lambda site, _: (
        shutil.copy(site / "index.json", site.parent / "outer.json"),
        list_another_file(site, "../outer.json"),
    ),
    "a listed file that no index knows": lambda site, _: (
        shutil.copy(site / "index.json", site / "notes.json"),
        list_another_file(site, "notes.json"),
    ),
}

PACKED = (
    "another file behind it",
    "an empty file before it",
    "bytes behind it",
    "its end is missing",
    "padding in the middle",
)
"""Changes of how a twin is packed, which only a strict reader refuses."""

CHANGES |= {f"a twin: {name}": lambda site, _, name=name: TWIN_CHANGES[name](twin_of(site, CHANGED)) for name in PACKED}


def judge_by_python(site: Path, ledger: Ledger) -> tuple[str, set[str]]:
    verdict = aver.verify(site, keys=[key_of(ledger)])
    return verdict.status, {finding.code for finding in verdict.findings}


def judge_in_page(page: Any, address: str, ledger: Ledger) -> tuple[str, set[str]]:
    """The status and the codes that the page finds, with the ledger's key pinned."""
    page.goto(address)
    page.locator(JUDGED).first.wait_for()
    pin(page, key_of(ledger))
    page.locator(JUDGED).first.wait_for()
    page.wait_for_function("!document.querySelector('.band')?.innerText.includes('is not known here')")
    page.locator(JUDGED).first.wait_for()
    codes = page.locator(".band .finding strong").all_inner_texts()
    return str(page.locator(".band h2").first.inner_text()).strip().lower(), set(codes)


@pytest.mark.parametrize("change", CHANGES)
def test_verdict_is_that_of_the_command(page: Any, ledger: Ledger, sites: tuple[Path, Path], change: str) -> None:
    site, older = sites
    CHANGES[change](site, older)
    expected = judge_by_python(site, ledger)
    assert expected[0] != "verified"
    with serve_site(site.parent) as address:
        assert judge_in_page(page, f"{address}s/", ledger) == expected


def test_honest_site_is_verified_and_says_what_a_web_server_does_not_tell(
    page: Any, ledger: Ledger, sites: tuple[Path, Path]
) -> None:
    """A file that nobody lists is a warning of the command. The page cannot know it, and shows nothing of it."""
    (sites[0] / "notes.json").write_text("{}")
    with serve_site(sites[0]) as address:
        assert judge_in_page(page, address, ledger) == ("verified", set())
    made, unmade = page.locator(".band .columns > div").all_inner_texts()
    assert "the page shows the bytes of the bundle's own files" in made
    assert "unlisted files" in unmade
    assert "a web server does not tell" in unmade
    assert "The same without this page" not in page.locator(".band").inner_text()
    assert judge_by_python(sites[0], ledger) == ("qualified", {"UNLISTED_FILE"})


@pytest.mark.parametrize("folder", ["", "s/"])
def test_printed_command_fetches_the_bundle_and_judges_it(
    page: Any, ledger: Ledger, sites: tuple[Path, Path], tmp_path: Path, folder: str
) -> None:
    if shutil.which("wget") is None:
        pytest.skip("there is no wget, which the command needs")
    with serve_site(sites[0].parent if folder else sites[0]) as address:
        assert judge_in_page(page, f"{address}{folder}", ledger)[0] == "verified"
        command = page.locator(".without-page code").inner_text()
        assert page.locator(".without-page").inner_text().startswith("The bundle's own files, without this page: ")
        place = tmp_path / "elsewhere"
        place.mkdir()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "AVER_HOME": str(tmp_path / "home of a reader")}
        done = subprocess.run(
            ["bash", "-c", command], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "verified" in done.stdout.lower().split("\n")[0]
        assert sorted(path.name for path in (place / "site").iterdir()) == sorted(
            {name.split("/")[0] for name in read_names(sites[0])}
        )
        # An older copy is not judged by mistake.
        again = subprocess.run(["bash", "-c", command], cwd=place, env=environment, capture_output=True, check=False)
        assert again.returncode != 0
    go(page, "#/")
