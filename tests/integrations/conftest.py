"""What the integrations verify: a bundle of a ledger, a checkpoint of it, and its keys, in a directory of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, open_ledger
from aver.keys import build_key_export
from aver.ledger.bundle import export_bundle
from aver.ledger.checkpoint import make_checkpoint
from aver.ledger.checkpoint_files import append_checkpoint, history_path, to_checkpoint_line

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Evidence:
    """A repository with evidence in it, as a person would keep it."""

    directory: Path
    bundle: Path
    keys: Path
    checkpoint: Path
    history: Path

    def run(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """A command in the repository, by someone who has no keys and no ledger, with this Aver installed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AVER_", "GITHUB_"))}
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        alone = {**kept, "PATH": path, "AVER_HOME": str(self.directory / "no-home"), **environment}
        return subprocess.run(command, cwd=self.directory, env=alone, capture_output=True, text=True, check=False)

    def tamper(self) -> None:
        """Change what one record of the bundle says."""
        path = self.bundle / "notes.today.json"
        chain: Any = json.loads(path.read_text())
        record = chain["capsules"][1]
        record["canonical"] = record["canonical"].replace("ran the tests", "ran no tests")
        path.write_text(json.dumps(chain))


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    directory = tmp_path / "repository"
    (directory / ".git").mkdir(parents=True)
    with open_ledger() as ledger:
        for _ in range(3):
            ledger.append("notes.today", Capsule(type="tool", outcome={"summary": "ran the tests"}))
        ledger.sweep()
        bundle = export_bundle(ledger, directory / "bundle").path
        keys = directory / "keys.json"
        keys.write_text(json.dumps(build_key_export(ledger.keys.ring().entries)))
        checkpoint = directory / "heads.json"
        checkpoint.write_bytes(to_checkpoint_line(make_checkpoint(ledger)))
        append_checkpoint(directory, ledger)
        return Evidence(directory, bundle, keys, checkpoint, history_path(directory, ledger))
