"""Reading diffs: what git and diff write, what only looks like it, and what is meant to deceive."""

from __future__ import annotations

import difflib
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.risk import diff as diff_module
from aver.gate.risk.diff import HUNK_LINES_MAX, read_diff, read_diff_lines, split_into_line_chunks
from aver.gate.risk.diff_model import DiffPart, FileChange, Hunk, UnclearLines
from support import memory_peaks as peaks
from support.git_histories import Step, git, make_repository

HEAD = "diff --git a/x.py b/x.py\nindex 1111111..2222222 100644\n--- a/x.py\n+++ b/x.py\n"


def files(text: str) -> list[FileChange]:
    return [part for part in read_diff(text) if isinstance(part, FileChange)]


def unclear(text: str) -> list[str]:
    return [part.why for part in read_diff(text) if isinstance(part, UnclearLines)]


def changed(text: str) -> tuple[list[str], list[str]]:
    hunks = [part for part in read_diff(text) if isinstance(part, Hunk)]
    return [line for hunk in hunks for line in hunk.added_lines()], [
        line for hunk in hunks for line in hunk.removed_lines()
    ]


def test_a_plain_edit() -> None:
    text = HEAD + "@@ -1,3 +1,3 @@ def f():\n a\n-b\n+c\n d\n"
    assert files(text) == [FileChange("x.py", "x.py", old_mode="100644", new_mode="100644")]
    assert changed(text) == (["c"], ["b"])
    assert unclear(text) == []


def test_content_that_looks_like_headers_is_content() -> None:
    """A removed `-- x` is written `--- x`, an added `++ y` is written `+++ y`."""
    text = (
        HEAD.replace("x.py", "x.sql")
        + "@@ -1,3 +1,3 @@\n--- drop it\n+++ b/evil.py\n-@@ -1 +1 @@\n+diff --git a b\n c\n"
    )
    assert changed(text) == (["++ b/evil.py", "diff --git a b"], ["-- drop it", "@@ -1 +1 @@"])
    assert [file.path for file in files(text)] == ["x.sql"]
    assert unclear(text) == []


def test_headers_by_form() -> None:
    assert files("--- old.py\t2024-01-01 00:00:00\n+++ new.py\t2024-01-02 00:00:00\n@@ -1 +1 @@\n-a\n+b\n") == [
        FileChange("old.py", "new.py")
    ]
    assert files("diff -ruN a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -0,0 +1 @@\n+b\n") == [FileChange("x.c", "x.c")]
    assert files("Index: x.c\n=====\n--- x.c\t(revision 1)\n+++ x.c\t(working copy)\n@@ -1 +1 @@\n-a\n+b\n") == [
        FileChange("x.c", "x.c")
    ]
    assert files("diff --git i/x w/x\n--- i/x\n+++ w/x\n@@ -1 +1 @@\n-a\n+b\n") == [FileChange("x", "x")]
    assert files("diff --git x y\n--- x\n+++ y\n@@ -1 +1 @@\n-a\n+b\n") == [FileChange("x", "y")]


def test_new_deleted_renamed_copied_modes() -> None:
    text = (
        "diff --git a/n.py b/n.py\nnew file mode 100755\nindex 0000000..1111111\n"
        "diff --git a/d.py b/d.py\ndeleted file mode 100644\nindex 1111111..0000000\n"
        "diff --git a/o.py b/p q.py\nsimilarity index 90%\nrename from o.py\nrename to p q.py\n"
        "diff --git a/o.py b/c.py\nsimilarity index 100%\ncopy from o.py\ncopy to c.py\n"
        "diff --git a/m.sh b/m.sh\nold mode 100644\nnew mode 100755\n"
    )
    assert files(text) == [
        FileChange(None, "n.py", new_mode="100755"),
        FileChange("d.py", None, old_mode="100644"),
        FileChange("o.py", "p q.py"),
        FileChange("o.py", "c.py"),
        FileChange("m.sh", "m.sh", old_mode="100644", new_mode="100755"),
    ]
    assert unclear(text) == []


def test_binary() -> None:
    text = (
        "diff --git a/x.bin b/x.bin\nindex 1..2 100644\nBinary files a/x.bin and b/x.bin differ\n"
        "diff --git a/y.bin b/y.bin\nindex 1..2 100644\nGIT binary patch\nliteral 5\nMcmZQzWMT#Y01f~L\n\n"
        "literal 0\nHcmV?d00001\n\n"
        "Binary files one/z.bin and two/z.bin differ\n"
    )
    assert [file.path for file in files(text)] == ["x.bin", "y.bin", "two/z.bin"]
    assert all(file.binary for file in files(text))
    assert unclear(text) == []
    assert changed(text + "+hidden\n")[0] == ["hidden"]


def test_quoted_names() -> None:
    text = (
        'diff --git "a/\\303\\251 \\"q\\"\\t.py" "b/\\303\\251 \\"q\\"\\t.py"\n--- "a/\\303\\251 \\"q\\"\\t.py"\n'
        '+++ "b/\\303\\251 \\"q\\"\\t.py"\n@@ -1 +1 @@\n-a\n+b\n'
        'diff --git "a/\\377.py" b/plain.py\nrename from "\\377.py"\nrename to plain.py\n'
    )
    assert [(file.old, file.new) for file in files(text)] == [('é "q"\t.py', 'é "q"\t.py'), ("\udcff.py", "plain.py")]


def test_names_with_blanks_in_a_header_alone() -> None:
    assert files("diff --git a/a b/c.py b/a b/c.py\nold mode 100644\nnew mode 100755\n")[0].path == "a b/c.py"
    odd = "diff --git a/x.py b/entirely other.py\nold mode 100644\nnew mode 100755\n"
    assert files(odd)[0].path == ""
    assert unclear(odd) == ["a file's name cannot be read"]


def test_no_newline_at_the_end() -> None:
    text = HEAD + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    assert changed(text) == (["b"], ["a"])
    assert unclear(text) == []


def test_crlf() -> None:
    text = (HEAD + "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+\n").replace("\n", "\r\n")
    assert changed(text) == (["c\r", "\r"], ["b\r"])
    assert files(text)[0].path == "x.py"
    assert unclear(text) == []


def test_empty_lines_whose_blank_was_stripped() -> None:
    text = HEAD + "@@ -1,3 +1,4 @@\n a\n\n+b\n c\n"
    assert changed(text) == (["b"], [])
    assert unclear(text) == []


def test_combined_diff_of_a_merge() -> None:
    text = (
        "diff --cc x.py\nindex 1,2..3\n--- a/x.py\n+++ b/x.py\n@@@ -1,3 -1,4 +1,4 @@@\n  same\n- ours\n -theirs\n"
        "++both\n+ from theirs\n  end\n"
    )
    assert changed(text) == (["both", "from theirs"], ["ours", "theirs"])
    assert unclear(text) == []
    assert unclear(text.replace("+1,4", "+1,9")) != []


def test_mail_and_log_around_the_diff_are_passed_over() -> None:
    mail = (
        "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\n"
        "Subject: [PATCH] x\n\n- one\n- two\n+ three\n---\n x.py | 2 +-\n\n"
    )
    text = mail + HEAD + "@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n" + mail + HEAD + "@@ -1 +1 @@\n-c\n+d\n-- \n2.39.5\n"
    assert changed(text) == (["b", "d"], ["a", "c"])
    assert unclear(text) == []


# --- what deceives


def test_lines_beyond_the_count_are_changes_and_unclear() -> None:
    text = HEAD + "@@ -1 +1 @@\n-a\n+b\n+hidden\n+hidden too\n"
    assert changed(text) == (["b", "hidden", "hidden too"], ["a"])
    assert unclear(text) == ["lines that belong to no hunk"]


def test_a_hunk_that_ends_early_is_unclear() -> None:
    assert unclear(HEAD + "@@ -1,5 +1,5 @@\n-a\n+b\n") == ["a hunk has not as many lines as its header says"]
    text = HEAD + "@@ -1,5 +1,5 @@\n-a\n+b\ndiff --git a/y.py b/y.py\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-c\n+d\n"
    assert len(unclear(text)) == 1
    assert changed(text) == (["b", "d"], ["a", "c"])


def test_a_hunk_with_too_many_of_one_side_is_unclear() -> None:
    text = HEAD + "@@ -1,2 +1,1 @@\n+a\n+b\n+c\n-d\n-e\n"
    assert changed(text) == (["a", "b", "c"], ["d", "e"])
    assert unclear(text) == ["a hunk has not as many lines as its header says"]


@pytest.mark.parametrize(
    "header",
    [
        "@@ -1 +1",
        "@@ @@",
        "@@ -a,b +c,d @@",
        "@@@ -1 +1 @@@",
        "@@ -1,99999999999 +1 @@",
        "@@ -１ +1 @@",
        "@@ -1,2,3 +1 @@",
    ],
)
def test_bad_hunk_headers(header: str) -> None:
    text = HEAD + f"{header}\n-a\n+hidden\n"
    assert "hidden" in changed(text)[0]
    assert unclear(text)


def test_hunks_without_a_file() -> None:
    assert "a hunk belongs to no file" in unclear("@@ -1 +1 @@\n-a\n+b\n")
    after_a_mail = HEAD + "@@ -1 +1 @@\n-a\n+b\n-- \n2.39\n@@ -5,0 +6 @@\n+hidden\n"
    assert "hidden" in changed(after_a_mail)[0]
    assert unclear(after_a_mail) == ["a hunk belongs to no file"]


@pytest.mark.parametrize(
    "text", ["hello\nworld\n", "+a\n-b\n", "3a4\n> x\n", "*** a\n--- b\n***************\n! x\n", "\x00\x01\n"]
)
def test_what_is_no_unified_diff_is_unclear(text: str) -> None:
    assert unclear(text)[-1] == "it has no file of a unified diff"


def test_files_that_are_not_shown_are_unclear() -> None:
    assert unclear(HEAD + "@@ -1 +1 @@\n-a\n+b\nOnly in b: evil.py\n") == ["lines that belong to no hunk"]


def test_headers_that_name_different_files_are_unclear() -> None:
    text = "diff --git a/src/x.py b/src/x.py\n--- a/tests/x.py\n+++ b/tests/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    assert unclear(text) == ["headers name different files"]
    renamed = "rename from src/x.py\nrename to src/y.py\n--- a/src/x.py\n+++ b/{}\n@@ -1 +1 @@\n-a\n+b\n"
    begun = "diff --git a/src/x.py b/src/y.py\n"
    assert unclear(begun + renamed.format("src/y.py")) == []
    assert unclear(begun + renamed.format("tests/y.py")) == ["headers name different files"]
    assert unclear("diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n") == []


def test_a_name_that_is_too_long_is_none() -> None:
    long = "x" * 5000
    assert unclear(f"--- a/{long}\n+++ b/{long}\n@@ -1 +1 @@\n-a\n+b\n") == ["a file's name cannot be read"]


def test_nothing() -> None:
    assert list(read_diff("")) == []
    assert list(read_diff_lines([])) == []


# --- against the real writers


CONTENTS = st.lists(
    st.sampled_from(
        ["", "a", "b", "-- x", "++ y", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ No newline", " ", "\t", "é"]
    ),
    max_size=12,
)


@given(CONTENTS, CONTENTS, st.integers(0, 4))
def test_agrees_with_difflib(old: list[str], new: list[str], context: int) -> None:
    lines = list(difflib.unified_diff(old, new, "a/x.py", "b/x.py", lineterm="", n=context))
    text = "\n".join(lines) + "\n" if lines else ""
    added, removed = changed(text)
    matcher = difflib.SequenceMatcher(None, old, new)
    gone = [line for tag, i1, i2, _, _ in matcher.get_opcodes() if tag != "equal" for line in old[i1:i2]]
    come = [line for tag, _, _, j1, j2 in matcher.get_opcodes() if tag != "equal" for line in new[j1:j2]]
    assert (added, removed) == (come, gone)
    assert unclear(text) == []


@given(CONTENTS, CONTENTS)
def test_line_numbers_of_what_was_removed(old: list[str], new: list[str]) -> None:
    lines = list(difflib.unified_diff(old, new, "a/x.py", "b/x.py", lineterm="", n=1))
    hunks = [part for part in read_diff("\n".join(lines)) if isinstance(part, Hunk)]
    for number, line in [found for hunk in hunks for found in hunk.numbered_removed_lines()]:
        assert old[number - 1] == line


def test_agrees_with_git_about_a_repository(tmp_path: Path) -> None:
    chance = random.Random(7)
    content = [f"line {number}" for number in range(200)]
    steps = []
    for number in range(30):
        at = chance.randrange(len(content))
        content[at : at + chance.randrange(5)] = chance.choices(
            ["-- x", "++ y", "", "new", "@@ -1 +1 @@"], k=chance.randrange(6)
        )
        steps.append(
            Step(
                1_600_000_000 + number,
                "step",
                {"a b/é.sql": "\n".join(content), f"f{number % 3}.bin": bytes([number, 0])},
            )
        )
    make_repository(tmp_path / "r", steps)
    log = git(tmp_path / "r", "log", "-p", "--no-color", "-M")
    counts = git(tmp_path / "r", "log", "--numstat", "--format=")
    numbers = [line.split("\t")[:2] for line in counts.splitlines() if line and not line.startswith("-")]
    added, removed = changed(log)
    assert len(added) == sum(int(plus) for plus, _ in numbers)
    assert len(removed) == sum(int(minus) for _, minus in numbers)
    assert unclear(log) == []
    assert {file.path for file in files(log)} == {"a b/é.sql", "f0.bin", "f1.bin", "f2.bin"}


# --- any text


WORDS = st.sampled_from(
    [
        *("diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1,2 +1,2 @@", "@@@ -1 -1 +1 @@@", "+a", "-b", " c", ""),
        *("\\ x", "-- ", "rename from x", "new mode 1", "GIT binary patch", "Binary files a and b differ", "\r"),
        *("index 1..2 100644", "junk", 'diff --git "a/\\', '--- "a/\\999"', "@@ -0,0 +0,0 @@"),
        *("deleted file mode 100644", "From " + "0" * 40 + " x", "literal 5", "McmZQzWMT#Y01f~L"),
    ]
)
MIXED = st.lists(WORDS | st.text(max_size=8), max_size=40).map("\n".join)


def joined(parts: Iterator[DiffPart]) -> list[DiffPart | str]:
    """Parts with the pieces of hunks joined, so that where they were cut does not show."""
    found: list[DiffPart | str] = []
    for part in parts:
        found += part.lines if isinstance(part, Hunk) else [part]
    return found


@given(MIXED | st.text(max_size=300))
def test_any_text_is_read_to_its_end(text: str) -> None:
    for part in read_diff(text):
        assert isinstance(part, FileChange | UnclearLines) or all(line[:1] in ("+", "-", " ") for line in part.lines)


@given(MIXED, st.integers(1, 5))
def test_where_lines_are_cut_into_chunks_makes_no_difference(text: str, size: int) -> None:
    rows = [row for chunk in split_into_line_chunks(text) for row in chunk]
    chunks = [rows[at : at + size] for at in range(0, len(rows), size)]
    assert joined(read_diff_lines(chunks)) == joined(read_diff(text))


@given(MIXED)
def test_no_change_vanishes_after_the_first_file(text: str) -> None:
    """Whatever follows a file: a line that adds something is given out, or the diff is called unclear, or both."""
    whole = HEAD + "@@ -1 +1 @@\n-a\n+b\n" + text
    lines = text.split("\n")
    plus = sum(line.startswith("+") for line in lines)
    added = len(changed(whole)[0]) - 1
    headers = sum(line.startswith("+++ ") for line in lines)
    if added < plus - headers and not any(line.startswith(("-- ", "From ")) for line in lines):
        assert unclear(whole) or any(file.binary for file in files(whole))


@pytest.mark.parametrize(
    "text",
    [
        "--- a/x\n+++ b/x\n@@ -0,0 +1,5000 @@\n" + "+x\n" * 5000,
        "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n" + "+x\n" * 5000,
        "--- a/x\n+++ b/x\n@@@ -0,0 -0,0 +1,5000 @@@\n" + "++x\n" * 5000,
        "text before it\n" * 5000,
        "@@ bad\njunk\n" * 2500,
    ],
    ids=["hunk", "stray", "combined", "text", "junk"],
)
def test_what_is_too_long_is_not_read_to_its_end(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_module, "LINES_MAX", 1000)
    parts = list(read_diff(text))
    assert parts[-1] == UnclearLines(parts[-1].number, "it is too long to be read to its end")  # type: ignore[union-attr]
    assert sum(len(part.lines) for part in parts if isinstance(part, Hunk)) <= 1000 + HUNK_LINES_MAX


def test_a_long_hunk_comes_in_pieces() -> None:
    count = 3 * HUNK_LINES_MAX + 5
    text = f"--- a/x\n+++ b/x\n@@ -{7},{count} +7,{count} @@\n" + "".join(f"-{n}\n+{n}!\n" for n in range(count))
    hunks = [part for part in read_diff(text) if isinstance(part, Hunk)]
    assert max(len(hunk.lines) for hunk in hunks) <= HUNK_LINES_MAX
    assert [number for hunk in hunks for number, _ in hunk.numbered_removed_lines()] == list(range(7, 7 + count))
    assert unclear(text) == []


GIANTS = {
    "short lines": "'--- a/x.py\\n+++ b/x.py\\n@@ -0,0 +1,30000000 @@\\n' + '+x\\n' * 30_000_000",
    "one line": "'--- a/x.py\\n+++ b/x.py\\n@@ -0,0 +1 @@\\n+' + 'x' * 100_000_000",
    "no newline at all": "'x' * 100_000_000",
    "a name": "'--- \"a/' + '\\\\' * 100_000_000",
}
MEASURE = """
from aver.gate.risk.features import measure_diff
text = {text}
before = peak_kb()
unclear = measure_diff(text).features.unclear
print(unclear, (peak_kb() - before) // 1024)
"""


@pytest.mark.long
@pytest.mark.skipif(not peaks.KNOWN, reason="memory is told by /proc")
@pytest.mark.parametrize("name", sorted(GIANTS))
def test_a_hundred_megabytes_take_little_memory(name: str) -> None:
    code = peaks.PEAK + MEASURE.format(text=GIANTS[name])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unclear_parts, megabytes = done.stdout.split()
    assert int(unclear_parts) >= 1
    assert int(megabytes) < 350  # Three copies of the text at most: of one line there must be some.
