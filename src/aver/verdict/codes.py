"""The codes of findings. Python, the page and the docs all read them from `codes.json`."""

from __future__ import annotations

from functools import cache

import orjson

from aver.fast_dataclass import dataclass

__all__ = ["FindingCode", "load_codes"]


@dataclass(frozen=True, slots=True)
class FindingCode:
    """A code, what it means, and what to do about it."""

    name: str
    meaning: str
    advice: str


@cache
def load_codes() -> dict[str, FindingCode]:
    """All codes, by name."""
    from importlib.resources import files  # Here, because it takes long to load and most verdicts explain nothing.

    raw = orjson.loads(files("aver.verdict").joinpath("codes.json").read_bytes())
    return {name: FindingCode(name, entry["meaning"], entry["advice"]) for name, entry in raw.items()}
