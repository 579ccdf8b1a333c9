"""Tool calls as questions: edits become diffs, and nothing is read that must not be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from aver.hooks.action import build_action, diff_for_edit


def test_texts_that_are_replaced() -> None:
    given = {"file_path": "/work/src/a.py", "old_string": "a\nb\n", "new_string": "a\nc\n"}
    diff = diff_for_edit("Edit", given, "/work")
    assert diff == "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


def test_several_in_one_file_are_one_change() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    diff = diff_for_edit("MultiEdit", {"file_path": "/work/a.py", "edits": edits}, "/work")
    assert diff is not None
    assert (diff.count("--- "), diff.count("@@ -"), diff.count("\n-")) == (1, 2, 2)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"file_path": 7, "old_string": "a", "new_string": "b"},
        {"file_path": "/work/a.py", "old_string": "a"},
        {"file_path": "/work/a.py", "old_string": ["a"], "new_string": "b"},
    ],
)
def test_what_does_not_say_what_changes_has_no_diff(given: dict[str, Any]) -> None:
    assert diff_for_edit("Edit", given, "/work") is None


def test_a_file_that_is_written_whole_is_held_to_what_stands_there(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    diff = diff_for_edit("Write", {"file_path": str(tmp_path / "a.py"), "content": "x = 1\ny = 3\n"}, str(tmp_path))
    assert diff == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
    diff = diff_for_edit("Write", {"file_path": str(tmp_path / "new.py"), "content": "x\n"}, str(tmp_path))
    assert diff == "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n"


def test_a_new_empty_file_is_shown(tmp_path: Path) -> None:
    arguments = {"file_path": str(tmp_path / "pkg/__init__.py"), "content": ""}
    assert diff_for_edit("Write", arguments, str(tmp_path)) == "--- /dev/null\n+++ b/pkg/__init__.py\n"


def test_a_file_that_is_emptied_is_not_shown_as_a_new_one(tmp_path: Path) -> None:
    inside, outside = tmp_path / "work", tmp_path / "outside.txt"
    inside.mkdir()
    outside.write_text("full\n")
    (inside / "a.py").write_text("full\n")
    (inside / "link.txt").symlink_to(outside)
    (inside / ".env").write_text("full\n")
    for name in ("link.txt", ".env", "../outside.txt"):
        assert diff_for_edit("Write", {"file_path": f"{inside}/{name}", "content": ""}, str(inside)) is None
    assert diff_for_edit("Write", {"file_path": "a.py", "content": ""}, "") is None
    removal = diff_for_edit("Write", {"file_path": f"{inside}/a.py", "content": ""}, str(inside))
    assert removal == "--- a/a.py\n+++ b/a.py\n@@ -1 +0,0 @@\n-full\n"


def test_what_must_not_be_read_is_not(tmp_path: Path) -> None:
    inside, outside = tmp_path / "work", tmp_path / "outside.txt"
    inside.mkdir()
    outside.write_text("not for the ledger\n")
    (inside / "link.txt").symlink_to(outside)
    (inside / ".env").write_text("not for the ledger\n")
    os.mkfifo(inside / "pipe")
    for name in ("link.txt", ".env", "pipe", "../outside.txt"):
        diff = diff_for_edit("Write", {"file_path": f"{inside}/{name}", "content": "x\n"}, str(inside))
        # Aver cannot compare with a pipe, so it shows no diff, and the change is asked about.
        assert (diff is None) == (name == "pipe")
        assert "not for the ledger" not in (diff or "")


def test_where_a_command_runs_is_said_only_if_it_is_elsewhere() -> None:
    def arguments(tool: str, cwd: str) -> Any:
        given = {"command": "ls"} if tool == "Bash" else {"file_path": "a"}
        return build_action(tool, given, agent="c", session="s", workspace="/work", cwd=cwd).arguments

    assert arguments("Bash", "/work") == {"command": "ls"}
    assert arguments("Bash", "/work/inner") == {"command": "ls", "cwd": "/work/inner"}
    assert arguments("Read", "/work/inner") == {"file_path": "a"}


@pytest.mark.parametrize(
    ("tool", "sort"),
    [
        ("Bash", "shell_exec"),
        ("Read", "file_read"),
        ("Glob", "file_read"),
        ("WebFetch", "tool_call"),
        ("x", "tool_call"),
    ],
)
def test_the_type_of_an_action(tool: str, sort: str) -> None:
    assert build_action(tool, {}, agent="c", session="s", workspace="/work").type == sort
