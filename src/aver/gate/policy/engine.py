"""Cedar itself: the package, the schema that rules are held to, and a rule as the rest of the room knows it."""

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
    """One rule, and what it says when it decides."""

    id: str
    effect: Literal["permit", "forbid"]
    reason: str
    file: str
    line: int = 0
    """Where it begins; 0 where that is not known."""


@cache
def load_cedar() -> Any:
    """The package that decides, imported only by who needs it."""
    _load_lazily("cedarpy", "pst")
    try:
        import cedarpy
    except ImportError as error:
        raise Unavailable("policies need the package cedarpy", advice='pip install "aver[policy]"') from error
    return cedarpy


def _load_lazily(package: str, module: str) -> None:
    """Let a package's module be loaded when it is first used. This one takes longer than the rest of the package, and
    has syntax trees, which nobody here asks for."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    name = f"{package}.{module}"
    whole = find_spec(package) if name not in sys.modules else None
    spec = PathFinder.find_spec(name, whole.submodule_search_locations) if whole is not None else None
    if spec is None or spec.loader is None:
        return
    later, loader = module_from_spec(spec), spec.loader

    def load(attribute: str) -> Any:
        del later.__getattr__
        loader.exec_module(later)
        return getattr(later, attribute)

    later.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = later


@cache
def load_schema() -> Any:
    return load_cedar().Schema.from_str(SCHEMA_FILE.read_text(encoding="utf-8"))
