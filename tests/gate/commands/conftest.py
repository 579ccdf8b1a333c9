"""The tests of commands share the module that reads the corpus, and need the second parser."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

pytest.importorskip("tree_sitter_bash", reason="the parser of commands is not installed")
