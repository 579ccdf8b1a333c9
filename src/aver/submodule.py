"""Loads one module of an installed package without the package's own code.

Some packages load all of their modules at once. A hook needs one of them, and its start-up would wait for the others.

    >>> load_submodule("json", "scanner").__name__
    'json.scanner'
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType

__all__ = ["load_submodule"]


def load_submodule(package: str, name: str) -> ModuleType:
    """Return the module `package.name`. Raises `ImportError` where there is none.

    The module must import nothing of its package by a relative name. A module or package that is loaded already is
    used as it is. Nothing is put into `sys.modules`, so a later import of the package loads all of it as usual.
    """
    whole = f"{package}.{name}"
    if whole not in sys.modules and package not in sys.modules:
        found = find_spec(package)
        places = None if found is None else found.submodule_search_locations
        spec = None if places is None else PathFinder.find_spec(whole, places)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return import_module(whole)
