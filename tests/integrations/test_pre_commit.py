"""The hooks for pre-commit: what they run, on good evidence and on bad."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.yaml_subset import load

ROOT = Path(__file__).resolve().parents[2]
HOOKS = {hook["id"]: hook for hook in load((ROOT / ".pre-commit-hooks.yaml").read_text())}
EXAMPLE = load((ROOT / "integrations" / "pre-commit" / "pre-commit-config.yaml").read_text())


def run_hook(evidence: Any, name: str, *args: str, files: list[Path] | None = None) -> subprocess.CompletedProcess[str]:
    """What pre-commit runs: the entry, then args, then the changed files that the hook is about."""
    hook = HOOKS[name]
    command = [*shlex.split(hook["entry"]), *(args or hook.get("args", []))]
    if hook.get("pass_filenames", True):
        paths = [path.relative_to(evidence.directory).as_posix() for path in files or []]
        command += [path for path in paths if re.search(hook["files"], path)]
    done: subprocess.CompletedProcess[str] = evidence.run(command)
    return done


def test_both_hooks_are_where_pre_commit_looks() -> None:
    assert HOOKS.keys() == {"aver-verify-bundle", "aver-verify-checkpoint"}
    for hook in HOOKS.values():
        assert hook["language"] == "python"
        assert hook.keys() >= {"id", "name", "description", "entry"}
    (repository,) = EXAMPLE["repos"]
    assert {hook["id"] for hook in repository["hooks"]} == HOOKS.keys()


@pytest.mark.more
def test_a_bundle(evidence: Any) -> None:
    done = run_hook(evidence, "aver-verify-bundle", "bundle", "--key", "keys.json")
    assert done.returncode == 0, done.stdout
    assert run_hook(evidence, "aver-verify-bundle").returncode == 1  # Nobody's keys are known here.
    evidence.tamper()
    done = run_hook(evidence, "aver-verify-bundle", "bundle", "--key", "keys.json")
    assert done.returncode == 1
    assert "HASH_MISMATCH" in done.stdout


def test_checkpoints_that_a_commit_changes(evidence: Any) -> None:
    other = evidence.history.with_name(evidence.history.name.replace("default", "default.1"))
    shutil.copy(evidence.history, other)
    files = [evidence.history, other, evidence.keys]
    done = run_hook(evidence, "aver-verify-checkpoint", "--key", "keys.json", files=files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("verified: checkpoint in") == 2
    evidence.history.write_text(evidence.history.read_text().replace('"count":3', '"count":2'))
    done = run_hook(evidence, "aver-verify-checkpoint", "--key", "keys.json", files=files)
    assert done.returncode == 1
    assert "SIG_INVALID" in done.stdout


def test_the_example_s_arguments_are_accepted(evidence: Any) -> None:
    (evidence.directory / "evidence").mkdir()
    for path in (evidence.bundle, evidence.keys):
        shutil.move(path, evidence.directory / "evidence")
    for hook in EXAMPLE["repos"][0]["hooks"]:
        done = run_hook(evidence, hook["id"], *hook["args"], files=[evidence.history])
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pre-commit") is None, reason="pre-commit is not installed")
def test_pre_commit_itself_takes_them(evidence: Any) -> None:
    done = evidence.run(["pre-commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")])
    assert done.returncode == 0, done.stdout
