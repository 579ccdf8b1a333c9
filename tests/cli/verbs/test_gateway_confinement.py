"""`aver gateway run`, `smoke` and `verify-contract`, as a person and a pipeline call them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from aver.cli.main import main
from aver.gate import confinement
from aver.gateway.mediation.contract import CapsuleContract
from support.aver_command import Aver
from support.confinements import needs_wrapper, quick_contract

VERDICT_KEYS = {
    *("status", "ok", "ts_unix", "contract_path", "contract_sha256", "report_path", "schema_path", "schema_sha256"),
    *("summary", "results", "clauses"),
}
REPORT_KEYS = {
    *("direct_fs_read", "direct_exec_true", "direct_exec_sh", "direct_exfil_post", "direct_internet"),
    *("gateway_act", "gateway_mcp_act"),
}


@pytest.fixture
def work(aver: Aver) -> Path:
    (aver.directory / "work").mkdir()
    return aver.directory / "work"


def write_contract(directory: Path, contract: CapsuleContract) -> Path:
    path = directory / "contract.json"
    path.write_bytes(contract.data)
    return path


@pytest.mark.more
@needs_wrapper
def test_smoke_and_verdict_of_the_contract_that_comes_with_aver(aver: Aver, work: Path) -> None:
    """Also the MCP door answers from inside: this takes seconds."""
    report, verdict = aver.directory / "smoke.json", aver.directory / "verdict.json"
    place = ("--workspace", work)
    ran = aver("gateway", "smoke", "--out", report, *place)
    assert ran.code == 0, ran.err
    found = json.loads(report.read_text())
    assert found.keys() >= REPORT_KEYS
    assert all(found[key]["control"]["ok"] is True for key in REPORT_KEYS)
    judged = aver("gateway", "verify-contract", "--report", report, "--out", verdict, "--json", *place)
    assert (judged.code, judged.json["status"]) == (0, "OK"), judged.out
    assert judged.json.keys() == VERDICT_KEYS
    assert json.loads(verdict.read_text()) == judged.json
    # The same report, after somebody has opened the loopback.
    found["direct_exfil_post"]["ok"] = True
    report.write_text(json.dumps(found))
    broken = aver("gateway", "verify-contract", "--report", report, "--out", verdict, *place)
    assert broken.code == 1
    assert "no_loopback_http_exfil: FAIL_MUST_DENY" in broken.out
    assert json.loads(verdict.read_text())["status"] == "FAIL"


@pytest.mark.more
@needs_wrapper
def test_an_agent_acts_and_its_exit_code_is_that_of_the_command(aver: Aver, work: Path) -> None:
    contract = write_contract(
        aver.directory, quick_contract(process={"allow_exec_paths": ["${PY_BIN}", "${PY_REAL_BIN}"]})
    )
    (work / "agent.py").write_text(
        "import subprocess, sys\n"
        'inputs = \'{"relpath": "a.txt", "content": "hi"}\'\n'
        "words = ['gateway', 'act', 'WriteWorkspaceFile', '--inputs', inputs]\n"
        "sys.exit(40 + subprocess.run([sys.executable, '-m', 'aver', *words]).returncode)\n"
    )
    run = ("gateway", "run", "--contract", contract, "--workspace", work, "--session", "s1", "--prompt", "write a.txt")
    ran = aver(*run, "--", sys.executable, "agent.py")
    assert ran.code == 40, ran.err
    assert (work / "a.txt").read_text() == "hi"
    assert "clauses hold" in ran.err
    assert "OK ALLOW" in ran.out
    refused = aver(*run, "--", "/bin/sh")
    assert refused.code == 2
    assert "does not allow to start /bin/sh" in refused.err


@pytest.mark.more
@needs_wrapper
@pytest.mark.parametrize("name", ["python", "python3"])
def test_a_program_is_started_by_any_of_its_names(aver: Aver, work: Path, name: str) -> None:
    """A virtual environment has one Python with several names, and `sys.executable` is one of them."""
    contract = write_contract(aver.directory, quick_contract())
    (work / "agent.py").write_text("print('it runs')")
    ran = aver("gateway", "run", "--contract", contract, "--workspace", work, "--", name, "agent.py")
    assert (ran.code, ran.out) == (0, "it runs\n"), ran.err


@needs_wrapper
def test_a_name_beside_a_program_that_is_another_program_is_refused(aver: Aver, work: Path) -> None:
    contract = write_contract(aver.directory, quick_contract())
    ran = aver("gateway", "run", "--contract", contract, "--workspace", work, "--", "pip", "--version")
    assert (ran.code, "does not allow to start pip" in ran.err) == (2, True)


@needs_wrapper
def test_an_agent_does_not_start_where_the_contract_does_not_hold(aver: Aver, work: Path) -> None:
    wanted = {"id": "internet", "kind": "internet_get", "must_deny": False, "url": "https://192.0.2.1/"}
    contract = write_contract(aver.directory, quick_contract(assertions=[wanted]))
    (work / "agent.py").write_text("open('started', 'w')")
    ran = aver("gateway", "run", "--contract", contract, "--workspace", work, "--", sys.executable, "agent.py")
    assert ran.code == 1
    assert "internet: FAIL_MUST_ALLOW" in ran.err
    assert not (work / "started").exists()


@pytest.mark.parametrize("words", [("run", "--", "python"), ("smoke", "--out", "smoke.json")])
def test_without_bwrap_the_exit_code_is_2(
    words: tuple[str, ...],
    tmp_path: Path,
    aver_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(confinement, "WRAPPERS", ("/nonexistent/bwrap",))
    monkeypatch.chdir(tmp_path)
    assert main(["gateway", *words]) == 2
    assert "bwrap is not installed" in capsys.readouterr().err
    assert not aver_home.exists()


@pytest.mark.parametrize("data", ["", "[]", "null", "{", '{"contract_sha256": 1, "clauses": 7}', '{"a": 1, "a": 2}'])
def test_a_report_that_is_none_gets_a_verdict(data: str, aver: Aver) -> None:
    report, verdict = aver.directory / "smoke.json", aver.directory / "verdict.json"
    report.write_text(data)
    ran = aver("gateway", "verify-contract", "--report", report, "--out", verdict)
    assert ran.code == 1
    assert json.loads(verdict.read_text())["status"] == "FAIL"


def test_a_contract_that_is_none_gets_a_verdict(aver: Aver) -> None:
    contract, verdict = aver.directory / "contract.json", aver.directory / "verdict.json"
    contract.write_text('{"version": 2}')
    (aver.directory / "smoke.json").write_text("{}")
    files = ("--contract", contract, "--report", aver.directory / "smoke.json", "--out", verdict)
    ran = aver("gateway", "verify-contract", *files, "--json")
    assert (ran.code, ran.json["status"]) == (1, "FAIL")
    assert "error" in ran.json


def test_files_that_are_not_there(aver: Aver) -> None:
    ran = aver("gateway", "verify-contract", "--report", "none.json", "--out", aver.directory / "verdict.json")
    assert ran.code == 2
    assert not (aver.directory / "verdict.json").exists()
