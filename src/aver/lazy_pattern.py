"""Regular expressions that are compiled at their first use.

A hook loads some 150 patterns and needs a few of them. Compiling them all takes longer than deciding.

    >>> DIGITS = lazy_pattern("[0-9]+")
    >>> DIGITS.fullmatch("2026") is not None
    True
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["lazy_pattern"]


class _LazyPattern:
    """Stands for a compiled pattern. Each method is fetched once and kept, so later calls cost nothing more."""

    def __init__(self, source: Any, flags: int = 0) -> None:
        self._arguments = (source, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Copying and pickling ask for these. A half-made copy has no arguments yet.
            raise AttributeError(name)
        value = getattr(re.compile(*self._arguments), name)
        setattr(self, name, value)
        return value

    def __reduce__(self) -> Any:
        return _LazyPattern, self._arguments


if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:
    lazy_pattern = _LazyPattern
