"""Modules of `bench/` that tests hold, too. They are loaded by file: some have the names of folders of tests."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

BENCH = Path(__file__).resolve().parents[2] / "bench"


def load_bench_module(name: str) -> ModuleType:
    """Load a module of `bench/`."""
    spec = spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


masking_rules = load_bench_module("masking_rules")
"""The maker of the table of masking rules."""
risk_report = load_bench_module("risk_report")
"""The evaluation of the risk model on a history."""
