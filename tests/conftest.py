"""What all tests share: a home of their own, a ledger in it, and how hard hypothesis tries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from aver import Ledger, open_ledger

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
sys.path.insert(0, str(HERE))  # for `strategies` and the other modules that tests share

settings.register_profile(
    "aver",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
settings.load_profile("aver")


@pytest.fixture(autouse=True)
def aver_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the settings, keys or ledger of whoever runs it. The home does not exist yet."""
    home = tmp_path / "aver-home"
    monkeypatch.setenv("AVER_HOME", str(home))
    monkeypatch.delenv("AVER_LEDGER", raising=False)
    return home


@pytest.fixture
def ledger(aver_home: Path) -> Iterator[Ledger]:
    with open_ledger() as opened:
        yield opened


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The published vectors, which lie beside the repository and are never copied into it."""
    found = REPOSITORY.parent / "shared" / "vectors" / "cps"
    if not found.is_dir():
        pytest.skip("the published vectors are not beside this checkout")
    return found
