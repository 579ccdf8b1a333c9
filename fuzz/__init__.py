"""Hostile input to every parser and every verb: `make fuzz`. See `fuzz/run.py`."""

import sys
from pathlib import Path

_TESTS = str(Path(__file__).resolve().parent.parent / "tests")
if _TESTS not in sys.path:  # Honest things are made with the same modules as in the tests.
    sys.path.append(_TESTS)
