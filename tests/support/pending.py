"""House rules that single files do not keep yet.

Each line names a test, a case and the reason. The case is expected to fail: once it holds, the test says so, and the
line goes. New lines need a reason that somebody works on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

PENDING: dict[str, dict[str, str]] = {}


def cases(test: str, values: Iterable[Any], name_of: Callable[[Any], str]) -> list[Any]:
    """The parameters of a house test; those that are pending are expected to fail, and must."""
    pending = PENDING.get(test, {})
    return [
        pytest.param(
            value,
            id=name_of(value),
            marks=[pytest.mark.xfail(strict=True, reason=pending[name_of(value)])] if name_of(value) in pending else [],
        )
        for value in values
    ]
