"""Modules of the standard library that are loaded when somebody uses them, and not when somebody imports them.

Half of what a hook would load it never uses: `dataclasses` imports `inspect` for the sake of error messages, `pathlib`
brings `ipaddress`, a parser's package brings `tempfile` and through it compression. A name that `load_later` was given
stands in `sys.modules` for the module, and becomes it at the first look at anything in it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["import_lazily"]


class _LazyModule(ModuleType):
    """Stands for a module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # What the import system asks every module for is no use of it.
            raise AttributeError(name)
        from importlib import import_module

        del sys.modules[self.__name__]
        real = import_module(self.__name__)
        self.__dict__.update(real.__dict__)  # For those who hold this name for it.
        return getattr(real, name)


def import_lazily(*names: str) -> None:
    """Have these modules load at their first use, as far as they are not loaded yet. No packages."""
    for name in names:
        if name not in sys.modules:
            sys.modules[name] = _LazyModule(name)
