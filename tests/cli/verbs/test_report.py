"""`aver report`: writes one file, which `aver verify` judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver import open_ledger
from support.agents import sample_session as sample
from support.aver_command import Aver


@pytest.fixture
def worked(aver: Aver, tmp_path: Path) -> Aver:
    with open_ledger(home=aver.home) as ledger:
        sample.rich(ledger, tmp_path / "t")
        sample.rich(ledger, tmp_path / "u", session="second")
    return aver


def test_a_session(worked: Aver) -> None:
    ran = worked("report", sample.SESSION[:4], "--out", "report.html")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "wrote report.html: 1 session"
    assert "verified" in ran.out.splitlines()[1]
    judged = worked("verify", "report.html", "--json").json
    assert judged["status"] == "verified"
    assert {check["name"]: check["status"] for check in judged["checks"]}["report"] == "passed"


@pytest.mark.parametrize("given", [("report", "--out"), ("show", "--html")], ids=["report", "page"])
def test_a_copy_of_records_is_readable_by_its_maker_alone(worked: Aver, given: tuple[str, str]) -> None:
    verb, option = given
    for force in ((), ("--force",)):
        assert worked(verb, sample.SESSION[:4], option, "copy.html", *force).code == 0
        assert (worked.directory / "copy.html").stat().st_mode & 0o777 == 0o600


def test_the_sessions_of_a_time(worked: Aver) -> None:
    ran = worked("report", "--since", "2026-05-01", "--out", "all.html", "--json")
    assert (ran.code, ran.json["sessions"], ran.json["verdict"]["status"]) == (0, 2, "verified")
    assert worked("verify", "all.html").code == 0
    assert worked("report", "--since", "2026-05-01", "--until", "2026-05-02", "--out", "none.html").code == 2
    assert worked("report", "--since", "2026-05-01", "--tool", "codex", "--out", "none.html").code == 2
    assert not (worked.directory / "none.html").exists()


def test_a_changed_report_fails(worked: Aver) -> None:
    assert worked("report", "second", "--out", "report.html").code == 0
    path = worked.directory / "report.html"
    path.write_bytes(path.read_bytes().replace(b"half up", b"half down"))
    ran = worked("verify", "report.html")
    assert ran.code == 1
    assert "ARTIFACT_HASH_MISMATCH" in ran.out


@pytest.mark.parametrize(
    "given", [(), ("second", "--since", "7d"), ("second", "--tool", "codex"), ("nothing",), ("meta",)]
)
def test_wrong_usage(worked: Aver, given: tuple[str, ...]) -> None:
    ran = worked("report", *given, "--out", "report.html")
    assert ran.code == 2
    assert not (worked.directory / "report.html").exists()


def test_evidence_is_not_overwritten(worked: Aver) -> None:
    assert worked("report", "second", "--out", "report.html").code == 0
    before = (worked.directory / "report.html").read_bytes()
    assert worked("report", "second", "--out", "report.html").code == 2
    assert (worked.directory / "report.html").read_bytes() == before
    assert worked("report", "second", "--out", "report.html", "--force").code == 0


def test_a_bundle_cannot_sign(worked: Aver) -> None:
    assert worked("export", "--out", "bundle").code == 0
    ran = worked("report", "second", "--ledger", "bundle", "--out", "report.html")
    assert ran.code == 2
    assert "signed by the ledger's key" in ran.err
