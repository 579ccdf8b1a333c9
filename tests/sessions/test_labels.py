"""What is told of a call is told once, in words for people."""

from __future__ import annotations

from typing import Any

import pytest

from aver.sessions.labels import LabelledText, labelled_texts, result_texts, shorten_arguments, step_error, step_summary
from aver.sessions.step import Step

FAILED = Step(what="call", summary="Bash: pytest -q (exit 1)", error="exit code 1", status="failure")


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (FAILED, ""),
        (Step(what="call", summary="Bash: pytest -q (exit 1)", error="Exit code 1"), ""),
        (Step(what="call", summary="Bash: pytest -q (exit 1)", error="exit code 12"), "exit code 12"),
        (Step(what="call", summary="Bash: pytest -q", error="exit code 1"), "exit code 1"),
        (Step(what="call", summary="Bash: ls", error="OUTCOME_UNKNOWN"), ""),
        (Step(what="call", summary="Bash: ls", error="no such file"), "no such file"),
        (Step(what="call", summary="Bash: ls"), ""),
    ],
)
def test_an_exit_code_that_the_line_tells_is_no_error_of_its_own(step: Step, error: str) -> None:
    assert step_error(step) == error


@pytest.mark.parametrize(
    ("step", "result", "parts"),
    [
        (FAILED, {"output": "1 failed", "exit_code": 1}, [LabelledText("", "1 failed")]),
        (
            Step(what="call", summary="Bash: ls"),
            {"stdout": "a", "exit_code": 0},
            [LabelledText("", "a"), LabelledText("", "exit code 0", aside=True)],
        ),
        (
            Step(what="call", summary="execute_command: pytest -q"),
            {"result": "Command executed.\nOutput:\n3 passed", "output": "3 passed"},
            [LabelledText("result", "Command executed.\nOutput:\n3 passed")],
        ),
        (
            Step(what="call", summary="Bash: x"),
            {"stderr": "b is bad", "stdout": "a\nb"},
            [LabelledText("", "a\nb"), LabelledText("stderr", "b is bad")],
        ),
        (Step(what="call", summary="x", error="no"), "no", []),
        (
            Step(what="call", summary="run_commands: ls"),
            {"query": "ls", "output": "a", "success": True, "duration": 3},
            [LabelledText("", "a"), LabelledText("", "duration 3", aside=True)],
        ),
        (
            Step(what="call", summary="editor: /w/a.py (+1/-0)", error="gone", status="failure"),
            {"query": "edit:/w/a.py", "output": "", "success": False, "error": "gone"},
            [],
        ),
    ],
)
def test_nothing_is_told_twice(step: Step, result: Any, parts: list[LabelledText]) -> None:
    assert list(result_texts(step, result)) == parts


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (Step(what="call", summary="Bash: rm x (denied)", status="blocked"), "denied: Bash: rm x"),
        (Step(what="call", summary="Bash", call="Bash", arguments={"command": "rm x"}), "Bash: rm x"),
        (
            Step(what="call", summary="Bash", call="Bash", arguments={"command": "rm x"}, status="blocked"),
            "denied: Bash: rm x",
        ),
        (Step(what="call", summary="Bash: echo (denied)", status="success"), "Bash: echo (denied)"),
    ],
)
def test_the_line_of_a_call(step: Step, line: str) -> None:
    assert step_summary(step) == line


def test_of_several_things_done_in_one_call_each_is_told_with_what_came_of_it() -> None:
    done = [
        {"query": "cat a", "result": "one\ntwo\n", "success": True},
        {"query": "touch b", "result": "", "success": True},
        {"query": "ls x", "result": "[exit 2]", "success": False, "error": "it failed"},
        {"query": "c.png", "result": [{"type": "image"}], "success": True},
    ]
    assert list(labelled_texts(done)) == [
        LabelledText("cat a", "one\ntwo\n"),
        LabelledText("touch b", ""),
        LabelledText("ls x (failed)", "[exit 2]\nit failed"),
        LabelledText("c.png", '[{"type": "image"}]'),
    ]
    assert next(labelled_texts([*done, {"query": 7}])).aside, "anything else is shown as it is"


def test_several_commands_are_short_as_a_shell_has_them() -> None:
    assert shorten_arguments({"commands": ["ls -l", "cat a"]}) == "ls -l; cat a"
    assert shorten_arguments({"commands": ["ls", 7]}) == '{"commands": ["ls", 7]}'
    assert shorten_arguments({"command": ["ls", "a"]}) == '{"command": ["ls", "a"]}'
