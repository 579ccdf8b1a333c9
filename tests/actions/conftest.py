"""A sealed run to take apart, made once, with keys of its own."""

from __future__ import annotations

import pytest

from support.runs import SealedRun, make_sealed_run


@pytest.fixture(scope="session")
def sealed_run(tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    """Twelve actions, three of them gated. Nobody may write to it: copy what is to be changed."""
    return make_sealed_run(tmp_path_factory.mktemp("sealed"))
