"""Confined calls: what a hook gives the agent instead of a test or a build, and what the records say about it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from aver.gate import confinement
from support.hook_calls import SESSION, fire, sealed, settings


@pytest.fixture(autouse=True)
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether bubblewrap is installed here does not matter: nothing is run."""
    monkeypatch.setattr(confinement, "find_wrapper", lambda: "/usr/bin/bwrap")


def question(workspace: Path, command: str, **more: Any) -> dict[str, Any]:
    return {
        "session_id": SESSION,
        "cwd": str(workspace),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "run the tests", "timeout": 60000},
        "tool_use_id": "toolu_1",
        "permission_mode": "default",
        **more,
    }


def updated(out: str) -> dict[str, Any] | None:
    return json.loads(out)["hookSpecificOutput"].get("updatedInput") if out else None


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_a_build_is_replaced_and_still_left_to_the_agents_own_rules(workspace: Path, aver_home: Path) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    reply = fire("claude-code", "PreToolUse", question(workspace, "pytest -q"))
    answer = json.loads(reply.out)["hookSpecificOutput"]
    assert "permissionDecision" not in answer
    given = answer["updatedInput"]
    assert {name: given[name] for name in given if name != "command"} == {
        "description": "run the tests",
        "timeout": 60000,
    }
    words = shlex.split(given["command"])
    assert words[1:] == ["confine", "--workspace", str(workspace), "--", "pytest -q"]
    assert Path(words[0]).name == "aver"


def test_the_record_holds_both_commands_and_the_call_finds_its_decision(workspace: Path, aver_home: Path) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    given = updated(fire("claude-code", "PreToolUse", question(workspace, "pytest -q")).out)
    assert given is not None
    (decision,) = sealed(f"gate.{SESSION}")
    result = decision["outcome"]["result"]
    assert result["action"]["arguments"]["command"] == "pytest -q"
    assert result["confined"]["command"] == given["command"]
    assert result["answer"] == "leave"
    done = question(workspace, "", tool_input=given, tool_response={"stdout": "1 passed", "stderr": ""})
    fire("claude-code", "PostToolUse", {**done, "hook_event_name": "PostToolUse"})
    (call,) = sealed(f"claude-code.{SESSION}")
    assert call["context"]["environment"]["aver"]["refs"]["decision"] == decision["id"]
    assert call["authority"]["type"] == "policy"
    assert call["execution"]["tool_calls"][0]["arguments"]["command"] == given["command"]


@pytest.mark.parametrize(
    "command", ["ls", "git status", "curl https://example.org", "rm -rf build", "npm ci", "git fetch"]
)
def test_other_commands_stay_as_they_are(workspace: Path, aver_home: Path, command: str) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    assert updated(fire("claude-code", "PreToolUse", question(workspace, command)).out) is None


def test_without_a_wrapper_the_person_is_asked(
    workspace: Path, aver_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement, "find_wrapper", lambda: None)
    settings(aver_home, '[gate]\nconfine = "build"\n')
    answer = json.loads(fire("claude-code", "PreToolUse", question(workspace, "pytest -q")).out)["hookSpecificOutput"]
    assert answer["permissionDecision"] == "ask"
    assert "bwrap is not installed" in answer["permissionDecisionReason"]
    assert sealed(f"gate.{SESSION}")[0]["outcome"]["result"]["answer"] == "ask"


@pytest.mark.parametrize("text", ["", '[gate]\nconfine = "off"\n', '[gate]\nconfine = "build"\nmode = "observe"\n'])
def test_nothing_is_confined_unless_a_person_chose_so(workspace: Path, aver_home: Path, text: str) -> None:
    settings(aver_home, text)
    assert fire("claude-code", "PreToolUse", question(workspace, "pytest -q")).out == ""


def test_an_agent_that_cannot_be_given_another_command_keeps_its_own(workspace: Path, aver_home: Path) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    asked = question(workspace, "pytest -q", turn_id="t", model="m")
    assert "updatedInput" not in fire("codex", "PreToolUse", asked).out
    assert "confined" not in sealed(f"gate.{SESSION}")[0]["outcome"]["result"]


def test_a_wrong_value_lets_nothing_pass(workspace: Path, aver_home: Path) -> None:
    settings(aver_home, '[gate]\nconfine = "everything"\n')
    reply = fire("claude-code", "PreToolUse", question(workspace, "ls"))
    assert '"deny"' in reply.out
    assert "confine must be one of off, build" in reply.out + reply.err


def test_a_secret_in_the_command_is_masked_in_both(workspace: Path, aver_home: Path) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    secret = "ghp_" + "a1B2" * 9
    fire("claude-code", "PreToolUse", question(workspace, f"pytest -q -k {secret}"))
    text = json.dumps(sealed(f"gate.{SESSION}"))
    assert secret not in text


@pytest.mark.parametrize(
    "command",
    [
        "pytest > /tmp/out.txt",
        "pytest 2>&1 | tee /tmp/log",
        "git stash && pytest",
        "pytest; git stash pop",
        "go build -o app",
        "mkdir -p build && make test",
        "git restore --staged a.py; npm test",
        "touch a && pytest",
        "git switch -c new && pytest",
        "pytest --junitxml=report.xml",
    ],
)
def test_nothing_harmless_beside_a_build_keeps_it_from_being_confined(
    workspace: Path, aver_home: Path, command: str
) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    given = updated(fire("claude-code", "PreToolUse", question(workspace, command)).out)
    assert given is not None
    assert shlex.split(given["command"])[-1] == command


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "command",
    [
        "curl localhost:3000 && pytest",
        "git fetch && make test",
        "npm ci && npm test",
        "gh pr view 3; pytest",
        "pip install -e . && pytest",
        "nc -z localhost 3000; pytest",
        "uv sync; make",
        "docker ps && pytest",
        "kubectl get pods; npm test",
        "pytest && git fetch origin",
    ],
)
def test_a_build_that_cannot_be_confined_is_asked_about(workspace: Path, aver_home: Path, command: str) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    answer = json.loads(fire("claude-code", "PreToolUse", question(workspace, command)).out)["hookSpecificOutput"]
    assert answer["permissionDecision"] == "ask"
    assert "updatedInput" not in answer
    (decision,) = sealed(f"gate.{SESSION}")
    assert decision["outcome"]["result"]["answer"] == "ask"


def test_the_call_gets_no_argument_that_it_had_not(workspace: Path, aver_home: Path) -> None:
    settings(aver_home, '[gate]\nconfine = "build"\n')
    (workspace / "sub").mkdir()
    asked = question(workspace, "pytest -q", cwd=str(workspace / "sub"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_PROJECT_DIR", str(workspace))
        given = updated(fire("claude-code", "PreToolUse", asked).out)
    assert given is not None
    assert given.keys() == asked["tool_input"].keys()
