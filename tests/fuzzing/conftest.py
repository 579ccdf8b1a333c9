"""The fuzzer lies beside the tests, as the benchmarks do. Its honest things are made once for all tests of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.bare_machine import bare_machine

if TYPE_CHECKING:
    from fuzz.honest import HonestThings

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

__all__ = ["bare_machine"]


@pytest.fixture(scope="module")
def things() -> Iterator[HonestThings]:
    from fuzz.honest import honest_things

    with honest_things() as made:
        yield made
