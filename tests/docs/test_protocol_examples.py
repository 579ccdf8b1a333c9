"""The three examples of the protocol run as they stand, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.doc_pages import ROOT

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(shutil.which("git") is None, reason="the examples make repositories"),
]

EXAMPLES = ROOT / "examples" / "protocol"

SHOWN = {
    "reviewer.sh": [
        "1 possible secret on the added lines",
        "unit: 1 test: 1 passed, 0 failed",
        "completed, audit pass-with-warnings",
        "strict: fail",
        "wrote review.html",
    ],
    "operator.sh": [
        "killed in the state: executing",
        "OUTCOME_UNKNOWN: it is not known how the call ended",
        "unit: 2 tests: 1 passed, 1 failed",
        "completed, audit pass-with-warnings",
        "qualified: chain protocol.nightly",
    ],
    "compliance_lead.sh": [
        "challenge_resolved          dismissed",
        "completed, audit pass-with-warnings",
        "(settled)",
        "qualified: bundle bundle",
    ],
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.sh")} == set(SHOWN)
    page = (EXAMPLES / "README.md").read_text()
    assert [name for name in SHOWN if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_an_example_shows_what_it_is_for(name: str, tmp_path: Path, environment: dict[str, str]) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    stage = tmp_path / "stage"
    stage.mkdir()
    done = subprocess.run(
        ["sh", EXAMPLES / name],
        cwd=tmp_path,
        env={**environment, "PATH": path, "TMPDIR": str(stage)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in SHOWN[name]:
        assert words in done.stdout, done.stdout
    assert list(stage.iterdir()) == []
    assert not Path(environment["AVER_HOME"]).exists()
