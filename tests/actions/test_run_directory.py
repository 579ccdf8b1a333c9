"""The directory of a sealed run: what lies beside the sealed files is compared with them, or named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import aver
from support.runs import SealedRun, make_sealed_run, packed


@pytest.fixture
def copy(sealed_run: SealedRun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed_run.path, tmp_path / "copy"))


def edit_identity(directory: Path, **changes: object) -> None:
    path = directory / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


CHANGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "other run": (lambda at: edit_identity(at, run_id="run_other"), "CHAIN_IDENTITY", "run.json"),
    "other chain": (lambda at: edit_identity(at, chain="actions.other"), "CHAIN_IDENTITY", "run.json"),
    "other ledger": (lambda at: edit_identity(at, ledger="x"), "CHAIN_IDENTITY", "run.json"),
    "no identity": (lambda at: (at / "run.json").write_text("[]"), "SCHEMA_INVALID", "run.json"),
    "no archive": (lambda at: (at / "run.cap").write_bytes(b"x"), "SCHEMA_INVALID", "run.cap"),
    "archive with a stranger's file": (
        lambda at: (at / "run.cap").write_bytes(packed({"x": b""})),
        "SCHEMA_INVALID",
        "run.cap",
    ),
    "archive without a file": (
        lambda at: (at / "run.cap").write_bytes(packed({"manifest.json": (at / "manifest.json").read_bytes()})),
        "ARTIFACT_HASH_MISMATCH",
        "run.cap",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_file_beside_the_sealed_ones_that_says_something_else(sealed_run: SealedRun, copy: Path, what: str) -> None:
    assert aver.verify(copy, keys=[sealed_run.key]).status == "verified"
    change, code, source = CHANGES[what]
    change(copy)
    verdict = aver.verify(copy, keys=[sealed_run.key])
    assert verdict.first_bad is not None
    assert (verdict.first_bad.code, verdict.first_bad.place.source) == (code, source)


def test_the_archive_of_another_run(sealed_run: SealedRun, copy: Path, tmp_path: Path) -> None:
    other = make_sealed_run(tmp_path / "other", actions=3, gated=())
    (copy / "run.cap").write_bytes(other.cap)
    verdict = aver.verify(copy, keys=[sealed_run.key])
    assert verdict.first_bad is not None
    assert (verdict.first_bad.code, verdict.first_bad.place.source) == ("ARTIFACT_HASH_MISMATCH", "run.cap")


def test_other_files_are_named(sealed_run: SealedRun, copy: Path) -> None:
    (copy / "notes.txt").write_text("x")
    (copy / "more").mkdir()
    (copy / "odd\x1b[31m").write_text("x")
    verdict = aver.verify(copy, keys=[sealed_run.key])
    assert verdict.status == "qualified"
    named = {one.place.source for one in verdict.findings if one.code == "UNLISTED_FILE"}
    assert named == {"notes.txt", "more", "'odd\\x1b[31m'"}


def test_the_files_alone_are_enough(sealed_run: SealedRun, copy: Path) -> None:
    for name in ("run.cap", "run.json"):
        (copy / name).unlink()
    assert aver.verify(copy, keys=[sealed_run.key]).status == "verified"
