"""Access to Cedar: the package, the schema that rules must fit, and the `PolicyRule` value."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any, Literal

from aver.errors import Unavailable
from aver.fast_dataclass import dataclass

__all__ = ["SCHEMA_FILE", "PolicyRule", "load_cedar", "load_schema"]

SCHEMA_FILE = Path(__file__).with_name("schema.cedarschema")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule, and the reason that it gives when it decides."""

    id: str
    effect: Literal["permit", "forbid"]
    reason: str
    file: str
    line: int = 0
    """The line where it begins; 0 if that is not known."""


@cache
def load_cedar() -> Any:
    """Import cedarpy. Raises Unavailable if it is not installed."""
    _load_lazily("cedarpy", "pst")
    try:
        import cedarpy
    except ImportError as error:
        raise Unavailable("policies need the package cedarpy", advice='pip install "aver[policy]"') from error
    return cedarpy


def _load_lazily(package: str, module: str) -> None:
    """Make a package's module load at its first use.

    `cedarpy.pst` takes longer to import than the rest of cedarpy, and Aver does not use its syntax trees.
    """
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    name = f"{package}.{module}"
    whole = find_spec(package) if name not in sys.modules else None
    spec = PathFinder.find_spec(name, whole.submodule_search_locations) if whole is not None else None
    if spec is None or spec.loader is None:
        return
    lazy, loader = module_from_spec(spec), spec.loader

    def load(attribute: str) -> Any:
        del lazy.__getattr__
        loader.exec_module(lazy)
        return getattr(lazy, attribute)

    lazy.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = lazy


@cache
def load_schema() -> Any:
    return load_cedar().Schema.from_str(SCHEMA_FILE.read_text(encoding="utf-8"))
