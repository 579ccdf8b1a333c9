"""The page's verifier takes signed documents in their maker's exact bytes, as `aver verify` does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import aver
from aver.keys import Ring, sign_statement
from aver.ledger import Ledger
from aver.ledger.bundle import export_bundle
from support.agents import sample_session as sample
from support.bundles import draft, save
from support.loose_capsules import SIGNER
from support.page_cases import Cases, expect_agreement
from support.reports import replace_statement, statement_in, write_report
from support.rewritten_json import rewrite

RING = Ring.pin([SIGNER.public])


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with aver.open_ledger(tmp_path / "ledger.db", home=tmp_path / "home", signer=SIGNER) as opened:
        session = "s9 </SCRIPT ><h1>AUDITED AND APPROVED</h1><plaintext>"
        sample.seal(opened, tmp_path / "t", [sample.prompt("Add a/b"), sample.answer("Done.")], session=session)
        opened.append("demo.two", draft())
        yield opened


def statuses(cases: Cases) -> dict[str, tuple[str, list[str]]]:
    """What Aver says of each case: its status, and the codes of what failed."""
    found = {}
    for path in cases.directory.glob("*/case.json"):
        case = json.loads(path.read_text())
        codes = [one["code"] for one in case["verdict"]["findings"] if one["status"] == "failed"]
        found[case["test"]] = case["verdict"]["status"], codes
    return found


@pytest.mark.more
def test_reports_whose_statement_was_rewritten(ledger: Ledger, tmp_path: Path) -> None:
    cases, report = Cases(tmp_path / "cases"), write_report(ledger, tmp_path / "report.html")
    cases.add_file("report.html", report, RING, "honest")
    for name, other in rewrite(statement_in(report)):
        cases.add_file("report.html", replace_statement(report, other), RING, name)
    fingerprint = SIGNER.fingerprint.encode()
    other_name = report.replace(b'"by":"' + fingerprint, b'"by":"f' + fingerprint[1:])
    cases.add_file("report.html", other_name, RING, "another signer's name")
    mark = report.replace(b'<meta name="aver"', b'<meta name="axer"')
    cases.add_file("report.html", mark, RING, "no mark")
    found = statuses(cases)
    assert found.pop("honest")[0] == "verified"
    assert found["markup"] == ("failed", ["NOT_CANONICAL"])
    assert {status for status, _ in found.values()} == {"failed"}
    assert expect_agreement(tmp_path / "cases") == cases.count > 12


@pytest.mark.more
def test_heads_of_bundles_that_were_rewritten(ledger: Ledger, tmp_path: Path) -> None:
    cases, bundle = Cases(tmp_path / "cases"), export_bundle(ledger, tmp_path / "bundle").path
    raw = (bundle / "head.json").read_bytes()
    for name, other in (("honest", raw), *rewrite(raw)):
        folder = cases.new_folder() / "bundle"
        shutil.copytree(bundle, folder)
        (folder / "head.json").write_bytes(other)
        cases.add(folder, RING, name)
    found = statuses(cases)
    assert found.pop("honest")[0] == "verified"
    assert {status for status, _ in found.values()} == {"failed"}
    assert expect_agreement(tmp_path / "cases") == cases.count > 12


@pytest.mark.more
@pytest.mark.parametrize("count", [2**53 - 1, 2**53 + 1, 2**62 + 3, 2**63 - 1])
def test_counts_that_javascript_would_round(ledger: Ledger, tmp_path: Path, count: int) -> None:
    cases, bundle = Cases(tmp_path / "cases"), export_bundle(ledger, tmp_path / "bundle").path
    content = json.loads((bundle / "head.json").read_bytes())["content"]
    content["heads"]["demo.two"] = {"count": count, "hash": "0" * 64}
    folder = cases.new_folder() / "bundle"
    shutil.copytree(bundle, folder)
    save(folder / "head.json", sign_statement("checkpoint", content, [SIGNER]).to_dict())
    cases.add(folder, RING, "signed by the owner")
    assert statuses(cases)["signed by the owner"][1] == ["TRUNCATED"]
    assert expect_agreement(tmp_path / "cases") == 1
