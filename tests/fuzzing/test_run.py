"""The command line of the fuzzer: what it prints, and what it returns."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.doc_pages import ROOT


def run(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "fuzz" / "run.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["mutation", pytest.param("atheris", marks=pytest.mark.long)])
def test_a_run_names_target_engine_seed_runs_and_defects(tmp_path: Path, engine: str) -> None:
    if engine == "atheris" and find_spec("atheris") is None:
        pytest.skip("atheris is not installed")
    options = ("--engine", engine, "--runs", "40", "--seed", "7", "--out", str(tmp_path / "out"))
    code, words = run("--target", "uri", "statement", *options)
    assert code == 0, words
    found = re.findall(rf"^(\S+) +{engine} +seed 7 +([0-9]+) runs +0 defects", words, re.MULTILINE)
    assert found == [("uri", "16"), ("statement", "24")]
    assert not (tmp_path / "out").exists()


@pytest.mark.more
def test_an_input_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"capsule://x")
    assert run("--replay", "uri", str(path)) == (0, "uri: no defect\n")


@pytest.mark.more
def test_the_targets_are_listed() -> None:
    code, words = run("--list")
    assert code == 0, words
    names = set(re.findall(r"^\S+", words, re.MULTILINE))
    assert {"ledger", "bundle", "cap", "hook-codex", "transcript-cursor", "verbs"} <= names
