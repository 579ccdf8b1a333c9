"""`aver prove`, and `aver verify` on runs, `.cap` files and proofs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.aver_command import Aver
from support.many_cases import first_now

MAKE = """
import sys
from aver import AgentRuntime
with AgentRuntime(sys.argv[1], run_id="run_demo") as run:
    for number in range(5):
        run.record_simple("command", f"step {number}", {"n": number}, "out", metadata={"description": f"step {number}"})
"""


@pytest.fixture
def with_run(aver: Aver) -> Aver:
    script = [sys.executable, "-c", MAKE, str(aver.directory / "run")]
    subprocess.run(script, env=aver.environment, check=True)
    return aver


@pytest.mark.parametrize("where", first_now(["run", "run/run.cap", "run_demo", "actions.run_demo"], 2))
def test_a_proof_of_an_action_of_a_run(with_run: Aver, where: str) -> None:
    ran = with_run("prove", "3", "--run", where, "--out", "proof.json")
    assert ran.code == 0
    assert "wrote proof.json: action 3 of 5, act_0003_" in ran.out
    assert with_run("verify", "proof.json").code == 0
    key = with_run("keys", "export", "--json").json
    assert "step 2" not in (with_run.directory / "proof.json").read_text()
    assert key


def test_by_its_capsule(with_run: Aver) -> None:
    document = with_run("prove", "capsule://actions.run_demo/1").json
    assert document["index"] == 0
    assert with_run("prove", "capsule://actions.run_demo/1", "--json").json == document
    assert with_run("prove", "capsule://actions.run_demo/0").code == 2
    assert with_run("prove", "capsule://actions.run_demo/6").code == 2
    assert with_run("prove", "actions.run_demo").code == 2
    assert with_run("prove", "actions.nowhere").code == 2


def test_a_file_that_is_there_stays(with_run: Aver) -> None:
    (with_run.directory / "proof.json").write_text("mine")
    assert with_run("prove", "3", "--run", "run", "--out", "proof.json").code == 2
    assert (with_run.directory / "proof.json").read_text() == "mine"


def test_what_is_not_there(with_run: Aver) -> None:
    assert with_run("prove", "9", "--run", "run").code == 2
    assert with_run("prove", "3", "--run", "nowhere").code == 2
    assert with_run("prove", "3", "--run", "run/proof.json").code == 2


def test_a_tampered_cap_exits_with_1_and_names_the_action(with_run: Aver) -> None:
    assert with_run("verify", "run/run.cap", "./run", "run_demo").code == 0
    copy = Path(shutil.copytree(with_run.directory / "run", with_run.directory / "copy"))
    text = (copy / "actions.jsonl").read_text().replace('"success":true', '"success":false', 3)
    (copy / "actions.jsonl").write_text(text)
    ran = with_run("verify", "copy", "--json")
    assert ran.code == 1
    assert ran.json["first_bad"]["code"] == "RECEIPT_MISMATCH"
    assert "action 0 (act_0000_" in ran.json["first_bad"]["place"]["source"]


def test_with_a_key_alone(with_run: Aver, tmp_path: Path) -> None:
    key = json.loads((with_run.home / "keyring.json").read_text())
    public = next(iter(key["entries"]))["public_key"]
    elsewhere = Aver(tmp_path / "elsewhere")
    elsewhere.directory.mkdir()
    cap = with_run.directory / "run" / "run.cap"
    assert elsewhere("verify", str(cap), "--key", public, "--strict").code == 0
    assert elsewhere("verify", str(cap), "--strict").code == 1
    assert elsewhere("verify", str(cap)).code == 0
