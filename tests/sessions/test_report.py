"""Reports: what they hold, that they verify, and that each change of one is found and named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.errors import BadInput
from aver.keys import SeedSigner
from aver.ledger import Ledger
from aver.sessions.report import make_report
from aver.sessions.report_file import split_report
from aver.sessions.sessions import find_sessions
from support.agents import sample_session as sample
from support.reports import (
    MAIN_FILE,
    TAMPERED,
    change_file,
    report_by_stolen_key,
    sign_again,
    statement_in,
    write_report,
)

SIGNER = SeedSigner(bytes(range(32)))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with aver.open_ledger(tmp_path / "ledger.db", home=tmp_path / "home", signer=SIGNER) as opened:
        sample.rich(opened, tmp_path)
        yield opened


@pytest.fixture
def report(ledger: Ledger, tmp_path: Path) -> bytes:
    return write_report(ledger, tmp_path / "report.html")


def judge(data: bytes, tmp_path: Path, **options: Any) -> aver.Verdict:
    path = tmp_path / "judged.html"
    path.write_bytes(data)
    return aver.verify(path, home=tmp_path / "home", keys=[SIGNER.public], **options)


def findings(verdict: aver.Verdict) -> set[tuple[str, str, str]]:
    return {(one.check, one.code, str(one.place)) for one in verdict.findings if one.status == "failed"}


def test_a_report_verifies_by_itself(report: bytes, tmp_path: Path) -> None:
    verdict = judge(report, tmp_path)
    assert verdict.status == "verified"
    checks = {check.name: check.status for check in verdict.checks}
    assert checks["report"] == checks["signature"] == checks["head"] == "passed"
    assert verdict.subject == "judged.html"


def test_its_records_are_a_bundle(report: bytes, ledger: Ledger, tmp_path: Path) -> None:
    parts = split_report(report)
    assert {"index.json", "head.json", "keys.json", MAIN_FILE} <= parts.files.keys()
    assert all(
        record.hash.encode() in parts.files[MAIN_FILE] for record in ledger.read(MAIN_FILE.removesuffix(".json"))
    )


def test_its_text_says_what_is_and_is_not_established(report: bytes) -> None:
    text = report.decode()
    established, _, rest = text.partition("<h2>Established</h2>")[2].partition("<h2>Not established</h2>")
    assert "each has its hash" in established
    assert "recorded everything it did" in rest
    assert "Make totals round half up" in text
    assert text.count("<script>") == 1


def test_an_unknown_signer_is_said(report: bytes, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    verdict = aver.verify(path, home=tmp_path / "elsewhere")
    assert verdict.status == "qualified"
    assert next(check for check in verdict.checks if check.name == "report").code == "UNKNOWN_SIGNER"


FOUND = {
    "a text of the page": {("report", "ARTIFACT_HASH_MISMATCH", "page")},
    "a style": {("report", "ARTIFACT_HASH_MISMATCH", "page")},
    "a dropped record": {("links", "SEQUENCE_GAP", ""), ("report", "ARTIFACT_HASH_MISMATCH", "page")},
    "a cut end": {("report", "HEAD_MISMATCH", f"chain {MAIN_FILE.removesuffix('.json')}")},
    "no statement": {("report", "SIG_MISSING", "statement")},
    "another subject": {("report", "SIG_INVALID", "statement")},
    "another verdict": {("report", "SIG_INVALID", "statement")},
    "an unknown member": {("report", "SCHEMA_INVALID", "statement")},
    "a checkpoint as statement": {("report", "SCHEMA_INVALID", "statement")},
    "two statements": {("report", "SCHEMA_INVALID", "page")},
    "a file outside": {("report", "SCHEMA_INVALID", "page")},
}
"""Findings that a change must have among others. An empty place stands for any."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("change", sorted(set(TAMPERED) - {"honest"}))
def test_each_change_is_found_and_named(report: bytes, tmp_path: Path, change: str) -> None:
    verdict = judge(TAMPERED[change](report), tmp_path)
    assert verdict.status == "failed"
    found = findings(verdict)
    anywhere = {(check, code, "") for check, code, _ in found}
    assert FOUND.get(change, set()) <= found | anywhere, found


def test_a_statement_of_another_report_is_found(ledger: Ledger, report: bytes, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path / "more", session="more")
    other = write_report(ledger, tmp_path / "other.html")
    from support.reports import replace_statement

    found = findings(judge(replace_statement(report, statement_in(other)), tmp_path))
    assert ("report", "ARTIFACT_HASH_MISMATCH", "page") in found
    assert ("report", "CHAIN_MISSING", "chain claude-code.more") in found
    assert ("report", "CLAIM_UNPROVEN", "statement") in found


def test_another_key_cannot_sign_it_again(report: bytes, tmp_path: Path) -> None:
    changed = sign_again(report.replace(b"half up", b"half down"), SeedSigner(bytes(32)))
    verdict = judge(changed, tmp_path)
    assert (verdict.status, verdict.integrity) == ("qualified", "unsigned")
    assert verdict.check("report").code == "UNKNOWN_SIGNER"


def test_a_key_that_the_records_do_not_name_is_said(report: bytes, tmp_path: Path) -> None:
    """The reader knows two keys. That of another ledger does not speak for this one."""
    other = SeedSigner(bytes(32))
    path = tmp_path / "judged.html"
    path.write_bytes(sign_again(report.replace(b"half up", b"half down"), other))
    verdict = aver.verify(path, home=tmp_path / "home", keys=[SIGNER.public, other.public])
    assert verdict.status == "qualified"
    assert [(one.check, one.status, one.code) for one in verdict.findings] == [("report", "warning", "UNKNOWN_SIGNER")]


def test_a_stolen_key_cannot_report_what_came_after_it(tmp_path: Path) -> None:
    """The thief says that the report is older than the end of the key. The records in it are younger."""
    path = tmp_path / "judged.html"
    data, ring = report_by_stolen_key(tmp_path)
    path.write_bytes(data)
    for keys in ([entry.key for entry in ring.entries], []):
        found = findings(aver.verify(path, home=tmp_path / "home", keys=keys))
        assert found == {("report", "KEY_RETIRED", "statement")}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        (lambda content: content["verdict"].update(records=99), "CLAIM_UNPROVEN", "statement"),
        (lambda content: content["heads"].popitem(), "HEAD_MISMATCH", None),
        (
            lambda content: content["heads"].update({"x.y": {"count": 1, "hash": "0" * 64}}),
            "CHAIN_MISSING",
            "chain x.y",
        ),
        (lambda content: content.update(v=2), "SCHEMA_INVALID", "statement"),
        (lambda content: content.update(heads=[]), "SCHEMA_INVALID", "statement"),
        (lambda content: content.update(verdict="verified"), "SCHEMA_INVALID", "statement"),
    ],
)
def test_what_the_signer_itself_says_wrong(
    report: bytes, tmp_path: Path, change: Any, code: str, place: str | None
) -> None:
    found = findings(judge(sign_again(report, SIGNER, change), tmp_path))
    assert any((check, found_code) == ("report", code) and place in (None, where) for check, found_code, where in found)


def test_a_good_word_about_bad_records_is_no_proof(report: bytes, tmp_path: Path) -> None:
    def spoil(chain: dict[str, Any]) -> None:
        chain["capsules"][1]["signature"] = chain["capsules"][0]["signature"]

    found = findings(judge(sign_again(change_file(report, MAIN_FILE, spoil), SIGNER), tmp_path))
    assert ("report", "CLAIM_UNPROVEN", "statement") in found
    assert any(code == "SIG_INVALID" and check == "signature" for check, code, _ in found)


def test_hostile_records_stay_text(ledger: Ledger, tmp_path: Path) -> None:
    hostile = '</script><script>alert(1)</script><script type="application/vnd.aver.statement" id="aver-report">'
    sample.seal(ledger, tmp_path / "h", [sample.prompt(hostile), sample.answer(hostile)], session="hostile")
    data = write_report(ledger, tmp_path / "hostile.html")
    assert judge(data, tmp_path).status == "verified"
    assert b"<script>alert" not in data
    assert data.count(b"<script>") == 1


def test_what_is_not_written(ledger: Ledger, report: bytes, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="exists already"):
        make_report(ledger, find_sessions(ledger), tmp_path / "report.html")
    with pytest.raises(BadInput, match="no session to report"):
        make_report(ledger, [], tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()
