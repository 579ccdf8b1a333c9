"""Loads modules of the standard library at their first use instead of at their import.

A hook never uses half of the modules that it would load. For example, `dataclasses` imports `inspect` only for error
messages, and `pathlib` imports `ipaddress`. `import_lazily` puts a placeholder into `sys.modules`. The placeholder
imports the real module when a program first reads an attribute of it.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

_ANSWERS: dict[str, dict[str, Any]] = {"platform": {"system": lambda: os.uname().sysname}}
"""Functions that a placeholder answers itself. `uuid` asks for the system's name as soon as it is imported."""


class _LazyModule(ModuleType):
    """A placeholder for a module that is not loaded yet."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # The import system reads these; that is no use of the module.
            raise AttributeError(name)
        from importlib import import_module

        del sys.modules[self.__name__]
        real = import_module(self.__name__)
        self.__dict__.update(real.__dict__)  # For modules that have already imported the placeholder.
        return getattr(real, name)


def import_lazily(*names: str) -> None:
    """Load these modules at their first use, unless they are loaded already. Packages are not supported."""
    for name in names:
        if name not in sys.modules:
            sys.modules[name] = placeholder = _LazyModule(name)
            placeholder.__dict__.update(_ANSWERS.get(name, {}))
