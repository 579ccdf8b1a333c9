"""The maker of the table of masking rules, `bench/masking_rules.py`: only developers need it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from masking_rules import PART, RULES, RUN_CHARACTERS, build_table

__all__ = ["PART", "RULES", "RUN_CHARACTERS", "build_table"]
