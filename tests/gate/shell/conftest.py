"""The tests of the shell reader need the second parser."""

from __future__ import annotations

import pytest

pytest.importorskip("tree_sitter_bash", reason="the parser of commands is not installed")
