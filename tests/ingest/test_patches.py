"""Patches become unified diffs; nothing that is none does, and nothing raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.diffs import count_changed_lines
from aver.ingest.patches import patch_from_changes, read_patch
from support.agents.codex_rollouts import PATCH


def patch_of(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def test_a_patch_becomes_one_diff_of_all_its_files() -> None:
    patch = read_patch(PATCH)
    assert patch is not None
    assert patch.changes == (("edited", "http.py"), ("wrote", "notes.txt"))
    assert patch.diff == (
        "--- a/http.py\n+++ b/http.py\n@@ -?,1 +?,1 @@ def get():\n-    return go()\n+    return retry(go)\n"
        "--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    )
    assert count_changed_lines(patch.diff) == (3, 1)


def test_hunks_say_how_many_lines_they_hold() -> None:
    patch = read_patch(
        patch_of("*** Update File: a.py", "@@ class A", " x", "-y", "+z", "+w", "@@", "-q", "", "*** End of File")
    )
    assert patch is not None
    assert "@@ -?,2 +?,3 @@ class A\n x\n-y\n+z\n+w\n@@ -?,2 +?,1 @@\n-q\n \n" in patch.diff
    assert count_changed_lines(patch.diff) == (2, 2)


def test_a_first_hunk_needs_no_mark() -> None:
    patch = read_patch(patch_of("*** Update File: a.py", "-old", "+new"))
    assert patch is not None
    assert count_changed_lines(patch.diff) == (1, 1)


def test_a_moved_file_is_gone_from_one_place_and_written_at_another() -> None:
    patch = read_patch(patch_of("*** Update File: a.py", "*** Move to: b.py", "@@", "-old", "+new"))
    assert patch is not None
    assert patch.changes == (("deleted", "a.py"), ("wrote", "b.py"))
    assert patch.diff.startswith("--- a/a.py\n+++ b/b.py\n")


def test_a_deleted_file() -> None:
    patch = read_patch(patch_of("*** Delete File: gone.py"))
    assert patch is not None
    assert (patch.diff, patch.changes) == ("--- a/gone.py\n+++ /dev/null\n", (("deleted", "gone.py"),))


def test_an_empty_new_file() -> None:
    patch = read_patch(patch_of("*** Add File: empty.py"))
    assert patch is not None
    assert (patch.diff, patch.changes) == ("--- /dev/null\n+++ b/empty.py\n", (("wrote", "empty.py"),))


def test_a_patch_inside_a_command() -> None:
    patch = read_patch(f"cd /w && apply_patch <<'EOF'\n{PATCH}EOF\n")
    assert patch is not None
    assert count_changed_lines(patch.diff) == (3, 1)


def test_of_two_patches_in_a_command_the_first() -> None:
    first = patch_of("*** Add File: a", "+1")
    patch = read_patch(f"apply_patch <<'A'\n{first}A\napply_patch <<'B'\n{PATCH}B\n")
    assert patch is not None
    assert patch.changes == (("wrote", "a"),)


def test_a_file_may_hold_the_marks_themselves() -> None:
    patch = read_patch(patch_of("*** Update File: docs.md", "@@", " *** Begin Patch", "-a", "+b", " *** End Patch"))
    assert patch is not None
    assert count_changed_lines(patch.diff) == (1, 1)
    assert " *** End Patch\n" in patch.diff


def test_lines_that_end_as_on_windows() -> None:
    patch = read_patch(patch_of("*** Update File: a.py", "@@", "-old", "+new").replace("\n", "\r\n"))
    assert patch is not None
    assert patch.changes == (("edited", "a.py"),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing of the kind",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\n+never ended",
        patch_of("*** Add File: "),
        patch_of("*** Add File: a", "not added"),
        patch_of("*** Update File: a", "?"),
        patch_of("stray", "*** Add File: a", "+1"),
        "*** End Patch\n*** Begin Patch",
    ],
)
def test_what_is_no_patch_is_none(text: str) -> None:
    assert read_patch(text) is None


def test_changes_that_were_made_come_with_their_lines() -> None:
    patch = patch_from_changes(
        {
            "/w/api/a.txt": {"type": "update", "unified_diff": "@@ -4 +4 @@\n-one\n+uno", "move_path": None},
            "/w/api/b.txt": {"type": "add", "content": "x\n"},
            "/other/c.txt": {"type": "delete", "content": "y\nz\n"},
        },
        "/w/api",
    )
    assert patch is not None
    assert patch.changes == (("deleted", "/other/c.txt"), ("edited", "a.txt"), ("wrote", "b.txt"))
    assert "--- a/a.txt\n+++ b/a.txt\n@@ -4 +4 @@\n-one\n+uno\n" in patch.diff
    assert count_changed_lines(patch.diff) == (2, 3)


def test_changes_as_early_versions_wrote_them() -> None:
    patch = patch_from_changes(
        {"a": {"update": {"unified_diff": "@@ -1 +1 @@\n-o\n+n\n", "move_path": "b"}}, "c": {"add": {"content": "1"}}}
    )
    assert patch is not None
    assert patch.changes == (("deleted", "a"), ("wrote", "b"), ("wrote", "c"))
    assert count_changed_lines(patch.diff) == (2, 1)


@pytest.mark.parametrize("changes", [None, [], "x", {}, {"a": None}, {"a": 1}])
def test_no_changes_are_none(changes: Any) -> None:
    assert patch_from_changes(changes) is None


PIECES = st.sampled_from(
    [
        *(
            "*** Begin Patch",
            "*** End Patch",
            "*** Add File: a",
            "*** Update File: b",
            "*** Delete File: c",
            "@@",
            "@@ f",
        ),
        *(
            "*** Move to: d",
            "+1",
            "-2",
            " 3",
            "",
            "*** End of File",
            "*** Environment ID: e",
            "+++ x",
            "--- y",
            "\r",
            "𝄞",
        ),
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=24).map("\n".join))
def test_any_text_is_a_patch_or_none(text: str) -> None:
    patch = read_patch(text)
    if patch is not None:
        assert patch.changes
        assert {verb for verb, _ in patch.changes} <= {"edited", "wrote", "deleted"}
        added, removed = count_changed_lines(patch.diff)
        assert added <= sum(line.startswith("+") for line in text.split("\n"))
        assert removed <= sum(line.startswith("-") for line in text.split("\n"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "content", "add", "update", "delete", "unified_diff", "move_path"]), inner
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=6), ANYTHING, max_size=4), st.text(max_size=4))
def test_any_changes_are_a_patch_or_none(changes: dict[str, Any], cwd: str) -> None:
    patch = patch_from_changes(changes, cwd)
    assert patch is None or patch.changes
