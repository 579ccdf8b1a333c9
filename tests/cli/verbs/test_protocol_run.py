"""`aver protocol run`: what a person sees who makes a mistake, or whose tests fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.aver_command import Aver

ROLES = {"planner": "planner", "worker": "executor", "critic": "critic", "auditor": "auditor"}


def write_task(folder: Path, check: str) -> Path:
    lines = ['objective = "the checks pass"']
    for name, role in ROLES.items():
        lines += [f"[roles.{name}]", f'role = "{role}"', 'use = "checks"']
        lines += [] if role == "auditor" else [f"options = {{checks = [{check}]}}"]
    (folder / "task.toml").write_text("\n".join(lines))
    return folder / "task.toml"


def test_a_wrong_option_begins_no_trace(tmp_path: Path, aver: Aver) -> None:
    task = write_task(tmp_path, '{name = "a/b", argv = ["true"]}')
    ran = aver("protocol", "run", task, "--workspace", tmp_path, "--trace", "t1")
    assert ran.code == 2, ran
    assert "checks[1].name" in ran.err
    ran = aver("protocol", "list", "--json")
    assert "t1" not in ran.out


@pytest.mark.more
def test_a_warning_of_the_audit_is_told(tmp_path: Path, aver: Aver) -> None:
    task = write_task(tmp_path, '{name = "unit", argv = ["python3", "-c", "raise SystemExit(1)"]}')
    ran = aver("protocol", "run", task, "--workspace", tmp_path, "--trace", "t1")
    assert ran.code == 0, ran
    assert "pass-with-warnings" in ran.out
    assert "CLAIM_UNPROVEN: " in ran.out
