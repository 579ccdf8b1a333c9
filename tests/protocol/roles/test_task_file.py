"""Task files are read strictly, and every error names the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aver.errors import BadInput, NotFound
from aver.protocol.roles.task_file import TASK_MAX, RoleSpec, read_task, read_task_file

TASK = """\
objective = "All checks pass"
constraints = ["change nothing"]
policy_profile = "strict"
max_tool_calls = 5

[bounds]
attempts = 2

[roles.planner]
role = "planner"
use = "checks"

[roles.worker]
role = "executor"
use = "checks"
options = {checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}

[roles.judge]
role = "critic"
command = ["python3", "critic.py"]

[roles.auditor]
role = "auditor"
waits = true
"""


def test_a_task_in_toml(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(TASK)
    found = read_task_file(tmp_path / "task.toml")
    assert found.task == {
        "objective": "All checks pass",
        "constraints": ["change nothing"],
        "policy_profile": "strict",
        "max_tool_calls": 5,
        "bounds": {"attempts": 2},
    }
    assert [(spec.agent, spec.role, spec.source) for spec in found.roles] == [
        ("agent:planner", "planner", "use"),
        ("agent:worker", "executor", "use"),
        ("agent:judge", "critic", "command"),
        ("agent:auditor", "auditor", "waits"),
    ]
    assert found.roles[1].options["checks"][0]["name"] == "unit"


def test_a_task_needs_only_its_objective(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text('{"objective": "all checks pass"}')
    found = read_task_file(tmp_path / "task.json")
    assert found.task == {"objective": "all checks pass"}
    assert [spec.role for spec in found.roles] == ["planner", "executor", "critic", "auditor"]
    assert {spec.value for spec in found.roles} == {"checks"}


def test_a_role_is_written_as_it_was_read() -> None:
    given = {"role": "executor", "use": "review", "options": {"range": "main..HEAD"}}
    spec = RoleSpec("agent:a", "executor", "use", "review", {"range": "main..HEAD"})
    assert spec.to_dict() == given


def roles(**changed: Any) -> dict[str, Any]:
    found = {role: {"role": role, "use": "checks"} for role in ("planner", "executor", "critic")}
    return {"objective": "x", "roles": {**found, **changed}}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "must be an object"),
        ({}, "has no objective"),
        ({"objective": " "}, "has no objective"),
        ({"objective": 7}, "objective must be a text"),
        ({"objective": "x", "max_tool_call": 5}, "unknown field 'max_tool_call'"),
        ({"objective": "x", "max_tool_calls": True}, "max_tool_calls must be a whole number"),
        ({"objective": "x", "tags": [1]}, "tags must be a list of texts"),
        ({"objective": "x", "roles": []}, "roles must be a table"),
        (
            {"objective": "x", "roles": {"a": {"role": "critic", "use": "checks"}}},
            "nobody has the role planner, executor",
        ),
        (roles(**{"a b": {"role": "critic", "use": "checks"}}), "as a name"),
        (roles(judge={"role": "judge", "use": "checks"}), "roles.judge.role must be one of"),
        (roles(judge={"role": "critic"}), "exactly one of use, command, python, waits"),
        (roles(judge={"role": "critic", "use": "checks", "waits": True}), "exactly one of"),
        (roles(judge={"role": "critic", "use": "magic"}), "must be one of checks, review"),
        (roles(judge={"role": "critic", "waits": "yes"}), "must be true"),
        (roles(judge={"role": "critic", "python": "os.system"}), "module:function"),
        (roles(judge={"role": "critic", "command": "python3 x"}), "a list of words"),
        (roles(judge={"role": "critic", "command": []}), "a list of words"),
        (roles(judge={"role": "critic", "command": ["a\0"]}), "a list of words"),
        (roles(judge={"role": "critic", "command": ["a"], "options": {"x": 1}}), "options"),
        (roles(judge={"role": "critic", "use": "checks", "comand": ["a"]}), "unknown field 'comand'"),
    ],
)
def test_a_wrong_task_names_the_field(document: Any, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_task(document, "task.json")
    assert words in str(caught.value)
    assert "task.json" in str(caught.value)


def test_files_that_are_no_task(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("objective = ")
    (tmp_path / "a.json").write_text('{"objective": "a", "objective": "b"}')
    (tmp_path / "a.yaml").write_text("objective: a")
    (tmp_path / "big.json").write_text(json.dumps({"objective": "x" * TASK_MAX}))
    for name, words in (
        ("a.toml", "not TOML"),
        ("a.json", "a.json"),
        ("a.yaml", ".toml or .json"),
        ("big.json", "big"),
    ):
        with pytest.raises(BadInput, match=words):
            read_task_file(tmp_path / name)
    with pytest.raises(NotFound):
        read_task_file(tmp_path / "none.toml")
