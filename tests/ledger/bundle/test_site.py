"""A bundle that is also a site: its page, the twins of its files, and every change of them."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aver import BadInput, Ledger
from aver.check import verify
from aver.cli.terminal import Screen
from aver.cli.verdict_text import print_verdict
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.site import KNOWN_PAGES_FILE, page_directory
from support.bundles import bad, change_chain
from support.site_twins import (
    CHANGED,
    FOREIGN_PAGES,
    TWIN_CHANGES,
    changed_pieces,
    export_long_site,
    packed_bytes,
    twin_of,
)


@pytest.fixture
def site(filled: Ledger, tmp_path: Path) -> Path:
    export_bundle(filled, tmp_path / "site", html=True)
    return tmp_path / "site"


def test_honest_site(site: Path) -> None:
    verdict = verify(site)
    assert verdict.status == "verified"
    check = verdict.check("page")
    assert (check.status, check.count) == ("passed", 8)
    assert check.reason.endswith("the page is one of Aver's")


def test_page_is_that_of_this_version_but_for_its_door(site: Path) -> None:
    page = page_directory()
    assert (site / "explorer/app.js").read_bytes() == (page / "explorer/app.js").read_bytes()
    shipped, here = ((folder / "index.html").read_text() for folder in (page, site))
    assert here == shipped.replace('data-door="files"', 'data-door="site"') != shipped


def test_twins_hold_the_bytes_of_their_files(site: Path) -> None:
    for name in ("index.json", "head.json", "codex.two.json"):
        assert gzip.decompress(packed_bytes(twin_of(site, name))) == (site / name).read_bytes()


@pytest.mark.parametrize("change", TWIN_CHANGES.values(), ids=TWIN_CHANGES.keys())
def test_changed_twin_is_named(site: Path, change: Callable[[Path], object]) -> None:
    twin = twin_of(site, CHANGED)
    change(twin)
    verdict = verify(site)
    assert verdict.first_bad is not None
    assert bad(verdict) == ("ARTIFACT_HASH_MISMATCH", None, None)
    assert verdict.first_bad.place.source == f"explorer/data/{twin.name}"
    assert verdict.first_bad.check == "page"


def test_twin_of_several_pieces(filled: Ledger, tmp_path: Path) -> None:
    twin = export_long_site(filled, tmp_path / "long")
    assert verify(tmp_path / "long").check("page").status == "passed"
    for name, changed in changed_pieces(twin).items():
        twin.write_bytes(changed)
        verdict = verify(tmp_path / "long")
        assert bad(verdict) == ("ARTIFACT_HASH_MISMATCH", None, None), name
        assert verdict.first_bad is not None
        assert verdict.first_bad.place.source == f"explorer/data/{twin.name}"


@pytest.mark.parametrize(
    "names",
    [b'averNames(["index.json"]);\n', b"averNames([1]);\n", b"averNames([);\n", b"", b'averNames(["a","a"]);\n'],
)
def test_list_of_files_that_is_wrong(site: Path, names: bytes) -> None:
    (site / "explorer/data/names.js").write_bytes(names)
    assert bad(verify(site)) == ("ARTIFACT_HASH_MISMATCH", None, None)


def test_names_lead_nowhere_else(site: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (site / "explorer/data/names.js").write_bytes(b'averNames(["../secret"]);\n')
    verdict = verify(site)
    assert verdict.status == "failed"
    assert all("secret" not in finding.words or "name" in finding.words for finding in verdict.findings)


def test_changed_records_fail_in_both_checks(site: Path) -> None:
    change_chain(lambda records: records.pop())(site)
    checks = {finding.check for finding in verify(site).findings if finding.status == "failed"}
    assert {"index", "page"} <= checks


@pytest.mark.parametrize("change", FOREIGN_PAGES.values(), ids=FOREIGN_PAGES.keys())
def test_another_page_than_one_of_ours_is_named_first(site: Path, change: Callable[[Path], object]) -> None:
    change(site)
    verdict = verify(site)
    assert verdict.status == "qualified"
    assert verdict.check("page").status == "warning"
    assert verdict.findings[0].code == "PAGE_FOREIGN"
    assert {finding.code for finding in verdict.findings} == {"PAGE_FOREIGN"}


def test_text_names_the_foreign_page_before_all_else(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "explorer/app.js").write_text("<h1>ALL APPROVED</h1>")
    (site / "notes.txt").write_text("unlisted")
    print_verdict(Screen(), verify(site, keys=[]))
    said = capsys.readouterr().out
    assert 0 < said.index("PAGE_FOREIGN") < said.index("UNLISTED_FILE")


def test_a_page_beside_a_bundle_that_has_none_is_foreign(filled: Ledger, tmp_path: Path) -> None:
    export_bundle(filled, tmp_path / "bundle")
    (tmp_path / "bundle/index.html").write_text("<h1>ALL APPROVED</h1>")
    verdict = verify(tmp_path / "bundle")
    assert (verdict.status, [finding.code for finding in verdict.findings]) == ("qualified", ["PAGE_FOREIGN"])


def test_a_changed_page_hides_no_failure(site: Path) -> None:
    (site / "explorer/style.css").write_text("")
    change_chain(lambda records: records.pop())(site)
    verdict = verify(site)
    assert verdict.status == "failed"
    assert verdict.findings[0].code == "PAGE_FOREIGN"


def test_a_site_by_the_page_of_an_earlier_version_stays_green(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release leaves the digest of its page in `pages.json`. A later version's own page is another one."""
    later = site.parent / "later"
    shutil.copytree(page_directory(), later)
    with (later / "explorer/app.js").open("a") as file:
        file.write("// of a later version\n")
    monkeypatch.setattr("aver.ledger.bundle.site.page_directory", lambda: later)
    assert verify(site).status == "verified"
    (later / KNOWN_PAGES_FILE).write_text('{"9.0.0": "%s"}' % ("0" * 64))
    assert verify(site).status == "qualified"


def test_export_replaces_a_site_by_a_site_or_a_bundle(filled: Ledger, site: Path) -> None:
    with pytest.raises(BadInput):
        export_bundle(filled, site, html=True)
    export_bundle(filled, site, html=True, force=True)
    assert verify(site).check("page").status == "passed"
    export_bundle(filled, site, force=True)
    assert not (site / "explorer").exists()
    assert not (site / "index.html").exists()
    assert verify(site).status == "verified"


def test_part_of_a_ledger_as_a_site(filled: Ledger, tmp_path: Path) -> None:
    export_bundle(filled, tmp_path / "part", chains=["codex.two"], html=True)
    assert verify(tmp_path / "part").check("page").count == 4
