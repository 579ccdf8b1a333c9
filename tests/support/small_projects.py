"""Small git repositories with checks of their own, for tests that run traces on them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

TAP_TESTS = """\
from shop import total

CASES = {"adds": total([1, 2]) == 3, "nothing": total([]) == 0, "one": total([4]) == 4}
print(f"1..{len(CASES)}")
for number, (name, good) in enumerate(CASES.items(), 1):
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
raise SystemExit(0 if all(CASES.values()) else 1)
"""

OPTIONS: dict[str, Any] = {"checks": [{"name": "unit", "argv": ["python3", "tests.py"], "report": "tap"}]}
"""The option of the role `checks` for such a project. It needs nothing but Python."""


def git(where: Path, *words: str) -> str:
    """Run git, as somebody."""
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *settings, *words], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_project(root: Path, body: str = "return sum(prices)") -> Path:
    """A repository with a function and three tests for it, which report in TAP."""
    root.mkdir()
    (root / "shop.py").write_text(f"def total(prices):\n    {body}\n")
    (root / "tests.py").write_text(TAP_TESTS)
    (root / ".gitignore").write_text("__pycache__/\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def task_text(**roles: str) -> str:
    """A task file for such a project. `roles` replaces lines of a role, such as `critic="waits = true"`."""
    lines = ['objective = "all tests pass"']
    for role in ("planner", "executor", "critic", "auditor"):
        options = 'options = {checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}'
        lines += [f"[roles.{role}]", f'role = "{role}"', roles.get(role, f'use = "checks"\n{options}')]
    return "\n".join(lines) + "\n"
