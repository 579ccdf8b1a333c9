"""The demo's coding session: every agent mends the same rounding of a sum. It looks, edits, and runs the tests.

`agents/<name>/demo.py` writes this session in the form and at the place in which that agent would write it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PROMPT = "Make totals round half up, and run the tests"
FILE = "/work/shop/totals.py"
OLD, NEW = "    return round(total, 2)", "    return half_up(total)"
TEST_OUTPUT = "3 passed in 0.02s"
TIME_PREFIX = "2026-05-31T09:0"
"""The beginning of every timestamp: minute and second follow."""

Json = Mapping[str, Any]


def write_lines(path: Path, records: Iterable[Json]) -> None:
    """Write records as JSON Lines into a new directory."""
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
