"""A sealed run to take apart, made once, with keys of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `runs` and the other modules that these tests share
sys.path.append(str(Path(__file__).parent.parent / "faults"))  # for `small_disk`
sys.path.append(str(Path(__file__).parent.parent / "gate" / "approvals"))  # for `approving`

from runs import SealedRun, make_sealed_run


@pytest.fixture(scope="session")
def sealed_run(tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    """Twelve actions, three of them gated. Nobody may write to it: copy what is to be changed."""
    return make_sealed_run(tmp_path_factory.mktemp("sealed"))
