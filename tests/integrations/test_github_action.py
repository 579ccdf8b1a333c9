"""The GitHub Action: its steps, run by bash as a runner would, on a bundle, on checkpoints and on a ledger."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, open_ledger
from support.many_cases import first_now
from support.yaml_subset import load

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "integrations" / "github-action" / "action.yml"

_EXPRESSION = re.compile(r"\$\{\{ ([a-z]+(?:[.-][a-z]+)*) \}\}")


@dataclass(frozen=True)
class Ran:
    code: int
    said: str
    outputs: dict[str, str]
    summary: str

    @property
    def verdict(self) -> Any:
        return json.loads(Path(self.outputs["verdict"]).read_text())


def expanded(text: str, known: dict[str, str]) -> str:
    return _EXPRESSION.sub(lambda match: known[match[1]], text)


def run_action(evidence: Any, tmp_path: Path, only: str | None = None, **given: str) -> Ran:
    """Run the action's steps as a runner does: inputs by expressions, `bash -eo pipefail`, outputs by files."""
    action = load(ACTION.read_text())
    temporary = Path(tmp_path / "runner")
    temporary.mkdir(exist_ok=True)
    known = {f"inputs.{name}": str(one.get("default", "")) for name, one in action["inputs"].items()}
    given = {name.replace("_", "-"): value for name, value in given.items()}
    assert given.keys() <= action["inputs"].keys()
    known |= {f"inputs.{name}": value for name, value in given.items()} | {"runner.temp": str(temporary)}
    outputs: dict[str, str] = {}
    said, code = "", 0
    summary = temporary / "summary"
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "what comes from outside must not become part of a script"
        script, written = temporary / f"{step['id']}.sh", temporary / f"{step['id']}.out"
        script.write_text(step["run"])
        written.write_text("")
        environment = {name: expanded(value, known) for name, value in step["env"].items()}
        environment |= {"GITHUB_OUTPUT": str(written), "GITHUB_STEP_SUMMARY": str(summary)}
        environment |= {"GITHUB_ACTION_PATH": str(ACTION.parent), "RUNNER_TEMP": str(temporary)}
        done = evidence.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], **environment)
        said, code = said + done.stdout + done.stderr, done.returncode
        outputs = dict(line.split("=", 1) for line in written.read_text().splitlines())
        known |= {f"steps.{step['id']}.outputs.{name}": value for name, value in outputs.items()}
        if code or step["id"] == only:
            break
    return Ran(code, said, outputs, summary.read_text() if summary.exists() else "")


@pytest.fixture
def installed(evidence: Any) -> dict[str, str]:
    """An Aver that is installed already."""
    found = evidence.run(["bash", "-c", "command -v aver"]).stdout.strip()
    return {"command": found}


def test_a_good_bundle(evidence: Any, installed: dict[str, str], tmp_path: Path) -> None:
    ran = run_action(evidence, tmp_path, path="bundle", keys="keys.json", **installed)
    assert ran.code == 0, ran.said
    assert (ran.outputs["status"], ran.outputs["code"]) == ("verified", "")
    assert ran.verdict["records"] == 5
    assert "verified: 5 records in 3 chains" in ran.summary
    assert "signature: passed" in ran.said


def test_a_tampered_bundle(evidence: Any, installed: dict[str, str], tmp_path: Path) -> None:
    evidence.tamper()
    ran = run_action(evidence, tmp_path, path="bundle", keys="keys.json", **installed)
    assert ran.code == 1
    assert (ran.outputs["status"], ran.outputs["code"]) == ("failed", "HASH_MISMATCH")
    assert "HASH_MISMATCH" in ran.summary
    assert ran.verdict["first_bad"]["place"]["chain"] == "notes.today"


def test_without_keys_a_bundle_proves_nothing(evidence: Any, installed: dict[str, str], tmp_path: Path) -> None:
    ran = run_action(evidence, tmp_path, path="bundle", **installed)
    assert (ran.code, ran.outputs["status"]) == (1, "qualified")
    ran = run_action(evidence, tmp_path, path="bundle", strict="false", **installed)
    assert (ran.code, ran.outputs["status"]) == (0, "qualified")


@pytest.mark.more
@pytest.mark.parametrize("checkpoint", first_now(["heads.json", ".", "heads.json\n."]))
def test_a_bundle_against_checkpoints(
    evidence: Any, installed: dict[str, str], tmp_path: Path, aver_home: Path, checkpoint: str
) -> None:
    given = {"path": "bundle", "keys": "keys.json\n", "checkpoint": checkpoint, **installed}
    assert run_action(evidence, tmp_path, **given).outputs["status"] == "verified"
    with open_ledger() as ledger:
        ledger.append("notes.today", Capsule(type="tool"))
    evidence.run(["aver", "checkpoint", "--git", "."], AVER_HOME=str(aver_home))
    (evidence.directory / "heads.json").unlink()
    evidence.run(["aver", "checkpoint", "--out", "heads.json"], AVER_HOME=str(aver_home))
    ran = run_action(evidence, tmp_path, **given)
    assert (ran.code, ran.outputs["code"]) == (1, "TRUNCATED")


@pytest.mark.more
def test_a_ledger_and_checkpoints_by_themselves(
    evidence: Any, installed: dict[str, str], tmp_path: Path, aver_home: Path
) -> None:
    shutil.copy(aver_home / "ledger.db", evidence.directory / "copy.db")
    given = {"keys": "keys.json", **installed}
    ran = run_action(evidence, tmp_path, path="copy.db", checkpoint="heads.json", **given)
    assert (ran.code, ran.outputs["status"]) == (0, "verified"), ran.said
    ran = run_action(evidence, tmp_path, path="heads.json", **given)
    assert (ran.code, ran.outputs["status"]) == (0, "verified"), ran.said


@pytest.mark.more
def test_what_is_not_there_is_an_error(evidence: Any, installed: dict[str, str], tmp_path: Path) -> None:
    ran = run_action(evidence, tmp_path, path="-nowhere", keys="keys.json", **installed)
    assert (ran.code, ran.outputs["status"]) == (2, "error")
    assert "no file or directory" in ran.said


@pytest.mark.more
def test_inputs_are_never_part_of_a_command(evidence: Any, installed: dict[str, str], tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    nasty = f'"; touch {mark}; echo "$(touch {mark})`touch {mark}`'
    ran = run_action(evidence, tmp_path, path=nasty, keys=nasty, checkpoint=nasty, strict=nasty, **installed)
    assert ran.code == 2
    assert not mark.exists()


def test_an_old_python_is_refused(evidence: Any, tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\ncase "$1" in -V) echo "Python 3.9.2";; *) exit 1;; esac\n')
    old.chmod(0o755)
    ran = run_action(evidence, tmp_path, path="bundle", python=str(old))
    assert ran.code == 1
    assert "::error::Aver needs Python 3.11 or newer" in ran.said


@pytest.mark.more
def test_every_output_is_made(evidence: Any, installed: dict[str, str], tmp_path: Path) -> None:
    action = load(ACTION.read_text())
    used = {_EXPRESSION.fullmatch(one["value"])[1] for one in action["outputs"].values()}  # type: ignore[index]
    ran = run_action(evidence, tmp_path, path="bundle", **installed)
    assert used == {f"steps.verify.outputs.{name}" for name in ran.outputs}


@pytest.mark.long
def test_the_aver_that_comes_with_the_action_is_installed(evidence: Any, tmp_path: Path) -> None:
    """From a copy of the checkout, with what the package registry gives."""
    ran = run_action(evidence, tmp_path, path="bundle", keys="keys.json")
    assert ran.code == 0, ran.said
    assert (ran.outputs["status"], ran.outputs["code"]) == ("verified", "")
    subprocess.run([tmp_path / "runner" / "aver-environment" / "bin" / "aver", "--version"], check=True)
