"""House rules that single files do not keep yet.

Each line names a test, a case and the reason. The case is expected to fail: once it holds, the test says so, and the
line goes. New lines need a reason that somebody works on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from support.many_cases import for_each

PENDING: dict[str, dict[str, str]] = {}


def hold_for_each(test: str, values: Iterable[Any], name_of: Callable[[Any], str]) -> Any:
    """Make one house test for all values; those that are pending are expected to fail, and must."""
    return for_each(values, name_of, PENDING.get(test, {}).keys())
