"""The version of the readers changes with the code that decides, so that honest old decisions are not called forged."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import aver.gate
from aver.gate.effects.known_agents import READERS_VERSION

GATE = Path(aver.gate.__file__).parent

SOURCES = (
    *("effects", "shell", "decide.py", "facts/session_state.py", "policy/query.py", "policy/standing_rules.py"),
    *("risk/diff.py", "risk/diff_model.py", "risk/estimate.py", "risk/features.py", "risk/model.py"),
)
"""The code whose result a decision's record holds: what replay computes again."""

RECORDED = (7, "26edbec35d78bcae")
"""The version of the readers, and the digest of their code at that version."""


def digest_of_code() -> str:
    """SHA-256 over the lines of code, without comments, docstrings and blank lines."""
    found = hashlib.sha256()
    for name in SOURCES:
        place = GATE / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            text = path.read_text(encoding="utf-8")
            words = {line for node in ast.walk(ast.parse(text)) for line in _lines_of_bare_text(node)}
            lines = (line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in words)
            code = "\n".join(line for line in lines if line and not line.startswith("#"))
            found.update(f"{path.relative_to(GATE)}\n{code}\n".encode())
    return found.hexdigest()[:16]


def _lines_of_bare_text(node: ast.AST) -> range:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return range(0)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1) if isinstance(node.value.value, str) else range(0)


def test_the_version_is_raised_with_the_code() -> None:
    found = (READERS_VERSION, digest_of_code())
    assert found == RECORDED, (
        f"the code that decides has changed to {found[1]}. If the same action may get another decision, raise "
        "READERS_VERSION: else `aver verify` calls honest old decisions forged. Then record both here."
    )
